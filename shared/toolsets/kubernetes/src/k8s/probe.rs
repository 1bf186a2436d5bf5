//! `k8s_probe`: an HTTP GET to a pod or service through the API server.
//!
//! One GET, without body and without headers of the caller, to one port of one pod or service; redirects are shown and
//! not followed. Whether it reached the application cannot be told afterwards, so it is never sent twice.

use super::at;
use super::at::selector_text;
use super::grammar::{HttpPath, Label, ObjectName, Port};
use super::judged::{self, fingerprint, heading, unprotected};
use super::reply::{ClusterNote, ClusterReplyFields, printable};
use super::written::{KeptEnd, shown};
use super::{K8sDeps, TOOLSET};
use crate::client::{Cluster, KindScope, ListQuery, MaskDetail, ResourceRef, Wildcard};
use catalog::{PreviewBuilder, Progress, Tool, ToolPreview, ToolSpec};
use domain::{Effect, Failure};
use policy::Permit;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

pub(super) struct HttpProbe {
    pub(super) kit: K8sDeps,
}

#[derive(Debug, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct Args {
    kind: ProbeOutput,
    name: ObjectName,
    port: Port,
    namespace: Option<Label>,
    path: Option<HttpPath>,
    https: Option<bool>,
    cluster: Option<Label>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub(super) enum ProbeOutput {
    Pod,
    Service,
}

#[derive(Debug, Serialize, JsonSchema)]
pub(super) struct ProbeAnswer {
    status: u16,
    #[serde(skip_serializing_if = "Option::is_none")]
    content_type: Option<String>,
    body: String,
    latency_ms: u64,
    #[serde(flatten)]
    common: ClusterReplyFields,
}

/// The pod or service that would be asked.
struct ProbeTarget {
    place: KindScope,
    target: ResourceRef,
    live: Value,
}

async fn look(cluster: &Cluster<'_>, args: &Args) -> Result<ProbeTarget, Failure> {
    let kind = match args.kind {
        ProbeOutput::Pod => cluster.kind("v1/Pod").await?,
        ProbeOutput::Service => cluster.kind("v1/Service").await?,
    };
    let place = at::place(cluster, &kind, args.namespace.as_ref()).await?;
    let target = at::target(&place, &args.name)?;
    unprotected(cluster, &target)?;
    let live = at::get(cluster, &place, &target, MaskDetail::Clean).await?;
    Ok(ProbeTarget { place, target, live })
}

impl Args {
    fn path(&self) -> &str {
        self.path.as_ref().map_or("/", HttpPath::as_str)
    }
}

impl Tool for HttpProbe {
    const SPEC: ToolSpec = ToolSpec::new("k8s_probe", TOOLSET, Effect::Change)
        .says("Probe a port", "HTTP GET to a pod or service port through the API server.")
        .hint(
            "For agents that check whether a service answers from inside; a GET can still change things in careless \
             applications, which is why each one waits for a person.",
        )
        .outside_text();
    type Args = Args;
    type Output = ProbeAnswer;

    /// A GET reaches somebody's code, and nobody knows what that does.
    fn effect(_: &Args) -> Effect {
        Effect::Change
    }

    fn about(args: &Args) -> Option<String> {
        Some(
            match args.kind {
                ProbeOutput::Pod => "pods",
                ProbeOutput::Service => "services",
            }
            .to_owned(),
        )
    }

