//! OpenID Connect against one issuer: discovery, the address that begins a sign-in, and the exchange of its code.
//!
//! Code flow with PKCE (S256). Endpoints are those the issuer publishes under its own name; the document must name the
//! issuer exactly. The ID token is verified by `identity`.

use crate::settings::ConsoleIssuer;
use anyhow::Context;
use base64::Engine;
use base64::engine::general_purpose::{STANDARD, URL_SAFE_NO_PAD};
use domain::{Code, Failure};
use egress::{HttpClient, Method};
use serde::Deserialize;
use sha2::{Digest, Sha256};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

/// The largest document of an issuer.
const LARGEST: usize = 1 << 20;
/// How long what an issuer published is believed.
const BELIEVED: Duration = Duration::from_secs(600);

/// What is read of an issuer's document.
#[derive(Debug, Deserialize)]
pub(super) struct IssuerDocument {
    issuer: String,
    authorization_endpoint: String,
    token_endpoint: String,
    #[serde(default)]
    token_endpoint_auth_methods_supported: Vec<String>,
    /// Whether the answer names its issuer (RFC 9207).
    #[serde(default)]
    pub(super) authorization_response_iss_parameter_supported: bool,
}

/// An issuer that people sign in to.
pub(super) struct OidcIssuer {
    pub(super) settings: ConsoleIssuer,
    secret: Option<String>,
    client: HttpClient,
    known: Mutex<Option<(Instant, Arc<IssuerDocument>)>>,
}

/// What begins a sign-in.
pub(super) struct SignInStart<'a> {
    pub(super) redirect: &'a str,
    pub(super) state: &'a str,
    pub(super) nonce: &'a str,
    pub(super) verifier: &'a str,
    /// How fresh the proof must be, if it must be.
    pub(super) fresh: Option<Duration>,
}

#[derive(Deserialize)]
struct TokenAnswer {
    id_token: String,
}

impl OidcIssuer {
    pub(super) fn read(settings: &ConsoleIssuer, client: HttpClient) -> anyhow::Result<OidcIssuer> {
        let read = |path: &std::path::PathBuf| {
            std::fs::read_to_string(path).with_context(|| format!("cannot read client_secret_file {}", path.display()))
        };
        let secret = settings.client_secret_file.as_ref().map(read).transpose()?;
        let secret = secret.map(|text| text.trim_end_matches(['\r', '\n']).to_owned());
        Ok(OidcIssuer { settings: settings.clone(), secret, client, known: Mutex::default() })
    }

    /// What the issuer publishes about itself.
    pub(super) async fn document(&self) -> Result<Arc<IssuerDocument>, Failure> {
        let known = self.known.lock().unwrap_or_else(PoisonError::into_inner).clone();
        if let Some((_, document)) = known.filter(|(at, _)| at.elapsed() < BELIEVED) {
            return Ok(document);
        }
        let address = format!("{}/.well-known/openid-configuration", self.settings.issuer.trim_end_matches('/'));
        let bytes = egress::get_capped(&self.client, &address, LARGEST).await.map_err(|error| {
            tracing::warn!(issuer = self.settings.issuer, %error, "the document of an issuer cannot be fetched");
            away()
        })?;
        let document: IssuerDocument = serde_json::from_slice(&bytes).map_err(|_| away())?;
        if document.issuer != self.settings.issuer {
            tracing::error!(issuer = self.settings.issuer, "the document of an issuer names another one");
            return Err(away());
        }
        let document = Arc::new(document);
        *self.known.lock().unwrap_or_else(PoisonError::into_inner) = Some((Instant::now(), Arc::clone(&document)));
        Ok(document)
    }

