//! The arguments of a call as people are shown them: whatever reads like a secret is a mark.
//!
//! The run keeps the arguments as they were given, because that is what is carried out; what is listed, shown, posted and
//! logged of them is this.

use redact::redact;
use serde::Serialize;
use serde_json::Value;

/// The arguments with marks, as JSON text; `None` if nothing has to be marked.
pub fn marked(args: &impl Serialize, change: impl FnOnce(&mut Value)) -> Option<String> {
    let given = serde_json::to_value(args).ok()?;
    let mut shown = given.clone();
    each_text(&mut shown);
    change(&mut shown);
    (shown != given).then(|| {
        drop_absent(&mut shown);
        domain::json::canonical(&shown)
    })
}

fn each_text(value: &mut Value) {
    match value {
        Value::String(text) => *text = redact(text),
        Value::Array(items) => items.iter_mut().for_each(each_text),
        Value::Object(fields) => fields.values_mut().for_each(each_text),
        Value::Null | Value::Bool(_) | Value::Number(_) => {}
    }
}

/// What was not given is not shown.
fn drop_absent(value: &mut Value) {
    if let Value::Object(fields) = value {
        fields.retain(|_, field| !field.is_null());
    }
}
