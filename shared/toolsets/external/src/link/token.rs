//! Tokens for servers that want one from an authorization server, by OAuth 2 client credentials (RFC 6749, section 4.4).
//!
//! A token is fetched when it is needed, by one at a time, through the guard of its own address, and is used until shortly
//! before it expires. It is kept in memory only. A server that says 401 to a token it took before gets a new one, once;
//! one that never took it is said to refuse us, and for a while nobody asks for another.
//!
//! Nothing of an authorization server's answer is repeated but the error codes of the standard.

use super::LinkKey;
use super::fault::{LinkFault, TokenFault};
use super::head::pause;
use super::measure::{AnswerCaps, Measure};
use super::target::ClientCredentials;
use crate::server::ClientAuthMethod;
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use domain::Tenant;
use egress::header::{ACCEPT, ACCEPT_ENCODING, CONTENT_ENCODING, CONTENT_TYPE, HeaderValue};
use egress::{Guarded, GuardedRequest, GuardedResponse, Method, SendError, Url};
use redact::SecretText;
use serde_json::Value;
use std::collections::{HashMap, VecDeque};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;
use tokio::sync::Mutex as AsyncMutex;
use tokio::time::Instant;
use tracing::Instrument as _;
use tracing::field::Empty;

/// How long an authorization server may take.
const WITHIN: Duration = Duration::from_secs(5);
/// What its answer may hold.
const ANSWER_BYTES: usize = 64 * 1024;
const ANSWER: AnswerCaps = AnswerCaps { nodes: 1_000, depth: 16 };
/// The longest token: it has to fit into a header.
const TOKEN_BYTES: usize = 16 * 1024;
/// How long a token is used whose life is not told, and the longest that any is.
const UNTOLD_LIFE: Duration = Duration::from_secs(300);
const LONGEST_LIFE: Duration = Duration::from_secs(24 * 3600);
/// How long before its end a token is used no more: a tenth of its life, and at most this.
const MARGIN: Duration = Duration::from_secs(60);
/// How long nobody asks again after a refusal.
const PEACE: Duration = Duration::from_secs(10);
/// How many tokens of a tenant are remembered.
const REMEMBERED: usize = 32;
/// The errors of the standard; others are not repeated.
const ERRORS: [&str; 7] = [
    "invalid_request",
    "invalid_client",
    "invalid_grant",
    "unauthorized_client",
    "unsupported_grant_type",
    "invalid_scope",
    "invalid_target",
];

/// Where the tokens for one server come from.
pub(crate) struct TokenSource {
    key: LinkKey,
    credentials: ClientCredentials,
    client: Guarded,
    state: AsyncMutex<TokenState>,
    given: Arc<GivenTokens>,
}

/// The tokens that were given lately, by tenant, so that they can be taken out of what a server says. They stay known
/// when their source is forgotten: an answer may still be on its way.
#[derive(Default)]
pub(crate) struct GivenTokens(Mutex<HashMap<Tenant, VecDeque<SecretText>>>);

impl GivenTokens {
    fn note(&self, tenant: &Tenant, token: SecretText) {
        let mut all = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let given = all.entry(tenant.clone()).or_default();
        given.truncate(REMEMBERED - 1);
        given.push_front(token);
    }

    /// Those of a tenant.
    pub(super) fn of(&self, tenant: &Tenant) -> Vec<SecretText> {
        let all = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        all.get(tenant).into_iter().flatten().cloned().collect()
    }
}

#[derive(Default)]
struct TokenState {
    token: Option<AccessToken>,
    /// Why there is none, and until when nobody asks again.
    refused: Option<(LinkFault, Instant)>,
}

/// A token that was given. Clones are the same token.
#[derive(Clone)]
pub(crate) struct AccessToken {
    header: HeaderValue,
    until: Instant,
    taken: Arc<AtomicBool>,
}

impl AccessToken {
    /// What `Authorization` is to say.
    pub(super) fn header(&self) -> HeaderValue {
        self.header.clone()
    }

    /// The server did not refuse it.
    pub(super) fn note_taken(&self) {
        self.taken.store(true, Ordering::Release);
    }
}

impl TokenSource {
    pub(super) fn new(
        key: LinkKey,
        credentials: ClientCredentials,
        client: Guarded,
        given: Arc<GivenTokens>,
    ) -> TokenSource {
        TokenSource { key, credentials, client, state: AsyncMutex::default(), given }
    }

    /// A token to use now: the one there is, or a new one. Whoever comes meanwhile waits for it.
    pub(super) async fn token(&self) -> Result<AccessToken, LinkFault> {
        let mut state = self.state.lock().await;
        if let Some(token) = state.token.as_ref().filter(|token| Instant::now() < token.until) {
            return Ok(token.clone());
        }
        if let Some((fault, until)) = &state.refused
            && Instant::now() < *until
        {
            return Err(fault.clone());
        }
        self.renew(&mut state).await
    }

