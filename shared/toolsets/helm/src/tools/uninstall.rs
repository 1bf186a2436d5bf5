//! `helm_uninstall`: removes a release and what it made.

use super::grammar::{HelmTimeout, LONGEST, ReleaseName};
use super::objects::{Difference, decided_differences, identity};
use super::preview;
use super::release::{FullRevision, ReleaseRef};
use super::{HelmDeps, TOOLSET, fault, hold, risks};
use crate::client::Subcommand;
use catalog::{PreviewBuilder, ProbeResult, Progress, Tool, ToolPreview, ToolSpec};
use domain::{Code, Effect, Failure};
use kubernetes::client::{BroughtTexts, KnownSecrets};
use kubernetes::k8s::reply::{ClusterNote, ClusterReplyFields};
use policy::Permit;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use target::grammar::Label;

/// How many objects are named in an answer.
const NAMED: usize = 200;

pub(super) struct Uninstall {
    pub(super) kit: HelmDeps,
}

#[derive(Debug, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct Args {
    release: ReleaseName,
    namespace: Option<Label>,
    keep_history: Option<bool>,
    wait: Option<bool>,
    #[schemars(range(min = 10, max = 900), extend("x-wire" = ["maximum"]))]
    timeout_s: Option<u32>,
    cluster: Option<Label>,
}

#[derive(Debug, Serialize, JsonSchema)]
pub(super) struct UninstallOutput {
    removed: Vec<String>,
    /// What the chart says is to stay.
    kept: Vec<String>,
    #[serde(flatten)]
    common: ClusterReplyFields,
}

impl Args {
    fn spot<'p>(&self, kit: &'p HelmDeps, permit: &'p Permit) -> Result<ReleaseRef<'p>, Failure> {
        let place = (self.cluster.as_ref(), self.namespace.as_ref());
        ReleaseRef::to_change(kit, permit, place, &self.release, self.timeout_s)
    }
}

impl Tool for Uninstall {
    const SPEC: ToolSpec = ToolSpec::new("helm_uninstall", TOOLSET, Effect::Disrupt)
        .says("Uninstall a release", "Remove a release and its objects.")
        .hint(
            "For agents that tidy up preview environments; claims of stateful sets, definitions and whatever the \
             chart keeps stay behind, and the rest of the release is gone.",
        )
        .idempotent()
        .deadline(LONGEST);
    type Args = Args;
    type Output = UninstallOutput;

    fn effect(_: &Args) -> Effect {
        Effect::Disrupt
    }

    async fn preview(&self, permit: &Permit, args: &Args) -> Result<Option<ToolPreview>, Failure> {
        let spot = args.spot(&self.kit, permit)?;
        spot.unprotected()?;
        let (_, newest) = hold::changeable(&self.kit, permit, &spot).await?;
        let now = spot.standing(Some(newest.revision)).await?;
        let mut preview = preview::of(&spot, Some(&newest));
        describe(&mut preview, &spot, &now).await?;
        preview.line(match args.keep_history.unwrap_or(false) {
            true => "its history stays",
            false => "its history goes too: it cannot be rolled back",
        });
        Ok(Some(preview::drawn(&spot.cluster, preview, format!("uninstall release {}/{}", spot.namespace, spot.name))))
    }

    async fn probe(&self, permit: &Permit, args: &Args) -> ProbeResult {
        let looked = async { args.spot(&self.kit, permit)?.past().await };
        match looked.await {
            Ok(past) => match past.last() {
                None => ProbeResult::Done(None),
                Some(newest) if newest.status == "uninstalled" => ProbeResult::Done(None),
                Some(newest) if newest.status == "uninstalling" => ProbeResult::Unknown,
                Some(_) => ProbeResult::NotDone,
            },
            Err(_) => ProbeResult::Unknown,
        }
    }

