//! Manifests: YAML with several documents, or JSON, read within bounds into objects that say what and where they are.
//!
//! The text is bounded, so are depth, nodes and everything an alias could multiply; keys named twice and unknown tags are
//! refused. A text that cannot be read is kept as the reason why, because the arguments of a call are judged before
//! anybody can be told: a manifest that nobody understood counts as the worst it could be.

use super::grammar::{is_label, is_version};
use super::kind_name;
use crate::codes;
use domain::{Code, Failure};
use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::{Deserialize, Serialize};
use serde_json::Value;
use serde_saphyr::options::{DuplicateKeyPolicy, NonFiniteFloatPolicy};
use std::borrow::Cow;
use std::collections::BTreeSet;

/// The longest text.
const MOST_BYTES: usize = 256 * 1024;
/// The most objects in one call.
const MOST_OBJECTS: usize = 50;

/// What a call wants to be so.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(from = "String", into = "String")]
pub(crate) struct ObjectManifest {
    text: String,
    read: Result<Vec<ManifestObject>, Box<Failure>>,
}

/// One object of a manifest.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct ManifestObject {
    /// `apps/v1`, or `v1` for the core group.
    pub(crate) api_version: String,
    /// Its kind.
    pub(crate) kind: String,
    /// Its name.
    pub(crate) name: String,
    /// The namespace it says itself.
    pub(crate) namespace: Option<String>,
    /// The whole of it, as it would be sent.
    pub(crate) value: Value,
}

impl ManifestObject {
    /// The kind in the spelling that discovery understands without doubt.
    pub(crate) fn kind_text(&self) -> String {
        format!("{}/{}", self.api_version, self.kind)
    }

    /// What rules call its kind.
    pub(crate) fn about(&self) -> String {
        kind_name::plural(&self.kind_text())
    }

    /// Wants the cluster to call the kind what it was judged as: rules know it by its plural alone.
    pub(crate) fn agrees(&self, plural: &str) -> Result<(), Failure> {
        if self.about() == plural {
            return Ok(());
        }
        let message = format!("{} {} is one of {plural}, and rules know it by that name", self.kind, self.name);
        Err(Failure::new(codes::INVALID_MANIFEST, message).next(format!("use k8s_patch with kind={plural}")))
    }

    /// The namespace to use: its own, else the one the call names. Two different ones are a contradiction.
    pub(crate) fn namespace_or<'a>(&'a self, argument: Option<&'a str>) -> Result<Option<&'a str>, Failure> {
        match (self.namespace.as_deref(), argument) {
            (Some(own), Some(other)) if own != other => Err(Failure::new(
                codes::NAMESPACE_CONFLICT,
                format!("{} {} says namespace {own} and the call says {other}", self.kind, self.name),
            )
            .next("leave the namespace argument out, or make them equal")),
            (own, other) => Ok(own.or(other)),
        }
    }
}

impl ObjectManifest {
    /// Its objects in the order of the text, or why there are none.
    pub(crate) fn objects(&self) -> Result<&[ManifestObject], Failure> {
        self.read.as_deref().map_err(|failure| (**failure).clone())
    }

    /// What rules call it: every kind in it, once.
    pub(crate) fn about(&self) -> Option<String> {
        let kinds: BTreeSet<String> = self.read.as_ref().ok()?.iter().map(ManifestObject::about).collect();
        Some(kinds.into_iter().collect::<Vec<_>>().join(","))
    }

    /// Whether one of its kinds reaches far. Nobody knows what an unreadable one would do, so it counts as far.
    pub(crate) fn is_wide(&self) -> bool {
        match &self.read {
            Ok(objects) => objects.iter().any(|object| kind_name::is_wide(&object.about())),
            Err(_) => true,
        }
    }

    /// Whether one of its objects brings something that disrupts. What nobody understood counts as the worst.
    pub(crate) fn is_risky(&self) -> bool {
        match &self.read {
            Ok(objects) => {
                let risks = objects.iter().flat_map(|object| crate::risks::of_change(None, &object.value));
                risks.into_iter().any(|risk| risk.rule.disrupts())
            }
            Err(_) => true,
        }
    }
}

impl From<String> for ObjectManifest {
    fn from(text: String) -> ObjectManifest {
        let read = read(&text).map_err(Box::new);
        ObjectManifest { text, read }
    }
}

impl From<ObjectManifest> for String {
    fn from(manifest: ObjectManifest) -> String {
        manifest.text
    }
}

impl JsonSchema for ObjectManifest {
    fn schema_name() -> Cow<'static, str> {
        "Manifest".into()
    }

    fn inline_schema() -> bool {
        true
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({ "type": "string", "minLength": 1, "maxLength": MOST_BYTES })
    }
}

fn read(text: &str) -> Result<Vec<ManifestObject>, Failure> {
    if text.len() > MOST_BYTES {
        return Err(too_large(format!("the manifest has {} bytes and {MOST_BYTES} are allowed", text.len())));
    }
    let documents: Vec<Value> =
        serde_saphyr::from_multiple_with_options(text, bounds()).map_err(|error| not_yaml(&error))?;
    let mut objects = Vec::new();
    for document in documents {
        match document {
            // Nothing between two lines of dashes.
            Value::Null => {}
            Value::Object(ref fields) if is_list(fields) => {
                let items = fields.get("items").and_then(Value::as_array).cloned().unwrap_or_default();
                for item in items {
                    push(&mut objects, item)?;
                }
            }
            Value::Bool(_) | Value::Number(_) | Value::String(_) | Value::Array(_) | Value::Object(_) => {
                push(&mut objects, document)?;
            }
        }
    }
    match objects.is_empty() {
        true => Err(invalid(
            "the manifest holds no object",
            "give at least one object with apiVersion, kind and metadata.name",
        )),
        false => Ok(objects),
    }
}

