//! What an action writes: one patch, and what it means. Looks, and changes nothing.

use super::{Args, ReadWorkload, RolloutAction};
use crate::client::{ObjectPatch, SealedValue, Wildcard};
use crate::codes;
use crate::k8s::clean::RUN_MARK;
use crate::k8s::grammar::Image;
use crate::k8s::history::{REVISION, TEMPLATE_HASH, Workload, WorkloadRevision, no_revision, revisions};
use crate::k8s::images::{self, Images};
use domain::{Code, Failure};
use policy::Permit;
use serde_json::{Map, Value, json};
use std::collections::BTreeMap;

/// The annotation of a template by which a workload is restarted.
const RESTARTED: &str = "kubectl.kubernetes.io/restartedAt";
/// What stands there in a preview, when there is no run yet.
const NO_RUN_YET: &str = "(name of the run)";
/// Annotations that belong to a Deployment and its controller, whatever revision it is at.
const BOOKKEEPING: [&str; 6] = [
    "kubectl.kubernetes.io/last-applied-configuration",
    REVISION,
    "deployment.kubernetes.io/revision-history",
    "deployment.kubernetes.io/desired-replicas",
    "deployment.kubernetes.io/max-replicas",
    "deprecated.deployment.rollback.to",
];

/// What would be written.
#[derive(Default)]
pub(super) struct RolloutPlan {
    /// `None`: everything is as wished already.
    pub(super) patch: Option<ObjectPatch>,
    pub(super) from_revision: Option<u64>,
    pub(super) to_revision: Option<u64>,
    pub(super) images: Option<Images>,
}

impl RolloutPlan {
    /// The plan for an action. Without a permit to act it is one to look at.
    pub(super) async fn of(
        seen: &ReadWorkload<'_>,
        args: &Args,
        acting: Option<&Permit>,
    ) -> Result<RolloutPlan, Failure> {
        let known = revisions(seen.cluster, seen.workload, &seen.target, &seen.live).await?;
        let from_revision = known.iter().find(|r| r.current).map(|r| r.number);
        let plan = match args.action {
            RolloutAction::Restart => RolloutPlan { patch: Some(restart(seen, acting)?), ..RolloutPlan::default() },
            RolloutAction::Pause => pause(seen, true)?,
            RolloutAction::Resume => pause(seen, false)?,
            RolloutAction::SetImage => set_images(&seen.live, args.images.as_ref().unwrap_or(&BTreeMap::new()))?,
            RolloutAction::Undo => undo(seen, &known, args.to_revision.map(u64::from), acting).await?,
        };
        Ok(RolloutPlan { from_revision, ..plan })
    }
}

fn restart(seen: &ReadWorkload<'_>, acting: Option<&Permit>) -> Result<ObjectPatch, Failure> {
    awake(seen, "restarted")?;
    let value = match acting {
        // The moment of the yes, so that a run that is sent again restarts nothing twice.
        Some(permit) => permit
            .approval()
            .map(|yes| yes.at.exact())
            .ok_or_else(|| Failure::new(Code::Internal, "a restart without an approval has no moment to write down"))?,
        None => NO_RUN_YET.to_owned(),
    };
    let annotations = json!({ RESTARTED: value });
    Ok(ObjectPatch::Strategic(json!({ "spec": { "template": { "metadata": { "annotations": annotations } } } }).into()))
}

/// Whether the yes of this moment has restarted the workload.
pub(super) fn restarted_by(object: &Value, moment: &str) -> bool {
    object["spec"]["template"]["metadata"]["annotations"][RESTARTED] == moment
}

/// Wants a workload that is not paused: what is written to a paused one takes effect at some other time.
fn awake(seen: &ReadWorkload<'_>, done: &str) -> Result<(), Failure> {
    if !paused(&seen.live) {
        return Ok(());
    }
    Err(Failure::new(codes::ROLLOUT_PAUSED, format!("{} is paused and cannot be {done}", seen.target))
        .next("resume it first with k8s_rollout action=resume"))
}

/// Whether a workload is paused.
pub(super) fn paused(object: &Value) -> bool {
    object["spec"]["paused"] == true
}

fn pause(seen: &ReadWorkload<'_>, wanted: bool) -> Result<RolloutPlan, Failure> {
    if seen.workload != Workload::Deployment {
        return Err(Failure::new(codes::UNSUPPORTED_KIND, "only a Deployment can be paused and resumed")
            .next("hold a StatefulSet back by its partition, with k8s_patch"));
    }
    let patch = ObjectPatch::Merge(json!({ "spec": { "paused": wanted } }).into());
    Ok(RolloutPlan { patch: (paused(&seen.live) != wanted).then_some(patch), ..RolloutPlan::default() })
}

