//! `helm_get`: one release: its state, its revisions, its values, what it made, and what going back would change.

use super::grammar::ReleaseName;
use super::lines::ShownLines;
use super::objects::{differences, identity, shown};
use super::release::{FullRevision, ReleaseRef};
use super::{HelmDeps, TOOLSET, preview};
use catalog::{Progress, Tool, ToolSpec};
use domain::{Effect, Failure};
use kubernetes::k8s::at;
use kubernetes::k8s::reply::{ClusterNote, ClusterReplyFields, MOST_BYTES, ROOM, size_of, thin};
use policy::Permit;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use target::cursor::Cursor;
use target::grammar::Label;

/// How many objects are named.
const NAMED: usize = 200;
/// How many revisions are told of.
const REVISIONS: usize = 50;

pub(super) struct ReleaseGet {
    pub(super) kit: HelmDeps,
}

#[derive(Debug, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct Args {
    release: ReleaseName,
    namespace: Option<Label>,
    show: Option<ReleasePart>,
    #[schemars(range(min = 1))]
    revision: Option<u64>,
    cursor: Option<Cursor>,
    cluster: Option<Label>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
enum ReleasePart {
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
pub(super) struct ReleaseGetOutput {
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
    common: ClusterReplyFields,
}

/// Which revision is shown, and the line to go on with.
#[derive(Debug, Serialize, Deserialize)]
struct ReleaseGetPageToken {
    r: u64,
    l: usize,
}

impl Tool for ReleaseGet {
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
    type Output = ReleaseGetOutput;

    fn effect(_: &Args) -> Effect {
        Effect::Read
    }

    fn about(args: &Args) -> Option<String> {
        let shown = serde_json::to_value(args.show.unwrap_or_default()).ok()?;
        shown.as_str().map(str::to_owned)
    }

    fn taints(got: &ReleaseGetOutput) -> bool {
        got.speaks
    }

