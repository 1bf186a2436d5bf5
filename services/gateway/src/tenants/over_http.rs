//! Configurations set over HTTP: checked like a file, and limited to what the tenant's file grants.
//!
//! The operator writes the file, the tenant's admin writes the text, and the text only narrows what the file gives
//! ([`tenancy::bounds`]). A secret that the operator brought is used as the file uses it; elsewhere the text gets only
//! secrets that were set over HTTP.

use super::{TenantRegistry, known_names};
use domain::Tenant;
use external::ServerCatalog;
use tenancy::{ConfiguredTenant, Position, Problem, SecretUse, TenantConfig};
use vault::Missing;

/// How problems name such a text.
pub(super) const LABEL: &str = "config";

impl TenantRegistry {
    /// Checks a text for a tenant as if it were set. Parses and compiles, so it must not run on a task of the runtime.
    pub fn check(&self, tenant: &Tenant, text: &str) -> Result<TenantConfig, Vec<Problem>> {
        let file =
            self.file_of(tenant).ok_or_else(|| vec![problem(text, "tenant", "unknown_tenant", NO_FILE, None)])?;
        let (curated, _) = ServerCatalog::read(&self.parts.curated);
        let config = read(self, &curated, &file, text)?;
        let problems = self.operators_secrets(&curated, &config, text);
        if problems.is_empty() { Ok(config) } else { Err(problems) }
    }

    /// The secrets of the operator that a text uses otherwise than the file. Told when a text is set; whatever becomes of
    /// the secrets later, none is given out for such a use.
    fn operators_secrets(&self, curated: &ServerCatalog, config: &TenantConfig, text: &str) -> Vec<Problem> {
        let uses = tenancy::secret_uses(&self.parts.toolsets.sections(curated), config);
        let refused = uses.iter().filter(|used| !config.grants(used)).filter(|used| {
            matches!(self.parts.vault.read_by_tenant(&config.tenant, &used.secret), Err(Missing::NotGranted { .. }))
        });
        let told = |used: &SecretUse| {
            let message = format!(
                "the secret `{}` is the operator's, and the tenant's file does not use it in `{}` as `{}`",
                used.secret, used.section, used.place
            );
            let hint = "use it as the file does, or set a secret of the tenant's own under another name";
            problem(text, &used.secret, BEYOND, message, Some(hint.to_owned()))
        };
        refused.map(told).collect()
    }

    /// Whether a text can be set at all.
    pub fn over_http(&self) -> bool {
        self.parts.over_http
    }
}

/// The code of what only the tenant's file can give.
const BEYOND: &str = tenancy::bounds::BEYOND;
const NO_FILE: &str = "no file names this tenant";

/// Checks a text for the tenant of a file.
pub(super) fn read(
    tenants: &TenantRegistry,
    curated: &ServerCatalog,
    file: &ConfiguredTenant,
    text: &str,
) -> Result<TenantConfig, Vec<Problem>> {
    let parsed: Result<_, Vec<Problem>> =
        known_names::with_known_names(&tenants.parts.toolsets, &tenants.parts.reach, curated, |names| {
            let config = tenancy::parse(LABEL, text, names)?;
            let problems = tenancy::exceeding(LABEL, text, names.sections, &file.config, &config);
            Ok((TenantConfig { granted_secrets: file.config.granted_secrets.clone(), ..config }, problems))
        });
    let own = &file.config.tenant;
    match parsed {
        Ok((config, mut problems)) => {
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

/// Whether a configuration is refused because it takes more than its tenant's file gives.
pub(super) fn is_beyond(problems: &[Problem]) -> bool {
    problems.iter().any(|problem| problem.code == BEYOND)
}

/// A problem at the first place where a word stands.
fn problem(text: &str, word: &str, code: &'static str, message: impl Into<String>, hint: Option<String>) -> Problem {
    let Position { line, column } = text.find(word).map_or(Position::START, |start| Position::after(&text[..start]));
    Problem { file: LABEL.to_owned(), line, column, code, message: message.into(), hint }
}

#[cfg(test)]
mod tests;
