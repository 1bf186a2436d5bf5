//! Configurations set over HTTP: checked like a file, and limited to what the tenant's file grants.
//!
//! The operator writes the file, the tenant's admin writes the text. Only the file can grant what belongs to the operator:
//! the service's own account in its cluster, and how much of this process a tenant may use.

use super::{TenantRegistry, known_names};
use domain::Tenant;
use external::ServerCatalog;
use kubernetes::section::{self, ClusterEntry};
use tenancy::{ConfiguredTenant, Problem, SectionTypeError, TenantConfig, TenantLimits};

/// How problems name such a text.
pub(super) const LABEL: &str = "config";

impl TenantRegistry {
    /// Checks a text for a tenant as if it were set. Parses and compiles, so it must not run on a task of the runtime.
    pub fn check(&self, tenant: &Tenant, text: &str) -> Result<TenantConfig, Vec<Problem>> {
        let file =
            self.file_of(tenant).ok_or_else(|| vec![problem(text, "tenant", "unknown_tenant", NO_FILE, None)])?;
        let (curated, _) = ServerCatalog::read(&self.parts.curated);
        read(self, &curated, &file, text)
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
    file: &ConfiguredTenant,
    text: &str,
) -> Result<TenantConfig, Vec<Problem>> {
    let parsed = known_names::with_known_names(&tenants.parts.toolsets, &tenants.parts.reach, curated, |names| {
        tenancy::parse(LABEL, text, names)
    });
    let own = &file.config.tenant;
    match parsed {
        Ok(config) => {
            let mut problems = not_granted(&file.config, &config, text);
            if config.tenant != *own {
                problems.insert(0, foreign(text, own));
            }
            if problems.is_empty() { Ok(config) } else { Err(problems) }
        }
        Err(mut problems) => {
            // Reported together with the other mistakes, although a text that cannot be parsed has no tenant yet.
            if seems_foreign(text, own) {
                problems.insert(0, foreign(text, own));
            }
            Err(problems)
        }
    }
}

/// What the store has in the place of a configuration and is none.
pub(super) fn unreadable() -> Problem {
    problem("", "", "unreadable", "the stored value is not a configuration", Some("set or remove it".into()))
}

/// What the store has in the place of a configuration and this service did not write.
pub(super) fn not_authentic(why: &str) -> Problem {
    let message = format!("this service did not write the stored configuration: {why}");
    problem("", "", "not_authentic", message, Some("find out who writes to the store, then set it again".into()))
}

/// What a text takes that the tenant's file does not grant.
fn not_granted(file: &TenantConfig, config: &TenantConfig, text: &str) -> Vec<Problem> {
    let clusters = match (clusters(file), clusters(config)) {
        (Ok(granted), Ok(asked_for)) => {
            let own = section::own_account(granted, asked_for).map(|cluster| {
                let message = format!("the cluster `{}` is used by the service's own account", cluster.name);
                let hint = "write it as the tenant's file does, or give it a kubeconfig";
                problem(text, "in_cluster", "operator_only", message, Some(hint.into()))
            });
            own.collect()
        }
        // What cannot be compared is not let through.
        (Err(error), _) | (_, Err(error)) => vec![problem(text, section::KEY, "internal", error.to_string(), None)],
    };
    let TenantLimits { calls_in_flight, calls_per_minute, result_bytes } = config.limits;
    let limits = [
        ("calls_in_flight", calls_in_flight, file.limits.calls_in_flight),
        ("calls_per_minute", calls_per_minute, file.limits.calls_per_minute),
        ("result_bytes", result_bytes, file.limits.result_bytes),
    ];
    let limits = limits.into_iter().filter(|(_, asked_for, granted)| asked_for > granted).map(|(key, _, granted)| {
        let message = format!("`{key}` is more than the {granted} of the tenant's file");
        problem(text, key, "operator_only", message, Some(format!("at most {granted}, or ask the operator")))
    });
    clusters.into_iter().chain(limits).collect()
}

fn clusters(config: &TenantConfig) -> Result<&[ClusterEntry], SectionTypeError> {
    Ok(config.section::<Vec<ClusterEntry>>(section::KEY)?.map_or(&[], Vec::as_slice))
}

fn foreign(text: &str, own: &Tenant) -> Problem {
    let hint = format!("write `tenant: {own}`");
    problem(text, "tenant", "foreign_tenant", "the text is about another tenant than the token", Some(hint))
}

/// Whether a text that cannot be read names another tenant, as far as can be seen.
fn seems_foreign(text: &str, own: &Tenant) -> bool {
    let value = text.lines().find_map(|line| line.strip_prefix("tenant:"));
    let name = value.map(|rest| rest.split('#').next().unwrap_or_default().trim().trim_matches(['"', '\'']));
    name.is_some_and(|name| Tenant::parse(name).is_ok_and(|tenant| tenant != *own))
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

#[cfg(test)]
mod tests;