    /// What to use instead of a token to which a server said 401; `None`: there is nothing better.
    pub(super) async fn instead_of(&self, refused: &AccessToken) -> Result<Option<AccessToken>, LinkFault> {
        let mut state = self.state.lock().await;
        match &state.token {
            // Somebody else has renewed it meanwhile.
            Some(token) if !Arc::ptr_eq(&token.taken, &refused.taken) => return Ok(Some(token.clone())),
            Some(_) | None => state.token = None,
        }
        if refused.taken.load(Ordering::Acquire) {
            return self.renew(&mut state).await.map(Some);
        }
        state.refused = Some((LinkFault::Credentials, Instant::now() + PEACE));
        Ok(None)
    }

    async fn renew(&self, state: &mut TokenState) -> Result<AccessToken, LinkFault> {
        state.token = None;
        let span = tracing::info_span!(
            "token request",
            otel.kind = "client",
            quartermaster.tenant = self.key.tenant.as_str(),
            error.type = Empty,
        );
        let fetched = self.fetch().instrument(span.clone()).await;
        let (tenant, server) = (&self.key.tenant, self.key.server.as_str());
        match fetched {
            Ok(token) => {
                telemetry::metrics::UPSTREAM_TOKENS.add([server, ""], 1);
                (state.token, state.refused) = (Some(token.clone()), None);
                Ok(token)
            }
            Err(fault) => {
                span.record("error.type", fault.code().as_str());
                telemetry::metrics::UPSTREAM_TOKENS.add([server, fault.code().as_str()], 1);
                tracing::warn!(%tenant, server, code = fault.code().as_str(), "no token for an external server");
                let peace = if matches!(fault, TokenFault::Rejected(_)) { PEACE } else { Duration::ZERO };
                state.refused = Some((fault.clone().into(), Instant::now() + peace));
                Err(fault.into())
            }
        }
    }

    async fn fetch(&self) -> Result<AccessToken, TokenFault> {
        let asked = Instant::now();
        let sent = tokio::time::timeout(WITHIN, self.client.send(self.request(), ANSWER_BYTES)).await;
        let answer = sent.map_err(|_| TokenFault::Failing(None))?.map_err(|error| match error {
            SendError::TooLong { .. } => TokenFault::NotAToken("its answer is too long"),
            SendError::Refused(_) | SendError::NoAnswer(_) if error.nothing_was_sent() => TokenFault::Unreachable,
            SendError::Refused(_) | SendError::NoAnswer(_) => TokenFault::Failing(None),
        })?;
        let (secret, life) = read(&answer)?;
        let mut header = HeaderValue::from_str(&format!("Bearer {}", secret.expose()))
            .map_err(|_| TokenFault::NotAToken("no header can hold its token"))?;
        header.set_sensitive(true);
        self.given.note(&self.key.tenant, secret);
        Ok(AccessToken { header, until: asked + usable(life), taken: Arc::default() })
    }

    fn request(&self) -> GuardedRequest<'_> {
        let ClientCredentials { token_url, client_id, client_secret, scope, audience, resource, method, .. } =
            &self.credentials;
        let mut pairs = vec![("grant_type", "client_credentials")];
        let optional = [("scope", scope), ("audience", audience), ("resource", resource)];
        pairs.extend(optional.iter().filter_map(|(name, value)| Some((*name, value.as_deref()?))));
        let mut request = GuardedRequest::new(Method::POST, token_url);
        match method {
            ClientAuthMethod::Basic => {
                let pair = format!("{}:{}", encoded(client_id), encoded(client_secret.expose()));
                request = request.authorized(&format!("Basic {}", STANDARD.encode(pair)));
            }
            ClientAuthMethod::Post => {
                pairs.extend([("client_id", client_id.as_str()), ("client_secret", client_secret.expose())]);
            }
        }
        let headers = [
            (CONTENT_TYPE, "application/x-www-form-urlencoded"),
            (ACCEPT, "application/json"),
            (ACCEPT_ENCODING, "identity"),
        ];
        request.headers.extend(headers.map(|(name, value)| (name, HeaderValue::from_static(value))));
        request.body = Some(form(&pairs).into_bytes());
        request
    }
}

/// How long a token is used that lives so long.
fn usable(life: Option<Duration>) -> Duration {
    let life = life.unwrap_or(UNTOLD_LIFE).min(LONGEST_LIFE);
    life - MARGIN.min(life / 10)
}

/// Pairs as a form sends them.
fn form(pairs: &[(&str, &str)]) -> String {
    // Written by whoever writes queries: the two are encoded alike.
    let Ok(mut url) = Url::parse("form:///") else { return String::new() };
    url.query_pairs_mut().extend_pairs(pairs);
    url.query().unwrap_or_default().to_owned()
}

/// One value as a form sends it.
fn encoded(value: &str) -> String {
    form(&[("", value)]).trim_start_matches('=').to_owned()
}

