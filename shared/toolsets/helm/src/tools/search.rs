//! `helm_search`: what the tenant's repositories have.
//!
//! Their indexes are searched here and not by `helm search`: they are fetched through the guard, and the same index then
//! answers `helm_install`, so that what is found can be installed.

use super::chart::{self, VersionText};
use super::{HelmDeps, TOOLSET};
use crate::client::charts::{ChartVersion, FetchedIndex, Range, Repositories, TenantRepository, range};
use catalog::{Progress, Tool, ToolSpec};
use domain::{Code, Effect, Failure};
use futures_util::future::join_all;
use policy::Permit;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::sync::Arc;
use target::checked_text;
use target::cursor::{Cursor, RowOffset};
use target::reply::{ReplyFields, page_of_rows};

pub(super) struct ChartSearch {
    pub(super) kit: HelmDeps,
}

checked_text!(
    /// Words to be found.
    Query, |text| (1..=128).contains(&text.len()) && !text.trim().is_empty() && !text.chars().any(char::is_control),
    "a query is 1 to 128 bytes of printable text",
    { "type": "string", "minLength": 1, "maxLength": 128 }
);

#[derive(Debug, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct Args {
    query: Option<Query>,
    version: Option<VersionText>,
    all_versions: Option<bool>,
    refresh: Option<bool>,
    cursor: Option<Cursor>,
}

#[derive(Debug, Serialize, JsonSchema)]
pub(super) struct ChartSearchOutput {
    #[serde(skip_serializing_if = "Option::is_none")]
    charts: Option<Vec<ChartRow>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    repositories: Option<Vec<RepositoryRow>>,
    #[serde(flatten)]
    common: ReplyFields<()>,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
pub(super) struct ChartRow {
    chart: String,
    version: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    app_version: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    description: Option<String>,
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    deprecated: bool,
}

#[derive(Debug, Serialize, JsonSchema)]
pub(super) struct RepositoryRow {
    name: String,
    url: String,
    /// When its index was fetched; a registry has none.
    #[serde(skip_serializing_if = "Option::is_none")]
    fetched_at: Option<String>,
}

impl Tool for ChartSearch {
    const SPEC: ToolSpec = ToolSpec::new("helm_search", TOOLSET, Effect::Read)
        .says("Search charts", "Search charts in the tenant's repositories; without query, list the repositories.")
        .hint(
            "For agents that choose charts or look for newer versions; only the repositories in the tenant's \
             configuration are searched, and registries by OCI cannot be.",
        )
        .idempotent();
    type Args = Args;
    type Output = ChartSearchOutput;

    fn effect(_: &Args) -> Effect {
        Effect::Read
    }

