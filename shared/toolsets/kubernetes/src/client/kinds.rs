//! Kinds: what a cluster knows by discovery, and how a caller's spelling finds one of them.
//!
//! What discovery answers is checked like any input: a group, version or resource that is no name is passed over,
//! because it would become part of an address.

use crate::client::grammar;
use crate::codes;
use domain::{Failure, outcome::near};
use serde_json::{Value, json};
use std::collections::BTreeSet;
use std::sync::{Arc, Mutex, PoisonError};

/// One kind of one cluster. Only discovery makes one.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Kind(Arc<KindFacts>);

#[derive(Debug, PartialEq, Eq)]
struct KindFacts {
    group: String,
    version: String,
    kind: String,
    plural: String,
    singular: String,
    short: Vec<String>,
    namespaced: bool,
    verbs: Vec<String>,
    subresources: Vec<String>,
}

impl Kind {
    /// The API group; empty for the core.
    pub fn group(&self) -> &str {
        &self.0.group
    }

    /// The preferred version.
    pub fn version(&self) -> &str {
        &self.0.version
    }

    /// The kind, such as `Deployment`.
    pub fn kind(&self) -> &str {
        &self.0.kind
    }

    /// The resource in addresses, such as `deployments`.
    pub fn plural(&self) -> &str {
        &self.0.plural
    }

    /// Its short names.
    pub fn short(&self) -> &[String] {
        &self.0.short
    }

    /// Whether its objects live in namespaces.
    pub fn namespaced(&self) -> bool {
        self.0.namespaced
    }

    /// What can be done to it.
    pub fn verbs(&self) -> &[String] {
        &self.0.verbs
    }

    /// Whether it has such a subresource (`scale`, `status`, `log`).
    pub fn has(&self, subresource: &str) -> bool {
        self.0.subresources.iter().any(|name| name == subresource)
    }

    /// Whether it is this kind of this group, in any version.
    pub fn is(&self, group: &str, kind: &str) -> bool {
        self.0.group == group && self.0.kind == kind
    }

    /// `apps/v1`, or `v1` for the core.
    pub fn api_version(&self) -> String {
        match self.0.group.as_str() {
            "" => self.0.version.clone(),
            group => format!("{group}/{}", self.0.version),
        }
    }

    /// The unambiguous spelling: `deployments.apps`, or `pods` for the core.
    pub fn full_name(&self) -> String {
        match self.0.group.as_str() {
            "" => self.0.plural.clone(),
            group => format!("{}.{group}", self.0.plural),
        }
    }

    /// Whether the built-in kinds' own merge rules apply to it; custom kinds have none.
    pub fn strategic(&self) -> bool {
        let group = self.group();
        !group.contains('.') || (group.ends_with(".k8s.io") && !CUSTOM_K8S_IO.contains(&group))
    }

    /// Whether the API server itself has it.
    pub(in crate::client) fn is_built_in(&self) -> bool {
        BUILT_IN.contains(&self.group())
    }

    /// Whether this OpenAPI document of its group says of every write to it that it can be a dry run.
    pub(in crate::client) fn takes_dry_runs(&self, openapi: &Value) -> bool {
        let own = |operation: &Value| {
            let of = &operation["x-kubernetes-group-version-kind"];
            // Nobody here deletes whole collections, and custom kinds do not declare dry runs for that.
            let is_one = operation["x-kubernetes-action"] != "deletecollection";
            is_one && of["group"] == self.group() && of["version"] == self.version() && of["kind"] == self.kind()
        };
        let declared = |operation: &Value| {
            let is_dry_run = |parameter: &Value| {
                let shared = parameter["$ref"].as_str().and_then(|at| at.strip_prefix("#/components/parameters/"));
                let parameter = shared.map_or(parameter, |name| &openapi["components"]["parameters"][name]);
                parameter["name"] == "dryRun" && parameter["in"] == "query"
            };
            operation["parameters"].as_array().is_some_and(|parameters| parameters.iter().any(is_dry_run))
        };
        let paths = openapi["paths"].as_object().into_iter().flat_map(|paths| paths.values());
        let operations = paths.flat_map(|path| ["post", "put", "patch", "delete"].map(|method| &path[method]));
        let mut writes = operations.filter(|operation| own(operation)).peekable();
        writes.peek().is_some() && writes.all(declared)
    }

    fn answers_to(&self, name: &str) -> bool {
        let facts = &self.0;
        facts.kind.eq_ignore_ascii_case(name)
            || facts.plural.eq_ignore_ascii_case(name)
            || facts.singular.eq_ignore_ascii_case(name)
            || facts.short.iter().any(|short| short.eq_ignore_ascii_case(name))
    }
}

