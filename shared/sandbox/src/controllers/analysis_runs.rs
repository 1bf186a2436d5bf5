//! AnalysisRuns of Argo: metrics measured until they are judged.
//!
//! A metric that runs a Job is measured by that Job. Every other provider is asked in the story only, and answers well;
//! a template annotated `sandbox/behave: fail` or `inconclusive` has runs whose measurements come out so.

use std::sync::Arc;

use jiff::Timestamp;
use serde_json::{Value, json};

use super::conditions;
use crate::clock;
use crate::json;
use crate::world::{self, ClusterWorld};

pub(super) const RUNS: &str = "analysisruns.argoproj.io";
const TEMPLATES: &str = "analysistemplates.argoproj.io";
const JOBS: &str = "jobs.batch";
const BEHAVE: &str = "sandbox/behave";
const HASH: &str = "rollouts-pod-template-hash";

/// What asks for an analysis: one step of one update of a rollout.
pub(super) struct AnalysisOrigin<'a> {
    pub(super) rollout: &'a Value,
    pub(super) hash: &'a str,
    pub(super) revision: i64,
    pub(super) step: usize,
}

/// Begins the analysis of a step; nothing if one of its templates is not there.
pub(super) fn begin(world: &mut ClusterWorld, origin: &AnalysisOrigin<'_>, analysis: &Value) -> Option<Arc<Value>> {
    let (mut metrics, mut behave) = (Vec::new(), None);
    for wanted in json::list(analysis, "/templates") {
        let name = json::text(wanted, "/templateName")?;
        let template = world.find(TEMPLATES, json::namespace(origin.rollout), name)?;
        metrics.extend(json::list(&template, "/spec/metrics").iter().cloned());
        behave = behave.or_else(|| json::annotation(&template, BEHAVE).map(str::to_owned));
    }
    let base = format!("{}-{}-{}-{}", json::name(origin.rollout), origin.hash, origin.revision, origin.step);
    let namespace = json::namespace(origin.rollout);
    // One that was ended, by an abort say, keeps its name.
    let names = std::iter::once(base.clone()).chain((1..).map(|n| format!("{base}.{n}")));
    let name = names.into_iter().find(|name| world.find(RUNS, namespace, name).is_none())?;
    let mut run = json!({
        "metadata": {
            "name": name, "namespace": namespace,
            "labels": { HASH: origin.hash, "rollout-type": "Step", "step-index": origin.step.to_string() },
            "annotations": { "rollout.argoproj.io/revision": origin.revision.to_string() },
            "ownerReferences": [world::owner_reference(origin.rollout)],
        },
        "spec": { "metrics": metrics },
    });
    if let Some(behave) = behave {
        json::set(&mut run, &format!("/metadata/annotations/{}", json::escaped(BEHAVE)), behave);
    }
    Some(world.make(RUNS, run))
}

/// Asks every analysis of this update to end, save that of one step.
pub(super) fn end_all_but(world: &mut ClusterWorld, rollout: &Value, hash: &str, step: Option<usize>) {
    let label = |run: &Value, key: &str| run["metadata"]["labels"][key].as_str().unwrap_or_default().to_owned();
    for run in world.owned(RUNS, rollout) {
        let current =
            step.is_some_and(|step| label(&run, "step-index") == step.to_string()) && label(&run, HASH) == hash;
        if !current && !is_over(&run) {
            world.change(RUNS, &run, |run| json::set(run, "/spec/terminate", true));
        }
    }
}

fn is_over(object: &Value) -> bool {
    let phase = json::text_or_empty(object, "/status/phase");
    matches!(phase, "Successful" | "Failed" | "Error" | "Inconclusive")
}

/// Looks at every run; says when the next measurement is due.
pub(super) fn look(world: &mut ClusterWorld) -> Option<Timestamp> {
    let runs = world.all(RUNS, "");
    runs.iter().filter(|run| !json::is_going(run) && !is_over(run)).filter_map(|run| measure(world, run)).min()
}

fn measure(world: &mut ClusterWorld, run: &Arc<Value>) -> Option<Timestamp> {
    let ending = json::is_true(run, "/spec/terminate");
    let mut due = None;
    let mut results = Vec::new();
    for metric in json::list(run, "/spec/metrics") {
        let known = json::list(run, "/status/metricResults").iter().find(|one| one["name"] == metric["name"]);
        let mut result = known.cloned().unwrap_or_else(|| json!({ "name": metric["name"], "phase": "Running" }));
        if result["phase"] == "Running" {
            let next = advance(world, run, metric, &mut result);
            due = [due, next].into_iter().flatten().min();
            judge(metric, &mut result, ending);
        }
        results.push(result);
    }
    let (phase, message) = verdict(&results, ending);
    let started = json::text(run, "/status/startedAt").map_or_else(|| world.stamp(), str::to_owned);
    let now = world.stamp();
    world.change(RUNS, run, |run| {
        let mut status = json!({ "phase": phase, "startedAt": started, "metricResults": results });
        if !message.is_empty() {
            status["message"] = json!(message);
        }
        if phase != "Running" {
            status["completedAt"] = json!(now);
        }
        json::set(run, "/status", status);
    });
    due
}

