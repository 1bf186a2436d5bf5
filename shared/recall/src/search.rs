//! Ranking: BM25 of the words, joined with trust, type and recency.
//!
//! A document that has no word of the query is never found, however trusted or recent it is.

use crate::index::{IndexEntry, RankFacts, TextIndex};
use crate::words::wanted;
use std::cmp::Ordering;

const K1: f64 = 1.2;
const B: f64 = 0.75;

const WORDS: f64 = 0.60;
const TRUST: f64 = 0.20;
const TYPE: f64 = 0.10;
const RECENCY: f64 = 0.10;

const HALF_LIFE_DAYS: f64 = 30.0;
const MILLIS_PER_DAY: f64 = 86_400_000.0;

/// A document that was found.
#[derive(Debug, Clone, PartialEq)]
pub struct IndexHit {
    /// In which of the indexes.
    pub index: usize,
    /// Its path.
    pub path: String,
    /// How well it fits, from zero to one.
    pub score: f64,
}

/// The best documents for a query among those that `filter` lets through, best first, ties by path.
///
/// Several indexes are searched as if they were one: how rare a word is and how long documents are is counted over all
/// of them, so the scores can be compared whichever index a document is in.
pub fn search(
    indexes: &[&TextIndex],
    query: &str,
    filter: impl Fn(&RankFacts) -> bool,
    now_ms: u64,
    limit: usize,
) -> Vec<IndexHit> {
    let found = fits(indexes, query, filter);
    let best = found.iter().map(|found| found.words).fold(0.0, f64::max);
    let mut ranked: Vec<(f64, Candidate<'_>)> =
        found.into_iter().map(|found| (joined(found.words / best, &found.entry.facts, now_ms), found)).collect();
    if limit < ranked.len() {
        ranked.select_nth_unstable_by(limit, order);
        ranked.truncate(limit);
    }
    ranked.sort_unstable_by(order);
    let hit = |(score, found): (f64, Candidate<'_>)| IndexHit {
        index: found.index,
        path: found.entry.path.to_string(),
        score,
    };
    ranked.into_iter().map(hit).collect()
}

struct Candidate<'i> {
    index: usize,
    entry: &'i IndexEntry,
    words: f64,
}

/// The documents that have a word of the query, each with its BM25.
#[expect(clippy::cast_precision_loss, reason = "counts of words and documents are far below 2^52")]
fn fits<'i>(indexes: &[&'i TextIndex], query: &str, filter: impl Fn(&RankFacts) -> bool) -> Vec<Candidate<'i>> {
    let wanted = wanted(query);
    let documents = indexes.iter().map(|index| index.len()).sum::<usize>() as f64;
    let total = indexes.iter().map(|index| index.total()).sum::<u64>() as f64;
    let average = (total / documents.max(1.0)).max(1.0);
    let mut scores: Vec<Vec<f64>> = indexes.iter().map(|index| vec![0.0; index.numbers()]).collect();
    for word in &wanted {
        let lists: Vec<_> = indexes.iter().map(|index| index.postings(word)).collect();
        let having = lists.iter().map(|list| list.len()).sum::<usize>() as f64;
        let rarity = (1.0 + (documents - having + 0.5) / (having + 0.5)).ln();
        for ((index, list), scores) in indexes.iter().zip(lists).zip(&mut scores) {
            for posting in list {
                let length = index.entry(posting.document).map_or(0.0, |entry| f64::from(entry.length));
                let count = f64::from(posting.count);
                scores[posting.document as usize] +=
                    rarity * count * (K1 + 1.0) / (count + K1 * (1.0 - B + B * length / average));
            }
        }
    }
    let mut found = Vec::new();
    for (number, (index, scores)) in indexes.iter().zip(scores).enumerate() {
        let with_words = (0_u32..).zip(scores).filter(|(_, words)| *words > 0.0);
        let entries = with_words.filter_map(|(document, words)| Some((index.entry(document)?, words)));
        let fitting = entries.filter(|(entry, _)| filter(&entry.facts));
        found.extend(fitting.map(|(entry, words)| Candidate { index: number, entry, words }));
    }
    found
}

/// One score from all there is; `words` is the share of the best.
#[expect(clippy::cast_precision_loss, reason = "milliseconds since 1970 are below 2^52")]
fn joined(words: f64, facts: &RankFacts, now_ms: u64) -> f64 {
    let days = now_ms.saturating_sub(facts.updated_ms) as f64 / MILLIS_PER_DAY;
    let recency = 0.5_f64.powf(days / HALF_LIFE_DAYS);
    let score = WORDS * words + TRUST * facts.trust_weight + TYPE * facts.type_weight + RECENCY * recency;
    if facts.suspect { score / 2.0 } else { score }
}

fn order((one, found): &(f64, Candidate<'_>), (other, than): &(f64, Candidate<'_>)) -> Ordering {
    other.total_cmp(one).then_with(|| found.entry.path.cmp(&than.entry.path)).then_with(|| found.index.cmp(&than.index))
}
