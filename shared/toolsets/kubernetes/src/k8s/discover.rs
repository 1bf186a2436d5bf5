//! `k8s_discover`: what the cluster is, which kinds it has, what their fields mean, and what we may do.

mod explain;

use super::at;
use super::grammar::{KindText, Label, ObjectName, is_label};
use super::reply::{ClusterNote, ClusterReplyFields, ROOM, cut_text, rows_that_fit};
use super::{K8sDeps, TOOLSET};
use crate::client::{AccessReview, Cluster, Kind, ListQuery, MaskDetail, Wildcard};
use catalog::{Progress, Tool, ToolSpec};
use domain::{Code, Effect, Failure};
use explain::ExplainedField;
use policy::Permit;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};
use target::cursor::{Cursor, RowOffset};

/// Nodes and namespaces that are looked at.
const MOST: u32 = 500;
/// Namespaces and rules that are shown.
const SHOWN: usize = 100;
/// The longest rule that is shown whole.
const MOST_RULE: usize = 160;

pub(super) struct Discover {
    pub(super) kit: K8sDeps,
}

#[derive(Debug, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct Args {
    ask: DiscoverQuestion,
    #[schemars(length(min = 1, max = 256))]
    target: Option<String>,
    verb: Option<Label>,
    namespace: Option<Label>,
    cursor: Option<Cursor>,
    cluster: Option<Label>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub(super) enum DiscoverQuestion {
    Cluster,
    Resources,
    Explain,
    CanI,
}

/// One of the four answers.
#[derive(Debug, Default, Serialize, JsonSchema)]
pub(super) struct DiscoverOutput {
    #[serde(flatten)]
    cluster: Option<ClusterFacts>,
    /// The kinds there are.
    #[serde(skip_serializing_if = "Option::is_none")]
    items: Option<Vec<Map<String, Value>>>,
    #[serde(flatten)]
    explained: Option<ExplainedField>,
    #[serde(flatten)]
    verdict: Option<AccessRow>,
    #[serde(flatten)]
    common: ClusterReplyFields,
}

#[derive(Debug, Serialize, JsonSchema)]
pub(super) struct ClusterFacts {
    #[serde(skip_serializing_if = "Option::is_none")]
    version: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    healthy: Option<bool>,
    /// Checks that did not pass.
    #[serde(skip_serializing_if = "Option::is_none")]
    checks: Option<Vec<String>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    nodes: Option<Nodes>,
    #[serde(skip_serializing_if = "Option::is_none")]
    clusters: Option<Vec<String>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    namespaces: Option<Vec<String>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    default_namespace: Option<String>,
    /// It is the built-in simulation and no real cluster.
    #[serde(skip_serializing_if = "Option::is_none")]
    simulated: Option<bool>,
}

#[derive(Debug, Serialize, JsonSchema)]
pub(super) struct Nodes {
    total: usize,
    ready: usize,
    unschedulable: usize,
}

#[derive(Debug, Serialize, JsonSchema)]
pub(super) struct AccessRow {
    #[serde(skip_serializing_if = "Option::is_none")]
    allowed: Option<bool>,
    #[serde(skip_serializing_if = "Option::is_none")]
    reason: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    rules: Option<Vec<String>>,
}

impl Tool for Discover {
    const SPEC: ToolSpec = ToolSpec::new("k8s_discover", TOOLSET, Effect::Read)
        .says(
            "Discover a cluster",
            "Cluster version and health, API resources, field docs (Deployment.spec.strategy), or whether a verb is allowed on a kind.",
        )
        .hint(
            "For agents that meet clusters they do not know, custom kinds included; it spares them guesses about \
             fields and rights, and an agent with a fixed task in one cluster can do without.",
        )
        .idempotent();
    type Args = Args;
    type Output = DiscoverOutput;

    fn effect(_: &Args) -> Effect {
        Effect::Read
    }

    fn about(args: &Args) -> Option<String> {
        let word = match args.ask {
            DiscoverQuestion::Cluster => "cluster",
            DiscoverQuestion::Resources => "resources",
            DiscoverQuestion::Explain => "explain",
            DiscoverQuestion::CanI => "can_i",
        };
        Some(word.to_owned())
    }

