//! What the server says about itself: version, health, groups and resources.

use http::{HeaderMap, StatusCode, header};
use serde_json::{Value, json};

use crate::kinds::ApiKind;
use crate::reply::{self, SandboxReply};
use crate::status::ApiStatus;
use crate::world::ClusterWorld;

/// The version this server simulates; the suffix says that it does.
pub(crate) const VERSION: &str = "v1.33.0+sandbox";

const AGGREGATED: &str = "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList";
const CHECKS: [&str; 5] = ["ping", "log", "etcd", "informer-sync", "poststarthook/start-simulated-controllers"];

pub(crate) fn version() -> Value {
    json!({
        "major": "1", "minor": "33", "gitVersion": VERSION, "gitCommit": "simulated", "gitTreeState": "clean",
        "buildDate": "2025-04-23T00:00:00Z", "goVersion": "simulated", "compiler": "rustc", "platform": "sandbox/simulated",
    })
}

/// `/readyz`, `/livez` and `/healthz`, whole or one check of it.
pub(crate) fn health(check: &str, verbose: bool) -> Result<SandboxReply, ApiStatus> {
    if !check.is_empty() && !CHECKS.contains(&check) {
        return Err(ApiStatus::no_such_path());
    }
    let mut text = String::new();
    if verbose && check.is_empty() {
        text.extend(CHECKS.iter().map(|check| format!("[+]{check} ok\n")));
        text.push_str("readyz check passed\n");
    } else {
        text.push_str("ok");
    }
    Ok(reply::with_type(StatusCode::OK, "text/plain; charset=utf-8", text))
}

fn wants_aggregated(headers: &HeaderMap) -> bool {
    let accept = headers.get(header::ACCEPT).and_then(|value| value.to_str().ok()).unwrap_or_default();
    let accept = accept.replace(' ', "");
    accept.split(',').any(|one| {
        one.contains("g=apidiscovery.k8s.io") && one.contains("v=v2;") && one.contains("as=APIGroupDiscoveryList")
            || one.ends_with("v=v2") && one.contains("as=APIGroupDiscoveryList")
    })
}

/// `/api`.
pub(crate) fn core(world: &ClusterWorld, headers: &HeaderMap) -> SandboxReply {
    if wants_aggregated(headers) {
        return aggregated(world, &[(String::new(), vec!["v1".to_owned()])]);
    }
    let addresses = json!([{ "clientCIDR": "0.0.0.0/0", "serverAddress": "127.0.0.1" }]);
    let versions = json!({ "kind": "APIVersions", "versions": ["v1"], "serverAddressByClientCIDRs": addresses });
    reply::object(StatusCode::OK, &versions)
}

/// `/apis`.
pub(crate) fn groups(world: &ClusterWorld, headers: &HeaderMap) -> SandboxReply {
    let groups = all_groups(world);
    if wants_aggregated(headers) {
        return aggregated(world, &groups);
    }
    let list: Vec<Value> = groups.iter().map(|(group, versions)| group_object(group, versions)).collect();
    reply::object(StatusCode::OK, &json!({ "kind": "APIGroupList", "apiVersion": "v1", "groups": list }))
}

/// The groups with stored kinds, and the one whose objects are only answered.
fn all_groups(world: &ClusterWorld) -> Vec<(String, Vec<String>)> {
    let mut groups = world.kinds.groups();
    groups.push(("authorization.k8s.io".to_owned(), vec!["v1".to_owned()]));
    groups.sort();
    groups
}

fn group_object(group: &str, versions: &[String]) -> Value {
    let version = |version: &String| json!({ "groupVersion": format!("{group}/{version}"), "version": version });
    let all: Vec<Value> = versions.iter().map(version).collect();
    json!({ "name": group, "versions": all, "preferredVersion": all.first() })
}

/// `/apis/GROUP`.
pub(crate) fn group(world: &ClusterWorld, wanted: &str) -> Result<SandboxReply, ApiStatus> {
    let groups = all_groups(world);
    let (group, versions) = groups.iter().find(|(group, _)| group == wanted).ok_or_else(ApiStatus::no_such_path)?;
    let mut object = group_object(group, versions);
    object["kind"] = json!("APIGroup");
    object["apiVersion"] = json!("v1");
    Ok(reply::object(StatusCode::OK, &object))
}

