//! Reads the clusters of a tenant: each with a name, one source, and how far it may be used.

use super::{CLUSTER, ClusterEntry, ClusterSource, ImpersonateConfig};
use crate::client::ImagePattern;
use domain::text::is_label;
use std::ops::RangeInclusive;
use tenancy::{SectionReader, YamlNode, shown};

/// How many clusters one tenant may have; each costs connections and a cache.
const MOST: usize = 32;
/// How many image patterns one tenant may have; each image is compared with all of them.
const MOST_IMAGES: usize = 256;
/// The keys that say where a cluster is; exactly one of them is given.
const SOURCES: [&str; 3] = ["kubeconfig", "in_cluster", "sandbox"];
/// The longest name of a user or group that is acted as.
const WHO_BYTES: RangeInclusive<usize> = 1..=253;

/// The images that may be run. A list without any allows none.
pub(super) fn images(reader: &mut SectionReader<'_>, node: &YamlNode) -> Option<Vec<ImagePattern>> {
    let items = reader.values.list(node, "`images`");
    if let Some(beyond) = items.get(MOST_IMAGES) {
        let message = format!("a tenant has at most {MOST_IMAGES} image patterns");
        reader.values.report.add(beyond.at, "out_of_range", message, None);
    }
    let mut patterns = Vec::new();
    for item in items.iter().take(MOST_IMAGES) {
        let Some(text) = reader.values.text(item, "an image pattern") else { continue };
        let pattern = ImagePattern::parse(text).map_err(|error| format!("{} is none: {error}", shown(text)));
        patterns.extend(reader.values.accept(item, pattern));
    }
    Some(patterns)
}

/// The clusters; `None` if there is none.
pub(super) fn clusters(reader: &mut SectionReader<'_>, node: &YamlNode) -> Option<Vec<ClusterEntry>> {
    let items = reader.values.list(node, "`clusters`");
    if let Some(beyond) = items.get(MOST) {
        let message = format!("a tenant has at most {MOST} clusters");
        reader.values.report.add(beyond.at, "out_of_range", message, None);
    }
    let mut clusters: Vec<ClusterEntry> = Vec::new();
    for item in items.iter().take(MOST) {
        let Some(cluster) = cluster(reader, item) else { continue };
        if cluster.default && clusters.iter().any(|known| known.default) {
            let hint = "only one cluster can be meant when none is named".to_owned();
            reader.values.report.add(item.at, "repeated_value", "two clusters are the default", Some(hint));
        }
        if clusters.iter().any(|known| known.name == cluster.name) {
            let message = format!("the cluster `{}` is there twice", cluster.name);
            let hint = "give each cluster a name of its own".to_owned();
            reader.values.report.add(item.at, "repeated_value", message, Some(hint));
        } else {
            clusters.push(cluster);
        }
    }
    Some(clusters).filter(|clusters| !clusters.is_empty())
}

fn cluster(reader: &mut SectionReader<'_>, node: &YamlNode) -> Option<ClusterEntry> {
    let fields = reader.values.fields(node, "a cluster", &CLUSTER, None)?;
    let name = match fields.find("name") {
        Some(node) => reader.values.label(node, "`name`"),
        None => {
            let hint = "add `name:`, by which callers choose it".to_owned();
            reader.values.report.add(node.at, "missing_key", "the key `name` is missing", Some(hint));
            None
        }
    };
    let source = source(reader, node, |key| fields.find(key));
    let namespaces = fields.find("namespaces").map(|node| namespace_list(reader, node, "`namespaces`"));
    let default_namespace = match fields.find("default_namespace") {
        Some(node) => default_namespace(reader, node, namespaces.as_deref()),
        None => first_namespace(reader, node, namespaces.as_deref()),
    };
    let impersonate = fields.find("impersonate").map(|node| impersonate(reader, node));
    let protected = fields.find("protected").map_or_else(Vec::new, |node| namespace_list(reader, node, "`protected`"));
    let default = fields.find("default").is_some_and(|node| reader.values.yes(node, "`default`").is_some());
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

fn source<'n>(
    reader: &mut SectionReader<'_>,
    node: &YamlNode,
    find: impl Fn(&str) -> Option<&'n YamlNode>,
) -> Option<ClusterSource> {
    let given: Vec<&str> = SOURCES.into_iter().filter(|key| find(key).is_some()).collect();
    let [key] = given.as_slice() else {
        let message = match given.as_slice() {
            [] => "the cluster has no source".to_owned(),
            several => format!("the cluster has {} sources", several.len()),
        };
        let hint = format!("give exactly one of {}", SOURCES.map(|key| format!("`{key}`")).join(", "));
        reader.values.report.add(node.at, "bad_source", message, Some(hint));
        return None;
    };
    let value = find(key)?;
    match *key {
        "kubeconfig" => reader.secret(value, "kubeconfig", "a kubeconfig").map(ClusterSource::Secret),
        "in_cluster" => reader.values.yes(value, "`in_cluster`").map(|()| ClusterSource::InCluster),
        _ => reader.values.yes(value, "`sandbox`").map(|()| ClusterSource::Sandbox),
    }
}