    /// Where the browser is sent to sign in.
    pub(super) async fn begin(&self, start: SignInStart<'_>) -> Result<String, Failure> {
        let document = self.document().await?;
        let challenge = URL_SAFE_NO_PAD.encode(Sha256::digest(start.verifier.as_bytes()));
        let mut pairs = vec![
            ("response_type", "code".to_owned()),
            ("client_id", self.settings.client_id.clone()),
            ("redirect_uri", start.redirect.to_owned()),
            ("scope", self.settings.scopes.join(" ")),
            ("state", start.state.to_owned()),
            ("nonce", start.nonce.to_owned()),
            ("code_challenge", challenge),
            ("code_challenge_method", "S256".to_owned()),
        ];
        if let Some(fresh) = start.fresh {
            pairs.push(("max_age", fresh.as_secs().to_string()));
            pairs.push(("prompt", "login".to_owned()));
        }
        let sign = if document.authorization_endpoint.contains('?') { '&' } else { '?' };
        Ok(format!("{}{sign}{}", document.authorization_endpoint, query(&pairs)))
    }

    /// Gives the code back and receives the ID token.
    pub(super) async fn exchange(&self, code: &str, redirect: &str, verifier: &str) -> Result<String, Failure> {
        let document = self.document().await?;
        let mut pairs = vec![
            ("grant_type", "authorization_code".to_owned()),
            ("code", code.to_owned()),
            ("redirect_uri", redirect.to_owned()),
            ("code_verifier", verifier.to_owned()),
        ];
        let methods = &document.token_endpoint_auth_methods_supported;
        let in_body = !methods.is_empty() && !methods.iter().any(|method| method == "client_secret_basic");
        let mut authorization = None;
        match &self.secret {
            Some(secret) if !in_body => {
                let pair = format!("{}:{}", encode(&self.settings.client_id), encode(secret));
                authorization = Some(format!("Basic {}", STANDARD.encode(pair)));
            }
            Some(secret) => {
                pairs.push(("client_id", self.settings.client_id.clone()));
                pairs.push(("client_secret", secret.clone()));
            }
            None => pairs.push(("client_id", self.settings.client_id.clone())),
        }
        let mut headers = vec![("Content-Type", "application/x-www-form-urlencoded"), ("Accept", "application/json")];
        headers.extend(authorization.as_deref().map(|value| ("Authorization", value)));
        let body = query(&pairs).into_bytes();
        let answer = egress::upload(&self.client, Method::POST, &document.token_endpoint, &headers, body).await;
        let (status, bytes) = answer.map_err(|error| {
            tracing::warn!(issuer = self.settings.issuer, %error, "a code could not be exchanged");
            away()
        })?;
        if status != 200 {
            tracing::warn!(issuer = self.settings.issuer, status, "an issuer refused a code");
            return Err(Failure::new(Code::Unauthenticated, "the issuer did not take the code of this sign-in"));
        }
        let answer: TokenAnswer = serde_json::from_slice(&bytes)
            .map_err(|_| Failure::new(Code::Unauthenticated, "the issuer sent no ID token"))?;
        Ok(answer.id_token)
    }
}

fn away() -> Failure {
    Failure::new(Code::KeysUnavailable, "the issuer cannot be reached, or does not say what it should")
        .next("Try again in a moment. If it stays, tell the operator.")
        .retry_after_ms(5_000)
}

fn query(pairs: &[(&str, String)]) -> String {
    pairs.iter().map(|(name, value)| format!("{name}={}", encode(value))).collect::<Vec<_>>().join("&")
}

/// A value as it stands in a query or a form.
pub(super) fn encode(text: &str) -> String {
    let plain = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'.' | b'_' | b'~');
    text.bytes().fold(String::with_capacity(text.len()), |mut out, byte| {
        match plain(byte) {
            true => out.push(char::from(byte)),
            false => out.push_str(&format!("%{byte:02X}")),
        }
        out
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_cannot_leave_their_place_in_a_query() {
        assert_eq!(encode("a b&c=d/é~-._"), "a%20b%26c%3Dd%2F%C3%A9~-._");
    }
}
