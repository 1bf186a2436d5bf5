//! `k8s_apply`: server-side apply of manifests.
//!
//! Namespaces and definitions go first, then everything as it was given. The first object that fails ends it, and the
//! failure says what was applied before. Sent again, the same run changes nothing more: apply is a statement of what is
//! to be so. Reading order: this file, then [`plan`] (order, targets, trying each object without doing it).

use super::at;
use super::diff_text::unified;
use super::grammar::Label;
use super::manifest::{ManifestObject, ObjectManifest};
use super::preview::{self, ObjectChange};
use super::radius;
use super::reply::{ClusterNote, ClusterReplyFields};
use super::shown_arguments;
use super::{K8sDeps, TOOLSET};
use crate::client::{BroughtTexts, Cluster, ClusterWriter, Force, MaskDetail, ResourceRef, marker};
use catalog::{ProbeResult, Progress, Tool, ToolPreview, ToolSpec};
use domain::{Effect, Failure};
use plan::{ApplyPlan, ApplyStep, DryRunResult, body};
use policy::Permit;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use std::time::Duration;

mod plan;

/// Fifty objects, and definitions that take their time.
const DEADLINE: Duration = Duration::from_secs(120);
/// What is left of it to say how far it got.
const MARGIN: Duration = Duration::from_secs(5);
/// How long a definition may take until the cluster serves its kind.
const ESTABLISHED: Duration = Duration::from_secs(30);

pub(super) struct Apply {
    pub(super) kit: K8sDeps,
}

#[derive(Debug, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct Args {
    manifest: ObjectManifest,
    namespace: Option<Label>,
    force: Option<bool>,
    dry_run: Option<bool>,
    cluster: Option<Label>,
}

#[derive(Debug, Serialize, JsonSchema)]
pub(super) struct ApplyOutput {
    objects: Vec<AppliedObject>,
    applied: usize,
    failed: usize,
    #[serde(flatten)]
    common: ClusterReplyFields,
}

#[derive(Debug, Clone, Serialize, JsonSchema)]
pub(super) struct AppliedObject {
    kind: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    namespace: Option<String>,
    name: String,
    /// create, change, none, unverified or failed; applied where it is only known that it was; masked where nothing but
    /// masked values could change, and only those who may write are told.
    action: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    error: Option<String>,
}

impl Tool for Apply {
    const SPEC: ToolSpec = ToolSpec::new("k8s_apply", TOOLSET, Effect::Disrupt)
        .says("Apply manifests", "Server-side apply YAML manifests. force takes over fields owned by others.")
        .hint(
            "For agents that own whole manifests; where a GitOps controller owns the same fields it puts them back, \
             so let such agents only propose with `k8s_diff`.",
        )
        .idempotent()
        .deadline(DEADLINE);
    type Args = Args;
    type Output = ApplyOutput;

    /// A dry run looks; taking over fields, kinds that reach far, and what the risk rules name, disrupt.
    fn effect(args: &Args) -> Effect {
        match (args.dry_run, args.force) {
            (Some(true), _) => Effect::Read,
            (_, Some(true)) => Effect::Disrupt,
            (_, _) if args.manifest.is_wide() || args.manifest.is_risky() => Effect::Disrupt,
            (_, _) => Effect::Change,
        }
    }

    fn about(args: &Args) -> Option<String> {
        args.manifest.about()
    }

