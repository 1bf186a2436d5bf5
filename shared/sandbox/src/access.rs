//! Who may do what: the bearer of the token everything, whom he speaks for only what the table says.

use http::HeaderMap;

/// Somebody who asks.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct User {
    pub(crate) name: String,
    pub(crate) groups: Vec<String>,
}

/// What is wanted, in the words of authorization.
#[derive(Debug, Clone)]
pub(crate) struct AccessRequest<'a> {
    pub(crate) verb: &'a str,
    pub(crate) group: &'a str,
    pub(crate) resource: &'a str,
    pub(crate) subresource: &'a str,
}

/// The bearer of the sandbox's token.
pub(crate) const ADMIN: &str = "sandbox-admin";

/// A user that may look at everything except secrets, and change nothing.
pub(crate) const VIEWER: &str = "sandbox-viewer";

/// One line of the table: user, verbs, groups, resources; `*` is all.
pub(crate) struct AccessRule {
    user: &'static str,
    pub(crate) verbs: &'static [&'static str],
    pub(crate) groups: &'static [&'static str],
    pub(crate) resources: &'static [&'static str],
}

const VIEWED: [&str; 30] = [
    "pods",
    "pods/log",
    "services",
    "endpoints",
    "configmaps",
    "events",
    "namespaces",
    "nodes",
    "persistentvolumes",
    "persistentvolumeclaims",
    "serviceaccounts",
    "resourcequotas",
    "limitranges",
    "deployments",
    "replicasets",
    "statefulsets",
    "daemonsets",
    "controllerrevisions",
    "jobs",
    "cronjobs",
    "horizontalpodautoscalers",
    "poddisruptionbudgets",
    "ingresses",
    "networkpolicies",
    "endpointslices",
    "storageclasses",
    "rollouts",
    "analysisruns",
    "analysistemplates",
    "customresourcedefinitions",
];

const RULES: [AccessRule; 3] = [
    AccessRule { user: ADMIN, verbs: &["*"], groups: &["*"], resources: &["*"] },
    AccessRule { user: VIEWER, verbs: &["get", "list", "watch"], groups: &["*"], resources: &VIEWED },
    // Everybody may ask what he may do.
    AccessRule {
        user: "*",
        verbs: &["create"],
        groups: &["authorization.k8s.io"],
        resources: &["selfsubjectaccessreviews", "selfsubjectrulesreviews"],
    },
];

impl User {
    /// The bearer, or whom the bearer speaks for by the impersonation headers.
    pub(crate) fn of(headers: &HeaderMap) -> User {
        let text = |name: &str| headers.get(name).and_then(|value| value.to_str().ok()).map(str::to_owned);
        let groups = headers.get_all("impersonate-group").iter().filter_map(|value| value.to_str().ok());
        let mut groups: Vec<String> = groups.map(str::to_owned).collect();
        groups.push("system:authenticated".to_owned());
        let name = text("impersonate-user");
        if name.is_none() {
            groups.insert(0, "system:masters".to_owned());
        }
        User { name: name.unwrap_or_else(|| ADMIN.to_owned()), groups }
    }

    /// The rules that speak about this user.
    pub(crate) fn rules(&self) -> impl Iterator<Item = &'static AccessRule> {
        let masters = self.groups.iter().any(|group| group == "system:masters");
        let name = self.name.clone();
        RULES.iter().filter(move |rule| rule.user == "*" || rule.user == name || (masters && rule.user == ADMIN))
    }

    pub(crate) fn may(&self, wish: &AccessRequest<'_>) -> bool {
        let resource = if wish.subresource.is_empty() {
            wish.resource.to_owned()
        } else {
            format!("{}/{}", wish.resource, wish.subresource)
        };
        let is_in = |list: &[&str], one: &str| list.iter().any(|known| *known == "*" || *known == one);
        self.rules().any(|rule| {
            is_in(rule.verbs, wish.verb) && is_in(rule.groups, wish.group) && is_in(rule.resources, &resource)
        })
    }

    /// Why not, in the server's words.
    pub(crate) fn refusal(&self, wish: &AccessRequest<'_>, namespace: &str) -> String {
        let resource = if wish.subresource.is_empty() {
            wish.resource.to_owned()
        } else {
            format!("{}/{}", wish.resource, wish.subresource)
        };
        let place = if namespace.is_empty() {
            "at the cluster scope".to_owned()
        } else {
            format!("in the namespace {namespace:?}")
        };
        format!("User {:?} cannot {} resource {resource:?} in API group {:?} {place}", self.name, wish.verb, wish.group)
    }
}
