//! Namespaces: what every one gets, and emptying those that go.

use serde_json::{Value, json};

use crate::json;
use crate::world::ClusterWorld;
use crate::write::DeletionOptions;

pub(super) fn look(world: &mut ClusterWorld) {
    for namespace in world.all("namespaces", "") {
        if json::is_going(&namespace) {
            empty(world, &namespace);
        } else {
            furnish(world, json::name(&namespace));
        }
    }
}

/// The account pods run as and the authority they trust.
fn furnish(world: &mut ClusterWorld, namespace: &str) {
    if world.objects.find("serviceaccounts", namespace, "default").is_none() {
        world.make("serviceaccounts", json!({ "metadata": { "name": "default", "namespace": namespace } }));
    }
    if world.objects.find("configmaps", namespace, "kube-root-ca.crt").is_none() {
        let bundle = "simulated certificate bundle of the sandbox\n";
        let metadata = json!({ "name": "kube-root-ca.crt", "namespace": namespace });
        world.make("configmaps", json!({ "metadata": metadata, "data": { "ca.crt": bundle } }));
    }
}

fn empty(world: &mut ClusterWorld, namespace: &Value) {
    let name = json::name(namespace);
    let resources: Vec<String> = world.objects.resources().cloned().collect();
    let mut left = 0;
    for resource in resources {
        let Some(kind) = world.kinds.of_resource(&resource).filter(|kind| kind.namespaced) else { continue };
        for object in world.all(&resource, name) {
            left += 1;
            if json::is_going(&object) {
                continue;
            }
            match world.delete(&kind, (name, json::name(&object)), &DeletionOptions::default()) {
                Ok(deleted) if deleted.gone => left -= 1,
                Ok(_) => {}
                Err(refused) => tracing::debug!(%refused, "content of a namespace was gone already"),
            }
        }
    }
    let held = !json::list(namespace, "/metadata/finalizers").is_empty();
    if left == 0 && !held {
        world.objects.remove("namespaces", "", name);
    }
}
