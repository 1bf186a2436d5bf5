//! `helm_get`: one release: its state, its revisions, its values, what it made, and what going back would change.

use super::grammar::ReleaseName;
use super::lines::Lines;
use super::objects::{differences, identity, shown};
use super::release::{Spot, Standing};
use super::{HelmKit, TOOLSET, sheet};
use crate::cursor::Cursor;
use crate::grammar::Label;
use crate::k8s::at;
use crate::k8s::reply::{Common, MOST_BYTES, Omitted, ROOM, size_of, thin};
use catalog::{Progress, Tool, ToolSpec};
use domain::{Code, Effect, Failure};
use policy::Permit;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

/// How many objects are named.
const NAMED: usize = 200;
/// How many revisions are told of.
const REVISIONS: usize = 50;

pub(super) struct Get {
    pub(super) kit: HelmKit,
}

#[derive(Debug, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct Args {
    release: ReleaseName,
    namespace: Option<Label>,
    show: Option<Show>,
    #[schemars(range(min = 1))]
    revision: Option<u64>,
    cursor: Option<Cursor>,
    cluster: Option<Label>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
enum Show {
    #[default]
    Status,
    History,
    Values,
    AllValues,
    Manifest,
    Hooks,
    Notes,
    Diff,
}

#[derive(Debug, Default, Serialize, JsonSchema)]
pub(super) struct Got {
    #[serde(skip_serializing_if = "Option::is_none")]
    status: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    revision: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    chart: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    description: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    deployed_at: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    resources: Option<Vec<String>>,
    /// How long an operation has been under way.
    #[serde(skip_serializing_if = "Option::is_none")]
    locked_for_s: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    revisions: Option<Vec<Value>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    values: Option<Value>,
    #[serde(skip_serializing_if = "Option::is_none")]
    objects: Option<Vec<String>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    text: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    diff: Option<String>,
    /// Whether it holds words of the chart's author.
    #[serde(skip)]
    speaks: bool,
    #[serde(flatten)]
    common: Common,
}

/// Which revision is shown, and the line to go on with.
#[derive(Debug, Serialize, Deserialize)]
struct Place {
    r: u64,
    l: usize,
}

impl Tool for Get {
    const SPEC: ToolSpec = ToolSpec::new("helm_get", TOOLSET, Effect::Read)
        .says(
            "Show a release",
            "One release: status (default), history, values, all_values, manifest, hooks, notes, or diff of revision against the current one.",
        )
        .hint(
            "For agents that explain what is deployed and how it was configured; values that look secret are masked, \
             and a manifest can be long.",
        )
        .idempotent();
    type Args = Args;
    type Output = Got;

    fn effect(_: &Args) -> Effect {
        Effect::Read
    }

    fn about(args: &Args) -> Option<String> {
        let shown = serde_json::to_value(args.show.unwrap_or_default()).ok()?;
        shown.as_str().map(str::to_owned)
    }

    fn taints(got: &Got) -> bool {
        got.speaks
    }

    async fn run(&self, permit: &Permit, args: Args, _: &Progress) -> Result<Got, Failure> {
        let cluster = at::cluster(&self.kit.clusters, permit, args.cluster.as_ref())?;
        let spot = Spot::of(&self.kit, cluster, args.namespace.as_ref(), &args.release)?;
        let place: Option<Place> =
            args.cursor.as_ref().map(|cursor| self.kit.cursors.open(permit, &args, cursor)).transpose()?;
        let revision = place.as_ref().map(|place| place.r).or(args.revision);
        let named = (args.cluster.is_some(), args.namespace.is_some());
        let mut got = Got { common: Common::from(&spot.cluster, Some(&spot.namespace), named), ..Got::default() };
        let text = match args.show.unwrap_or_default() {
            Show::Status => return self.status(&spot, revision, got).await,
            Show::History => return history(&spot, got).await,
            Show::Values => return values(&spot, revision, got, false).await,
            Show::AllValues => return values(&spot, revision, got, true).await,
            Show::Manifest => {
                let standing = spot.standing(revision).await?;
                listed(&spot, &standing, &standing.objects()?, &mut got)?
            }
            Show::Hooks => {
                let standing = spot.standing(revision).await?;
                listed(&spot, &standing, &standing.hook_objects()?, &mut got)?
            }
            Show::Notes => {
                let standing = spot.standing(revision).await?;
                got.revision = Some(standing.revision);
                got.speaks = !standing.info.notes.is_empty();
                spot.cluster.masked_text(&standing.info.notes, &standing.secrets(&spot.cluster)?)
            }
            Show::Diff => difference(&spot, revision, &mut got).await?,
        };
        let (revision, from) = (got.revision.unwrap_or_default(), place.map_or(0, |place| place.l));
        let room = ROOM.saturating_sub(size_of(&got.objects));
        let page = Lines::masked(&text).page(from, room);
        if let Some(next) = page.next {
            let place = Place { r: args.revision.unwrap_or(revision), l: next };
            got.common.next_cursor = Some(self.kit.cursors.seal(permit, &args, &place)?);
            let lines = u64::try_from(page.left).unwrap_or(u64::MAX);
            got.common.cut(Omitted { lines, ..Omitted::default() }, "go on with cursor");
            // What was named on the first page is known.
            got.objects = got.objects.filter(|_| from == 0).map(|objects| objects.into_iter().take(20).collect());
        }
        match args.show {
            Some(Show::Diff) => got.diff = Some(page.text),
            Some(_) | None => got.text = Some(page.text),
        }
        fit(&mut got);
        Ok(got)
    }
}

