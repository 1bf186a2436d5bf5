//! Texts that were set over HTTP: checked like a file, and not beyond what the tenant's file grants.
//!
//! A file is written by the operator, a text by the tenant's own admin. So what is the operator's to give stays with the
//! file: the service's own account in its cluster, and how much of this process a tenant may use.

use super::{TenantRegistry, known};
use domain::Tenant;
use std::collections::BTreeSet;
use tenancy::{
    ClusterEntry, ClusterSource, ConfiguredTenant, JenkinsSource, ParameterValue, Problem, ServerCatalog, TenantConfig,
    TenantLimits,
};

/// How problems name such a text.
const LABEL: &str = "config";

impl TenantRegistry {
    /// Checks a text for a tenant as if it were to be set. Parses and compiles, so it is not for a task of the runtime.
    pub fn check(&self, tenant: &Tenant, text: &str) -> Result<TenantConfig, Vec<Problem>> {
        let page =
            self.file_of(tenant).ok_or_else(|| vec![problem(text, "tenant", "unknown_tenant", NO_FILE, None)])?;
        let (curated, _) = ServerCatalog::read(&self.parts.curated);
        read(self, &curated, &page, text)
    }

    /// Whether a text can be set at all.
    pub fn over_http(&self) -> bool {
        self.parts.over_http
    }
}

const NO_FILE: &str = "no file names this tenant";

/// Checks a text for the tenant of a file.
pub(super) fn read(
    tenants: &TenantRegistry,
    curated: &ServerCatalog,
    page: &ConfiguredTenant,
    text: &str,
) -> Result<TenantConfig, Vec<Problem>> {
    let parsed =
        known::with(&tenants.parts.toolsets, &tenants.parts.reach, curated, |known| tenancy::parse(LABEL, text, known));
    let own = &page.config.tenant;
    match parsed {
        Ok(config) => {
            let mut problems = beyond(&page.config, &config, text);
            if config.tenant != *own {
                problems.insert(0, foreign(text, own));
            }
            if problems.is_empty() { Ok(config) } else { Err(problems) }
        }
        Err(mut problems) => {
            // All mistakes at once, also while there is nothing that could be asked for its tenant.
            if seems_foreign(text, own) {
                problems.insert(0, foreign(text, own));
            }
            Err(problems)
        }
    }
}

/// What stands in the store in the place of a text and is none.
pub(super) fn unreadable() -> Problem {
    problem("", "", "unreadable", "what the store holds is no configuration", Some("set or remove it".into()))
}

/// What stands in the store in the place of a text and was not written by this service.
pub(super) fn not_authentic(why: &str) -> Problem {
    let message = format!("what the store holds was not written by this service: {why}");
    problem("", "", "not_authentic", message, Some("find out who writes into the store, then set it again".into()))
}

/// What a text takes that the tenant's file does not give.
fn beyond(file: &TenantConfig, said: &TenantConfig, text: &str) -> Vec<Problem> {
    let ours = |cluster: &&ClusterEntry| cluster.source == ClusterSource::InCluster;
    let alike =
        |one: &ClusterEntry, other: &ClusterEntry| ClusterEntry { default: other.default, ..one.clone() } == *other;
    let given = |cluster: &&ClusterEntry| !file.clusters.iter().any(|known| alike(known, cluster));
    let clusters = said.clusters.iter().filter(ours).filter(given).map(|cluster| {
        let message = format!("the cluster `{}` is used by the service's own account", cluster.name);
        let hint = "write it as the tenant's file does, or give it a kubeconfig";
        problem(text, "in_cluster", "operator_only", message, Some(hint.into()))
    });
    let TenantLimits { calls_in_flight, calls_per_minute, result_bytes } = said.limits;
    let limits = [
        ("calls_in_flight", calls_in_flight, file.limits.calls_in_flight),
        ("calls_per_minute", calls_per_minute, file.limits.calls_per_minute),
        ("result_bytes", result_bytes, file.limits.result_bytes),
    ];
    let limits = limits.into_iter().filter(|(_, said, given)| said > given).map(|(key, _, given)| {
        let message = format!("`{key}` is more than the {given} of the tenant's file");
        problem(text, key, "operator_only", message, Some(format!("at most {given}, or ask the operator")))
    });
    clusters.chain(limits).collect()
}

fn foreign(text: &str, own: &Tenant) -> Problem {
    let hint = format!("write `tenant: {own}`");
    problem(text, "tenant", "foreign_tenant", "the text speaks of another tenant than the token", Some(hint))
}

/// Whether a text that cannot be read names another tenant, as far as can be seen.
fn seems_foreign(text: &str, own: &Tenant) -> bool {
    let told = text.lines().find_map(|line| line.strip_prefix("tenant:"));
    let told = told.map(|rest| rest.split('#').next().unwrap_or_default().trim().trim_matches(['"', '\'']));
    told.is_some_and(|told| Tenant::parse(told).is_ok_and(|told| told != *own))
}

/// A problem at the first place where a key stands.
fn problem(text: &str, key: &str, code: &'static str, message: impl Into<String>, hint: Option<String>) -> Problem {
    let at = |(number, line): (usize, &str)| {
        let column = line.find(key).filter(|start| line[start + key.len()..].trim_start().starts_with(':'))?;
        Some((number + 1, line[..column].chars().count() + 1))
    };
    let (line, column) = text.lines().enumerate().find_map(at).unwrap_or((1, 1));
    let small = |number: usize| u32::try_from(number).unwrap_or(u32::MAX);
    let (line, column) = (small(line), small(column));
    Problem { file: LABEL.to_owned(), line, column, code, message: message.into(), hint }
}

/// The secrets a configuration names.
pub fn secrets_of(config: &TenantConfig) -> BTreeSet<&str> {
    let clusters = config.clusters.iter().filter_map(|cluster| match &cluster.source {
        ClusterSource::Secret(name) => Some(name.as_str()),
        ClusterSource::InCluster | ClusterSource::Sandbox => None,
    });
    let jenkins = config.jenkins.iter().flat_map(|server| match &server.source {
        JenkinsSource::Address { token, ca, .. } => [Some(token.as_str()), ca.as_deref()],
        JenkinsSource::Sandbox => [None, None],
    });
    let charts = config.repositories.iter().filter_map(|repository| repository.credential.as_deref());
    let servers = config.servers.iter().flat_map(|server| server.params.values());
    let agents = config.agents.iter().flat_map(|agent| agent.params.values().flat_map(|params| params.values()));
    let flows = config.workflows.iter().flat_map(|flow| flow.params.values().flat_map(|params| params.values()));
    let upstream = servers.chain(agents).chain(flows).filter_map(|given| match given {
        ParameterValue::Secret(name) => Some(name.as_str()),
        ParameterValue::Text(_) => None,
    });
    clusters.chain(jenkins.flatten()).chain(charts).chain(upstream).collect()
}

#[cfg(test)]
mod tests;
