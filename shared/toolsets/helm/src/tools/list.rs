//! `helm_list`: the releases of a namespace, or of all the tenant may see.

use super::release::{LOOK, read};
use super::{HelmDeps, TOOLSET, fault};
use crate::client::{Invocation, Subcommand};
use catalog::{Progress, Tool, ToolSpec};
use domain::{Effect, Failure};
use kubernetes::client::{Cluster, KnownSecrets, NamespaceSpan};
use kubernetes::k8s::at;
use kubernetes::k8s::grammar::Namespaces;
use kubernetes::k8s::reply::{ClusterNote, ClusterReplyFields, ROOM, rows_that_fit};
use policy::Permit;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};
use target::cursor::Cursor;
use target::grammar::Label;
use target::grep::Grep;

/// How many releases helm is asked for at once, and how often.
const PAGE: usize = 256;
const MOST_PAGES: usize = 8;
/// How many namespaces are asked one by one.
const MOST_NAMESPACES: usize = 20;

pub(super) struct ReleaseListTool {
    pub(super) kit: HelmDeps,
}

#[derive(Debug, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct Args {
    namespace: Option<Namespaces>,
    filter: Option<NameFilter>,
    status: Option<ReleaseStatusFilter>,
    cursor: Option<Cursor>,
    cluster: Option<Label>,
}

/// A regular expression over names.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
struct NameFilter(Grep);

/// The longest filter.
const MOST_FILTER: usize = 128;

impl TryFrom<String> for NameFilter {
    type Error = String;

    fn try_from(text: String) -> Result<NameFilter, String> {
        match text.len() <= MOST_FILTER {
            true => Grep::try_from(text).map(NameFilter).map_err(|why| why.replacen("grep", "filter", 1)),
            false => Err(format!("filter has 1 to {MOST_FILTER} bytes")),
        }
    }
}

impl From<NameFilter> for String {
    fn from(filter: NameFilter) -> String {
        filter.0.into()
    }
}

