//! The last gate before spans leave: what is not in the names file stays here, and is counted.
//!
//! It stands in front of the exporter instead of at each call site, because a library or a forgotten field can add
//! an attribute that nobody here ever saw.

use crate::metrics::TELEMETRY_DROPPED;
use crate::names;
use crate::sampling::WaitingCount;
use opentelemetry::KeyValue;
use opentelemetry_sdk::Resource;
use opentelemetry_sdk::error::OTelSdkResult;
use opentelemetry_sdk::trace::{SpanData, SpanExporter};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

/// How many attributes and events were kept from leaving.
#[derive(Debug, Clone, Default)]
pub(crate) struct DroppedCount(Arc<AtomicU64>);

impl DroppedCount {
    pub(crate) fn count(&self) -> u64 {
        self.0.load(Ordering::Relaxed)
    }

    fn add(&self, number: usize) {
        let number = u64::try_from(number).unwrap_or(u64::MAX);
        self.0.fetch_add(number, Ordering::Relaxed);
        if number > 0 {
            TELEMETRY_DROPPED.add(["attributes"], number);
        }
    }
}

/// An exporter that sees only listed attributes.
#[derive(Debug)]
pub(crate) struct AllowListExporter<E> {
    exporter: E,
    dropped: DroppedCount,
    waiting: WaitingCount,
}

impl<E: SpanExporter> AllowListExporter<E> {
    pub(crate) fn new(exporter: E, dropped: DroppedCount, waiting: WaitingCount) -> AllowListExporter<E> {
        AllowListExporter { exporter, dropped, waiting }
    }

    fn strip(&self, span: &mut SpanData) {
        let removed = self.keep_listed(&mut span.attributes);
        span.dropped_attributes_count = span.dropped_attributes_count.saturating_add(removed);
        for link in &mut span.links.links {
            self.keep_listed(&mut link.attributes);
        }
        // Log events stay in the log: their texts are not chosen from a list.
        self.dropped.add(span.events.events.len());
        span.events.events.clear();
    }

    fn keep_listed(&self, attributes: &mut Vec<KeyValue>) -> u32 {
        let before = attributes.len();
        attributes.retain(|attribute| names::may_leave(attribute.key.as_str()));
        let removed = before - attributes.len();
        self.dropped.add(removed);
        u32::try_from(removed).unwrap_or(u32::MAX)
    }
}

impl<E: SpanExporter> SpanExporter for AllowListExporter<E> {
    fn export(&self, mut batch: Vec<SpanData>) -> impl Future<Output = OTelSdkResult> + Send {
        self.waiting.fetch_sub(batch.len(), Ordering::Relaxed);
        batch.iter_mut().for_each(|span| self.strip(span));
        self.exporter.export(batch)
    }

    fn shutdown_with_timeout(&self, timeout: Duration) -> OTelSdkResult {
        self.exporter.shutdown_with_timeout(timeout)
    }

    fn force_flush(&self) -> OTelSdkResult {
        self.exporter.force_flush()
    }

    fn set_resource(&mut self, resource: &Resource) {
        self.exporter.set_resource(resource);
    }
}