/// Whether every wanted image is the one it has.
pub(super) fn images_are(object: &Value, wanted: &BTreeMap<String, Image>) -> bool {
    images::chosen(&object["spec"]["template"], wanted).is_ok_and(|chosen| chosen.changes.is_empty())
}

fn set_images(object: &Value, wanted: &BTreeMap<String, Image>) -> Result<RolloutPlan, Failure> {
    let chosen = images::chosen(&object["spec"]["template"], wanted)?;
    let mut lists = BTreeMap::<&str, Vec<Value>>::new();
    for change in &chosen.changes {
        lists.entry(change.list).or_default().push(json!({ "name": change.name, "image": change.to }));
    }
    let patch = (!lists.is_empty()).then(|| {
        let lists: Map<String, Value> = lists.into_iter().map(|(list, all)| (list.to_owned(), all.into())).collect();
        ObjectPatch::Strategic(json!({ "spec": { "template": { "spec": lists } } }).into())
    });
    Ok(RolloutPlan { patch, images: Some(chosen.images), ..RolloutPlan::default() })
}

async fn undo(
    seen: &ReadWorkload<'_>,
    known: &[WorkloadRevision],
    wanted: Option<u64>,
    acting: Option<&Permit>,
) -> Result<RolloutPlan, Failure> {
    awake(seen, "rolled back")?;
    let revision = match wanted {
        Some(number) => known.iter().find(|r| r.number == number),
        None => known.iter().find(|r| !r.current),
    };
    let Some(revision) = revision else { return Err(no_goal(wanted, known)) };
    let same = revision.template == *seen.template();
    Ok(RolloutPlan {
        patch: if same { None } else { Some(back(seen, revision, acting).await?) },
        to_revision: Some(revision.number),
        images: Some(Images { from: images::named(seen.template()), to: images::named(&revision.template) }),
        ..RolloutPlan::default()
    })
}

fn no_goal(wanted: Option<u64>, known: &[WorkloadRevision]) -> Failure {
    match wanted {
        Some(wanted) => no_revision(wanted, known.iter().map(|revision| revision.number)),
        None => Failure::new(codes::REVISION_NOT_FOUND, "there is no earlier revision to go back to")
            .next("look at the history with k8s_rollout_status"),
    }
}

/// The patch back to a revision, from the very object that keeps it: what was read masked must not be written back.
async fn back(
    seen: &ReadWorkload<'_>,
    revision: &WorkloadRevision,
    acting: Option<&Permit>,
) -> Result<ObjectPatch, Failure> {
    let gone = || {
        Failure::new(codes::REVISION_NOT_FOUND, format!("revision {} is gone", revision.number))
            .next("look at the history with k8s_rollout_status")
    };
    let kind = seen.cluster.kind(seen.workload.kept_as()).await?;
    let place = seen.cluster.place(&kind, seen.target.namespace(), Wildcard::Refused).await?;
    let kept = seen.cluster.sealed(&place.object(&revision.name)?).await?;
    match seen.workload {
        Workload::Deployment => {
            let mut template = kept.part("/spec/template").ok_or_else(gone)?;
            template.remove(&format!("/metadata/labels/{TEMPLATE_HASH}"));
            let mut patch: SealedValue = json!([
                { "op": "replace", "path": "/spec/template" },
                { "op": "add", "path": "/metadata/annotations" },
            ])
            .into();
            patch.set("/0/value", template);
            patch.set("/1/value", annotations(seen, &kept, acting));
            Ok(ObjectPatch::Json(patch))
        }
        Workload::StatefulSet | Workload::DaemonSet => Ok(ObjectPatch::Strategic(kept.part("/data").ok_or_else(gone)?)),
    }
}

/// The annotations of the revision, with the Deployment's own bookkeeping and the run's mark.
fn annotations(seen: &ReadWorkload<'_>, kept: &SealedValue, acting: Option<&Permit>) -> SealedValue {
    let pointer = |key: &str| format!("/{}", key.replace('~', "~0").replace('/', "~1"));
    let mut annotations = kept.part("/metadata/annotations").unwrap_or_else(|| json!({}).into());
    for key in BOOKKEEPING.into_iter().chain([RUN_MARK]) {
        annotations.remove(&pointer(key));
        if let Some(own) = seen.sealed.part(&format!("/metadata/annotations{}", pointer(key))) {
            annotations.set(&pointer(key), own);
        }
    }
    if let Some(run) = acting.and_then(Permit::run) {
        annotations.set(&pointer(RUN_MARK), json!(run.to_string()));
    }
    annotations
}
