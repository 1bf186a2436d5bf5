//! `helm_recover`: frees a release that an operation left pending. A run of its own, never done by itself.
//!
//! Only what nobody is at work on any more is freed: no run holds the release, and the operation is old enough to have
//! ended by its own timeouts.

use super::grammar::{HelmTimeout, LONGEST, ReleaseName};
use super::preview;
use super::release::{ReleaseRef, RevisionSummary};
use super::settled::probed;
use super::{HelmDeps, TOOLSET, hold, rollback, uninstall};
use crate::codes;
use catalog::{ProbeResult, Progress, Tool, ToolPreview, ToolSpec};
use domain::{Effect, Failure, RunId};
use kubernetes::k8s::reply::{ClusterNote, ClusterReplyFields};
use policy::Permit;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::json;
use target::grammar::Label;

pub(super) struct Recover {
    pub(super) kit: HelmDeps,
}

#[derive(Debug, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct Args {
    release: ReleaseName,
    namespace: Option<Label>,
    cluster: Option<Label>,
}

#[derive(Debug, Serialize, JsonSchema)]
pub(super) struct RecoverOutput {
    /// The state it was stuck in.
    was: String,
    /// `rollback` or `uninstall`.
    action: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    revision: Option<u64>,
    status: String,
    #[serde(flatten)]
    common: ClusterReplyFields,
}

/// What frees a release.
enum RecoveryPath<'a> {
    /// Back to this revision.
    Back(&'a RevisionSummary),
    /// There is nothing to go back to.
    Away,
}

impl Args {
    fn spot<'p>(&self, kit: &'p HelmDeps, permit: &'p Permit) -> Result<ReleaseRef<'p>, Failure> {
        let place = (self.cluster.as_ref(), self.namespace.as_ref());
        let spot = ReleaseRef::to_change(kit, permit, place, &self.release, None)?;
        spot.unprotected()?;
        Ok(spot)
    }
}

impl Recover {
    /// Whether it may be freed: pending, old enough, and nobody's.
    fn stuck(&self, newest: &RevisionSummary, holder: Option<RunId>) -> Result<(), Failure> {
        if !newest.status.starts_with("pending-") {
            let message = format!("revision {} is {}; nothing is pending", newest.revision, newest.status);
            return Err(Failure::new(codes::NOT_LOCKED, message).next("nothing has to be freed; look with helm_get"));
        }
        let age = newest.age(self.kit.cursors.now()).unwrap_or_default();
        let least = self.kit.helm.config().abandoned_after;
        if let Some(run) = holder {
            return Err(Failure::new(codes::STILL_RUNNING, format!("run {run} is at work on this release"))
                .next(format!("wait for it with await_run {run}"))
                .details(json!({ "run": run.to_string() })));
        }
        if age < least {
            let left = least.saturating_sub(age).as_secs().max(1);
            return Err(Failure::new(codes::STILL_RUNNING, format!("{} began {} s ago", newest.status, age.as_secs()))
                .next(format!("somebody may be at work on it; call again in {left} s"))
                .details(json!({ "revision": newest.revision, "status": newest.status, "age_s": age.as_secs() })));
        }
        Ok(())
    }
}

fn way<'a>(past: &'a [RevisionSummary], newest: &RevisionSummary) -> Result<RecoveryPath<'a>, Failure> {
    if newest.status == "pending-install" {
        return Ok(RecoveryPath::Away);
    }
    rollback::last_good(past, newest.revision).map(RecoveryPath::Back).ok_or_else(|| {
        Failure::new(kubernetes::codes::REVISION_NOT_FOUND, "there is no earlier revision that was deployed")
            .next("ask an admin; helm_uninstall removes the release")
    })
}

impl Tool for Recover {
    const SPEC: ToolSpec = ToolSpec::new("helm_recover", TOOLSET, Effect::Disrupt)
        .says(
            "Free a stuck release",
            "Free a release stuck in a pending state: roll back to the last good revision, or remove a first install.",
        )
        .hint(
            "For agents on call, where killed upgrades leave releases locked; it rests on the last good revision, so \
             a release that never had one is removed.",
        )
        .deadline(LONGEST);
    type Args = Args;
    type Output = RecoverOutput;

    fn effect(_: &Args) -> Effect {
        Effect::Disrupt
    }

    async fn preview(&self, permit: &Permit, args: &Args) -> Result<Option<ToolPreview>, Failure> {
        let spot = args.spot(&self.kit, permit)?;
        let (past, newest) = spot.history().await?;
        let other = hold::holder(&self.kit, permit, &spot).await?.filter(|run| Some(*run) != permit.run());
        self.stuck(&newest, other)?;
        let (mut preview, action) = match way(&past, &newest)? {
            RecoveryPath::Back(goal) => {
                (rollback::drawn(&spot, &newest, goal).await?, format!("roll back to {}", goal.revision))
            }
            RecoveryPath::Away => {
                let mut preview = preview::of(&spot, Some(&newest));
                uninstall::describe(&mut preview, &spot, &spot.standing(Some(newest.revision)).await?).await?;
                (preview, "remove the first install".to_owned())
            }
        };
        preview.judge(format!("stuck: revision {} is {} since {}", newest.revision, newest.status, newest.updated));
        let labels = spot.labels(newest.revision).await?;
        if let Some(run) = labels[super::settled::LABEL].as_str().and_then(|run| RunId::parse(run).ok()) {
            preview.line(format!("begun by run {run}"));
        }
        Ok(Some(preview::drawn(
            &spot.cluster,
            preview,
            format!("free release {}/{}: {action}", spot.namespace, spot.name),
        )))
    }

    async fn probe(&self, permit: &Permit, args: &Args) -> ProbeResult {
        let looked = async { args.spot(&self.kit, permit)?.past().await };
        match looked.await {
            // A first install that was removed.
            Ok(past) if past.is_empty() => ProbeResult::Done(None),
            Ok(past) => match rollback::since(&past, permit, None) {
                None if past.last().is_some_and(|newest| !newest.is_pending()) => ProbeResult::Unknown,
                made => probed(&past, made),
            },
            Err(_) => ProbeResult::Unknown,
        }
    }

    async fn run(&self, permit: &Permit, args: Args, _: &Progress) -> Result<RecoverOutput, Failure> {
        let spot = args.spot(&self.kit, permit)?;
        let patience = HelmTimeout::of(None);
        let work = async {
            let (past, newest) = spot.history().await?;
            // The hold is this run's, so nobody else's.
            self.stuck(&newest, None)?;
            let (action, made) = match way(&past, &newest)? {
                RecoveryPath::Back(goal) => {
                    let made = rollback::carry_out(&spot, newest.revision, goal.revision, (true, patience)).await?;
                    ("rollback", Some(made))
                }
                RecoveryPath::Away => {
                    let how = uninstall::UninstallOptions { keep_history: false, wait: true, patience };
                    uninstall::carry_out(&spot, &how).await?;
                    ("uninstall", None)
                }
            };
            Ok((newest.status, action, made))
        };
        let (was, action, made) = hold::holding(&self.kit, permit, &spot, work).await?;
        let named = (args.cluster.is_some(), args.namespace.is_some());
        Ok(RecoverOutput {
            was,
            action: action.to_owned(),
            revision: made.as_ref().map(|made| made.revision),
            status: made.map_or_else(|| "uninstalled".to_owned(), |made| made.status),
            common: ClusterNote::answer(&spot.cluster, Some(&spot.namespace), named),
        })
    }
}
