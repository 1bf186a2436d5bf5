//! Blue and green: all pods of both templates, and one switch of the active service.

use super::steps::{hold, started};
use super::{HASH, RolloutTurn, hash_of, sizes};
use crate::json;
use crate::world::ClusterWorld;

const REASON: &str = "BlueGreenPause";

pub(super) fn move_on(world: &mut ClusterWorld, turn: &mut RolloutTurn) {
    if turn.is_paused() {
        return;
    }
    let hash = turn.hash.clone();
    point(world, turn, "previewService", "/blueGreen/previewSelector", &hash);
    if turn.stable().is_empty() || turn.is_promoted() {
        if all_there(world, turn) {
            switch(world, turn);
        }
        return;
    }
    if turn.is("/abort") {
        json::take(&mut turn.status, "/pauseConditions");
        json::set(&mut turn.status, "/controllerPause", false);
        json::set_default(&mut turn.status, "/abortedAt", world.stamp());
        let stable = turn.stable().to_owned();
        point(world, turn, "activeService", "/blueGreen/activeSelector", &stable);
        resize(world, turn, |found| found == stable);
        return;
    }
    json::take(&mut turn.status, "/abortedAt");
    if !all_there(world, turn) {
        return;
    }
    let by_itself = turn.strategy("blueGreen").and_then(|one| one["autoPromotionEnabled"].as_bool()).unwrap_or(true);
    let waits = started(turn, REASON).is_some();
    if by_itself || turn.is("/promoteFull") || (!waits && turn.is("/controllerPause")) {
        switch(world, turn);
    } else if !waits {
        hold(turn, REASON, &world.stamp());
    }
}

/// Brings up the new template beside the one that serves. Says whether all of its pods are available.
fn all_there(world: &mut ClusterWorld, turn: &RolloutTurn) -> bool {
    let wanted = turn.wanted();
    let (new, stable) = (turn.hash.clone(), turn.stable().to_owned());
    resize(world, turn, |found| found == new || found == stable);
    turn.sets(world).iter().any(|set| hash_of(set) == new && sizes::available(set) >= wanted)
}

/// All pods for the sets that are kept, none for the others.
fn resize(world: &mut ClusterWorld, turn: &RolloutTurn, kept: impl Fn(&str) -> bool) {
    for set in turn.sets(world) {
        let to = if kept(hash_of(&set)) { turn.wanted() } else { 0 };
        sizes::scale(world, turn, &set, to);
    }
}

fn switch(world: &mut ClusterWorld, turn: &mut RolloutTurn) {
    let hash = turn.hash.clone();
    point(world, turn, "activeService", "/blueGreen/activeSelector", &hash);
    json::take(&mut turn.status, "/pauseConditions");
    json::set(&mut turn.status, "/controllerPause", false);
    turn.promote();
    resize(world, turn, |found| found == hash);
}

/// Leads a service to the pods of one template.
fn point(world: &mut ClusterWorld, turn: &mut RolloutTurn, service: &str, told: &str, hash: &str) {
    let name = turn.strategy("blueGreen").and_then(|one| one[service].as_str()).unwrap_or_default().to_owned();
    if let Some(found) = world.find("services", json::namespace(&turn.rollout), &name) {
        world.change("services", &found, |found| json::set(found, &format!("/spec/selector/{HASH}"), hash));
    }
    json::set(&mut turn.status, told, hash);
}
