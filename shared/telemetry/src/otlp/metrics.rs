//! The instruments of this process as OTLP has them: cumulative since the process began.

use super::{OtlpRequest, OtlpSender};
use crate::metrics::{self, MetricReading, SeriesReading};
use crate::names::metrics::{MetricKind, attribute_of};
use opentelemetry_proto::tonic::collector::metrics::v1::ExportMetricsServiceRequest;
use opentelemetry_proto::tonic::common::v1::any_value::Value;
use opentelemetry_proto::tonic::common::v1::{AnyValue, InstrumentationScope, KeyValue};
use opentelemetry_proto::tonic::metrics::v1::metric::Data;
use opentelemetry_proto::tonic::metrics::v1::number_data_point::Value as Number;
use opentelemetry_proto::tonic::metrics::v1::{
    AggregationTemporality, Gauge, Histogram, HistogramDataPoint, Metric, NumberDataPoint, ResourceMetrics,
    ScopeMetrics, Sum,
};
use opentelemetry_proto::tonic::resource::v1::Resource;
use std::time::{SystemTime, UNIX_EPOCH};

/// Sends metrics when it is asked to.
#[derive(Debug, Clone)]
pub struct MetricsExporter {
    sender: OtlpSender,
    resource: Resource,
    began: u64,
}

impl MetricsExporter {
    pub(crate) fn new(sender: OtlpSender, resource: Resource) -> MetricsExporter {
        MetricsExporter { sender, resource, began: nanos_now() }
    }

    /// Sends everything as it is now. What is not taken is counted, and the next sending tells the same and more.
    pub async fn export(&self) {
        let (now, began) = (nanos_now(), self.began);
        let metrics = metrics::read().into_iter().filter(|metric| !metric.series.is_empty());
        let metrics: Vec<Metric> = metrics.map(|metric| written(metric, began, now)).collect();
        let scope = InstrumentationScope { name: "quartermaster".to_owned(), ..InstrumentationScope::default() };
        let scope_metrics = vec![ScopeMetrics { scope: Some(scope), metrics, schema_url: String::new() }];
        let resource = Some(self.resource.clone());
        let resource_metrics = vec![ResourceMetrics { resource, scope_metrics, schema_url: String::new() }];
        // Counted where it fails.
        self.sender.send(OtlpRequest::Metrics(ExportMetricsServiceRequest { resource_metrics }), 1).await.ok();
    }
}

fn written(MetricReading { name, series }: MetricReading, began: u64, now: u64) -> Metric {
    let attributes = |values: Vec<String>| -> Vec<KeyValue> {
        let pairs = name.labels.iter().zip(values).filter(|(_, value)| !value.is_empty());
        pairs.map(|(label, value)| pair(attribute_of(label), Value::StringValue(value))).collect()
    };
    let (mut numbers, mut histograms) = (Vec::new(), Vec::new());
    for (values, reading) in series {
        let attributes = attributes(values);
        match reading {
            SeriesReading::Number(number) => numbers.push(NumberDataPoint {
                attributes,
                start_time_unix_nano: began,
                time_unix_nano: now,
                value: Some(Number::AsDouble(number)),
                ..NumberDataPoint::default()
            }),
            SeriesReading::Buckets(counts, sum) => histograms.push(HistogramDataPoint {
                attributes,
                start_time_unix_nano: began,
                time_unix_nano: now,
                count: counts.iter().sum(),
                sum: Some(sum),
                bucket_counts: counts,
                explicit_bounds: name.buckets.to_vec(),
                ..HistogramDataPoint::default()
            }),
        }
    }
    let aggregation_temporality = AggregationTemporality::Cumulative.into();
    let data = match name.kind {
        MetricKind::Counter => Data::Sum(Sum { data_points: numbers, aggregation_temporality, is_monotonic: true }),
        MetricKind::Gauge => Data::Gauge(Gauge { data_points: numbers }),
        MetricKind::Histogram => Data::Histogram(Histogram { data_points: histograms, aggregation_temporality }),
    };
    Metric {
        name: name.otlp.to_owned(),
        description: name.help.to_owned(),
        unit: name.unit.to_owned(),
        data: Some(data),
        ..Metric::default()
    }
}

pub(crate) fn pair(key: &str, value: Value) -> KeyValue {
    KeyValue { key: key.to_owned(), value: Some(AnyValue { value: Some(value) }), ..KeyValue::default() }
}

pub(super) fn nanos_now() -> u64 {
    nanos(SystemTime::now())
}

/// Nanoseconds since 1970.
pub(super) fn nanos(at: SystemTime) -> u64 {
    u64::try_from(at.duration_since(UNIX_EPOCH).unwrap_or_default().as_nanos()).unwrap_or(u64::MAX)
}
