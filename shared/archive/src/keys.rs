//! The keys of checkpoints: one signs, several verify.
//!
//! A key's id is the thumbprint of its JWK (RFC 7638), so the id follows from the key and nobody assigns it.
//! A private key never prints.

use crate::config::ArchiveConfig;
use aws_lc_rs::hmac;
use aws_lc_rs::signature::{ED25519, Ed25519KeyPair, KeyPair, UnparsedPublicKey};
use base64::Engine;
use base64::prelude::{BASE64_STANDARD, BASE64_URL_SAFE_NO_PAD};
use serde::Deserialize;
use serde_json::{Value, json};
use sha2::{Digest, Sha256};
use std::fmt;
use std::path::Path;

/// What the service's own secret is derived with, for installations that bring no key.
const DERIVED: &[u8] = b"quartermaster audit checkpoints 1";
/// What an Ed25519 public key has before its 32 bytes in the form of RFC 8410.
const SPKI: [u8; 12] = [0x30, 0x2a, 0x30, 0x05, 0x06, 0x03, 0x2b, 0x65, 0x70, 0x03, 0x21, 0x00];

/// The text is not a key.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum BadKey {
    /// A key file.
    #[error("not an Ed25519 key in PEM, as `openssl genpkey -algorithm ed25519` and `openssl pkey -pubout` write it")]
    Pem,
    /// A set of public keys.
    #[error("not a JWK set of Ed25519 keys (OKP)")]
    Jwks,
}

/// A public key and its id.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PublicKey {
    id: String,
    bytes: [u8; 32],
}

impl PublicKey {
    fn new(bytes: [u8; 32]) -> PublicKey {
        // The members of RFC 7638, in its order.
        let thumbed = format!(r#"{{"crv":"Ed25519","kty":"OKP","x":"{}"}}"#, BASE64_URL_SAFE_NO_PAD.encode(bytes));
        PublicKey { id: BASE64_URL_SAFE_NO_PAD.encode(Sha256::digest(thumbed)), bytes }
    }

    /// Reads a key file: a public key, or a private one, of which only the public half is kept.
    pub fn read(pem: &str) -> Result<PublicKey, BadKey> {
        if let Some(der) = pem_body(pem, "PUBLIC KEY") {
            let bytes = der.strip_prefix(&SPKI).and_then(|bytes| bytes.try_into().ok());
            return bytes.map(PublicKey::new).ok_or(BadKey::Pem);
        }
        SigningKey::read(pem).map(|key| key.public)
    }

    /// Its id.
    pub fn id(&self) -> &str {
        &self.id
    }

    fn to_jwk(&self) -> Value {
        let x = BASE64_URL_SAFE_NO_PAD.encode(self.bytes);
        json!({ "kty": "OKP", "crv": "Ed25519", "alg": "EdDSA", "use": "sig", "kid": self.id, "x": x })
    }
}

/// The key that signs.
pub struct SigningKey {
    pair: Ed25519KeyPair,
    public: PublicKey,
}

impl SigningKey {
    /// Reads a key file: PKCS#8 in PEM.
    pub fn read(pem: &str) -> Result<SigningKey, BadKey> {
        let der = pem_body(pem, "PRIVATE KEY").ok_or(BadKey::Pem)?;
        SigningKey::of(Ed25519KeyPair::from_pkcs8(&der).map_err(|_| BadKey::Pem)?)
    }

    /// Derives a key from the service's own secret.
    pub fn derive(secret: &[u8]) -> Result<SigningKey, BadKey> {
        let seed = hmac::sign(&hmac::Key::new(hmac::HMAC_SHA256, secret), DERIVED);
        SigningKey::of(Ed25519KeyPair::from_seed_unchecked(seed.as_ref()).map_err(|_| BadKey::Pem)?)
    }

    fn of(pair: Ed25519KeyPair) -> Result<SigningKey, BadKey> {
        let bytes = pair.public_key().as_ref().try_into().map_err(|_| BadKey::Pem)?;
        Ok(SigningKey { pair, public: PublicKey::new(bytes) })
    }

    /// The half that verifies.
    pub fn public(&self) -> &PublicKey {
        &self.public
    }

    /// The signature over some bytes, in base64url.
    pub(crate) fn sign(&self, bytes: &[u8]) -> String {
        BASE64_URL_SAFE_NO_PAD.encode(self.pair.sign(bytes))
    }
}

impl fmt::Debug for SigningKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "SigningKey({})", self.public.id)
    }
}

/// The keys that verify; the newest is first.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct PublicKeys(Vec<PublicKey>);

#[derive(Deserialize)]
struct JwkSet {
    keys: Vec<Jwk>,
}

#[derive(Deserialize)]
struct Jwk {
    kty: String,
    crv: Option<String>,
    x: Option<String>,
}

impl PublicKeys {
    /// These keys, each once.
    pub fn new(keys: impl IntoIterator<Item = PublicKey>) -> PublicKeys {
        let mut kept: Vec<PublicKey> = Vec::new();
        for key in keys {
            if !kept.contains(&key) {
                kept.push(key);
            }
        }
        PublicKeys(kept)
    }

