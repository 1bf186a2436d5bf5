//! One object: a Rollout with its tree, an AnalysisRun with its metrics, an Experiment with its templates.

use super::super::kinds::ArgoKindArg;
use super::super::tree::{self, RolloutRevision};
use super::super::view::{RolloutView, step_words};
use super::list::{label, revision, row, said, trigger};
use super::{ArgoGet, ArgoGetOutput, Args};
use crate::client::{Cluster, KindScope, MaskDetail, ResourceRef};
use crate::k8s::at;
use crate::k8s::get::{conditions, visible};
use crate::k8s::project::ObjectRow;
use crate::k8s::reply::{ClusterNote, ClusterReplyFields, ROOM, rows_that_fit};
use domain::Failure;
use serde_json::{Value, json};

/// Measurements of one metric, unless all are asked for.
const LAST: usize = 3;
/// Steps that are written out; nobody has more.
const MOST_STEPS: usize = 100;

impl ArgoGet {
    pub(super) async fn one(
        &self,
        cluster: &Cluster<'_>,
        place: &KindScope,
        target: &ResourceRef,
        args: &Args,
    ) -> Result<ArgoGetOutput, Failure> {
        let object = at::get(cluster, place, target, MaskDetail::Clean).await?;
        let common = ClusterNote::answer_at(cluster, place, args.named());
        let mut found = ArgoGetOutput { name: Some(target.name().to_owned()), common, ..ArgoGetOutput::default() };
        match args.sort() {
            ArgoKindArg::Rollout => self.rollout(cluster, target, &object, &mut found).await?,
            ArgoKindArg::AnalysisRun => {
                (found.phase, found.message) = said_of(&object);
                found.trigger = trigger(&object);
                found.step = label(&object, "step-index");
                found.revision = revision(&object);
                let metrics = metrics(&object, args.is_full());
                found.metrics = Some(fitting(metrics, 9, &mut found.common));
            }
            ArgoKindArg::Experiment => {
                (found.phase, found.message) = said_of(&object);
                found.revision = revision(&object);
                found.templates = Some(fitting(templates(&object), 4, &mut found.common));
                found.analysis_runs =
                    self.rows(cluster, ArgoKindArg::AnalysisRun, target, &object, &mut found.common).await?;
                found.conditions = Some(fitting(conditions(&object), 1, &mut found.common));
            }
        }
        Ok(found)
    }

    async fn rollout(
        &self,
        cluster: &Cluster<'_>,
        target: &ResourceRef,
        object: &Value,
        found: &mut ArgoGetOutput,
    ) -> Result<(), Failure> {
        let view = RolloutView::of(object);
        let (phase, message) = view.phase();
        (found.phase, found.message) = (Some(phase), message);
        found.strategy = Some(view.strategy().as_str());
        found.step = view.step_text();
        found.weight = view.weight();
        found.ready = Some(format!("{}/{}", view.ready(), view.replicas()));
        found.revision = view.revision();
        found.images = Some(view.images());
        found.paused = Some(view.is_paused());
        let reason = |hold: &Value| hold["reason"].as_str().map(redact::message);
        found.pause_reasons = Some(view.holds().iter().filter_map(reason).collect());
        found.aborted = Some(view.is_aborted());
        if !view.steps().is_empty() {
            found.steps = Some(view.steps().iter().take(MOST_STEPS).map(step_words).collect());
            found.current_step = view.step();
        }
        let sets = visible(tree::revisions(cluster, target, object).await)?;
        let sets = sets.map(|sets| sets.iter().map(|kept| set_row(kept, view)).collect());
        found.replica_sets = sets.map(|rows| fitting(rows, 3, &mut found.common));
        found.analysis_runs = self.rows(cluster, ArgoKindArg::AnalysisRun, target, object, &mut found.common).await?;
        found.experiments = self.rows(cluster, ArgoKindArg::Experiment, target, object, &mut found.common).await?;
        found.conditions = Some(fitting(conditions(object), 1, &mut found.common));
        Ok(())
    }

