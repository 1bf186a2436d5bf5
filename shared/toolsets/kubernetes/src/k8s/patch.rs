//! `k8s_patch`: changes some fields of one object.
//!
//! The write names the version that was read. Reading order: this file, then [`asked`] (what a patch may say).

use super::at;
use super::diff_text::unified;
use super::grammar::{KindText, Label, ObjectName};
use super::kind_name::is_wide;
use super::one::{LoadedObject, TRIES};
use super::preview::{self, ObjectChange};
use super::radius;
use super::reply::{ClusterNote, ClusterReplyFields};
use super::shown_arguments;
use super::{K8sDeps, TOOLSET};
use crate::client::{BroughtTexts, Cluster, ClusterWriter, MaskDetail, marker};
use asked::{CheckedPatch, is_risky, touches_lifetime};
use catalog::{ProbeResult, Progress, Tool, ToolPreview, ToolSpec};
use domain::{Effect, Failure};
use policy::Permit;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;

mod asked;
#[cfg(feature = "fuzz")]
pub(super) mod fuzz;

pub(super) struct K8sPatch {
    pub(super) kit: K8sDeps,
}

#[derive(Debug, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct Args {
    kind: KindText,
    name: ObjectName,
    #[schemars(length(min = 2, max = 65_536))]
    patch: String,
    namespace: Option<Label>,
    #[serde(rename = "type")]
    form: Option<PatchForm>,
    dry_run: Option<bool>,
    cluster: Option<Label>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub(super) enum PatchForm {
    Merge,
    Strategic,
    Json,
}

#[derive(Debug, Serialize, JsonSchema)]
pub(super) struct K8sPatchOutput {
    changed: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    diff: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    generation: Option<u64>,
    #[serde(flatten)]
    common: ClusterReplyFields,
}

impl Tool for K8sPatch {
    const SPEC: ToolSpec = ToolSpec::new("k8s_patch", TOOLSET, Effect::Disrupt)
        .says(
            "Patch an object",
            "Patch one object: labels, annotations or any field. patch is JSON text; an array means JSON Patch.",
        )
        .hint(
            "For agents that mend single fields of objects somebody else manages; the reach is every kind the \
             credential may patch, so bound it by namespaces and by rules about kinds.",
        );
    type Args = Args;
    type Output = K8sPatchOutput;

    /// A dry run looks. Kinds that reach far disrupt, and so do what the risk rules name and a touch of what decides
    /// whether objects live on.
    fn effect(args: &Args) -> Effect {
        match args.dry_run {
            Some(true) => Effect::Read,
            Some(false) | None if is_wide(&args.kind.about()) || touches_lifetime(&args.patch) => Effect::Disrupt,
            Some(false) | None if is_risky(&args.patch) => Effect::Disrupt,
            Some(false) | None => Effect::Change,
        }
    }

    fn about(args: &Args) -> Option<String> {
        Some(args.kind.about())
    }

    async fn preview(&self, permit: &Permit, args: &Args) -> Result<Option<ToolPreview>, Failure> {
        let cluster = at::cluster(&self.kit.clusters, permit, args.cluster.as_ref())?;
        let (mut one, asked) = found(&cluster, permit, args).await?;
        let then = send(&cluster, &cluster.write()?, &mut one, &asked, permit).await?;
        let mut preview = preview::of(&cluster);
        let brought = BroughtTexts::of(&cluster, asked.body());
        let drawn = ObjectChange { cluster: &cluster, brought: &brought };
        let changes = drawn.changes(&mut preview, &one.target, &one.live, &then);
        if touches_lifetime(&args.patch) {
            preview.warn("It touches finalizers or owners, which decide whether objects live on.");
        }
        radius::tell(&mut preview, &cluster, &one.target, &one.live, &then).await?;
        let what = if changes { "patch" } else { "patch without any change to" };
        let named = (one.target.kind().kind(), one.target.to_string());
        let without_contents = shown_arguments::patch(&mut preview, &cluster, (named.0, &named.1), &args.patch);
        preview.arguments(shown_arguments::shown(args, |shown| {
            if let Some(patch) = without_contents {
                shown["patch"] = Value::from(patch);
            }
        }));
        Ok(Some(preview::drawn(&cluster, preview, format!("{what} {}", one.target))))
    }

