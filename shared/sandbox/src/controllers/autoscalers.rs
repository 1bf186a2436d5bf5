//! HorizontalPodAutoscalers: they keep a workload within its bounds; load is not simulated.

use serde_json::{Value, json};

use super::Occurrence;
use super::conditions::{self, DesiredCondition};
use crate::json;
use crate::world::ClusterWorld;

const RESOURCE: &str = "horizontalpodautoscalers.autoscaling";

pub(super) fn look(world: &mut ClusterWorld) {
    for scaler in world.all(RESOURCE, "") {
        let target = &scaler["spec"]["scaleTargetRef"];
        let kind =
            world.kinds.of_object(json::text_or_empty(target, "/apiVersion"), json::text_or_empty(target, "/kind"));
        let found = kind.and_then(|kind| {
            let place = kind.scale.clone()?;
            let object =
                world.find(&kind.resource(), json::namespace(&scaler), json::text_or_empty(target, "/name"))?;
            Some((kind.resource(), place.wanted, object))
        });
        match found {
            Some((resource, place, object)) => hold(world, &scaler, (&resource, &place), &object),
            None => write(world, &scaler, None),
        }
    }
}

/// Brings the replicas back between the bounds; none at all switches the autoscaler off.
fn hold(world: &mut ClusterWorld, scaler: &Value, (resource, place): (&str, &str), object: &Value) {
    let current = json::int(object, place, 1);
    let (least, most) = (json::int(scaler, "/spec/minReplicas", 1), json::int(scaler, "/spec/maxReplicas", 1));
    let wanted = if current == 0 { 0 } else { current.clamp(least.min(most), most) };
    if wanted != current {
        world.change(resource, object, |object| {
            json::set(object, place, wanted);
            ClusterWorld::count_generation(object);
        });
        let message = format!(
            "New size: {wanted}; reason: Current number of replicas outside of Spec.MinReplicas and Spec.MaxReplicas"
        );
        let source = "horizontal-pod-autoscaler";
        world.note(scaler, Occurrence { warning: false, reason: "SuccessfulRescale", message: &message, source });
    }
    write(world, scaler, Some((current, wanted)));
}

fn write(world: &mut ClusterWorld, scaler: &Value, replicas: Option<(i64, i64)>) {
    let now = world.stamp();
    world.change(RESOURCE, scaler, |scaler| {
        let able = match replicas {
            Some((current, wanted)) => {
                json::set(scaler, "/status/currentReplicas", current);
                json::set(scaler, "/status/desiredReplicas", wanted);
                let metric = json!({ "type": "Resource", "resource": { "name": "cpu", "current": { "averageUtilization": 41, "averageValue": "41m" } } });
                json::set(scaler, "/status/currentMetrics", json!([metric]));
                let message = "recommended size matches current size";
                DesiredCondition { kind: "AbleToScale", holds: true, reason: "ReadyForNewScale", message }
            }
            None => {
                json::set(scaler, "/status/desiredReplicas", 0);
                let message = "the HPA controller was unable to get the target's current scale";
                DesiredCondition { kind: "AbleToScale", holds: false, reason: "FailedGetScale", message }
            }
        };
        conditions::set(scaler, &able, &now);
    });
}
