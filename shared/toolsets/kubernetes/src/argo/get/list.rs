//! The objects of a kind, page by page, or all that belong to one Rollout.

use super::super::kinds::ArgoKindArg;
use super::super::tree::{belonging, newest_first};
use super::super::view::{REVISION, RolloutView};
use super::{ArgoGet, ArgoGetOutput, Args};
use crate::client::{Cluster, KindScope, ListQuery, MaskDetail, Wildcard};
use crate::k8s::at;
use crate::k8s::measure::age;
use crate::k8s::pages::ObjectsPageToken;
use crate::k8s::project::{ObjectRow, head};
use crate::k8s::reply::{ClusterNote, Omitted, ROOM, rows_that_fit};
use domain::{Failure, Moment};
use policy::Permit;
use serde_json::{Value, json};

const PAGE: u32 = 100;
const NARROW: &str = "narrow with namespace or rollout, or go on with next_cursor";

/// One page, before it is cut.
struct UncutPage {
    objects: Vec<Value>,
    next: Option<String>,
    remaining: Option<u64>,
    warnings: Vec<String>,
}

impl ArgoGet {
    pub(super) async fn several(
        &self,
        permit: &Permit,
        cluster: &Cluster<'_>,
        place: &KindScope,
        args: &Args,
    ) -> Result<ArgoGetOutput, Failure> {
        let spot = match &args.cursor {
            Some(cursor) => self.kit.cursors.open(permit, args, cursor)?,
            None => ObjectsPageToken::default(),
        };
        let UncutPage { objects, next, remaining, warnings } = match &args.rollout {
            Some(_) => owned(cluster, place, args).await?,
            None => {
                let query = ListQuery { limit: PAGE, cursor: spot.c.clone(), ..ListQuery::default() };
                let page = cluster.list(place, &query, MaskDetail::Clean).await?;
                UncutPage { objects: page.items, next: page.cursor, remaining: page.remaining, warnings: page.warnings }
            }
        };
        if objects.is_empty() && args.cursor.is_none() {
            at::explain_empty(cluster, place).await?;
        }
        let now = self.kit.cursors.now();
        let rows = objects.iter().skip(spot.o).map(|object| row(args.sort(), object, args.everywhere(), now));
        let (rows, left) = rows_that_fit(rows.collect(), ROOM);
        let mut found =
            ArgoGetOutput { common: ClusterNote::answer_at(cluster, place, args.named()), ..ArgoGetOutput::default() };
        if let Some(spot) = spot.after(rows.len(), left, next) {
            found.common.next_cursor = Some(self.kit.cursors.seal(permit, args, &spot)?);
            let items = u64::try_from(left).unwrap_or_default() + remaining.unwrap_or_default();
            found.common.cut(Omitted { items, ..Omitted::default() }, NARROW);
            found.remaining = remaining.map(|_| items).or((left > 0).then_some(items));
        }
        found.common.warnings = warnings;
        found.count = Some(rows.len());
        found.items = Some(rows);
        Ok(found)
    }
}

/// What belongs to one Rollout, newest first. The cluster cannot select by owner, so all are looked at, up to a bound.
async fn owned(cluster: &Cluster<'_>, place: &KindScope, args: &Args) -> Result<UncutPage, Failure> {
    let mut objects = Vec::new();
    if let Some(name) = &args.rollout {
        let kind = super::kinds::kind(cluster, ArgoKindArg::Rollout).await?;
        let above = cluster.place(&kind, place.namespace(), Wildcard::Refused).await?;
        let target = at::target(&above, name)?;
        let rollout = at::get(cluster, &above, &target, MaskDetail::Clean).await?;
        objects = belonging(cluster, args.sort(), place.namespace(), &rollout["metadata"]["uid"]).await?;
    }
    newest_first(&mut objects);
    Ok(UncutPage { objects, next: None, remaining: None, warnings: Vec::new() })
}

/// One object in a line.
pub(super) fn row(sort: ArgoKindArg, object: &Value, everywhere: bool, now: Moment) -> ObjectRow {
    let mut row = head(object, everywhere);
    let mut put = |key: &str, value: Value| {
        if !value.is_null() {
            row.insert(key.to_owned(), value);
        }
    };
    match sort {
        ArgoKindArg::Rollout => {
            let view = RolloutView::of(object);
            let (phase, message) = view.phase();
            put("strategy", json!(view.strategy().as_str()));
            put("phase", json!(phase));
            put("message", json!(message));
            put("step", json!(view.step_text()));
            put("weight", json!(view.weight()));
            put("ready", json!(format!("{}/{}", view.ready(), view.replicas())));
            put("revision", json!(view.revision()));
            put("images", json!(view.images()));
            if view.is_paused() {
                put("paused", json!(true));
            }
        }
        ArgoKindArg::AnalysisRun | ArgoKindArg::Experiment => {
            let said = said(object);
            put("phase", json!(said.0));
            put("message", json!(said.1));
            put("owner", json!(owner(object)));
            put("trigger", json!(trigger(object)));
            put("step", json!(label(object, "step-index")));
            put("revision", json!(revision(object)));
        }
    }
    put("age", json!(age(&object["metadata"]["creationTimestamp"], now)));
    row
}

/// Phase, and why, of an AnalysisRun or an Experiment. One that nobody has looked at is pending.
pub(in super::super) fn said(object: &Value) -> (String, Option<String>) {
    let status = &object["status"];
    let text = |key: &str| status[key].as_str().filter(|text| !text.is_empty()).map(redact::message);
    (text("phase").unwrap_or_else(|| "Pending".to_owned()), text("message"))
}

/// What asked for it: a step, a background analysis, a promotion.
pub(super) fn trigger(object: &Value) -> Option<String> {
    label(object, "rollout-type")
}

pub(super) fn label(object: &Value, key: &str) -> Option<String> {
    object["metadata"]["labels"][key].as_str().map(redact::message)
}

pub(super) fn revision(object: &Value) -> Option<u64> {
    object["metadata"]["annotations"][REVISION].as_str()?.parse().ok()
}

/// `Rollout web`: what it belongs to.
pub(in super::super) fn owner(object: &Value) -> Option<String> {
    let owners = object["metadata"]["ownerReferences"].as_array()?;
    let owner = owners.iter().find(|owner| owner["controller"] == true)?;
    Some(redact::message(&format!("{} {}", owner["kind"].as_str()?, owner["name"].as_str()?)))
}
