//! The simulated kubelets: pods start, fail, run, end and stop, one step at a time.

mod fate;
mod phase;

use std::sync::Arc;
use std::time::Duration;

use jiff::Timestamp;
use serde_json::{Value, json};

use self::fate::ContainerFate;
use self::phase::Restarts;
use super::Occurrence;
use crate::clock;
use crate::json;
use crate::world::ClusterWorld;

/// The longest pause between two tries of a failing container.
const LONGEST_BACKOFF: Duration = Duration::from_secs(300);

/// Moves every placed pod whose step is due; says when the next one is.
pub(super) fn look(world: &mut ClusterWorld) -> Option<Timestamp> {
    let pods: Vec<Arc<Value>> = world.objects.all("pods").filter(|pod| is_restless(world, pod)).cloned().collect();
    for pod in pods {
        step(world, &pod);
    }
    world.due.values().min().copied()
}

/// A pod that is settled needs no look: running and ready, or done.
fn is_restless(world: &ClusterWorld, pod: &Value) -> bool {
    if json::text(pod, "/spec/nodeName").is_none() {
        return false;
    }
    let settled = matches!(json::text(pod, "/status/phase"), Some("Succeeded" | "Failed"))
        || json::annotation(pod, fate::BEHAVE) == Some("settled");
    json::is_going(pod) || (!settled && (world.due.contains_key(json::uid(pod)) || phase::is_changing(pod)))
}

fn step(world: &mut ClusterWorld, pod: &Arc<Value>) {
    let uid = json::uid(pod).to_owned();
    let now = world.now();
    if json::is_going(pod) {
        return stop(world, pod);
    }
    if world.due.get(&uid).is_some_and(|due| *due > now) && json::at(pod, "/status/containerStatuses").is_some() {
        return;
    }
    world.due.remove(&uid);
    let mut next = (**pod).clone();
    if json::at(pod, "/status/containerStatuses").is_none() {
        receive(world, &mut next);
        wait(world, &uid, world.pace.step);
    } else if is_overdue(&next, now) {
        fail_whole(&mut next, now);
    } else if let Some(missing) = fate::missing_volume(world, pod) {
        let what = Occurrence { warning: true, reason: "FailedMount", message: &missing, source: "kubelet" };
        world.note(pod, what);
        wait(world, &uid, world.pace.step * 5);
    } else {
        advance(world, &mut next, &uid);
    }
    phase::sum_up(&mut next, &clock::stamp(now));
    world.save("pods", next);
}

fn wait(world: &mut ClusterWorld, uid: &str, by: Duration) {
    let at = clock::after(world.now(), by);
    let due = world.due.entry(uid.to_owned()).or_insert(at);
    *due = (*due).min(at);
}

/// The node takes the pod: addresses, and containers that are being made.
fn receive(world: &mut ClusterWorld, pod: &mut Value) {
    let node = json::text_or_empty(pod, "/spec/nodeName").to_owned();
    let host = world.find("nodes", "", &node);
    let host = host.and_then(|node| json::text(&node, "/status/addresses/0/address").map(str::to_owned));
    let host = host.unwrap_or_else(|| "192.168.0.1".to_owned());
    let address = world.next_address("10.244");
    for (at, value) in [
        ("/status/hostIP", json!(host)),
        ("/status/hostIPs", json!([{ "ip": host }])),
        ("/status/podIP", json!(address)),
        ("/status/podIPs", json!([{ "ip": address }])),
        ("/status/startTime", json!(world.stamp())),
    ] {
        json::set(pod, at, value);
    }
    let waits_for_init = !json::list(pod, "/spec/initContainers").is_empty();
    let reason = if waits_for_init { "PodInitializing" } else { "ContainerCreating" };
    for (spec, status) in [("initContainers", "initContainerStatuses"), ("containers", "containerStatuses")] {
        let fresh = json::list(pod, &format!("/spec/{spec}")).iter().map(|one| {
            json!({
                "name": one["name"], "image": one["image"], "imageID": "", "ready": false, "started": false,
                "restartCount": 0, "state": { "waiting": { "reason": reason } }, "lastState": {},
            })
        });
        let fresh: Vec<Value> = fresh.collect();
        if !fresh.is_empty() || status == "containerStatuses" {
            json::set(pod, &format!("/status/{status}"), fresh);
        }
    }
}

fn advance(world: &mut ClusterWorld, pod: &mut Value, uid: &str) {
    for at in 0..json::list(pod, "/spec/initContainers").len() {
        if !move_container(world, pod, ("initContainers", "initContainerStatuses", at), uid) {
            return; // Those after it wait.
        }
    }
    for at in 0..json::list(pod, "/spec/containers").len() {
        move_container(world, pod, ("containers", "containerStatuses", at), uid);
    }
    receive_ephemeral(world, pod);
    for at in 0..json::list(pod, "/spec/ephemeralContainers").len() {
        move_container(world, pod, ("ephemeralContainers", "ephemeralContainerStatuses", at), uid);
    }
    if let Some(limit) = json::at(pod, "/spec/activeDeadlineSeconds").and_then(Value::as_u64) {
        let started = json::text(pod, "/status/startTime").and_then(clock::read).unwrap_or(world.now());
        let left = clock::since(world.now(), clock::after(started, Duration::from_secs(limit)));
        wait(world, uid, left + Duration::from_secs(1));
    }
}