    async fn preview(&self, permit: &Permit, args: &Args) -> Result<Option<ToolPreview>, Failure> {
        let cluster = self.cluster(permit, args)?;
        let plan = ApplyPlan::of(&cluster, args.manifest.objects()?, args.namespace.as_ref()).await?;
        let writer = cluster.write()?;
        let mut preview = preview::of(&cluster);
        let brought = BroughtTexts::of(&cluster, args.manifest.objects()?.iter().map(|object| &object.value));
        let drawn = ObjectChange { cluster: &cluster, brought: &brought };
        preview.judge(plan.kinds());
        let (mut made, mut changed) = (0, 0);
        for step in &plan.steps {
            let shown = |object: &ManifestObject| {
                crate::client::SealedValue::from(body(object)).shown(&cluster, MaskDetail::Full)
            };
            match Box::pin(plan.attempt(&cluster, &writer, step, args.force())).await? {
                DryRunResult::Untried => {
                    cluster.bounds().check(&step.object.value)?;
                    drawn.untried(&mut preview, &step.name(), &shown(step.object));
                    made += 1;
                }
                DryRunResult::Create { target, then } => {
                    drawn.creates(&mut preview, &target, &shown(step.object), &then);
                    made += 1;
                }
                DryRunResult::Change { target, live, then, managers } => {
                    changed += usize::from(drawn.changes(&mut preview, &target, &live, &then));
                    for manager in managers {
                        preview.warn(format!("Takes over fields of {target} that belong to {manager}."));
                    }
                    Box::pin(radius::tell(&mut preview, &cluster, &target, &live, &then)).await?;
                }
            }
        }
        let count = plan.steps.len();
        let without_contents = shown_arguments::manifest(&mut preview, &cluster, &args.manifest);
        preview.arguments(shown_arguments::shown(args, |shown| {
            if let Some(manifest) = without_contents {
                shown["manifest"] = json!(manifest);
            }
        }));
        Ok(Some(preview::drawn(&cluster, preview, format!("apply {count} objects: create {made}, change {changed}"))))
    }

    /// Every object carries the mark of the run: done. None carries one of ours: not done. Where some do, or another run
    /// has written since, nobody can tell from here.
    async fn probe(&self, permit: &Permit, args: &Args) -> ProbeResult {
        let looked = async {
            let cluster = self.cluster(permit, args)?;
            let plan = ApplyPlan::of(&cluster, args.manifest.objects()?, args.namespace.as_ref()).await?;
            let mut found = Vec::new();
            for step in &plan.steps {
                let live = match &step.target {
                    Some(target) => cluster.find(target, MaskDetail::Full).await?,
                    None => None,
                };
                found.push((step.line("applied"), live.unwrap_or_default()));
            }
            Ok::<_, Failure>(found)
        };
        let (Ok(found), Some(run)) = (looked.await, permit.run()) else { return ProbeResult::Unknown };
        if found.iter().all(|(_, live)| marker::carries(live, run)) {
            let objects: Vec<AppliedObject> = found.into_iter().map(|(line, _)| line).collect();
            let applied = objects.len();
            let done = ApplyOutput { objects, applied, failed: 0, common: ClusterReplyFields::default() };
            return ProbeResult::Done(serde_json::to_string(&done).ok());
        }
        match found.iter().all(|(_, live)| live["metadata"]["annotations"][marker::RUN].is_null()) {
            true => ProbeResult::NotDone,
            false => ProbeResult::Unknown,
        }
    }

    async fn run(&self, permit: &Permit, args: Args, progress: &Progress) -> Result<ApplyOutput, Failure> {
        let cluster = self.cluster(permit, &args)?;
        let objects = args.manifest.objects()?;
        // Whatever cannot be meant is refused before the first object is sent.
        let plan = ApplyPlan::of(&cluster, objects, args.namespace.as_ref()).await?;
        let named = (args.cluster.is_some(), args.namespace.is_some() || objects.iter().all(|o| o.namespace.is_some()));
        let common = ClusterNote::answer(&cluster, Some(cluster.default_namespace()), named);
        if args.dry_run == Some(true) {
            return Ok(Box::pin(rehearse(&cluster, &plan, args.force(), common)).await);
        }
        let writer = cluster.write()?;
        let mut lines = Vec::new();
        for (n, step) in plan.steps.iter().enumerate() {
            let sent = async {
                let target = plan.target(&cluster, step).await?;
                let line = send(&cluster, &writer, step, &target, args.force()).await?;
                if step.is_definition() {
                    let patient = self.cluster(permit, &args)?.within(ESTABLISHED.min(cluster.time_left()));
                    established(&patient, &target).await?;
                }
                Ok(line)
            };
            match Box::pin(sent).await {
                Ok(line) => lines.push(line),
                Err(failure) => return Err(stopped(failure, step, &lines, &plan.steps[n + 1..])),
            }
            progress.report(u64::try_from(n + 1).unwrap_or_default(), u64::try_from(plan.steps.len()).ok(), None);
        }
        Ok(ApplyOutput { applied: lines.len(), objects: lines, failed: 0, common })
    }
}

