//! What a chart would do beyond its own workloads, judged object by object before anybody is asked.
//!
//! An object in a namespace the tenant may not use is refused, whatever the cluster's own rules say, and so is one in a
//! protected namespace. What belongs to the whole cluster is refused to a tenant with a list of namespaces, since it is
//! nobody's alone, and is a warning otherwise.

use super::objects::identity;
use super::release::{ReleaseRef, protected};
use domain::Failure;
use kubernetes::client::Cluster;
use serde_json::Value;
use std::collections::BTreeSet;

/// How many names a warning holds.
const NAMES: usize = 8;

/// What is risky about a set of objects.
#[derive(Debug, Default)]
pub(super) struct Risks {
    wide: BTreeSet<String>,
    elsewhere: BTreeSet<String>,
    unknown: BTreeSet<String>,
    privileged: BTreeSet<String>,
}

/// Judges objects a release would make or change.
pub(super) async fn judge(spot: &ReleaseRef<'_>, objects: &[Value]) -> Result<Risks, Failure> {
    let mut risks = Risks::default();
    for object in objects {
        place(spot, object, &mut risks).await?;
        if is_privileged(object) {
            risks.privileged.insert(identity(object));
        }
    }
    Ok(risks)
}

async fn place(spot: &ReleaseRef<'_>, object: &Value, risks: &mut Risks) -> Result<(), Failure> {
    let text = |pointer: &str| object.pointer(pointer).and_then(Value::as_str).unwrap_or_default();
    let own = Some(text("/metadata/namespace")).filter(|namespace| !namespace.is_empty());
    match spot.cluster.kind(&format!("{}/{}", text("/apiVersion"), text("/kind"))).await {
        Ok(kind) if kind.namespaced() => namespaced(spot, own, object, risks),
        Ok(_) => wide(&spot.cluster, object, risks),
        // Its kind may come with the same chart. What it says of its place is judged all the same.
        Err(failure) if matches!(failure.code, kubernetes::codes::UNKNOWN_KIND | kubernetes::codes::AMBIGUOUS_KIND) => {
            risks.unknown.insert(identity(object));
            namespaced(spot, own, object, risks)
        }
        Err(failure) => Err(failure),
    }
}

fn namespaced(spot: &ReleaseRef<'_>, own: Option<&str>, object: &Value, risks: &mut Risks) -> Result<(), Failure> {
    let namespace = own.unwrap_or(&spot.namespace);
    if let Err(failure) = spot.cluster.namespace(Some(namespace)) {
        let message = format!("{}: {}", identity(object), failure.message);
        return Err(Failure { message, ..failure });
    }
    if spot.cluster.protects(namespace) {
        return Err(protected(namespace));
    }
    if namespace != spot.namespace {
        risks.elsewhere.insert(identity(object));
    }
    Ok(())
}

fn wide(cluster: &Cluster<'_>, object: &Value, risks: &mut Risks) -> Result<(), Failure> {
    if cluster.allowed().is_some() {
        let message = format!("{} belongs to the whole cluster, and the tenant to some namespaces", identity(object));
        return Err(Failure::new(kubernetes::codes::NAMESPACE_DENIED, message)
            .next("switch it off in the chart's values, or ask an admin to install it"));
    }
    risks.wide.insert(identity(object));
    Ok(())
}

impl Risks {
    /// What an approver is warned of.
    pub(super) fn warnings(&self) -> Vec<String> {
        let told = |set: &BTreeSet<String>, what: &str| {
            let names: Vec<&str> = set.iter().take(NAMES).map(String::as_str).collect();
            let more = set.len().saturating_sub(NAMES);
            let more = if more > 0 { format!(" and {more} more") } else { String::new() };
            (!set.is_empty()).then(|| format!("{what}: {}{more}.", names.join(", ")))
        };
        [
            told(&self.wide, "Objects that belong to the whole cluster"),
            told(&self.elsewhere, "Objects outside the release's namespace"),
            told(&self.unknown, "Objects of kinds the cluster does not know yet"),
            told(&self.privileged, "Pods that are privileged or reach into the node"),
        ]
        .into_iter()
        .flatten()
        .collect()
    }
}

/// Whether the pods of an object may do more than pods should.
fn is_privileged(object: &Value) -> bool {
    let specs = ["/spec", "/spec/template/spec", "/spec/jobTemplate/spec/template/spec"];
    let is_pod = object["kind"] == "Pod";
    specs.iter().enumerate().filter(|(n, _)| *n > 0 || is_pod).filter_map(|(_, at)| object.pointer(at)).any(reaches_out)
}

fn reaches_out(spec: &Value) -> bool {
    let on = |value: &Value| value == true;
    let list = |key: &str| spec[key].as_array().cloned().unwrap_or_default();
    let container = |container: &Value| {
        let context = &container["securityContext"];
        let added = context["capabilities"]["add"].as_array().is_some_and(|added| !added.is_empty());
        on(&context["privileged"]) || added
    };
    ["hostNetwork", "hostPID", "hostIPC"].iter().any(|key| on(&spec[*key]))
        || list("volumes").iter().any(|volume| volume.get("hostPath").is_some())
        || ["containers", "initContainers"].iter().any(|key| list(key).iter().any(container))
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn pods_that_reach_into_the_node_are_seen_wherever_they_stand() {
        let privileged = json!({ "containers": [{ "securityContext": { "privileged": true } }] });
        let on_host = json!({ "volumes": [{ "hostPath": { "path": "/" } }], "containers": [] });
        let plain = json!({ "containers": [{ "name": "a" }] });
        assert!(is_privileged(&json!({ "kind": "Deployment", "spec": { "template": { "spec": privileged } } })));
        assert!(is_privileged(&json!({ "kind": "Pod", "spec": on_host })));
        let cron = json!({ "kind": "CronJob", "spec": { "jobTemplate": { "spec": { "template": { "spec": { "hostPID": true } } } } } });
        assert!(is_privileged(&cron));
        assert!(!is_privileged(&json!({ "kind": "Pod", "spec": plain })));
        assert!(!is_privileged(&json!({ "kind": "ConfigMap" })));
    }
}