/// The token of an answer and how long it lives, or why there is none.
pub(super) fn read(answer: &GuardedResponse) -> Result<(SecretText, Option<Duration>), TokenFault> {
    if answer.headers.get(CONTENT_ENCODING).is_some_and(|encoding| encoding != "identity") {
        return Err(TokenFault::NotAToken("its answer is compressed although not asked for"));
    }
    let body = || -> Option<Value> {
        Measure::whole(ANSWER, &answer.body).ok()?;
        serde_json::from_slice(&answer.body).ok()
    };
    match answer.status {
        200 => {}
        400 | 401 | 403 => return Err(TokenFault::Rejected(body().as_ref().and_then(error_of))),
        429 | 500..=599 => return Err(TokenFault::Failing(pause(&answer.headers))),
        _ => return Err(TokenFault::NotAToken("its answer has another status than it may")),
    }
    let body = body().ok_or(TokenFault::NotAToken("its answer is not JSON"))?;
    let text = |name: &str| body.get(name).and_then(Value::as_str);
    if !text("token_type").is_some_and(|kind| kind.eq_ignore_ascii_case("bearer")) {
        return Err(TokenFault::NotAToken("its token is of another type than Bearer"));
    }
    let token = text("access_token").filter(|token| (1..=TOKEN_BYTES).contains(&token.len()));
    let token = token.filter(|token| token.bytes().all(|byte| byte.is_ascii_graphic()));
    let token = token.ok_or(TokenFault::NotAToken("its answer holds no token"))?;
    let life = body.get("expires_in").and_then(|life| match life {
        Value::Number(seconds) => seconds.as_f64(),
        // Some write the number as a text.
        Value::String(seconds) => seconds.parse().ok(),
        Value::Null | Value::Bool(_) | Value::Array(_) | Value::Object(_) => None,
    });
    let life = life.filter(|life| life.is_finite()).map(|life| life.clamp(0.0, LONGEST_LIFE.as_secs_f64()));
    Ok((SecretText::new(token), life.map(Duration::from_secs_f64)))
}

/// The error of the standard that an answer names.
fn error_of(body: &Value) -> Option<&'static str> {
    let named = body.get("error")?.as_str()?;
    ERRORS.into_iter().find(|error| *error == named)
}

#[cfg(test)]
mod tests {
    use super::*;
    use egress::header::HeaderMap;
    use serde_json::json;

    fn answer(status: u16, body: &str) -> GuardedResponse {
        GuardedResponse { status, headers: HeaderMap::new(), body: body.as_bytes().to_vec(), cut: false }
    }

    fn given(body: Value) -> Result<(String, Option<Duration>), TokenFault> {
        read(&answer(200, &body.to_string())).map(|(token, life)| (token.expose().to_owned(), life))
    }

    #[test]
    fn a_token_is_read_with_its_life() {
        let seconds = |life| Some(Duration::from_secs(life));
        for (life, read) in [
            (json!(3600), seconds(3600)),
            (json!("60"), seconds(60)),
            (json!(-5), seconds(0)),
            (json!(1e300), Some(LONGEST_LIFE)),
            (json!(null), None),
            (json!("soon"), None),
        ] {
            let body = json!({ "access_token": "t-1", "token_type": "bearer", "expires_in": life });
            assert_eq!(given(body), Ok(("t-1".to_owned(), read)), "{life}");
        }
        assert_eq!(usable(seconds(3600)), Duration::from_secs(3540));
        assert_eq!(usable(seconds(100)), Duration::from_secs(90));
        assert_eq!(usable(seconds(0)), Duration::ZERO, "it is used once and not kept");
        assert_eq!(usable(None), Duration::from_secs(270));
    }

    #[test]
    fn what_is_no_token_is_none_and_quotes_nobody() {
        for body in [
            json!({ "access_token": "t", "token_type": "mac" }),
            json!({ "access_token": "t" }),
            json!({ "token_type": "Bearer" }),
            json!({ "access_token": "", "token_type": "Bearer" }),
            json!({ "access_token": "a b", "token_type": "Bearer" }),
            json!({ "access_token": "a\r\nX: y", "token_type": "Bearer" }),
            json!({ "access_token": "x".repeat(TOKEN_BYTES + 1), "token_type": "Bearer" }),
            json!([]),
        ] {
            assert!(matches!(given(body.clone()), Err(TokenFault::NotAToken(_))), "{body}");
        }
        let deep = format!("{}{}", "[".repeat(1_000), "]".repeat(1_000));
        for (status, body, fault) in [
            (
                401,
                r#"{"error":"invalid_client","error_description":"word"}"#,
                TokenFault::Rejected(Some("invalid_client")),
            ),
            (400, r#"{"error":"my own words"}"#, TokenFault::Rejected(None)),
            (400, "<html>", TokenFault::Rejected(None)),
            (503, "", TokenFault::Failing(None)),
            (302, "", TokenFault::NotAToken("its answer has another status than it may")),
            (200, &deep, TokenFault::NotAToken("its answer is not JSON")),
        ] {
            assert_eq!(read(&answer(status, body)).map(drop), Err(fault), "{status} {body}");
        }
    }

    #[test]
    fn a_form_is_encoded_as_the_standard_wants_it() {
        assert_eq!(
            form(&[("grant_type", "client_credentials"), ("scope", "a b&c")]),
            "grant_type=client_credentials&scope=a+b%26c"
        );
        assert_eq!(encoded("p:w=d/ü"), "p%3Aw%3Dd%2F%C3%BC");
    }
}