/// Takes the next measurement, or looks after the one under way.
fn advance(world: &mut ClusterWorld, run: &Value, metric: &Value, result: &mut Value) -> Option<Timestamp> {
    let now = world.now();
    let last = json::list(result, "/measurements").last().cloned();
    if let Some(last) = last.as_ref().filter(|last| last["phase"] == "Running") {
        let ended = job_end(world, run, last, json::is_true(run, "/spec/terminate"))?;
        finish(result, ended, &world.stamp());
        return None;
    }
    let interval = json::text(metric, "/interval").and_then(clock::span);
    if let Some(last) = &last {
        let finished = json::text(last, "/finishedAt").and_then(clock::read).unwrap_or(now);
        let next = clock::after(finished, interval?);
        if next > now {
            return Some(next);
        }
    }
    let stamp = world.stamp();
    let mut measurement = json!({ "phase": "Running", "startedAt": stamp });
    match metric.pointer("/provider/job/spec") {
        Some(spec) => {
            let number = json::list(result, "/measurements").len() + 1;
            let job = make_job(world, run, &format!("{}-{number}", json::text_or_empty(metric, "/name")), spec);
            measurement["metadata"] = json!({ "job-name": job });
            json::list_mut(result, "/measurements").push(measurement);
        }
        None => {
            json::list_mut(result, "/measurements").push(measurement);
            let phase = match json::annotation(run, BEHAVE) {
                Some("fail") => "Failed",
                Some("inconclusive") => "Inconclusive",
                _ => "Successful",
            };
            finish(result, (phase, "simulated"), &stamp);
        }
    }
    None
}

fn make_job(world: &mut ClusterWorld, run: &Value, suffix: &str, spec: &Value) -> String {
    let uid = json::uid(run);
    let name = format!("{}-{suffix}", uid.get(..8).unwrap_or(uid));
    let metadata = json!({
        "name": name, "namespace": json::namespace(run), "ownerReferences": [world::owner_reference(run)],
        "labels": { "analysisrun.argoproj.io/uid": uid },
    });
    world.make(JOBS, json!({ "metadata": metadata, "spec": spec }));
    name
}

/// How a measurement's Job came out, once it did. A run that is to end takes it away, and nobody knows how it would have.
fn job_end(
    world: &mut ClusterWorld,
    run: &Value,
    measurement: &Value,
    ending: bool,
) -> Option<(&'static str, &'static str)> {
    let namespace = json::namespace(run).to_owned();
    let job = world.find(JOBS, &namespace, json::text_or_empty(measurement, "/metadata/job-name"));
    match &job {
        Some(job) if conditions::holds(job, "Complete") => return Some(("Successful", "")),
        Some(job) if conditions::holds(job, "Failed") => return Some(("Failed", "")),
        Some(_) if !ending => return None,
        Some(_) | None => {}
    }
    if let (Some(job), Some(kind)) = (job, world.kinds.of_resource(JOBS)) {
        let gone = world.delete(&kind, (&namespace, json::name(&job)), &crate::write::DeletionOptions::default());
        if let Err(refused) = gone {
            tracing::debug!(%refused, "a job was gone before it was ended");
        }
    }
    Some((if ending { "Inconclusive" } else { "Error" }, ""))
}

/// Ends the last measurement and counts it.
fn finish(result: &mut Value, (phase, value): (&str, &str), now: &str) {
    if let Some(last) = json::list_mut(result, "/measurements").last_mut() {
        json::set(last, "/phase", phase);
        json::set(last, "/finishedAt", now);
        if !value.is_empty() {
            json::set(last, "/value", value);
        }
    }
    let counter = match phase {
        "Successful" => "/successful",
        "Failed" => "/failed",
        "Inconclusive" => "/inconclusive",
        _ => "/error",
    };
    for at in [counter, "/count"] {
        let count = json::int(result, at, 0) + 1;
        json::set(result, at, count);
    }
}

/// Whether a metric is decided: too many that failed, or as many as were wanted.
fn judge(metric: &Value, result: &mut Value, ending: bool) {
    let count = |at: &str| json::int(result, at, 0);
    let whole = |at: &str| metric.pointer(at).and_then(|n| n.as_i64().or_else(|| n.as_str()?.parse().ok()));
    let name = json::text_or_empty(metric, "/name");
    let over = |at: &str, limit: &str| {
        let (n, most) = (count(at), whole(limit).unwrap_or(0));
        (n > most).then(|| format!("{} ({n}) > {} ({most})", &at[1..], &limit[1..]))
    };
    let decided = if let Some(why) = over("/failed", "/failureLimit") {
        Some(("Failed", format!("Metric \"{name}\" assessed Failed due to {why}")))
    } else if let Some(why) = over("/inconclusive", "/inconclusiveLimit") {
        Some(("Inconclusive", format!("Metric \"{name}\" assessed Inconclusive due to {why}")))
    } else {
        // With an interval and no count it goes on for as long as it is let.
        let wanted = whole("/count").or_else(|| metric.get("interval").is_none().then_some(1));
        let enough = wanted.is_some_and(|wanted| count("/count") >= wanted);
        (enough || ending).then(|| ("Successful", String::new()))
    };
    if let Some((phase, message)) = decided {
        json::set(result, "/phase", phase);
        if !message.is_empty() {
            json::set(result, "/message", message);
        }
    }
}

/// The run is as bad as its worst metric, and over once all of them are or one of them is beyond hope.
fn verdict(results: &[Value], ending: bool) -> (&'static str, String) {
    for phase in ["Error", "Failed", "Inconclusive"] {
        if let Some(worst) = results.iter().find(|one| one["phase"] == phase) {
            return (phase, json::text_or_empty(worst, "/message").to_owned());
        }
    }
    match results.iter().all(|one| one["phase"] == "Successful") {
        true if ending => ("Successful", "Run Terminated".to_owned()),
        true => ("Successful", String::new()),
        false => ("Running", String::new()),
    }
}
