//! What a patch may say: its form, and the parts of an object that are nobody's to patch.

use super::PatchForm;
use crate::client::{ObjectPatch, marker};
use domain::{Code, Failure, RunId, json};
use serde_json::{Value, json};

/// The most operations of a JSON Patch.
const MOST_OPERATIONS: usize = 100;
/// The annotations of an object, and our mark among them, as a JSON Patch names them.
const ANNOTATIONS: &str = "/metadata/annotations";
const MARK: &str = "/metadata/annotations/quartermaster~1run";

/// A patch that was read and found in order.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct CheckedPatch {
    form: PatchForm,
    body: Value,
}

impl CheckedPatch {
    /// Reads a patch. Without a type an array means JSON Patch and an object a merge patch.
    pub(super) fn read(text: &str, form: Option<PatchForm>) -> Result<CheckedPatch, Failure> {
        let body = json::read(text.as_bytes()).map_err(|error| bad(format!("patch is not JSON: {error}")))?;
        let form = match (&body, form) {
            (Value::Array(_), None | Some(PatchForm::Json)) => PatchForm::Json,
            (Value::Object(_), None | Some(PatchForm::Merge)) => PatchForm::Merge,
            (Value::Object(_), Some(PatchForm::Strategic)) => PatchForm::Strategic,
            (Value::Array(_), Some(PatchForm::Merge | PatchForm::Strategic)) => {
                return Err(bad("this type of patch is an object"));
            }
            (Value::Object(_), Some(PatchForm::Json)) => return Err(bad("a JSON Patch is an array of operations")),
            (Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_), _) => {
                return Err(bad("a patch is an object, or an array of operations"));
            }
        };
        match body.as_array() {
            Some(operations) => operations_in_order(operations)?,
            None => merge_in_order(&body)?,
        }
        Ok(CheckedPatch { form, body })
    }

    /// Whether this kind may be patched so. A `test` of a secret would tell whether a guess is right.
    pub(super) fn suits(&self, is_secret: bool) -> Result<(), Failure> {
        let guesses = |operation: &&Value| {
            let path = operation["path"].as_str().unwrap_or_default();
            operation["op"] == "test" && ["/data", "/stringData"].iter().any(|part| is_within(path, part))
        };
        match is_secret && self.body.as_array().into_iter().flatten().any(|operation| guesses(&operation)) {
            true => Err(bad("the values of a Secret cannot be tested")),
            false => Ok(()),
        }
    }

    /// What the patch brings, as parts of an object: the operations' values of a JSON Patch.
    pub(super) fn body(&self) -> Vec<&Value> {
        match self.body.as_array() {
            Some(operations) => operations.iter().map(|operation| &operation["value"]).collect(),
            None => vec![&self.body],
        }
    }

    /// Whether the object will carry the run's mark afterwards.
    pub(super) fn is_marked(&self) -> bool {
        match self.body.as_array() {
            // Operations that give the annotations as a whole have the last word about them.
            Some(operations) => !operations.iter().any(|operation| operation["path"] == ANNOTATIONS),
            None => self.body["metadata"]["annotations"].get("$patch").is_none(),
        }
    }

    /// Whether the mark is an operation of ours; a merge patch is marked by whoever sends it.
    pub(super) fn is_marked_by_hand(&self) -> bool {
        self.form == PatchForm::Json && self.is_marked()
    }

    /// The patch as it is sent. A JSON Patch carries the mark as its last operation, which needs to know whether the
    /// object has annotations.
    pub(super) fn patch(&self, mark: Option<RunId>, annotated: bool) -> ObjectPatch {
        let mut body = self.body.clone();
        if let (Value::Array(operations), Some(run)) = (&mut body, mark.filter(|_| self.is_marked_by_hand())) {
            let run = run.to_string();
            operations.push(match annotated {
                true => json!({ "op": "add", "path": MARK, "value": run }),
                false => json!({ "op": "add", "path": ANNOTATIONS, "value": { marker::RUN: run } }),
            });
        }
        match self.form {
            PatchForm::Merge => ObjectPatch::Merge(body.into()),
            PatchForm::Strategic => ObjectPatch::Strategic(body.into()),
            PatchForm::Json => ObjectPatch::Json(body.into()),
        }
    }
}