/// `/api/v1` and `/apis/GROUP/VERSION`.
pub(crate) fn resources(world: &ClusterWorld, group: &str, version: &str) -> Result<SandboxReply, ApiStatus> {
    let mut list: Vec<Value> = Vec::new();
    for kind in world.kinds.of_group_version(group, version) {
        let mut one = json!({
            "name": kind.plural, "singularName": kind.singular, "namespaced": kind.namespaced, "kind": kind.kind,
            "verbs": kind.verbs(), "storageVersionHash": "",
        });
        if !kind.short.is_empty() {
            one["shortNames"] = json!(kind.short);
        }
        if !kind.categories.is_empty() {
            one["categories"] = json!(kind.categories);
        }
        list.push(one);
        for sub in subresources(kind) {
            let mut one = json!({
                "name": format!("{}/{}", kind.plural, sub.name), "singularName": "", "namespaced": kind.namespaced,
                "kind": sub.kind, "verbs": sub.verbs,
            });
            if !sub.group.is_empty() {
                one["group"] = json!(sub.group);
                one["version"] = json!(sub.version);
            }
            list.push(one);
        }
    }
    if group == "authorization.k8s.io" && version == "v1" {
        list.extend(REVIEWS.iter().map(|(kind, plural)| {
            json!({ "name": plural, "singularName": kind.to_lowercase(), "namespaced": false, "kind": kind, "verbs": ["create"] })
        }));
    }
    if list.is_empty() {
        return Err(ApiStatus::no_such_path());
    }
    let group_version = if group.is_empty() { version.to_owned() } else { format!("{group}/{version}") };
    let object =
        json!({ "kind": "APIResourceList", "apiVersion": "v1", "groupVersion": group_version, "resources": list });
    Ok(reply::object(StatusCode::OK, &object))
}

const REVIEWS: [(&str, &str); 2] =
    [("SelfSubjectAccessReview", "selfsubjectaccessreviews"), ("SelfSubjectRulesReview", "selfsubjectrulesreviews")];

struct Sub {
    name: &'static str,
    kind: String,
    group: &'static str,
    version: &'static str,
    verbs: &'static [&'static str],
}

fn subresources(kind: &ApiKind) -> Vec<Sub> {
    let mut subs = Vec::new();
    let whole: &[&str] = &["get", "patch", "update"];
    let own = |name, verbs| Sub { name, kind: kind.kind.clone(), group: "", version: "", verbs };
    if kind.resource() == "pods" {
        let eviction =
            Sub { name: "eviction", kind: "Eviction".into(), group: "policy", version: "v1", verbs: &["create"] };
        subs.push(own("ephemeralcontainers", whole));
        subs.push(eviction);
        subs.push(Sub {
            name: "exec",
            kind: "PodExecOptions".into(),
            group: "",
            version: "",
            verbs: &["create", "get"],
        });
        subs.push(own("log", &["get"]));
        subs.push(Sub { name: "proxy", kind: "PodProxyOptions".into(), group: "", version: "", verbs: &["get"] });
    }
    if kind.resource() == "services" {
        subs.push(Sub { name: "proxy", kind: "ServiceProxyOptions".into(), group: "", version: "", verbs: &["get"] });
    }
    if kind.scale.is_some() {
        subs.push(Sub { name: "scale", kind: "Scale".into(), group: "autoscaling", version: "v1", verbs: whole });
    }
    if kind.status {
        subs.push(own("status", whole));
    }
    subs
}

/// The newer form that tells everything in one answer.
fn aggregated(world: &ClusterWorld, groups: &[(String, Vec<String>)]) -> SandboxReply {
    let items = groups.iter().map(|(group, versions)| {
        let versions = versions.iter().map(|version| {
            let mut resources: Vec<Value> =
                world.kinds.of_group_version(group, version).map(|kind| aggregated_resource(kind)).collect();
            if group == "authorization.k8s.io" {
                resources.extend(REVIEWS.iter().map(|(kind, plural)| {
                    json!({
                        "resource": plural, "responseKind": { "group": group, "version": version, "kind": kind },
                        "scope": "Cluster", "singularResource": kind.to_lowercase(), "verbs": ["create"],
                    })
                }));
            }
            json!({ "version": version, "resources": resources, "freshness": "Current" })
        });
        let versions: Vec<Value> = versions.collect();
        let metadata = if group.is_empty() {
            json!({ "creationTimestamp": null })
        } else {
            json!({ "name": group, "creationTimestamp": null })
        };
        json!({ "metadata": metadata, "versions": versions })
    });
    let items: Vec<Value> = items.collect();
    let list = json!({
        "kind": "APIGroupDiscoveryList", "apiVersion": "apidiscovery.k8s.io/v2", "metadata": {}, "items": items,
    });
    reply::with_type(StatusCode::OK, AGGREGATED, list.to_string())
}

fn aggregated_resource(kind: &ApiKind) -> Value {
    let response = |group: &str, version: &str, name: &str| json!({ "group": group, "version": version, "kind": name });
    let mut one = json!({
        "resource": kind.plural, "responseKind": response(&kind.group, &kind.version, &kind.kind),
        "scope": if kind.namespaced { "Namespaced" } else { "Cluster" },
        "singularResource": kind.singular, "verbs": kind.verbs(),
    });
    if !kind.short.is_empty() {
        one["shortNames"] = json!(kind.short);
    }
    if !kind.categories.is_empty() {
        one["categories"] = json!(kind.categories);
    }
    let subs = subresources(kind).into_iter().map(|sub| {
        let (group, version) =
            if sub.group.is_empty() { (kind.group.as_str(), kind.version.as_str()) } else { (sub.group, sub.version) };
        json!({ "subresource": sub.name, "responseKind": response(group, version, &sub.kind), "verbs": sub.verbs })
    });
    let subs: Vec<Value> = subs.collect();
    if !subs.is_empty() {
        one["subresources"] = json!(subs);
    }
    one
}