impl Get {
    async fn status(&self, spot: &Spot<'_>, revision: Option<u64>, mut got: Got) -> Result<Got, Failure> {
        let standing = spot.standing(revision).await?;
        let (past, newest) = spot.history().await?;
        let known = standing.secrets(&spot.cluster)?;
        let objects = standing.objects()?;
        got.resources = Some(objects.iter().take(NAMED).map(identity).collect());
        got.chart = past.iter().find(|past| past.revision == standing.revision).map(|past| past.chart.clone());
        got.status = Some(standing.info.status.clone());
        got.revision = Some(standing.revision);
        got.description = Some(spot.cluster.masked_text(&standing.info.description, &known));
        got.deployed_at = Some(standing.info.last_deployed.clone());
        if newest.is_pending() {
            got.locked_for_s = newest.age(self.kit.cursors.now()).map(|age| age.as_secs());
            got.common.hint = Some("another operation is under way; if it was abandoned, use helm_recover".to_owned());
        }
        fit(&mut got);
        Ok(got)
    }
}

async fn history(spot: &Spot<'_>, mut got: Got) -> Result<Got, Failure> {
    let (past, _) = spot.history().await?;
    let text = |text: &str| redact::redact(&spot.cluster.masked_text(text, &Default::default()));
    let one = |past: &super::release::Past| {
        let mut description = text(&past.description);
        crate::reply::cut_text(&mut description, 200);
        json!({
            "revision": past.revision, "status": past.status, "chart": past.chart, "app_version": past.app_version,
            "updated": past.updated, "description": description,
        })
    };
    got.revisions = Some(past.iter().rev().take(REVISIONS).map(one).collect());
    if past.len() > REVISIONS {
        let items = u64::try_from(past.len() - REVISIONS).unwrap_or(u64::MAX);
        got.common.cut(Omitted { items, ..Omitted::default() }, "the newest are shown; name an older one by revision");
    }
    Ok(got)
}

async fn values(spot: &Spot<'_>, revision: Option<u64>, mut got: Got, all: bool) -> Result<Got, Failure> {
    let standing = spot.standing(revision).await?;
    let raw = match all {
        false => Value::Object(standing.config.clone()),
        true => spot.all_values(standing.revision).await?,
    };
    let mut shown = spot.cluster.masked_values(raw, &standing.secrets(&spot.cluster)?);
    let bytes = thin(&mut shown, ROOM);
    if bytes > 0 {
        got.common.cut(Omitted { bytes, ..Omitted::default() }, "the whole of it is too large; see show=manifest");
    }
    got.revision = Some(standing.revision);
    got.values = Some(shown);
    Ok(got)
}

/// Names objects and gives their text.
fn listed(spot: &Spot<'_>, standing: &Standing, objects: &[Value], got: &mut Got) -> Result<String, Failure> {
    got.revision = Some(standing.revision);
    got.objects = Some(objects.iter().take(NAMED).map(identity).collect());
    Ok(shown(&spot.cluster, &standing.secrets(&spot.cluster)?, objects))
}

/// What a rollback to the revision would change.
async fn difference(spot: &Spot<'_>, revision: Option<u64>, got: &mut Got) -> Result<String, Failure> {
    let (past, newest) = spot.history().await?;
    let goal = match revision {
        Some(revision) => revision,
        None => past.iter().rev().map(|past| past.revision).find(|revision| *revision < newest.revision).ok_or_else(
            || {
                Failure::new(Code::RevisionNotFound, "there is no earlier revision to compare with")
                    .next("name revision")
            },
        )?,
    };
    let (now, then) = (spot.standing(Some(newest.revision)).await?, spot.standing(Some(goal)).await?);
    let known = now.secrets(&spot.cluster)?.and(then.secrets(&spot.cluster)?);
    let found = differences(&spot.cluster, &known, &now.objects()?, &then.objects()?);
    got.revision = Some(goal);
    got.objects = Some(found.iter().take(NAMED).map(|found| format!("{} {}", found.action, found.object)).collect());
    Ok(sheet::shown(&found).trim_start().to_owned())
}

/// Lists of names give way to what was asked for.
fn fit(got: &mut Got) {
    while size_of(got) > MOST_BYTES {
        let Some(names) = got.objects.as_mut().or(got.resources.as_mut()).filter(|names| !names.is_empty()) else {
            return;
        };
        let left = names.len() / 2;
        let items = u64::try_from(names.len() - left).unwrap_or(u64::MAX);
        names.truncate(left);
        got.common.cut(Omitted { items, ..Omitted::default() }, "see show=manifest");
    }
}
