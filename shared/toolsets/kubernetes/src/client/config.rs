//! What a tenant's cluster is: a name, where its credential comes from, and how far it may be used.

use crate::client::bounds::WorkloadBounds;
use crate::client::grammar;
use crate::client::reach::ClusterReach;
pub use redact::{KeptSecret, SecretText};
use std::fmt;
use std::net::SocketAddr;
use std::path::PathBuf;

/// One cluster of one tenant.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ClusterConfig {
    /// What callers call it: a DNS label.
    pub name: String,
    /// Where it is and who we are there.
    pub source: ClusterEndpoint,
    /// The namespaces that may be used; `None` leaves it to the cluster's own rules.
    pub namespaces: Option<Vec<NamespacePattern>>,
    /// Where a call without a namespace goes.
    pub default_namespace: String,
    /// Whom every request acts as, instead of the credential's own name.
    pub impersonate: Option<Impersonation>,
    /// Namespaces in which nothing is changed, besides the built-in ones.
    pub protected: Vec<NamespacePattern>,
    /// What workloads there may be.
    pub bounds: WorkloadBounds,
    /// Kinds that are masked like Secrets, besides Secrets.
    pub secret_kinds: Vec<String>,
    /// Whether a read that names no cluster means this one, where there are several.
    pub default: bool,
    /// Whether this is the sandbox; results say so.
    pub simulated: bool,
}

impl ClusterConfig {
    /// A cluster with nothing set but its name and source.
    pub fn new(name: impl Into<String>, source: ClusterEndpoint) -> ClusterConfig {
        ClusterConfig {
            name: name.into(),
            source,
            namespaces: None,
            default_namespace: "default".to_owned(),
            impersonate: None,
            protected: Vec::new(),
            bounds: WorkloadBounds::default(),
            secret_kinds: Vec::new(),
            default: false,
            simulated: false,
        }
    }

    /// Whether the configuration can mean something. Called by [`Clusters::build`](crate::client::Clusters::build).
    pub(in crate::client) fn check(&self) -> Result<(), BadCluster> {
        let bad = |what| Err(BadCluster { name: self.name.clone(), what });
        if !grammar::is_label(&self.name) {
            return bad("a cluster is named by a DNS label");
        }
        if !grammar::is_label(&self.default_namespace) {
            return bad("the default namespace is no DNS label");
        }
        if self.namespaces.as_ref().is_some_and(|list| !list.iter().any(|p| p.matches(&self.default_namespace))) {
            return bad("the default namespace is outside the allowed namespaces");
        }
        if self.impersonate.as_ref().is_some_and(|who| !who.is_header_safe()) {
            return bad("the impersonated user or group is empty or holds control characters");
        }
        Ok(())
    }

    /// Whether the tenant may use the namespace here.
    pub(in crate::client) fn allows(&self, namespace: &str) -> bool {
        self.namespaces.as_ref().is_none_or(|list| list.iter().any(|pattern| pattern.matches(namespace)))
    }

    /// Whether nothing may be changed in the namespace, whoever signs.
    pub(in crate::client) fn protects(&self, namespace: &str) -> bool {
        PROTECTED.contains(&namespace) || self.protected.iter().any(|pattern| pattern.matches(namespace))
    }
}

/// The cluster's own namespaces: nothing is changed in them through this service.
pub const PROTECTED: [&str; 3] = ["kube-system", "kube-public", "kube-node-lease"];

/// Where a cluster is and who we are there.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ClusterEndpoint {
    /// A kubeconfig file of the operator. It may name certificate and token files; it is read again when it changes.
    Kubeconfig(PathBuf),
    /// A kubeconfig file somebody else wrote, such as a tenant's secret: inline data and tokens only, since it is
    /// untrusted. It is read again when it changes.
    SecretFile {
        /// Where it lies.
        path: PathBuf,
        /// Where it may lead.
        reach: ClusterReach,
    },
    /// A kubeconfig that is kept as a secret, as untrusted as one in a file: the first of these that is there. It is asked
    /// for again now and then, and one that was taken away is used no longer.
    Kept(Vec<KeptKubeconfig>),
    /// A kubeconfig somebody wrote into a tenant's configuration: inline data and tokens only, since it is untrusted.
    KubeconfigText(SecretText),
    /// The cluster this process runs in, by the pod's own service account.
    InCluster,
    /// Plain HTTP to this very machine: the sandbox.
    Loopback(SocketAddr),
}

/// A kubeconfig that is kept as a secret.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct KeptKubeconfig {
    /// What asks for it.
    pub secret: KeptSecret,
    /// Where it may lead.
    pub reach: ClusterReach,
}

/// Whom requests act as. Comes from configuration, never from a call.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Impersonation {
    /// The user.
    pub user: String,
    /// Their groups.
    pub groups: Vec<String>,
}

impl Impersonation {
    fn is_header_safe(&self) -> bool {
        std::iter::once(&self.user)
            .chain(&self.groups)
            .all(|text| !text.is_empty() && text.bytes().all(|b| (0x20..0x7f).contains(&b)))
    }
}

/// A namespace by name, or all that begin alike (`team-*`).
#[derive(Clone, PartialEq, Eq)]
pub struct NamespacePattern {
    text: String,
    prefix: bool,
}

/// The text is no namespace pattern.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("a namespace pattern is a DNS label, or the beginning of one followed by '*'")]
pub struct NotANamespacePattern;

impl NamespacePattern {
    /// Reads a pattern. `*` alone is none: leave the list out instead.
    pub fn parse(text: &str) -> Result<NamespacePattern, NotANamespacePattern> {
        let (stem, prefix) = text.strip_suffix('*').map_or((text, false), |stem| (stem, true));
        // The stem of a prefix may end in a dash; any label that begins with it must still be possible.
        let fits =
            if prefix { grammar::is_label(&format!("{stem}x")) && !stem.is_empty() } else { grammar::is_label(stem) };
        if fits { Ok(NamespacePattern { text: stem.to_owned(), prefix }) } else { Err(NotANamespacePattern) }
    }

    /// Whether the namespace is meant.
    pub fn matches(&self, namespace: &str) -> bool {
        if self.prefix { namespace.starts_with(&self.text) } else { namespace == self.text }
    }

    /// The one namespace it names, unless it is a prefix.
    pub(in crate::client) fn exact(&self) -> Option<&str> {
        (!self.prefix).then_some(self.text.as_str())
    }
}

impl fmt::Display for NamespacePattern {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}{}", self.text, if self.prefix { "*" } else { "" })
    }
}

impl fmt::Debug for NamespacePattern {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

/// A configuration that cannot mean anything.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("cluster `{name}`: {what}")]
pub struct BadCluster {
    /// The cluster.
    pub name: String,
    /// What is wrong with it.
    pub what: &'static str,
}
