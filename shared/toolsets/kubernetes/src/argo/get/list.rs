//! The objects of a kind, page by page, or all that belong to one Rollout.

use super::super::kinds::ArgoKindArg;
use super::super::tree::belonging;
use super::super::view::{REVISION, RolloutView};
use super::{ArgoGet, ArgoGetOutput, Args};
use crate::client::{Cluster, KindScope, ListQuery, MaskDetail, Wildcard};
use crate::k8s::at;
use crate::k8s::grammar::ObjectName;
use crate::k8s::measure::age;
use crate::k8s::pages::{ObjectsPageToken, UncutPage};
use crate::k8s::project::{ObjectRow, head};
use crate::k8s::reply::ClusterNote;
use domain::{Failure, Moment};
use policy::Permit;
use serde_json::{Value, json};

const PAGE: u32 = 100;
const NARROW: &str = "narrow with namespace or rollout, or go on with next_cursor";

impl ArgoGet {
    pub(super) async fn several(
        &self,
        permit: &Permit,
        cluster: &Cluster<'_>,
        place: &KindScope,
        args: &Args,
    ) -> Result<ArgoGetOutput, Failure> {
        let spot: ObjectsPageToken = self.kit.cursors.resume(permit, args, args.cursor.as_ref())?.unwrap_or_default();
        let now = self.kit.cursors.now();
        let rows = |objects: Vec<Value>| {
            objects.iter().map(|object| row(args.sort(), object, args.everywhere(), now)).collect::<Vec<ObjectRow>>()
        };
        let page = match &args.rollout {
            Some(name) => {
                UncutPage { rows: rows(owned(cluster, place, args.sort(), name).await?), ..UncutPage::default() }
            }
            None => {
                let query = ListQuery { limit: PAGE, cursor: spot.c.clone(), ..ListQuery::default() };
                let page = cluster.list(place, &query, MaskDetail::Clean).await?;
                let (next, remaining, warnings) = (page.cursor, page.remaining, page.warnings);
                UncutPage { rows: rows(page.items), next, remaining, warnings }
            }
        };
        if page.rows.is_empty() && args.cursor.is_none() {
            at::explain_empty(cluster, place).await?;
        }
        let mut found =
            ArgoGetOutput { common: ClusterNote::answer_at(cluster, place, args.named()), ..ArgoGetOutput::default() };
        let page = page.cut(spot, &mut found.common, NARROW, |next| self.kit.cursors.seal(permit, args, next))?;
        (found.count, found.remaining, found.items) = (Some(page.rows.len()), page.remaining, Some(page.rows));
        Ok(found)
    }
}

/// What belongs to one Rollout, newest first. The cluster cannot select by owner, so all are looked at, up to a bound.
async fn owned(
    cluster: &Cluster<'_>,
    place: &KindScope,
    sort: ArgoKindArg,
    rollout: &ObjectName,
) -> Result<Vec<Value>, Failure> {
    let kind = super::kinds::kind(cluster, ArgoKindArg::Rollout).await?;
    let above = cluster.place(&kind, place.namespace(), Wildcard::Refused).await?;
    let target = at::target(&above, rollout)?;
    let rollout = at::get(cluster, &above, &target, MaskDetail::Clean).await?;
    belonging(cluster, sort, place.namespace(), &rollout["metadata"]["uid"]).await
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
