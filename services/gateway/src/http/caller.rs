//! Who asks: the extractor without which no handler runs.
//!
//! Every failing branch is a refusal; there is no anonymous caller to fall into.

use crate::app::Gateway;
use crate::http::{admission, guard, reply, trace};
use crate::protocol::exchange::{McpExchange, require};
use actix_web::dev::Payload;
use actix_web::http::StatusCode;
use actix_web::http::header::{AUTHORIZATION, RETRY_AFTER};
use actix_web::web::Data;
use actix_web::{FromRequest, HttpRequest, HttpResponse, ResponseError};
use domain::{Caller, Code, Failure, Tenant, TokenScope};
use executor::{SlotGuard, Snapshot};
use identity::TokenRefused;
use serde_json::json;
use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use telemetry::metrics;

/// An authenticated principal of a tenant that is served here.
pub struct AuthedRequest {
    /// Who.
    pub caller: Arc<Caller>,
    /// Its tenant, as it is at this moment.
    pub snapshot: Arc<Snapshot>,
    /// The request's trace id.
    pub trace_id: String,
    /// The program the caller uses, as its `User-Agent` names it.
    pub client: Option<String>,
    /// The request's place among those under way; whoever waits gives it back first.
    pub place: Option<SlotGuard>,
}

impl AuthedRequest {
    /// The request as the protocol sees it, without anything of HTTP.
    pub fn exchange(&self, gateway: &Data<Gateway>) -> McpExchange {
        McpExchange {
            gateway: Arc::clone(gateway),
            caller: Arc::clone(&self.caller),
            snapshot: Arc::clone(&self.snapshot),
            trace_id: self.trace_id.clone(),
            client: self.client.clone(),
        }
    }
}

/// Why a request was rejected before its handler.
#[derive(Debug)]
pub struct AuthRejection {
    failure: Failure,
    status: StatusCode,
    mcp: bool,
    trace_id: String,
    challenge: Option<String>,
}

impl std::fmt::Display for AuthRejection {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "refused with status {}", self.status)
    }
}

impl ResponseError for AuthRejection {
    fn status_code(&self) -> StatusCode {
        self.status
    }

    fn error_response(&self) -> HttpResponse {
        let mut response = reply::start(self.status, &self.trace_id);
        if let Some(challenge) = &self.challenge {
            response.insert_header(("WWW-Authenticate", challenge.as_str()));
        }
        let too_soon = matches!(self.status, StatusCode::SERVICE_UNAVAILABLE | StatusCode::TOO_MANY_REQUESTS);
        if let (true, Some(millis)) = (too_soon, self.failure.retry_after_ms) {
            response.insert_header((RETRY_AFTER, millis.div_ceil(1_000)));
        }
        let body = if self.mcp {
            mcp::Refusal::before_call(mcp::Era::Modern, None, &self.failure).body(Some(&self.trace_id))
        } else {
            reply::error_body(&self.failure, &self.trace_id).into()
        };
        response.content_type("application/json").body(body)
    }
}

/// The longest name of a program that is recorded.
const LONGEST_CLIENT: usize = 128;

/// The program that sent a request, as it names itself: printable and short, because it is anybody's text.
pub(super) fn client_of(request: &HttpRequest) -> Option<String> {
    let told = request.headers().get(actix_web::http::header::USER_AGENT)?.to_str().ok()?;
    let told: String = told.chars().filter(|c| (' '..='~').contains(c)).take(LONGEST_CLIENT).collect();
    (!told.trim().is_empty()).then_some(told)
}

impl FromRequest for AuthedRequest {
    type Error = AuthRejection;
    type Future = Pin<Box<dyn Future<Output = Result<AuthedRequest, AuthRejection>>>>;

    fn from_request(request: &HttpRequest, _: &mut Payload) -> Self::Future {
        let request = request.clone();
        Box::pin(async move {
            let trace_id = trace::id_of(&request);
            let Some(gateway) = request.app_data::<Data<Gateway>>() else {
                let failure = Failure::new(Code::Internal, "the service is not wired");
                return Err(refused(&request, None, failure, trace_id));
            };
            match authenticate(gateway, &request).await {
                Ok((caller, snapshot)) => {
                    telemetry::note(|attributes| {
                        attributes.set(telemetry::names::TENANT, caller.tenant.as_str());
                    });
                    if let Err(failure) = keeps_to_its_addresses(&caller, request.path()) {
                        return Err(refused(&request, Some(gateway), failure, trace_id));
                    }
                    match admission::admit(gateway, &request, &caller, &snapshot) {
                        Ok(place) => {
                            let client = client_of(&request);
                            Ok(AuthedRequest { caller, snapshot, trace_id, client, place })
                        }
                        Err(failure) => Err(refused(&request, Some(gateway), failure, trace_id)),
                    }
                }
                Err(failure) => Err(refused(&request, Some(gateway), failure, trace_id)),
            }
        })
    }
}

