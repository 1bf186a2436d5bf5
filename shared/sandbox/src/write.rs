//! Writes through the API: create, replace, patch and apply, with everything the server checks on the way.
//!
//! Each write first makes the object as it would be stored; only then, and not in a dry run, it is stored.

mod checks;
mod delete;
mod prepare;

use std::sync::Arc;

use serde_json::Value;

use self::checks::{check_identity, check_version};
pub(crate) use self::delete::{DeletionOptions, DeletionResult, Propagation};
use crate::json;
use crate::kinds::ApiKind;
use crate::managers::FieldAuthor;
use crate::patch::{self, PatchBodyForm};
use crate::status::ApiStatus;
use crate::validate::{self, Unknown};
use crate::world::{self, ClusterWorld};

/// How a write is meant, from its query.
#[derive(Debug, Clone)]
pub(crate) struct WriteOptions {
    pub(crate) dry_run: bool,
    pub(crate) manager: String,
    pub(crate) force: bool,
    pub(crate) unknown: Unknown,
    /// Empty for the object itself, else `status`, `scale`, `ephemeralcontainers`.
    pub(crate) subresource: &'static str,
}

/// What became of a write.
#[derive(Debug)]
pub(crate) struct ApiWriteResult {
    pub(crate) object: Arc<Value>,
    pub(crate) created: bool,
    pub(crate) warnings: Vec<String>,
}

impl ClusterWorld {
    /// POST: a new object.
    pub(crate) fn create(
        &mut self,
        kind: &ApiKind,
        namespace: &str,
        mut object: Value,
        options: &WriteOptions,
    ) -> Result<ApiWriteResult, ApiStatus> {
        check_identity(&object, kind)?;
        self.adopt_namespace(kind, namespace, &mut object)?;
        let findings = validate::prune(&mut object, &self.types, &self.place(kind));
        let warnings = validate::judge(&findings, options.unknown, kind)?;
        if json::name(&object).is_empty()
            && let Some(prefix) = json::text(&object, "/metadata/generateName")
        {
            let name = format!("{prefix}{}", world::name_suffix());
            json::set(&mut object, "/metadata/name", name);
        }
        if self.objects.find(&kind.resource(), namespace, json::name(&object)).is_some() {
            return Err(ApiStatus::already_exists(&kind.named(), json::name(&object)));
        }
        if json::text(&object, "/metadata/resourceVersion").is_some_and(|version| !version.is_empty()) {
            return Err(ApiStatus::unclassified("resourceVersion should not be set on objects to be created"));
        }
        let object = self.prepare_new(kind, namespace, object, options, None)?;
        Ok(ApiWriteResult { object: self.commit(kind, object, options), created: true, warnings })
    }

    /// PUT: the whole object as it shall be.
    pub(crate) fn replace(
        &mut self,
        kind: &ApiKind,
        (namespace, name): (&str, &str),
        mut object: Value,
        options: &WriteOptions,
    ) -> Result<ApiWriteResult, ApiStatus> {
        check_identity(&object, kind)?;
        self.adopt_namespace(kind, namespace, &mut object)?;
        if json::name(&object) != name {
            let said = json::name(&object);
            let message = format!("the name of the object ({said}) does not match the name on the URL ({name})");
            return Err(ApiStatus::bad_request(message));
        }
        let findings = validate::prune(&mut object, &self.types, &self.place(kind));
        let warnings = validate::judge(&findings, options.unknown, kind)?;
        let live = self.get(kind, namespace, name)?;
        let object = self.prepare_next(kind, &live, object, options)?;
        Ok(ApiWriteResult { object: self.commit(kind, object, options), created: false, warnings })
    }

