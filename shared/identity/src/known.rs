//! Tokens verified before, by their digest. A hit saves the signature, never the questions that time can change.
//!
//! The token itself is not kept. What a hit still owes (is it expired, is its key still the issuer's) is asked by the
//! verifier on every request; the expiry here only frees memory.

use crate::claims::Window;
use crate::issuer::Issuer;
use crate::keys::Fingerprint;
use aws_lc_rs::digest::{SHA256, digest};
use domain::{Caller, TokenDigest};
use moka::Expiry;
use moka::sync::Cache;
use std::sync::Arc;
use std::time::{Duration, Instant};

/// At most this many tokens are remembered.
const MOST_TOKENS: u64 = 50_000;
/// What one token counts for at least, in bytes; longer names count for more. So the cache is bounded both ways.
const LEAST_WEIGHT: u32 = 640;

/// A token that lives longer is verified again once a day; the cache cannot count to the end of time.
const LONGEST: Duration = Duration::from_secs(24 * 60 * 60);

/// The digest that a token is known by.
pub(crate) fn digest_of(token: &str) -> TokenDigest {
    let mut bytes = [0; 32];
    bytes.copy_from_slice(digest(&SHA256, token.as_bytes()).as_ref());
    TokenDigest::new(bytes)
}

/// A verified token: who it speaks for, and what that hung on.
pub(crate) struct VerifiedToken {
    pub(crate) caller: Arc<Caller>,
    pub(crate) window: Window,
    pub(crate) issuer: Arc<Issuer>,
    pub(crate) key: Fingerprint,
    /// How long it is worth keeping, counted from when it was verified.
    pub(crate) keep: Duration,
}

/// The verified tokens, bounded by number and by size.
pub(crate) struct KnownTokens(Cache<TokenDigest, Arc<VerifiedToken>>);

impl KnownTokens {
    pub(crate) fn new() -> KnownTokens {
        let cache = Cache::builder()
            .name("verified_tokens")
            .max_capacity(MOST_TOKENS * u64::from(LEAST_WEIGHT))
            .weigher(|_, known: &Arc<VerifiedToken>| known.weight())
            .expire_after(UntilItEnds)
            .build();
        KnownTokens(cache)
    }

    pub(crate) fn find(&self, token: &TokenDigest) -> Option<Arc<VerifiedToken>> {
        self.0.get(token)
    }

    pub(crate) fn keep(&self, token: TokenDigest, known: VerifiedToken) {
        self.0.insert(token, Arc::new(known));
    }

    pub(crate) fn forget(&self, token: &TokenDigest) {
        self.0.invalidate(token);
    }
}

impl VerifiedToken {
    fn weight(&self) -> u32 {
        let principal = &self.caller.principal;
        let person = principal.person.as_ref().map_or(0, String::len);
        let names = principal.issuer.len() + principal.subject.len() + person + self.caller.tenant.as_str().len();
        u32::try_from(size_of::<VerifiedToken>() + size_of::<Caller>() + names).unwrap_or(u32::MAX).max(LEAST_WEIGHT)
    }
}

struct UntilItEnds;

impl Expiry<TokenDigest, Arc<VerifiedToken>> for UntilItEnds {
    fn expire_after_create(&self, _: &TokenDigest, known: &Arc<VerifiedToken>, _: Instant) -> Option<Duration> {
        Some(known.keep.min(LONGEST))
    }

    fn expire_after_update(
        &self,
        _: &TokenDigest,
        known: &Arc<VerifiedToken>,
        _: Instant,
        _: Option<Duration>,
    ) -> Option<Duration> {
        Some(known.keep.min(LONGEST))
    }
}