/// Wide enough for real manifests, and small enough that no text grows by being read.
fn bounds() -> serde_saphyr::Options {
    serde_saphyr::options! {
        budget: serde_saphyr::budget! {
            max_documents: 2 * MOST_OBJECTS,
            max_depth: 64,
            flow_nesting_limit: 64,
            max_nodes: 60_000,
            max_events: 200_000,
            max_anchors: 64,
            max_aliases: 256,
            max_merge_keys: 64,
            max_recorded_anchor_events: 20_000,
            max_recorded_anchor_bytes: MOST_BYTES,
            max_total_scalar_bytes: 2 * MOST_BYTES,
        },
        alias_limits: serde_saphyr::alias_limits! {
            max_total_replayed_events: 20_000,
            max_replay_stack_depth: 16,
            max_alias_expansions_per_anchor: 64,
        },
        duplicate_keys: DuplicateKeyPolicy::Error,
        non_finite_float_policy: NonFiniteFloatPolicy::Reject,
        reject_unsupported_tags: true,
        strict_booleans: true,
        with_snippet: false,
    }
}

fn is_list(fields: &serde_json::Map<String, Value>) -> bool {
    fields.get("kind").and_then(Value::as_str).is_some_and(|kind| kind.ends_with("List"))
        && fields.get("items").is_some_and(Value::is_array)
}

fn push(objects: &mut Vec<ManifestObject>, value: Value) -> Result<(), Failure> {
    if objects.len() == MOST_OBJECTS {
        return Err(too_large(format!("a manifest holds at most {MOST_OBJECTS} objects")));
    }
    let object = object(value, objects.len() + 1)?;
    let twice = |o: &&ManifestObject| {
        (&o.api_version, &o.kind, &o.name, &o.namespace)
            == (&object.api_version, &object.kind, &object.name, &object.namespace)
    };
    if objects.iter().any(|o| twice(&o)) {
        let message = format!("{} {} is in the manifest twice", object.kind, object.name);
        return Err(invalid(&message, "keep one of them"));
    }
    objects.push(object);
    Ok(())
}

fn object(value: Value, n: usize) -> Result<ManifestObject, Failure> {
    let text = |pointer: &str| value.pointer(pointer).and_then(Value::as_str);
    let lacks =
        |what: &str| invalid(&format!("object {n} has no {what}"), "give apiVersion, kind and metadata.name as text");
    let api_version = text("/apiVersion").filter(|v| is_api_version(v)).ok_or_else(|| lacks("apiVersion"))?.to_owned();
    let kind = text("/kind").filter(|k| is_kind(k)).ok_or_else(|| lacks("kind"))?.to_owned();
    let name = text("/metadata/name").ok_or_else(|| lacks("metadata.name"))?.to_owned();
    if super::grammar::ObjectName::try_from(name.clone()).is_err() {
        return Err(invalid(&format!("object {n} ({kind}) has a name that is none"), "use a-z, 0-9, '-' and '.'"));
    }
    let namespace = match value.pointer("/metadata/namespace") {
        None | Some(Value::Null) => None,
        Some(Value::String(ns)) if is_label(ns) => Some(ns.clone()),
        Some(_) => {
            return Err(invalid(
                &format!("object {n} ({kind} {name}) has a namespace that is none"),
                "use a-z, 0-9 and '-'",
            ));
        }
    };
    Ok(ManifestObject { api_version, kind, name, namespace, value })
}

fn is_api_version(text: &str) -> bool {
    match text.split_once('/') {
        Some((group, version)) => super::grammar::is_subdomain(group) && is_version(version),
        None => is_version(text),
    }
}

fn is_kind(text: &str) -> bool {
    (1..=63).contains(&text.len())
        && text.bytes().all(|b| b.is_ascii_alphanumeric())
        && text.bytes().next().is_some_and(|b| b.is_ascii_uppercase())
}

fn not_yaml(error: &serde_saphyr::Error) -> Failure {
    let place = error.location().map(|at| format!("{}:{}: ", at.line(), at.column())).unwrap_or_default();
    let why = error.without_snippet().to_string();
    // The reason repeats the place in words of its own.
    let why = why.split(" at line ").next().unwrap_or(&why);
    let why = why.strip_prefix("YAML parsing error: ").unwrap_or(why);
    invalid(&redact::message(&format!("{place}{why}")), "fix that line and call again")
}

fn invalid(message: &str, next: &str) -> Failure {
    Failure::new(codes::INVALID_MANIFEST, message).next(next)
}

fn too_large(message: String) -> Failure {
    Failure::new(Code::TooLarge, message).next("split it over several calls")
}

#[cfg(feature = "fuzz")]
pub(super) mod fuzz;
#[cfg(test)]
mod tests;
