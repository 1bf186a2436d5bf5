//! The clusters of one tenant. A tool holds these and no others, and reaches one by its permit.

use crate::client::cluster::Cluster;
use crate::client::config::{BadCluster, ClusterConfig};
use crate::client::connection::ClusterConnection;
use crate::client::mask::Masker;
use crate::codes;
use domain::{Failure, Tenant};
use policy::Permit;
use std::sync::Arc;
use target::{ConnectionLoad, NameTaken, NamedTarget, TargetWords, Targets};

/// The clusters of one tenant. Cheap to clone.
#[derive(Clone)]
pub struct Clusters(Targets<ClusterConnection>);

impl NamedTarget for ClusterConnection {
    type Config = ClusterConfig;
    const WORDS: TargetWords = TargetWords {
        one: "cluster",
        several: "clusters",
        argument: "cluster",
        required: codes::CLUSTER_REQUIRED,
        unknown: codes::CLUSTER_UNKNOWN,
    };

    fn config(&self) -> &ClusterConfig {
        &self.config
    }

    fn name(config: &ClusterConfig) -> &str {
        &config.name
    }

    fn is_default(config: &ClusterConfig) -> bool {
        config.default
    }
}

impl Clusters {
    /// None, for whoever only looks at tools.
    pub fn none() -> Clusters {
        Clusters(Targets::none())
    }

    /// The clusters of a tenant, all at once. Those that stay as they were `before` keep their connections. The key makes
    /// the marks that stand for secrets; each tenant's are made with one of its own.
    pub fn build(
        tenant: &Tenant,
        key: &[u8; 32],
        configs: Vec<ClusterConfig>,
        before: Option<&Clusters>,
    ) -> Result<Clusters, BadCluster> {
        configs.iter().try_for_each(ClusterConfig::check)?;
        let make = |config: ClusterConfig| {
            let masker = Masker::new(key, tenant, &config.secret_kinds);
            ClusterConnection::new(tenant.clone(), config, masker)
        };
        let targets = Targets::build(tenant, configs, before.map(|before| &before.0), make);
        let taken = |NameTaken(name)| BadCluster { name, what: "there are two of that name" };
        targets.map(Clusters).map_err(taken)
    }

    /// The name of the one that a call means which named this one, or none.
    pub fn meant(&self, named: Option<&str>) -> Option<String> {
        self.0.meant(named)
    }

    pub(in crate::client) fn connection(&self, name: &str) -> Result<&Arc<ClusterConnection>, Failure> {
        self.0.find(name)
    }

    /// How hard each is pressed at the moment.
    pub fn loads(&self) -> Vec<ConnectionLoad> {
        self.0.all().iter().map(|connection| connection.pressure()).collect()
    }

    /// How many there are.
    pub fn len(&self) -> usize {
        self.0.all().len()
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Their names, in the order of the tenant's configuration.
    pub fn names(&self) -> Vec<&str> {
        self.0.names()
    }

    /// The cluster a call means. Where there are several, a read may leave the name out if the tenant set a default; a
    /// write never may.
    pub fn of<'p>(&self, permit: &'p Permit, name: Option<&str>) -> Result<Cluster<'p>, Failure> {
        Ok(Cluster::new(self.0.choose(permit, name)?, permit))
    }
}

impl std::fmt::Debug for Clusters {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_tuple("Clusters").field(&self.names()).finish()
    }
}