    async fn run(&self, permit: &Permit, args: Args, _: &Progress) -> Result<ChartSearchOutput, Failure> {
        let spot: RowOffset = self.kit.cursors.resume(permit, &args, args.cursor.as_ref())?.unwrap_or_default();
        let repositories = self.kit.charts.of(permit);
        let all = repositories.list().await?;
        match &args.query {
            None => named(&repositories, &all, &args).await,
            Some(query) => {
                let (rows, warnings) = found(&repositories, &all, query.as_str(), &args).await?;
                let mut common = ReplyFields { warnings, untrusted: true, ..ReplyFields::default() };
                let many = rows.len();
                let (charts, next) = page_of_rows(rows, spot.o);
                if let Some(next) = next {
                    common.next_cursor = Some(self.kit.cursors.seal(permit, &args, &RowOffset { o: next })?);
                    common.cut_items(many - next, "go on with next_cursor, or narrow query");
                }
                Ok(ChartSearchOutput { charts: Some(charts), repositories: None, common })
            }
        }
    }
}

/// The repositories; asked only if they are to be.
async fn named(
    repositories: &Repositories<'_>,
    all: &[TenantRepository],
    args: &Args,
) -> Result<ChartSearchOutput, Failure> {
    if args.version.is_some() || args.all_versions.is_some() {
        return Err(Failure::new(Code::InvalidArgument, "version and all_versions narrow a query")
            .next("give query, such as the name of a repository and a slash"));
    }
    let mut common = ReplyFields::default();
    if args.refresh == Some(true) {
        let (_, warnings) = indexes(repositories, all, true).await;
        common.warnings = warnings;
    }
    let rows = all.iter().map(|listed| RepositoryRow {
        name: listed.repository.name.clone(),
        url: listed.repository.url.clone(),
        fetched_at: repositories.fetched_at(&listed.repository).map(|at| at.to_string()),
    });
    let rows: Vec<RepositoryRow> = rows.collect();
    if rows.is_empty() {
        common.hint = Some("the tenant has no repository; add one with helm_repo".to_owned());
    }
    Ok(ChartSearchOutput { charts: None, repositories: Some(rows), common })
}

/// Everything that fits, best first.
async fn found(
    repositories: &Repositories<'_>,
    all: &[TenantRepository],
    query: &str,
    args: &Args,
) -> Result<(Vec<ChartRow>, Vec<String>), Failure> {
    if all.is_empty() {
        return Err(Failure::new(target::codes::TOOLSET_NOT_CONFIGURED, "the tenant has no chart repository")
            .next("ask an admin of the tenant to configure one, or add one with helm_repo"));
    }
    let range = chart::range(args.version.as_ref())?;
    let (indexes, mut warnings) = indexes(repositories, all, args.refresh == Some(true)).await;
    let registries = all.iter().filter(|listed| listed.repository.url.starts_with("oci://")).count();
    if indexes.is_empty() && registries < all.len() {
        return Err(Failure::new(crate::codes::REPO_UNREACHABLE, warnings.join("; ")).next("try again later"));
    }
    if registries > 0 {
        warnings.push(format!("{registries} of the repositories are registries, which cannot be searched; name a chart of theirs as repo/name"));
    }
    let words: Vec<String> = query.to_lowercase().split_whitespace().map(str::to_owned).collect();
    let every = args.all_versions == Some(true);
    let mut ranked = Vec::new();
    for (name, fetched) in &indexes {
        for (chart, entries) in fetched.index.charts() {
            let full = format!("{name}/{chart}");
            if let Some(rank) = rank(&full, chart, entries, &words) {
                let chosen = chosen(entries, &range, every);
                ranked.extend(chosen.into_iter().enumerate().map(|(n, entry)| (rank, n, row(&full, entry))));
            }
        }
    }
    ranked.sort_by(|a, b| (a.0, &a.2.chart, a.1).cmp(&(b.0, &b.2.chart, b.1)));
    Ok((ranked.into_iter().map(|(_, _, row)| row).collect(), warnings))
}

/// The indexes that could be had, and a warning for each that could not.
async fn indexes(
    repositories: &Repositories<'_>,
    all: &[TenantRepository],
    refresh: bool,
) -> (Vec<(String, Arc<FetchedIndex>)>, Vec<String>) {
    let asked = all.iter().map(|listed| async {
        (listed.repository.name.clone(), repositories.index(&listed.repository, refresh).await)
    });
    let (mut had, mut warnings) = (Vec::new(), Vec::new());
    for (name, answer) in join_all(asked).await {
        match answer {
            Ok(Some(fetched)) => had.push((name, fetched)),
            Ok(None) => {}
            Err(failure) => warnings.push(format!("{name}: {}: {}", failure.code.as_str(), failure.message)),
        }
    }
    (had, warnings)
}

/// How well a chart fits: every word must be somewhere. Lower is better.
fn rank(full: &str, name: &str, entries: &[ChartVersion], words: &[String]) -> Option<u8> {
    let (full, name) = (full.to_lowercase(), name.to_lowercase());
    if words.iter().all(|word| name == *word || full == *word) {
        return Some(0);
    }
    if words.iter().all(|word| full.contains(word.as_str())) {
        return Some(1);
    }
    let latest = Range::newest().best(entries, |entry| &entry.version).or(entries.first())?;
    let said = latest.description.iter().chain(&latest.keywords).map(|text| text.to_lowercase()).collect::<Vec<_>>();
    let anywhere = |word: &String| full.contains(word.as_str()) || said.iter().any(|text| text.contains(word.as_str()));
    words.iter().all(anywhere).then_some(2)
}

/// The versions that are shown, newest first.
fn chosen<'a>(entries: &'a [ChartVersion], range: &Range, every: bool) -> Vec<&'a ChartVersion> {
    if !every {
        return range.best(entries, |entry| &entry.version).into_iter().collect();
    }
    let read = entries.iter().filter_map(|entry| Some((range::version(&entry.version)?, entry)));
    let mut fit: Vec<_> = read.filter(|(version, _)| range.holds(version)).collect();
    fit.sort_by(|a, b| b.0.cmp(&a.0));
    fit.into_iter().map(|(_, entry)| entry).collect()
}

fn row(chart: &str, entry: &ChartVersion) -> ChartRow {
    ChartRow {
        chart: chart.to_owned(),
        version: entry.version.clone(),
        app_version: entry.app_version.clone(),
        description: entry.description.as_deref().map(redact::redact),
        deprecated: entry.deprecated,
    }
}
