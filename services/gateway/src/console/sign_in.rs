//! Signing in to an issuer, proving once more who one is, and signing out.
//!
//! A sign-in that was begun is a record that can be taken once, within ten minutes, by the browser that began it.

use super::oidc::{OidcIssuer, SignInStart, encode};
use super::person::{self, ConsolePerson};
use super::session::{BrowserKey, CookieKind, same, secret};
use super::{Console, form, grants, reply};
use crate::app::Gateway;
use crate::http::{guard, trace};
use crate::run_desk;
use actix_web::http::StatusCode;
use actix_web::web::{Data, Payload, Query};
use actix_web::{HttpRequest, HttpResponse};
use console::BASE;
use console::parts::{Notice, NoticeKind};
use console::sign_in::{self as page, SignInOption, SignInView};
use domain::json::sha256_hex;
use domain::{Caller, Code, Failure, Moment, Principal, Tenant};
use identity::IdTokenChecks;
use serde::{Deserialize, Serialize};
use std::time::Duration;
use store::{AuditEntry, BrowserSession, CallVerdict, Phase, RecordKey, SignInMethod};
use telemetry::metrics;

/// How long a sign-in may take.
const TAKES: Duration = Duration::from_secs(600);
/// Longer addresses are none of ours.
const LONGEST_PATH: usize = 2_000;

/// What is kept of a sign-in while the browser is at the issuer.
#[derive(Serialize, Deserialize)]
struct SignInRecord {
    issuer: String,
    state: String,
    nonce: String,
    verifier: String,
    to: String,
    tenant: Option<String>,
    /// Who has to come back, if somebody proves once more who they are.
    again: Option<Principal>,
}

/// The query of the page, and of the step to the issuer.
#[derive(Debug, Deserialize)]
pub(super) struct SignInQuery {
    to: Option<String>,
    issuer: Option<usize>,
    tenant: Option<String>,
    #[serde(default)]
    again: bool,
}

/// `GET /console/sign-in`: how to sign in.
pub(super) async fn show(request: HttpRequest, query: Query<SignInQuery>, gateway: Data<Gateway>) -> HttpResponse {
    let to = own_path(query.to.as_deref());
    answered(&gateway, &request, async |console| {
        let view = SignInView { options: options(console, &to, None), ..empty(console) };
        Ok(drawn(&gateway, &request, StatusCode::OK, &view))
    })
    .await
}

/// `GET /console/sign-in/start`: to the issuer.
pub(super) async fn start(
    request: HttpRequest,
    query: Query<SignInQuery>,
    gateway: Data<Gateway>,
    person: Option<ConsolePerson>,
) -> HttpResponse {
    answered(&gateway, &request, async |console| {
        // Whoever is not signed in can make us write; an address can do that so often and not more.
        let address = gateway.addresses.address_of(&request);
        if person.is_none() && !gateway.addresses.admit(address) {
            gateway.refusals.note("address_limit");
            return Err(Failure::new(Code::RateLimited, "too many sign-ins were begun from this address")
                .retry_after_ms(10_000));
        }
        let unknown = || Failure::new(Code::NotFound, "no such issuer");
        let issuer = console.issuers.get(query.issuer.unwrap_or_default()).ok_or_else(unknown)?;
        let drawn = || secret().map_err(|error| run_desk::no_store(&error));
        let (held, state, nonce, verifier) = (drawn()?, drawn()?, drawn()?, drawn()?);
        let again = person.as_ref().filter(|_| query.again).map(|person| person.session.principal.clone());
        let redirect = console.address("/callback");
        let began = SignInStart {
            redirect: &redirect,
            state: &state,
            nonce: &nonce,
            verifier: &verifier,
            fresh: again.as_ref().map(|_| console.step_up),
        };
        let leads = issuer.begin(began).await?;
        let record = SignInRecord {
            issuer: issuer.settings.issuer.clone(),
            to: own_path(query.to.as_deref()),
            tenant: query.tenant.clone(),
            state,
            nonce,
            verifier,
            again,
        };
        let key = RecordKey::sign_in(&sha256_hex(held.as_bytes()));
        let kept = gateway.store.of(&Tenant::of_service()).browsers().keep_once(key, &record, TAKES).await;
        kept.map_err(|error| run_desk::no_store(&error))?;
        let mut response = reply::see_other(&leads, &trace::id_of(&request));
        cookies(&mut response, &[console.set_cookie(CookieKind::SignIn, &held)]);
        Ok(response)
    })
    .await
}

