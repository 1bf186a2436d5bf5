//! Jobs: pods until enough have succeeded, or too many have failed.

use std::sync::Arc;
use std::time::Duration;

use jiff::Timestamp;
use serde_json::{Value, json};

use super::conditions::{self, DesiredCondition};
use super::{Occurrence, replica_sets};
use crate::clock;
use crate::json;
use crate::world::{self, ClusterWorld};

/// Looks at every job; says when the next deadline or expiry is.
pub(super) fn look(world: &mut ClusterWorld) -> Option<Timestamp> {
    let jobs = world.all("jobs.batch", "");
    jobs.iter().filter(|job| !json::is_going(job)).filter_map(|job| reconcile(world, job)).min()
}

fn is_over(job: &Value) -> bool {
    conditions::holds(job, "Complete") || conditions::holds(job, "Failed")
}

fn reconcile(world: &mut ClusterWorld, job: &Arc<Value>) -> Option<Timestamp> {
    if is_over(job) {
        return expire(world, job);
    }
    let now = world.now();
    let started = json::text(job, "/status/startTime").and_then(clock::read);
    let pods = world.owned("pods", job);
    let phase = |pod: &Value, wanted: &str| json::text(pod, "/status/phase") == Some(wanted);
    let succeeded = count(&pods, |pod| phase(pod, "Succeeded"));
    let failed = count(&pods, |pod| phase(pod, "Failed"));
    let restarts: i64 = pods.iter().map(|pod| json::int(pod, "/status/containerStatuses/0/restartCount", 0)).sum();
    let active = replica_sets::active(pods.clone());
    let wanted = job.pointer("/spec/completions").and_then(Value::as_i64);
    let limit = json::int(job, "/spec/backoffLimit", 6);
    let deadline = job.pointer("/spec/activeDeadlineSeconds").and_then(Value::as_u64).map(Duration::from_secs);
    let due = started.zip(deadline).map(|(started, by)| clock::after(started, by));
    let suspended = json::is_true(job, "/spec/suspend");
    let done = wanted.map_or(succeeded > 0 && active.is_empty(), |wanted| succeeded >= wanted);
    let verdict = if done {
        Some(("Complete", "CompletionsReached", "Reached expected number of succeeded pods"))
    } else if failed > limit || (restarts > limit && limit > 0) {
        Some(("Failed", "BackoffLimitExceeded", "Job has reached the specified backoff limit"))
    } else if due.is_some_and(|due| due <= now) {
        Some(("Failed", "DeadlineExceeded", "Job was active longer than specified deadline"))
    } else {
        None
    };
    if verdict.is_none() && !suspended {
        let parallel = json::int(job, "/spec/parallelism", 1);
        let left = wanted.map_or(if succeeded > 0 { 0 } else { parallel }, |wanted| wanted - succeeded);
        let room = parallel.min(left) - i64::try_from(active.len()).unwrap_or_default();
        for _ in 0..room {
            let name = format!("{}-{}", json::name(job), world::name_suffix());
            if let Err(refused) = replica_sets::make_pod(world, job, &name) {
                let message = format!("Error creating: {refused}");
                let what =
                    Occurrence { warning: true, reason: "FailedCreate", message: &message, source: "job-controller" };
                world.note(job, what);
            }
        }
    }
    if verdict.is_some() || suspended {
        for pod in &active {
            replica_sets::stop_pod(world, pod);
        }
    }
    write_status(world, job, (succeeded, failed), verdict);
    if let Some((kind, reason, message)) = verdict {
        let failed = kind == "Failed";
        let (reason, message) = if failed { (reason, message) } else { ("Completed", "Job completed") };
        world.note(job, Occurrence { warning: failed, reason, message, source: "job-controller" });
    }
    due
}

fn count(pods: &[Arc<Value>], which: impl Fn(&Value) -> bool) -> i64 {
    i64::try_from(pods.iter().filter(|pod| which(pod)).count()).unwrap_or_default()
}

fn write_status(
    world: &mut ClusterWorld,
    job: &Value,
    (succeeded, failed): (i64, i64),
    verdict: Option<(&str, &str, &str)>,
) {
    let active = replica_sets::active(world.owned("pods", job));
    let ready = active.iter().filter(|pod| conditions::holds(pod, "Ready")).count();
    let now = world.stamp();
    world.change("jobs.batch", job, |job| {
        json::set_default(job, "/status/startTime", now.clone());
        for (field, count) in
            [("active", i64::try_from(active.len()).unwrap_or_default()), ("succeeded", succeeded), ("failed", failed)]
        {
            if count > 0 {
                json::set(job, &format!("/status/{field}"), count);
            } else {
                json::take(job, &format!("/status/{field}"));
            }
        }
        json::set(job, "/status/ready", ready);
        json::set_default(job, "/status/uncountedTerminatedPods", json!({}));
        let Some((kind, reason, message)) = verdict else { return };
        json::take(job, "/status/active");
        if kind == "Complete" {
            json::set(job, "/status/completionTime", now.clone());
            let met = DesiredCondition { kind: "SuccessCriteriaMet", holds: true, reason, message };
            conditions::set(job, &met, &now);
        } else {
            let target = DesiredCondition { kind: "FailureTarget", holds: true, reason, message };
            conditions::set(job, &target, &now);
        }
        conditions::set(job, &DesiredCondition { kind, holds: true, reason, message }, &now);
    });
}

/// A finished job is removed after its time to live.
fn expire(world: &mut ClusterWorld, job: &Value) -> Option<Timestamp> {
    let keep = job.pointer("/spec/ttlSecondsAfterFinished").and_then(Value::as_u64)?;
    let ended =
        json::list(job, "/status/conditions").iter().find(|one| one["type"] == "Complete" || one["type"] == "Failed");
    let ended = ended.and_then(|one| json::text(one, "/lastTransitionTime")).and_then(clock::read)?;
    let due = clock::after(ended, Duration::from_secs(keep));
    if due > world.now() {
        return Some(due);
    }
    world.objects.remove("jobs.batch", json::namespace(job), json::name(job));
    None
}
