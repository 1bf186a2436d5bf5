//! Secrets in the operator's environment: `QUARTERMASTER_SECRET__<TENANT>__<NAME>`.
//!
//! Upper case, with `_` for `-` and `.`. Names that differ only in these are one to the environment, which is a matter
//! between a tenant and its operator; two tenants never share a variable.

use domain::Tenant;
use redact::SecretText;
use std::collections::BTreeMap;
use std::ffi::OsString;
use std::fmt;

/// What the variables begin with.
const PREFIX: &str = "QUARTERMASTER_SECRET__";

/// The secrets among the variables of a process, as they were when it began. Does not print them.
#[derive(Clone, Default)]
pub struct Environment(BTreeMap<String, SecretText>);

impl Environment {
    /// The secrets among these variables. Empty ones count as not set.
    pub fn of<K: Into<OsString>, V: Into<OsString>>(variables: impl IntoIterator<Item = (K, V)>) -> Environment {
        let ours = |(key, value): (K, V)| {
            let key = key.into().into_string().ok()?.strip_prefix(PREFIX)?.to_owned();
            let Ok(value) = value.into().into_string() else {
                tracing::warn!(variable = format!("{PREFIX}{key}"), "a secret in the environment is no text");
                return None;
            };
            (!value.is_empty()).then(|| (key, SecretText::new(value)))
        };
        Environment(variables.into_iter().filter_map(ours).collect())
    }

    pub(crate) fn find(&self, tenant: &Tenant, name: &str) -> Option<SecretText> {
        self.0.get(&format!("{}{}", own(tenant)?, spelled(name))).cloned()
    }

    /// The names of a tenant's secrets, as the variables have them, in lower case.
    pub(crate) fn names(&self, tenant: &Tenant) -> Vec<String> {
        let Some(own) = own(tenant) else { return Vec::new() };
        let names = self.0.keys().filter_map(|key| key.strip_prefix(&own));
        names.map(str::to_ascii_lowercase).filter(|name| crate::is_secret_name(name)).collect()
    }
}

/// What the variables of a tenant have before a name. `None`: two dashes in a row would read as the end of the tenant, and
/// another's variables as this one's, so such a tenant has none.
fn own(tenant: &Tenant) -> Option<String> {
    let spelled = spelled(tenant.as_str());
    (!spelled.contains("__")).then(|| format!("{spelled}__"))
}

/// A name or tenant as variables have it.
pub(crate) fn spelled(text: &str) -> String {
    text.to_ascii_uppercase().replace(['-', '.'], "_")
}

impl fmt::Debug for Environment {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Environment({} secrets)", self.0.len())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn find(environment: &Environment, tenant: &str, name: &str) -> Option<String> {
        let found = environment.find(&Tenant::parse(tenant).unwrap(), name);
        found.map(|value| value.expose().to_owned())
    }

    #[test]
    fn a_variable_is_one_tenants_whatever_the_dashes() {
        let environment = Environment::of([
            ("QUARTERMASTER_SECRET__A__B__C", "one"),
            ("QUARTERMASTER_SECRET__A_B__TLS_KEY", "two"),
            ("QUARTERMASTER_SECRET__A___X", "three"),
            ("QUARTERMASTER_SECRET__A__EMPTY", ""),
            ("OTHER_SECRET__A__Y", "four"),
        ]);
        assert_eq!(find(&environment, "a", "b--c").as_deref(), Some("one"));
        assert_eq!(find(&environment, "a", "B__C").as_deref(), Some("one"));
        assert_eq!(find(&environment, "a--b", "c"), None, "it may have been meant for the tenant a");
        assert_eq!(find(&environment, "a-b", "tls.key").as_deref(), Some("two"));
        assert_eq!(find(&environment, "a", "b__tls_key"), None);
        assert_eq!(find(&environment, "a", "_x").as_deref(), Some("three"));
        assert_eq!((find(&environment, "a", "empty"), find(&environment, "a", "y")), (None, None));

        let names = |slug: &str| environment.names(&Tenant::parse(slug).unwrap());
        assert_eq!(names("a"), ["b__c", "_x"]);
        assert_eq!(names("a-b"), ["tls_key"]);
        assert!(names("a--b").is_empty() && names("b").is_empty());
        assert_eq!(format!("{environment:?}"), "Environment(3 secrets)");
    }
}
