//! What a text over HTTP may say about clusters: those of the tenant's file within the file's bounds, and others that use
//! nothing of the operator's.
//!
//! A cluster of the file keeps its name and its source, so that an approver who reads a name knows the cluster. Which
//! cluster a call means by default, and where a call without a namespace goes, is the tenant's to say.

use super::{ClusterEntry, ClusterSource, ImpersonateConfig};
use crate::client::ImagePattern;
use tenancy::{Excess, listed};

pub(super) fn exceeding(file: Option<&Vec<ClusterEntry>>, asked: Option<&Vec<ClusterEntry>>) -> Vec<Excess> {
    let file = file.map_or(&[][..], Vec::as_slice);
    let asked = asked.map_or(&[][..], Vec::as_slice).iter().enumerate();
    asked.flat_map(|(n, cluster)| one(file, n, cluster)).collect()
}

fn one(file: &[ClusterEntry], n: usize, asked: &ClusterEntry) -> Vec<Excess> {
    let (key, at) = (source_key(&asked.source), |key: &str| format!("/{n}/{key}"));
    let named = |key: &str| format!("`{key}` of the cluster `{}`", asked.name);
    let Some(given) = file.iter().find(|given| given.name == asked.name) else {
        // The operator's credential is used under the operator's name for it, with the bounds that stand there.
        let others: Vec<&str> =
            file.iter().filter(|given| given.source == asked.source).map(|given| given.name.as_str()).collect();
        return match (&asked.source, others.as_slice()) {
            (ClusterSource::Sandbox, _) | (ClusterSource::Secret(_), []) => Vec::new(),
            (ClusterSource::InCluster, []) => {
                vec![Excess::new(at(key), named(key), "no such cluster", "the service's own account")]
            }
            (ClusterSource::InCluster | ClusterSource::Secret(_), others) => {
                let given = format!("it as {}", listed(others));
                vec![Excess::new(at(key), named(key), given, format!("it as {}", asked.name))]
            }
        };
    };
    let mut found = Vec::new();
    let mut beyond =
        |key: &str, given: String, asked: String| found.push(Excess::new(at(key), named(key), given, asked));
    if given.source != asked.source {
        beyond(key, source(&given.source), source(&asked.source));
    }
    if !within(given.namespaces.as_deref(), asked.namespaces.as_deref()) {
        beyond("namespaces", namespaces(given.namespaces.as_deref()), namespaces(asked.namespaces.as_deref()));
    }
    // Neither is less than the other: whoever is acted as may have rights that the credential's own name has not.
    if given.impersonate != asked.impersonate {
        beyond("impersonate", who(given.impersonate.as_ref()), who(asked.impersonate.as_ref()));
    }
    if !given.protected.iter().all(|pattern| asked.protected.iter().any(|asked| covers(asked, pattern))) {
        beyond("protected", listed(&given.protected), listed(&asked.protected));
    }
    found
}

/// A text may list fewer images than the file, and not more. No list is every image.
pub(super) fn exceeding_images(file: Option<&Vec<ImagePattern>>, asked: Option<&Vec<ImagePattern>>) -> Vec<Excess> {
    let Some(given) = file else { return Vec::new() };
    let within = asked.is_some_and(|asked| asked.iter().all(|asked| given.iter().any(|given| given.covers(asked))));
    if within {
        return Vec::new();
    }
    let names = |list: &[ImagePattern]| listed(list.iter().map(ToString::to_string).collect::<Vec<_>>());
    let asked = asked.map_or_else(|| "every image".to_owned(), |asked| names(asked));
    vec![Excess::new(String::new(), "`policy.images`".to_owned(), names(given), asked)]
}

/// A text may allow fewer replicas than the file, and not more.
pub(super) fn exceeding_replicas(file: Option<&u32>, asked: Option<&u32>) -> Vec<Excess> {
    let Some(given) = file else { return Vec::new() };
    if asked.is_some_and(|asked| asked <= given) {
        return Vec::new();
    }
    let asked = asked.map_or_else(|| "any number".to_owned(), ToString::to_string);
    vec![Excess::new(String::new(), "`policy.most_replicas`".to_owned(), given.to_string(), asked)]
}

/// Whether every namespace of the second list is in the first. No list is every namespace.
fn within(given: Option<&[String]>, asked: Option<&[String]>) -> bool {
    match (given, asked) {
        (None, _) => true,
        (Some(_), None) => false,
        (Some(given), Some(asked)) => asked.iter().all(|asked| given.iter().any(|given| covers(given, asked))),
    }
}

/// Whether a pattern matches whatever the other one matches.
fn covers(pattern: &str, other: &str) -> bool {
    match pattern.strip_suffix('*') {
        Some(stem) => other.strip_suffix('*').unwrap_or(other).starts_with(stem),
        None => pattern == other,
    }
}

fn source_key(source: &ClusterSource) -> &'static str {
    match source {
        ClusterSource::Secret(_) => "kubeconfig",
        ClusterSource::InCluster => "in_cluster",
        ClusterSource::Sandbox => "sandbox",
    }
}

fn source(source: &ClusterSource) -> String {
    match source {
        ClusterSource::Secret(name) => format!("the kubeconfig `{name}`"),
        ClusterSource::InCluster => "the service's own account".to_owned(),
        ClusterSource::Sandbox => "a sandbox".to_owned(),
    }
}

fn namespaces(list: Option<&[String]>) -> String {
    list.map_or_else(|| "all namespaces".to_owned(), listed)
}

fn who(who: Option<&ImpersonateConfig>) -> String {
    match who {
        None => "the credential's own name".to_owned(),
        Some(ImpersonateConfig { user, groups }) => format!("{user} in the groups {}", listed(groups)),
    }
}

#[cfg(test)]
mod tests;