/// What the issuer sends the browser back with.
#[derive(Debug, Deserialize)]
pub(super) struct CallbackQuery {
    code: Option<String>,
    state: Option<String>,
    iss: Option<String>,
    error: Option<String>,
}

/// `GET /console/callback`: back from the issuer.
pub(super) async fn callback(
    request: HttpRequest,
    query: Query<CallbackQuery>,
    gateway: Data<Gateway>,
) -> HttpResponse {
    answered(&gateway, &request, async |console| {
        let finished = finish(&gateway, console, &request, &query).await;
        let result = if finished.is_ok() { "ok" } else { "refused" };
        metrics::SIGN_INS.add(["issuer", result], 1);
        let (mut response, refused) = match finished {
            Ok(response) => (response, None),
            Err(failure) if failure.code.retryable() => return Err(failure),
            Err(failure) => (refusal(&gateway, &request, console, &failure), Some(failure)),
        };
        if let Some(failure) = refused {
            gateway.refusals.note("sign_in");
            tracing::info!(code = failure.code.as_str(), "a sign-in was refused");
        }
        cookies(&mut response, &[console.drop_cookie(CookieKind::SignIn)]);
        Ok(response)
    })
    .await
}

async fn finish(
    gateway: &Gateway,
    console: &Console,
    request: &HttpRequest,
    query: &CallbackQuery,
) -> Result<HttpResponse, Failure> {
    let refused = |why: &str| Failure::new(Code::Unauthenticated, why.to_owned());
    let over = || refused("this sign-in is over, was used, or was begun in another browser");
    let held = console.cookie(request, CookieKind::SignIn).ok_or_else(over)?;
    let key = RecordKey::sign_in(&sha256_hex(held.as_bytes()));
    let taken = gateway.store.of(&Tenant::of_service()).browsers().take_once::<SignInRecord>(key).await;
    let record = taken.map_err(|error| run_desk::no_store(&error))?.ok_or_else(over)?;
    if !query.state.as_deref().is_some_and(|state| same(state, &record.state)) {
        return Err(over());
    }
    let issuer = console.issuers.iter().find(|issuer| issuer.settings.issuer == record.issuer).ok_or_else(over)?;
    // RFC 9207: an answer that names another issuer was meant for another sign-in.
    let named = issuer.document().await?.authorization_response_iss_parameter_supported;
    if query.iss.as_ref().map_or(named, |iss| *iss != record.issuer) {
        return Err(refused("the answer does not come from the issuer that was asked"));
    }
    if let Some(error) = &query.error {
        let word: String = error.chars().filter(|c| c.is_ascii_lowercase() || *c == '_').take(60).collect();
        return Err(refused(&format!("the issuer did not sign you in: {word}")));
    }
    let code = query.code.as_deref().ok_or_else(over)?;
    let token = issuer.exchange(code, &console.address("/callback"), &record.verifier).await?;
    let now = gateway.clock.now();
    let checks = IdTokenChecks { issuer: &record.issuer, client_id: &issuer.settings.client_id, nonce: &record.nonce };
    let who = gateway.verifier.id_token(&token, checks, now).await.map_err(|token_refused| {
        gateway.refusals.note(token_refused.reason());
        match token_refused.status() {
            503 => Failure::new(Code::KeysUnavailable, "the issuer's keys are unavailable").retry_after_ms(5_000),
            _ => refused("the ID token of this sign-in is not valid"),
        }
    })?;
    if let Some(before) = &record.again {
        let fresh = who.proven_at.is_some_and(|at| now.since(at) <= console.step_up + gateway.settings.identity.leeway);
        if *before != who.principal || !fresh {
            return Err(refused("the issuer did not confirm anew that it is you"));
        }
    }
    let proven_at = who.proven_at.unwrap_or(now).min(now);
    let mut callers = grants::callers(gateway, &issuer.settings, &who);
    if let Some(wanted) = &record.tenant {
        callers.retain(|caller| caller.tenant.as_str() == wanted);
    }
    match callers.as_slice() {
        [] => {
            if let Some(caller) = grants::concerned(gateway, &issuer.settings, &who) {
                let why = Some("no right".to_owned());
                let entry = entry(gateway, &caller, "refused", why, &trace::id_of(request));
                let noted = gateway.store.of(&caller.tenant).audit().note(&entry).await;
                noted.map_err(|error| run_desk::no_store(&error))?;
            }
            Err(refused(
                "you are known, but nothing here is yours: no tenant and no right belongs to your account or your groups",
            ))
        }
        [caller] => {
            let opened = Opened { caller, method: SignInMethod::Issuer, proven_at, basis: record.issuer.clone() };
            open(gateway, console, request, opened, &record.to).await
        }
        several => Ok(choose(gateway, console, request, issuer, several, &record.to)),
    }
}

