//! How far one issuer is believed: for which tenants, which scopes, how long a token, and who the person is.
//!
//! An issuer that may vouch for everybody may make an approver of any tenant. What a token says beyond the bounds of its
//! issuer is therefore no smaller grant but a refusal: an honest issuer does not say it.

use crate::claims::{Claims, claim_named};
use crate::refused::TokenRefused;
use domain::{Caller, Moment, Scopes, Tenant, TokenScope};
use serde_json::Value;
use std::time::Duration;

/// Longer names are nobody's, and they are written into every run and audit entry.
const MOST_PERSON_BYTES: usize = 256;
/// Beside this claim OpenID Connect says whether anybody has checked the address.
const EMAIL: &str = "email";
const EMAIL_VERIFIED: &str = "email_verified";

/// What one issuer may say.
#[derive(Debug)]
pub(crate) struct IssuerBounds {
    /// The tenants it may vouch for; `None` means all.
    pub(crate) tenants: Option<Vec<TenantPattern>>,
    /// The most it may grant.
    pub(crate) scopes: Scopes,
    /// The claim that names the human.
    pub(crate) person_claim: Option<String>,
    /// The longest life of a token.
    pub(crate) longest_token: Duration,
}

impl IssuerBounds {
    /// Refuses a token that lives longer than the issuer's tokens may. One that does not say when it was made is
    /// measured from now, and one from the future is not valid yet: its life could not be measured.
    pub(crate) fn check_life(
        &self,
        claims: &Claims,
        expires_at: Moment,
        now: Moment,
        leeway: Duration,
    ) -> Result<(), TokenRefused> {
        let issued_at = claims.issued_at()?;
        if issued_at.is_some_and(|issued_at| issued_at > now.plus(leeway)) {
            return Err(TokenRefused::NotYetValid);
        }
        let life = expires_at.since(issued_at.unwrap_or(now));
        if life > self.longest_token { Err(TokenRefused::LivesTooLong) } else { Ok(()) }
    }

    /// The human the token names, spelled as other issuers spell it. An issuer that is to name people names them always:
    /// a token without the name could be the second account of somebody who has one with it.
    pub(crate) fn person(&self, payload: &[u8]) -> Result<Option<String>, TokenRefused> {
        let Some(claim) = &self.person_claim else { return Ok(None) };
        let value = claim_named(payload, claim)?.ok_or(TokenRefused::NoPerson)?;
        let name = value.as_str().map(|name| name.trim().to_lowercase()).ok_or(TokenRefused::NoPerson)?;
        if name.is_empty() || name.len() > MOST_PERSON_BYTES || name.chars().any(char::is_control) {
            return Err(TokenRefused::NoPerson);
        }
        // An address that nobody has checked is whatever its holder typed.
        let unchecked = claim == EMAIL
            && claim_named(payload, EMAIL_VERIFIED)?.is_some_and(|verified| verified != Value::Bool(true));
        if unchecked { Err(TokenRefused::NoPerson) } else { Ok(Some(name)) }
    }

    /// Refuses a caller of a tenant or with a scope that the issuer may not vouch for.
    pub(crate) fn check_caller(&self, caller: &Caller) -> Result<(), TokenRefused> {
        let bound = |patterns: &Vec<TenantPattern>| patterns.iter().any(|pattern| pattern.matches(&caller.tenant));
        if !self.tenants.as_ref().is_none_or(bound) {
            return Err(TokenRefused::ForeignTenant);
        }
        if !caller.scopes.iter().all(|scope| self.scopes.allow(scope)) {
            return Err(TokenRefused::ForeignScope);
        }
        Ok(())
    }
}

/// A tenant's name, or `prefix-*` for all whose names begin so.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum TenantPattern {
    One(Tenant),
    /// With its dash at the end, so that `shop-*` does not take `shoplift` along.
    Prefix(String),
}

impl TenantPattern {
    pub(crate) fn parse(text: &str) -> Option<TenantPattern> {
        let Some(prefix) = text.strip_suffix('*') else { return Tenant::parse(text).ok().map(TenantPattern::One) };
        let label = prefix.strip_suffix('-')?;
        Tenant::parse(label).ok().map(|_| TenantPattern::Prefix(prefix.to_owned()))
    }

    fn matches(&self, tenant: &Tenant) -> bool {
        match self {
            TenantPattern::One(name) => name == tenant,
            TenantPattern::Prefix(prefix) => tenant.as_str().starts_with(prefix.as_str()),
        }
    }
}

/// The scope of that name.
pub(crate) fn scope_named(name: &str) -> Option<TokenScope> {
    TokenScope::ALL.into_iter().find(|scope| scope.as_str() == name)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_pattern_is_a_name_or_a_prefix_with_its_dash() {
        let matches = |pattern: &str, tenant: &str| {
            TenantPattern::parse(pattern).unwrap().matches(&Tenant::parse(tenant).unwrap())
        };
        assert!(matches("shop", "shop") && !matches("shop", "shop-2") && !matches("shop", "sho"));
        assert!(matches("shop-*", "shop-2") && matches("shop-*", "shop-eu-1"));
        assert!(!matches("shop-*", "shop") && !matches("shop-*", "shoplift"));
        for bad in ["", "*", "-*", "shop*", "*-shop", "sh*op", "Shop", "shop-**", "shop-*-eu", " shop"] {
            assert_eq!(TenantPattern::parse(bad), None, "{bad}");
        }
    }
}
