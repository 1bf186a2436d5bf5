//! The three kinds of instruments, as the code that is measured uses them.

use super::family::{BucketCounts, Family, GaugeValue, Series, SeriesReading};
use crate::names::metrics::MetricName;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Instant;

/// Counts up. `N` is the number of its labels; their values are given in the order of the names.
pub struct Counter<const N: usize>(Family<N, AtomicU64>);

impl<const N: usize> Counter<N> {
    pub(super) const fn new(name: &'static MetricName) -> Counter<N> {
        Counter(Family::new(name))
    }

    /// Adds to the series with these label values; adding nothing makes it visible.
    pub fn add(&self, labels: [&str; N], number: u64) {
        self.0.with(labels, |count| count.fetch_add(number, Ordering::Relaxed));
    }
}

/// A number that goes up and down, or that somebody else counts.
pub struct Gauge<const N: usize>(Family<N, GaugeValue>);

impl<const N: usize> Gauge<N> {
    pub(super) const fn new(name: &'static MetricName) -> Gauge<N> {
        Gauge(Family::new(name))
    }

    /// Sets the series with these label values.
    pub fn set(&self, labels: [&str; N], value: f64) {
        self.0.with(labels, |gauge| gauge.set(value));
    }

    /// Counts something that is there until the guard is dropped.
    pub fn enter(&self, labels: [&str; N]) -> GaugeGuard<N> {
        let series = self.0.series(labels);
        series.value.add(1);
        GaugeGuard(series)
    }

    /// Replaces all series: what is not named is not there any more.
    pub fn replace<'v>(&self, series: impl IntoIterator<Item = ([&'v str; N], f64)>) {
        self.0.clear();
        series.into_iter().for_each(|(labels, value)| self.set(labels, value));
    }
}

/// Something that a gauge counts while it lasts.
#[must_use]
pub struct GaugeGuard<const N: usize>(Arc<Series<N, GaugeValue>>);

impl<const N: usize> Drop for GaugeGuard<N> {
    fn drop(&mut self) {
        self.0.value.add(-1);
    }
}

/// Sorts what it is given into buckets.
pub struct Histogram<const N: usize>(Family<N, BucketCounts>);

impl<const N: usize> Histogram<N> {
    pub(super) const fn new(name: &'static MetricName) -> Histogram<N> {
        Histogram(Family::new(name))
    }

    /// Notes a value.
    pub fn observe(&self, labels: [&str; N], value: f64) {
        self.0.with(labels, |counts| counts.observe(self.0.name.buckets, value));
    }

    /// Notes the seconds that have passed since.
    pub fn observe_since(&self, labels: [&str; N], since: Instant) {
        self.observe(labels, since.elapsed().as_secs_f64());
    }
}

/// A metric as it was read: every series with its label values.
#[derive(Debug)]
pub(crate) struct MetricReading {
    pub(crate) name: &'static MetricName,
    pub(crate) series: Vec<(Vec<String>, SeriesReading)>,
}

/// What every kind of instrument can do.
pub(super) trait Instrument: Sync {
    fn read(&self) -> MetricReading;
}

impl<const N: usize> Instrument for Counter<N> {
    fn read(&self) -> MetricReading {
        MetricReading { name: self.0.name, series: self.0.read() }
    }
}

impl<const N: usize> Instrument for Gauge<N> {
    fn read(&self) -> MetricReading {
        MetricReading { name: self.0.name, series: self.0.read() }
    }
}

impl<const N: usize> Instrument for Histogram<N> {
    fn read(&self) -> MetricReading {
        MetricReading { name: self.0.name, series: self.0.read() }
    }
}