/// Who signs in, and how they proved it.
pub(super) struct Opened<'a> {
    pub(super) caller: &'a Caller,
    pub(super) method: SignInMethod,
    pub(super) proven_at: Moment,
    pub(super) basis: String,
}

/// Opens a session, in the place of the one the browser had.
pub(super) async fn open(
    gateway: &Gateway,
    console: &Console,
    request: &HttpRequest,
    opened: Opened<'_>,
    to: &str,
) -> Result<HttpResponse, Failure> {
    let trace_id = trace::id_of(request);
    let no_store = |error: store::StoreError| run_desk::no_store(&error);
    let now = gateway.store.now().await.map_err(no_store)?;
    let key = BrowserKey::fresh(&opened.caller.tenant).map_err(no_store)?;
    let session = BrowserSession {
        principal: opened.caller.principal.clone(),
        scopes: opened.caller.scopes.to_claim(),
        method: opened.method,
        signed_in_at: now,
        proven_at: opened.proven_at,
        seen_at: now,
    };
    let caller = person::caller(&key, &session, console);
    let entry = entry(gateway, &caller, "sign_in", Some(opened.basis), &trace_id);
    let browsers = gateway.store.of(&caller.tenant).browsers();
    browsers.open(&key.digest(), &session, console.times, &entry).await.map_err(no_store)?;
    // What the browser held before is of no use to anybody any more.
    if let Some(before) = console.cookie(request, CookieKind::Session).as_deref().and_then(BrowserKey::parse) {
        let entry = self::entry(gateway, &caller, "sign_out", Some("signed in anew".to_owned()), &trace_id);
        let browsers = gateway.store.of(&before.tenant).browsers();
        if before.tenant == caller.tenant {
            browsers.close(&before.digest(), &entry).await.map_err(no_store)?;
        }
    }
    let mut response = reply::see_other(to, &trace_id);
    cookies(&mut response, &[console.set_cookie(CookieKind::Session, key.value())]);
    Ok(response)
}

/// `POST /console/sign-out`: on every replica at once.
pub(super) async fn sign_out(
    person: ConsolePerson,
    request: HttpRequest,
    payload: Payload,
    gateway: Data<Gateway>,
) -> HttpResponse {
    answered(&gateway, &request, async |console| {
        let form::EmptyForm {} = form::read(&gateway, &person, &request, payload).await?;
        let caller = &person.authed.caller;
        let entry = entry(&gateway, caller, "sign_out", None, &person.authed.trace_id);
        let closed = gateway.store.of(&caller.tenant).browsers().close(&person.key.digest(), &entry).await;
        closed.map_err(|error| run_desk::no_store(&error))?;
        metrics::SIGN_INS.add(["browser", "signed_out"], 1);
        let mut response = reply::see_other(&format!("{BASE}/sign-in"), &person.authed.trace_id);
        cookies(&mut response, &[console.drop_cookie(CookieKind::Session)]);
        Ok(response)
    })
    .await
}

/// The audit log's entry for somebody who signed in or out.
fn entry(
    gateway: &Gateway,
    caller: &Caller,
    verdict: &'static str,
    basis: Option<String>,
    trace_id: &str,
) -> AuditEntry {
    AuditEntry {
        actor: Some(gateway.executor.person(caller)),
        target: Some("console".to_owned()),
        decision: Some(CallVerdict { verdict, basis, rule: None, comment: None }),
        trace: Some(trace_id.to_owned()),
        client: Some("console".into()),
        ..AuditEntry::new(Phase::SignIn)
    }
}

