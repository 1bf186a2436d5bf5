//! One issuer we believe: its name, what it may sign with, and its keys, fixed or published.

use crate::bounds::IssuerBounds;
use crate::config::{Algorithm, ConfigError, IssuerConfig};
use crate::keys::{Fingerprint, VerifyingKey};
use crate::mint::{SigningKey, SigningKeyError};
use crate::refused::TokenRefused;
use crate::remote::{KeySource, RemoteKeys};
use crate::verifier::VerifierError;
use arc_swap::ArcSwapOption;
use aws_lc_rs::rsa;
use aws_lc_rs::signature::RsaPublicKeyComponents;
use domain::Moment;
use jsonwebtoken::DecodingKey;
use std::io;
use std::path::Path;
use std::sync::Arc;

pub(crate) struct Issuer {
    pub(crate) name: String,
    pub(crate) bounds: IssuerBounds,
    algorithms: Vec<Algorithm>,
    keys: IssuerKeys,
}

enum IssuerKeys {
    Fixed(Arc<VerifyingKey>),
    Remote(Box<RemoteKeys>),
}

/// Why an issuer's key file is of no use.
#[derive(Debug, thiserror::Error)]
pub enum KeyFileError {
    /// It could not be read.
    #[error("could not read it")]
    Unreadable(#[source] io::Error),
    /// It should hold a shared secret.
    #[error("it holds no secret for HS256")]
    Secret(#[source] SigningKeyError),
    /// It holds what only the issuer should have.
    #[error("it holds a private key where the public one belongs")]
    Private,
    /// It should hold a public key for one of the allowed algorithms.
    #[error("it holds no PEM public key for any of the issuer's algorithms")]
    NotAPublicKey,
}

impl Issuer {
    pub(crate) async fn open(config: IssuerConfig, http: egress::HttpClient) -> Result<Issuer, VerifierError> {
        let bounds = config.bounds();
        let IssuerConfig { issuer: name, algorithms, key_file, jwks_url, refetch_every, max_stale, .. } = config;
        let keys = match (key_file, jwks_url) {
            (Some(path), None) => {
                let read = read_key(&path, &algorithms).await;
                let key = read.map_err(|source| VerifierError::KeyFile { issuer: name.clone(), source })?;
                IssuerKeys::Fixed(Arc::new(key))
            }
            (None, Some(url)) => {
                let (issuer, algorithms) = (name.clone(), algorithms.clone());
                let source = KeySource { issuer, url, algorithms, http, held: ArcSwapOption::empty() };
                IssuerKeys::Remote(Box::new(RemoteKeys::new(source, refetch_every, max_stale)))
            }
            (Some(_), Some(_)) | (None, None) => return Err(VerifierError::Config(ConfigError::KeySource(name))),
        };
        Ok(Issuer { name, bounds, algorithms, keys })
    }

    /// The key a token must have been signed with. The header only chooses among what the issuer may use.
    pub(crate) async fn key(
        &self,
        alg: &str,
        kid: Option<&str>,
        now: Moment,
    ) -> Result<Arc<VerifyingKey>, TokenRefused> {
        let algorithm = Algorithm::named(alg).filter(|named| self.algorithms.contains(named));
        let algorithm = algorithm.ok_or(TokenRefused::WrongAlgorithm)?;
        match &self.keys {
            // There is no choice, so a key id has nothing to say.
            IssuerKeys::Fixed(key) if key.algorithm() == algorithm => Ok(Arc::clone(key)),
            IssuerKeys::Fixed(_) => Err(TokenRefused::WrongAlgorithm),
            IssuerKeys::Remote(keys) => keys.find(kid, algorithm, now).await,
        }
    }

    /// Whether the key that once verified a token is still one of the issuer's.
    pub(crate) async fn still_holds(&self, fingerprint: Fingerprint, now: Moment) -> bool {
        match &self.keys {
            IssuerKeys::Fixed(key) => key.fingerprint() == fingerprint,
            IssuerKeys::Remote(keys) => keys.still_holds(fingerprint, now).await,
        }
    }

    pub(crate) fn usable(&self, now: Moment) -> bool {
        match &self.keys {
            IssuerKeys::Fixed(_) => true,
            IssuerKeys::Remote(keys) => keys.usable(now),
        }
    }

    /// How old the published keys are; `None` if they are not published, or were never fetched.
    pub(crate) fn key_age(&self, now: Moment) -> Option<(std::time::Duration, std::time::Duration)> {
        match &self.keys {
            IssuerKeys::Fixed(_) => None,
            IssuerKeys::Remote(keys) => Some((keys.age(now)?, keys.max_stale)),
        }
    }

    pub(crate) async fn warm(&self, now: Moment) {
        match &self.keys {
            IssuerKeys::Remote(keys) => keys.warm(now).await,
            IssuerKeys::Fixed(_) => {}
        }
    }
}

async fn read_key(path: &Path, algorithms: &[Algorithm]) -> Result<VerifyingKey, KeyFileError> {
    let text = tokio::fs::read_to_string(path).await.map_err(KeyFileError::Unreadable)?;
    if algorithms.contains(&Algorithm::Hs256) {
        let secret = SigningKey::parse(&text).map_err(KeyFileError::Secret)?;
        return Ok(VerifyingKey::hs256(secret.secret()));
    }
    // The PEM reader would take the public half out of some private keys, and the file would go on lying about.
    if text.contains("PRIVATE KEY-----") {
        return Err(KeyFileError::Private);
    }
    algorithms.iter().find_map(|algorithm| public_key(&text, *algorithm)).ok_or(KeyFileError::NotAPublicKey)
}

fn public_key(pem: &str, algorithm: Algorithm) -> Option<VerifyingKey> {
    let read = match algorithm {
        Algorithm::Rs256 => DecodingKey::from_rsa_pem(pem.as_bytes()),
        Algorithm::Es256 => DecodingKey::from_ec_pem(pem.as_bytes()),
        Algorithm::EdDsa => DecodingKey::from_ed_pem(pem.as_bytes()),
        Algorithm::Hs256 => return None,
    };
    let read = read.ok()?;
    let bytes = read.try_get_as_bytes().ok()?;
    match algorithm {
        Algorithm::Rs256 => {
            let numbers = RsaPublicKeyComponents::<Vec<u8>>::from(&rsa::PublicKey::from_der(bytes).ok()?);
            VerifyingKey::rs256(None, &numbers.n, &numbers.e)
        }
        Algorithm::Es256 => VerifyingKey::es256(None, bytes),
        Algorithm::EdDsa => VerifyingKey::ed25519(None, bytes),
        Algorithm::Hs256 => None,
    }
}