    async fn run(&self, permit: &Permit, args: Args, _: &Progress) -> Result<ReleaseGetOutput, Failure> {
        let cluster = at::cluster(&self.kit.clusters, permit, args.cluster.as_ref())?;
        let spot = ReleaseRef::of(&self.kit, cluster, args.namespace.as_ref(), &args.release)?;
        let place: Option<ReleaseGetPageToken> = self.kit.cursors.resume(permit, &args, args.cursor.as_ref())?;
        let revision = place.as_ref().map(|place| place.r).or(args.revision);
        let named = (args.cluster.is_some(), args.namespace.is_some());
        let mut got = ReleaseGetOutput {
            common: ClusterNote::answer(&spot.cluster, Some(&spot.namespace), named),
            ..ReleaseGetOutput::default()
        };
        let text = match args.show.unwrap_or_default() {
            ReleasePart::Status => return self.status(&spot, revision, got).await,
            ReleasePart::History => return history(&spot, got).await,
            ReleasePart::Values => return values(&spot, revision, got, false).await,
            ReleasePart::AllValues => return values(&spot, revision, got, true).await,
            ReleasePart::Manifest => {
                let standing = spot.standing(revision).await?;
                listed(&spot, &standing, &standing.objects()?, &mut got)?
            }
            ReleasePart::Hooks => {
                let standing = spot.standing(revision).await?;
                listed(&spot, &standing, &standing.hook_objects()?, &mut got)?
            }
            ReleasePart::Notes => {
                let standing = spot.standing(revision).await?;
                got.revision = Some(standing.revision);
                got.speaks = !standing.info.notes.is_empty();
                spot.cluster.masked_text(&standing.info.notes, &standing.secrets(&spot.cluster)?)
            }
            ReleasePart::Diff => difference(&spot, revision, &mut got).await?,
        };
        let (revision, from) = (got.revision.unwrap_or_default(), place.map_or(0, |place| place.l));
        let room = ROOM.saturating_sub(size_of(&got.objects));
        let page = ShownLines::masked(&text).page(from, room);
        if let Some(next) = page.next {
            let place = ReleaseGetPageToken { r: args.revision.unwrap_or(revision), l: next };
            got.common.next_cursor = Some(self.kit.cursors.seal(permit, &args, &place)?);
            got.common.cut_lines(page.left, "go on with cursor");
            // What was named on the first page is known.
            got.objects = got.objects.filter(|_| from == 0).map(|objects| objects.into_iter().take(20).collect());
        }
        match args.show {
            Some(ReleasePart::Diff) => got.diff = Some(page.text),
            Some(_) | None => got.text = Some(page.text),
        }
        fit(&mut got);
        Ok(got)
    }
}

impl ReleaseGet {
    async fn status(
        &self,
        spot: &ReleaseRef<'_>,
        revision: Option<u64>,
        mut got: ReleaseGetOutput,
    ) -> Result<ReleaseGetOutput, Failure> {
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

async fn history(spot: &ReleaseRef<'_>, mut got: ReleaseGetOutput) -> Result<ReleaseGetOutput, Failure> {
    let (past, _) = spot.history().await?;
    let text = |text: &str| redact::redact(&spot.cluster.masked_text(text, &Default::default()));
    let one = |past: &super::release::RevisionSummary| {
        let mut description = text(&past.description);
        target::reply::cut_text(&mut description, 200);
        json!({
            "revision": past.revision, "status": past.status, "chart": past.chart, "app_version": past.app_version,
            "updated": past.updated, "description": description,
        })
    };
    got.revisions = Some(past.iter().rev().take(REVISIONS).map(one).collect());
    let left = past.len().saturating_sub(REVISIONS);
    got.common.cut_items(left, "the newest are shown; name an older one by revision");
    Ok(got)
}

async fn values(
    spot: &ReleaseRef<'_>,
    revision: Option<u64>,
    mut got: ReleaseGetOutput,
    all: bool,
) -> Result<ReleaseGetOutput, Failure> {
    let standing = spot.standing(revision).await?;
    let raw = match all {
        false => Value::Object(standing.config.clone()),
        true => spot.all_values(standing.revision).await?,
    };
    let mut shown = spot.cluster.masked_values(raw, &standing.secrets(&spot.cluster)?);
    let bytes = thin(&mut shown, ROOM);
    got.common.cut_bytes(bytes, "the whole of it is too large; see show=manifest");
    got.revision = Some(standing.revision);
    got.values = Some(shown);
    Ok(got)
}

/// Names objects and gives their text.
fn listed(
    spot: &ReleaseRef<'_>,
    standing: &FullRevision,
    objects: &[Value],
    got: &mut ReleaseGetOutput,
) -> Result<String, Failure> {
    got.revision = Some(standing.revision);
    got.objects = Some(objects.iter().take(NAMED).map(identity).collect());
    Ok(shown(&spot.cluster, &standing.secrets(&spot.cluster)?, objects))
}

/// What a rollback to the revision would change.
async fn difference(
    spot: &ReleaseRef<'_>,
    revision: Option<u64>,
    got: &mut ReleaseGetOutput,
) -> Result<String, Failure> {
    let (past, newest) = spot.history().await?;
    let goal = match revision {
        Some(revision) => revision,
        None => past.iter().rev().map(|past| past.revision).find(|revision| *revision < newest.revision).ok_or_else(
            || {
                Failure::new(kubernetes::codes::REVISION_NOT_FOUND, "there is no earlier revision to compare with")
                    .next("name revision")
            },
        )?,
    };
    let (now, then) = (spot.standing(Some(newest.revision)).await?, spot.standing(Some(goal)).await?);
    let known = now.secrets(&spot.cluster)?.and(then.secrets(&spot.cluster)?);
    let found = differences(&spot.cluster, &known, &now.objects()?, &then.objects()?);
    got.revision = Some(goal);
    got.objects = Some(found.iter().take(NAMED).map(|found| format!("{} {}", found.action, found.object)).collect());
    Ok(preview::shown(&found).trim_start().to_owned())
}

/// Lists of names give way to what was asked for.
fn fit(got: &mut ReleaseGetOutput) {
    while size_of(got) > MOST_BYTES {
        let Some(names) = got.objects.as_mut().or(got.resources.as_mut()).filter(|names| !names.is_empty()) else {
            return;
        };
        let left = names.len() / 2;
        let gone = names.len() - left;
        names.truncate(left);
        got.common.cut_items(gone, "see show=manifest");
    }
}