/// Answers a request of somebody who need not be signed in.
pub(super) async fn answered(
    gateway: &Gateway,
    request: &HttpRequest,
    work: impl AsyncFnOnce(&Console) -> Result<HttpResponse, Failure>,
) -> HttpResponse {
    let trace_id = trace::id_of(request);
    let failed = |failure: &Failure| {
        let page = reply::failed(failure, &trace_id);
        let response = reply::outside(page.status, &page.title, gateway.clock.now(), &trace_id, &page.content);
        reply::with_retry(response, failure)
    };
    let Some(console) = &gateway.console else {
        return failed(&Failure::new(Code::NotFound, "the console is not served here"));
    };
    if !guard::admits(gateway, request) {
        metrics::AUTH_FAILURES.add(["bad_origin"], 1);
        return failed(&Failure::new(Code::BadOrigin, "this host or origin is not served here"));
    }
    work(console).await.unwrap_or_else(|failure| failed(&failure))
}

fn choose(
    gateway: &Gateway,
    console: &Console,
    request: &HttpRequest,
    issuer: &OidcIssuer,
    callers: &[Caller],
    to: &str,
) -> HttpResponse {
    let number = console.issuers.iter().position(|known| std::ptr::eq(known, issuer)).unwrap_or_default();
    let option = |caller: &Caller| SignInOption {
        name: caller.tenant.to_string(),
        address: start_address(number, to, Some(caller.tenant.as_str())),
    };
    let view = SignInView { tenants: callers.iter().map(option).collect(), ..empty(console) };
    drawn(gateway, request, StatusCode::OK, &view)
}

/// A sign-in that was refused: why, and how to try again.
pub(super) fn refusal(gateway: &Gateway, request: &HttpRequest, console: &Console, failure: &Failure) -> HttpResponse {
    let notice = Some(Notice::new(NoticeKind::Bad, failure.message.clone()));
    let view = SignInView { options: options(console, BASE, None), notice, ..empty(console) };
    drawn(gateway, request, StatusCode::FORBIDDEN, &view)
}

fn drawn(gateway: &Gateway, request: &HttpRequest, status: StatusCode, view: &SignInView) -> HttpResponse {
    reply::outside(status, "Sign in", gateway.clock.now(), &trace::id_of(request), &page::page(view))
}

fn empty(console: &Console) -> SignInView {
    SignInView { development: console.issuers.is_empty() && !console.secure, ..SignInView::default() }
}

fn options(console: &Console, to: &str, tenant: Option<&str>) -> Vec<SignInOption> {
    let option = |(number, issuer): (usize, &OidcIssuer)| SignInOption {
        name: issuer.settings.name.clone(),
        address: start_address(number, to, tenant),
    };
    console.issuers.iter().enumerate().map(option).collect()
}

fn start_address(number: usize, to: &str, tenant: Option<&str>) -> String {
    let tenant = tenant.map(|tenant| format!("&tenant={}", encode(tenant))).unwrap_or_default();
    format!("{BASE}/sign-in/start?issuer={number}{tenant}&to={}", encode(to))
}

/// Where somebody proves once more who they are, and comes back to this page.
pub(super) fn again_address(console: &Console, session: &BrowserSession, to: &str) -> Option<String> {
    let number = console.issuers.iter().position(|issuer| issuer.settings.issuer == session.principal.issuer)?;
    Some(format!("{}&again=true", start_address(number, to, None)))
}

/// A path of the console; anything else leads to its beginning, so that no link of ours leads elsewhere.
pub(super) fn own_path(wanted: Option<&str>) -> String {
    let own = |path: &&str| {
        let below = path.strip_prefix(BASE).is_some_and(|rest| rest.is_empty() || rest.starts_with(['/', '?']));
        below && path.len() <= LONGEST_PATH && !path.contains('\\') && path.bytes().all(|byte| byte.is_ascii_graphic())
    };
    wanted.filter(own).unwrap_or(BASE).to_owned()
}

fn cookies(response: &mut HttpResponse, cookies: &[actix_web::cookie::Cookie<'_>]) {
    for cookie in cookies {
        if response.add_cookie(cookie).is_err() {
            tracing::error!("a cookie cannot be written");
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nobody_is_led_away_from_the_console() {
        for own in ["/console", "/console/runs/run_1", "/console?after=1"] {
            assert_eq!(own_path(Some(own)), own);
        }
        for other in [
            "",
            "/",
            "//evil.example",
            "https://evil.example",
            "/consoleevil",
            "/console/\\evil",
            "/v1/runs",
            "/console/a b",
            "/console\n",
        ] {
            assert_eq!(own_path(Some(other)), "/console", "{other}");
        }
        assert_eq!(own_path(None), "/console");
    }
}
