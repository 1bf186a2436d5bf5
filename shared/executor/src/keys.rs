//! Keys of the service, derived from one secret that all replicas share.
//!
//! Digests in the audit log and marks on cursors are keyed, so that whoever reads one cannot guess what it stands for and
//! whoever writes one cannot make one up.

use domain::json::hex;
use domain::{Caller, KeyedDigest, Tenant, TokenDigest};

/// The shortest secret that is taken.
pub const SHORTEST: usize = 32;
/// The length of a tag on a sealed place.
const TAG: usize = 16;

/// The service's keys.
pub struct ServiceKeys {
    /// Keyed already: every call makes two of these digests.
    audit: KeyedDigest,
    cursor: [u8; 32],
    run: [u8; 32],
    page: [u8; 32],
    mask: [u8; 32],
    place: [u8; 32],
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
            audit: KeyedDigest::new(&key(b"audit")),
            cursor: key(b"cursor"),
            run: key(b"run"),
            page: key(b"page"),
            mask: key(b"mask"),
            place: key(b"place"),
        })
    }

    /// What stands in a tenant's audit log instead of a digest: equal for equal calls of one tenant, and of no other.
    pub fn audit_digest(&self, tenant: &Tenant, digest: &str) -> String {
        self.mark(tenant, b"\n", digest.as_bytes())
    }

    /// What stands in a tenant's audit log for a token: the same for every use of one token, and of no use anywhere else.
    pub fn token_digest(&self, tenant: &Tenant, token: &TokenDigest) -> String {
        self.mark(tenant, b"\ntoken\n", token.as_bytes())
    }

    fn mark(&self, tenant: &Tenant, between: &[u8], bytes: &[u8]) -> String {
        let digest = self.audit.clone().bytes(tenant.as_str().as_bytes()).bytes(between).bytes(bytes);
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

    /// A place in a list as its reader is given it: only this caller can use it, and it tells nothing. The place may be
    /// that of a record which the caller may not see.
    pub fn seal_place(&self, caller: &Caller, place: &str) -> String {
        let tag = self.place_tag(caller, place.as_bytes());
        hex(&[&tag[..], &self.mixed(&tag, place.as_bytes())].concat())
    }

    /// The place that was sealed for this caller.
    pub fn open_place(&self, caller: &Caller, text: &str) -> Option<String> {
        let bytes = from_hex(text)?;
        let (tag, mixed) = bytes.split_first_chunk::<TAG>()?;
        let place = self.mixed(tag, mixed);
        let expected = self.place_tag(caller, &place);
        // All bytes are compared, so that the time tells nothing of the first that differs.
        let differs = tag.iter().zip(expected).fold(0, |all, (a, b)| all | (a ^ b));
        if differs == 0 { String::from_utf8(place).ok() } else { None }
    }

    fn place_tag(&self, caller: &Caller, place: &[u8]) -> [u8; TAG] {
        let principal = &caller.principal;
        let names = [caller.tenant.as_str(), &principal.issuer, &principal.subject];
        let named = names.iter().fold(KeyedDigest::new(&self.place).bytes(b"tag"), |d, name| d.part(name.as_bytes()));
        named.bytes(place).half()
    }

    /// The bytes under a stream that the tag begins; done twice it is undone. Two different places never share a tag, so
    /// no stream is used twice.
    fn mixed(&self, tag: &[u8; TAG], bytes: &[u8]) -> Vec<u8> {
        let blocks = bytes.chunks(32).zip(0_u64..);
        let mixed = blocks.flat_map(|(block, number)| {
            let stream =
                KeyedDigest::new(&self.place).bytes(b"stream").bytes(tag).bytes(&number.to_be_bytes()).finish();
            block.iter().zip(stream).map(|(byte, with)| byte ^ with).collect::<Vec<u8>>()
        });
        mixed.collect()
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

fn from_hex(text: &str) -> Option<Vec<u8>> {
    let digit = |byte: u8| char::from(byte).to_digit(16).and_then(|digit| u8::try_from(digit).ok());
    let pairs = text.as_bytes().chunks(2);
    pairs.map(|pair| Some(digit(*pair.first()?)? << 4 | digit(*pair.get(1)?)?)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn caller(tenant: &str, subject: &str) -> Caller {
        Caller {
            tenant: Tenant::parse(tenant).unwrap(),
            principal: domain::Principal::new("https://login.example", subject),
            scopes: domain::Scopes::default(),
            expires_at: domain::Moment::from_secs(1),
            token: None,
            labels: Vec::new(),
        }
    }

    #[test]
    fn a_place_in_a_list_is_its_callers_own_and_tells_nothing() {
        let keys = ServiceKeys::derive(&[1; 32]).unwrap();
        let (ana, place) = (caller("acme", "ana"), "1800000000000-run_0000000000000000000000-and-more");
        let sealed = keys.seal_place(&ana, place);
        assert_eq!(keys.open_place(&ana, &sealed).as_deref(), Some(place));
        assert_eq!(keys.open_place(&ana, &keys.seal_place(&ana, "")).as_deref(), Some(""));
        let text = String::from_utf8_lossy(&from_hex(&sealed).unwrap()).into_owned();
        assert!(!text.contains("run_") && !text.contains("1800"), "{text}");
        let near = keys.seal_place(&ana, &place.replace("run_0", "run_1"));
        let agree = sealed.bytes().zip(near.bytes()).filter(|(a, b)| a == b).count();
        assert!(agree < sealed.len() / 3, "two places have nothing in common: {sealed} {near}");

        assert_eq!(keys.open_place(&caller("acme", "bo"), &sealed), None);
        assert_eq!(keys.open_place(&caller("other", "ana"), &sealed), None);
        assert_eq!(ServiceKeys::derive(&[2; 32]).unwrap().open_place(&ana, &sealed), None);
        for at in 0..sealed.len() {
            let mut touched = sealed.clone().into_bytes();
            touched[at] = if touched[at] == b'0' { b'1' } else { b'0' };
            assert_eq!(keys.open_place(&ana, &String::from_utf8(touched).unwrap()), None, "{at}");
        }
        for bad in ["", "0", "00", "zz", place, &sealed[1..], &sealed[2..], &sealed[..sealed.len() - 2]] {
            assert_eq!(keys.open_place(&ana, bad), None, "{bad}");
        }
    }

    #[test]
    fn digests_differ_by_tenant_and_secret_and_keep_nothing_readable() {
        let keys = |secret: u8| ServiceKeys::derive(&[secret; 32]).unwrap();
        let (a, b) = (Tenant::parse("a").unwrap(), Tenant::parse("b").unwrap());
        assert_eq!(keys(1).audit_digest(&a, "d"), keys(1).audit_digest(&a, "d"));
        assert_ne!(keys(1).audit_digest(&a, "d"), keys(1).audit_digest(&b, "d"));
        assert_ne!(keys(1).audit_digest(&a, "d"), keys(2).audit_digest(&a, "d"));
        assert_ne!(keys(1).audit.finish(), KeyedDigest::new(&keys(1).cursor).finish());
        assert!(ServiceKeys::derive(&[1; 31]).is_err());
        assert_eq!(format!("{:?}", keys(7)), "Keys(…)");
    }
}