    /// The mark of the run says that it happened. One of another run may have replaced it, so then nobody can tell.
    async fn probe(&self, permit: &Permit, args: &Args) -> ProbeResult {
        let looked = async {
            let asked = CheckedPatch::read(&args.patch, args.form)?;
            let cluster = at::cluster(&self.kit.clusters, permit, args.cluster.as_ref())?;
            let (_, target) =
                LoadedObject::name(&cluster, permit, &args.kind, &args.name, args.namespace.as_ref()).await?;
            Ok::<_, Failure>((asked, cluster.get(&target, MaskDetail::Full).await?))
        };
        let (Ok((asked, live)), Some(run)) = (looked.await, permit.run()) else { return ProbeResult::Unknown };
        if marker::carries(&live, run) {
            let patched = K8sPatchOutput {
                changed: true,
                diff: None,
                generation: generation(&live),
                common: ClusterReplyFields::default(),
            };
            return ProbeResult::Done(serde_json::to_string(&patched).ok());
        }
        match asked.is_marked() && live["metadata"]["annotations"][marker::RUN].is_null() {
            true => ProbeResult::NotDone,
            false => ProbeResult::Unknown,
        }
    }

    async fn run(&self, permit: &Permit, args: Args, _: &Progress) -> Result<K8sPatchOutput, Failure> {
        let cluster = at::cluster(&self.kit.clusters, permit, args.cluster.as_ref())?;
        let writer = match args.dry_run {
            Some(true) => cluster.dry_run(),
            Some(false) | None => cluster.write()?,
        };
        let (mut one, asked) = found(&cluster, permit, &args).await?;
        let then = send(&cluster, &writer, &mut one, &asked, permit).await?;
        let pair = cluster.compared(Some(&one.live), Some(&then));
        let diff = unified(pair.now.as_ref(), pair.then.as_ref());
        Ok(K8sPatchOutput {
            changed: diff.is_some(),
            diff,
            // A dry run counts a generation only where something changes, be it masked.
            generation: generation(&then).filter(|_| cluster.compares_secrets()),
            common: ClusterNote::answer_at(&cluster, &one.place, (args.cluster.is_some(), args.namespace.is_some())),
        })
    }
}

/// The object, and what is asked of it.
async fn found(cluster: &Cluster<'_>, permit: &Permit, args: &Args) -> Result<(LoadedObject, CheckedPatch), Failure> {
    let asked = CheckedPatch::read(&args.patch, args.form)?;
    let one = LoadedObject::find(cluster, permit, &args.kind, &args.name, args.namespace.as_ref()).await?;
    asked.suits(cluster.is_secret_kind(one.target.kind().kind()))?;
    Ok((one, asked))
}

/// Sends the patch for the version that was read; again, where only the resource version has moved since.
async fn send(
    cluster: &Cluster<'_>,
    writer: &ClusterWriter<'_>,
    one: &mut LoadedObject,
    asked: &CheckedPatch,
    permit: &Permit,
) -> Result<Value, Failure> {
    let mut tries = 1;
    loop {
        let annotated = match asked.is_marked_by_hand() && !writer.is_dry() {
            true => cluster.sealed(&one.target).await?.part("/metadata/annotations").is_some(),
            false => false,
        };
        let mark = permit.run().filter(|_| !writer.is_dry());
        let patch = asked.patch(mark, annotated);
        match writer.patch(&one.target, patch, one.resource_version()).await {
            Ok(written) => return Ok(written.object),
            Err(refusal) if tries == TRIES => return Err(refusal),
            Err(refusal) => one.again(cluster, refusal).await?,
        }
        tries += 1;
    }
}

fn generation(object: &Value) -> Option<u64> {
    object["metadata"]["generation"].as_u64()
}
