//! The section `clusters` of a tenant's file.

mod bounds;
mod check;

use schemars::JsonSchema;
use std::ops::RangeInclusive;
use tenancy::{Place, SecretUse, SecretValue, Section};

/// The key of the section.
pub const KEY: &str = "clusters";
/// The key of the images that may be run.
pub const IMAGES: &str = "images";
/// The key of the most replicas an object may have.
pub const MOST_REPLICAS: &str = "most_replicas";
/// What the most replicas may be; nobody runs more pods of one kind.
const REPLICAS: RangeInclusive<u32> = 1..=100_000;
/// The keys of a cluster.
const CLUSTER: [&str; 9] = [
    "name",
    "kubeconfig",
    "in_cluster",
    "sandbox",
    "namespaces",
    "default_namespace",
    "impersonate",
    "protected",
    "default",
];

/// One Kubernetes cluster of a tenant.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ClusterEntry {
    /// What callers call it.
    pub name: String,
    /// Where it is and who we are there.
    pub source: ClusterSource,
    /// The namespaces that may be used, by name or by beginning (`team-*`); `None` leaves it to the cluster's own rules.
    pub namespaces: Option<Vec<String>>,
    /// Where a call without a namespace goes.
    pub default_namespace: String,
    /// Whom every request acts as, instead of the credential's own name.
    pub impersonate: Option<ImpersonateConfig>,
    /// Namespaces in which nothing is changed, besides the cluster's own.
    pub protected: Vec<String>,
    /// Whether a call that only reads and names no cluster means this one.
    pub default: bool,
}

/// Where a cluster is and who we are there.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ClusterSource {
    /// A kubeconfig that is kept as a secret of this name.
    Secret(String),
    /// The cluster this service runs in, by its own service account.
    InCluster,
    /// A simulated cluster inside this process.
    Sandbox,
}

/// Whom requests act as.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ImpersonateConfig {
    /// The user.
    pub user: String,
    /// Their groups.
    pub groups: Vec<String>,
}

impl ClusterEntry {
    /// How its kubeconfig is used, if it has one. Where that leads is written in the kubeconfig itself.
    pub fn secret_use(&self) -> Option<SecretUse> {
        match &self.source {
            ClusterSource::Secret(name) => {
                Some(SecretUse { section: KEY, secret: name.clone(), place: "kubeconfig".to_owned() })
            }
            ClusterSource::InCluster | ClusterSource::Sandbox => None,
        }
    }
}

/// The section. It is read as a `Vec<ClusterEntry>`, and a tenant without clusters does not have it.
pub fn section() -> Section {
    let section = Section::new::<ClustersPart, _>(KEY, Place::Root, check::clusters).after("default_toolsets");
    section.bounded(bounds::exceeding).with_secret_uses(|values| {
        let clusters = values.get::<Vec<ClusterEntry>>(KEY)?.into_iter().flatten();
        Ok(clusters.filter_map(ClusterEntry::secret_use).collect())
    })
}

/// The section `policy.images`. It is read as a `Vec<ImagePattern>`.
pub fn images() -> Section {
    Section::new::<BoundsPart, _>(IMAGES, Place::Policy, check::images).bounded(bounds::exceeding_images)
}

/// The section `policy.most_replicas`. It is read as a `u32`.
pub fn most_replicas() -> Section {
    let section = Section::new::<BoundsPart, _>(MOST_REPLICAS, Place::Policy, |reader, node| {
        reader.values.number(node, MOST_REPLICAS, &REPLICAS)
    });
    section.bounded(bounds::exceeding_replicas)
}

/// The section as it stands in the file.
#[derive(JsonSchema)]
#[expect(dead_code, reason = "only its shape is used")]
struct ClustersPart {
    /// The Kubernetes clusters the tenant acts on.
    #[schemars(default)]
    clusters: Vec<ClusterPart>,
}

/// What workloads may be, as it stands under `policy`.
#[derive(JsonSchema)]
#[expect(dead_code, reason = "only its shape is used")]
struct BoundsPart {
    /// The images that workloads may run, by repository or by path: `ghcr.io/acme/*`. Left out: all.
    images: Vec<String>,
    /// The most replicas that one workload may have. Left out: any number.
    #[schemars(range(min = *REPLICAS.start(), max = *REPLICAS.end()))]
    most_replicas: u32,
}

/// One Kubernetes cluster; exactly one of `kubeconfig`, `in_cluster` and `sandbox` says where it is.
#[derive(JsonSchema)]
#[schemars(deny_unknown_fields)]
#[expect(dead_code, reason = "only its shape is used")]
struct ClusterPart {
    /// What callers call it.
    #[schemars(regex(pattern = r"^[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?$"))]
    name: String,
    /// The kubeconfig, kept as a secret.
    #[schemars(default, with = "SecretValue")]
    kubeconfig: Option<SecretValue>,
    /// The cluster this service runs in.
    #[schemars(default, extend("const" = true))]
    in_cluster: bool,
    /// A simulated cluster inside the service.
    #[schemars(default, extend("const" = true))]
    sandbox: bool,
    /// Namespaces that may be used, by name or by beginning (`team-*`); left out: what the credential allows.
    #[schemars(default)]
    namespaces: Vec<String>,
    /// Where a call without a namespace goes.
    #[schemars(default)]
    default_namespace: String,
    /// Whom every request acts as.
    #[schemars(default, with = "ImpersonatePart")]
    impersonate: Option<ImpersonatePart>,
    /// Namespaces in which nothing is changed, besides the cluster's own.
    #[schemars(default)]
    protected: Vec<String>,
    /// Whether a call that only reads and names no cluster means this one.
    #[schemars(default, extend("const" = true))]
    default: bool,
}

/// Whom requests act as.
#[derive(JsonSchema)]
#[schemars(deny_unknown_fields)]
#[expect(dead_code, reason = "only its shape is used")]
struct ImpersonatePart {
    user: String,
    #[schemars(default)]
    groups: Vec<String>,
}

#[cfg(test)]
mod tests;