/// Debug containers may come to a pod that already runs.
fn receive_ephemeral(world: &mut ClusterWorld, pod: &mut Value) {
    let uid = json::uid(pod).to_owned();
    let known = json::list(pod, "/status/ephemeralContainerStatuses").len();
    let fresh: Vec<Value> = json::list(pod, "/spec/ephemeralContainers").iter().skip(known).cloned().collect();
    for one in fresh {
        json::list_mut(pod, "/status/ephemeralContainerStatuses").push(json!({
            "name": one["name"], "image": one["image"], "imageID": "", "ready": false, "restartCount": 0,
            "state": { "waiting": { "reason": "ContainerCreating" } }, "lastState": {},
        }));
        wait(world, &uid, world.pace.step);
    }
}

/// One step of one container; true once it is an init container that has ended well.
fn move_container(world: &mut ClusterWorld, pod: &mut Value, place: (&str, &str, usize), uid: &str) -> bool {
    let (spec, status, at) = place;
    let Some(container) = json::list(pod, &format!("/spec/{spec}")).get(at).cloned() else { return true };
    let Some(mut state) = json::list(pod, &format!("/status/{status}")).get(at).cloned() else { return true };
    if json::int(&state, "/state/terminated/exitCode", -1) == 0 && spec != "containers" {
        return true;
    }
    let fate = fate::of(world, pod, &container, spec);
    let seen = ContainerStatus {
        name: json::text_or_empty(&container, "/name"),
        image: json::text_or_empty(&container, "/image"),
        restarts: phase::restarts(pod, spec),
    };
    if json::at(&state, "/state/running").is_some() {
        run_on(world, pod, &mut state, (&fate, &seen), uid);
    } else {
        start(world, pod, &mut state, (&fate, &seen), uid);
    }
    let ended_well = json::int(&state, "/state/terminated/exitCode", -1) == 0;
    json::list_mut(pod, &format!("/status/{status}"))[at] = state;
    ended_well
}

/// What is seen of a container from outside.
struct ContainerStatus<'a> {
    name: &'a str,
    image: &'a str,
    restarts: Restarts,
}