    /// Reads a JWK set, as [`PublicKeys::to_jwks`] writes it, or PEM keys one after the other. Keys of other kinds are not
    /// ours; a set without one of ours is refused.
    pub fn read(text: &str) -> Result<PublicKeys, BadKey> {
        if text.trim_start().starts_with("-----BEGIN") {
            let parts = text.split_inclusive("-----END PUBLIC KEY-----").filter(|part| part.contains("-----BEGIN"));
            return parts.map(PublicKey::read).collect::<Result<Vec<_>, _>>().map(PublicKeys::new);
        }
        let set: JwkSet = serde_json::from_str(text).map_err(|_| BadKey::Jwks)?;
        let ours = |key: &Jwk| key.kty == "OKP" && key.crv.as_deref() == Some("Ed25519");
        let read = |key: Jwk| {
            let bytes = BASE64_URL_SAFE_NO_PAD.decode(key.x?).ok()?;
            Some(PublicKey::new(bytes.try_into().ok()?))
        };
        let keys: Option<Vec<PublicKey>> = set.keys.into_iter().filter(ours).map(read).collect();
        keys.filter(|keys| !keys.is_empty()).map(PublicKeys::new).ok_or(BadKey::Jwks)
    }

    /// As it is published.
    pub fn to_jwks(&self) -> Value {
        json!({ "keys": self.0.iter().map(PublicKey::to_jwk).collect::<Vec<_>>() })
    }

    /// The ids, newest first.
    pub fn ids(&self) -> impl Iterator<Item = &str> {
        self.0.iter().map(PublicKey::id)
    }

    /// Whether the key of this id made this signature over these bytes; `None` if no key has the id.
    pub(crate) fn verify(&self, id: &str, bytes: &[u8], signature: &str) -> Option<bool> {
        let key = self.0.iter().find(|key| key.id == id)?;
        let signature = BASE64_URL_SAFE_NO_PAD.decode(signature).ok();
        let fits = |signature: Vec<u8>| UnparsedPublicKey::new(&ED25519, key.bytes).verify(bytes, &signature).is_ok();
        Some(signature.is_some_and(fits))
    }
}

/// The keys of one service.
#[derive(Debug)]
pub struct ArchiveKeys {
    /// The key that signs.
    pub signing: SigningKey,
    /// The keys that verify, that one included.
    pub public: PublicKeys,
}

