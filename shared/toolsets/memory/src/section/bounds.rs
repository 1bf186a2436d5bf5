//! What a text over HTTP may say about memory: the rules of the tenant's file and of the product, or stricter ones. New
//! stores are the tenant's to have, within the quota of their scope.

use super::{MemoryConfig, SessionWrites};
use crate::configured;
use crate::documents::{DocumentKind, Quota, StoreRules, Stores, WriteAccess};
use tenancy::{Excess, listed};

pub(super) fn exceeding(file: Option<&MemoryConfig>, asked: Option<&MemoryConfig>) -> Vec<Excess> {
    let (file, asked) = (file.cloned().unwrap_or_default(), asked.cloned().unwrap_or_default());
    let review = |config: &MemoryConfig| config.review.unwrap_or(MemoryConfig::USUAL_REVIEW);
    let mut found = Vec::new();
    if review(&asked) > review(&file) {
        let days = |config| format!("{} s", review(config).as_secs());
        found.push(Excess::new("/review", "`review`", days(&file), days(&asked)));
    }
    if file.session_writes == SessionWrites::Ask && asked.session_writes == SessionWrites::Run {
        found.push(Excess::new("/session_writes", "`session_writes`", "ask", "run"));
    }
    let index =
        |name: &str| asked.stores.iter().position(|store| format!("{}/{}", store.scope.as_str(), store.name) == name);
    match (configured::stores(&file.stores), configured::stores(&asked.stores)) {
        (Ok(given), Ok(wanted)) => {
            for (scope, name, rules) in wanted.iter() {
                let there = given.iter().find(|(whose, named, _)| (*whose, *named) == (scope, name));
                let Some((_, _, bound)) = there else { continue };
                let name = format!("{}/{name}", scope.as_str());
                let at = index(&name).map_or_else(|| "/stores".to_owned(), |n| format!("/stores/{n}"));
                let quota = |rules: &StoreRules, stores: &Stores| rules.quota.unwrap_or_else(|| stores.quota(scope));
                let quotas = (quota(bound, &given), quota(rules, &wanted));
                found.extend(wider(&at, &name, (bound, rules), quotas));
            }
        }
        // What is no store is told by the check of the text; what cannot be compared is not let through.
        (Err(error), _) | (_, Err(error)) => found.push(Excess::new("/stores", "`stores`", "other stores", error)),
    }
    found
}

/// What one store's rules allow beyond others.
fn wider(at: &str, name: &str, (given, asked): (&StoreRules, &StoreRules), quotas: (Quota, Quota)) -> Vec<Excess> {
    let kinds = |rules: &StoreRules| listed(rules.kinds().iter().copied().map(DocumentKind::as_str));
    let all = [
        ("types", asked.kinds().iter().any(|kind| !given.kinds().contains(kind)), kinds(given), kinds(asked)),
        (
            "writable",
            (given.writable, asked.writable) == (WriteAccess::People, WriteAccess::Agents),
            given.writable.as_str().to_owned(),
            asked.writable.as_str().to_owned(),
        ),
        (
            "promotable",
            asked.promotable && !given.promotable,
            given.promotable.to_string(),
            asked.promotable.to_string(),
        ),
        (
            "documents",
            quotas.1.documents > quotas.0.documents,
            quotas.0.documents.to_string(),
            quotas.1.documents.to_string(),
        ),
        ("bytes", quotas.1.bytes > quotas.0.bytes, quotas.0.bytes.to_string(), quotas.1.bytes.to_string()),
    ];
    let beyond = all.into_iter().filter(|(_, beyond, _, _)| *beyond);
    beyond
        .map(|(key, _, given, asked)| {
            Excess::new(format!("{at}/{key}"), format!("`{key}` of the store `{name}`"), given, asked)
        })
        .collect()
}
