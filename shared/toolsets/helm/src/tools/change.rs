//! What installing and upgrading have in common: one plan, rehearsed for the preview and carried out for the run.

use super::chart::{self, ChartText, VersionText};
use super::definitions::{is_definition, without_long_schemas};
use super::grammar::{ChartValues, HelmTimeout, ReleaseName, template_in};
use super::objects::{Difference, decided_differences, differences, identity};
use super::preview::{self, shown};
use super::release::{FullRevision, ReleaseRef, RevisionSummary, read};
use super::settled::{LABEL, after_failure, labelled, probed};
use super::{HelmDeps, fault, hold, risks, taken};
use crate::client::charts::Archive;
use crate::client::{Invocation, Subcommand};
use catalog::{PreviewBuilder, ProbeResult, ToolPreview};
use domain::{Code, Failure};
use kubernetes::client::{BroughtTexts, KnownSecrets, ObjectPair};
use kubernetes::k8s::at;
use kubernetes::k8s::diff_text::whole;
use kubernetes::k8s::reply::{ClusterNote, ClusterReplyFields};
use policy::Permit;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use std::collections::BTreeSet;
use std::time::Duration;
use target::grammar::Label;

/// How long all looks of a preview may take together.
const PREVIEW: Duration = Duration::from_secs(28);
/// How many objects are named in an answer.
const RESOURCES: usize = 100;

/// A call that installs or upgrades.
pub(super) struct ReleaseRequest<'a> {
    pub(super) release: &'a ReleaseName,
    pub(super) chart: &'a ChartText,
    pub(super) version: Option<&'a VersionText>,
    pub(super) namespace: Option<&'a Label>,
    pub(super) cluster: Option<&'a Label>,
    pub(super) values: Option<&'a ChartValues>,
    pub(super) wait: bool,
    pub(super) patience: HelmTimeout,
    pub(super) how: ChangeMode,
}

/// What is done with the release.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum ChangeMode {
    Install { create_namespace: bool },
    Upgrade { keep: KeepValues, install: bool, rollback: bool },
}

/// What becomes of the values a release has.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub(super) enum KeepValues {
    Reset,
    Reuse,
    #[default]
    ResetThenReuse,
}

/// What became of it.
#[derive(Debug, Serialize, JsonSchema)]
pub(super) struct ReleaseOutput {
    release: String,
    namespace: String,
    revision: u64,
    status: String,
    chart: String,
    /// The sha256 of the chart's archive.
    digest: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    from_revision: Option<u64>,
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    rolled_back: bool,
    /// What the chart says to whoever installs it.
    #[serde(skip_serializing_if = "String::is_empty")]
    notes: String,
    resources: Vec<String>,
    /// What would change, for a dry run.
    #[serde(skip_serializing_if = "Option::is_none")]
    diff: Option<String>,
    #[serde(flatten)]
    common: ClusterReplyFields,
}

impl ReleaseOutput {
    /// Whether it holds words of the chart's author.
    pub(super) fn speaks(&self) -> bool {
        !self.notes.is_empty()
    }
}

/// A plan: where, from what, and with which chart.
struct ReleasePlan<'a> {
    spot: ReleaseRef<'a>,
    /// The newest revision that is there; nothing, or one that was uninstalled, for a new release.
    newest: Option<RevisionSummary>,
    archive: Archive,
}

