//! Deletion: at once, gracefully, or when the last finalizer is gone.

use std::sync::Arc;
use std::time::Duration;

use serde_json::Value;

use super::ClusterWorld;
use crate::clock;
use crate::json;
use crate::kinds::ApiKind;
use crate::status::ApiStatus;

/// What happens with the dependents.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) enum Propagation {
    #[default]
    Background,
    Foreground,
    Orphan,
}

/// How a deletion is meant.
#[derive(Debug, Clone, Default)]
pub(crate) struct DeletionOptions {
    pub(crate) dry_run: bool,
    pub(crate) propagation: Propagation,
    pub(crate) grace: Option<u64>,
    pub(crate) uid: Option<String>,
    pub(crate) version: Option<String>,
}

/// What became of a deletion.
#[derive(Debug)]
pub(crate) struct DeletionResult {
    pub(crate) object: Arc<Value>,
    /// It is gone, not only going.
    pub(crate) gone: bool,
}

const FOREGROUND: &str = "foregroundDeletion";

impl ClusterWorld {
    /// DELETE of one object.
    pub(crate) fn delete(
        &mut self,
        kind: &ApiKind,
        (namespace, name): (&str, &str),
        how: &DeletionOptions,
    ) -> Result<DeletionResult, ApiStatus> {
        let live = self.get(kind, namespace, name)?;
        self.check_preconditions(kind, &live, how)?;
        let mut object = (*live).clone();
        let grace = self.grace(kind, &live, how);
        if how.propagation == Propagation::Foreground {
            add_finalizer(&mut object, FOREGROUND);
        }
        if how.propagation == Propagation::Orphan && !how.dry_run {
            self.release_dependents(&live);
        }
        let waits = !json::list(&object, "/metadata/finalizers").is_empty();
        if !waits && grace == 0 && kind.plural != "namespaces" {
            if how.dry_run {
                return Ok(DeletionResult { object: live, gone: true });
            }
            let gone = self.remove(kind, namespace, name).unwrap_or(live);
            return Ok(DeletionResult { object: gone, gone: true });
        }
        if !json::is_going(&object)
            || grace < json::int(&object, "/metadata/deletionGracePeriodSeconds", 0).unsigned_abs()
        {
            let at = clock::after(self.now(), Duration::from_secs(grace));
            json::set(&mut object, "/metadata/deletionTimestamp", clock::stamp(at));
            json::set(&mut object, "/metadata/deletionGracePeriodSeconds", grace);
            if kind.counted && !json::is_going(&live) {
                ClusterWorld::count_generation(&mut object);
            }
        }
        if kind.plural == "namespaces" {
            json::set(&mut object, "/status/phase", "Terminating");
        }
        if how.dry_run {
            return Ok(DeletionResult { object: Arc::new(object), gone: false });
        }
        let object = self.save(&kind.resource(), object);
        Ok(DeletionResult { object, gone: false })
    }

    /// Takes an object away for good, and what was known because of it.
    pub(crate) fn remove(&mut self, kind: &ApiKind, namespace: &str, name: &str) -> Option<Arc<Value>> {
        let gone = self.objects.remove(&kind.resource(), namespace, name)?;
        self.due.remove(json::uid(&gone));
        if kind.plural == "customresourcedefinitions" {
            crate::controllers::definitions::forget(self, &gone);
        }
        Some(gone)
    }

    fn check_preconditions(&self, kind: &ApiKind, live: &Value, how: &DeletionOptions) -> Result<(), ApiStatus> {
        let name = json::name(live);
        let have = json::uid(live);
        if let Some(uid) = how.uid.as_deref().filter(|uid| *uid != have) {
            let why = format!("Precondition failed: UID in precondition: {uid}, UID in object meta: {have}");
            return Err(ApiStatus::conflict(&kind.named(), name, &why));
        }
        let have = json::text_or_empty(live, "/metadata/resourceVersion");
        if let Some(version) = how.version.as_deref().filter(|version| *version != have) {
            let why = format!(
                "Precondition failed: ResourceVersion in precondition: {version}, ResourceVersion in object meta: {have}"
            );
            return Err(ApiStatus::conflict(&kind.named(), name, &why));
        }
        Ok(())
    }

    /// Only pods on a node stop gracefully.
    fn grace(&self, kind: &ApiKind, live: &Value, how: &DeletionOptions) -> u64 {
        let phase = json::text_or_empty(live, "/status/phase");
        let on_a_node = kind.type_name == "core.v1.Pod" && json::text(live, "/spec/nodeName").is_some();
        if !on_a_node || phase == "Succeeded" || phase == "Failed" {
            return 0;
        }
        let wanted = json::int(live, "/spec/terminationGracePeriodSeconds", 30).unsigned_abs();
        how.grace.unwrap_or(wanted)
    }

    /// Takes the owner out of everything it owned.
    fn release_dependents(&mut self, owner: &Value) {
        let uid = json::uid(owner).to_owned();
        let resources: Vec<String> = self.objects.resources().cloned().collect();
        for resource in resources {
            let owned = self.all(&resource, json::namespace(owner));
            let owned = owned.iter().filter(|object| is_owned_by(object, &uid));
            for object in owned.cloned().collect::<Vec<_>>() {
                self.change(&resource, &object, |object| {
                    json::list_mut(object, "/metadata/ownerReferences")
                        .retain(|owner| json::text(owner, "/uid") != Some(&uid));
                });
            }
        }
    }
}

/// Whether an object names this owner.
pub(crate) fn is_owned_by(object: &Value, uid: &str) -> bool {
    json::list(object, "/metadata/ownerReferences").iter().any(|owner| json::text(owner, "/uid") == Some(uid))
}

/// A going object without finalizers may go; pods and namespaces are let go by their own keepers.
pub(super) fn is_free_to_go(kind: &ApiKind, object: &Value) -> bool {
    let kept = matches!(kind.resource().as_str(), "pods" | "namespaces");
    json::is_going(object) && json::list(object, "/metadata/finalizers").is_empty() && !kept
}

fn add_finalizer(object: &mut Value, name: &str) {
    let finalizers = json::list_mut(object, "/metadata/finalizers");
    if !finalizers.iter().any(|one| one == name) {
        finalizers.push(Value::String(name.to_owned()));
    }
}
