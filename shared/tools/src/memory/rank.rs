//! Ranking: BM25 over title, tags, path and content, joined with trust, type and recency.
//!
//! A document that matches no word of the query is never returned, however trusted or recent it is.

use domain::Moment;
use std::collections::HashMap;
use store::{Document, Trust};

const K1: f64 = 1.2;
const B: f64 = 0.75;
/// Text beyond this is not looked at; the head of a document says what it is about.
const LOOKED_AT: usize = 32 * 1024;
const EXCERPT_CHARS: usize = 400;
const HALF_LIFE_DAYS: f64 = 30.0;
const MILLIS_PER_DAY: f64 = 86_400_000.0;

/// One document found.
pub(super) struct Hit<'a> {
    pub(super) document: &'a Document,
    pub(super) score: f64,
    pub(super) excerpt: String,
}

/// The best documents for a query, best first; ties by path.
#[expect(clippy::cast_precision_loss, reason = "counts of words and documents are far below 2^52")]
pub(super) fn best<'a>(documents: &'a [Document], query: &str, now: Moment, limit: usize) -> Vec<Hit<'a>> {
    let mut wanted = words(query);
    wanted.sort_unstable();
    wanted.dedup();
    let known: Vec<(HashMap<String, f64>, f64)> = documents.iter().map(weigh).collect();
    let average = known.iter().map(|(_, length)| length).sum::<f64>() / (known.len().max(1) as f64);
    let rarity: Vec<f64> = wanted
        .iter()
        .map(|word| {
            let holding = known.iter().filter(|(words, _)| words.contains_key(word)).count() as f64;
            (1.0 + (known.len() as f64 - holding + 0.5) / (holding + 0.5)).ln()
        })
        .collect();
    let bm25 = |(words, length): &(HashMap<String, f64>, f64)| -> f64 {
        wanted
            .iter()
            .zip(&rarity)
            .filter_map(|(word, rare)| {
                let count = words.get(word)?;
                Some(rare * count * (K1 + 1.0) / (count + K1 * (1.0 - B + B * length / average.max(1.0))))
            })
            .sum()
    };
    let scores: Vec<f64> = known.iter().map(bm25).collect();
    let top = scores.iter().copied().fold(0.0, f64::max);
    let mut hits: Vec<(f64, &Document)> = documents
        .iter()
        .zip(&scores)
        .filter(|(_, score)| **score > 0.0)
        .map(|(document, score)| {
            let joined = 0.60 * score / top
                + 0.20 * trust(document.trust)
                + 0.10 * kind(&document.kind)
                + 0.10 * recency(document.updated_at, now);
            (joined, document)
        })
        .collect();
    hits.sort_by(|(a, x), (b, y)| b.total_cmp(a).then_with(|| x.path.cmp(&y.path)));
    hits.truncate(limit);
    hits.into_iter()
        .map(|(score, document)| Hit { document, score, excerpt: excerpt(&document.content, &wanted) })
        .collect()
}

/// How often each word counts in a document, and its length: the title thrice, tags and path twice, the text once.
fn weigh(document: &Document) -> (HashMap<String, f64>, f64) {
    let mut counts: HashMap<String, f64> = HashMap::new();
    let mut length = 0.0;
    let mut add = |text: &str, weight: f64| {
        for word in words(text) {
            *counts.entry(word).or_default() += weight;
            length += weight;
        }
    };
    add(&document.title, 3.0);
    document.tags.iter().for_each(|tag| add(tag, 2.0));
    add(&document.path, 2.0);
    add(head(&document.content, LOOKED_AT), 1.0);
    (counts, length)
}

/// Lower-case words; identifiers count whole and in their parts, split at punctuation and at a change of case.
fn words(text: &str) -> Vec<String> {
    let mut all = Vec::new();
    let inside = |c: char| c.is_alphanumeric() || matches!(c, '-' | '_' | '.' | '/');
    for token in text.split(|c| !inside(c)).map(|t| t.trim_matches(|c: char| !c.is_alphanumeric())) {
        if token.is_empty() {
            continue;
        }
        let whole = token.to_lowercase();
        let mut parts = split(token);
        if parts.len() > 1 {
            all.append(&mut parts);
        }
        all.push(whole);
    }
    all
}

fn split(token: &str) -> Vec<String> {
    let mut parts: Vec<String> = Vec::new();
    let mut lower = false;
    let mut fresh = true;
    for c in token.chars() {
        if !c.is_alphanumeric() {
            fresh = true;
            continue;
        }
        if fresh || (lower && c.is_uppercase()) {
            parts.push(String::new());
        }
        if let Some(part) = parts.last_mut() {
            part.extend(c.to_lowercase());
        }
        (lower, fresh) = (c.is_lowercase(), false);
    }
    parts
}

const fn trust(trust: Trust) -> f64 {
    match trust {
        Trust::Seeded => 1.0,
        Trust::Approved => 0.95,
        Trust::Authored => 0.85,
        Trust::Draft => 0.45,
    }
}

fn kind(kind: &str) -> f64 {
    match kind {
        "runbook" => 1.0,
        "checklist" | "convention" => 0.9,
        "incident" | "service" => 0.7,
        "lesson" => 0.6,
        "preference" => 0.5,
        _ => 0.3,
    }
}

#[expect(clippy::cast_precision_loss, reason = "milliseconds since 1970 are below 2^52")]
fn recency(updated: Moment, now: Moment) -> f64 {
    let days = now.since(updated).as_millis() as f64 / MILLIS_PER_DAY;
    0.5_f64.powf(days / HALF_LIFE_DAYS)
}

/// The part of the text around its first match.
fn excerpt(content: &str, wanted: &[String]) -> String {
    // Lower-casing can change how many bytes a letter has, so each byte remembers the letter it came from.
    let (mut lower, mut origin) = (String::new(), Vec::new());
    for (at, letter) in content.char_indices() {
        lower.extend(letter.to_lowercase());
        origin.resize(lower.len(), at);
    }
    let first = wanted.iter().filter_map(|word| lower.find(word.as_str())).min().unwrap_or(0);
    let mut start = origin.get(first).copied().unwrap_or(0).saturating_sub(EXCERPT_CHARS / 4);
    while !content.is_char_boundary(start) {
        start -= 1;
    }
    content[start..].chars().take(EXCERPT_CHARS).collect()
}

fn head(text: &str, most: usize) -> &str {
    let mut end = most.min(text.len());
    while !text.is_char_boundary(end) {
        end -= 1;
    }
    &text[..end]
}

#[cfg(test)]
mod tests;
