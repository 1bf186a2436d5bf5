//! `helm_rollback`: brings a release back to what one of its revisions was.

use super::grammar::{HelmTimeout, LONGEST, ReleaseName};
use super::objects::decided_differences;
use super::preview;
use super::release::{ReleaseRef, RevisionSummary, no_revision};
use super::settled::{after_failure, probed};
use super::{HelmDeps, TOOLSET, fault, hold, risks};
use crate::client::Subcommand;
use catalog::{PreviewBuilder, ProbeResult, Progress, Tool, ToolPreview, ToolSpec};
use domain::{Effect, Failure, Moment};
use kubernetes::client::{BroughtTexts, KnownSecrets};
use kubernetes::k8s::reply::{ClusterNote, ClusterReplyFields};
use policy::Permit;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use target::grammar::Label;

pub(super) struct RollbackTool {
    pub(super) kit: HelmDeps,
}

#[derive(Debug, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct Args {
    release: ReleaseName,
    namespace: Option<Label>,
    #[schemars(range(min = 1))]
    revision: Option<u64>,
    wait: Option<bool>,
    #[schemars(range(min = 10, max = 900), extend("x-wire" = ["maximum"]))]
    timeout_s: Option<u32>,
    cluster: Option<Label>,
}

#[derive(Debug, Serialize, JsonSchema)]
pub(super) struct RolledBack {
    from_revision: u64,
    to_revision: u64,
    revision: u64,
    status: String,
    #[serde(flatten)]
    common: ClusterReplyFields,
}

impl Args {
    /// Where it goes back to: the revision that is named, else the newest before this one that stood.
    fn goal<'a>(&self, past: &'a [RevisionSummary]) -> Result<&'a RevisionSummary, Failure> {
        let newest = past.last().map_or(0, |newest| newest.revision);
        match self.revision {
            Some(wanted) => past.iter().find(|past| past.revision == wanted).ok_or_else(|| no_revision(wanted, past)),
            None => last_good(past, newest).ok_or_else(|| {
                let failure = Failure::new(
                    kubernetes::codes::REVISION_NOT_FOUND,
                    "there is no earlier revision that was deployed",
                );
                failure.next("list them with helm_get show=history")
            }),
        }
    }

    fn spot<'p>(&self, kit: &'p HelmDeps, permit: &'p Permit) -> Result<ReleaseRef<'p>, Failure> {
        let place = (self.cluster.as_ref(), self.namespace.as_ref());
        ReleaseRef::to_change(kit, permit, place, &self.release, self.timeout_s)
    }
}

/// The newest revision before this one that was once deployed.
pub(super) fn last_good(past: &[RevisionSummary], before: u64) -> Option<&RevisionSummary> {
    let stood = |past: &&RevisionSummary| matches!(past.status.as_str(), "deployed" | "superseded");
    past.iter().rev().filter(|past| past.revision < before).find(stood)
}

impl Tool for RollbackTool {
    const SPEC: ToolSpec = ToolSpec::new("helm_rollback", TOOLSET, Effect::Disrupt)
        .says("Roll a release back", "Roll a release back to revision (default: the previous one).")
        .hint(
            "For agents on call; it brings back manifests and values, not data, so releases whose upgrade migrated a \
             database need a person who knows that.",
        )
        .deadline(LONGEST);
    type Args = Args;
    type Output = RolledBack;

    fn effect(_: &Args) -> Effect {
        Effect::Disrupt
    }

    async fn preview(&self, permit: &Permit, args: &Args) -> Result<Option<ToolPreview>, Failure> {
        let spot = args.spot(&self.kit, permit)?;
        spot.unprotected()?;
        let (past, newest) = hold::changeable(&self.kit, permit, &spot).await?;
        let goal = args.goal(&past)?;
        let preview = drawn(&spot, &newest, goal).await?;
        let summary =
            format!("roll release {}/{} back from {} to {}", spot.namespace, spot.name, newest.revision, goal.revision);
        Ok(Some(preview::drawn(&spot.cluster, preview, summary)))
    }

