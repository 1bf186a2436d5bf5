//! Steps of a call: spans that are only made if the step was slow or failed, and then after the fact.
//!
//! A quick step costs two looks at the clock, and nothing at all without a collector.

use crate::config::Config;
use crate::layer::{collects_spans, end_now};
use crate::names;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

/// A step that took less is not told, unless it failed: milliseconds.
static SLOW_STEP: AtomicU64 = AtomicU64::new(1);
/// The same for a round trip to the store.
static SLOW_ROUND_TRIP: AtomicU64 = AtomicU64::new(5);

/// Learns from the settings what is slow.
pub(crate) fn tell_from(config: &Config) {
    SLOW_STEP.store(config.slow_step_ms, Ordering::Relaxed);
    SLOW_ROUND_TRIP.store(config.slow_store_ms, Ordering::Relaxed);
}

fn is_slow(took: Duration, from: &AtomicU64) -> bool {
    took >= Duration::from_millis(from.load(Ordering::Relaxed))
}

/// A step that is under way. One that is dropped is not told.
#[derive(Debug)]
#[must_use = "a step is told when it ends"]
pub struct Step {
    name: &'static str,
    began: Option<Instant>,
}

impl Step {
    /// A step that begins now; `name` is one of [`names::SPANS`].
    pub fn begin(name: &'static str) -> Step {
        Step { name, began: collects_spans().then(Instant::now) }
    }

    /// The step has ended: with this error, a word of a closed list, or well.
    pub fn end(self, error: Option<&str>) {
        let Some(took) = self.began.map(|began| began.elapsed()) else { return };
        if is_slow(took, &SLOW_STEP) || error.is_some() {
            end_now(self.name, took, |attributes| {
                if let Some(error) = error {
                    attributes.set(names::ERROR_TYPE, error);
                }
            });
        }
    }

    /// The step has ended, well or with an error of which this is the word.
    pub fn end_with<T, E>(self, result: &Result<T, E>, word: impl FnOnce(&E) -> &'static str) {
        self.end(result.as_ref().err().map(word));
    }
}

/// Tells of a round trip to the store that was slow or failed.
pub fn store_round_trip(system: &'static str, operation: &'static str, took: Duration, error: Option<&'static str>) {
    if collects_spans() && (is_slow(took, &SLOW_ROUND_TRIP) || error.is_some()) {
        end_now(operation, took, |attributes| {
            attributes.set(names::OTEL_KIND, "client");
            attributes.set(names::DB_SYSTEM_NAME, system).set(names::DB_OPERATION_NAME, operation);
            if let Some(error) = error {
                attributes.set(names::ERROR_TYPE, error);
            }
        });
    }
}
