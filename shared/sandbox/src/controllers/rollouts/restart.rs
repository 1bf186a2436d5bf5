//! A restart: pods older than the wanted moment are replaced, a few at a time.

use super::{RolloutTurn, sizes};
use crate::clock;
use crate::controllers::replica_sets;
use crate::json;
use crate::world::ClusterWorld;

pub(super) fn move_on(world: &mut ClusterWorld, turn: &mut RolloutTurn) {
    let Some(wanted) = json::text(&turn.rollout, "/spec/restartAt").map(str::to_owned) else { return };
    let Some(at) = clock::read(&wanted) else { return };
    if turn.is_paused() || json::text(&turn.status, "/restartedAt") == Some(wanted.as_str()) {
        return;
    }
    if at > world.now() {
        turn.wake(at);
        return;
    }
    let pods: Vec<_> = turn.sets(world).iter().flat_map(|set| world.owned("pods", set)).collect();
    let pods = replica_sets::active(pods);
    let is_old = |pod: &&std::sync::Arc<serde_json::Value>| {
        json::text(pod, "/metadata/creationTimestamp").and_then(clock::read).is_some_and(|made| made < at)
    };
    let old: Vec<_> = pods.iter().filter(is_old).cloned().collect();
    if old.is_empty() {
        json::set(&mut turn.status, "/restartedAt", wanted);
        return;
    }
    let there = pods.iter().filter(|pod| replica_sets::is_available(world, pod, 0)).count();
    let floor = turn.wanted() - sizes::bounds(turn).1.max(1);
    let spare = i64::try_from(there).unwrap_or_default() - floor;
    for pod in old.iter().take(usize::try_from(spare).unwrap_or_default()) {
        replica_sets::stop_pod(world, pod);
    }
}