    /// What of a kind belongs to an object, newest first; nothing where the caller may not look.
    async fn rows(
        &self,
        cluster: &Cluster<'_>,
        sort: ArgoKindArg,
        target: &ResourceRef,
        object: &Value,
        common: &mut ClusterReplyFields,
    ) -> Result<Option<Vec<ObjectRow>>, Failure> {
        let all = tree::belonging(cluster, sort, target.namespace(), &object["metadata"]["uid"]).await;
        let now = self.kit.cursors.now();
        let shown = |object: &Value| {
            let mut row = row(sort, object, false, now);
            // It is this object's.
            row.remove("owner");
            row
        };
        let rows = visible(all)?.map(|all| all.iter().map(shown).collect());
        Ok(rows.map(|rows| fitting(rows, 2, common)))
    }
}

fn said_of(object: &Value) -> (Option<String>, Option<String>) {
    let (phase, message) = said(object);
    (Some(phase), message)
}

/// Rows as far as their tenths of an answer go. What is cut is counted.
fn fitting(rows: Vec<ObjectRow>, tenths: usize, common: &mut ClusterReplyFields) -> Vec<ObjectRow> {
    let (rows, left) = rows_that_fit(rows, ROOM * tenths / 10);
    common.cut_items(left, "list them with kind and rollout, or leave full out");
    rows
}

fn set_row(kept: &RolloutRevision, view: RolloutView<'_>) -> ObjectRow {
    let mut row = ObjectRow::new();
    row.insert("revision".to_owned(), json!(kept.number));
    if let Some(role) = kept.role(view) {
        row.insert("role".to_owned(), json!(role));
    }
    row.insert("ready".to_owned(), json!(format!("{}/{}", kept.ready, kept.desired)));
    row.insert("images".to_owned(), json!(kept.images()));
    row
}

/// The metrics of an AnalysisRun: how each is judged, and what was measured last.
fn metrics(object: &Value, all: bool) -> Vec<ObjectRow> {
    let results = object["status"]["metricResults"].as_array().into_iter().flatten();
    let text = |value: &Value| value.as_str().filter(|text| !text.is_empty()).map(redact::message);
    let shown = |result: &Value| {
        let mut row = ObjectRow::new();
        let mut put = |key: &str, value: Value| {
            if !value.is_null() {
                row.insert(key.to_owned(), value);
            }
        };
        put("name", json!(text(&result["name"])));
        put("phase", json!(text(&result["phase"])));
        for (key, field) in
            [("ok", "successful"), ("failed", "failed"), ("inconclusive", "inconclusive"), ("error", "error")]
        {
            put(key, json!(result[field].as_u64().unwrap_or_default()));
        }
        put("message", json!(text(&result["message"])));
        let measurements = result["measurements"].as_array().map(Vec::as_slice).unwrap_or_default();
        put("last_value", json!(measurements.last().and_then(|last| text(&last["value"]))));
        let from = if all { 0 } else { measurements.len().saturating_sub(LAST) };
        let measured = |one: &Value| {
            let fields = [("phase", "phase"), ("value", "value"), ("at", "finishedAt"), ("message", "message")];
            let told = fields.into_iter().filter_map(|(key, field)| Some((key.to_owned(), json!(text(&one[field])?))));
            Value::Object(told.collect())
        };
        put("measurements", measurements[from..].iter().map(measured).collect());
        row
    };
    results.map(shown).collect()
}

/// The templates of an Experiment and how many of each run.
fn templates(object: &Value) -> Vec<ObjectRow> {
    let statuses = object["status"]["templateStatuses"].as_array().map(Vec::as_slice).unwrap_or_default();
    let shown = |template: &Value| {
        let mut row = ObjectRow::new();
        let name = template["name"].as_str().unwrap_or_default();
        row.insert("name".to_owned(), json!(redact::message(name)));
        let status = statuses.iter().find(|status| status["name"] == name).unwrap_or(&Value::Null);
        if let Some(phase) = status["status"].as_str() {
            row.insert("phase".to_owned(), json!(redact::message(phase)));
        }
        let (ready, wanted) = (status["readyReplicas"].as_u64(), template["replicas"].as_u64());
        row.insert("ready".to_owned(), json!(format!("{}/{}", ready.unwrap_or_default(), wanted.unwrap_or(1))));
        row
    };
    object["spec"]["templates"].as_array().into_iter().flatten().map(shown).collect()
}
