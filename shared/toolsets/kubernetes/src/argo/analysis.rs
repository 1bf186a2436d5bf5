//! `argo_analysis`: end an AnalysisRun or an Experiment early, or run a failed Experiment again.
//!
//! A run that is ended between two measurements, and without a failure, counts as successful, so a Rollout that waits for
//! it goes on unchecked. A measurement under way comes to no conclusion, and the Rollout waits for a person.
//! Neither kind has a door for its status alone, so both patches go to the object itself and leave the run's mark there.

use super::TOOLSET;
use super::get::{owner, said};
use super::incoming::{analyses, readable, starts};
use super::kinds::{self, ArgoKindArg};
use super::rollout::incoming::goes_on;
use crate::client::{Cluster, MaskDetail, ObjectPatch, Wildcard, marker};
use crate::k8s::K8sDeps;
use crate::k8s::at;
use crate::k8s::grammar::{Label, ObjectName};
use crate::k8s::judged::{self, fingerprint, heading, unprotected};
use crate::k8s::one::LoadedObject;
use crate::k8s::reply::{ClusterNote, ClusterReplyFields};
use catalog::{PreviewBuilder, ProbeResult, Progress, Tool, ToolPreview, ToolSpec};
use domain::{Code, Effect, Failure};
use policy::Permit;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

/// How often a patch is made anew because the object moved between reading and writing.
const TRIES: usize = 5;

pub(super) struct Analysis {
    pub(super) kit: K8sDeps,
}

#[derive(Debug, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct Args {
    action: AnalysisAction,
    kind: AnalysisSubject,
    name: ObjectName,
    namespace: Option<Label>,
    cluster: Option<Label>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub(super) enum AnalysisAction {
    Terminate,
    Retry,
}

/// What is judged by metrics.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub(super) enum AnalysisSubject {
    AnalysisRun,
    Experiment,
}

#[derive(Debug, Serialize, JsonSchema)]
pub(super) struct AnalysisOutput {
    phase: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    message: Option<String>,
    #[serde(flatten)]
    common: ClusterReplyFields,
}

impl AnalysisSubject {
    const fn sort(self) -> ArgoKindArg {
        match self {
            AnalysisSubject::AnalysisRun => ArgoKindArg::AnalysisRun,
            AnalysisSubject::Experiment => ArgoKindArg::Experiment,
        }
    }
}

impl AnalysisAction {
    const fn as_str(self) -> &'static str {
        match self {
            AnalysisAction::Terminate => "terminate",
            AnalysisAction::Retry => "retry",
        }
    }
}

/// Whether it has come to an end.
fn is_over(live: &Value) -> bool {
    matches!(live["status"]["phase"].as_str(), Some("Successful" | "Failed" | "Error" | "Inconclusive"))
}

/// Whether it has come to an end that was not the one hoped for.
fn has_failed(live: &Value) -> bool {
    is_over(live) && live["status"]["phase"] != "Successful"
}

fn is_ending(live: &Value) -> bool {
    live["spec"]["terminate"] == true
}

impl Args {
    async fn look(&self, cluster: &Cluster<'_>) -> Result<LoadedObject, Failure> {
        if (self.action, self.kind) == (AnalysisAction::Retry, AnalysisSubject::AnalysisRun) {
            return Err(Failure::new(target::codes::UNSUPPORTED, "an AnalysisRun is not run again")
                .next("retry the Rollout or Experiment it belongs to: argo_rollout action=retry"));
        }
        let seen = kinds::find(cluster, self.kind.sort(), &self.name, self.namespace.as_ref()).await?;
        unprotected(cluster, &seen.target)?;
        Ok(seen)
    }

    /// What would be written; nothing if it is under way already.
    fn patch(&self, seen: &LoadedObject) -> Result<Option<ObjectPatch>, Failure> {
        let phase = said(&seen.live).0;
        match self.action {
            AnalysisAction::Terminate if is_over(&seen.live) => {
                Err(Failure::new(target::codes::ALREADY_FINISHED, format!("{} is over: {phase}", seen.target))
                    .next("look at it with argo_get"))
            }
            AnalysisAction::Terminate if is_ending(&seen.live) => Ok(None),
            AnalysisAction::Terminate => Ok(Some(ObjectPatch::Merge(json!({ "spec": { "terminate": true } }).into()))),
            AnalysisAction::Retry if has_failed(&seen.live) => {
                Ok(Some(ObjectPatch::Merge(json!({ "status": null }).into())))
            }
            AnalysisAction::Retry => {
                Err(Failure::new(target::codes::UNSUPPORTED, format!("{} has not failed: {phase}", seen.target))
                    .next("only an Experiment that failed is run again; look at it with argo_get"))
            }
        }
    }
}

