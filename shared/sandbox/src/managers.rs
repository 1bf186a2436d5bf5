//! `metadata.managedFields` read and written: one entry per manager, operation and subresource.

use serde_json::{Value, json};

use crate::fields::{self, FieldSet};
use crate::json;
use crate::schema::{SchemaNode, Types};

/// One manager's share of an object.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct ManagerShare {
    pub(crate) manager: String,
    pub(crate) apply: bool,
    pub(crate) subresource: String,
    pub(crate) api_version: String,
    pub(crate) time: String,
    pub(crate) fields: FieldSet,
}

impl ManagerShare {
    fn is_of(&self, author: &FieldAuthor<'_>, apply: bool) -> bool {
        self.manager == author.manager && self.subresource == author.subresource && self.apply == apply
    }

    /// How the server names this manager in a conflict.
    pub(crate) fn shown(&self) -> String {
        let mut shown = format!("{:?}", self.manager);
        if !self.subresource.is_empty() {
            shown.push_str(&format!(" with subresource {:?}", self.subresource));
        }
        if !self.apply {
            shown.push_str(&format!(" using {}", self.api_version));
        }
        shown
    }
}

/// Who writes, through which door and when.
#[derive(Debug, Clone, Copy)]
pub(crate) struct FieldAuthor<'a> {
    pub(crate) manager: &'a str,
    pub(crate) subresource: &'a str,
    pub(crate) api_version: &'a str,
    pub(crate) time: &'a str,
}

impl FieldAuthor<'_> {
    fn share(&self, apply: bool, fields: FieldSet) -> ManagerShare {
        ManagerShare {
            manager: self.manager.to_owned(),
            apply,
            subresource: self.subresource.to_owned(),
            api_version: self.api_version.to_owned(),
            time: self.time.to_owned(),
            fields,
        }
    }
}

/// The shares written in an object.
pub(crate) fn shares(object: &Value) -> Vec<ManagerShare> {
    let entries = json::list(object, "/metadata/managedFields").iter();
    let read = entries.map(|entry| {
        let text = |at: &str| json::text_or_empty(entry, at).to_owned();
        ManagerShare {
            manager: text("/manager"),
            apply: json::text(entry, "/operation") == Some("Apply"),
            subresource: text("/subresource"),
            api_version: text("/apiVersion"),
            time: text("/time"),
            fields: fields::from_tree(entry.get("fieldsV1").unwrap_or(&Value::Null)),
        }
    });
    read.collect()
}

/// Writes the shares into an object; empty ones are left out.
pub(crate) fn write(object: &mut Value, shares: &[ManagerShare]) {
    let entries: Vec<Value> = shares.iter().filter(|share| !share.fields.is_empty()).map(entry).collect();
    if entries.is_empty() {
        json::take(object, "/metadata/managedFields");
    } else {
        json::set(object, "/metadata/managedFields", entries);
    }
}

fn entry(share: &ManagerShare) -> Value {
    let mut entry = json!({
        "manager": share.manager,
        "operation": if share.apply { "Apply" } else { "Update" },
        "apiVersion": share.api_version,
        "time": share.time,
        "fieldsType": "FieldsV1",
        "fieldsV1": fields::to_tree(&share.fields),
    });
    if !share.subresource.is_empty() {
        entry["subresource"] = json!(share.subresource);
    }
    entry
}

/// Ownership after an ordinary write: what was changed belongs to the writer, and to nobody else any more.
pub(crate) fn after_update(
    shares: Vec<ManagerShare>,
    before: &Value,
    after: &Value,
    author: &FieldAuthor<'_>,
    (types, place): (&Types, &SchemaNode),
) -> Vec<ManagerShare> {
    let now = fields::fields_of(after, types, place);
    let changed: FieldSet = now
        .iter()
        .filter(|path| {
            let (was, is) = (fields::value_at(before, path), fields::value_at(after, path));
            // An item of a list is owned as such when it appears, not when something inside it changes.
            if path.last().is_some_and(|last| last.starts_with("k:")) { was.is_none() } else { was != is }
        })
        .cloned()
        .collect();
    let mut kept: Vec<ManagerShare> = Vec::new();
    for mut share in shares {
        share.fields.retain(|path| now.contains(path) || fields::value_at(after, path).is_some());
        if !share.is_of(author, false) {
            share.fields.retain(|path| !changed.contains(path));
        }
        kept.push(share);
    }
    if !changed.is_empty() {
        match kept.iter_mut().find(|share| share.is_of(author, false)) {
            Some(share) => {
                share.fields.extend(changed);
                author.time.clone_into(&mut share.time);
            }
            None => kept.push(author.share(false, changed)),
        }
    }
    kept
}

/// Ownership after an apply: the applied set is the applier's, and under force nobody else's where values differ.
pub(crate) fn after_apply(
    shares: Vec<ManagerShare>,
    applied: FieldSet,
    taken: &FieldSet,
    author: &FieldAuthor<'_>,
) -> Vec<ManagerShare> {
    let mut kept: Vec<ManagerShare> = Vec::new();
    for mut share in shares.into_iter().filter(|share| !share.is_of(author, true)) {
        share.fields.retain(|path| !taken.contains(path));
        kept.push(share);
    }
    kept.push(author.share(true, applied));
    kept
}