    async fn run(&self, permit: &Permit, args: Args, _: &Progress) -> Result<DiscoverOutput, Failure> {
        let cluster = at::cluster(&self.kit.clusters, permit, args.cluster.as_ref())?;
        let mut common = ClusterNote::answer(&cluster, None, (args.cluster.is_some(), true));
        let answer = match args.ask {
            DiscoverQuestion::Cluster => {
                let facts = self.facts(&cluster, &mut common).await?;
                DiscoverOutput { cluster: Some(facts), ..DiscoverOutput::default() }
            }
            DiscoverQuestion::Resources => {
                let items = self.resources(permit, &cluster, &args, &mut common).await?;
                DiscoverOutput { items: Some(items), ..DiscoverOutput::default() }
            }
            DiscoverQuestion::Explain => {
                let target = args.target.as_deref().ok_or_else(|| wants_target("Deployment.spec.strategy"))?;
                let explained = explain::explain(&cluster, target, &mut common).await?;
                DiscoverOutput { explained: Some(explained), ..DiscoverOutput::default() }
            }
            DiscoverQuestion::CanI => {
                let verdict = may(&cluster, &args, &mut common).await?;
                DiscoverOutput { verdict: Some(verdict), ..DiscoverOutput::default() }
            }
        };
        Ok(DiscoverOutput { common, ..answer })
    }
}

impl Discover {
    async fn facts(&self, cluster: &Cluster<'_>, common: &mut ClusterReplyFields) -> Result<ClusterFacts, Failure> {
        let version = cluster.version().await?["gitVersion"].as_str().map(str::to_owned);
        let ready = cluster.ready().await.map_err(|failure| common.warnings.push(failure.message)).ok();
        let failing = ready.as_ref().map(|ready| {
            ready.checks.iter().filter(|(_, passed)| !passed).map(|(name, _)| redact::message(name)).collect()
        });
        let nodes = nodes(cluster).await.map_err(|failure| common.warnings.push(failure.message)).ok();
        let namespaces = namespaces(cluster).await.map_err(|failure| common.warnings.push(failure.message)).ok();
        Ok(ClusterFacts {
            version,
            healthy: ready.map(|ready| ready.healthy),
            checks: failing,
            nodes,
            clusters: Some(self.kit.clusters.names().into_iter().map(str::to_owned).collect()),
            namespaces: namespaces.map(|names| names.into_iter().take(SHOWN).collect()),
            default_namespace: Some(cluster.default_namespace().to_owned()),
            simulated: cluster.simulated().then_some(true),
        })
    }

    /// The kinds whose name, group or short name holds the filter.
    async fn resources(
        &self,
        permit: &Permit,
        cluster: &Cluster<'_>,
        args: &Args,
        common: &mut ClusterReplyFields,
    ) -> Result<Vec<Map<String, Value>>, Failure> {
        let spot: RowOffset = self.kit.cursors.resume(permit, args, args.cursor.as_ref())?.unwrap_or_default();
        let filter = args.target.as_deref().unwrap_or_default().to_ascii_lowercase();
        let holds = |kind: &Kind| {
            let names = [kind.plural().to_owned(), kind.kind().to_ascii_lowercase(), kind.api_version()];
            names.iter().any(|name| name.contains(&filter)) || kind.short().contains(&filter)
        };
        let mut kinds: Vec<Kind> = cluster.kinds().await?.into_iter().filter(|kind| holds(kind)).collect();
        kinds.sort_by_key(|kind| (kind.group().to_owned(), kind.plural().to_owned(), kind.version().to_owned()));
        let rows: Vec<Map<String, Value>> = kinds.iter().skip(spot.o).map(resource).collect();
        let (rows, left) = rows_that_fit(rows, ROOM);
        if left > 0 {
            let next = RowOffset { o: spot.o + rows.len() };
            common.next_cursor = Some(self.kit.cursors.seal(permit, args, &next)?);
            common.cut_items(left, "filter with target, such as target=apps");
        }
        Ok(rows)
    }
}

fn resource(kind: &Kind) -> Map<String, Value> {
    let mut row = Map::new();
    row.insert("name".into(), json!(kind.plural()));
    if !kind.short().is_empty() {
        row.insert("short".into(), json!(kind.short().join(",")));
    }
    row.insert("api_version".into(), json!(kind.api_version()));
    row.insert("kind".into(), json!(kind.kind()));
    row.insert("namespaced".into(), json!(kind.namespaced()));
    row.insert("verbs".into(), json!(kind.verbs().join(",")));
    row
}

