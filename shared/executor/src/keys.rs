//! Keys of the service, derived from one secret that all replicas share.
//!
//! Digests in the ledger and marks on cursors are keyed, so that whoever reads one cannot guess what it stands for and
//! whoever writes one cannot make one up.

use domain::json::hex;
use domain::{KeyedDigest, Tenant, TokenDigest};

/// The shortest secret that is taken.
pub const SHORTEST: usize = 32;

/// The service's keys.
pub struct ServiceKeys {
    audit: [u8; 32],
    cursor: [u8; 32],
    run: [u8; 32],
    page: [u8; 32],
    mask: [u8; 32],
}

/// The secret is too short.
#[derive(Debug, thiserror::Error)]
#[error("the service's secret has {0} bytes and needs at least {SHORTEST}")]
pub struct TooShort(usize);

impl ServiceKeys {
    /// Derives the keys.
    pub fn derive(secret: &[u8]) -> Result<ServiceKeys, TooShort> {
        if secret.len() < SHORTEST {
            return Err(TooShort(secret.len()));
        }
        let key = |name: &[u8]| KeyedDigest::new(secret).bytes(name).finish();
        Ok(ServiceKeys {
            audit: key(b"audit"),
            cursor: key(b"cursor"),
            run: key(b"run"),
            page: key(b"page"),
            mask: key(b"mask"),
        })
    }

    /// What stands in a tenant's ledger instead of a digest: equal for equal calls of one tenant, and of no other.
    pub fn audit_digest(&self, tenant: &Tenant, digest: &str) -> String {
        self.mark(tenant, b"\n", digest.as_bytes())
    }

    /// What stands in a tenant's ledger for a token: the same for every use of one token, and of no use anywhere else.
    pub fn token_digest(&self, tenant: &Tenant, token: &TokenDigest) -> String {
        self.mark(tenant, b"\ntoken\n", token.as_bytes())
    }

    fn mark(&self, tenant: &Tenant, between: &[u8], bytes: &[u8]) -> String {
        let digest = KeyedDigest::new(&self.audit).bytes(tenant.as_str().as_bytes()).bytes(between).bytes(bytes);
        format!("hmac:{}", hex(&digest.half()))
    }

    /// The bits of a run's name: nobody can guess them, and whoever asks the same gets the same.
    pub fn run_bits(&self, digest: &str, last: &str) -> [u8; 16] {
        KeyedDigest::new(&self.run).bytes(digest.as_bytes()).bytes(b"\n").bytes(last.as_bytes()).half()
    }

    /// The key of cursors into the results of tools.
    pub fn page(&self) -> &[u8; 32] {
        &self.page
    }

    /// The key of the marks that stand for secrets.
    pub fn mask(&self) -> &[u8; 32] {
        &self.mask
    }

    /// The key of list cursors.
    pub fn cursor(&self) -> &[u8; 32] {
        &self.cursor
    }
}

/// Keys do not print.
impl std::fmt::Debug for ServiceKeys {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Keys(…)")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn digests_differ_by_tenant_and_secret_and_keep_nothing_readable() {
        let keys = |secret: u8| ServiceKeys::derive(&[secret; 32]).unwrap();
        let (a, b) = (Tenant::parse("a").unwrap(), Tenant::parse("b").unwrap());
        assert_eq!(keys(1).audit_digest(&a, "d"), keys(1).audit_digest(&a, "d"));
        assert_ne!(keys(1).audit_digest(&a, "d"), keys(1).audit_digest(&b, "d"));
        assert_ne!(keys(1).audit_digest(&a, "d"), keys(2).audit_digest(&a, "d"));
        assert_ne!(keys(1).audit, keys(1).cursor);
        assert!(ServiceKeys::derive(&[1; 31]).is_err());
        assert_eq!(format!("{:?}", keys(7)), "Keys(…)");
    }
}
