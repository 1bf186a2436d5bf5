//! What came of a Job or a debug container: how far it is, how it ended, and what it wrote.
//!
//! It was started, so whatever cannot be read here is a warning beside the result and no failure.

use super::{Args, CreatedKind, PlannedRun, RunOutput};
use crate::client::{Cluster, ListQuery, LogQuery, MaskDetail, ResourceRef, Wildcard};
use crate::k8s::reply::ClusterNote;
use crate::k8s::rollout_rules::condition;
use crate::k8s::written::{KeptEnd, shown};
use domain::{Failure, Moment};
use serde_json::Value;
use std::time::Duration;

/// How many lines are read from the end.
const TAIL: u32 = 2_000;

/// Waits until it has ended, or the time of the handle is over. Gives what there is to warn of.
pub(super) async fn wait(cluster: &Cluster<'_>, planned: &PlannedRun, name: &str) -> Option<String> {
    let target = match &planned.made {
        CreatedKind::Job(_) => planned.place.object(name),
        CreatedKind::Debugger(_) => Ok(planned.of.clone()),
    };
    let over = |object: Option<&Value>| match (&planned.made, object) {
        // Removed by somebody else: there is nothing to wait for.
        (_, None) => true,
        (CreatedKind::Job(_), Some(job)) => ending(job).is_some(),
        (CreatedKind::Debugger(_), Some(pod)) => {
            debugger(pod, name).is_some_and(|state| state["terminated"].is_object())
        }
    };
    let waited = match target {
        Ok(target) => cluster.wait(&target, over).await,
        Err(failure) => Err(failure),
    };
    match waited {
        Ok(waited) if waited.met => None,
        Ok(_) => Some("it has not ended in the time given; phase and logs are of that moment".to_owned()),
        Err(failure) => Some(format!("it was started, but could not be followed: {}", failure.message)),
    }
}

/// The phase a Job ended in, if it has.
fn ending(job: &Value) -> Option<&'static str> {
    let holds = |name: &str| condition(&job["status"], name).is_some_and(|c| c["status"] == "True");
    [("Complete", "Succeeded"), ("Failed", "Failed")].into_iter().find(|(name, _)| holds(name)).map(|(_, phase)| phase)
}

/// The state of our container in a pod.
fn debugger<'a>(pod: &'a Value, name: &str) -> Option<&'a Value> {
    let states = pod["status"]["ephemeralContainerStatuses"].as_array()?;
    states.iter().find(|status| status["name"] == name).map(|status| &status["state"])
}

/// What can be told of it now.
pub(super) async fn told(cluster: &Cluster<'_>, planned: &PlannedRun, name: &str, args: &Args) -> RunOutput {
    let common = ClusterNote::answer_at(cluster, &planned.place, (args.cluster.is_some(), args.namespace.is_some()));
    let (job, pod) = match &planned.made {
        CreatedKind::Job(_) => (Some(name.to_owned()), None),
        CreatedKind::Debugger(_) => (None, Some(planned.of.name().to_owned())),
    };
    let phase = "Unknown".to_owned();
    let mut ran = RunOutput { job, pod, phase, exit_code: None, logs: String::new(), expires_at: None, common };
    let looked = match &planned.made {
        CreatedKind::Job(_) => of_job(cluster, planned, name, &mut ran).await,
        CreatedKind::Debugger(_) => of_debugger(cluster, planned, name, &mut ran).await,
    };
    if let Err(failure) = looked {
        ran.common.warnings.push(format!("not everything could be read: {}", failure.message));
    }
    ran
}

async fn of_job(cluster: &Cluster<'_>, planned: &PlannedRun, name: &str, ran: &mut RunOutput) -> Result<(), Failure> {
    let target = planned.place.object(name)?;
    let Some(job) = cluster.find(&target, MaskDetail::Clean).await? else {
        ran.phase = "Removed".to_owned();
        return Ok(());
    };
    ran.expires_at = expires_at(&job);
    let Some((pod_target, pod)) = newest_pod(cluster, &target, &job).await? else {
        ran.phase = ending(&job).unwrap_or("Pending").to_owned();
        return Ok(());
    };
    let phase = pod["status"]["phase"].as_str().unwrap_or("Unknown");
    ran.phase = ending(&job).unwrap_or(phase).to_owned();
    let status = &pod["status"]["containerStatuses"][0];
    note_state(&status["state"], ran);
    let container = pod["spec"]["containers"][0]["name"].as_str().map(str::to_owned);
    if status["state"]["waiting"].is_null() {
        read_logs(cluster, &pod_target, container, ran).await?;
    }
    Ok(())
}

