//! How many pods each ReplicaSet of a rollout may have now.

use std::sync::Arc;

use serde_json::{Value, json};

use super::super::Occurrence;
use super::{RolloutTurn, hash_of};
use crate::json;
use crate::world::ClusterWorld;

/// How many pods of the new and of the stable template are wanted at a weight. Neither is starved while both serve.
pub(super) fn shares(wanted: i64, weight: i64) -> (i64, i64) {
    let near = (wanted * weight + 50) / 100;
    let new = match weight {
        ..=0 => 0,
        100.. => wanted,
        _ => near.clamp(1.min(wanted), (wanted - 1).max(1)),
    };
    (new, wanted - new)
}

fn size(set: &Value) -> i64 {
    json::int(set, "/spec/replicas", 0)
}

pub(super) fn available(set: &Value) -> i64 {
    json::int(set, "/status/availableReplicas", 0)
}

/// Pods above and below the wanted number while they are exchanged.
pub(super) fn bounds(turn: &RolloutTurn) -> (i64, i64) {
    let wanted = turn.wanted();
    let quarter = json!("25%");
    let strategy = turn.strategy("canary");
    let of = |field: &str| strategy.and_then(|strategy| strategy.get(field));
    let surge = json::part_of(of("maxSurge"), wanted, true, &quarter);
    let missing = json::part_of(of("maxUnavailable"), wanted, false, &quarter);
    (surge, if surge == 0 && missing == 0 { 1 } else { missing })
}

/// Moves every set towards its share, as far as the bounds allow. Says whether all of them are there.
pub(super) fn exchange(world: &mut ClusterWorld, turn: &RolloutTurn, new: i64, stable: i64) -> bool {
    let wanted = turn.wanted();
    let (surge, missing) = bounds(turn);
    let goal = |set: &Value| match hash_of(set) {
        hash if hash == turn.hash => new,
        hash if hash == turn.stable() => stable,
        _ => 0,
    };
    let mut room = wanted + surge - turn.sets(world).iter().map(|set| size(set)).sum::<i64>();
    for set in turn.sets(world) {
        let more = (goal(&set) - size(&set)).min(room);
        if more > 0 {
            scale(world, turn, &set, size(&set) + more);
            room -= more;
        }
    }
    let mut spare = turn.sets(world).iter().map(|set| available(set)).sum::<i64>() - (wanted - missing);
    for set in turn.sets(world) {
        let surplus = size(&set) - goal(&set);
        // Pods that never came to be are of no use and may go at once.
        let useless = (size(&set) - available(&set)).clamp(0, surplus.max(0));
        let fewer = useless + (surplus - useless).clamp(0, spare.max(0));
        if fewer > 0 {
            scale(world, turn, &set, size(&set) - fewer);
            spare -= fewer - useless;
        }
    }
    let settled = |set: &Arc<Value>| size(set) == goal(set) && available(set) == goal(set);
    turn.sets(world).iter().all(settled)
}

/// Sets the size of a ReplicaSet and tells it.
pub(super) fn scale(world: &mut ClusterWorld, turn: &RolloutTurn, set: &Value, to: i64) {
    let from = size(set);
    if from == to {
        return;
    }
    world.change("replicasets.apps", set, |set| {
        json::set(set, "/spec/replicas", to);
        ClusterWorld::count_generation(set);
    });
    let direction = if to > from { "up" } else { "down" };
    let message = format!("Scaled {direction} ReplicaSet {} from {from} to {to}", json::name(set));
    let what =
        Occurrence { warning: false, reason: "ScalingReplicaSet", message: &message, source: "rollouts-controller" };
    world.note(&turn.rollout, what);
}

#[cfg(test)]
mod tests {
    use super::shares;

    #[test]
    fn both_templates_serve_while_both_have_weight() {
        assert_eq!(
            [0, 1, 25, 50, 99, 100].map(|weight| shares(4, weight)),
            [(0, 4), (1, 3), (1, 3), (2, 2), (3, 1), (4, 0)]
        );
        assert_eq!((shares(1, 20), shares(0, 20)), ((1, 0), (0, 0)));
    }
}
