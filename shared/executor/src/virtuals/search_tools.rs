//! `search_tools`: looks through everything that could be loaded, and changes nothing.
//!
//! Words are matched against name, toolset and description; rare words count more than common ones, and a hit in the
//! name more than one in the description.

use crate::snapshot::Snapshot;
use crate::virtuals::arguments::typed;
use catalog::CatalogEntry;
use catalog::virtuals::SearchArgs;
use domain::{Failure, LoadedToolsets, ToolOutput};
use serde_json::{Value, json};
use std::sync::Arc;

const SHOWN: usize = 8;
const IN_NAME: f64 = 3.0;
const IN_TOOLSET: f64 = 1.5;
const IN_DESCRIPTION: f64 = 1.0;

pub(super) fn run(snapshot: &Snapshot, loaded: &LoadedToolsets, arguments: Value) -> Result<ToolOutput, Failure> {
    let SearchArgs { query, limit } = typed(arguments)?;
    let hits = rank(snapshot.catalog.entries(), &query);
    let tools: Vec<Value> = hits
        .into_iter()
        .take(limit.unwrap_or(SHOWN))
        .map(|entry| {
            let definition = entry.definition();
            json!({
                "name": definition.name.as_str(),
                "toolset": definition.toolset.as_str(),
                "description": definition.description,
                "effect": definition.most.as_str(),
                "loaded": loaded.level(&definition.toolset) >= Some(entry.list()),
                "write": entry.list() == domain::Level::Write,
                "tokens": entry.tokens(),
            })
        })
        .collect();
    Ok(ToolOutput::structured(json!({ "tools": tools }).to_string()))
}

fn rank<'a>(entries: &'a [Arc<CatalogEntry>], query: &str) -> Vec<&'a Arc<CatalogEntry>> {
    let wanted = words(query);
    let known: Vec<[Vec<String>; 3]> = entries
        .iter()
        .map(|entry| {
            let d = entry.definition();
            [words(d.name.as_str()), words(d.toolset.as_str()), words(&d.description)]
        })
        .collect();
    let count = |word: &str| known.iter().filter(|fields| fields.iter().flatten().any(|w| matches(w, word))).count();
    #[expect(clippy::cast_precision_loss, reason = "counts of tools are small")]
    let rarity: Vec<f64> =
        wanted.iter().map(|word| (1.0 + entries.len() as f64 / (1.0 + count(word) as f64)).ln()).collect();
    let score = |fields: &[Vec<String>; 3]| -> f64 {
        let field = |field: &[String], weight: f64, word: &str| {
            if field.iter().any(|w| matches(w, word)) { weight } else { 0.0 }
        };
        let [name, toolset, description] = fields;
        let word = |(word, rare): (&String, &f64)| {
            let best = field(name, IN_NAME, word).max(field(toolset, IN_TOOLSET, word)).max(field(
                description,
                IN_DESCRIPTION,
                word,
            ));
            best * rare
        };
        wanted.iter().zip(&rarity).map(word).sum()
    };
    let mut ranked: Vec<(f64, &Arc<CatalogEntry>)> =
        entries.iter().zip(&known).map(|(entry, fields)| (score(fields), entry)).filter(|(s, _)| *s > 0.0).collect();
    ranked.sort_by(|(a, x), (b, y)| b.total_cmp(a).then_with(|| x.name().cmp(y.name())));
    ranked.into_iter().map(|(_, entry)| entry).collect()
}

fn words(text: &str) -> Vec<String> {
    text.split(|c: char| !c.is_alphanumeric()).filter(|w| !w.is_empty()).map(str::to_lowercase).collect()
}

/// A word matches itself and, from three letters on, longer forms of itself (`scale`, `scaling` by `scal`).
fn matches(known: &str, word: &str) -> bool {
    known == word || (word.len() >= 3 && known.starts_with(word)) || (known.len() >= 4 && word.starts_with(known))
}
