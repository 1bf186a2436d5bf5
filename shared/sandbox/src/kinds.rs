//! The kinds the server knows: the built-in ones, and those that custom resource definitions add.

mod builtin;
mod custom;

use std::collections::BTreeMap;
use std::sync::Arc;

use serde_json::Value;

pub(crate) use self::custom::read_definition;
use crate::status::KindNames;

/// One kind in one version.
#[derive(Debug, Clone)]
pub(crate) struct ApiKind {
    pub(crate) group: String,
    pub(crate) version: String,
    pub(crate) kind: String,
    pub(crate) plural: String,
    pub(crate) singular: String,
    pub(crate) short: Vec<String>,
    pub(crate) categories: Vec<String>,
    pub(crate) namespaced: bool,
    /// The name of its root type in the schema table.
    pub(crate) type_name: String,
    /// Changes of the wanted state are counted in `metadata.generation`.
    pub(crate) counted: bool,
    pub(crate) status: bool,
    pub(crate) scale: Option<ScalePaths>,
    /// Only reading is offered, as for measurements.
    pub(crate) read_only: bool,
    /// Made by a definition: no strategic merge, columns from the definition.
    pub(crate) custom: bool,
    /// Printer columns of a definition: name, type, path, priority.
    pub(crate) columns: Vec<PrinterColumn>,
    /// The wanted shape of a custom kind as it was given, for the OpenAPI document.
    pub(crate) schema: Value,
}

/// Where the numbers of the scale subresource stand.
#[derive(Debug, Clone)]
pub(crate) struct ScalePaths {
    pub(crate) wanted: String,
    pub(crate) current: String,
    pub(crate) selector: Option<String>,
}

/// One printer column of a custom kind.
#[derive(Debug, Clone)]
pub(crate) struct PrinterColumn {
    pub(crate) name: String,
    pub(crate) kind: String,
    pub(crate) path: String,
    pub(crate) priority: i64,
}

impl ApiKind {
    /// The name under which objects of this kind are stored, in every version.
    pub(crate) fn resource(&self) -> String {
        stored_as(&self.group, &self.plural)
    }

    pub(crate) fn api_version(&self) -> String {
        if self.group.is_empty() { self.version.clone() } else { format!("{}/{}", self.group, self.version) }
    }

    pub(crate) fn named(&self) -> KindNames {
        KindNames { group: self.group.clone(), plural: self.plural.clone(), kind: self.kind.clone() }
    }

    pub(crate) fn verbs(&self) -> &'static [&'static str] {
        if self.read_only {
            &["get", "list"]
        } else {
            &["create", "delete", "deletecollection", "get", "list", "patch", "update", "watch"]
        }
    }
}

/// The key of a resource in the store: `pods`, `deployments.apps`.
pub(crate) fn stored_as(group: &str, plural: &str) -> String {
    match (group, plural) {
        // Both groups show the same events.
        ("events.k8s.io", "events") | ("", _) => plural.to_owned(),
        _ => format!("{plural}.{group}"),
    }
}

/// Every kind, by group, version and plural.
#[derive(Debug, Clone, Default)]
pub(crate) struct ApiKinds(BTreeMap<(String, String, String), Arc<ApiKind>>);

impl ApiKinds {
    pub(crate) fn builtin() -> ApiKinds {
        let mut kinds = ApiKinds::default();
        for kind in builtin::all() {
            kinds.insert(kind);
        }
        kinds
    }

    pub(crate) fn insert(&mut self, kind: ApiKind) {
        let key = (kind.group.clone(), kind.version.clone(), kind.plural.clone());
        self.0.insert(key, Arc::new(kind));
    }

    /// Forgets every version of a resource.
    pub(crate) fn remove(&mut self, group: &str, plural: &str) {
        self.0.retain(|(g, _, p), _| g != group || p != plural);
    }

    /// Forgets every resource of a group.
    pub(crate) fn remove_group(&mut self, group: &str) {
        self.0.retain(|(known, _, _), _| known != group);
    }

    pub(crate) fn find(&self, group: &str, version: &str, plural: &str) -> Option<Arc<ApiKind>> {
        self.0.get(&(group.to_owned(), version.to_owned(), plural.to_owned())).cloned()
    }

    /// A kind by the key of its resource in the store.
    pub(crate) fn of_resource(&self, resource: &str) -> Option<Arc<ApiKind>> {
        let (plural, group) = resource.split_once('.').unwrap_or((resource, ""));
        self.0.values().find(|kind| kind.group == group && kind.plural == plural && !kind.read_only).cloned()
    }

    /// A kind by what objects say about themselves.
    pub(crate) fn of_object(&self, api_version: &str, kind: &str) -> Option<Arc<ApiKind>> {
        let (group, version) = api_version.rsplit_once('/').unwrap_or(("", api_version));
        self.0.values().find(|one| one.group == group && one.version == version && one.kind == kind).cloned()
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = &Arc<ApiKind>> {
        self.0.values()
    }

    pub(crate) fn of_group_version<'a>(
        &'a self,
        group: &'a str,
        version: &'a str,
    ) -> impl Iterator<Item = &'a Arc<ApiKind>> {
        self.iter().filter(move |kind| kind.group == group && kind.version == version)
    }

    /// Groups other than the core one with their versions, preferred first.
    pub(crate) fn groups(&self) -> Vec<(String, Vec<String>)> {
        let mut groups: Vec<(String, Vec<String>)> = Vec::new();
        for kind in self.iter().filter(|kind| !kind.group.is_empty()) {
            match groups.iter_mut().find(|(group, _)| *group == kind.group) {
                Some((_, versions)) if versions.contains(&kind.version) => {}
                Some((_, versions)) => versions.push(kind.version.clone()),
                None => groups.push((kind.group.clone(), vec![kind.version.clone()])),
            }
        }
        for (_, versions) in &mut groups {
            versions.sort_by_key(|version| std::cmp::Reverse(maturity(version)));
        }
        groups
    }
}

/// Orders versions as the server prefers them: v2 before v1 before v1beta1 before v1alpha1.
fn maturity(version: &str) -> (u8, u32, u32) {
    let rest = version.strip_prefix('v').unwrap_or(version);
    let number = |text: &str| text.parse().unwrap_or(0);
    if let Some((major, minor)) = rest.split_once("alpha") {
        (0, number(major), number(minor))
    } else if let Some((major, minor)) = rest.split_once("beta") {
        (1, number(major), number(minor))
    } else {
        (2, number(rest), 0)
    }
}
