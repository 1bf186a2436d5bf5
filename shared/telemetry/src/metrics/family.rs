//! The series of one metric: found by their label values without an allocation, changed by one atomic operation.

use crate::names::metrics::MetricName;
use std::collections::HashMap;
use std::hash::{BuildHasherDefault, Hasher};
use std::sync::atomic::{AtomicI64, AtomicU64, Ordering};
use std::sync::{Arc, LazyLock, PoisonError, RwLock};

/// The most series one metric may have. What comes after them is counted together, under [`OTHER`].
const MOST_SERIES: usize = 2_000;
/// What stands for every value that has no series of its own.
pub(super) const OTHER: &str = "_other";
/// Sums are kept in billionths, so that adding to one is a single atomic operation.
const BILLIONTHS: f64 = 1e9;

/// What a series holds.
pub(super) trait SeriesValue: Default + Send + Sync + 'static {
    fn read(&self, name: &MetricName) -> SeriesReading;
    /// What the value has room for, before it is first used.
    fn of(name: &MetricName) -> Self;
}

/// What a series held at one moment.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum SeriesReading {
    /// The value of a counter or a gauge.
    Number(f64),
    /// How many fell into each bucket, those above all buckets last, and their sum.
    Buckets(Vec<u64>, f64),
}

/// The series of a metric with `N` labels.
pub(super) struct Family<const N: usize, V> {
    pub(super) name: &'static MetricName,
    series: LazyLock<FamilySeries<N, V>>,
}

struct FamilySeries<const N: usize, V> {
    by_hash: RwLock<ByHash<N, V>>,
}

/// One series.
pub(super) struct Series<const N: usize, V> {
    labels: [Box<str>; N],
    pub(super) value: V,
}

impl<const N: usize, V: SeriesValue> Family<N, V> {
    pub(super) const fn new(name: &'static MetricName) -> Family<N, V> {
        assert!(name.labels.len() == N, "a metric has as many values as labels");
        Family { name, series: LazyLock::new(|| FamilySeries { by_hash: RwLock::new(HashMap::default()) }) }
    }

    /// Does something with the series of these labels, which is made if it is not there.
    pub(super) fn with<T>(&self, labels: [&str; N], work: impl FnOnce(&V) -> T) -> T {
        let FamilySeries { by_hash } = &*self.series;
        let hash = hash_of(labels);
        {
            let known = by_hash.read().unwrap_or_else(PoisonError::into_inner);
            if let Some(series) = find(&known, hash, labels) {
                return work(&series.value);
            }
        }
        work(&self.insert(labels, hash).value)
    }

    /// The series of these labels, for whoever changes it more than once.
    pub(super) fn series(&self, labels: [&str; N]) -> Arc<Series<N, V>> {
        let FamilySeries { by_hash } = &*self.series;
        let hash = hash_of(labels);
        let known = find(&by_hash.read().unwrap_or_else(PoisonError::into_inner), hash, labels).map(Arc::clone);
        known.unwrap_or_else(|| self.insert(labels, hash))
    }

    fn insert(&self, labels: [&str; N], hash: u64) -> Arc<Series<N, V>> {
        let FamilySeries { by_hash } = &*self.series;
        let mut known = by_hash.write().unwrap_or_else(PoisonError::into_inner);
        // An empty value says that the series has no such label, so it stays empty.
        let others = labels.map(|value| if value.is_empty() { value } else { OTHER });
        let full = known.len() >= MOST_SERIES && find(&known, hash, labels).is_none();
        let (labels, hash) = if full { (others, hash_of(others)) } else { (labels, hash) };
        if let Some(series) = find(&known, hash, labels) {
            return Arc::clone(series);
        }
        let series = Arc::new(Series { labels: labels.map(Box::from), value: V::of(self.name) });
        known.entry(hash).or_default().push(Arc::clone(&series));
        series
    }

    /// Forgets every series.
    pub(super) fn clear(&self) {
        self.series.by_hash.write().unwrap_or_else(PoisonError::into_inner).clear();
    }

    /// Every series, in the order of their labels.
    pub(super) fn read(&self) -> Vec<(Vec<String>, SeriesReading)> {
        let known = self.series.by_hash.read().unwrap_or_else(PoisonError::into_inner);
        let reading = |series: &Arc<Series<N, V>>| {
            (series.labels.iter().map(|value| value.to_string()).collect(), series.value.read(self.name))
        };
        let mut all: Vec<(Vec<String>, SeriesReading)> = known.values().flatten().map(reading).collect();
        drop(known);
        all.sort_by(|one, other| one.0.cmp(&other.0));
        all
    }
}

