//! The one way to a caller: a token that is genuine, meant for us, within its time and complete.
//!
//! What is checked, in this order: size and shape, issuer, algorithm, key, signature, audience, time, person, subject
//! and scope, tenant, and whether the issuer may vouch for that tenant and those scopes. A token seen before skips to time and key, since those can change after it was verified.

use crate::claims::Claims;
use crate::config::{Config, ConfigError};
use crate::issuer::{Issuer, KeyFileError};
use crate::known::{KnownTokens, VerifiedToken, digest_of};
use crate::refused::TokenRefused;
use crate::token::{MOST_BYTES, ParsedToken};
use domain::{Caller, Moment, TokenDigest};
use futures_util::future::join_all;
use std::sync::Arc;
use std::time::Duration;

/// Verifies tokens. One per process, shared by all requests.
pub struct Verifier {
    resource: String,
    leeway: Duration,
    issuers: Vec<Arc<Issuer>>,
    known: KnownTokens,
}

/// Why no token could ever be verified.
#[derive(Debug, thiserror::Error)]
pub enum VerifierError {
    /// The settings are wrong.
    #[error("the identity settings are refused")]
    Config(#[source] ConfigError),
    /// A key file is of no use.
    #[error("the key file of issuer `{issuer}` is of no use")]
    KeyFile {
        /// The issuer's name.
        issuer: String,
        /// What is wrong with the file.
        #[source]
        source: KeyFileError,
    },
}

impl Verifier {
    /// Checks the settings and reads the key files. Published keys are fetched when first needed, so that we start
    /// while an issuer is down; see [`Verifier::warm`].
    pub async fn new(config: Config, http: egress::HttpClient) -> Result<Verifier, VerifierError> {
        config.check().map_err(VerifierError::Config)?;
        let mut issuers = Vec::with_capacity(config.issuers.len());
        for issuer in config.issuers {
            issuers.push(Arc::new(Issuer::open(issuer, http.clone()).await?));
        }
        Ok(Verifier { resource: config.resource, leeway: config.leeway, issuers, known: KnownTokens::new() })
    }

    /// The caller a token speaks for at this moment, or why there is none.
    pub async fn caller(&self, token: &str, now: Moment) -> Result<Arc<Caller>, TokenRefused> {
        match self.known_caller(token, now).await {
            Some(known) => known,
            None => self.new_caller(token, now).await,
        }
    }

    /// The same for a token that was verified before, which needs no signature; `None` for any other.
    pub async fn known_caller(&self, token: &str, now: Moment) -> Option<Result<Arc<Caller>, TokenRefused>> {
        // Before hashing: nobody gets us to hash a megabyte.
        let digest = (token.len() <= MOST_BYTES).then(|| digest_of(token))?;
        let known = self.known.find(&digest)?;
        if let Err(refused) = known.window.check(now, self.leeway) {
            return Some(Err(refused));
        }
        if known.issuer.still_holds(known.key, now).await {
            return Some(Ok(Arc::clone(&known.caller)));
        }
        self.known.forget(&digest);
        None
    }

    /// The same for a token that is new here: its signature is verified, and the token is known from then on.
    pub async fn new_caller(&self, token: &str, now: Moment) -> Result<Arc<Caller>, TokenRefused> {
        if token.len() > MOST_BYTES {
            return Err(TokenRefused::TooLong);
        }
        let digest = digest_of(token);
        let known = self.verify(token, digest, now).await?;
        let caller = Arc::clone(&known.caller);
        self.known.keep(digest, known);
        Ok(caller)
    }

    /// Whether the token that a caller came in with would still be taken: for whoever serves one request for long.
    /// A token that was forgotten meanwhile would not, because nobody has kept it to verify it again.
    pub async fn still_vouches(&self, caller: &Caller, now: Moment) -> bool {
        let Some(known) = caller.token.and_then(|digest| self.known.find(&digest)) else { return false };
        known.window.check(now, self.leeway).is_ok() && known.issuer.still_holds(known.key, now).await
    }

    /// The issuers we believe, by their exact names, for the resource metadata of RFC 9728.
    pub fn issuers(&self) -> impl Iterator<Item = &str> {
        self.issuers.iter().map(|issuer| issuer.name.as_str())
    }

    /// How old the keys of each issuer are that publishes them, as far as they were fetched, and how old they may become.
    pub fn key_ages(&self, now: Moment) -> impl Iterator<Item = (&str, (Duration, Duration))> {
        self.issuers.iter().filter_map(move |issuer| Some((issuer.name.as_str(), issuer.key_age(now)?)))
    }

    /// Whether some issuer has a key that may be used now. Published keys count once they have been fetched.
    pub fn usable(&self, now: Moment) -> bool {
        self.issuers.iter().any(|issuer| issuer.usable(now))
    }

    /// Fetches published keys that are missing or soon due, each at most as often as its issuer allows.
    ///
    /// Called at start and then on a timer (every minute or two), it spares requests the wait; without it they fetch
    /// for themselves. A failure is logged and changes nothing.
    pub async fn warm(&self, now: Moment) {
        join_all(self.issuers.iter().map(|issuer| issuer.warm(now))).await;
    }

    async fn verify(&self, text: &str, digest: TokenDigest, now: Moment) -> Result<VerifiedToken, TokenRefused> {
        let token = ParsedToken::parse(text)?;
        let claims = Claims::parse(&token.payload)?;
        let issuer = self.issuer(claims.issuer()?)?;
        let key = issuer.key(&token.header.alg, token.header.kid.as_deref(), now).await?;
        key.verify(token.message, token.signature)?;

        claims.check_audience(&self.resource)?;
        let window = claims.window()?;
        window.check(now, self.leeway)?;
        issuer.bounds.check_life(&claims, window.expires_at, now, self.leeway)?;
        let person = issuer.bounds.person(&token.payload)?;
        let mut caller = Caller { token: Some(digest), ..claims.caller(window.expires_at)? };
        caller.principal.person = person;
        issuer.bounds.check_caller(&caller)?;
        let caller = Arc::new(caller);
        let keep = window.expires_at.plus(self.leeway).since(now);
        Ok(VerifiedToken { caller, window, issuer: Arc::clone(issuer), key: key.fingerprint(), keep })
    }

    pub(crate) fn leeway(&self) -> Duration {
        self.leeway
    }

    pub(crate) fn issuer(&self, name: &str) -> Result<&Arc<Issuer>, TokenRefused> {
        self.issuers.iter().find(|issuer| issuer.name == name).ok_or(TokenRefused::UnknownIssuer)
    }
}