/// The tenant of a caller whose token was verified before; of any other request nobody knows it yet.
pub(super) async fn known_tenant(request: &HttpRequest) -> Option<Tenant> {
    let gateway = request.app_data::<Data<Gateway>>()?;
    let caller = gateway.verifier.known_caller(bearer(request).ok()?, gateway.clock.now()).await?;
    caller.ok().map(|caller| caller.tenant.clone())
}

async fn authenticate(gateway: &Gateway, request: &HttpRequest) -> Result<(Arc<Caller>, Arc<Snapshot>), Failure> {
    let (token, now) = (bearer(request), gateway.clock.now());
    // A token that was verified before costs no signature, so its address is not counted: nobody is locked out by a
    // stranger behind the same proxy.
    let known = match &token {
        Ok(token) => gateway.verifier.known_caller(token, now).await,
        Err(_) => None,
    };
    let counted = known.is_none().then(|| gateway.addresses.address_of(request));
    if counted.is_some_and(|address| !gateway.addresses.admit(address)) {
        gateway.refusals.note("address_limit");
        metrics::RATE_LIMITED.add(["address", ""], 1);
        return Err(Failure::new(Code::RateLimited, "too many requests of this address had no valid token")
            .next("wait, then send a valid token")
            .retry_after_ms(10_000));
    }
    if !guard::admits(gateway, request) {
        metrics::AUTH_FAILURES.add(["bad_origin"], 1);
        return Err(Failure::new(Code::BadOrigin, "this host or origin is not served here"));
    }
    let token = token.inspect_err(|_| metrics::AUTH_FAILURES.add(["no_token"], 1))?;
    let verified = match known {
        Some(known) => known,
        // In a box: a token is verified once, and every request would carry the size of it along.
        None => Box::pin(gateway.verifier.new_caller(token, now)).await,
    };
    // Neither a good token nor an issuer that is away speaks against the address.
    if let Some(address) = counted
        && verified.as_ref().err().is_none_or(|refused| refused.status() == 503)
    {
        gateway.addresses.give_back(address);
    }
    let caller = verified.map_err(|refused| {
        gateway.refusals.note(refused.reason());
        if matches!(refused, TokenRefused::ForeignTenant) {
            metrics::CROSS_TENANT_DENIED.add([], 1);
        }
        refusal(refused)
    })?;
    let snapshot = gateway.tenants.get_when_read(&caller.tenant).await?;
    // A tenant that is used has its external lists kept up to date; one that sleeps costs its servers nothing.
    gateway.upstreams.touch(&caller.tenant);
    Ok((caller, snapshot))
}

/// What the sender of a refused token reads. Only whoever has a genuine token learns what its issuer may not say.
fn refusal(refused: TokenRefused) -> Failure {
    let invalid =
        |message: String| Failure::new(Code::Unauthenticated, message).details(json!({ "error": "invalid_token" }));
    match refused {
        TokenRefused::BadTenant => unserved(),
        TokenRefused::ForeignTenant => Failure::new(Code::ForbiddenTenant, refused.to_string()),
        TokenRefused::ForeignScope => Failure::new(Code::ForbiddenScope, refused.to_string()),
        TokenRefused::KeysUnavailable => {
            Failure::new(Code::KeysUnavailable, "the issuer's JWKS is unavailable").retry_after_ms(5_000)
        }
        TokenRefused::LivesTooLong | TokenRefused::NoPerson => invalid(refused.to_string()),
        TokenRefused::NotAToken
        | TokenRefused::TooLong
        | TokenRefused::UnknownIssuer
        | TokenRefused::WrongAlgorithm
        | TokenRefused::UnknownKey
        | TokenRefused::BadSignature
        | TokenRefused::MissingClaim { .. }
        | TokenRefused::BadClaim { .. }
        | TokenRefused::WrongAudience
        | TokenRefused::NotYetValid
        | TokenRefused::Expired => invalid("the token is not valid".to_owned()),
    }
}

fn unserved() -> Failure {
    Failure::new(Code::ForbiddenTenant, "the token names no tenant that is served here")
}

