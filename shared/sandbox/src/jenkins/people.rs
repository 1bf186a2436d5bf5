//! Who asks, and which machines there are.

use serde_json::{Value, json};

use super::exports::Site;
use super::world::JenkinsWorld;

/// `me/api/json`.
pub(super) fn me(site: &Site, user: &str) -> Value {
    json!({
        "_class": "hudson.model.User", "absoluteUrl": format!("{}/user/{user}", site.root),
        "description": null, "fullName": user, "id": user, "property": [],
    })
}

/// `whoAmI/api/json`, which anybody may ask.
pub(super) fn who_am_i(user: Option<&str>) -> Value {
    let authorities = if user.is_some() { json!(["authenticated"]) } else { json!(["anonymous"]) };
    json!({
        "_class": "hudson.security.WhoAmI", "anonymous": user.is_none(), "authenticated": true,
        "authorities": authorities, "details": null, "name": user.unwrap_or("anonymous"), "toString": "",
    })
}

/// `computer/api/json`: the built-in node, an agent that works and one that is away.
pub(super) fn computers(world: &JenkinsWorld) -> Value {
    let busy = world.busy();
    json!({
        "_class": "hudson.model.ComputerSet", "busyExecutors": busy, "displayName": "Nodes", "totalExecutors": 4,
        "computer": [
            node("hudson.model.Hudson$MasterComputer", "Built-In Node", 0, 0, None),
            node("hudson.slaves.SlaveComputer", "agent-1", 4, busy.min(4), None),
            node("hudson.slaves.SlaveComputer", "agent-2", 2, 0, Some("Connection was broken")),
        ],
    })
}

fn node(class: &str, name: &str, executors: usize, busy: usize, away: Option<&str>) -> Value {
    json!({
        "_class": class, "actions": [], "assignedLabels": [{ "name": name.to_lowercase().replace(' ', "-") }],
        "description": "", "displayName": name, "executors": vec![json!({}); executors], "icon": "symbol-computer",
        "iconClassName": "symbol-computer", "idle": busy == 0, "jnlpAgent": false, "launchSupported": true,
        "loadStatistics": { "_class": "hudson.model.Label$1" }, "manualLaunchAllowed": true, "monitorData": {},
        "numExecutors": executors, "offline": away.is_some(),
        "offlineCause": away.map(|_| json!({ "_class": "hudson.slaves.OfflineCause$ChannelTermination" })),
        "offlineCauseReason": away.unwrap_or_default(), "oneOffExecutors": [], "temporarilyOffline": false,
    })
}
