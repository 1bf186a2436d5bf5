//! Garbage collection: what has owners goes when all of them are gone, and before them in the foreground.

use std::collections::BTreeSet;
use std::sync::Arc;

use serde_json::Value;

use crate::json;
use crate::world::ClusterWorld;
use crate::write::DeletionOptions;

const FOREGROUND: &str = "foregroundDeletion";

pub(super) fn look(world: &mut ClusterWorld) {
    let resources: Vec<String> = world.objects.resources().cloned().collect();
    let mut uids: BTreeSet<String> = BTreeSet::new();
    let mut leaving: BTreeSet<String> = BTreeSet::new();
    let mut owned: Vec<(String, Arc<Value>)> = Vec::new();
    for resource in &resources {
        for object in world.objects.all(resource) {
            // Events are owned by nobody and own nothing; leaving them out keeps the look cheap.
            if resource == "events" {
                continue;
            }
            uids.insert(json::uid(object).to_owned());
            if is_leaving(object) {
                leaving.insert(json::uid(object).to_owned());
            }
            if json::at(object, "/metadata/ownerReferences").is_some() {
                owned.push((resource.clone(), object.clone()));
            }
        }
    }
    let mut blocking: BTreeSet<String> = BTreeSet::new();
    for (resource, object) in owned {
        let owners = json::list(&object, "/metadata/ownerReferences");
        let uid_of = |owner: &Value| json::text_or_empty(owner, "/uid").to_owned();
        let alive = owners.iter().any(|owner| uids.contains(&uid_of(owner)) && !leaving.contains(&uid_of(owner)));
        if alive || owners.is_empty() {
            continue;
        }
        blocking.extend(owners.iter().filter(|owner| json::is_true(owner, "/blockOwnerDeletion")).map(uid_of));
        if !json::is_going(&object) {
            delete(world, &resource, &object);
        }
    }
    for resource in resources {
        let done = |object: &&Arc<Value>| is_leaving(object) && !blocking.contains(json::uid(object));
        for object in world.objects.all(&resource).filter(done).cloned().collect::<Vec<_>>() {
            release(world, &resource, &object);
        }
    }
}

/// Going in the foreground: it waits for its dependents.
fn is_leaving(object: &Value) -> bool {
    json::is_going(object) && json::list(object, "/metadata/finalizers").iter().any(|one| one == FOREGROUND)
}

fn delete(world: &mut ClusterWorld, resource: &str, object: &Value) {
    let Some(kind) = world.kinds.of_resource(resource) else { return };
    if let Err(refused) =
        world.delete(&kind, (json::namespace(object), json::name(object)), &DeletionOptions::default())
    {
        tracing::debug!(%refused, "a dependent was gone before it was collected");
    }
}

fn release(world: &mut ClusterWorld, resource: &str, object: &Value) {
    let changed = world.change(resource, object, |object| {
        json::list_mut(object, "/metadata/finalizers").retain(|one| one != FOREGROUND);
    });
    let free = changed.is_some_and(|object| json::list(&object, "/metadata/finalizers").is_empty());
    if free
        && resource != "pods"
        && let Some(kind) = world.kinds.of_resource(resource)
    {
        world.remove(&kind, json::namespace(object), json::name(object));
    }
}