/// The token of the request: one `Authorization` header, scheme in any case, and never from the query.
fn bearer(request: &HttpRequest) -> Result<&str, Failure> {
    let mut headers = request.headers().get_all(AUTHORIZATION);
    let missing = || Failure::new(Code::Unauthenticated, "a bearer token is needed");
    let only = headers.next().ok_or_else(missing)?;
    if headers.next().is_some() {
        return Err(Failure::new(Code::InvalidRequest, "two Authorization headers were sent"));
    }
    token_of(only.as_bytes()).ok_or_else(missing)
}

/// What stands behind the scheme. Looked at as bytes: a token is long, and its verifier reads every letter anyway.
fn token_of(value: &[u8]) -> Option<&str> {
    let (scheme, token) = value.split_at(value.iter().position(|byte| *byte == b' ')?);
    let bearer = scheme.eq_ignore_ascii_case(b"bearer") && token.is_ascii();
    token.get(1..).filter(|_| bearer).and_then(|token| std::str::from_utf8(token).ok())
}

pub(super) fn refused(
    request: &HttpRequest,
    gateway: Option<&Data<Gateway>>,
    failure: Failure,
    trace_id: String,
) -> AuthRejection {
    let mcp = request.path().starts_with("/mcp");
    let status = if mcp {
        mcp::Refusal::before_call(mcp::Era::Modern, None, &failure).status
    } else {
        mcp::codes::rest_status(failure.code)
    };
    let status = StatusCode::from_u16(status).unwrap_or(StatusCode::UNAUTHORIZED);
    let challenge = gateway.and_then(|gateway| gateway.challenge_for(&failure));
    AuthRejection { failure, status, mcp, trace_id, challenge }
}

/// A query that cannot be read, reported like every other failure.
pub fn bad_query(error: &actix_web::error::QueryPayloadError, request: &HttpRequest) -> AuthRejection {
    let failure = Failure::new(Code::InvalidRequest, error.to_string());
    refused(request, None, failure, trace::id_of(request))
}

/// A runner's token opens nothing but the addresses of runners: it lies on hosts that execute what others ask for.
fn keeps_to_its_addresses(caller: &Caller, path: &str) -> Result<(), Failure> {
    if caller.scopes.allow(TokenScope::RunnerWork) && !path.starts_with("/v1/runner/") {
        let message = "a token with the scope runner:work is for /v1/runner alone";
        return Err(Failure::new(Code::InsufficientScope, message));
    }
    Ok(())
}

/// Checks that the caller has a scope.
pub fn needs(authed: &AuthedRequest, scope: TokenScope) -> Result<(), Failure> {
    require(&authed.caller, scope)
}

/// Checks that the caller is a person who reads the tenant's audit log, which tells what everybody asked for.
pub fn audits(authed: &AuthedRequest) -> Result<(), Failure> {
    needs(authed, TokenScope::AuditRead)?;
    if authed.caller.scopes.allow(TokenScope::ToolsRead) {
        let message = "a token that may call tools is no person's, and only people read the audit log";
        return Err(
            Failure::new(Code::InsufficientScope, message).details(json!({ "scope": TokenScope::AuditRead.as_str() }))
        );
    }
    Ok(())
}

/// Checks that the caller is a person who administers the tenant. A token that can call tools may be an agent's, and no
/// agent may change its own rules.
pub fn administers(authed: &AuthedRequest) -> Result<(), Failure> {
    needs(authed, TokenScope::TenantAdmin)?;
    if authed.caller.scopes.allow(TokenScope::ToolsRead) {
        let message = "a token that may call tools is no person's, and only people administer a tenant";
        return Err(Failure::new(Code::InsufficientScope, message)
            .details(json!({ "scope": TokenScope::TenantAdmin.as_str() })));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_token_stands_behind_its_scheme_and_one_space() {
        for (value, token) in [
            ("Bearer abc.d", Some("abc.d")),
            ("bEARER abc", Some("abc")),
            ("Bearer  abc", Some(" abc")),
            ("Bearer ", Some("")),
            ("Bearer", None),
            ("Basic abc", None),
            ("Bearer\tabc", None),
            (" Bearer abc", None),
            ("Bearer ab\u{e9}", None),
            ("", None),
        ] {
            assert_eq!(token_of(value.as_bytes()), token, "{value:?}");
        }
        assert_eq!(token_of(b"Bearer ab\xff"), None);
    }
}