/// Why the service has no keys.
#[derive(Debug, thiserror::Error)]
pub enum ArchiveKeysError {
    /// A file cannot be read.
    #[error("cannot read {path}")]
    Unreadable {
        /// Which file.
        path: String,
        /// Why.
        #[source]
        source: std::io::Error,
    },
    /// A file holds something else.
    #[error("{path} cannot be used")]
    Unusable {
        /// Which file.
        path: String,
        /// Why.
        #[source]
        source: BadKey,
    },
    /// The service's own secret gives no key.
    #[error("no key can be derived from the service's secret")]
    Underived(#[source] BadKey),
}

impl ArchiveKeys {
    /// The keys as the settings name them. What the service's own secrets give is published where the settings name no
    /// key that signs, and after they began to: it may have signed before.
    pub fn read(config: &ArchiveConfig, secret: &[u8], older: &[Vec<u8>]) -> Result<ArchiveKeys, ArchiveKeysError> {
        let text = |path: &Path| {
            let unreadable = |source| ArchiveKeysError::Unreadable { path: path.display().to_string(), source };
            std::fs::read_to_string(path).map_err(unreadable)
        };
        let unusable = |path: &Path| {
            let path = path.display().to_string();
            |source| ArchiveKeysError::Unusable { path, source }
        };
        let derived = SigningKey::derive(secret).map_err(ArchiveKeysError::Underived)?;
        let mut public = vec![derived.public.clone()];
        for secret in older {
            public.push(SigningKey::derive(secret).map_err(ArchiveKeysError::Underived)?.public);
        }
        let mut signing = derived;
        let path = &config.signing_key_file;
        if !path.as_os_str().is_empty() {
            signing = SigningKey::read(&text(path)?).map_err(unusable(path))?;
        }
        let mut named = vec![signing.public.clone()];
        for path in &config.older_key_files {
            named.push(PublicKey::read(&text(path)?).map_err(unusable(path))?);
        }
        Ok(ArchiveKeys { signing, public: PublicKeys::new(named.into_iter().chain(public)) })
    }
}

/// What stands between the lines of a PEM file with this label.
fn pem_body(text: &str, label: &str) -> Option<Vec<u8>> {
    let (_, rest) = text.split_once(&format!("-----BEGIN {label}-----"))?;
    let (body, _) = rest.split_once(&format!("-----END {label}-----"))?;
    let digits: String = body.split_ascii_whitespace().collect();
    BASE64_STANDARD.decode(digits).ok()
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Duration;

    /// The key of RFC 8410, section 10.3, and the public half of it.
    const PRIVATE: &str = "-----BEGIN PRIVATE KEY-----\nMC4CAQAwBQYDK2VwBCIEINTuctv5E1hK1bbY8fdp+K06/nwoy/HU++CXqI9EdVhC\n-----END PRIVATE KEY-----\n";
    const PUBLIC: &str = "-----BEGIN PUBLIC KEY-----\nMCowBQYDK2VwAyEAGb9ECWmEzf6FQbrBZ9w7lshQhqowtrbLDFw4rXAxZuE=\n-----END PUBLIC KEY-----\n";

    #[test]
    fn a_key_file_is_what_openssl_writes() {
        let key = SigningKey::read(PRIVATE).unwrap();
        assert_eq!(key.public(), &PublicKey::read(PUBLIC).unwrap());
        assert_eq!(key.public(), &PublicKey::read(PRIVATE).unwrap(), "an older private key serves as its public half");
        for bad in
            ["", PUBLIC, &PRIVATE.replace("MC4C", "MC4D"), "-----BEGIN PRIVATE KEY-----\n-----END PRIVATE KEY-----"]
        {
            assert!(SigningKey::read(bad).is_err(), "{bad}");
        }
        assert_eq!(format!("{key:?}"), format!("SigningKey({})", key.public().id()));
    }

    #[test]
    fn the_id_of_a_key_is_the_thumbprint_of_rfc_8037() {
        let x = BASE64_URL_SAFE_NO_PAD.decode("11qYAYKxCrfVS_7TyWQHOg7hcvPapiMlrwIaaPcHURo").unwrap();
        let key = PublicKey::new(x.try_into().unwrap());
        assert_eq!(key.id(), "kPrK_qmxVWaYVA9wwBF6Iuo3vVzz7TxHCTwXBygrS4k");
    }

    #[test]
    fn keys_are_read_from_the_settings_and_the_derived_one_stays_published() {
        let folder = tempfile::tempdir().unwrap();
        let (new, old) = (folder.path().join("new.pem"), folder.path().join("old.pem"));
        std::fs::write(&new, PRIVATE).unwrap();
        let config = |signing: &Path, older: &[&Path]| ArchiveConfig {
            signing_key_file: signing.to_owned(),
            older_key_files: older.iter().map(|path| path.to_path_buf()).collect(),
            checkpoint_every: Duration::from_secs(3600),
            checkpoint_entries: 1_000,
            look_every: Duration::from_secs(600),
            keep: Duration::from_secs(3600),
            sinks: vec![],
        };
        let derived = |number: u8| SigningKey::derive(&[number; 32]).unwrap().public().clone();
        let none = ArchiveKeys::read(&config(Path::new(""), &[]), &[1; 32], &[vec![2; 32]]).unwrap();
        assert_eq!(none.signing.public(), &derived(1));
        assert_eq!(none.public, PublicKeys::new([derived(1), derived(2)]));
        let named = ArchiveKeys::read(&config(&new, &[&new]), &[1; 32], &[]).unwrap();
        assert_eq!(named.public, PublicKeys::new([PublicKey::read(PUBLIC).unwrap(), derived(1)]));
        assert!(matches!(
            ArchiveKeys::read(&config(&new, &[&old]), &[1; 32], &[]),
            Err(ArchiveKeysError::Unreadable { .. })
        ));
        std::fs::write(&old, "no key").unwrap();
        assert!(matches!(ArchiveKeys::read(&config(&old, &[]), &[1; 32], &[]), Err(ArchiveKeysError::Unusable { .. })));
    }

    #[test]
    fn a_published_set_verifies_and_nothing_else_does() {
        let (old, new) = (SigningKey::derive(&[1; 32]).unwrap(), SigningKey::derive(&[2; 32]).unwrap());
        let set = PublicKeys::new([new.public().clone(), old.public().clone(), new.public().clone()]);
        let read = PublicKeys::read(&set.to_jwks().to_string()).unwrap();
        assert_eq!((&read, read.ids().count()), (&set, 2));
        let signature = old.sign(b"bytes");
        assert_eq!(read.verify(old.public().id(), b"bytes", &signature), Some(true));
        assert_eq!(read.verify(old.public().id(), b"bites", &signature), Some(false));
        assert_eq!(read.verify(new.public().id(), b"bytes", &signature), Some(false));
        assert_eq!(read.verify(old.public().id(), b"bytes", "?"), Some(false));
        assert_eq!(read.verify("somebody", b"bytes", &signature), None);
        assert_eq!(PublicKeys::read(&format!("{PUBLIC}{PUBLIC}")).unwrap().ids().count(), 1);
        for bad in ["", "{}", r#"{"keys":[]}"#, r#"{"keys":[{"kty":"OKP","crv":"Ed25519","x":"AA"}]}"#] {
            assert_eq!(PublicKeys::read(bad), Err(BadKey::Jwks), "{bad}");
        }
    }
}
