//! What is inside a chart's archive, looked at in memory and never unpacked.
//!
//! Somebody we do not know packed it. Its size is counted as it unfolds, names are kept to plain relative ones under one
//! folder, links and devices are refused, and so is a name that comes twice, since helm could then see another file than
//! we showed.

use super::reference::is_chart_name;
use flate2::read::MultiGzDecoder;
use serde::Deserialize;
use serde_json::Value;
use serde_saphyr::options::{DuplicateKeyPolicy, NonFiniteFloatPolicy};
use std::collections::HashSet;
use std::io::{self, Read};
use tar::EntryType;

/// The largest archive, packed.
pub(in crate::client) const MOST_BYTES: usize = 10 << 20;
/// How far it may unfold, headers included.
const MOST_UNPACKED: u64 = 64 << 20;
/// The largest file in it; helm's own bound.
const MOST_FILE: u64 = 5 << 20;
/// The most files and folders in it.
const MOST_ENTRIES: usize = 10_000;
/// The longest name in it.
const MOST_NAME: usize = 512;
/// The largest `Chart.yaml`.
const MOST_HEAD: usize = 256 * 1024;

/// What is inside a chart.
#[derive(Debug, Clone, PartialEq)]
pub struct ChartContents {
    /// The name the chart gives itself.
    pub name: String,
    /// The version the chart gives itself.
    pub version: String,
    /// All of `Chart.yaml`.
    pub metadata: Value,
    /// `values.yaml`, as it is written.
    pub values: Option<String>,
    /// `README.md`, as it is written.
    pub readme: Option<String>,
    /// The files under `crds/`, its own and those of the charts unpacked inside, by name.
    pub crds: Vec<(String, String)>,
    /// Whether a template asks the cluster by `lookup`, or may: charts packed inside are not looked into.
    pub may_look_up: bool,
    /// Whether a template evaluates texts as templates. Such a text can be put together from parts, so nobody can tell what
    /// is in it; without it, whatever is evaluated stands in the chart to be read.
    pub evaluates_texts: bool,
}

/// Why an archive is not used.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub(in crate::client) enum BadArchive {
    #[error("it is no gzipped tar archive")]
    NotAnArchive,
    #[error("it unfolds to more than is allowed")]
    TooLarge,
    #[error("it has more files than are allowed")]
    TooMany,
    #[error("a name in it leads elsewhere or comes twice")]
    Name,
    #[error("it holds a link or something else that is no file")]
    Link,
    #[error("it is no chart: `Chart.yaml` is missing or cannot be read")]
    NotAChart,
}

#[derive(Deserialize)]
struct EntryHead {
    name: String,
    version: String,
}

/// Looks through an archive. Takes time in proportion to what it unfolds to, so it is not for an async thread.
pub(in crate::client) fn inspect(packed: &[u8]) -> Result<ChartContents, BadArchive> {
    if packed.len() > MOST_BYTES {
        return Err(BadArchive::TooLarge);
    }
    // Several members are read as one, as helm does.
    let unfolded = BoundedReader { inner: MultiGzDecoder::new(packed), left: MOST_UNPACKED };
    let mut archive = tar::Archive::new(unfolded);
    let mut seen = ScannedArchive::default();
    for (n, entry) in archive.entries().map_err(unreadable)?.enumerate() {
        let mut entry = entry.map_err(unreadable)?;
        if n == MOST_ENTRIES {
            return Err(BadArchive::TooMany);
        }
        let kind = entry.header().entry_type();
        // A comment about the whole archive.
        if kind == EntryType::XGlobalHeader {
            continue;
        }
        if !matches!(kind, EntryType::Regular | EntryType::Directory) {
            return Err(BadArchive::Link);
        }
        let name = name(&entry.path_bytes())?;
        if entry.size() > MOST_FILE {
            return Err(BadArchive::TooLarge);
        }
        let within = seen.admit(&name)?;
        if kind == EntryType::Regular {
            let mut bytes = Vec::new();
            entry.read_to_end(&mut bytes).map_err(unreadable)?;
            seen.take(within.ok_or(BadArchive::Name)?, bytes);
        }
    }
    seen.contents()
}

/// A plain relative name.
fn name(bytes: &[u8]) -> Result<String, BadArchive> {
    let text = std::str::from_utf8(bytes).map_err(|_| BadArchive::Name)?;
    let text = text.strip_suffix('/').unwrap_or(text);
    let plain = |part: &str| !matches!(part, "" | "." | "..");
    let fits = text.len() <= MOST_NAME
        && text.split('/').all(plain)
        && !text.contains(['\\', ':'])
        && !text.chars().any(char::is_control);
    if fits { Ok(text.to_owned()) } else { Err(BadArchive::Name) }
}

#[derive(Default)]
struct ScannedArchive {
    root: Option<String>,
    names: HashSet<String>,
    head: Option<Vec<u8>>,
    values: Option<String>,
    readme: Option<String>,
    crds: Vec<(String, String)>,
    may_look_up: bool,
    evaluates_texts: bool,
}

