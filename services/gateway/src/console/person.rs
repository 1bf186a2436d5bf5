//! Who asks: the extractor without which no screen is drawn. It turns a browser's session into the same kind of caller
//! that a token makes.

use super::session::{BrowserKey, CookieKind};
use super::{Console, reply};
use crate::app::Gateway;
use crate::http::caller::AuthedRequest;
use crate::http::{admission, guard, trace};
use crate::run_desk;
use actix_web::dev::Payload;
use actix_web::http::{Method, StatusCode};
use actix_web::web::Data;
use actix_web::{FromRequest, HttpRequest, HttpResponse, ResponseError};
use console::{PersonView, message};
use domain::{Caller, Code, Failure, Moment, Scopes, TokenDigest};
use sha2::{Digest, Sha256};
use std::pin::Pin;
use std::sync::Arc;
use store::BrowserSession;
use telemetry::metrics;

/// A person who is signed in, and the request as the REST API would see it.
pub(super) struct ConsolePerson {
    /// What the functions of the REST API take.
    pub(super) authed: AuthedRequest,
    /// How they signed in.
    pub(super) session: BrowserSession,
    /// What their browser holds.
    pub(super) key: BrowserKey,
    /// The store's time.
    pub(super) now: Moment,
}

impl ConsolePerson {
    /// As the frame of a page shows them.
    pub(super) fn view(&self) -> PersonView {
        let caller = &self.authed.caller;
        PersonView {
            subject: caller.principal.subject.clone(),
            tenant: caller.tenant.to_string(),
            scopes: caller.scopes.iter().collect(),
            form_token: self.key.form_token(),
        }
    }
}

/// Why nobody is signed in, or why a person is not answered now.
#[derive(Debug)]
pub(super) enum ConsoleRejection {
    /// They have to sign in first.
    SignIn { address: String, trace_id: String, posted: bool, now: Moment },
    /// The request cannot be answered.
    Failed { failure: Box<Failure>, trace_id: String, now: Moment },
}

impl std::fmt::Display for ConsoleRejection {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("the console does not answer this request")
    }
}

impl ResponseError for ConsoleRejection {
    fn status_code(&self) -> StatusCode {
        self.error_response().status()
    }

    fn error_response(&self) -> HttpResponse {
        match self {
            ConsoleRejection::SignIn { address, trace_id, posted: false, .. } => reply::see_other(address, trace_id),
            ConsoleRejection::SignIn { address, trace_id, posted: true, now } => {
                let view = message::MessageView {
                    title: "You are signed out".to_owned(),
                    text: "Nothing was decided or changed. Sign in again, and look at the page once more.".to_owned(),
                    back: Some((address.clone(), "Sign in".to_owned())),
                    ..message::MessageView::default()
                };
                reply::outside(StatusCode::UNAUTHORIZED, "Signed out", *now, trace_id, &message::page(&view))
            }
            ConsoleRejection::Failed { failure, trace_id, now } => {
                let page = reply::failed(failure, trace_id);
                reply::with_retry(reply::outside(page.status, &page.title, *now, trace_id, &page.content), failure)
            }
        }
    }
}

impl FromRequest for ConsolePerson {
    type Error = ConsoleRejection;
    type Future = Pin<Box<dyn Future<Output = Result<ConsolePerson, ConsoleRejection>>>>;

    fn from_request(request: &HttpRequest, _: &mut Payload) -> Self::Future {
        let request = request.clone();
        Box::pin(async move {
            let trace_id = trace::id_of(&request);
            let now = crate::clock::SystemClock.now();
            let failed = |failure: Failure| ConsoleRejection::Failed {
                failure: Box::new(failure),
                trace_id: trace_id.clone(),
                now,
            };
            let off = || failed(Failure::new(Code::NotFound, "the console is not served here"));
            let gateway = request.app_data::<Data<Gateway>>().ok_or_else(off)?;
            let console = gateway.console.as_ref().ok_or_else(off)?;
            if !guard::admits(gateway, &request) {
                metrics::AUTH_FAILURES.add(["bad_origin"], 1);
                return Err(failed(Failure::new(Code::BadOrigin, "this host or origin is not served here")));
            }
            match signed_in(gateway, console, &request, &trace_id).await {
                Ok(Some(person)) => Ok(person),
                Ok(None) => Err(ConsoleRejection::SignIn {
                    address: sign_in_address(&request),
                    trace_id: trace_id.clone(),
                    posted: request.method() != Method::GET,
                    now,
                }),
                Err(failure) => Err(failed(failure)),
            }
        })
    }
}

/// Where to sign in, and to come back from there to what was asked for.
fn sign_in_address(request: &HttpRequest) -> String {
    let to = match request.method() == Method::GET {
        true => request.uri().path_and_query().map_or(console::BASE, |path| path.as_str()),
        // What was posted cannot be posted again; the page of a run stands before its last word.
        false => request.path().rsplit_once('/').map_or(console::BASE, |(page, _)| page),
    };
    format!("{}/sign-in?to={}", console::BASE, super::oidc::encode(to))
}

async fn signed_in(
    gateway: &Data<Gateway>,
    console: &Console,
    request: &HttpRequest,
    trace_id: &str,
) -> Result<Option<ConsolePerson>, Failure> {
    let Some(key) = console.cookie(request, CookieKind::Session).as_deref().and_then(BrowserKey::parse) else {
        return Ok(None);
    };
    let browsers = gateway.store.of(&key.tenant).browsers();
    let found = browsers.find(&key.digest(), console.times, true).await.map_err(|e| run_desk::no_store(&e))?;
    let Some((session, now)) = found else { return Ok(None) };
    let caller = Arc::new(caller(&key, &session, console));
    telemetry::note(|attributes| {
        attributes.set(telemetry::names::TENANT, caller.tenant.as_str());
    });
    let snapshot = gateway.tenants.get_when_read(&caller.tenant).await?;
    gateway.upstreams.touch(&caller.tenant);
    let place = admission::admit(gateway, request, &caller, &snapshot)?;
    let client = Some("console".to_owned());
    let authed = AuthedRequest { caller, snapshot, trace_id: trace_id.to_owned(), client, place };
    Ok(Some(ConsolePerson { authed, session, key, now }))
}

/// The caller that a session stands for. In the place of a token's digest stands that of the cookie, so that the audit
/// log tells two sessions of one person apart.
pub(super) fn caller(key: &BrowserKey, session: &BrowserSession, console: &Console) -> Caller {
    let digest: [u8; 32] = Sha256::digest(key.value().as_bytes()).into();
    Caller {
        tenant: key.tenant.clone(),
        principal: session.principal.clone(),
        scopes: Scopes::parse(&session.scopes),
        expires_at: session.signed_in_at.plus(console.times.longest),
        token: Some(TokenDigest::new(digest)),
        labels: Vec::new(),
    }
}
