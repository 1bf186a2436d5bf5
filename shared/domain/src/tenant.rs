//! The tenant: who owns everything below it. A checked slug, so that a store key can hold nothing else.

use crate::text::is_label;
use serde::{Deserialize, Serialize};
use std::fmt;
use std::sync::Arc;

/// A tenant's name: 1 to 63 of `a-z`, `0-9` and `-`, neither first nor last a dash.
#[derive(Clone, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct Tenant(Arc<str>);

/// The text is not a tenant's name.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("a tenant is named with 1 to 63 of a-z, 0-9 and '-', neither first nor last a dash")]
pub struct NotATenant;

impl Tenant {
    /// Checks the slug. Nothing is trimmed or lower-cased: a look-alike is another tenant, or none.
    pub fn parse(text: &str) -> Result<Tenant, NotATenant> {
        if is_label(text) { Ok(Tenant(text.into())) } else { Err(NotATenant) }
    }

    /// The service itself, whose own records stand beside those of the tenants. No token and no file can name it.
    pub fn of_service() -> Tenant {
        Tenant("~".into())
    }

    /// The slug.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl TryFrom<String> for Tenant {
    type Error = NotATenant;
    fn try_from(text: String) -> Result<Tenant, NotATenant> {
        Tenant::parse(&text)
    }
}

impl From<Tenant> for String {
    fn from(tenant: Tenant) -> String {
        tenant.0.as_ref().to_owned()
    }
}

impl fmt::Display for Tenant {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl fmt::Debug for Tenant {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Tenant({})", self.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn slugs_are_taken_as_they_are() {
        for good in ["a", "acme", "acme-2", "0", &"x".repeat(63)] {
            assert_eq!(Tenant::parse(good).map(|t| t.to_string()), Ok(good.to_owned()));
        }
    }

    #[test]
    fn what_could_bend_a_key_is_refused() {
        for bad in ["", "-a", "a-", "A", "a:b", "{x}", "*", "a b", "ä", "а", "a\n", "a/b", "~", &"x".repeat(64)] {
            assert_eq!(Tenant::parse(bad), Err(NotATenant), "{bad:?}");
        }
    }
}
