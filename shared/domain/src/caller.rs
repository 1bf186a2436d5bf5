//! Who asks: an authenticated principal of one tenant, with the scopes its token carries.

use crate::job::RunnerLabel;
use crate::{Moment, Tenant};
use std::cmp::Ordering;
use std::fmt;
use std::hash::{Hash, Hasher};

/// What a token may be used for. [`TokenScope::ToolsWrite`] includes [`TokenScope::ToolsRead`]; nothing else includes another.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum TokenScope {
    /// List and call tools that only read.
    ToolsRead,
    /// Load write tools and ask for changes.
    ToolsWrite,
    /// Decide runs; never valid together with a `tools:` scope.
    RunsDecide,
    /// Change the tenant's configuration.
    TenantAdmin,
    /// Read the tenant's audit log.
    AuditRead,
    /// Set kill switches for every tenant. An issuer grants it only if its settings name it.
    OperatorSwitch,
    /// Take jobs as a runner, of the labels that the token names. Never valid together with another scope.
    RunnerWork,
}

impl TokenScope {
    /// Every scope there is.
    pub const ALL: [TokenScope; 7] = [
        TokenScope::ToolsRead,
        TokenScope::ToolsWrite,
        TokenScope::RunsDecide,
        TokenScope::TenantAdmin,
        TokenScope::AuditRead,
        TokenScope::OperatorSwitch,
        TokenScope::RunnerWork,
    ];

    /// As it stands in a token.
    pub const fn as_str(self) -> &'static str {
        match self {
            TokenScope::ToolsRead => "tools:read",
            TokenScope::ToolsWrite => "tools:write",
            TokenScope::RunsDecide => "runs:decide",
            TokenScope::TenantAdmin => "tenant:admin",
            TokenScope::AuditRead => "audit:read",
            TokenScope::OperatorSwitch => "operator:switch",
            TokenScope::RunnerWork => "runner:work",
        }
    }

    /// Whether it reaches beyond the tenant of the token. Such a scope is never granted by default.
    pub const fn is_of_operator(self) -> bool {
        matches!(self, TokenScope::OperatorSwitch)
    }

    const fn bit(self) -> u8 {
        match self {
            TokenScope::ToolsRead => 1,
            TokenScope::ToolsWrite => 2,
            TokenScope::RunsDecide => 4,
            TokenScope::TenantAdmin => 8,
            TokenScope::AuditRead => 16,
            TokenScope::OperatorSwitch => 32,
            TokenScope::RunnerWork => 64,
        }
    }
}

impl fmt::Display for TokenScope {
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
        let known = |word| TokenScope::ALL.into_iter().find(|scope| scope.as_str() == word);
        claim.split(' ').filter_map(known).collect()
    }

    /// Whether the scope is held, by name or by one that includes it.
    pub fn allow(self, scope: TokenScope) -> bool {
        let held = |s: TokenScope| self.0 & s.bit() != 0;
        held(scope) || (scope == TokenScope::ToolsRead && held(TokenScope::ToolsWrite))
    }

    /// As they stand in a token.
    pub fn to_claim(self) -> String {
        self.iter().map(TokenScope::as_str).collect::<Vec<_>>().join(" ")
    }

    /// The scopes held by name.
    pub fn iter(self) -> impl Iterator<Item = TokenScope> {
        TokenScope::ALL.into_iter().filter(move |s| self.0 & s.bit() != 0)
    }
}

impl FromIterator<TokenScope> for Scopes {
    fn from_iter<T: IntoIterator<Item = TokenScope>>(scopes: T) -> Scopes {
        Scopes(scopes.into_iter().fold(0, |bits, scope| bits | scope.bit()))
    }
}