/// A container that does not run: started, or refused for a reason people can read.
fn start(
    world: &mut ClusterWorld,
    pod: &Value,
    state: &mut Value,
    (fate, seen): (&ContainerFate, &ContainerStatus<'_>),
    uid: &str,
) {
    let restarts = json::int(state, "/restartCount", 0);
    if json::at(state, "/state/terminated").is_some() {
        return; // What is to be restarted waits in a crash loop and is not shown as terminated.
    }
    let (image, name) = (seen.image, seen.name);
    let mut note = |warning, reason: &str, message: &str| {
        world.note(pod, Occurrence { warning, reason, message, source: "kubelet" });
    };
    match fate {
        ContainerFate::NoImage(why) => {
            let first = json::text(state, "/state/waiting/reason") != Some("ErrImagePull");
            note(false, "Pulling", &format!("Pulling image {image:?}"));
            note(true, "Failed", &format!("Failed to pull image {image:?}: {why}"));
            note(true, "Failed", if first { "Error: ErrImagePull" } else { "Error: ImagePullBackOff" });
            let reason = if first { "ErrImagePull" } else { "ImagePullBackOff" };
            if !first {
                note(false, "BackOff", &format!("Back-off pulling image {image:?}"));
            }
            let message =
                if first { why.clone() } else { format!("Back-off pulling image {image:?}: ErrImagePull: {why}") };
            json::set(state, "/state", json!({ "waiting": { "reason": reason, "message": message } }));
            wait(world, uid, if first { world.pace.step } else { Duration::from_secs(60) });
        }
        ContainerFate::NoConfig(why) => {
            note(true, "Failed", &format!("Error: {why}"));
            let waiting = json!({ "waiting": { "reason": "CreateContainerConfigError", "message": why } });
            json::set(state, "/state", waiting);
            wait(world, uid, world.pace.step * 5);
        }
        ContainerFate::Runs { .. } | ContainerFate::Ends { .. } => {
            let again = json::at(state, "/lastState/terminated").is_some();
            if !again {
                note(false, "Pulled", &format!("Container image {image:?} already present on machine"));
            }
            note(false, "Created", &format!("Created container: {name}"));
            note(false, "Started", &format!("Started container {name}"));
            if again {
                json::set(state, "/restartCount", restarts + 1);
            }
            json::set(state, "/imageID", format!("sha256:{}", crate::images::digest(image)));
            let id = crate::world::new_uid().replace('-', "");
            json::set(state, "/containerID", format!("sandbox://{id}"));
            json::set(state, "/state", json!({ "running": { "startedAt": world.stamp() } }));
            json::set(state, "/started", true);
            wait(world, uid, world.pace.step);
        }
    }
}

/// A running container: becomes ready, goes on, or ends.
fn run_on(
    world: &mut ClusterWorld,
    pod: &Value,
    state: &mut Value,
    (fate, seen): (&ContainerFate, &ContainerStatus<'_>),
    uid: &str,
) {
    match fate {
        ContainerFate::Runs { ready } => {
            if *ready != json::is_true(state, "/ready") {
                json::set(state, "/ready", *ready);
            }
            if !ready {
                let message = "Readiness probe failed: HTTP probe failed with statuscode: 503";
                let what = Occurrence { warning: true, reason: "Unhealthy", message, source: "kubelet" };
                world.note(pod, what);
                wait(world, uid, Duration::from_secs(10));
            }
        }
        ContainerFate::Ends { exit, reason, after } => {
            let started = json::text(state, "/state/running/startedAt").and_then(clock::read).unwrap_or(world.now());
            let lived = clock::since(started, world.now());
            if lived < *after {
                json::set(state, "/ready", true);
                wait(world, uid, *after - lived);
                return;
            }
            end(world, pod, state, (*exit, reason, seen.restarts), uid);
        }
        // A container that runs is not stopped because its image or configuration went away meanwhile.
        ContainerFate::NoImage(_) | ContainerFate::NoConfig(_) => json::set(state, "/ready", true),
    }
}

fn end(
    world: &mut ClusterWorld,
    pod: &Value,
    state: &mut Value,
    (exit, reason, again): (i64, &str, Restarts),
    uid: &str,
) {
    let now = world.stamp();
    let started = json::text_or_empty(state, "/state/running/startedAt").to_owned();
    let id = state["containerID"].clone();
    let terminated = json!({
        "exitCode": exit, "reason": reason, "startedAt": started, "finishedAt": now, "containerID": id,
    });
    json::set(state, "/ready", false);
    json::set(state, "/started", false);
    if again == Restarts::Never || (again == Restarts::OnFailure && exit == 0) {
        json::set(state, "/state", json!({ "terminated": terminated }));
        return;
    }
    json::set(state, "/lastState", json!({ "terminated": terminated }));
    let restarts = u32::try_from(json::int(state, "/restartCount", 0)).unwrap_or_default();
    let pause = (Duration::from_secs(10) * 2_u32.saturating_pow(restarts.min(6))).min(LONGEST_BACKOFF);
    let name = json::text_or_empty(state, "/name").to_owned();
    let whole = format!("{}_{}({})", json::name(pod), json::namespace(pod), json::uid(pod));
    let message = format!("Back-off restarting failed container {name} in pod {whole}");
    world.note(pod, Occurrence { warning: true, reason: "BackOff", message: &message, source: "kubelet" });
    let wait_text = format!("back-off {} restarting failed container={name} pod={whole}", shown(pause));
    json::set(state, "/state", json!({ "waiting": { "reason": "CrashLoopBackOff", "message": wait_text } }));
    wait(world, uid, pause);
}

/// A pause as the kubelet writes it: `10s`, `1m20s`, `5m0s`.
fn shown(pause: Duration) -> String {
    let seconds = pause.as_secs();
    if seconds < 60 { format!("{seconds}s") } else { format!("{}m{}s", seconds / 60, seconds % 60) }
}

fn is_overdue(pod: &Value, now: Timestamp) -> bool {
    let limit = json::at(pod, "/spec/activeDeadlineSeconds").and_then(Value::as_u64);
    let started = json::text(pod, "/status/startTime").and_then(clock::read);
    matches!((limit, started), (Some(limit), Some(started)) if clock::since(started, now).as_secs() >= limit)
}

fn fail_whole(pod: &mut Value, now: Timestamp) {
    json::set(pod, "/status/phase", "Failed");
    json::set(pod, "/status/reason", "DeadlineExceeded");
    json::set(pod, "/status/message", "Pod was active on the node longer than the specified deadline");
    for state in json::list_mut(pod, "/status/containerStatuses") {
        let terminated = json!({ "exitCode": 137, "reason": "Error", "finishedAt": clock::stamp(now) });
        json::set(state, "/state", json!({ "terminated": terminated }));
        json::set(state, "/ready", false);
    }
}

/// A pod that was asked to go: its containers stop, then it is gone.
fn stop(world: &mut ClusterWorld, pod: &Arc<Value>) {
    let uid = json::uid(pod).to_owned();
    let key = format!("{uid}/stop");
    let Some(due) = world.due.get(&key).copied() else {
        let at_once = json::int(pod, "/metadata/deletionGracePeriodSeconds", 30) == 0;
        let by = if at_once { Duration::ZERO } else { world.pace.step };
        let at = clock::after(world.now(), by);
        world.due.insert(key, at);
        for container in json::list(pod, "/spec/containers") {
            let message = format!("Stopping container {}", json::text_or_empty(container, "/name"));
            world.note(pod, Occurrence { warning: false, reason: "Killing", message: &message, source: "kubelet" });
        }
        return;
    };
    if due > world.now() {
        return;
    }
    world.due.remove(&key);
    world.due.remove(&uid);
    if json::list(pod, "/metadata/finalizers").is_empty() {
        world.objects.remove("pods", json::namespace(pod), json::name(pod));
    }
}
