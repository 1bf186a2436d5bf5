//! Pages as answers: the headers of every page, redirections, and failures in words.

use super::person::ConsolePerson;
use crate::app::Gateway;
use crate::http::trace;
use actix_web::error::InternalError;
use actix_web::http::StatusCode;
use actix_web::http::header::{CACHE_CONTROL, LOCATION, RETRY_AFTER};
use actix_web::{HttpRequest, HttpResponse, HttpResponseBuilder};
use console::message::{self, MessageView};
use console::{Markup, NavCounts, PageFrame, Screen, layout};
use domain::{Code, Failure, Moment};
use futures_util::FutureExt;
use serde_json::Value;
use std::panic::AssertUnwindSafe;
use tracing::Instrument;

/// What a browser may do with a page of ours: read it, and load what this host serves. No script but our files, and none
/// of them makes elements of text but by the one policy that `live.js` names.
const CONTENT_SECURITY_POLICY: &str = "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; \
     font-src 'self'; connect-src 'self'; form-action 'self'; base-uri 'none'; frame-ancestors 'none'; \
     require-trusted-types-for 'script'; trusted-types qm";

/// The beginning of every answer of the console.
pub(super) fn start(status: StatusCode, trace_id: &str) -> HttpResponseBuilder {
    let mut builder = HttpResponse::build(status);
    builder
        .insert_header((trace::HEADER, trace_id))
        .insert_header(("Content-Security-Policy", CONTENT_SECURITY_POLICY))
        .insert_header(("Cross-Origin-Opener-Policy", "same-origin"))
        .insert_header(("Cross-Origin-Resource-Policy", "same-origin"))
        .insert_header(("X-Content-Type-Options", "nosniff"))
        .insert_header(("X-Frame-Options", "DENY"))
        // Not `no-referrer`: with that, browsers say `Origin: null` for our own forms.
        .insert_header(("Referrer-Policy", "same-origin"))
        .insert_header(("Permissions-Policy", "camera=(), geolocation=(), microphone=(), payment=()"))
        .insert_header((CACHE_CONTROL, "no-store"));
    builder
}

/// Leads the browser elsewhere; what it posted is not posted again.
pub(super) fn see_other(address: &str, trace_id: &str) -> HttpResponse {
    start(StatusCode::SEE_OTHER, trace_id).insert_header((LOCATION, address)).finish()
}

/// A page as it was drawn.
pub(super) fn html(status: StatusCode, trace_id: &str, page: Markup) -> HttpResponse {
    start(status, trace_id).content_type("text/html; charset=utf-8").body(page.into_string())
}

/// What a handler drew: the page within its frame.
pub(super) struct DrawnPage {
    pub(super) status: StatusCode,
    pub(super) title: String,
    pub(super) screen: Screen,
    pub(super) live: bool,
    /// Where the page is read again, if the request was a form.
    pub(super) address: Option<String>,
    pub(super) content: Markup,
}

impl DrawnPage {
    /// A page that was drawn as wanted.
    pub(super) fn ok(screen: Screen, title: impl Into<String>, live: bool, content: Markup) -> DrawnPage {
        DrawnPage { status: StatusCode::OK, title: title.into(), screen, live, address: None, content }
    }
}

/// What a handler answers with.
pub(super) enum ConsoleAnswer {
    /// A page.
    Page(Box<DrawnPage>),
    /// Another address.
    SeeOther(String),
    /// Anything else, ready to be sent.
    Ready(HttpResponse),
}

impl From<DrawnPage> for ConsoleAnswer {
    fn from(page: DrawnPage) -> ConsoleAnswer {
        ConsoleAnswer::Page(Box::new(page))
    }
}

