//! The arguments of a call as people are shown them, where a tool hides some of them by their kind, such as the value of a
//! password parameter. Nothing is hidden for its looks: whoever decides signs for the exact words.
//!
//! The run keeps the arguments as they were given, because that is what is carried out.

use serde::Serialize;
use serde_json::Value;

/// The arguments after a change, as JSON text; `None` if nothing was changed.
pub fn shown(args: &impl Serialize, change: impl FnOnce(&mut Value)) -> Option<String> {
    let given = serde_json::to_value(args).ok()?;
    let mut shown = given.clone();
    change(&mut shown);
    (shown != given).then(|| {
        drop_absent(&mut shown);
        domain::json::canonical(&shown)
    })
}

/// What was not given is not shown.
fn drop_absent(value: &mut Value) {
    if let Value::Object(fields) = value {
        fields.retain(|_, field| !field.is_null());
    }
}
