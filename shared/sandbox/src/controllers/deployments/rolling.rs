//! How many pods the new and the old ReplicaSets may have now.

use std::sync::Arc;

use serde_json::{Value, json};

use super::scale;
use crate::json;
use crate::world::ClusterWorld;

fn size(set: &Value) -> i64 {
    json::int(set, "/spec/replicas", 0)
}

fn available(set: &Value) -> i64 {
    json::int(set, "/status/availableReplicas", 0)
}

/// The bounds of a rolling update: pods above and below the wanted number.
pub(super) fn bounds(deployment: &Value) -> (i64, i64) {
    let wanted = json::int(deployment, "/spec/replicas", 1);
    let quarter = json!("25%");
    let surge = json::part_of(deployment.pointer("/spec/strategy/rollingUpdate/maxSurge"), wanted, true, &quarter);
    let missing =
        json::part_of(deployment.pointer("/spec/strategy/rollingUpdate/maxUnavailable"), wanted, false, &quarter);
    // Both zero would never move.
    (surge, if surge == 0 && missing == 0 { 1 } else { missing })
}

/// One step of exchanging old pods for new ones.
pub(super) fn roll(world: &mut ClusterWorld, deployment: &Value, new: &Arc<Value>, old: &[Arc<Value>]) {
    let wanted = json::int(deployment, "/spec/replicas", 1);
    if deployment["spec"]["strategy"]["type"] == "Recreate" {
        for set in old {
            scale(world, deployment, set, 0);
        }
        let gone = old.iter().all(|set| world.owned("pods", set).is_empty());
        if gone {
            scale(world, deployment, new, wanted);
        }
        return;
    }
    let (surge, missing) = bounds(deployment);
    let old_total: i64 = old.iter().map(|set| size(set)).sum();
    if size(new) > wanted {
        scale(world, deployment, new, wanted);
    } else if size(new) < wanted {
        let room = wanted + surge - old_total - size(new);
        if room > 0 {
            scale(world, deployment, new, (size(new) + room).min(wanted));
        }
    }
    let Some(new) = world.find("replicasets.apps", json::namespace(new), json::name(new)) else { return };
    take_old(world, deployment, &new, old, wanted - missing);
}

/// Takes old pods away: those that are of no use first, then as many as the floor allows.
fn take_old(world: &mut ClusterWorld, deployment: &Value, new: &Value, old: &[Arc<Value>], floor: i64) {
    let total: i64 = size(new) + old.iter().map(|set| size(set)).sum::<i64>();
    let new_unavailable = size(new) - available(new);
    let mut spare = total - floor - new_unavailable;
    let mut left: Vec<(Arc<Value>, i64)> = old.iter().map(|set| (set.clone(), size(set))).collect();
    for (set, size) in &mut left {
        let useless = (*size - available(set)).max(0).min(spare.max(0));
        *size -= useless;
        spare -= useless;
    }
    let alive: i64 = available(new) + old.iter().map(|set| available(set)).sum::<i64>();
    let mut allowed = (alive - floor).max(0).min(spare.max(0));
    for (_, size) in &mut left {
        let taken = (*size).min(allowed);
        *size -= taken;
        allowed -= taken;
    }
    for (set, size) in left {
        scale(world, deployment, &set, size);
    }
}

/// A paused Deployment still follows its replica count, on the set that carries most.
pub(super) fn scale_paused(world: &mut ClusterWorld, deployment: &Value, new: Option<&Arc<Value>>, old: &[Arc<Value>]) {
    let wanted = json::int(deployment, "/spec/replicas", 1);
    let sets = new.into_iter().chain(old);
    let Some(main) = sets.clone().max_by_key(|set| size(set)) else { return };
    let others: i64 = sets.filter(|set| json::uid(set) != json::uid(main)).map(|set| size(set)).sum();
    let observed = json::int(deployment, "/status/observedGeneration", 0);
    let generation = json::int(deployment, "/metadata/generation", 0);
    if observed != generation {
        scale(world, deployment, main, (wanted - others).max(0));
    }
}