    async fn probe(&self, permit: &Permit, args: &Args) -> ProbeResult {
        let looked = async {
            let spot = args.spot(&self.kit, permit)?;
            let past = spot.past().await?;
            Ok::<_, Failure>(probed(&past, since(&past, permit, args.revision)))
        };
        looked.await.unwrap_or(ProbeResult::Unknown)
    }

    async fn run(&self, permit: &Permit, args: Args, _: &Progress) -> Result<RolledBack, Failure> {
        let spot = args.spot(&self.kit, permit)?;
        spot.unprotected()?;
        let (from, goal, made) = hold::holding(&self.kit, permit, &spot, async {
            let (past, newest) = spot.history().await?;
            spot.unlocked(&newest)?;
            let goal = args.goal(&past)?.revision;
            let (wait, patience) = (args.wait.unwrap_or(true), HelmTimeout::of(args.timeout_s));
            let made = carry_out(&spot, newest.revision, goal, (wait, patience)).await?;
            Ok((newest.revision, goal, made))
        })
        .await?;
        let named = (args.cluster.is_some(), args.namespace.is_some());
        Ok(RolledBack {
            from_revision: from,
            to_revision: goal,
            revision: made.revision,
            status: made.status,
            common: ClusterNote::answer(&spot.cluster, Some(&spot.namespace), named),
        })
    }
}

/// What going back would change.
pub(super) async fn drawn(
    spot: &ReleaseRef<'_>,
    newest: &RevisionSummary,
    goal: &RevisionSummary,
) -> Result<PreviewBuilder, Failure> {
    let now = spot.standing(Some(newest.revision)).await?;
    let then = spot.standing(Some(goal.revision)).await?;
    let known = now.secrets(&spot.cluster)?.and(then.secrets(&spot.cluster)?);
    let mut preview = preview::of(spot, Some(newest));
    preview.judge(format!("back to revision {}, {}, chart {}", goal.revision, goal.status, goal.chart));
    for hook in then.hooks.iter().filter(|hook| hook.events.iter().any(|event| event.contains("rollback"))) {
        preview.judge(format!("hook: {}", hook.line()));
    }
    let (before, after) = (now.objects()?, then.objects()?);
    let everything: Vec<Value> = after.iter().chain(&then.hook_objects()?).cloned().collect();
    risks::within_bounds(spot, &everything)?;
    risks::judge(spot, &everything).await?.warnings().into_iter().for_each(|warning| preview.warn(warning));
    preview::differences(
        &mut preview,
        &decided_differences(&spot.cluster, &known, &BroughtTexts::default(), (&before, &after)),
    );
    Ok(preview)
}

/// Goes back, and says which revision came of it.
pub(super) async fn carry_out(
    spot: &ReleaseRef<'_>,
    base: u64,
    goal: u64,
    (wait, patience): (bool, HelmTimeout),
) -> Result<RevisionSummary, Failure> {
    let asked = spot
        .ask(Subcommand::Rollback)
        .flag("--timeout", patience.helms_own())
        .flag("--history-max", 10)
        .wait(wait)
        .within(patience.ours())
        .positional(&spot.name)
        .positional(goal);
    let finished = spot.run(asked).await?;
    let failure = fault::of(&spot.cluster, &KnownSecrets::default(), &finished);
    // helm says in words that it is done; the history says which revision it is.
    after_failure(spot, base, failure).await
}

/// The revision that a rollback made since people decided on it. There is no label to know it by.
pub(super) fn since<'a>(
    past: &'a [RevisionSummary],
    permit: &Permit,
    goal: Option<u64>,
) -> Option<&'a RevisionSummary> {
    let decided = permit.approval().map(|approval| approval.at)?;
    let wanted = goal.map(|goal| format!("Rollback to {goal}"));
    past.iter().rev().find(|past| {
        let fits = match &wanted {
            Some(wanted) => past.description == *wanted,
            None => past.description.starts_with("Rollback to "),
        };
        // A pending one has no such description yet.
        (fits || past.status == "pending-rollback") && Moment::parse(&past.updated).is_some_and(|at| at >= decided)
    })
}