/// The groups of the API server itself. Nobody else can serve them, and their every write can be a dry run.
const BUILT_IN: [&str; 24] = [
    "",
    "admissionregistration.k8s.io",
    "apiextensions.k8s.io",
    "apiregistration.k8s.io",
    "apps",
    "authentication.k8s.io",
    "authorization.k8s.io",
    "autoscaling",
    "batch",
    "certificates.k8s.io",
    "coordination.k8s.io",
    "discovery.k8s.io",
    "events.k8s.io",
    "extensions",
    "flowcontrol.apiserver.k8s.io",
    "internal.apiserver.k8s.io",
    "networking.k8s.io",
    "node.k8s.io",
    "policy",
    "rbac.authorization.k8s.io",
    "resource.k8s.io",
    "scheduling.k8s.io",
    "storage.k8s.io",
    "storagemigration.k8s.io",
];

/// Groups under `k8s.io` whose kinds are custom resources all the same.
const CUSTOM_K8S_IO: [&str; 3] = ["gateway.networking.k8s.io", "snapshot.storage.k8s.io", "metrics.k8s.io"];

/// What one cluster knows.
#[derive(Debug, Default)]
pub(in crate::client) struct ClusterKinds {
    kinds: Vec<Kind>,
    /// The full names of those whose server has said that it takes dry runs.
    dry_runs: Mutex<BTreeSet<String>>,
}

impl ClusterKinds {
    pub(in crate::client) fn all(&self) -> &[Kind] {
        &self.kinds
    }

    /// Whether it is known that a kind's server takes dry runs.
    pub(in crate::client) fn has_dry_runs(&self, kind: &Kind) -> bool {
        kind.is_built_in() || self.dry_runs.lock().unwrap_or_else(PoisonError::into_inner).contains(&kind.full_name())
    }

    /// Takes note that it does.
    pub(in crate::client) fn note_dry_runs(&self, kind: &Kind) {
        self.dry_runs.lock().unwrap_or_else(PoisonError::into_inner).insert(kind.full_name());
    }

    /// Reads the aggregated form (`APIGroupDiscoveryList`): every group and resource in one answer.
    pub(in crate::client) fn read_aggregated(&mut self, list: &Value) {
        for group in list["items"].as_array().into_iter().flatten() {
            let name = group["metadata"]["name"].as_str().unwrap_or_default();
            for (n, version) in group["versions"].as_array().into_iter().flatten().enumerate() {
                let at = version["version"].as_str().unwrap_or_default();
                for resource in version["resources"].as_array().into_iter().flatten() {
                    let facts = KindFacts {
                        group: name.to_owned(),
                        version: at.to_owned(),
                        kind: text(&resource["responseKind"]["kind"]),
                        plural: text(&resource["resource"]),
                        singular: text(&resource["singularResource"]),
                        short: texts(&resource["shortNames"]),
                        namespaced: resource["scope"] == "Namespaced",
                        verbs: texts(&resource["verbs"]),
                        subresources: resource["subresources"]
                            .as_array()
                            .into_iter()
                            .flatten()
                            .map(|sub| text(&sub["subresource"]))
                            .collect(),
                    };
                    self.add(facts, n == 0);
                }
            }
        }
    }

    /// Reads the plain form (`APIResourceList`) of one group and version.
    pub(in crate::client) fn read_plain(&mut self, group: &str, version: &str, preferred: bool, list: &Value) {
        let resources = || list["resources"].as_array().into_iter().flatten();
        for resource in resources() {
            let plural = text(&resource["name"]);
            let beneath = format!("{plural}/");
            let facts = KindFacts {
                group: group.to_owned(),
                version: version.to_owned(),
                kind: text(&resource["kind"]),
                singular: text(&resource["singularName"]),
                short: texts(&resource["shortNames"]),
                namespaced: resource["namespaced"] == true,
                verbs: texts(&resource["verbs"]),
                subresources: resources()
                    .filter_map(|other| other["name"].as_str()?.strip_prefix(&beneath).map(str::to_owned))
                    .collect(),
                plural,
            };
            self.add(facts, preferred);
        }
    }

