//! How a rollout stands, in counts, conditions, a phase and a sentence.

use serde_json::{Value, json};

use super::super::conditions::{self, DesiredCondition};
use super::{ROLLOUTS, RolloutTurn, hash_of};
use crate::json;
use crate::world::ClusterWorld;

const ABORTED: &str = "RolloutAborted";

/// Writes the status.
pub(super) fn write(world: &mut ClusterWorld, turn: &RolloutTurn) {
    let sets = turn.sets(world);
    let sum = |at: &str| sets.iter().map(|set| json::int(set, at, 0)).sum::<i64>();
    let new = sets.iter().find(|set| hash_of(set) == turn.hash);
    let updated = new.map_or(0, |set| json::int(set, "/status/replicas", 0));
    let mut status = turn.status.clone();
    for (field, count) in [
        ("replicas", sum("/status/replicas")),
        ("HPAReplicas", sum("/status/replicas")),
        ("readyReplicas", sum("/status/readyReplicas")),
        ("availableReplicas", sum("/status/availableReplicas")),
        ("updatedReplicas", updated),
    ] {
        json::set(&mut status, &format!("/{field}"), count);
    }
    let generation = json::int(&turn.rollout, "/metadata/generation", 1);
    json::set(&mut status, "/observedGeneration", generation.to_string());
    json::set(&mut status, "/selector", selector(&turn.rollout));
    for empty in ["/canary", "/blueGreen"] {
        json::set_default(&mut status, empty, json!({}));
    }
    let given_up = given_up(turn);
    let (phase, message) = told(turn, &status, &given_up);
    json::set(&mut status, "/phase", phase);
    match message.is_empty() {
        true => drop(json::take(&mut status, "/message")),
        false => json::set(&mut status, "/message", message),
    }
    // A flag that is not up is not there.
    for flag in ["/controllerPause", "/abort", "/promoteFull"] {
        if !json::is_true(&status, flag) {
            json::take(&mut status, flag);
        }
    }
    let now = world.stamp();
    let wanted = turn.wanted();
    world.change(ROLLOUTS, &turn.rollout, |rollout| {
        json::set(rollout, "/status", status);
        let available = json::int(rollout, "/status/availableReplicas", 0) >= wanted;
        let healthy = phase == "Healthy";
        let (aborted, paused) = (json::is_true(rollout, "/status/abort"), phase == "Paused");
        let why = if aborted { (ABORTED, false, given_up.as_str()) } else { ("ReplicaSetUpdated", true, "") };
        for (kind, holds, reason, message) in [
            ("Available", available, "AvailableReason", ""),
            ("Paused", paused, "RolloutPaused", ""),
            ("Healthy", healthy, if healthy { "RolloutHealthy" } else { "RolloutUnhealthy" }, ""),
            ("Completed", healthy, "RolloutCompleted", ""),
            ("Progressing", why.1, why.0, why.2),
        ] {
            conditions::set(rollout, &DesiredCondition { kind, holds, reason, message }, &now);
        }
    });
}

/// Why the update was given up. A condition keeps it from look to look.
fn given_up(turn: &RolloutTurn) -> String {
    let plain = format!("Rollout aborted update to revision {}", turn.revision);
    if let Some(why) = &turn.given_up {
        return format!("{plain}: {why}");
    }
    let kept = json::list(&turn.status, "/conditions").iter().find(|one| one["reason"] == ABORTED);
    let kept = kept.and_then(|one| json::text(one, "/message")).filter(|text| text.starts_with(&plain));
    kept.map_or(plain, str::to_owned)
}

fn selector(rollout: &Value) -> String {
    let labels = json::map(rollout, "/spec/selector/matchLabels").into_iter().flatten();
    labels.map(|(key, value)| format!("{key}={}", value.as_str().unwrap_or_default())).collect::<Vec<_>>().join(",")
}

/// The phase and why. What stops it comes first, then what holds it, then what is still to do.
fn told(turn: &RolloutTurn, status: &Value, given_up: &str) -> (&'static str, String) {
    let count = |field: &str| json::int(status, field, 0);
    if json::is_true(status, "/abort") && !turn.is_promoted() {
        return ("Degraded", format!("{ABORTED}: {given_up}"));
    }
    if turn.is_paused() {
        return ("Paused", "manually paused".to_owned());
    }
    if let Some(held) = json::list(status, "/pauseConditions").first() {
        return ("Paused", json::text_or_empty(held, "/reason").to_owned());
    }
    let restart = json::text(&turn.rollout, "/spec/restartAt");
    let progress = if restart.is_some() && restart != json::text(status, "/restartedAt") {
        "rollout is restarting"
    } else if count("/updatedReplicas") < turn.wanted() {
        "more replicas need to be updated"
    } else if count("/availableReplicas") < count("/updatedReplicas") {
        "updated replicas are still becoming available"
    } else if turn.strategy("canary").is_some() && count("/replicas") > count("/updatedReplicas") {
        "old replicas are pending termination"
    } else if !turn.is_promoted() {
        "waiting for all steps to complete"
    } else {
        return ("Healthy", String::new());
    };
    ("Progressing", progress.to_owned())
}