    /// PATCH in one of the three forms that need a live object, or server-side apply, which may create it.
    pub(crate) fn patch(
        &mut self,
        kind: &ApiKind,
        (namespace, name): (&str, &str),
        (form, change): (PatchBodyForm, &Value),
        options: &WriteOptions,
    ) -> Result<ApiWriteResult, ApiStatus> {
        if form == PatchBodyForm::Apply {
            return self.apply(kind, (namespace, name), change.clone(), options);
        }
        if form == PatchBodyForm::Strategic && kind.custom {
            return Err(ApiStatus::unsupported_media_type(
                "the body of the request was in an unknown format - accepted media types include: \
                 application/json-patch+json, application/merge-patch+json, application/apply-patch+yaml",
            ));
        }
        let live = self.get(kind, namespace, name)?;
        let place = self.place(kind);
        let mut object = patch::patched(form, &live, change, &self.types, &place)?;
        let findings = validate::prune(&mut object, &self.types, &place);
        let warnings = validate::judge_patch(&findings, options.unknown, kind, change)?;
        if json::name(&object) != name {
            let said = json::name(&object);
            let message = format!("the name of the object ({said}) does not match the name on the URL ({name})");
            return Err(ApiStatus::bad_request(message));
        }
        let object = self.prepare_next(kind, &live, object, options)?;
        Ok(ApiWriteResult { object: self.commit(kind, object, options), created: false, warnings })
    }

    fn apply(
        &mut self,
        kind: &ApiKind,
        (namespace, name): (&str, &str),
        mut intent: Value,
        options: &WriteOptions,
    ) -> Result<ApiWriteResult, ApiStatus> {
        if options.manager.is_empty() {
            return Err(ApiStatus::apply_without_manager());
        }
        check_identity(&intent, kind)?;
        if intent.pointer("/metadata/managedFields").is_some() {
            return Err(ApiStatus::bad_request("metadata.managedFields must be nil"));
        }
        json::set_default(&mut intent, "/metadata/name", name);
        if json::name(&intent) != name {
            let said = json::name(&intent);
            let message = format!("the name of the object ({said}) does not match the name on the URL ({name})");
            return Err(ApiStatus::bad_request(message));
        }
        self.adopt_namespace(kind, namespace, &mut intent)?;
        let place = self.place(kind);
        let findings = validate::prune(&mut intent, &self.types, &place);
        validate::judge_apply(&findings, kind, &intent)?;
        let live = self.objects.find(&kind.resource(), namespace, name).cloned();
        let Some(live) = live else {
            if options.subresource == "status" || options.subresource == "scale" {
                return Err(ApiStatus::not_found(&kind.named(), name));
            }
            let object = self.prepare_new(kind, namespace, intent.clone(), options, Some(&intent))?;
            return Ok(ApiWriteResult {
                object: self.commit(kind, object, options),
                created: true,
                warnings: Vec::new(),
            });
        };
        check_version(kind, &live, &intent)?;
        let (api_version, time) = (kind.api_version(), self.stamp());
        let author = FieldAuthor {
            manager: &options.manager,
            subresource: options.subresource,
            api_version: &api_version,
            time: &time,
        };
        json::take(&mut intent, "/metadata/resourceVersion");
        json::take(&mut intent, "/metadata/uid");
        let merged = patch::apply::apply(&live, &intent, &author, options.force, (&self.types, &place))?;
        let object = self.finish_next(kind, &live, merged, options)?;
        Ok(ApiWriteResult { object: self.commit(kind, object, options), created: false, warnings: Vec::new() })
    }

    /// The live object, or the refusal that it is not there.
    pub(crate) fn get(&self, kind: &ApiKind, namespace: &str, name: &str) -> Result<Arc<Value>, ApiStatus> {
        let found = self.objects.find(&kind.resource(), namespace, name);
        found.cloned().ok_or_else(|| ApiStatus::not_found(&kind.named(), name))
    }

    /// Stores what was prepared, unless it is a rehearsal; an object whose last finalizer went is removed.
    fn commit(&mut self, kind: &ApiKind, object: Value, options: &WriteOptions) -> Arc<Value> {
        if options.dry_run {
            return Arc::new(object);
        }
        let resource = kind.resource();
        if delete::is_free_to_go(kind, &object) {
            let object = self.save(&resource, object);
            return self.objects.remove(&resource, json::namespace(&object), json::name(&object)).unwrap_or(object);
        }
        let stored = self.save(&resource, object);
        self.after_write(kind, &stored);
        stored
    }

    /// A stored definition makes its kinds known at once.
    fn after_write(&mut self, kind: &ApiKind, stored: &Value) {
        if kind.plural == "customresourcedefinitions" {
            crate::controllers::definitions::learn(self, stored);
        }
    }
}