impl ScannedArchive {
    /// The name below the one folder that everything is in; none for the folder itself.
    fn admit<'n>(&mut self, name: &'n str) -> Result<Option<&'n str>, BadArchive> {
        let (root, within) = name.split_once('/').map_or((name, None), |(root, within)| (root, Some(within)));
        let one_root = self.root.get_or_insert_with(|| root.to_owned()) == root;
        if one_root && self.names.insert(name.to_owned()) { Ok(within) } else { Err(BadArchive::Name) }
    }

    fn take(&mut self, within: &str, bytes: Vec<u8>) {
        let text = |bytes: Vec<u8>| String::from_utf8_lossy(&bytes).into_owned();
        // Other files than templates are evaluated by a chart that calls `tpl` on them.
        let holds = |word: &[u8]| bytes.windows(word.len()).any(|found| found == word);
        let is_template = within.contains("templates/") || holds(b"{{");
        self.may_look_up |= is_template && holds(b"lookup");
        self.evaluates_texts |= is_template && calls(&bytes, b"tpl");
        match within {
            "Chart.yaml" => self.head = Some(bytes),
            "values.yaml" => self.values = Some(text(bytes)),
            "README.md" | "readme.md" | "README.txt" | "readme.txt" => self.readme = Some(text(bytes)),
            packed if packed.starts_with("charts/") && packed.ends_with(".tgz") => self.may_look_up = true,
            crd if is_crd_file(crd) => self.crds.push((crd.to_owned(), text(bytes))),
            _ => {}
        }
    }

    fn contents(mut self) -> Result<ChartContents, BadArchive> {
        let head = self.head.filter(|head| head.len() <= MOST_HEAD).ok_or(BadArchive::NotAChart)?;
        let head = std::str::from_utf8(&head).map_err(|_| BadArchive::NotAChart)?;
        let EntryHead { name, version } =
            serde_saphyr::from_str_with_options(head, bounds()).map_err(|_| BadArchive::NotAChart)?;
        let metadata: Value = serde_saphyr::from_str_with_options(head, bounds()).map_err(|_| BadArchive::NotAChart)?;
        if !is_chart_name(&name) || super::range::version(&version).is_none() {
            return Err(BadArchive::NotAChart);
        }
        self.crds.sort();
        let ScannedArchive { values, readme, crds, may_look_up, evaluates_texts, .. } = self;
        Ok(ChartContents { name, version, metadata, values, readme, crds, may_look_up, evaluates_texts })
    }
}

/// Whether helm makes what stands in this file without rendering it, as helm reads names.
fn is_crd_file(within: &str) -> bool {
    let mut rest = within;
    while let Some((_, inner)) = rest.strip_prefix("charts/").and_then(|subchart| subchart.split_once('/')) {
        rest = inner;
    }
    let lower = rest.to_ascii_lowercase();
    rest.starts_with("crds/") && [".yaml", ".yml", ".json"].iter().any(|end| lower.ends_with(end))
}

/// Whether a text names this function: the word by itself, and not a field or the end of a file's name.
fn calls(text: &[u8], function: &[u8]) -> bool {
    let is_word = |b: &u8| b.is_ascii_alphanumeric() || *b == b'_';
    text.windows(function.len()).enumerate().any(|(at, found)| {
        let before = at.checked_sub(1).and_then(|at| text.get(at));
        let after = text.get(at + function.len());
        found == function && !before.is_some_and(|b| is_word(b) || *b == b'.') && !after.is_some_and(is_word)
    })
}

/// Counts what unfolds and ends it at the bound.
struct BoundedReader<R> {
    inner: R,
    left: u64,
}

impl<R: Read> Read for BoundedReader<R> {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        let read = self.inner.read(into)?;
        self.left = self.left.checked_sub(read as u64).ok_or_else(|| io::Error::other(BadArchive::TooLarge))?;
        Ok(read)
    }
}

/// Our own bound comes back wrapped; everything else is not an archive.
fn unreadable(error: io::Error) -> BadArchive {
    let mut cause: Option<&(dyn std::error::Error + 'static)> = Some(&error);
    while let Some(current) = cause {
        if let Some(bad) = current.downcast_ref::<BadArchive>() {
            return *bad;
        }
        // An error within an error of this type is not its source but what it holds.
        let held = current.downcast_ref::<io::Error>().and_then(io::Error::get_ref);
        cause = held.map(|held| held as &(dyn std::error::Error + 'static)).or_else(|| current.source());
    }
    BadArchive::NotAnArchive
}

fn bounds() -> serde_saphyr::Options {
    serde_saphyr::options! {
        budget: serde_saphyr::budget! {
            max_documents: 1,
            max_depth: 16,
            flow_nesting_limit: 16,
            max_nodes: 10_000,
            max_events: 30_000,
            max_anchors: 16,
            max_aliases: 16,
            max_merge_keys: 0,
            max_recorded_anchor_events: 1_000,
            max_recorded_anchor_bytes: 16 * 1024,
            max_total_scalar_bytes: MOST_HEAD,
        },
        alias_limits: serde_saphyr::alias_limits! {
            max_total_replayed_events: 1_000,
            max_replay_stack_depth: 4,
            max_alias_expansions_per_anchor: 16,
        },
        duplicate_keys: DuplicateKeyPolicy::Error,
        non_finite_float_policy: NonFiniteFloatPolicy::Reject,
        with_snippet: false,
    }
}

#[cfg(test)]
mod tests;