    async fn run(&self, permit: &Permit, args: Args, _: &Progress) -> Result<UninstallOutput, Failure> {
        let spot = args.spot(&self.kit, permit)?;
        spot.unprotected()?;
        let patience = HelmTimeout::of(args.timeout_s);
        let work = async {
            // A repetition finds nothing, or what its first attempt left half done.
            let Some(newest) = spot.past().await?.last().cloned() else { return Ok((Vec::new(), Vec::new())) };
            if newest.status == "uninstalled" {
                return Ok((Vec::new(), Vec::new()));
            }
            if newest.status != "uninstalling" {
                spot.unlocked(&newest)?;
            }
            let now = spot.standing(Some(newest.revision)).await?;
            let how = UninstallOptions {
                keep_history: args.keep_history.unwrap_or(false),
                wait: args.wait.unwrap_or(true),
                patience,
            };
            carry_out(&spot, &how).await?;
            split(&now)
        };
        let (removed, kept) = hold::holding(&self.kit, permit, &spot, work).await?;
        let named = (args.cluster.is_some(), args.namespace.is_some());
        Ok(UninstallOutput { removed, kept, common: ClusterNote::answer(&spot.cluster, Some(&spot.namespace), named) })
    }
}

/// How a release is removed.
pub(super) struct UninstallOptions {
    pub(super) keep_history: bool,
    pub(super) wait: bool,
    pub(super) patience: HelmTimeout,
}

/// Removes a release. One that is gone meanwhile is gone.
pub(super) async fn carry_out(spot: &ReleaseRef<'_>, how: &UninstallOptions) -> Result<(), Failure> {
    let asked = spot
        .ask(Subcommand::Uninstall)
        .flag("--timeout", how.patience.helms_own())
        .switch_if(how.keep_history, "--keep-history")
        .wait(how.wait)
        .within(how.patience.ours())
        .positional(&spot.name);
    let finished = spot.run(asked).await?;
    if finished.success() {
        return Ok(());
    }
    let failure = fault::of(&spot.cluster, &KnownSecrets::default(), &finished);
    match spot.past().await.map(|past| past.last().map(|newest| newest.status.clone())) {
        Ok(None) => Ok(()),
        Ok(Some(status)) if status == "uninstalled" => Ok(()),
        Ok(Some(_)) => Err(failure),
        Err(_) => Err(Failure::new(Code::OutcomeUnknown, "helm did not end well, and the release cannot be looked at")
            .next("do not call again; look at the release with helm_get")),
    }
}

/// What would go, what would stay, and what is left behind.
pub(super) async fn describe(
    preview: &mut PreviewBuilder,
    spot: &ReleaseRef<'_>,
    now: &FullRevision,
) -> Result<(), Failure> {
    let (objects, known) = (now.objects()?, now.secrets(&spot.cluster)?);
    let (going, staying): (Vec<Value>, Vec<Value>) = objects.into_iter().partition(|object| !is_kept(object));
    for object in &staying {
        preview.judge(format!("stays by its resource policy: {}", identity(object)));
    }
    for hook in now.hooks.iter().filter(|hook| hook.events.iter().any(|event| event.ends_with("-delete"))) {
        preview.judge(format!("hook: {}", hook.line()));
    }
    for object in going.iter().filter(|object| object["kind"] == "StatefulSet") {
        if object["spec"]["volumeClaimTemplates"].as_array().is_some_and(|claims| !claims.is_empty()) {
            preview.warn(format!("The volumes of {} are left behind.", identity(object)));
        }
    }
    risks::judge(spot, &going).await?.warnings().into_iter().for_each(|warning| preview.warn(warning));
    // Which objects go is what matters; what is in them is of no use to the approver any more.
    let gone = decided_differences(&spot.cluster, &known, &BroughtTexts::default(), (&going, &[]));
    let gone: Vec<Difference> = gone.into_iter().map(|gone| Difference { text: String::new(), ..gone }).collect();
    preview::differences(preview, &gone);
    Ok(())
}

fn split(now: &FullRevision) -> Result<(Vec<String>, Vec<String>), Failure> {
    let (going, staying): (Vec<Value>, Vec<Value>) = now.objects()?.into_iter().partition(|object| !is_kept(object));
    let named = |objects: &[Value]| objects.iter().take(NAMED).map(identity).collect();
    Ok((named(&going), named(&staying)))
}

fn is_kept(object: &Value) -> bool {
    object["metadata"]["annotations"]["helm.sh/resource-policy"] == "keep"
}
