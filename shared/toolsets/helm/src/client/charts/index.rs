//! What a repository says it has: `index.yaml`, written by somebody we do not know.
//!
//! Reading it is bounded in nodes, depth and aliases. Entries that cannot be meant (a name or version that could be part
//! of a path) are left out and counted, so that one bad line does not cost the others.

use super::range::{Range, version};
use super::reference::is_chart_name;
use serde::Deserialize;
use serde::de::IgnoredAny;
use serde_saphyr::options::DuplicateKeyPolicy;
use std::collections::BTreeMap;

/// The most that is read of an index.
pub(in crate::client) const MOST_BYTES: usize = 32 << 20;
/// The most versions of all charts together.
const MOST_VERSIONS: usize = 100_000;
/// The most charts.
const MOST_CHARTS: usize = 10_000;
/// The most that is kept of a description.
const MOST_DESCRIPTION: usize = 300;
/// The longest address of an archive.
const MOST_URL: usize = 2_048;

/// What a repository has, by name; versions are in no particular order.
#[derive(Debug, Default)]
pub struct ChartIndex {
    charts: BTreeMap<String, Vec<ChartVersion>>,
    /// How many entries were left out.
    left_out: usize,
}

/// One version of a chart.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ChartVersion {
    /// The version as it is spelled there.
    pub version: String,
    /// The version of what it installs.
    pub app_version: Option<String>,
    /// Somebody's words.
    pub description: Option<String>,
    /// Somebody's words to be found by.
    pub keywords: Vec<String>,
    /// Whether it should no longer be used.
    pub deprecated: bool,
    /// Where the archive is, relative to the repository or not.
    pub(in crate::client) url: String,
    /// The sha256 of the archive, if it says.
    pub(in crate::client) digest: Option<String>,
}

/// Why an index cannot be read.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub(in crate::client) enum BadIndex {
    #[error("the index is not YAML that can be read within bounds")]
    NotRead,
    #[error("the index lists more than can be kept")]
    TooLarge,
}

#[derive(Deserialize)]
struct RawIndex {
    #[serde(default)]
    entries: BTreeMap<String, Option<Vec<RawEntry>>>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct RawEntry {
    name: Option<String>,
    version: Option<String>,
    app_version: Option<String>,
    description: Option<String>,
    keywords: Option<Vec<Option<String>>>,
    deprecated: Option<bool>,
    urls: Option<Vec<Option<String>>>,
    digest: Option<String>,
    #[serde(flatten)]
    _rest: BTreeMap<String, IgnoredAny>,
}

impl ChartIndex {
    /// Reads the text of an index.
    pub(in crate::client) fn parse(text: &str) -> Result<ChartIndex, BadIndex> {
        let raw: RawIndex = serde_saphyr::from_str_with_options(text, bounds()).map_err(|_| BadIndex::NotRead)?;
        let mut index = ChartIndex::default();
        let mut versions = 0;
        for (name, entries) in raw.entries {
            let entries = entries.unwrap_or_default();
            versions += entries.len();
            if versions > MOST_VERSIONS || index.charts.len() == MOST_CHARTS {
                return Err(BadIndex::TooLarge);
            }
            let all = entries.len();
            let kept: Vec<ChartVersion> = match is_chart_name(&name) {
                true => entries.into_iter().filter_map(|raw| entry(&name, raw)).collect(),
                false => Vec::new(),
            };
            index.left_out += all - kept.len();
            if !kept.is_empty() {
                index.charts.insert(name, kept);
            }
        }
        Ok(index)
    }

    /// The charts with their versions, by name.
    pub fn charts(&self) -> impl Iterator<Item = (&str, &[ChartVersion])> {
        self.charts.iter().map(|(name, entries)| (name.as_str(), entries.as_slice()))
    }

    /// The versions of one chart.
    pub fn find(&self, name: &str) -> Option<&[ChartVersion]> {
        self.charts.get(name).map(Vec::as_slice)
    }

    /// How many charts there are.
    pub fn len(&self) -> usize {
        self.charts.len()
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.charts.is_empty()
    }

    /// How many entries could not be meant.
    pub fn left_out(&self) -> usize {
        self.left_out
    }
}

/// The entry a range means.
pub(in crate::client) fn best<'a>(entries: &'a [ChartVersion], range: &Range) -> Option<&'a ChartVersion> {
    range.best(entries, |entry| &entry.version)
}

/// Versions, newest first, for somebody who asked for another.
pub(in crate::client) fn newest(spelled: impl Iterator<Item = impl AsRef<str>>, most: usize) -> Vec<String> {
    let mut read: Vec<_> = spelled.filter_map(|text| Some((version(text.as_ref())?, text))).collect();
    read.sort_by(|a, b| b.0.cmp(&a.0));
    read.into_iter().take(most).map(|(_, text)| text.as_ref().to_owned()).collect()
}

fn entry(name: &str, raw: RawEntry) -> Option<ChartVersion> {
    // Whoever lists a chart under another name means to have it mistaken.
    if raw.name.as_deref().is_some_and(|own| own != name) {
        return None;
    }
    let spelled = raw.version.filter(|text| text.len() <= 128 && version(text).is_some())?;
    let url = raw.urls?.into_iter().flatten().next().filter(|url| url.len() <= MOST_URL)?;
    let digest = match raw.digest.as_deref().map(|text| text.strip_prefix("sha256:").unwrap_or(text)) {
        None | Some("") => None,
        Some(hex) if is_sha256(hex) => Some(hex.to_ascii_lowercase()),
        // A digest that cannot be checked is not taken for none.
        Some(_) => return None,
    };
    let words = |text: Option<String>| text.map(|text| short(&text, MOST_DESCRIPTION)).filter(|text| !text.is_empty());
    let keywords = raw.keywords.unwrap_or_default().into_iter().flatten().take(20).map(|word| short(&word, 60));
    Some(ChartVersion {
        version: spelled,
        app_version: raw.app_version.map(|text| short(&text, 64)),
        description: words(raw.description),
        keywords: keywords.collect(),
        deprecated: raw.deprecated.unwrap_or_default(),
        url,
        digest,
    })
}

pub(in crate::client) fn is_sha256(hex: &str) -> bool {
    hex.len() == 64 && hex.bytes().all(|b| b.is_ascii_hexdigit())
}

/// One line of it, without what a terminal would act on.
fn short(text: &str, most: usize) -> String {
    let plain = text.chars().map(|c| if c.is_control() { ' ' } else { c });
    plain.take(most).collect::<String>().trim().to_owned()
}

/// Wide enough for the largest public repositories, and no index grows by being read.
fn bounds() -> serde_saphyr::Options {
    serde_saphyr::options! {
        budget: serde_saphyr::budget! {
            max_documents: 1,
            max_depth: 32,
            flow_nesting_limit: 32,
            max_nodes: 8_000_000,
            max_events: 20_000_000,
            max_anchors: 16,
            max_aliases: 64,
            max_merge_keys: 0,
            max_recorded_anchor_events: 1_000,
            max_recorded_anchor_bytes: 64 * 1024,
            max_total_scalar_bytes: MOST_BYTES,
        },
        alias_limits: serde_saphyr::alias_limits! {
            max_total_replayed_events: 1_000,
            max_replay_stack_depth: 4,
            max_alias_expansions_per_anchor: 64,
        },
        duplicate_keys: DuplicateKeyPolicy::Error,
        with_snippet: false,
    }
}

#[cfg(test)]
mod tests;