    async fn preview(&self, permit: &Permit, args: &Args) -> Result<Option<ToolPreview>, Failure> {
        let cluster = at::cluster(&self.kit.clusters, permit, args.cluster.as_ref())?;
        let seen = look(&cluster, args).await?;
        let (behind, judged) = match args.kind {
            ProbeOutput::Pod => (format!("owner: {}", owner(&seen.live)), json!(owner(&seen.live))),
            ProbeOutput::Service => (behind(&cluster, &seen).await, seen.live["spec"]["selector"].clone()),
        };
        let scheme = if args.https.unwrap_or_default() { "https" } else { "http" };
        let (port, path) = (args.port.number(), args.path());
        let facts = json!({ "port": port, "path": path, "scheme": scheme, "behind": judged });
        let heading = heading(&cluster, &seen.target);
        let mut preview = PreviewBuilder::new(format!("GET through the API server: {heading}"));
        preview.line(behind);
        preview.line(format!("port: {port} ({scheme})"));
        preview.line(format!("path: {path}"));
        if args.kind == ProbeOutput::Service && !has_port(&seen.live, port) {
            preview.warn(format!("the service has no port {port}"));
        }
        let summary = format!("GET {scheme} port {port} of {}: {path}", seen.target);
        let fingerprint = fingerprint(&cluster, &seen.target, &seen.live, facts);
        Ok(Some(judged::drawn(preview, summary, fingerprint)))
    }

    async fn run(&self, permit: &Permit, args: Args, _: &Progress) -> Result<ProbeAnswer, Failure> {
        let cluster = at::cluster(&self.kit.clusters, permit, args.cluster.as_ref())?;
        let seen = look(&cluster, &args).await?;
        let question = crate::client::ProbeRequest {
            port: args.port.number(),
            path: args.path().to_owned(),
            https: args.https.unwrap_or_default(),
        };
        let answer = cluster.write()?.probe(&seen.target, &question).await?;
        let mut common =
            ClusterNote::answer_at(&cluster, &seen.place, (args.cluster.is_some(), args.namespace.is_some()));
        let hint = "ask for a narrower path";
        if answer.truncated {
            common.truncated = true;
            common.hint = Some(hint.to_owned());
        }
        let (body, left) = shown(&answer.body, KeptEnd::First);
        if !left.is_none() {
            common.cut(left, hint);
        }
        Ok(ProbeAnswer {
            status: answer.status,
            content_type: answer.content_type.map(|text| printable(&text).chars().take(128).collect()),
            body,
            latency_ms: u64::try_from(answer.latency.as_millis()).unwrap_or(u64::MAX),
            common,
        })
    }
}

fn owner(pod: &Value) -> String {
    let owners = pod["metadata"]["ownerReferences"].as_array().into_iter().flatten();
    let mut named = owners.filter_map(|o| Some(format!("{} {}", o["kind"].as_str()?, o["name"].as_str()?)));
    named.next().unwrap_or_else(|| "none".to_owned())
}

fn has_port(service: &Value, port: u16) -> bool {
    service["spec"]["ports"].as_array().into_iter().flatten().any(|known| known["port"] == port)
}

/// Who stands behind a service now. It may change until the request is sent; the selector may not.
async fn behind(cluster: &Cluster<'_>, seen: &ProbeTarget) -> String {
    let selector = json!({ "matchLabels": seen.live["spec"]["selector"] });
    let Some(labels) = selector_text(&selector) else { return "endpoints: not by selector".to_owned() };
    match ready_pods(cluster, seen.target.namespace(), labels.clone()).await {
        Ok(ready) => format!("endpoints: {ready} ready pods of {labels}"),
        Err(failure) => format!("endpoints: not known ({})", failure.code.as_str()),
    }
}

async fn ready_pods(cluster: &Cluster<'_>, namespace: Option<&str>, labels: String) -> Result<usize, Failure> {
    let kind = cluster.kind("v1/Pod").await?;
    let place = cluster.place(&kind, namespace, Wildcard::Refused).await?;
    let query = ListQuery { labels: Some(labels), limit: 500, ..ListQuery::default() };
    let pods = cluster.list(&place, &query, MaskDetail::Clean).await?.items;
    let is_ready = |pod: &&Value| {
        let ready = super::rollout_rules::condition(&pod["status"], "Ready");
        ready.is_some_and(|ready| ready["status"] == "True")
    };
    Ok(pods.iter().filter(is_ready).count())
}
