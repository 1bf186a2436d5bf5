//! What the process writes into its log as an error, for tests that count reports.

use std::fmt::Debug;
use std::sync::{Arc, Mutex};
use tracing::field::{Field, Visit};
use tracing::span::{Attributes, Id, Record};
use tracing::{Event, Level, Metadata, Subscriber};

/// Counts the errors in the log that name each tenant.
#[derive(Clone, Default)]
pub(crate) struct ErrorLog(Arc<Mutex<Vec<String>>>);

impl ErrorLog {
    /// For the whole process: the registry works on threads of its own.
    pub(crate) fn start() -> ErrorLog {
        let log = ErrorLog::default();
        tracing::subscriber::set_global_default(log.clone()).expect("no other test listens to the log");
        log
    }

    /// How many errors name the tenant.
    pub(crate) fn about(&self, tenant: &str) -> usize {
        self.0.lock().unwrap().iter().filter(|named| *named == tenant).count()
    }
}

impl Visit for ErrorLog {
    fn record_debug(&mut self, field: &Field, value: &dyn Debug) {
        if field.name() == "tenant" {
            self.0.lock().unwrap().push(format!("{value:?}"));
        }
    }
}

impl Subscriber for ErrorLog {
    fn enabled(&self, metadata: &Metadata<'_>) -> bool {
        metadata.is_event() && *metadata.level() == Level::ERROR
    }

    fn new_span(&self, _: &Attributes<'_>) -> Id {
        Id::from_u64(1)
    }

    fn record(&self, _: &Id, _: &Record<'_>) {}

    fn record_follows_from(&self, _: &Id, _: &Id) {}

    fn event(&self, event: &Event<'_>) {
        event.record(&mut self.clone());
    }

    fn enter(&self, _: &Id) {}

    fn exit(&self, _: &Id) {}
}
