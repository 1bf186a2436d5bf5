//! What pods may do to their node and to others.

use super::RiskRule;
use serde_json::Value;

/// Where the container that holds all the others' rights may stand.
const CONTAINERS: [&str; 3] = ["containers", "initContainers", "ephemeralContainers"];

/// Every pod spec in an object, wherever its kind keeps it. A pod spec is known by its containers, so that kinds nobody
/// told us of are looked at too.
pub(super) fn specs(object: &Value) -> Vec<&Value> {
    fn walk<'a>(value: &'a Value, specs: &mut Vec<&'a Value>) {
        match value {
            Value::Object(fields) => {
                if CONTAINERS.iter().any(|list| fields.get(*list).is_some_and(Value::is_array)) {
                    specs.push(value);
                }
                fields.values().for_each(|field| walk(field, specs));
            }
            Value::Array(items) => items.iter().for_each(|item| walk(item, specs)),
            Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
        }
    }
    let mut specs = Vec::new();
    // `status` is nobody's wish.
    if let Value::Object(fields) = object {
        fields.iter().filter(|(key, _)| *key != "status").for_each(|(_, field)| walk(field, &mut specs));
    }
    specs
}

/// The images of one pod spec: those of its containers, and those that are mounted as volumes.
pub(super) fn images(spec: &Value) -> impl Iterator<Item = &str> {
    let of = |list: &str| spec[list].as_array().into_iter().flatten();
    let run = CONTAINERS.into_iter().flat_map(of).filter_map(|container| container["image"].as_str());
    run.chain(of("volumes").filter_map(|volume| volume["image"]["reference"].as_str()))
}

/// Judges one pod spec.
pub(super) fn judge(spec: &Value, add: &mut impl FnMut(RiskRule, String)) {
    for (key, what) in [("hostNetwork", "network"), ("hostPID", "processes"), ("hostIPC", "message queues")] {
        if spec[key] == true {
            add(RiskRule::HostNamespace, format!("pods share the node's {what} ({key})"));
        }
    }
    for volume in spec["volumes"].as_array().into_iter().flatten() {
        if let Some(host) = volume.get("hostPath") {
            let path = host["path"].as_str().unwrap_or("?");
            add(RiskRule::HostPath, format!("pods mount {path} of the node"));
        }
    }
    let account = spec["serviceAccountName"].as_str().or_else(|| spec["serviceAccount"].as_str());
    if let Some(account) = account.filter(|account| *account != "default" && !account.is_empty()) {
        add(RiskRule::ServiceAccount, format!("pods act as the service account {account}"));
    }
    context(&spec["securityContext"], "pods", add);
    for container in CONTAINERS.iter().flat_map(|list| spec[*list].as_array().into_iter().flatten()) {
        let name = container["name"].as_str().unwrap_or("?");
        context(&container["securityContext"], &format!("container {name}"), add);
        for port in container["ports"].as_array().into_iter().flatten() {
            if let Some(port) = port["hostPort"].as_u64().filter(|port| *port > 0) {
                add(RiskRule::HostNamespace, format!("container {name} takes port {port} of the node"));
            }
        }
    }
}

fn context(context: &Value, whose: &str, add: &mut impl FnMut(RiskRule, String)) {
    if context["privileged"] == true {
        add(RiskRule::Privileged, format!("{whose} would be privileged"));
    }
    if context["allowPrivilegeEscalation"] == true {
        add(RiskRule::Privileged, format!("{whose} may gain more rights than it starts with"));
    }
    if context["procMount"] == "Unmasked" {
        add(RiskRule::Privileged, format!("{whose} sees all of /proc"));
    }
    if context["windowsOptions"]["hostProcess"] == true {
        add(RiskRule::Privileged, format!("{whose} would run as a process of the node"));
    }
    for profile in ["seccompProfile", "appArmorProfile"] {
        if context[profile]["type"] == "Unconfined" {
            add(RiskRule::Privileged, format!("{whose} would run without {profile}"));
        }
    }
    let added = context["capabilities"]["add"].as_array().into_iter().flatten().filter_map(Value::as_str);
    for capability in added {
        add(RiskRule::Capability, format!("{whose} would get the capability {capability}"));
    }
}