    /// Keeps one entry for each resource: the preferred version comes first and stays.
    fn add(&mut self, facts: KindFacts, preferred: bool) {
        let word = |text: &str| !text.is_empty() && text.bytes().all(|b| b.is_ascii_alphanumeric());
        let sound = (facts.group.is_empty() || grammar::is_subdomain(&facts.group))
            && grammar::is_label(&facts.version)
            && grammar::is_subdomain(&facts.plural)
            && word(&facts.kind);
        if !sound {
            return;
        }
        let same = |kind: &&mut Kind| kind.0.group == facts.group && kind.0.plural == facts.plural;
        match self.kinds.iter_mut().find(same) {
            Some(known) if preferred => *known = Kind(Arc::new(facts)),
            Some(_) => {}
            None => self.kinds.push(Kind(Arc::new(facts))),
        }
    }

    /// Finds what a caller means. `None`: no such kind, which may be old news.
    pub(in crate::client) fn find(&self, wanted: &str) -> Option<Result<Kind, Failure>> {
        let found: Vec<&Kind> = match Spelling::of(wanted) {
            Spelling::Exact { group, version, kind } => {
                let fits = |k: &&Kind| k.0.group == group && k.0.version == version && k.answers_to(kind);
                self.kinds.iter().filter(fits).collect()
            }
            Spelling::Grouped { name, group } => {
                self.kinds.iter().filter(|k| k.0.group == group && k.answers_to(name)).collect()
            }
            Spelling::Bare(name) => self.kinds.iter().filter(|k| k.answers_to(name)).collect(),
        };
        match found.as_slice() {
            [] => None,
            [only] => Some(Ok((*only).clone())),
            // `pods`, `events`: the core's own is what everybody means; metrics and events.k8s.io are asked for by name.
            several => Some(match several.iter().find(|kind| kind.group().is_empty()) {
                Some(core) => Ok((*core).clone()),
                None => Err(ambiguous(wanted, several)),
            }),
        }
    }

    /// The failure for a kind that is not there.
    pub(in crate::client) fn unknown(&self, wanted: &str) -> Failure {
        if wanted.contains('/') && Spelling::of(wanted) == Spelling::Bare(wanted) {
            return Failure::new(codes::UNKNOWN_KIND, "a subresource or a path is no kind")
                .next("give the kind alone, such as Pod; subresources have tools of their own");
        }
        let names = self.kinds.iter().flat_map(|kind| [kind.kind(), kind.plural()]);
        let shown: String = wanted.chars().filter(|c| !c.is_control()).take(64).collect();
        let mut near = near(wanted, names);
        near.dedup();
        Failure::new(codes::UNKNOWN_KIND, format!("the cluster knows no kind `{shown}`"))
            .next("use did_you_mean, or list what there is with k8s_discover ask=resources")
            .did_you_mean(near)
    }
}

fn ambiguous(wanted: &str, several: &[&Kind]) -> Failure {
    let names: Vec<String> = several.iter().map(|kind| kind.full_name()).collect();
    Failure::new(codes::AMBIGUOUS_KIND, format!("{} kinds answer to `{wanted}`", names.len()))
        .next("name it with its group")
        .did_you_mean(names.iter().take(3).cloned().collect())
        .details(json!({ "candidates": names }))
}

/// The ways a kind is written.
#[derive(Debug, PartialEq, Eq)]
enum Spelling<'a> {
    /// `Deployment`, `deployments`, `deploy`.
    Bare(&'a str),
    /// `rollouts.argoproj.io`, `Deployment.apps`.
    Grouped { name: &'a str, group: &'a str },
    /// `apps/v1/Deployment`, `v1/Pod`.
    Exact { group: &'a str, version: &'a str, kind: &'a str },
}

impl Spelling<'_> {
    fn of(text: &str) -> Spelling<'_> {
        let parts: Vec<&str> = text.split('/').collect();
        let is_version = |t: &str| {
            t.strip_prefix('v').is_some_and(|rest| rest.starts_with(|c: char| c.is_ascii_digit()))
                && grammar::is_label(t)
        };
        match parts.as_slice() {
            [group, version, kind] if is_version(version) => Spelling::Exact { group, version, kind },
            [version, kind] if is_version(version) => Spelling::Exact { group: "", version, kind },
            [one] => match one.split_once('.') {
                Some((name, group)) => Spelling::Grouped { name, group },
                None => Spelling::Bare(one),
            },
            _ => Spelling::Bare(text),
        }
    }
}

fn text(value: &Value) -> String {
    value.as_str().unwrap_or_default().to_owned()
}

fn texts(value: &Value) -> Vec<String> {
    value.as_array().into_iter().flatten().filter_map(|item| item.as_str().map(str::to_owned)).collect()
}

#[cfg(test)]
mod tests;
