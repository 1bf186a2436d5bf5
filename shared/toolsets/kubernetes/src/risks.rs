//! What is dangerous about a change of Kubernetes objects, whichever tool makes it: one set of rules for `k8s`, `argo`
//! and `helm`.
//!
//! A rule looks at an object before and after a change and reports what the change brings. What was so before and stays
//! so is not reported, so that an approver reads only what they sign. Rules recognise things by shape and never by a
//! name that somebody can choose.
//!
//! Not here: what a change affects beyond the object, such as budgets and dependents (see [`k8s`](crate::k8s)), and which
//! namespaces may be changed (see [`client`](crate::client)).

mod access;
mod pods;

use serde_json::Value;
use std::collections::BTreeSet;

/// One thing that makes a change dangerous.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct Risk {
    /// Which rule found it.
    pub rule: RiskRule,
    /// What it found, as an approver reads it.
    pub detail: String,
}

/// The rules.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum RiskRule {
    /// A container that is the node's root, or may become it.
    Privileged,
    /// A pod in the node's own network, process or message space.
    HostNamespace,
    /// A pod with a folder of the node.
    HostPath,
    /// A container with capabilities beyond the usual ones.
    Capability,
    /// A workload that acts as somebody else.
    ServiceAccount,
    /// Rights that lead to everything, or to secrets.
    Access,
    /// Something the API server asks before or after others' writes.
    Webhook,
    /// Something that decides whether objects can be deleted.
    Finalizer,
    /// Data that goes with an object.
    Storage,
    /// A workload without a single replica.
    ScaledToZero,
}

impl RiskRule {
    /// Whether a change that it finds counts as a disruption.
    pub fn disrupts(self) -> bool {
        match self {
            RiskRule::Privileged
            | RiskRule::HostNamespace
            | RiskRule::HostPath
            | RiskRule::Capability
            | RiskRule::Access
            | RiskRule::Webhook
            | RiskRule::Finalizer
            | RiskRule::Storage
            | RiskRule::ScaledToZero => true,
            // A workload of its own account is the usual case; that it is another one must be seen, and no more.
            RiskRule::ServiceAccount => false,
        }
    }
}

/// What a change of one object brings. `before` is missing for an object that is made.
pub fn of_change(before: Option<&Value>, after: &Value) -> Vec<Risk> {
    let mut risks = of_object(after);
    if let Some(before) = before {
        let earlier = of_object(before);
        risks.retain(|risk| !earlier.contains(risk));
        if replicas(after) == Some(0) && replicas(before).unwrap_or(1) > 0 {
            risks.insert(Risk { rule: RiskRule::ScaledToZero, detail: "no replica would be left".to_owned() });
        }
        let kept = finalizers(after);
        for gone in finalizers(before).difference(&kept) {
            risks.insert(Risk { rule: RiskRule::Finalizer, detail: format!("the finalizer {gone} would be removed") });
        }
    }
    risks.into_iter().collect()
}

/// Whether a part of an object, such as a patch, sets something that disrupts. Parts lack what tells a pod from anything
/// else, so a key counts wherever it stands.
pub fn in_fragment(fragment: &Value) -> bool {
    fn is_risky(key: &str, value: &Value) -> bool {
        match key {
            "hostPath" => !value.is_null(),
            "hostNetwork" | "hostPID" | "hostIPC" | "privileged" | "allowPrivilegeEscalation" | "hostProcess" => {
                *value == true
            }
            "hostPort" => value.as_u64().is_some_and(|port| port > 0),
            "add" => value.as_array().is_some_and(|added| !added.is_empty()),
            "procMount" => *value == "Unmasked",
            "type" => *value == "Unconfined",
            "whenDeleted" | "whenScaled" | "persistentVolumeReclaimPolicy" => *value == "Delete",
            "replicas" => *value == 0,
            _ => false,
        }
    }
    match fragment {
        Value::Object(fields) => {
            // A step of a JSON Patch names its key in the path; one that adds to a list names the list before the place.
            let path = fields.get("path").and_then(Value::as_str).unwrap_or_default();
            let mut names = path.rsplit('/');
            let step = names.next().zip(fields.get("value")).is_some_and(|(key, value)| is_risky(key, value));
            let adds = names.next() == Some("add") && fields.contains_key("value");
            step || adds || fields.iter().any(|(key, value)| is_risky(key, value) || in_fragment(value))
        }
        Value::Array(items) => items.iter().any(in_fragment),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => false,
    }
}

/// Every image that the pods of an object run or mount.
pub fn images(object: &Value) -> BTreeSet<&str> {
    pods::specs(object).into_iter().flat_map(pods::images).collect()
}

/// Everything dangerous in one object, as far as it can be told from the object alone.
fn of_object(object: &Value) -> BTreeSet<Risk> {
    let mut risks = BTreeSet::new();
    let mut add = |rule: RiskRule, detail: String| {
        risks.insert(Risk { rule, detail });
    };
    for spec in pods::specs(object) {
        pods::judge(spec, &mut add);
    }
    access::judge(object, &mut add);
    for finalizer in finalizers(object) {
        add(RiskRule::Finalizer, format!("the finalizer {finalizer} would hold its deletion up"));
    }
    let retention = &object["spec"]["persistentVolumeClaimRetentionPolicy"];
    if retention["whenDeleted"] == "Delete" || retention["whenScaled"] == "Delete" {
        add(RiskRule::Storage, "claims, and so their data, would go with its replicas".to_owned());
    }
    if object["kind"] == "PersistentVolume" && object["spec"]["persistentVolumeReclaimPolicy"] == "Delete" {
        add(RiskRule::Storage, "the volume's data would go with its claim".to_owned());
    }
    risks
}

fn replicas(object: &Value) -> Option<u64> {
    object["spec"]["replicas"].as_u64()
}

fn finalizers(object: &Value) -> BTreeSet<String> {
    let lists = [&object["metadata"]["finalizers"], &object["spec"]["finalizers"]];
    let names = lists.into_iter().filter_map(Value::as_array).flatten().filter_map(Value::as_str);
    // Kubernetes sets and removes its own ones with every volume and namespace.
    let own = ["kubernetes", "kubernetes.io/pv-protection", "kubernetes.io/pvc-protection", "foregroundDeletion"];
    names.filter(|name| !own.contains(name)).map(str::to_owned).collect()
}

#[cfg(test)]
mod tests;