fn operations_in_order(operations: &[Value]) -> Result<(), Failure> {
    if operations.is_empty() || operations.len() > MOST_OPERATIONS {
        return Err(bad(format!("a JSON Patch has 1 to {MOST_OPERATIONS} operations")));
    }
    for operation in operations {
        let (Some(op), Some(path)) = (operation["op"].as_str(), operation["path"].as_str()) else {
            return Err(bad("an operation has op and path"));
        };
        match op {
            "add" | "remove" | "replace" | "test" => {}
            // What is masked where it stands would be shown where it is copied to.
            "copy" | "move" => {
                return Err(bad("copy and move are not offered, since they could carry a secret to where it is shown")
                    .next("give the value itself with add"));
            }
            _ => return Err(bad("op is add, remove, replace or test")),
        }
        if !path.starts_with('/') || path == "/metadata" {
            return Err(bad("path names a field, such as /spec/replicas, and not the whole object or its metadata"));
        }
        let own = [("/status", "status"), ("/metadata/managedFields", "managedFields"), (MARK, "our own mark")];
        if let Some((_, what)) = own.iter().find(|(part, _)| is_within(path, part)) {
            return Err(refused(what));
        }
        if path == ANNOTATIONS && !operation["value"][marker::RUN].is_null() {
            return Err(refused("our own mark"));
        }
    }
    Ok(())
}

fn merge_in_order(merge: &Value) -> Result<(), Failure> {
    if merge.get("status").is_some() {
        return Err(refused("status"));
    }
    let metadata = match merge.get("metadata") {
        None => return Ok(()),
        Some(metadata) => metadata.as_object().ok_or_else(|| bad("metadata is an object"))?,
    };
    if metadata.contains_key("managedFields") {
        return Err(refused("managedFields"));
    }
    match metadata.get("annotations") {
        None => Ok(()),
        Some(Value::Object(annotations)) if annotations.contains_key(marker::RUN) => Err(refused("our own mark")),
        Some(Value::Object(_)) => Ok(()),
        // The mark of the run is put among them, so they cannot all be taken away at once.
        Some(_) => Err(bad("annotations are given one by one").next("name each annotation to remove, with null")),
    }
}

fn is_within(path: &str, part: &str) -> bool {
    path.strip_prefix(part).is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
}

fn bad(message: impl Into<String>) -> Failure {
    Failure::new(Code::InvalidArgument, message).next("correct patch and call again")
}

fn refused(what: &str) -> Failure {
    bad(format!("{what} is not for patching")).next("leave it out")
}

/// Whether a patch may touch finalizers or owners. What cannot be read may touch anything.
pub(super) fn touches_lifetime(patch: &str) -> bool {
    const LIFETIME: [&str; 2] = ["finalizers", "ownerReferences"];
    fn within(value: &Value) -> bool {
        match value {
            // A directive of a strategic patch names the list in its key: `$deleteFromPrimitiveList/finalizers`.
            Value::Object(fields) => {
                fields.iter().any(|(key, value)| LIFETIME.iter().any(|word| key.contains(word)) || within(value))
            }
            Value::Array(items) => items.iter().any(within),
            // Paths of a JSON Patch, `from` included; a whole `/metadata` holds them too.
            Value::String(text) => {
                LIFETIME.iter().any(|word| text.contains(word)) || matches!(text.as_str(), "" | "/metadata")
            }
            Value::Null | Value::Bool(_) | Value::Number(_) => false,
        }
    }
    // These take out whatever they do not name.
    let takes_out = |part: &Value| ["$patch", "$retainKeys"].iter().any(|directive| part.get(directive).is_some());
    json::read(patch.as_bytes())
        .map_or(true, |patch| within(&patch) || takes_out(&patch) || takes_out(&patch["metadata"]))
}

/// Whether a patch sets something that disrupts. What nobody understood counts as the worst.
pub(super) fn is_risky(patch: &str) -> bool {
    json::read(patch.as_bytes()).map_or(true, |patch| crate::risks::in_fragment(&patch))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_touch_of_lifetime_is_seen_in_every_form_of_patch() {
        for patch in [
            r#"{"metadata":{"finalizers":null}}"#,
            r#"{"metadata":{"ownerReferences":[]}}"#,
            r#"[{"op":"remove","path":"/metadata/finalizers/0"}]"#,
            r#"[{"op":"move","from":"/metadata/ownerReferences","path":"/x"}]"#,
            r#"[{"op":"replace","path":"/metadata","value":{}}]"#,
            r#"[{"op":"replace","path":"","value":{}}]"#,
            r#"{"metadata":{"fin\u0061lizers":null}}"#,
            r#"{"metadata":{"$deleteFromPrimitiveList/finalizers":["a"]}}"#,
            r#"{"metadata":{"$retainKeys":["name"]}}"#,
            r#"{"metadata":{"$patch":"replace"}}"#,
            r#"{"$patch":"replace"}"#,
            "not json",
            r#"{"a":1,"a":2}"#,
        ] {
            assert!(touches_lifetime(patch), "{patch}");
        }
        for patch in
            [r#"{"metadata":{"labels":{"a":"b"}}}"#, r#"[{"op":"add","path":"/metadata/labels/a","value":"b"}]"#]
        {
            assert!(!touches_lifetime(patch), "{patch}");
        }
    }
}
