//! Links that sign in once, for development: `dev` prints one for each role.
//!
//! Nothing makes such a link over HTTP, so a service that was not started for development has none.

use super::{Console, sign_in};
use crate::app::Gateway;
use crate::http::trace;
use crate::run_desk;
use actix_web::web::{Data, Path, Query};
use actix_web::{HttpRequest, HttpResponse};
use console::BASE;
use domain::json::sha256_hex;
use domain::{Caller, Code, Failure, Moment, Principal, Scopes, Tenant};
use serde::{Deserialize, Serialize};
use sign_in::Opened;
use std::time::Duration;
use store::{RecordKey, SignInMethod};
use telemetry::metrics;

/// How long a link can be used.
const GOOD_FOR: Duration = Duration::from_secs(12 * 60 * 60);

/// Whom a link signs in.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct LinkHolder {
    /// In which tenant.
    pub tenant: Tenant,
    /// As whom.
    pub principal: Principal,
    /// With which scopes.
    pub scopes: String,
}

/// Makes a link that signs somebody in once.
pub async fn sign_in_link(gateway: &Gateway, holder: &LinkHolder) -> Result<Option<String>, store::StoreError> {
    let Some(console) = &gateway.console else { return Ok(None) };
    let secret = super::session::secret()?;
    let key = RecordKey::sign_in_link(&sha256_hex(secret.as_bytes()));
    gateway.store.of(&Tenant::of_service()).browsers().keep_once(key, holder, GOOD_FOR).await?;
    Ok(Some(console.address(&format!("/link/{secret}"))))
}

#[derive(Debug, Deserialize)]
pub(super) struct LinkQuery {
    to: Option<String>,
}

/// `GET /console/link/{secret}`: signs in, once.
pub(super) async fn follow(
    request: HttpRequest,
    secret: Path<String>,
    query: Query<LinkQuery>,
    gateway: Data<Gateway>,
) -> HttpResponse {
    sign_in::answered(&gateway, &request, async |console| {
        let signed_in = Box::pin(follow_once(&gateway, console, &request, &secret, query.to.as_deref())).await;
        metrics::SIGN_INS.add(["link", if signed_in.is_ok() { "ok" } else { "refused" }], 1);
        match signed_in {
            Ok(response) => Ok(response),
            Err(failure) if failure.code.retryable() => Err(failure),
            Err(failure) => {
                gateway.refusals.note("sign_in_link");
                Ok(sign_in::refusal(&gateway, &request, console, &failure))
            }
        }
    })
    .await
}

async fn follow_once(
    gateway: &Gateway,
    console: &Console,
    request: &HttpRequest,
    secret: &str,
    to: Option<&str>,
) -> Result<HttpResponse, Failure> {
    let refused = |why: &str| Failure::new(Code::Unauthenticated, why.to_owned());
    if !gateway.addresses.admit(gateway.addresses.address_of(request)) {
        return Err(
            Failure::new(Code::RateLimited, "too many sign-ins were begun from this address").retry_after_ms(10_000)
        );
    }
    let header = |name: &str| request.headers().get(name).and_then(|value| value.to_str().ok());
    // A page of somebody else must not sign a browser in, and whoever looks ahead must not use a link up.
    if header("sec-fetch-site").is_some_and(|site| !matches!(site, "none" | "same-origin"))
        || header("sec-purpose").is_some()
    {
        return Err(refused("open the link from where it was printed, by hand"));
    }
    let key = RecordKey::sign_in_link(&sha256_hex(secret.as_bytes()));
    let taken = gateway.store.of(&Tenant::of_service()).browsers().take_once::<LinkHolder>(key).await;
    let holder = taken.map_err(|error| run_desk::no_store(&error))?;
    let holder = holder
        .ok_or_else(|| refused("this link was used, or is over; start `quartermaster dev` again for a new one"))?;
    let now: Moment = gateway.store.now().await.map_err(|error| run_desk::no_store(&error))?;
    tracing::info!(trace_id = trace::id_of(request), "somebody signed in by a link");
    let caller = Caller {
        tenant: holder.tenant,
        principal: holder.principal,
        scopes: Scopes::parse(&holder.scopes),
        expires_at: now,
        token: None,
        labels: Vec::new(),
    };
    let opened = Opened { caller: &caller, method: SignInMethod::Link, proven_at: now, basis: "link".to_owned() };
    let to = sign_in::own_path(Some(to.unwrap_or(BASE)));
    sign_in::open(gateway, console, request, opened, &to).await
}
