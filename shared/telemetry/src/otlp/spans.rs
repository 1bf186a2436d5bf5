//! Spans, as the batch processor of the SDK hands them over.

use super::{OtlpRequest, OtlpSender};
use opentelemetry_proto::tonic::collector::trace::v1::ExportTraceServiceRequest;
use opentelemetry_proto::transform::common::tonic::ResourceAttributesWithSchema;
use opentelemetry_proto::transform::trace::tonic::group_spans_by_resource_and_scope;
use opentelemetry_sdk::Resource;
use opentelemetry_sdk::error::{OTelSdkError, OTelSdkResult};
use opentelemetry_sdk::trace::{SpanData, SpanExporter};

/// Sends spans.
#[derive(Debug)]
pub(crate) struct OtlpSpans {
    sender: OtlpSender,
    resource: ResourceAttributesWithSchema,
}

impl OtlpSpans {
    pub(crate) fn new(sender: OtlpSender) -> OtlpSpans {
        OtlpSpans { sender, resource: ResourceAttributesWithSchema::default() }
    }
}

impl SpanExporter for OtlpSpans {
    async fn export(&self, batch: Vec<SpanData>) -> OTelSdkResult {
        let spans = batch.len();
        let resource_spans = group_spans_by_resource_and_scope(batch, &self.resource);
        let sent = self.sender.send(OtlpRequest::Traces(ExportTraceServiceRequest { resource_spans }), spans).await;
        sent.map_err(|error| OTelSdkError::InternalFailure(error.to_string()))
    }

    fn set_resource(&mut self, resource: &Resource) {
        self.resource = resource.into();
    }
}