async fn nodes(cluster: &Cluster<'_>) -> Result<Nodes, Failure> {
    let kind = cluster.kind("v1/Node").await?;
    let place = cluster.place(&kind, None, Wildcard::Allowed).await?;
    let mut query = ListQuery { limit: MOST, ..ListQuery::default() };
    let mut nodes = Nodes { total: 0, ready: 0, unschedulable: 0 };
    loop {
        let page = cluster.list(&place, &query, MaskDetail::Clean).await?;
        for node in &page.items {
            let ready = super::rollout_rules::condition(&node["status"], "Ready");
            nodes.total += 1;
            nodes.ready += usize::from(ready.is_some_and(|c| c["status"] == "True"));
            nodes.unschedulable += usize::from(node["spec"]["unschedulable"] == true);
        }
        query.cursor = page.cursor;
        if query.cursor.is_none() {
            return Ok(nodes);
        }
    }
}

/// The namespaces the tenant may see.
async fn namespaces(cluster: &Cluster<'_>) -> Result<Vec<String>, Failure> {
    if let Some(allowed) = cluster.allowed() {
        return Ok(allowed);
    }
    let kind = cluster.kind("v1/Namespace").await?;
    let place = cluster.place(&kind, None, Wildcard::Allowed).await?;
    let query = ListQuery { limit: MOST, ..ListQuery::default() };
    let page = cluster.list(&place, &query, MaskDetail::Clean).await?;
    Ok(page.items.iter().filter_map(|item| item["metadata"]["name"].as_str().map(str::to_owned)).collect())
}

/// Whether a verb is allowed on a kind; without a verb, everything that is allowed.
async fn may(cluster: &Cluster<'_>, args: &Args, common: &mut ClusterReplyFields) -> Result<AccessRow, Failure> {
    let namespace = args.namespace.as_ref().map(Label::as_str);
    let Some(verb) = &args.verb else {
        let status = cluster.rules(namespace).await?;
        let mut rules = rules(&status);
        if status["incomplete"] == true {
            common.warnings.push("the cluster says that this list is not complete".to_owned());
        }
        let left = rules.len().saturating_sub(SHOWN);
        rules.truncate(SHOWN);
        common.cut_items(left, "ask for one verb and kind");
        return Ok(AccessRow { allowed: None, reason: None, rules: Some(rules) });
    };
    let target = args.target.as_deref().ok_or_else(|| wants_target("pods, or deployments/web"))?;
    // `apps/v1/Deployment` has slashes of its own; a name stands behind a kind without any.
    let (kind, name) = match target.split_once('/') {
        Some((kind, name)) if !name.contains('/') && KindText::try_from(target.to_owned()).is_err() => {
            (kind, Some(name))
        }
        Some(_) | None => (target, None),
    };
    let kind = KindText::try_from(kind.to_owned()).map_err(|why| Failure::new(Code::InvalidArgument, why))?;
    let name = name
        .map(|name| ObjectName::try_from(name.to_owned()))
        .transpose()
        .map_err(|why| Failure::new(Code::InvalidArgument, why))?;
    let kind = cluster.kind(kind.as_str()).await?;
    let namespace = match (kind.namespaced(), namespace) {
        (true, wanted) => Some(cluster.namespace(wanted)?),
        (false, _) => None,
    };
    let name = name.map(|name| name.as_str().to_owned());
    let deed = AccessReview { verb: verb.as_str().to_owned(), kind, subresource: None, namespace, name };
    let verdict = cluster.may(&deed).await?;
    Ok(AccessRow {
        allowed: Some(verdict.allowed),
        reason: verdict.reason.as_deref().map(redact::message),
        rules: None,
    })
}

/// `get,list pods` for each rule.
fn rules(status: &Value) -> Vec<String> {
    let join = |value: &Value| {
        let words: Vec<&str> = value.as_array().into_iter().flatten().filter_map(Value::as_str).collect();
        words.join(",")
    };
    let one = |rule: &Value| {
        let groups = join(&rule["apiGroups"]);
        let names = join(&rule["resourceNames"]);
        let group = if groups.is_empty() { String::new() } else { format!(" ({groups})") };
        let names = if names.is_empty() { String::new() } else { format!(" named {names}") };
        let mut told = format!("{} {}{group}{names}", join(&rule["verbs"]), join(&rule["resources"]));
        cut_text(&mut told, MOST_RULE);
        told
    };
    status["resourceRules"].as_array().into_iter().flatten().map(one).collect()
}

fn wants_target(example: &str) -> Failure {
    Failure::new(Code::InvalidArgument, "this question needs a target").next(format!("set target, such as {example}"))
}

/// Whether a text could be a field's name.
fn is_field(text: &str) -> bool {
    !text.is_empty()
        && text.len() <= 128
        && (is_label(text) || text.bytes().all(|b| b.is_ascii_alphanumeric() || matches!(b, b'_' | b'-' | b'$')))
}
