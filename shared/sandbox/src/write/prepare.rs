//! Making the object as it would be stored: defaults, checks, ownership and generation.

use serde_json::{Value, json};

use super::WriteOptions;
use super::checks::check_version;
use crate::json;
use crate::kinds::ApiKind;
use crate::managers::{self, FieldAuthor};
use crate::status::ApiStatus;
use crate::validate;
use crate::world::{self, ClusterWorld};

impl ClusterWorld {
    pub(super) fn adopt_namespace(&self, kind: &ApiKind, namespace: &str, object: &mut Value) -> Result<(), ApiStatus> {
        if !kind.namespaced {
            json::take(object, "/metadata/namespace");
            return Ok(());
        }
        let said = json::namespace(object);
        if !said.is_empty() && said != namespace {
            return Err(ApiStatus::bad_request(
                "the namespace of the provided object does not match the namespace sent on the request",
            ));
        }
        json::set(object, "/metadata/namespace", namespace);
        Ok(())
    }

    pub(super) fn prepare_new(
        &mut self,
        kind: &ApiKind,
        namespace: &str,
        mut object: Value,
        options: &WriteOptions,
        applied: Option<&Value>,
    ) -> Result<Value, ApiStatus> {
        self.check_namespace(kind, namespace, json::name(&object))?;
        json::set(&mut object, "/metadata/uid", world::new_uid());
        json::set(&mut object, "/metadata/creationTimestamp", self.stamp());
        for at in
            ["/metadata/deletionTimestamp", "/metadata/managedFields", "/metadata/selfLink", "/metadata/generation"]
        {
            json::take(&mut object, at);
        }
        if kind.counted {
            json::set(&mut object, "/metadata/generation", 1);
        }
        if kind.status && !matches!(kind.plural.as_str(), "nodes" | "persistentvolumes") {
            json::take(&mut object, "/status");
        }
        let given = object.clone();
        crate::defaults::fill(self, kind, &mut object);
        let place = self.place(kind);
        validate::check_rules(&object, kind, &self.types, &place)?;
        self.check_quota(kind, namespace, &object)?;
        let (api_version, time) = (kind.api_version(), self.stamp());
        let author = FieldAuthor { manager: &options.manager, subresource: "", api_version: &api_version, time: &time };
        let shares = match applied {
            Some(intent) => {
                let set = crate::fields::fields_of(intent, &self.types, &place);
                managers::after_apply(Vec::new(), set, &Default::default(), &author)
            }
            None => managers::after_update(Vec::new(), &json!({}), &given, &author, (&self.types, &place)),
        };
        managers::write(&mut object, &shares);
        Ok(object)
    }

    pub(super) fn prepare_next(
        &mut self,
        kind: &ApiKind,
        live: &Value,
        mut object: Value,
        options: &WriteOptions,
    ) -> Result<Value, ApiStatus> {
        check_version(kind, live, &object)?;
        let place = self.place(kind);
        restrict(kind, live, &mut object, options.subresource);
        if kind.resource() == "secrets" {
            // Plain values become data before anybody owns them, so they are owned as data.
            crate::defaults::secret(&mut object);
        }
        let shares = managers::shares(live);
        let (api_version, time) = (kind.api_version(), self.stamp());
        let author = FieldAuthor {
            manager: &options.manager,
            subresource: options.subresource,
            api_version: &api_version,
            time: &time,
        };
        let keep = live.pointer("/metadata/managedFields").cloned();
        let mut compared = object.clone();
        crate::defaults::fill(self, kind, &mut compared);
        let same = {
            let mut bare = compared.clone();
            let mut was = live.clone();
            for at in ["/metadata/managedFields", "/metadata/resourceVersion"] {
                json::take(&mut bare, at);
                json::take(&mut was, at);
            }
            bare == was
        };
        if same {
            return Ok(live.clone());
        }
        if let Some(keep) = keep {
            json::set(&mut object, "/metadata/managedFields", keep);
        }
        let shares = managers::after_update(shares, live, &object, &author, (&self.types, &place));
        managers::write(&mut object, &shares);
        self.finish_next(kind, live, object, options)
    }

    /// What holds for every changed object, whichever way it came.
    pub(super) fn finish_next(
        &mut self,
        kind: &ApiKind,
        live: &Value,
        mut object: Value,
        options: &WriteOptions,
    ) -> Result<Value, ApiStatus> {
        restrict(kind, live, &mut object, options.subresource);
        crate::defaults::fill(self, kind, &mut object);
        let place = self.place(kind);
        validate::check_rules(&object, kind, &self.types, &place)?;
        if options.subresource.is_empty() || options.subresource == "scale" {
            validate::check_fixed(live, &object, kind)?;
        }
        if kind.counted && wanted_state(kind, live) != wanted_state(kind, &object) {
            ClusterWorld::count_generation(&mut object);
        }
        Ok(object)
    }
}

/// What a write through this door may touch; the rest stays as it is.
fn restrict(kind: &ApiKind, live: &Value, object: &mut Value, subresource: &str) {
    for at in [
        "/metadata/uid",
        "/metadata/creationTimestamp",
        "/metadata/generation",
        "/metadata/deletionTimestamp",
        "/metadata/deletionGracePeriodSeconds",
        "/metadata/resourceVersion",
    ] {
        match live.pointer(at) {
            Some(value) => json::set(object, at, value.clone()),
            None => drop(json::take(object, at)),
        }
    }
    match subresource {
        "status" => {
            let status = object.get("status").cloned();
            let metadata = object.get("metadata").cloned();
            *object = live.clone();
            if let Some(status) = status {
                json::set(object, "/status", status);
            }
            if let Some(metadata) = metadata {
                json::set(object, "/metadata", metadata);
            }
        }
        "" if kind.status => match live.get("status") {
            Some(status) => json::set(object, "/status", status.clone()),
            None => drop(json::take(object, "/status")),
        },
        _ => {}
    }
}

/// The part of an object whose changes are counted.
fn wanted_state(kind: &ApiKind, object: &Value) -> Value {
    if kind.custom {
        let mut object = object.clone();
        json::take(&mut object, "/metadata");
        if kind.status {
            json::take(&mut object, "/status");
        }
        return object;
    }
    object.get("spec").cloned().unwrap_or_default()
}