fn namespace_list(reader: &mut SectionReader<'_>, node: &YamlNode, place: &str) -> Vec<String> {
    let items = reader.values.list(node, place);
    items.iter().filter_map(|item| namespace(reader, item)).collect()
}

/// A namespace, or all that begin alike. `*` alone would be no limit at all.
fn namespace(reader: &mut SectionReader<'_>, node: &YamlNode) -> Option<String> {
    let text = reader.values.text(node, "a namespace")?;
    let fits = match text.strip_suffix('*') {
        Some(stem) => !stem.is_empty() && is_label(&format!("{stem}x")),
        None => is_label(text),
    };
    if !fits {
        let message = format!("{} is neither a namespace nor the beginning of one", shown(text));
        let hint = "write a name, or a beginning and `*`; to allow all, leave the list out".to_owned();
        reader.values.report.add(node.at, "bad_value", message, Some(hint));
        return None;
    }
    Some(text.to_owned())
}

fn default_namespace(reader: &mut SectionReader<'_>, node: &YamlNode, allowed: Option<&[String]>) -> Option<String> {
    let label = reader.values.label(node, "`default_namespace`")?;
    if allowed.is_none_or(|list| list.iter().any(|pattern| matches(pattern, &label))) {
        return Some(label);
    }
    let message = format!("{} is outside `namespaces`", shown(&label));
    reader.values.report.add(node.at, "bad_value", message, Some("choose one that is allowed".to_owned()));
    None
}

/// Without a word about it, calls go to `default`; under a list, to the first that is named whole.
fn first_namespace(reader: &mut SectionReader<'_>, node: &YamlNode, allowed: Option<&[String]>) -> Option<String> {
    let Some(list) = allowed else { return Some("default".to_owned()) };
    let first = list.iter().find(|pattern| !pattern.ends_with('*')).cloned();
    if first.is_none() {
        let message = "no namespace is named whole, so a call without one has nowhere to go";
        let hint = "add `default_namespace:`".to_owned();
        reader.values.report.add(node.at, "missing_key", message, Some(hint));
    }
    first
}

fn impersonate(reader: &mut SectionReader<'_>, node: &YamlNode) -> Option<ImpersonateConfig> {
    let fields = reader.values.fields(node, "`impersonate`", &["user", "groups"], None)?;
    let Some(user) = fields.find("user") else {
        let hint = "add `user:`; a group alone cannot be acted as".to_owned();
        reader.values.report.add(node.at, "missing_key", "the key `user` is missing", Some(hint));
        return None;
    };
    let user = who(reader, user, "`user`");
    let groups = fields.find("groups").map_or_else(
        || Some(Vec::new()),
        |node| reader.values.list(node, "`groups`").iter().map(|item| who(reader, item, "a group")).collect(),
    );
    Some(ImpersonateConfig { user: user?, groups: groups? })
}

fn who(reader: &mut SectionReader<'_>, node: &YamlNode, place: &str) -> Option<String> {
    let text = reader.values.text(node, place)?;
    let fits = WHO_BYTES.contains(&text.len()) && text.bytes().all(|b| (0x20..0x7f).contains(&b));
    // Members of this group are above every rule of the cluster.
    let master = text == "system:masters";
    let named = (fits && !master).then(|| text.to_owned());
    reader.values.accept(node, named.ok_or_else(|| format!("nobody can be acted as {}", shown(text))))
}

fn matches(pattern: &str, namespace: &str) -> bool {
    pattern.strip_suffix('*').map_or_else(|| pattern == namespace, |stem| namespace.starts_with(stem))
}
