//! Rights that lead further than they look, and things the API server asks about other people's writes.

use super::RiskRule;
use serde_json::Value;

/// Verbs that give away what the holder does not have itself.
const PASSING_ON: [&str; 3] = ["bind", "escalate", "impersonate"];
/// Roles of every cluster that lead to everything, or to secrets.
const STRONG_ROLES: [&str; 3] = ["cluster-admin", "admin", "edit"];
/// Groups that nearly everybody is in.
const EVERYBODY: [&str; 3] = ["system:authenticated", "system:unauthenticated", "system:serviceaccounts"];

/// Judges one object.
pub(super) fn judge(object: &Value, add: &mut impl FnMut(RiskRule, String)) {
    match object["kind"].as_str().unwrap_or_default() {
        "Role" | "ClusterRole" => role(object, add),
        "RoleBinding" | "ClusterRoleBinding" => binding(object, add),
        kind @ ("MutatingWebhookConfiguration" | "ValidatingWebhookConfiguration") => {
            add(RiskRule::Webhook, format!("a {kind} sees, and can change or stop, other people's writes"));
        }
        kind @ ("MutatingAdmissionPolicy"
        | "MutatingAdmissionPolicyBinding"
        | "ValidatingAdmissionPolicy"
        | "ValidatingAdmissionPolicyBinding") => {
            add(RiskRule::Webhook, format!("a {kind} can change or stop other people's writes"));
        }
        "APIService" => {
            add(RiskRule::Webhook, "an APIService answers for the API server and sees its callers' tokens".to_owned());
        }
        "CustomResourceDefinition" if object["spec"]["conversion"]["strategy"] == "Webhook" => {
            add(RiskRule::Webhook, "objects of this kind would be converted by a webhook".to_owned());
        }
        _ => {}
    }
}

fn role(role: &Value, add: &mut impl FnMut(RiskRule, String)) {
    for rule in role["rules"].as_array().into_iter().flatten() {
        let has = |key: &str, name: &str| {
            let mut names = rule[key].as_array().into_iter().flatten().filter_map(Value::as_str);
            names.any(|given| given == name || given == "*")
        };
        let named = |key: &str, name: &str| {
            rule[key].as_array().into_iter().flatten().filter_map(Value::as_str).any(|given| given == name)
        };
        if named("verbs", "*") && named("resources", "*") {
            add(RiskRule::Access, "the role may do everything with everything".to_owned());
            continue;
        }
        let core = has("apiGroups", "");
        if core && has("resources", "secrets") && ["get", "list", "watch"].iter().any(|verb| has("verbs", verb)) {
            add(RiskRule::Access, "the role may read secrets".to_owned());
        }
        let enters = ["pods/exec", "pods/attach", "pods/portforward", "nodes/proxy"];
        if core && enters.iter().any(|resource| has("resources", resource)) {
            add(RiskRule::Access, "the role may enter pods or nodes".to_owned());
        }
        if core && has("resources", "serviceaccounts/token") && has("verbs", "create") {
            add(RiskRule::Access, "the role may make tokens of service accounts".to_owned());
        }
        for verb in PASSING_ON.into_iter().filter(|verb| has("verbs", verb)) {
            add(RiskRule::Access, format!("the role may {verb}, and so gain more rights"));
        }
    }
    if role.get("aggregationRule").is_some_and(|rule| !rule.is_null()) {
        add(RiskRule::Access, "the role takes its rights from other roles by their labels".to_owned());
    }
}

fn binding(binding: &Value, add: &mut impl FnMut(RiskRule, String)) {
    let role = binding["roleRef"]["name"].as_str().unwrap_or_default();
    if STRONG_ROLES.contains(&role) || role.starts_with("system:") {
        add(RiskRule::Access, format!("it gives the role {role}, which reaches secrets and more"));
    }
    for subject in binding["subjects"].as_array().into_iter().flatten() {
        let name = subject["name"].as_str().unwrap_or_default();
        let everybody = EVERYBODY.contains(&name) || name.starts_with("system:serviceaccounts:");
        if everybody || name == "system:anonymous" || name == "system:masters" {
            add(RiskRule::Access, format!("it gives the role {role} to {name}"));
        }
    }
}