impl Apply {
    fn cluster<'p>(&self, permit: &'p Permit, args: &Args) -> Result<Cluster<'p>, Failure> {
        Ok(at::cluster(&self.kit.clusters, permit, args.cluster.as_ref())?.within(DEADLINE - MARGIN))
    }
}

impl Args {
    fn force(&self) -> Force {
        if self.force == Some(true) { Force::Yes } else { Force::No }
    }
}

/// Tries every object, so that all that is wrong is told at once.
async fn rehearse(
    cluster: &Cluster<'_>,
    plan: &ApplyPlan<'_>,
    force: Force,
    common: ClusterReplyFields,
) -> ApplyOutput {
    let writer = cluster.dry_run();
    let mut objects = Vec::new();
    for step in &plan.steps {
        objects.push(match Box::pin(plan.attempt(cluster, &writer, step, force)).await {
            Ok(DryRunResult::Untried) => step.line("unverified"),
            Ok(DryRunResult::Create { .. }) => step.line("create"),
            Ok(DryRunResult::Change { live, then, .. }) => step.line(tried(cluster, step, &live, &then)),
            Err(failure) => AppliedObject { error: Some(failure.message), ..step.line("failed") },
        });
    }
    let failed = objects.iter().filter(|line| line.error.is_some()).count();
    ApplyOutput { objects, applied: 0, failed, common }
}

/// Applies one object.
async fn send(
    cluster: &Cluster<'_>,
    writer: &ClusterWriter<'_>,
    step: &ApplyStep<'_>,
    target: &ResourceRef,
    force: Force,
) -> Result<AppliedObject, Failure> {
    let live = cluster.find(target, MaskDetail::Full).await?;
    let written = writer.apply(target, body(step.object), force).await?;
    let action = match live {
        None => "create",
        Some(live) => change(&live, &written.object),
    };
    Ok(AppliedObject { namespace: target.namespace().map(str::to_owned), ..step.line(action) })
}

/// What a dry run says of an object that is there. Who may not write is not told whether masked values would change.
fn tried(cluster: &Cluster<'_>, step: &ApplyStep<'_>, live: &Value, then: &Value) -> &'static str {
    if cluster.compares_secrets() {
        return change(live, then);
    }
    let pair = cluster.compared(Some(live), Some(then));
    match unified(pair.now.as_ref(), pair.then.as_ref()) {
        Some(_) => "change",
        None if cluster.masks(&step.object.value) => "masked",
        None => "none",
    }
}

fn change(live: &Value, then: &Value) -> &'static str {
    if unified(Some(live), Some(then)).is_some() { "change" } else { "none" }
}

/// Waits until the cluster serves a kind that was just defined.
async fn established(cluster: &Cluster<'_>, target: &ResourceRef) -> Result<(), Failure> {
    let is_true = |condition: &Value| condition["type"] == "Established" && condition["status"] == "True";
    let served = |object: Option<&Value>| {
        let conditions = object.and_then(|object| object["status"]["conditions"].as_array());
        conditions.is_some_and(|conditions| conditions.iter().any(is_true))
    };
    match cluster.wait(target, served).await?.met {
        true => Ok(()),
        false => Err(Failure::new(
            target::codes::TARGET_BUSY,
            "the definition is there, but the cluster does not serve it yet",
        )
        .next("look at its conditions with k8s_get, then apply again")),
    }
}

/// The failure of one object of several: what it was, what came before it and what was left.
fn stopped(mut failure: Failure, step: &ApplyStep<'_>, done: &[AppliedObject], left: &[ApplyStep<'_>]) -> Failure {
    let names =
        |lines: &[AppliedObject]| lines.iter().map(|l| format!("{} {}", l.kind, l.name)).collect::<Vec<_>>().join(", ");
    let left: Vec<AppliedObject> = left.iter().map(|step| step.line("none")).collect();
    failure.message = format!("{}: {}", step.name(), failure.message);
    if !done.is_empty() {
        failure.message.push_str(&format!("; applied before it: {}", names(done)));
    }
    if !left.is_empty() {
        failure.message.push_str(&format!("; not tried: {}", names(&left)));
    }
    failure.details = Some(json!({ "applied": done, "failed": step.line("failed"), "cause": failure.details }));
    failure
}
