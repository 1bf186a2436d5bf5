//! `k8s_scale`: sets how many replicas a workload runs.
//!
//! The write names the version that was read, so a workload that somebody else scaled meanwhile is left alone.

use super::at;
use super::grammar::{KindText, Label, ObjectName};
use super::one::{LoadedObject, TRIES};
use super::preview;
use super::radius;
use super::reply::{ClusterNote, ClusterReplyFields};
use super::{K8sDeps, TOOLSET};
use crate::client::Cluster;
use catalog::{ProbeResult, Progress, Tool, ToolPreview, ToolSpec};
use domain::{Code, Effect, Failure};
use policy::Permit;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

pub(super) struct ScaleTool {
    pub(super) kit: K8sDeps,
}

#[derive(Debug, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct Args {
    kind: KindText,
    name: ObjectName,
    #[schemars(range(min = 0, max = 1_000), extend("x-wire" = ["minimum"]))]
    replicas: u32,
    namespace: Option<Label>,
    #[schemars(range(min = 0))]
    current_replicas: Option<u32>,
    cluster: Option<Label>,
}

#[derive(Debug, Serialize, JsonSchema)]
pub(super) struct ScaleOutput {
    from: u64,
    to: u64,
    #[serde(skip_serializing_if = "Option::is_none")]
    ready: Option<u64>,
    /// An autoscaler that would undo it.
    #[serde(skip_serializing_if = "Option::is_none")]
    hpa: Option<String>,
    #[serde(flatten)]
    common: ClusterReplyFields,
}

impl Tool for ScaleTool {
    const SPEC: ToolSpec = ToolSpec::new("k8s_scale", TOOLSET, Effect::Disrupt)
        .says("Scale a workload", "Set replicas. Refused if current_replicas is given and differs.")
        .hint(
            "For agents that react to load; mind autoscalers, which overrule it, and that zero replicas take the \
             workload away and are judged as a disruption.",
        )
        .idempotent();
    type Args = Args;
    type Output = ScaleOutput;

    /// No replicas means no service.
    fn effect(args: &Args) -> Effect {
        match args.replicas {
            0 => Effect::Disrupt,
            1.. => Effect::Change,
        }
    }

    fn about(args: &Args) -> Option<String> {
        Some(args.kind.about())
    }

    async fn preview(&self, permit: &Permit, args: &Args) -> Result<Option<ToolPreview>, Failure> {
        let cluster = at::cluster(&self.kit.clusters, permit, args.cluster.as_ref())?;
        let (one, scale) = found(&cluster, permit, args).await?;
        let (from, to) = (replicas(&scale), args.replicas);
        believed(args, from)?;
        // Whatever would refuse it is heard now, and not after somebody signed.
        cluster.write()?.set_scale(&one.target, to, None).await?;
        let mut preview = preview::of(&cluster);
        preview::about(&mut preview, "scale", &one.target, &one.live);
        preview.judge(format!("replicas {from} → {to}"));
        if let Some(ready) = ready(&one.live) {
            preview.line(format!("ready now: {ready}"));
        }
        if let Some(owner) = radius::controller(&one.live) {
            preview.warn(format!("It belongs to {owner}, which may set it back."));
        }
        radius::tell_replicas(&mut preview, &cluster, &one.target, &one.live, u64::from(to)).await?;
        Ok(Some(preview::drawn(&cluster, preview, format!("scale {} from {from} to {to} replicas", one.target))))
    }

    async fn probe(&self, permit: &Permit, args: &Args) -> ProbeResult {
        let looked = async {
            let cluster = at::cluster(&self.kit.clusters, permit, args.cluster.as_ref())?;
            let (_, target) =
                LoadedObject::name(&cluster, permit, &args.kind, &args.name, args.namespace.as_ref()).await?;
            let scale = cluster.scale_of(&target).await?;
            let moved_by = radius::autoscaler(&cluster, &target).await.unwrap_or_default();
            Ok::<_, Failure>((replicas(&scale), moved_by))
        };
        match looked.await {
            Ok((now, _)) if now == u64::from(args.replicas) => ProbeResult::Done(None),
            // It may have been so for a moment.
            Ok((_, Some(_))) | Err(_) => ProbeResult::Unknown,
            Ok((_, None)) => ProbeResult::NotDone,
        }
    }

    async fn run(&self, permit: &Permit, args: Args, _: &Progress) -> Result<ScaleOutput, Failure> {
        let cluster = at::cluster(&self.kit.clusters, permit, args.cluster.as_ref())?;
        let writer = cluster.write()?;
        let (one, mut scale) = found(&cluster, permit, &args).await?;
        let from = replicas(&scale);
        let mut tries = 0;
        // One that has as many already is left alone: a repetition finds what the first attempt left.
        if from != u64::from(args.replicas) {
            believed(&args, from)?;
        }
        while replicas(&scale) != u64::from(args.replicas) {
            let version = scale["metadata"]["resourceVersion"].as_str();
            let refusal = match writer.set_scale(&one.target, args.replicas, version).await {
                Ok(_) => break,
                Err(failure) => failure,
            };
            tries += 1;
            if refusal.code != Code::Conflict || tries == TRIES {
                return Err(refusal);
            }
            let anew = cluster.scale_of(&one.target).await?;
            // Another resource version alone is the status that moved; other replicas are somebody else's will.
            if replicas(&anew) != from || anew["metadata"]["uid"] != scale["metadata"]["uid"] {
                return Err(changed(from, replicas(&anew)));
            }
            scale = anew;
        }
        let hpa = radius::autoscaler(&cluster, &one.target).await.ok().flatten();
        Ok(ScaleOutput {
            from,
            to: u64::from(args.replicas),
            ready: ready(&one.live),
            hpa: hpa.map(|hpa| hpa.name),
            common: ClusterNote::answer_at(&cluster, &one.place, (args.cluster.is_some(), args.namespace.is_some())),
        })
    }
}

/// The workload and its scale.
async fn found(cluster: &Cluster<'_>, permit: &Permit, args: &Args) -> Result<(LoadedObject, Value), Failure> {
    let one = LoadedObject::find(cluster, permit, &args.kind, &args.name, args.namespace.as_ref()).await?;
    let scale = cluster.scale_of(&one.target).await?;
    Ok((one, scale))
}

/// Wants the workload to run as many replicas as the caller believes.
fn believed(args: &Args, now: u64) -> Result<(), Failure> {
    match args.current_replicas.map(u64::from) {
        Some(believed) if believed != now => Err(changed(believed, now)),
        Some(_) | None => Ok(()),
    }
}

fn replicas(scale: &Value) -> u64 {
    scale["spec"]["replicas"].as_u64().unwrap_or(0)
}

/// How many are ready. A workload that has none leaves it out.
fn ready(live: &Value) -> Option<u64> {
    let status = &live["status"];
    status["readyReplicas"].as_u64().or_else(|| status["replicas"].as_u64().map(|_| 0))
}

fn changed(believed: u64, now: u64) -> Failure {
    Failure::new(crate::codes::REPLICAS_CHANGED, format!("it has {now} replicas and not {believed}"))
        .next(format!("look at it again; if {now} is right, call with current_replicas={now}"))
        .details(json!({ "replicas": now }))
}
