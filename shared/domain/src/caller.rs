//! Who asks: an authenticated principal of one tenant, with the scopes its token carries.

use crate::{Moment, Tenant};
use std::fmt;

/// What a token may be used for. [`Scope::ToolsWrite`] includes [`Scope::ToolsRead`]; nothing else includes another.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Scope {
    /// List and call tools that only read.
    ToolsRead,
    /// Load write tools and ask for changes.
    ToolsWrite,
    /// Decide runs; never valid together with a `tools:` scope.
    RunsDecide,
    /// Change the tenant's configuration.
    TenantAdmin,
    /// Read the tenant's ledger.
    AuditRead,
}

impl Scope {
    /// Every scope there is.
    pub const ALL: [Scope; 5] =
        [Scope::ToolsRead, Scope::ToolsWrite, Scope::RunsDecide, Scope::TenantAdmin, Scope::AuditRead];

    /// As it stands in a token.
    pub const fn as_str(self) -> &'static str {
        match self {
            Scope::ToolsRead => "tools:read",
            Scope::ToolsWrite => "tools:write",
            Scope::RunsDecide => "runs:decide",
            Scope::TenantAdmin => "tenant:admin",
            Scope::AuditRead => "audit:read",
        }
    }

    const fn bit(self) -> u8 {
        match self {
            Scope::ToolsRead => 1,
            Scope::ToolsWrite => 2,
            Scope::RunsDecide => 4,
            Scope::TenantAdmin => 8,
            Scope::AuditRead => 16,
        }
    }
}

impl fmt::Display for Scope {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// The scopes of one token.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Scopes(u8);

impl Scopes {
    /// Reads the space-separated claim. Scopes of other services are passed over.
    pub fn parse(claim: &str) -> Scopes {
        let known = |word| Scope::ALL.into_iter().find(|scope| scope.as_str() == word);
        claim.split(' ').filter_map(known).collect()
    }

    /// Whether the scope is held, by name or by one that includes it.
    pub fn allow(self, scope: Scope) -> bool {
        let held = |s: Scope| self.0 & s.bit() != 0;
        held(scope) || (scope == Scope::ToolsRead && held(Scope::ToolsWrite))
    }

    /// As they stand in a token.
    pub fn to_claim(self) -> String {
        self.iter().map(Scope::as_str).collect::<Vec<_>>().join(" ")
    }

    /// The scopes held by name.
    pub fn iter(self) -> impl Iterator<Item = Scope> {
        Scope::ALL.into_iter().filter(move |s| self.0 & s.bit() != 0)
    }
}

impl FromIterator<Scope> for Scopes {
    fn from_iter<T: IntoIterator<Item = Scope>>(scopes: T) -> Scopes {
        Scopes(scopes.into_iter().fold(0, |bits, scope| bits | scope.bit()))
    }
}

/// Who somebody is, whichever token they hold: the issuer that vouches and the name it gives.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord, serde::Serialize, serde::Deserialize)]
pub struct Principal {
    /// The `iss` of the token, exactly.
    pub issuer: String,
    /// The `sub` of the token, exactly.
    pub subject: String,
}

/// The authenticated principal in one tenant. Only `identity` makes one from a request.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Caller {
    /// The tenant the token speaks for.
    pub tenant: Tenant,
    /// Who holds it.
    pub principal: Principal,
    /// What it may be used for.
    pub scopes: Scopes,
    /// When it ends, leeway not included.
    pub expires_at: Moment,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn write_includes_read_and_nothing_else_includes_anything() {
        let write = Scopes::parse("tools:write");
        assert!(write.allow(Scope::ToolsRead) && write.allow(Scope::ToolsWrite));
        assert!(!write.allow(Scope::RunsDecide) && !write.allow(Scope::TenantAdmin));
        let admin = Scopes::parse("tenant:admin openid profile");
        assert_eq!(admin.iter().collect::<Vec<_>>(), [Scope::TenantAdmin]);
        assert!(!admin.allow(Scope::ToolsRead));
    }

    #[test]
    fn near_misses_are_no_scopes() {
        for claim in ["", "tools:*", "TOOLS:READ", "tools:read,tools:write", "tools"] {
            assert_eq!(Scopes::parse(claim), Scopes::default(), "{claim}");
        }
    }
}
