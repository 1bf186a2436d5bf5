//! What a path means.

use crate::query::decoded;

/// Where a request goes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum ClusterRoute {
    Version,
    /// `/readyz`, `/livez`, `/healthz`, with the name of a single check if one is asked for.
    Health(String),
    Api,
    Apis,
    Group(String),
    GroupVersion(String, String),
    OpenApi2,
    /// Empty: the index; else a group's path, `apis/apps/v1`.
    OpenApi3(String),
    Resource(RouteTarget),
    Unknown,
}

/// A resource, one of its objects, or something below one.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(crate) struct RouteTarget {
    pub(crate) group: String,
    pub(crate) version: String,
    pub(crate) plural: String,
    /// Empty for cluster-wide kinds and for lists over all namespaces.
    pub(crate) namespace: String,
    pub(crate) name: String,
    pub(crate) subresource: String,
    /// What follows the subresource, undecoded: only a proxied path has it.
    pub(crate) rest: String,
}

/// Reads a path.
pub(crate) fn of(path: &str) -> ClusterRoute {
    let parts: Vec<&str> = path.split('/').filter(|part| !part.is_empty()).collect();
    match parts[..] {
        ["version"] => ClusterRoute::Version,
        ["readyz" | "livez" | "healthz", ref check @ ..] => ClusterRoute::Health(check.join("/")),
        ["openapi", "v2"] => ClusterRoute::OpenApi2,
        ["openapi", "v3", ref group @ ..] => ClusterRoute::OpenApi3(group.join("/")),
        ["api"] => ClusterRoute::Api,
        ["api", version] => ClusterRoute::GroupVersion(String::new(), version.to_owned()),
        ["api", version, ref rest @ ..] => resource("", version, rest, path),
        ["apis"] => ClusterRoute::Apis,
        ["apis", group] => ClusterRoute::Group(group.to_owned()),
        ["apis", group, version] => ClusterRoute::GroupVersion(group.to_owned(), version.to_owned()),
        ["apis", group, version, ref rest @ ..] => resource(group, version, rest, path),
        _ => ClusterRoute::Unknown,
    }
}

fn resource(group: &str, version: &str, parts: &[&str], path: &str) -> ClusterRoute {
    let mut target = RouteTarget { group: group.to_owned(), version: version.to_owned(), ..RouteTarget::default() };
    let parts = match parts {
        // The namespace object itself, and what stands below it.
        ["namespaces"] | ["namespaces", _] | ["namespaces", _, "status" | "finalize"] => parts,
        ["namespaces", namespace, rest @ ..] => {
            target.namespace = decoded(namespace, false);
            rest
        }
        _ => parts,
    };
    let part = |at: usize| parts.get(at).map(|part| decoded(part, false)).unwrap_or_default();
    target.plural = part(0);
    target.name = part(1);
    target.subresource = part(2);
    if target.subresource == "proxy" {
        let mark = format!("/{}/proxy", parts[1]);
        target.rest = path.find(&mark).map(|at| path[at + mark.len()..].to_owned()).unwrap_or_default();
    } else if parts.len() > 3 {
        return ClusterRoute::Unknown;
    }
    ClusterRoute::Resource(target)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn target(path: &str) -> RouteTarget {
        let ClusterRoute::Resource(target) = of(path) else { panic!("{path} is no resource") };
        target
    }

    #[test]
    fn namespaces_are_objects_and_rooms() {
        let room = target("/api/v1/namespaces/shop");
        assert_eq!((room.plural.as_str(), room.name.as_str(), room.namespace.as_str()), ("namespaces", "shop", ""));
        let pod = target("/api/v1/namespaces/shop/pods/web-1/log");
        assert_eq!((pod.namespace.as_str(), pod.name.as_str(), pod.subresource.as_str()), ("shop", "web-1", "log"));
        let scale = target("/apis/apps/v1/namespaces/shop/deployments/web/scale");
        assert_eq!((scale.group.as_str(), scale.subresource.as_str()), ("apps", "scale"));
    }

    #[test]
    fn a_proxied_path_stays_whole() {
        let proxied = target("/api/v1/namespaces/shop/services/web:80/proxy/a/b");
        assert_eq!((proxied.name.as_str(), proxied.rest.as_str()), ("web:80", "/a/b"));
    }
}