impl Tool for Analysis {
    const SPEC: ToolSpec = ToolSpec::new("argo_analysis", TOOLSET, Effect::Disrupt)
        .says(
            "End or repeat an analysis",
            "Terminate a running AnalysisRun or Experiment, or retry a failed Experiment.",
        )
        .hint(
            "For agents that look after stuck experiments; an analysis that is ended early counts as successful \
             unless it had failed, and the release goes on.",
        )
        .idempotent();
    type Args = Args;
    type Output = AnalysisOutput;

    /// Ending an analysis takes away what would have stopped a bad version.
    fn effect(args: &Args) -> Effect {
        match args.action {
            AnalysisAction::Terminate => Effect::Disrupt,
            AnalysisAction::Retry => Effect::Change,
        }
    }

    fn about(args: &Args) -> Option<String> {
        Some(format!("{},{}", args.kind.sort().plural(), args.action.as_str()))
    }

    async fn preview(&self, permit: &Permit, args: &Args) -> Result<Option<ToolPreview>, Failure> {
        let cluster = at::cluster(&self.kit.clusters, permit, args.cluster.as_ref())?;
        let seen = args.look(&cluster).await?;
        let patch = args.patch(&seen)?;
        let noop = if patch.is_none() { " (nothing would change)" } else { "" };
        if let Some(patch) = patch {
            // Whatever would refuse it is heard now, and not after somebody signed.
            cluster.write()?.patch(&seen.target, patch, None).await?;
        }
        let summary = format!("{} {}{noop}", args.action.as_str(), seen.target);
        let (preview, incoming) = drawn(&cluster, &seen, args.action).await?;
        let facts = json!({
            "action": args.action.as_str(), "over": is_over(&seen.live), "ending": is_ending(&seen.live),
            "failed": failed(&seen.live), "spec": seen.live["spec"], "incoming": incoming,
        });
        let fingerprint = fingerprint(&cluster, &seen.target, &seen.live, facts);
        Ok(Some(judged::drawn(preview, summary, fingerprint)))
    }

    async fn probe(&self, permit: &Permit, args: &Args) -> ProbeResult {
        let Ok(cluster) = at::cluster(&self.kit.clusters, permit, args.cluster.as_ref()) else {
            return ProbeResult::Unknown;
        };
        let Ok(seen) = args.look(&cluster).await else { return ProbeResult::Unknown };
        let done = match args.action {
            AnalysisAction::Terminate => is_ending(&seen.live),
            // The mark is written together with the fresh start.
            AnalysisAction::Retry => permit.run().is_some_and(|run| marker::carries(&seen.live, run)),
        };
        match done {
            true => ProbeResult::Done(serde_json::to_string(&told(&cluster, &seen, args, &seen.live)).ok()),
            false => ProbeResult::Unknown,
        }
    }

    async fn run(&self, permit: &Permit, args: Args, _: &Progress) -> Result<AnalysisOutput, Failure> {
        let cluster = at::cluster(&self.kit.clusters, permit, args.cluster.as_ref())?;
        let writer = cluster.write()?;
        let mut refusal = None;
        let mut uid: Option<Value> = None;
        for _ in 0..TRIES {
            let seen = args.look(&cluster).await?;
            // A repetition finds what the first attempt left.
            if permit.run().is_some_and(|run| marker::carries(&seen.live, run)) {
                return Ok(told(&cluster, &seen, &args, &seen.live));
            }
            if uid.get_or_insert_with(|| seen.live["metadata"]["uid"].clone()) != &seen.live["metadata"]["uid"] {
                break;
            }
            let Some(patch) = args.patch(&seen)? else { return Ok(told(&cluster, &seen, &args, &seen.live)) };
            match writer.patch(&seen.target, patch, seen.resource_version()).await {
                Ok(written) => return Ok(told(&cluster, &seen, &args, &written.object)),
                Err(failure) if failure.code == Code::Conflict => refusal = Some(failure),
                Err(failure) => return Err(failure),
            }
        }
        Err(refusal.unwrap_or_else(|| Failure::new(Code::Conflict, "it never stood still").next("look at it again")))
    }
}

