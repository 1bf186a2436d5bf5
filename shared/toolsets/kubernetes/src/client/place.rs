//! Where: the namespace or namespaces a call is about, judged by the tenant's list before anything is sent.
//!
//! Rules for a tenant with a list of namespaces:
//! - a namespace outside of it is `namespace_denied`, whether it exists or not;
//! - `*` becomes the allowed namespaces, each asked for by itself, never the whole cluster;
//! - of the cluster-wide kinds, a Namespace object is within reach exactly if its name is on the list, and a list of
//!   Namespaces holds no others; Nodes, StorageClasses and the other kinds without a namespace may be read;
//! - nothing without a namespace may be changed, since whatever it is, it is not the tenant's alone.

use crate::client::cluster::Cluster;
use crate::client::config::ClusterConfig;
use crate::client::grammar;
use crate::client::kinds::Kind;
use domain::{Code, Failure, outcome::near};

/// Whether a call may be about all namespaces at once.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Wildcard {
    /// `*` is understood.
    Allowed,
    /// One namespace only.
    Refused,
}

/// A kind and where its objects are looked for. Only [`Cluster::place`] makes one, so it was judged.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct KindScope {
    pub(in crate::client) kind: Kind,
    pub(in crate::client) span: NamespaceSpan,
}

/// How far a place reaches.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum NamespaceSpan {
    /// The kind has no namespace.
    Cluster,
    /// The kind has none, but only these objects of it are within reach: Namespaces under a list.
    Named(Vec<String>),
    /// One namespace.
    One(String),
    /// These namespaces, each asked for by itself.
    Each(Vec<String>),
    /// All of them; only for a tenant without a list.
    All,
}

impl KindScope {
    /// The kind.
    pub fn kind(&self) -> &Kind {
        &self.kind
    }

    /// How far it reaches.
    pub fn span(&self) -> &NamespaceSpan {
        &self.span
    }

    /// The one namespace, if it is one.
    pub fn namespace(&self) -> Option<&str> {
        match &self.span {
            NamespaceSpan::One(namespace) => Some(namespace),
            NamespaceSpan::Cluster | NamespaceSpan::Named(_) | NamespaceSpan::Each(_) | NamespaceSpan::All => None,
        }
    }

    /// One object here, by its name.
    pub fn object(&self, name: &str) -> Result<ResourceRef, Failure> {
        grammar::object_name(&self.kind, name)?;
        let namespace = match &self.span {
            NamespaceSpan::One(namespace) => Some(namespace.clone()),
            NamespaceSpan::Cluster => None,
            NamespaceSpan::Named(names) if names.iter().any(|known| known == name) => None,
            NamespaceSpan::Named(names) => return Err(denied(name, names)),
            NamespaceSpan::Each(_) | NamespaceSpan::All => {
                let failure = Failure::new(Code::InvalidArgument, "one object is in one namespace, not in '*'");
                return Err(failure.next("name the namespace"));
            }
        };
        Ok(ResourceRef { kind: self.kind.clone(), namespace, name: name.to_owned() })
    }
}

/// One object. Only [`KindScope::object`] makes one, so kind, namespace and name were judged.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ResourceRef {
    pub(in crate::client) kind: Kind,
    pub(in crate::client) namespace: Option<String>,
    pub(in crate::client) name: String,
}

impl ResourceRef {
    /// The kind.
    pub fn kind(&self) -> &Kind {
        &self.kind
    }

    /// The namespace, if the kind has one.
    pub fn namespace(&self) -> Option<&str> {
        self.namespace.as_deref()
    }

    /// The name.
    pub fn name(&self) -> &str {
        &self.name
    }
}

impl std::fmt::Display for ResourceRef {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match &self.namespace {
            Some(namespace) => write!(f, "{} {namespace}/{}", self.kind.kind(), self.name),
            None => write!(f, "{} {}", self.kind.kind(), self.name),
        }
    }
}

impl Cluster<'_> {
    /// Judges where a call about this kind goes.
    pub async fn place(&self, kind: &Kind, namespace: Option<&str>, wildcard: Wildcard) -> Result<KindScope, Failure> {
        let config = self.config();
        let span = match (kind.namespaced(), namespace) {
            (false, Some(_)) => return Err(no_namespace(kind)),
            (false, None) if kind.is("", "Namespace") && config.namespaces.is_some() => {
                NamespaceSpan::Named(self.allowed_namespaces().await?)
            }
            (false, None) => NamespaceSpan::Cluster,
            (true, Some("*")) => match (wildcard, &config.namespaces) {
                (Wildcard::Refused, _) => {
                    let failure = Failure::new(Code::InvalidArgument, "this call is about one namespace, not '*'");
                    return Err(failure.next("name the namespace"));
                }
                (Wildcard::Allowed, None) => NamespaceSpan::All,
                (Wildcard::Allowed, Some(_)) => NamespaceSpan::Each(self.allowed_namespaces().await?),
            },
            (true, one) => NamespaceSpan::One(judged(config, one.unwrap_or(&config.default_namespace))?),
        };
        Ok(KindScope { kind: kind.clone(), span })
    }

    /// Judges one namespace by name; without one, the default.
    pub fn namespace(&self, namespace: Option<&str>) -> Result<String, Failure> {
        let config = self.config();
        judged(config, namespace.unwrap_or(&config.default_namespace))
    }

    /// The namespaces a tenant with a list may use. Prefixes are filled in from the cluster, if it lets us look.
    async fn allowed_namespaces(&self) -> Result<Vec<String>, Failure> {
        let patterns = self.config().namespaces.as_deref().unwrap_or_default();
        let mut names: Vec<String> = patterns.iter().filter_map(|p| p.exact().map(str::to_owned)).collect();
        if patterns.iter().any(|pattern| pattern.exact().is_none()) {
            // A credential that may not list namespaces still reaches those named exactly.
            let known = match self.namespace_names().await {
                Ok(known) => known,
                Err(failure) if failure.code == target::codes::FORBIDDEN => Vec::new(),
                Err(failure) => return Err(failure),
            };
            names.extend(known.into_iter().filter(|name| self.config().allows(name)));
        }
        names.sort_unstable();
        names.dedup();
        Ok(names)
    }
}

fn judged(config: &ClusterConfig, namespace: &str) -> Result<String, Failure> {
    if !grammar::is_label(namespace) {
        let failure = Failure::new(Code::InvalidArgument, "that is no name of a namespace");
        return Err(failure.next("give a DNS label: 1 to 63 of a-z, 0-9 and '-'"));
    }
    if config.allows(namespace) {
        return Ok(namespace.to_owned());
    }
    let known: Vec<String> = config.namespaces.iter().flatten().map(ToString::to_string).collect();
    Err(denied(namespace, &known))
}

fn denied(namespace: &str, allowed: &[String]) -> Failure {
    Failure::new(crate::codes::NAMESPACE_DENIED, format!("namespace {namespace} is not one the tenant may use here"))
        .next(format!("use one of: {}", allowed.iter().take(20).map(String::as_str).collect::<Vec<_>>().join(", ")))
        .did_you_mean(near(namespace, allowed.iter().map(String::as_str)))
}

fn no_namespace(kind: &Kind) -> Failure {
    Failure::new(Code::InvalidArgument, format!("a {} has no namespace", kind.kind())).next("leave namespace out")
}
