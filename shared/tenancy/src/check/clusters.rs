//! The clusters of a tenant: each with a name, one source, and how far it may be used.

use super::{CLUSTER, ConfigCheck};
use crate::config::{ClusterEntry, ClusterSource, ImpersonateConfig};
use crate::problem::shown;
use crate::yaml::YamlNode;
use domain::text::is_label;
use std::ops::RangeInclusive;

/// How many clusters one tenant may have; each costs connections and a cache.
const MOST: usize = 32;
/// The keys that say where a cluster is; exactly one of them is given.
const SOURCES: [&str; 3] = ["kubeconfig", "in_cluster", "sandbox"];
/// The longest name of a user or group that is acted as.
const WHO_BYTES: RangeInclusive<usize> = 1..=253;

impl ConfigCheck<'_, '_, '_> {
    pub(super) fn clusters(&mut self, node: &YamlNode) -> Vec<ClusterEntry> {
        let items = self.values.list(node, "`clusters`");
        if let Some(beyond) = items.get(MOST) {
            let message = format!("a tenant has at most {MOST} clusters");
            self.values.report.add(beyond.at, "out_of_range", message, None);
        }
        let mut clusters: Vec<ClusterEntry> = Vec::new();
        for item in items.iter().take(MOST) {
            let Some(cluster) = self.cluster(item) else { continue };
            if cluster.default && clusters.iter().any(|known| known.default) {
                let hint = "only one cluster can be meant when none is named".to_owned();
                self.values.report.add(item.at, "repeated_value", "two clusters are the default", Some(hint));
            }
            if clusters.iter().any(|known| known.name == cluster.name) {
                let message = format!("the cluster `{}` is there twice", cluster.name);
                let hint = "give each cluster a name of its own".to_owned();
                self.values.report.add(item.at, "repeated_value", message, Some(hint));
            } else {
                clusters.push(cluster);
            }
        }
        clusters
    }

    fn cluster(&mut self, node: &YamlNode) -> Option<ClusterEntry> {
        let fields = self.values.fields(node, "a cluster", &CLUSTER, None)?;
        let name = match fields.find("name") {
            Some(node) => self.values.label(node, "`name`"),
            None => {
                let hint = "add `name:`, by which callers choose it".to_owned();
                self.values.report.add(node.at, "missing_key", "the key `name` is missing", Some(hint));
                None
            }
        };
        let source = self.source(node, |key| fields.find(key));
        let namespaces = fields.find("namespaces").map(|node| self.namespaces(node, "`namespaces`"));
        let default_namespace = match fields.find("default_namespace") {
            Some(node) => self.default_namespace(node, namespaces.as_deref()),
            None => self.first_namespace(node, namespaces.as_deref()),
        };
        let impersonate = fields.find("impersonate").map(|node| self.impersonate(node));
        let protected = fields.find("protected").map_or_else(Vec::new, |node| self.namespaces(node, "`protected`"));
        let default = fields.find("default").is_some_and(|node| self.values.yes(node, "`default`").is_some());
        // A mistake in who is acted as must not end in acting as nobody in particular.
        let impersonate = match impersonate {
            Some(None) => return None,
            Some(Some(who)) => Some(who),
            None => None,
        };
        Some(ClusterEntry {
            name: name?,
            source: source?,
            namespaces,
            default_namespace: default_namespace?,
            impersonate,
            protected,
            default,
        })
    }

    fn source<'n>(&mut self, node: &YamlNode, find: impl Fn(&str) -> Option<&'n YamlNode>) -> Option<ClusterSource> {
        let given: Vec<&str> = SOURCES.into_iter().filter(|key| find(key).is_some()).collect();
        let [key] = given.as_slice() else {
            let message = match given.as_slice() {
                [] => "the cluster has no source".to_owned(),
                several => format!("the cluster has {} sources", several.len()),
            };
            let hint = format!("give exactly one of {}", SOURCES.map(|key| format!("`{key}`")).join(", "));
            self.values.report.add(node.at, "bad_source", message, Some(hint));
            return None;
        };
        let value = find(key)?;
        match *key {
            "kubeconfig" => self.secret(value, "kubeconfig", "a kubeconfig").map(ClusterSource::Secret),
            "in_cluster" => self.values.yes(value, "`in_cluster`").map(|()| ClusterSource::InCluster),
            _ => self.values.yes(value, "`sandbox`").map(|()| ClusterSource::Sandbox),
        }
    }

    /// A secret is a file in the tenant's folder of secrets, so its name can be no path.
    pub(super) fn secret_name(&mut self, node: &YamlNode) -> Option<String> {
        let text = self.values.text(node, "`secret`")?;
        let fits = (1..=253).contains(&text.len())
            && text.bytes().all(|b| b.is_ascii_alphanumeric() || matches!(b, b'-' | b'_' | b'.'))
            && !text.starts_with('.');
        let named = fits.then(|| text.to_owned()).ok_or_else(|| format!("{} is no name of a secret", shown(text)));
        self.values.accept(node, named)
    }

    fn namespaces(&mut self, node: &YamlNode, place: &str) -> Vec<String> {
        let items = self.values.list(node, place);
        items.iter().filter_map(|item| self.namespace(item)).collect()
    }

    /// A namespace, or all that begin alike. `*` alone would be no limit at all.
    fn namespace(&mut self, node: &YamlNode) -> Option<String> {
        let text = self.values.text(node, "a namespace")?;
        let fits = match text.strip_suffix('*') {
            Some(stem) => !stem.is_empty() && is_label(&format!("{stem}x")),
            None => is_label(text),
        };
        if !fits {
            let message = format!("{} is neither a namespace nor the beginning of one", shown(text));
            let hint = "write a name, or a beginning and `*`; to allow all, leave the list out".to_owned();
            self.values.report.add(node.at, "bad_value", message, Some(hint));
            return None;
        }
        Some(text.to_owned())
    }

    fn default_namespace(&mut self, node: &YamlNode, allowed: Option<&[String]>) -> Option<String> {
        let label = self.values.label(node, "`default_namespace`")?;
        if allowed.is_none_or(|list| list.iter().any(|pattern| matches(pattern, &label))) {
            return Some(label);
        }
        let message = format!("{} is outside `namespaces`", shown(&label));
        self.values.report.add(node.at, "bad_value", message, Some("choose one that is allowed".to_owned()));
        None
    }

    /// Without a word about it, calls go to `default`; under a list, to the first that is named whole.
    fn first_namespace(&mut self, node: &YamlNode, allowed: Option<&[String]>) -> Option<String> {
        let Some(list) = allowed else { return Some("default".to_owned()) };
        let first = list.iter().find(|pattern| !pattern.ends_with('*')).cloned();
        if first.is_none() {
            let message = "no namespace is named whole, so a call without one has nowhere to go";
            let hint = "add `default_namespace:`".to_owned();
            self.values.report.add(node.at, "missing_key", message, Some(hint));
        }
        first
    }

    fn impersonate(&mut self, node: &YamlNode) -> Option<ImpersonateConfig> {
        let fields = self.values.fields(node, "`impersonate`", &["user", "groups"], None)?;
        let Some(user) = fields.find("user") else {
            let hint = "add `user:`; a group alone cannot be acted as".to_owned();
            self.values.report.add(node.at, "missing_key", "the key `user` is missing", Some(hint));
            return None;
        };
        let user = self.who(user, "`user`");
        let groups = fields.find("groups").map_or_else(
            || Some(Vec::new()),
            |node| self.values.list(node, "`groups`").iter().map(|item| self.who(item, "a group")).collect(),
        );
        Some(ImpersonateConfig { user: user?, groups: groups? })
    }

    fn who(&mut self, node: &YamlNode, place: &str) -> Option<String> {
        let text = self.values.text(node, place)?;
        let fits = WHO_BYTES.contains(&text.len()) && text.bytes().all(|b| (0x20..0x7f).contains(&b));
        // Members of this group are above every rule of the cluster.
        let master = text == "system:masters";
        let named = (fits && !master).then(|| text.to_owned());
        self.values.accept(node, named.ok_or_else(|| format!("nobody can be acted as {}", shown(text))))
    }
}

fn matches(pattern: &str, namespace: &str) -> bool {
    pattern.strip_suffix('*').map_or_else(|| pattern == namespace, |stem| namespace.starts_with(stem))
}
