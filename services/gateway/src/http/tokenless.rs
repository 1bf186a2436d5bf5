//! The listener without tokens, for the LanguageTool contract: `/health`, and MCP at `/mcp`.
//!
//! Off unless the settings name an address. Everybody who reaches it is one principal of one tenant with the scope
//! `tools:read` and no other, so nothing here can load write tools or decide a run: the scopes are written here, and no
//! setting and no header changes them. Everything behind this file is the same as for a caller with a token: policy,
//! limits, audit log, spans. Not here: what makes a caller of a token (see `http::caller`).

use crate::app::Gateway;
use crate::http::caller::{self, AuthRejection, AuthedRequest};
use crate::http::guard::OriginPolicy;
use crate::http::{health, mcp, trace};
use crate::protocol::selection;
use crate::settings::{TOKENLESS_ISSUER, TokenlessListener};
use actix_web::web::{self, Data, Path, Payload, ServiceConfig};
use actix_web::{HttpRequest, HttpResponse};
use domain::{Caller, Code, Failure, Moment, Principal, Scopes, Tenant, TokenScope};
use executor::Snapshot;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;
use telemetry::metrics;

/// The subject under which the audit log has what was called without a token.
const SUBJECT: &str = "tokenless";
/// No stream of theirs outlives this; a client that still wants one asks again.
const LASTS: Duration = Duration::from_secs(60);

/// Whom the listener answers, and for which tenant.
pub struct TokenlessPolicy {
    tenant: Tenant,
    doors: OriginPolicy,
}

impl TokenlessPolicy {
    /// As the settings say, for a listener at this address.
    pub fn new(listener: &TokenlessListener, address: SocketAddr, hosts: &[String]) -> TokenlessPolicy {
        let own = format!("http://{address}/mcp");
        let doors = OriginPolicy::new(&own, hosts, &[], address.ip().is_loopback());
        TokenlessPolicy { tenant: listener.tenant.clone(), doors }
    }

    fn caller(&self, now: Moment) -> Caller {
        Caller {
            tenant: self.tenant.clone(),
            principal: Principal::new(TOKENLESS_ISSUER, SUBJECT),
            scopes: Scopes::from_iter([TokenScope::ToolsRead]),
            expires_at: now.plus(LASTS),
            token: None,
            labels: Vec::new(),
        }
    }
}

/// The routes of the listener. There are no others.
pub fn routes(config: &mut ServiceConfig) {
    config.route("/health", web::get().to(health::health));
    config.route("/mcp", web::post().to(post));
    config.route("/mcp", web::delete().to(delete));
    config.route("/mcp", web::route().to(other_method));
    config.default_service(web::to(nothing_here));
}

/// `POST /mcp`: every read tool of the tenant is in the list, so nobody has to load one.
async fn post(
    request: HttpRequest,
    payload: Payload,
    gateway: Data<Gateway>,
    open: Data<TokenlessPolicy>,
) -> Result<HttpResponse, AuthRejection> {
    let authed = admit(&gateway, &open, &request).await?;
    let all = all_toolsets(&authed.snapshot, &authed.caller).map(Path::from);
    Ok(mcp::post(authed, request, payload, all, gateway).await)
}

/// `DELETE /mcp`: a session ends.
async fn delete(
    request: HttpRequest,
    gateway: Data<Gateway>,
    open: Data<TokenlessPolicy>,
) -> Result<HttpResponse, AuthRejection> {
    let authed = admit(&gateway, &open, &request).await?;
    Ok(mcp::delete(authed, request, gateway).await)
}

/// Any other method. There is no stream of a session: its list does not grow.
async fn other_method(
    request: HttpRequest,
    gateway: Data<Gateway>,
    open: Data<TokenlessPolicy>,
) -> Result<HttpResponse, AuthRejection> {
    Ok(mcp::other_method(admit(&gateway, &open, &request).await?).await)
}

/// Any other address.
async fn nothing_here(
    request: HttpRequest,
    gateway: Data<Gateway>,
    open: Data<TokenlessPolicy>,
) -> Result<HttpResponse, AuthRejection> {
    admit(&gateway, &open, &request).await?;
    let failure = Failure::new(Code::NotFound, "this listener has /health and /mcp");
    let failure = failure.next("everything else is at the service's own address, with a token");
    Err(caller::refused(&request, Some(&gateway), failure, trace::id_of(&request)))
}

/// Checks Host and Origin, and makes a caller. A web page must not read through the browser of somebody nearby, and here
/// is no token that it would lack.
async fn admit(
    gateway: &Data<Gateway>,
    open: &TokenlessPolicy,
    request: &HttpRequest,
) -> Result<AuthedRequest, AuthRejection> {
    let trace_id = trace::id_of(request);
    let refused = |failure| caller::refused(request, Some(gateway), failure, trace::id_of(request));
    if !open.doors.admit(request.headers()) {
        metrics::AUTH_FAILURES.add(["bad_origin"], 1);
        let failure = Failure::new(Code::BadOrigin, "this host or origin is not served here");
        return Err(refused(failure.next("name the host in tokenless.hosts")));
    }
    let snapshot = gateway.tenants.get_when_read(&open.tenant).await.map_err(refused)?;
    gateway.upstreams.touch(&open.tenant);
    telemetry::note(|attributes| {
        attributes.set(telemetry::names::TENANT, open.tenant.as_str());
    });
    let caller = Arc::new(open.caller(gateway.clock.now()));
    Ok(AuthedRequest { caller, snapshot, trace_id, client: caller::client_of(request), place: None })
}

/// The toolsets of the tenant, as an address of `/mcp/x` would name them; `None` if it has none. One that a rule keeps
/// from being loaded is left out, instead of taking the others with it.
fn all_toolsets(snapshot: &Snapshot, caller: &Caller) -> Option<String> {
    let names = snapshot.catalog.toolsets().iter().map(|toolset| toolset.name.as_str());
    let open: Vec<&str> = names.filter(|name| selection::read(snapshot, caller, name).is_ok()).collect();
    (!open.is_empty()).then(|| open.join(","))
}