fn told(cluster: &Cluster<'_>, seen: &LoadedObject, args: &Args, object: &Value) -> AnalysisOutput {
    let (phase, message) = said(object);
    let common = ClusterNote::answer_at(cluster, &seen.place, (args.cluster.is_some(), args.namespace.is_some()));
    AnalysisOutput { phase, message, common }
}

/// How many measurements of each metric failed: what an approver weighs, and what must not have grown worse.
fn failed(live: &Value) -> Vec<(String, u64)> {
    let results = live["status"]["metricResults"].as_array().into_iter().flatten();
    let bad = |result: &Value| {
        let count = |key: &str| result[key].as_u64().unwrap_or_default();
        count("failed") + count("error") + count("inconclusive")
    };
    results.map(|result| (redact::message(result["name"].as_str().unwrap_or_default()), bad(result))).collect()
}

/// Judges and shows what would run then: what an Experiment starts, and what a Rollout goes on with.
async fn incoming(
    preview: &mut PreviewBuilder,
    cluster: &Cluster<'_>,
    seen: &LoadedObject,
    action: AnalysisAction,
) -> Result<Value, Failure> {
    let namespace = seen.target.namespace();
    match action {
        AnalysisAction::Retry => {
            starts(preview, cluster, &seen.target.to_string(), &seen.live)?;
            analyses(preview, cluster, namespace, &seen.live["spec"]["analyses"]).await
        }
        AnalysisAction::Terminate => {
            let owners = seen.live["metadata"]["ownerReferences"].as_array().into_iter().flatten();
            let mut owners = owners.filter(|owner| owner["controller"] == true && owner["kind"] == "Rollout");
            let Some(name) = owners.next().and_then(|owner| owner["name"].as_str()) else { return Ok(Value::Null) };
            let place =
                cluster.place(&kinds::kind(cluster, ArgoKindArg::Rollout).await?, namespace, Wildcard::Refused).await?;
            let target = place.object(name)?;
            match readable(cluster.get(&target, MaskDetail::Full).await)? {
                Some(live) => goes_on(preview, cluster, &LoadedObject { place, target, live }).await,
                None => {
                    preview.warn(format!("{target} cannot be read: this service does not see what would run."));
                    Ok(Value::Null)
                }
            }
        }
    }
}

async fn drawn(
    cluster: &Cluster<'_>,
    seen: &LoadedObject,
    action: AnalysisAction,
) -> Result<(PreviewBuilder, Value), Failure> {
    let mut preview = PreviewBuilder::new(format!("{}: {}", action.as_str(), heading(cluster, &seen.target)));
    let incoming = incoming(&mut preview, cluster, seen, action).await?;
    let (phase, message) = said(&seen.live);
    preview.line(format!("now: {phase}{}", message.map(|why| format!(", {why}")).unwrap_or_default()));
    for result in seen.live["status"]["metricResults"].as_array().into_iter().flatten().take(50) {
        let count = |key: &str| result[key].as_u64().unwrap_or_default();
        let name = redact::message(result["name"].as_str().unwrap_or_default());
        let phase = redact::message(result["phase"].as_str().unwrap_or("Pending"));
        let counts = (count("successful"), count("failed"), count("inconclusive"), count("error"));
        let (ok, failed, inconclusive, error) = counts;
        preview.line(format!(
            "metric {name}: {phase}; {ok} ok, {failed} failed, {inconclusive} inconclusive, {error} errors"
        ));
    }
    match owner(&seen.live) {
        Some(owner) => {
            preview.line(format!("belongs to: {owner}"));
            if action == AnalysisAction::Terminate {
                let warning = "A measurement under way comes to no conclusion; without one, and without a failure, it";
                preview.warn(format!("{warning} counts as successful, and {owner} may go on unchecked."));
            }
        }
        None => preview.line("belongs to: nothing"),
    }
    if action == AnalysisAction::Retry {
        preview.line("its status is cleared, and its templates and analyses start again");
    }
    Ok((preview, incoming))
}