impl ReleaseRequest<'_> {
    async fn plan<'p>(
        &self,
        kit: &'p HelmDeps,
        permit: &'p Permit,
        time: Duration,
    ) -> Result<ReleasePlan<'p>, Failure> {
        kit.plain_values(self.values)?;
        let cluster = at::cluster(&kit.clusters, permit, self.cluster)?.within(time);
        let spot = ReleaseRef::of(kit, cluster, self.namespace, self.release)?;
        spot.unprotected()?;
        let newest = spot.past().await?.last().cloned();
        if let Some(newest) = &newest {
            // A revision that a run of ours is making is pending, and not abandoned.
            if newest.is_pending() {
                hold::free(kit, permit, &spot).await?;
            }
            spot.unlocked(newest)?;
        }
        let there = newest.as_ref().is_some_and(|newest| newest.status != "uninstalled");
        match (self.how, there) {
            (ChangeMode::Install { .. }, true) => {
                return Err(Failure::new(
                    crate::codes::RELEASE_EXISTS,
                    format!("there is a release {} in {}", spot.name, spot.namespace),
                )
                .next("use helm_upgrade, or another name"));
            }
            (ChangeMode::Upgrade { install: false, .. }, false) => return Err(spot.not_found().await),
            (ChangeMode::Install { .. } | ChangeMode::Upgrade { .. }, _) => {}
        }
        let archive = kit.charts.of(permit).fetch(&self.chart.chart()?, &chart::range(self.version)?).await?;
        Ok(ReleasePlan { spot, newest, archive })
    }

    /// Everything but whether it is a rehearsal.
    fn asked(&self, plan: &ReleasePlan<'_>) -> Invocation {
        let subcommand = match self.how {
            ChangeMode::Install { .. } => Subcommand::Install,
            ChangeMode::Upgrade { .. } => Subcommand::Upgrade,
        };
        let values = self.values.cloned().unwrap_or_default().document();
        let asked = plan.spot.ask(subcommand).values(values).flag("--output", "json");
        let asked = asked.flag("--timeout", self.patience.helms_own()).wait(self.wait);
        let asked = match self.how {
            ChangeMode::Install { create_namespace } => {
                // A release that was uninstalled and kept its history does not stand in the way of a new one.
                asked.switch_if(create_namespace, "--create-namespace").switch_if(plan.newest.is_some(), "--replace")
            }
            ChangeMode::Upgrade { keep, install, rollback } => {
                let keep = match keep {
                    KeepValues::Reset => "--reset-values",
                    KeepValues::Reuse => "--reuse-values",
                    KeepValues::ResetThenReuse => "--reset-then-reuse-values",
                };
                asked
                    .switch(keep)
                    .flag("--history-max", 10)
                    .switch_if(install, "--install")
                    .rollback_on_failure(rollback)
            }
        };
        asked.positional(&plan.spot.name).positional(plan.archive.path.display())
    }

    /// What helm says would be. Rendered here and not by the cluster's help: nobody has approved anything yet, and a
    /// template that looks things up would tell whoever asked.
    async fn rehearsed(&self, plan: &ReleasePlan<'_>) -> Result<FullRevision, Failure> {
        match &plan.newest {
            // helm reads the release for the values it keeps.
            Some(newest) if newest.status != "uninstalled" => {
                read(&plan.spot.quiet_text(self.asked(plan).dry_run()).await?)
            }
            // helm's own rehearsal of an installation knows neither the version nor the kinds of the cluster.
            newest => {
                let next = newest.as_ref().map_or(0, |newest| newest.revision) + 1;
                plan.spot.rendered(&plan.archive, &self.values.cloned().unwrap_or_default(), next).await
            }
        }
    }

    /// What an approver is shown.
    pub(super) async fn preview(&self, kit: &HelmDeps, permit: &Permit) -> Result<Option<ToolPreview>, Failure> {
        let plan = self.plan(kit, permit, PREVIEW).await?;
        hold::free(kit, permit, &plan.spot).await?;
        let then = self.rehearsed(&plan).await?;
        let now = match &plan.newest {
            Some(newest) if newest.status != "uninstalled" => Some(plan.spot.standing(Some(newest.revision)).await?),
            Some(_) | None => None,
        };
        let preview = self.drawn(&plan, now.as_ref(), &then).await?;
        kit.pins.note(permit.run(), &plan.archive.sha256);
        let verb = if plan.newest.is_some() { "upgrade" } else { "install" };
        let summary =
            format!("{verb} release {}/{} with chart {}", plan.spot.namespace, plan.spot.name, then.chart_name());
        Ok(Some(preview::drawn(&plan.spot.cluster, preview, summary)))
    }

    async fn drawn(
        &self,
        plan: &ReleasePlan<'_>,
        now: Option<&FullRevision>,
        then: &FullRevision,
    ) -> Result<PreviewBuilder, Failure> {
        let (spot, archive) = (&plan.spot, &plan.archive);
        let mut preview = preview::of(spot, plan.newest.as_ref());
        preview.judge(format!("chart {} {}, sha256 {}", archive.name, archive.version, archive.sha256));
        // First of all warnings: what stands below may not be what is made.
        if archive.contents.may_look_up {
            preview.warn(
                "The chart looks things up in the cluster while it is rendered. Here it found nothing, so what is made may differ from what is shown.",
            );
        }
        if let Some(path) = template_in(&then.config) {
            preview.warn(format!(
                "The value {path} may be evaluated as a template. What it finds in the cluster is not shown here."
            ));
        }
        if !then.app_version().is_empty() {
            let before = plan.newest.as_ref().map(|newest| newest.app_version.as_str()).unwrap_or("none");
            preview.line(format!("app version {before} → {}", then.app_version()));
        }
        self.tell_flags(&mut preview);
        let known = known(plan, now, then)?;
        let (objects, hooks) = (then.objects()?, then.hook_objects()?);
        for hook in then.hooks.iter().filter(|hook| !hook.is_test()) {
            preview.judge(format!("hook: {}", hook.line()));
        }
        let everything: Vec<Value> = objects.iter().chain(&hooks).cloned().collect();
        risks::within_bounds(spot, &everything)?;
        risks::judge(spot, &everything).await?.warnings().into_iter().for_each(|warning| preview.warn(warning));
        tell_chart(&mut preview, archive, now.is_none());
        if !then.info.notes.is_empty() {
            preview.line("notes that whoever asked is given:");
            let notes = spot.cluster.masked_text(&then.info.notes, &known);
            notes.lines().for_each(|line| preview.line(format!("  | {line}")));
        }
        let before = now.map(FullRevision::objects).transpose()?.unwrap_or_default();
        let known_before: BTreeSet<String> = before.iter().map(identity).collect();
        // A definition that is there already is left alone.
        let new = objects.iter().filter(|object| !known_before.contains(&identity(object)) && !is_definition(object));
        let taken = taken::taken(spot, new).await;
        if !taken.is_empty() {
            let named = taken.join(", ");
            preview.warn(format!(
                "These are in the cluster already and not of this release, so helm will refuse: {named}."
            ));
        }
        // What the standing release holds is known to be secret. What the new one puts into its Secrets is not: whoever
        // asks chooses it, and could hide anything behind it.
        let hidden = now.map(|now| now.secrets(&spot.cluster)).transpose()?.unwrap_or_default();
        let values = self.values.map(ChartValues::value).unwrap_or_default();
        let brought = BroughtTexts::besides(&spot.cluster, [&values], &known, &hidden);
        tell_values(&mut preview, spot, (&known, &brought), now, then);
        let rendered = BroughtTexts::besides(&spot.cluster, &everything, &known, &hidden);
        let decided =
            |now: &[Value], then: &[Value]| decided_differences(&spot.cluster, &known, &rendered, (now, then));
        let objects = if now.is_none() { without_long_schemas(&mut preview, objects) } else { objects };
        preview::differences(&mut preview, &decided(&before, &objects));
        decided(&[], &hooks).iter().for_each(|hook| preview::hook(&mut preview, hook));
        Ok(preview)
    }

    fn tell_flags(&self, preview: &mut PreviewBuilder) {
        let wait = if self.wait { "waits until it is ready" } else { "does not wait" };
        preview.line(format!("{wait}, at most {} for each step", self.patience.helms_own()));
        match self.how {
            ChangeMode::Install { create_namespace: true } => preview.line("creates the namespace if it is missing"),
            ChangeMode::Upgrade { rollback: true, .. } => preview.line("rolls back by itself if it fails"),
            ChangeMode::Install { create_namespace: false } | ChangeMode::Upgrade { rollback: false, .. } => {}
        }
    }

    /// What a look says about a run whose answer was lost.
    pub(super) async fn probe(&self, kit: &HelmDeps, permit: &Permit) -> Result<ProbeResult, Failure> {
        let cluster = at::cluster(&kit.clusters, permit, self.cluster)?;
        let spot = ReleaseRef::of(kit, cluster, self.namespace, self.release)?;
        let past = spot.past().await?;
        let made = labelled(&spot, &past, permit.run()).await?;
        Ok(probed(&past, made))
    }

    /// Does it, or for a call that only reads says what would be done.
    pub(super) async fn run(&self, kit: &HelmDeps, permit: &Permit, dry: bool) -> Result<ReleaseOutput, Failure> {
        let plan = self.plan(kit, permit, self.patience.ours() + super::release::LOOK * 2).await?;
        if dry {
            // Rendered here: a chart's `lookup` sees nothing, so that no call that only reads pulls secrets through it.
            return self.dry(&plan).await;
        }
        kit.pins.check(permit.run(), &plan.archive.sha256)?;
        Box::pin(hold::holding(kit, permit, &plan.spot, self.carry_out(permit, &plan))).await
    }

    async fn dry(&self, plan: &ReleasePlan<'_>) -> Result<ReleaseOutput, Failure> {
        let now = match &plan.newest {
            Some(newest) if newest.status != "uninstalled" => Some(plan.spot.standing(Some(newest.revision)).await?),
            Some(_) | None => None,
        };
        let keep = match self.how {
            ChangeMode::Install { .. } => KeepValues::Reset,
            ChangeMode::Upgrade { keep, .. } => keep,
        };
        let (then, hint) = match &now {
            Some(now) => {
                let values = self.values.cloned().unwrap_or_default();
                plan.spot.upgraded(&plan.archive, &values, keep, now).await?
            }
            None => (self.rehearsed(plan).await?, None),
        };
        let known = known(plan, now.as_ref(), &then)?;
        let before = now.as_ref().map(FullRevision::objects).transpose()?.unwrap_or_default();
        let found: Vec<Difference> = differences(&plan.spot.cluster, &known, &before, &then.objects()?);
        let mut changed = self.changed(plan, &then, &known)?;
        changed.status = "dry-run".to_owned();
        changed.common.hint = hint;
        changed.diff = Some(shown(&found).trim_start().to_owned());
        if now.is_some() && keep == KeepValues::Reuse {
            let message =
                "Values that only the new chart has by default are set here; keep_values=reuse leaves them out.";
            changed.common.warnings.push(message.to_owned());
        }
        Ok(changed)
    }

    async fn carry_out(&self, permit: &Permit, plan: &ReleasePlan<'_>) -> Result<ReleaseOutput, Failure> {
        let (spot, base) = (&plan.spot, plan.newest.as_ref().map_or(0, |newest| newest.revision));
        let run = permit.run().map(|run| run.to_string()).unwrap_or_default();
        // Once more under the hold: whoever was first has moved it on.
        if spot.past().await?.last().map(|newest| newest.revision) != plan.newest.as_ref().map(|newest| newest.revision)
        {
            return Err(Failure::new(Code::Stale, "the release moved on meanwhile; nothing was sent")
                .next("look at it again, then call again"));
        }
        let asked = self
            .asked(plan)
            .flag("--labels", format!("{LABEL}={run}"))
            .flag("--description", format!("quartermaster {run}"))
            .within(self.patience.ours());
        let finished = spot.run(asked).await?;
        if finished.success() {
            let made: FullRevision = match finished.text().and_then(read) {
                Ok(made) => made,
                Err(_) => spot.standing(Some(base + 1)).await?,
            };
            let known = made.secrets(&spot.cluster)?;
            return self.changed(plan, &made, &known);
        }
        // What was rendered with the cluster's help may have seen anything there.
        let contents = &plan.archive.contents;
        let looked = contents.may_look_up
            || contents.evaluates_texts
            || spot.templates_in_values()
            || fault::is_rendering(&finished);
        let failure = match looked {
            true => fault::quiet(&finished),
            false => fault::of(&spot.cluster, &KnownSecrets::default(), &finished),
        };
        let made = after_failure(spot, base, failure).await?;
        let standing = spot.standing(Some(made.revision)).await?;
        let known = standing.secrets(&spot.cluster)?;
        self.changed(plan, &standing, &known)
    }

    fn changed(
        &self,
        plan: &ReleasePlan<'_>,
        made: &FullRevision,
        known: &KnownSecrets,
    ) -> Result<ReleaseOutput, Failure> {
        let spot = &plan.spot;
        let all = made.objects()?;
        let mut common = ClusterNote::answer(
            &spot.cluster,
            Some(&spot.namespace),
            (self.cluster.is_some(), self.namespace.is_some()),
        );
        common.cut_items(all.len().saturating_sub(RESOURCES), "see all with helm_get show=manifest");
        let (notes, _) =
            target::written::shown(&spot.cluster.masked_text(&made.info.notes, known), target::written::KeptEnd::First);
        Ok(ReleaseOutput {
            release: spot.name.clone(),
            namespace: spot.namespace.clone(),
            revision: made.revision,
            status: made.info.status.clone(),
            chart: format!("{}-{}", plan.archive.name, plan.archive.version),
            digest: plan.archive.sha256.clone(),
            from_revision: plan.newest.as_ref().map(|newest| newest.revision),
            rolled_back: false,
            notes,
            resources: all.iter().take(RESOURCES).map(identity).collect(),
            diff: None,
            common,
        })
    }
}