/// Who somebody is, whichever token they hold: the issuer that vouches and the name it gives.
///
/// Two principals are equal if issuer and subject are: that is the account, and what it owns is its own. One human may
/// have several accounts; where it matters that people are different people, ask [`Principal::is_same_person`].
#[derive(Debug, Clone, serde::Serialize, serde::Deserialize)]
pub struct Principal {
    /// The `iss` of the token, exactly.
    pub issuer: String,
    /// The `sub` of the token, exactly.
    pub subject: String,
    /// The human behind the account, in the spelling that all issuers share, if the issuer tells.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub person: Option<String>,
}

impl Principal {
    /// An account of which nobody tells whose it is.
    pub fn new(issuer: impl Into<String>, subject: impl Into<String>) -> Principal {
        Principal { issuer: issuer.into(), subject: subject.into(), person: None }
    }

    /// Whether both are one human: the same account, or accounts of the same person.
    pub fn is_same_person(&self, other: &Principal) -> bool {
        let same_name = self.person.is_some() && self.person == other.person;
        self == other || same_name
    }

    fn account(&self) -> (&str, &str) {
        (&self.issuer, &self.subject)
    }
}

impl PartialEq for Principal {
    fn eq(&self, other: &Principal) -> bool {
        self.account() == other.account()
    }
}

impl Eq for Principal {}

impl Hash for Principal {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.account().hash(state);
    }
}

impl PartialOrd for Principal {
    fn partial_cmp(&self, other: &Principal) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for Principal {
    fn cmp(&self, other: &Principal) -> Ordering {
        self.account().cmp(&other.account())
    }
}

/// The SHA-256 of a token. It tells two tokens of one principal apart and is not the token; it does not print.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub struct TokenDigest([u8; 32]);

impl TokenDigest {
    /// The digest with these bytes.
    pub const fn new(bytes: [u8; 32]) -> TokenDigest {
        TokenDigest(bytes)
    }

    /// Its bytes, for whoever keys them.
    pub const fn as_bytes(&self) -> &[u8; 32] {
        &self.0
    }
}

impl fmt::Debug for TokenDigest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("TokenDigest(…)")
    }
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
    /// The digest of the token; `None` where nobody showed one, as when a run is carried out.
    pub token: Option<TokenDigest>,
    /// The labels whose jobs a runner may take.
    pub labels: Vec<RunnerLabel>,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn write_includes_read_and_nothing_else_includes_anything() {
        let write = Scopes::parse("tools:write");
        assert!(write.allow(TokenScope::ToolsRead) && write.allow(TokenScope::ToolsWrite));
        assert!(!write.allow(TokenScope::RunsDecide) && !write.allow(TokenScope::TenantAdmin));
        let admin = Scopes::parse("tenant:admin openid profile");
        assert_eq!(admin.iter().collect::<Vec<_>>(), [TokenScope::TenantAdmin]);
        assert!(!admin.allow(TokenScope::ToolsRead));
    }

    #[test]
    fn one_human_may_have_several_accounts() {
        let account = |issuer: &str, subject: &str, person: Option<&str>| Principal {
            person: person.map(str::to_owned),
            ..Principal::new(issuer, subject)
        };
        let (home, work) = (account("home", "ana", Some("ana@acme")), account("work", "a1", Some("ana@acme")));
        assert!(home != work && home.is_same_person(&work));
        assert!(!home.is_same_person(&account("work", "b2", Some("bob@acme"))));
        // The same account is the same person, whatever its issuer has told in the meantime.
        assert!(home.is_same_person(&account("home", "ana", None)));
        assert!(home.is_same_person(&account("home", "ana", Some("ana.maria@acme"))));
        // Of two accounts without a name nothing is known, so they count as two.
        assert!(!account("home", "ana", None).is_same_person(&account("work", "ana", None)));
    }

    #[test]
    fn near_misses_are_no_scopes() {
        for claim in ["", "tools:*", "TOOLS:READ", "tools:read,tools:write", "tools"] {
            assert_eq!(Scopes::parse(claim), Scopes::default(), "{claim}");
        }
    }
}
