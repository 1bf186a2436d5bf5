//! Custom resource definitions: their kinds are served as soon as they are stored.

use serde_json::{Value, json};

use super::conditions::{self, DesiredCondition};
use crate::json;
use crate::kinds;
use crate::schema;
use crate::world::ClusterWorld;

/// Makes the kinds of a definition known.
pub(crate) fn learn(world: &mut ClusterWorld, definition: &Value) {
    let read = kinds::read_definition(definition);
    if let Some(first) = read.first() {
        world.kinds.remove(&first.group, &first.plural);
    }
    for kind in read {
        schema::read_custom(&mut world.types, &kind.type_name, &kind.schema);
        world.kinds.insert(kind);
    }
}

/// Takes the kinds of a definition away, and their objects with them.
pub(crate) fn forget(world: &mut ClusterWorld, definition: &Value) {
    for kind in kinds::read_definition(definition) {
        for object in world.all(&kind.resource(), "") {
            world.objects.remove(&kind.resource(), json::namespace(&object), json::name(&object));
        }
        world.kinds.remove(&kind.group, &kind.plural);
    }
}

/// Tells that the names were accepted and the kind is served.
pub(super) fn look(world: &mut ClusterWorld) {
    for definition in world.all("customresourcedefinitions.apiextensions.k8s.io", "") {
        if conditions::holds(&definition, "Established") {
            continue;
        }
        let now = world.stamp();
        let stored =
            json::list(&definition, "/spec/versions").iter().find(|version| json::is_true(version, "/storage"));
        let stored = stored.map(|version| version["name"].clone()).unwrap_or_default();
        world.change("customresourcedefinitions.apiextensions.k8s.io", &definition, |definition| {
            let accepted = DesiredCondition {
                kind: "NamesAccepted",
                holds: true,
                reason: "NoConflicts",
                message: "no conflicts found",
            };
            let established = DesiredCondition {
                kind: "Established",
                holds: true,
                reason: "InitialNamesAccepted",
                message: "the initial names have been accepted",
            };
            conditions::set(definition, &accepted, &now);
            conditions::set(definition, &established, &now);
            json::set(definition, "/status/acceptedNames", definition["spec"]["names"].clone());
            json::set(definition, "/status/storedVersions", json!([stored]));
        });
    }
}
