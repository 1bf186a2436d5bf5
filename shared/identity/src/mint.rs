//! Makes tokens for development and tests, with a shared secret kept in a file.
//!
//! Not here: a real issuer. Nobody logs in, and nothing is ever revoked but by replacing the key.

use aws_lc_rs::{hmac, rand};
use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use domain::Moment;
use serde_json::json;
use std::fmt;
use std::fs::{File, OpenOptions};
use std::io::{self, Write};
use std::path::Path;

/// RFC 7518, 3.2: a key at least as long as the hash.
const LEAST_SECRET_BYTES: usize = 32;

/// A secret for HS256. Does not print.
#[derive(Clone, PartialEq, Eq)]
pub struct SigningKey(Vec<u8>);

/// Why there is no signing key.
#[derive(Debug, thiserror::Error)]
pub enum SigningKeyError {
    /// The file could not be read or written.
    #[error("could not read or write the key file")]
    File(#[source] io::Error),
    /// The file holds something else.
    #[error("a key file holds one line of base64url text, at least {LEAST_SECRET_BYTES} bytes when decoded")]
    NotAKey,
    /// The system has no random bytes to give.
    #[error("no random bytes for a key")]
    NoRandomness,
}

/// What a minted token says. Nothing is checked, so that tests can say what an honest issuer would not.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MintedClaims {
    /// Who vouches.
    pub iss: String,
    /// Whom the token is for.
    pub aud: String,
    /// Who holds it.
    pub sub: String,
    /// The tenant it speaks for.
    pub tenant: String,
    /// What it may be used for, separated by blanks.
    pub scope: String,
    /// Whose it is, as a claim `email`; left out if empty.
    pub email: String,
    /// The labels a runner may serve; left out if empty.
    pub labels: Vec<String>,
    /// When it ends, to the second.
    pub exp: Moment,
    /// When it was made, to the second.
    pub iat: Moment,
}

impl SigningKey {
    /// Makes a new key.
    pub fn generate() -> Result<SigningKey, SigningKeyError> {
        let mut secret = vec![0; LEAST_SECRET_BYTES];
        rand::fill(&mut secret).map_err(|_| SigningKeyError::NoRandomness)?;
        Ok(SigningKey(secret))
    }

    /// Reads a key from its file.
    pub fn load(path: &Path) -> Result<SigningKey, SigningKeyError> {
        let text = std::fs::read_to_string(path).map_err(SigningKeyError::File)?;
        SigningKey::parse(&text)
    }

    /// Writes the key into a new file that only its owner can read. An existing file is left alone, since tokens may
    /// hang on the key in it.
    pub fn save(&self, path: &Path) -> Result<(), SigningKeyError> {
        let mut file = create_private(path).map_err(SigningKeyError::File)?;
        let line = URL_SAFE_NO_PAD.encode(&self.0) + "\n";
        file.write_all(line.as_bytes()).and_then(|()| file.sync_all()).map_err(SigningKeyError::File)
    }

    pub(crate) fn parse(text: &str) -> Result<SigningKey, SigningKeyError> {
        let secret = URL_SAFE_NO_PAD.decode(text.trim_end()).map_err(|_| SigningKeyError::NotAKey)?;
        if secret.len() < LEAST_SECRET_BYTES { Err(SigningKeyError::NotAKey) } else { Ok(SigningKey(secret)) }
    }

    pub(crate) fn secret(&self) -> &[u8] {
        &self.0
    }
}

impl fmt::Debug for SigningKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("SigningKey(..)")
    }
}

/// Signs the claims with HS256.
pub fn mint(key: &SigningKey, claims: &MintedClaims) -> String {
    let seconds = |moment: Moment| moment.millis() / 1000;
    let mut payload = json!({
        "iss": claims.iss, "aud": claims.aud, "sub": claims.sub, "tenant": claims.tenant, "scope": claims.scope,
        "exp": seconds(claims.exp), "iat": seconds(claims.iat),
    });
    if !claims.email.is_empty() {
        payload["email"] = json!(claims.email);
    }
    if !claims.labels.is_empty() {
        payload["labels"] = json!(claims.labels);
    }
    let part = |json: &serde_json::Value| URL_SAFE_NO_PAD.encode(json.to_string());
    let message = format!("{}.{}", part(&json!({ "alg": "HS256", "typ": "JWT" })), part(&payload));
    let tag = hmac::sign(&hmac::Key::new(hmac::HMAC_SHA256, &key.0), message.as_bytes());
    format!("{message}.{}", URL_SAFE_NO_PAD.encode(tag.as_ref()))
}

#[cfg(unix)]
fn create_private(path: &Path) -> io::Result<File> {
    use std::os::unix::fs::OpenOptionsExt;
    OpenOptions::new().write(true).create_new(true).mode(0o600).open(path)
}

#[cfg(not(unix))]
fn create_private(path: &Path) -> io::Result<File> {
    OpenOptions::new().write(true).create_new(true).open(path)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_key_comes_back_from_its_file() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("signing.key");
        let key = SigningKey::generate().unwrap();

        key.save(&path).unwrap();

        assert_eq!(SigningKey::load(&path).unwrap(), key);
        assert_ne!(SigningKey::generate().unwrap(), key);
    }

    #[cfg(unix)]
    #[test]
    fn only_its_owner_can_read_a_key_file() {
        use std::os::unix::fs::PermissionsExt;
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("signing.key");

        SigningKey::generate().unwrap().save(&path).unwrap();

        assert_eq!(std::fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o600);
    }

    #[test]
    fn an_existing_key_is_not_replaced() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("signing.key");
        let first = SigningKey::generate().unwrap();
        first.save(&path).unwrap();

        let second = SigningKey::generate().unwrap().save(&path);

        assert!(matches!(second, Err(SigningKeyError::File(cause)) if cause.kind() == io::ErrorKind::AlreadyExists));
        assert_eq!(SigningKey::load(&path).unwrap(), first);
    }

    #[test]
    fn short_and_broken_keys_are_refused() {
        for bad in ["", "\n", "secret", "not base64!", &URL_SAFE_NO_PAD.encode([7; 31])] {
            assert!(matches!(SigningKey::parse(bad), Err(SigningKeyError::NotAKey)), "{bad}");
        }
    }

    #[test]
    fn a_key_does_not_print() {
        assert_eq!(format!("{:?}", SigningKey::generate().unwrap()), "SigningKey(..)");
    }
}
