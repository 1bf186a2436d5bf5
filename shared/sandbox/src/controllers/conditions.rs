//! Conditions: written only when they change, with the moment of the last turn.

use serde_json::{Value, json};

use crate::json;

/// One condition as it shall be.
pub(super) struct DesiredCondition<'a> {
    pub(super) kind: &'a str,
    pub(super) holds: bool,
    pub(super) reason: &'a str,
    pub(super) message: &'a str,
}

/// Writes a condition into `status.conditions`; its time moves only when the status turns.
pub(super) fn set(object: &mut Value, condition: &DesiredCondition<'_>, now: &str) {
    let status = if condition.holds { "True" } else { "False" };
    let conditions = json::list_mut(object, "/status/conditions");
    let at = conditions.iter().position(|one| one["type"] == condition.kind);
    let before = at.map(|at| conditions[at].clone()).unwrap_or_default();
    let turned = before["status"] != status;
    let mut next = json!({
        "type": condition.kind,
        "status": status,
        "lastTransitionTime": if turned { json!(now) } else { before["lastTransitionTime"].clone() },
    });
    if !condition.reason.is_empty() {
        next["reason"] = json!(condition.reason);
    }
    if !condition.message.is_empty() {
        next["message"] = json!(condition.message);
    }
    if before.get("lastUpdateTime").is_some() {
        next["lastUpdateTime"] = before["lastUpdateTime"].clone();
    }
    match at {
        Some(at) => conditions[at] = next,
        None => conditions.push(next),
    }
}

/// The status word of a condition, empty if there is none.
pub(super) fn holds(object: &Value, kind: &str) -> bool {
    json::list(object, "/status/conditions").iter().any(|one| one["type"] == kind && one["status"] == "True")
}
