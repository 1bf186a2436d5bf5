//! All clusters of all tenants in this process. A tenant's are reached by its permit and in no other way.

use crate::cluster::Cluster;
use crate::config::{BadCluster, ClusterConfig};
use crate::line::Line;
use crate::mask::Masker;
use domain::{Code, Effect, Failure, Tenant, outcome::near};
use policy::Permit;
use std::collections::HashMap;
use std::sync::{Arc, PoisonError, RwLock};

/// All clusters of all tenants. Cheap to clone.
#[derive(Clone)]
pub struct Clusters {
    key: Arc<[u8; 32]>,
    tenants: Arc<RwLock<HashMap<Tenant, Lines>>>,
}

/// The clusters of one tenant, in the order of its configuration.
type Lines = Arc<[Arc<Line>]>;

impl Clusters {
    /// No clusters yet. The key makes the marks that stand for secrets; each tenant's are made with one of its own.
    pub fn new(key: [u8; 32]) -> Clusters {
        Clusters { key: Arc::new(key), tenants: Arc::default() }
    }

    /// Sets the clusters of a tenant, all at once. Those that stay as they were keep their connections.
    pub fn replace(&self, tenant: &Tenant, clusters: Vec<ClusterConfig>) -> Result<(), BadCluster> {
        for (n, config) in clusters.iter().enumerate() {
            config.check()?;
            if clusters[..n].iter().any(|other| other.name == config.name) {
                return Err(BadCluster { name: config.name.clone(), what: "there are two of that name" });
            }
        }
        let mut tenants = self.tenants.write().unwrap_or_else(PoisonError::into_inner);
        let before = tenants.remove(tenant);
        let kept = |config: &ClusterConfig| before.iter().flat_map(|l| l.iter()).find(|l| l.config == *config).cloned();
        let lines: Lines = clusters
            .into_iter()
            .map(|config| {
                kept(&config).unwrap_or_else(|| {
                    let masker = Masker::new(&self.key, tenant, &config.secret_kinds);
                    Arc::new(Line::new(tenant.clone(), config, masker))
                })
            })
            .collect();
        if !lines.is_empty() {
            tenants.insert(tenant.clone(), lines);
        }
        Ok(())
    }

    /// The names of a tenant's clusters, in the order of its configuration.
    pub fn names_of(&self, tenant: &Tenant) -> Vec<String> {
        self.lines(tenant).iter().map(|line| line.config.name.clone()).collect()
    }

    /// One cluster of the permit's tenant. Where there are several, a read may leave the name out if the tenant set a
    /// default; a write never may, so that nothing is changed in a place nobody named.
    pub fn of<'p>(&self, permit: &'p Permit, name: Option<&str>) -> Result<Cluster<'p>, Failure> {
        let lines = self.lines(permit.tenant());
        let default = || lines.iter().find(|line| line.config.default && permit.effect() == Effect::Read);
        let line = match (name, &*lines) {
            (_, []) => {
                let failure = Failure::new(Code::ToolsetNotConfigured, "the tenant has no cluster");
                return Err(failure.next("ask an admin of the tenant to configure one"));
            }
            (None, [only]) => only,
            (None, _) => default().ok_or_else(|| required(&lines))?,
            (Some(wanted), _) => {
                lines.iter().find(|line| line.config.name == wanted).ok_or_else(|| unknown(wanted, &lines))?
            }
        };
        Ok(Cluster::new(Arc::clone(line), permit))
    }

    fn lines(&self, tenant: &Tenant) -> Lines {
        let tenants = self.tenants.read().unwrap_or_else(PoisonError::into_inner);
        tenants.get(tenant).cloned().unwrap_or_else(|| Arc::from([]))
    }
}

impl std::fmt::Debug for Clusters {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let tenants = self.tenants.read().unwrap_or_else(PoisonError::into_inner);
        write!(f, "Clusters of {} tenants", tenants.len())
    }
}

fn required(lines: &Lines) -> Failure {
    let failure = Failure::new(Code::ClusterRequired, "the tenant has several clusters; name one");
    failure.next(format!("set cluster to one of: {}", names(lines).join(", ")))
}

fn unknown(wanted: &str, lines: &Lines) -> Failure {
    Failure::new(Code::ClusterUnknown, "the tenant has no cluster of that name")
        .next(format!("set cluster to one of: {}", names(lines).join(", ")))
        .did_you_mean(near(wanted, names(lines)))
}

fn names(lines: &Lines) -> Vec<&str> {
    lines.iter().map(|line| line.config.name.as_str()).collect()
}
