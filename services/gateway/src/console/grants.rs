//! What somebody who signed in may do, and in which tenants: by the claims that tokens have, and by groups that the
//! operator maps. The bounds of the issuer hold for all of it, as they do for tokens.

use crate::app::Gateway;
use crate::settings::ConsoleIssuer;
use domain::{Caller, Scopes, Tenant, TokenScope};
use identity::SignedIn;
use std::collections::{BTreeMap, BTreeSet};

/// The callers that somebody may be, one for each tenant that is served here.
pub(super) fn callers(gateway: &Gateway, issuer: &ConsoleIssuer, who: &SignedIn) -> Vec<Caller> {
    let mut granted: BTreeMap<Tenant, Vec<TokenScope>> = BTreeMap::new();
    if let Some(tenant) = who.text(&issuer.tenant_claim).and_then(|name| Tenant::parse(&name).ok()) {
        let scopes = Scopes::parse(&who.texts(&issuer.scope_claim).join(" "));
        granted.entry(tenant).or_default().extend(scopes.iter());
    }
    let groups = who.texts(&issuer.groups_claim);
    for grant in issuer.groups.iter().filter(|grant| groups.contains(&grant.group)) {
        if let Ok(tenant) = Tenant::parse(&grant.tenant) {
            granted.entry(tenant).or_default().extend(Scopes::parse(&grant.scopes.join(" ")).iter());
        }
    }
    let served = |tenant: &Tenant| gateway.tenants.find(tenant).is_some();
    granted
        .into_iter()
        .filter(|(tenant, scopes)| !scopes.is_empty() && served(tenant))
        // A runner's right opens nothing here.
        .filter(|(_, scopes)| !scopes.contains(&TokenScope::RunnerWork))
        .filter_map(|(tenant, scopes)| {
            let vouched = gateway.verifier.vouched(who, tenant, scopes.into_iter().collect());
            vouched.inspect_err(|refused| gateway.refusals.note(refused.reason())).ok()
        })
        .collect()
}

/// Whom a refused sign-in concerns: the tenant that the claims name, or the only one that the issuer's groups lead to.
pub(super) fn concerned(gateway: &Gateway, issuer: &ConsoleIssuer, who: &SignedIn) -> Option<Caller> {
    let claimed = who.text(&issuer.tenant_claim).and_then(|name| Tenant::parse(&name).ok());
    let mapped: BTreeSet<Tenant> = issuer.groups.iter().filter_map(|grant| Tenant::parse(&grant.tenant).ok()).collect();
    let only = mapped.first().filter(|_| mapped.len() == 1).cloned();
    let tenant = claimed.or(only).filter(|tenant| gateway.tenants.find(tenant).is_some())?;
    gateway.verifier.vouched(who, tenant, Scopes::default()).ok()
}