/// What is secret in either of the two.
fn known(plan: &ReleasePlan<'_>, now: Option<&FullRevision>, then: &FullRevision) -> Result<KnownSecrets, Failure> {
    let before = now.map(|now| now.secrets(&plan.spot.cluster)).transpose()?.unwrap_or_default();
    Ok(before.and(then.secrets(&plan.spot.cluster)?))
}

/// What the chart does that its objects do not show.
fn tell_chart(preview: &mut PreviewBuilder, archive: &Archive, installs: bool) {
    let contents = &archive.contents;
    if contents.evaluates_texts && !contents.may_look_up {
        preview.warn(
            "The chart evaluates texts as templates (tpl). Such a text could look things up in the cluster, and what is made then differs from what is shown.",
        );
    }
    match installs {
        _ if contents.crds.is_empty() => {}
        true => preview.warn("What stands in the chart's crds folder stays when the release is uninstalled."),
        false => preview.warn("What stands in the chart's crds folder is not touched by an upgrade."),
    }
}

/// How the values would differ, and which would be lost.
fn tell_values(
    preview: &mut PreviewBuilder,
    spot: &ReleaseRef<'_>,
    (known, brought): (&KnownSecrets, &BroughtTexts),
    now: Option<&FullRevision>,
    then: &FullRevision,
) {
    let masked = |standing: &FullRevision| spot.cluster.masked_values(Value::Object(standing.config.clone()), known);
    let before = now.map(masked).unwrap_or_else(|| json!({}));
    let after = masked(then);
    let (pair, hidden) = ObjectPair::for_deciders(&spot.cluster, Some(&before), Some(&after), brought);
    hidden.iter().for_each(|hidden| preview::withheld(preview, "the values", hidden));
    if let Some(text) = whole(pair.now.as_ref(), pair.then.as_ref()) {
        preview.line("values:");
        text.lines().skip(2).for_each(|line| preview.line(line));
    }
    let mut lost = Vec::new();
    dropped("", &before, &after, &mut lost);
    if !lost.is_empty() {
        let named: Vec<&str> = lost.iter().take(10).map(String::as_str).collect();
        preview.warn(format!("Values the release has now would be lost: {}.", named.join(", ")));
    }
}

/// The paths of values that were set and would not be any more.
fn dropped(at: &str, before: &Value, after: &Value, lost: &mut Vec<String>) {
    let (Some(before), after) = (before.as_object(), after.as_object()) else { return };
    for (key, value) in before {
        let path = if at.is_empty() { key.clone() } else { format!("{at}.{key}") };
        match after.and_then(|after| after.get(key)) {
            None => lost.push(path),
            Some(after) => dropped(&path, value, after, lost),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_that_would_be_lost_are_named() {
        let mut lost = Vec::new();
        dropped("", &json!({ "a": { "b": 1, "c": 2 }, "d": 3 }), &json!({ "a": { "b": 9 } }), &mut lost);
        assert_eq!(lost, ["a.c", "d"]);
    }
}