/// The pod a Job made last. Found by label and checked by owner, since anybody can label a pod alike.
async fn newest_pod(
    cluster: &Cluster<'_>,
    job: &ResourceRef,
    object: &Value,
) -> Result<Option<(ResourceRef, Value)>, Failure> {
    let kind = cluster.kind("v1/Pod").await?;
    let place = cluster.place(&kind, job.namespace(), Wildcard::Refused).await?;
    let query = ListQuery { labels: Some(format!("job-name={}", job.name())), ..ListQuery::default() };
    let pods = cluster.list(&place, &query, MaskDetail::Clean).await?.items;
    let uid = &object["metadata"]["uid"];
    let owned = |pod: &Value| {
        pod["metadata"]["ownerReferences"].as_array().into_iter().flatten().any(|owner| owner["uid"] == *uid)
    };
    let made = |pod: &Value| pod["metadata"]["creationTimestamp"].as_str().map(str::to_owned);
    let Some(pod) = pods.into_iter().filter(owned).max_by_key(made) else { return Ok(None) };
    let target = place.object(pod["metadata"]["name"].as_str().unwrap_or_default())?;
    Ok(Some((target, pod)))
}

async fn of_debugger(
    cluster: &Cluster<'_>,
    planned: &PlannedRun,
    name: &str,
    ran: &mut RunOutput,
) -> Result<(), Failure> {
    let Some(pod) = cluster.find(&planned.of, MaskDetail::Clean).await? else {
        ran.phase = "Removed".to_owned();
        return Ok(());
    };
    let Some(state) = debugger(&pod, name) else {
        ran.phase = "Pending".to_owned();
        return Ok(());
    };
    ran.phase = match (&state["terminated"], state["running"].is_object()) {
        (Value::Object(end), _) if end.get("exitCode").is_some_and(|code| code == 0) => "Succeeded",
        (Value::Object(_), _) => "Failed",
        (_, true) => "Running",
        (_, false) => "Pending",
    }
    .to_owned();
    note_state(state, ran);
    if state["waiting"].is_null() {
        read_logs(cluster, &planned.of, Some(name.to_owned()), ran).await?;
    }
    Ok(())
}

/// How the container ended, or what it waits for.
fn note_state(state: &Value, ran: &mut RunOutput) {
    ran.exit_code = state["terminated"]["exitCode"].as_i64().and_then(|code| i32::try_from(code).ok());
    if let Some(reason) = state["waiting"]["reason"].as_str() {
        ran.common.warnings.push(format!("its container waits: {}", redact::message(reason)));
    }
}

async fn read_logs(
    cluster: &Cluster<'_>,
    pod: &ResourceRef,
    container: Option<String>,
    ran: &mut RunOutput,
) -> Result<(), Failure> {
    let logs = cluster.logs(pod, &LogQuery { container, tail: Some(TAIL), ..LogQuery::default() }).await?;
    let (text, left) = shown(&logs.lines.join("\n"), KeptEnd::Last);
    ran.logs = text;
    if !left.is_none() {
        ran.common.cut(left, "read more with k8s_logs");
    } else if logs.truncated {
        ran.common.truncated = true;
    }
    Ok(())
}

/// When the cluster removes a Job that has ended.
fn expires_at(job: &Value) -> Option<String> {
    let status = &job["status"];
    let failed = || condition(status, "Failed").and_then(|c| c["lastTransitionTime"].as_str());
    let ended = status["completionTime"].as_str().or_else(failed)?;
    let kept = Duration::from_secs(job["spec"]["ttlSecondsAfterFinished"].as_u64()?);
    Some(Moment::parse(ended)?.plus(kept).to_string())
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn a_job_says_how_it_ended_and_when_it_goes() {
        let job = |status: Value| json!({ "spec": { "ttlSecondsAfterFinished": 600 }, "status": status });
        let done = job(
            json!({ "completionTime": "2025-11-16T08:00:00Z", "conditions": [{ "type": "Complete", "status": "True" }] }),
        );
        assert_eq!((ending(&done), expires_at(&done).as_deref()), (Some("Succeeded"), Some("2025-11-16T08:10:00Z")));
        let failed = job(
            json!({ "conditions": [{ "type": "Failed", "status": "True", "lastTransitionTime": "2025-11-16T08:00:00Z" }] }),
        );
        assert_eq!((ending(&failed), expires_at(&failed).as_deref()), (Some("Failed"), Some("2025-11-16T08:10:00Z")));
        let running = job(json!({ "active": 1, "conditions": [{ "type": "Complete", "status": "False" }] }));
        assert_eq!((ending(&running), expires_at(&running)), (None, None));
    }

    #[test]
    fn a_debug_container_is_found_by_its_name() {
        let pod = json!({ "status": { "ephemeralContainerStatuses": [{ "name": "other" }, { "name": "qm-a", "state": { "running": {} } }] } });
        assert!(debugger(&pod, "qm-a").is_some_and(|state| state["running"].is_object()));
        assert_eq!(debugger(&pod, "qm-b"), None);
    }
}