/// Does the work of a screen for a person under a span, and answers with its page or with what went wrong. A panic in it
/// ends this request alone.
pub(super) async fn screen(
    gateway: &Gateway,
    person: &ConsolePerson,
    operation: &'static str,
    work: impl Future<Output = Result<ConsoleAnswer, Failure>>,
) -> HttpResponse {
    let span = tracing::info_span!(
        "console",
        otel.name = operation,
        quartermaster.tenant = %person.authed.caller.tenant,
        quartermaster.entry = "console",
    );
    let work = AssertUnwindSafe(Box::pin(work).instrument(span)).catch_unwind();
    let answer = work.await.unwrap_or_else(|_| {
        tracing::error!(trace_id = person.authed.trace_id, "a page of the console panicked");
        Err(Failure::new(Code::Internal, "the page failed inside the service"))
    });
    match answer {
        Ok(ConsoleAnswer::SeeOther(address)) => see_other(&address, &person.authed.trace_id),
        Ok(ConsoleAnswer::Ready(response)) => response,
        Ok(ConsoleAnswer::Page(page)) => framed(gateway, person, *page).await,
        Err(failure) => framed(gateway, person, failed(&failure, &person.authed.trace_id)).await,
    }
}

/// A page within its frame, with the counts of this moment.
async fn framed(gateway: &Gateway, person: &ConsolePerson, page: DrawnPage) -> HttpResponse {
    let counted = gateway.store.of(&person.authed.caller.tenant).runs().waiting_count().await.ok();
    let frame = PageFrame {
        title: page.title,
        screen: page.screen,
        person: Some(person.view()),
        counts: counted.map(|(waiting, _)| NavCounts { waiting }),
        now: counted.map_or(person.now, |(_, now)| now),
        live: page.live,
        address: page.address,
    };
    html(page.status, &person.authed.trace_id, layout::page(&frame, &page.content))
}

/// A page for somebody who is not signed in.
pub(super) fn outside(status: StatusCode, title: &str, now: Moment, trace_id: &str, content: &Markup) -> HttpResponse {
    let title = title.to_owned();
    let frame = PageFrame { title, screen: Screen::Other, person: None, counts: None, now, live: false, address: None };
    html(status, trace_id, layout::page(&frame, content))
}

/// What went wrong, as a page.
pub(super) fn failed(failure: &Failure, trace_id: &str) -> DrawnPage {
    let status =
        StatusCode::from_u16(mcp::codes::rest_status(failure.code)).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
    let view = message_of(failure, trace_id);
    DrawnPage {
        status,
        title: view.title.clone(),
        screen: Screen::Other,
        live: false,
        address: None,
        content: message::page(&view),
    }
}

/// A query of the console that cannot be read, as a page; `None` for other addresses.
pub(crate) fn bad_query(request: &HttpRequest) -> Option<actix_web::Error> {
    let of_console = request.path() == console::BASE || request.path().starts_with(&format!("{}/", console::BASE));
    if !of_console {
        return None;
    }
    let failure = Failure::new(Code::InvalidRequest, "what stands behind the question mark cannot be read")
        .next("Go back, or begin with the inbox.");
    let trace_id = trace::id_of(request);
    let page = failed(&failure, &trace_id);
    let shown = outside(page.status, &page.title, crate::clock::SystemClock.now(), &trace_id, &page.content);
    Some(InternalError::from_response("the query cannot be read", shown).into())
}

/// What went wrong, in words.
pub(super) fn message_of(failure: &Failure, trace_id: &str) -> MessageView {
    let missing = (failure.code == Code::InsufficientScope)
        .then(|| failure.details.as_ref().and_then(|d| d.get("scope")).and_then(Value::as_str).map(str::to_owned))
        .flatten();
    let title = if failure.code == Code::InsufficientScope {
        "A right is missing"
    } else if failure.code == Code::NotFound {
        "Nothing here"
    } else if failure.code.retryable() {
        "Not possible at the moment"
    } else {
        "That did not work"
    };
    MessageView {
        title: title.to_owned(),
        text: failure.message.clone(),
        next: failure
            .next
            .clone()
            .or_else(|| failure.code.retryable().then(|| "Reload the page in a moment.".to_owned())),
        missing_right: missing,
        trace: Some(trace_id.to_owned()),
        ..MessageView::default()
    }
}

/// Tells the browser when to come back.
pub(super) fn with_retry(mut response: HttpResponse, failure: &Failure) -> HttpResponse {
    if let Some(millis) = failure.retry_after_ms {
        response.headers_mut().insert(RETRY_AFTER, millis.div_ceil(1_000).into());
    }
    response
}