type ByHash<const N: usize, V> = HashMap<u64, Vec<Arc<Series<N, V>>>, BuildHasherDefault<HashedBefore>>;

/// A quick hash of label values. Whoever chose names that hash alike would gain a walk over a list that is bounded.
fn hash_of<const N: usize>(labels: [&str; N]) -> u64 {
    const MIX: u64 = 0x9e37_79b9_7f4a_7c15;
    let mix = |hash: u64, word: u64| (hash.rotate_left(23) ^ word).wrapping_mul(MIX);
    let mut hash = MIX;
    for label in labels {
        let (words, rest) = label.as_bytes().as_chunks::<8>();
        hash = words.iter().fold(hash, |hash, word| mix(hash, u64::from_le_bytes(*word)));
        hash = rest.iter().fold(mix(hash, label.len() as u64), |hash, byte| mix(hash, u64::from(*byte)));
    }
    hash
}

/// Takes a number that is a hash already as it is.
#[derive(Default)]
struct HashedBefore(u64);

impl Hasher for HashedBefore {
    fn write(&mut self, bytes: &[u8]) {
        // Only numbers are keys here.
        debug_assert!(bytes.is_empty());
    }

    fn write_u64(&mut self, hash: u64) {
        self.0 = hash;
    }

    fn finish(&self) -> u64 {
        self.0
    }
}

fn find<'k, const N: usize, V>(known: &'k ByHash<N, V>, hash: u64, labels: [&str; N]) -> Option<&'k Arc<Series<N, V>>> {
    known.get(&hash)?.iter().find(|series| series.labels.iter().zip(labels).all(|(own, asked)| **own == *asked))
}

impl SeriesValue for AtomicU64 {
    fn read(&self, _: &MetricName) -> SeriesReading {
        SeriesReading::Number(self.load(Ordering::Relaxed) as f64)
    }

    fn of(_: &MetricName) -> AtomicU64 {
        AtomicU64::default()
    }
}

/// The value of a gauge: what was last set, and what was added since.
#[derive(Debug, Default)]
pub(super) struct GaugeValue {
    bits: AtomicU64,
    added: AtomicI64,
}

impl GaugeValue {
    pub(super) fn set(&self, value: f64) {
        self.bits.store(value.to_bits(), Ordering::Relaxed);
    }

    pub(super) fn add(&self, number: i64) {
        self.added.fetch_add(number, Ordering::Relaxed);
    }
}

impl SeriesValue for GaugeValue {
    fn read(&self, _: &MetricName) -> SeriesReading {
        let added = self.added.load(Ordering::Relaxed) as f64;
        SeriesReading::Number(f64::from_bits(self.bits.load(Ordering::Relaxed)) + added)
    }

    fn of(_: &MetricName) -> GaugeValue {
        GaugeValue::default()
    }
}

/// The value of a histogram.
#[derive(Debug, Default)]
pub(super) struct BucketCounts {
    counts: Box<[AtomicU64]>,
    billionths: AtomicU64,
}

impl BucketCounts {
    pub(super) fn observe(&self, buckets: &[f64], value: f64) {
        let bucket = buckets.partition_point(|end| value > *end);
        if let Some(count) = self.counts.get(bucket) {
            count.fetch_add(1, Ordering::Relaxed);
        }
        // What is negative or not a number becomes zero: a clock that went back adds nothing.
        self.billionths.fetch_add((value * BILLIONTHS) as u64, Ordering::Relaxed);
    }
}

impl SeriesValue for BucketCounts {
    fn read(&self, _: &MetricName) -> SeriesReading {
        let counts = self.counts.iter().map(|count| count.load(Ordering::Relaxed)).collect();
        SeriesReading::Buckets(counts, self.billionths.load(Ordering::Relaxed) as f64 / BILLIONTHS)
    }

    fn of(name: &MetricName) -> BucketCounts {
        let counts = (0..=name.buckets.len()).map(|_| AtomicU64::default()).collect();
        BucketCounts { counts, billionths: AtomicU64::default() }
    }
}