impl JsonSchema for NameFilter {
    fn schema_name() -> std::borrow::Cow<'static, str> {
        "Filter".into()
    }

    fn inline_schema() -> bool {
        true
    }

    fn json_schema(_: &mut schemars::SchemaGenerator) -> schemars::Schema {
        schemars::json_schema!({ "type": "string", "minLength": 1, "maxLength": MOST_FILTER })
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
enum ReleaseStatusFilter {
    Deployed,
    Failed,
    Pending,
    Uninstalled,
}

impl ReleaseStatusFilter {
    fn is(self, status: &str) -> bool {
        match self {
            ReleaseStatusFilter::Deployed => status == "deployed",
            ReleaseStatusFilter::Failed => status == "failed",
            ReleaseStatusFilter::Pending => status.starts_with("pending-") || status == "uninstalling",
            ReleaseStatusFilter::Uninstalled => status == "uninstalled",
        }
    }
}

#[derive(Debug, Serialize, JsonSchema)]
pub(super) struct ReleaseListOutput {
    releases: Vec<Map<String, Value>>,
    #[serde(flatten)]
    common: ClusterReplyFields,
}

/// The last release that was shown.
#[derive(Debug, Serialize, Deserialize)]
struct ReleaseListPageToken {
    ns: String,
    name: String,
}

/// One release, as helm lists it. The revision is a text there.
#[derive(Debug, Deserialize)]
struct HelmListRow {
    name: String,
    namespace: String,
    #[serde(default)]
    revision: Value,
    #[serde(default)]
    status: String,
    #[serde(default)]
    chart: String,
    #[serde(default)]
    app_version: String,
    #[serde(default)]
    updated: String,
}

impl Tool for ReleaseListTool {
    const SPEC: ToolSpec = ToolSpec::new("helm_list", TOOLSET, Effect::Read)
        .says("List releases", "List releases. namespace '*' = all.")
        .hint(
            "The way in for agents that look after releases; it reads release records, which are Secrets, so the \
             credential must be allowed to list those.",
        )
        .idempotent();
    type Args = Args;
    type Output = ReleaseListOutput;

    fn effect(_: &Args) -> Effect {
        Effect::Read
    }

    async fn run(&self, permit: &Permit, args: Args, _: &Progress) -> Result<ReleaseListOutput, Failure> {
        let cluster = at::cluster(&self.kit.clusters, permit, args.cluster.as_ref())?;
        let behind: Option<ReleaseListPageToken> = self.kit.cursors.resume(permit, &args, args.cursor.as_ref())?;
        let kind = cluster.kind("v1/Secret").await?;
        let place = at::places(&cluster, &kind, args.namespace.as_ref()).await?;
        let named = (args.cluster.is_some(), args.namespace.is_some());
        let mut common = ClusterNote::answer(&cluster, place.namespace(), named);
        let mut rows = self.rows(&cluster, place.span(), &mut common).await?;
        rows.retain(|row| args.filter.as_ref().is_none_or(|filter| filter.0.wants(&row.name)));
        rows.retain(|row| args.status.is_none_or(|status| status.is(&row.status)));
        rows.sort_by(|a, b| (&a.namespace, &a.name).cmp(&(&b.namespace, &b.name)));
        if let Some(ReleaseListPageToken { ns, name }) = &behind {
            rows.retain(|row| (&row.namespace, &row.name) > (ns, name));
        }
        let shown: Vec<Map<String, Value>> = rows.iter().map(|row| told(&cluster, row)).collect();
        let (releases, left) = rows_that_fit(shown, ROOM);
        if left > 0 {
            let last = &rows[releases.len().saturating_sub(1)];
            let place = ReleaseListPageToken { ns: last.namespace.clone(), name: last.name.clone() };
            common.next_cursor = Some(self.kit.cursors.seal(permit, &args, &place)?);
            common.cut_items(left, "narrow with filter, status or namespace");
        }
        Ok(ReleaseListOutput { releases, common })
    }
}

impl ReleaseListTool {
    /// All releases within reach. With a list of namespaces each is asked for by itself.
    async fn rows(
        &self,
        cluster: &Cluster<'_>,
        span: &NamespaceSpan,
        common: &mut ClusterReplyFields,
    ) -> Result<Vec<HelmListRow>, Failure> {
        match span {
            NamespaceSpan::One(namespace) => self.asked(cluster, Some(namespace), common).await,
            NamespaceSpan::All | NamespaceSpan::Cluster => self.asked(cluster, None, common).await,
            NamespaceSpan::Each(namespaces) | NamespaceSpan::Named(namespaces) => {
                let mut rows = Vec::new();
                for namespace in namespaces.iter().take(MOST_NAMESPACES) {
                    match self.asked(cluster, Some(namespace), common).await {
                        Ok(more) => rows.extend(more),
                        Err(failure) if failure.code == target::codes::FORBIDDEN => {
                            common.warnings.push(format!("{namespace} cannot be looked at"));
                        }
                        Err(failure) => return Err(failure),
                    }
                }
                if namespaces.len() > MOST_NAMESPACES {
                    let left = namespaces.len() - MOST_NAMESPACES;
                    common.warnings.push(format!("{left} more namespaces were not looked at; name one"));
                }
                Ok(rows)
            }
        }
    }

    async fn asked(
        &self,
        cluster: &Cluster<'_>,
        namespace: Option<&str>,
        common: &mut ClusterReplyFields,
    ) -> Result<Vec<HelmListRow>, Failure> {
        let mut rows: Vec<HelmListRow> = Vec::new();
        for page in 0..MOST_PAGES {
            let asked = Invocation::new(Subcommand::List)
                .all_states()
                .flag("--output", "json")
                .flag("--max", PAGE)
                .flag("--offset", page * PAGE)
                .maybe("--namespace", namespace)
                .switch_if(namespace.is_none(), "--all-namespaces")
                .within(LOOK);
            let finished = self.kit.helm.run_at(cluster, asked).await?;
            if !finished.success() {
                return Err(fault::of(cluster, &KnownSecrets::default(), &finished));
            }
            let more: Vec<HelmListRow> = read(finished.text()?)?;
            let last = more.len() < PAGE;
            rows.extend(more);
            if last {
                return Ok(rows);
            }
        }
        common.warnings.push(format!("there are more than {} releases; name a namespace", MOST_PAGES * PAGE));
        Ok(rows)
    }
}

fn told(cluster: &Cluster<'_>, row: &HelmListRow) -> Map<String, Value> {
    let revision = row.revision.as_u64().or_else(|| row.revision.as_str()?.parse().ok());
    let text = |text: &str| cluster.masked_text(text, &KnownSecrets::default());
    let value = json!({
        "name": row.name, "namespace": row.namespace, "revision": revision, "status": row.status,
        "chart": text(&row.chart), "app_version": text(&row.app_version), "updated": row.updated,
    });
    value.as_object().cloned().unwrap_or_default()
}
