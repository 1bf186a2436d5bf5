//! `/mcp` and `/mcp/x/SELECTION`: both protocol eras on one endpoint.
//!
//! `POST` is here; calls are carried out in [`mcp_call`], streams are held in
//! [`streams`]. Bytes are read and written by the `mcp` crate alone.

use crate::app::Gateway;
use crate::http::body::{self, Accepts};
use crate::http::caller::{Known, needs};
use crate::http::{catch, mcp_call, mcp_list, reply, selection, streams};
use actix_web::http::StatusCode;
use actix_web::web::{Data, Path, Payload};
use actix_web::{HttpRequest, HttpResponse};
use bytes::Bytes;
use catalog::View;
use domain::{Failure, Loaded, Scope};
use executor::Handle;
use mcp::{Era, Headers, Id, Incoming, Notification, Refusal, Request, RequestEnvelope};

const SESSION: &str = "Mcp-Session-Id";

/// Everything a request brings besides its body.
pub(super) struct Visit<'a> {
    pub(super) gateway: &'a Data<Gateway>,
    pub(super) known: &'a Known,
    pub(super) request: &'a HttpRequest,
    pub(super) accepts: Accepts,
    /// What the address itself selects.
    pub(super) selection: Option<Loaded>,
}

/// `POST /mcp`.
pub async fn post(known: Known, request: HttpRequest, payload: Payload, gateway: Data<Gateway>) -> HttpResponse {
    catch::on_mcp(&known, answer(&known, &request, payload, &gateway, None)).await
}

/// `POST /mcp/x/SELECTION`.
pub async fn post_selected(
    known: Known,
    request: HttpRequest,
    payload: Payload,
    path: Path<String>,
    gateway: Data<Gateway>,
) -> HttpResponse {
    catch::on_mcp(&known, answer(&known, &request, payload, &gateway, Some(&path))).await
}

async fn answer(
    known: &Known,
    request: &HttpRequest,
    payload: Payload,
    gateway: &Data<Gateway>,
    path: Option<&str>,
) -> HttpResponse {
    if !body::is_json(request.headers()) {
        return reply::start(StatusCode::UNSUPPORTED_MEDIA_TYPE, &known.trace_id).finish();
    }
    let accepts = body::accepts(request.headers());
    if !accepts.json && !accepts.stream {
        return reply::start(StatusCode::NOT_ACCEPTABLE, &known.trace_id).finish();
    }
    let body = match body::read(request, payload, gateway.settings.listen.body_bytes).await {
        Ok(body) => body,
        Err(status) => return reply::start(status, &known.trace_id).finish(),
    };
    let headers = Headers::read(request.headers().iter().map(|(name, value)| (name.as_str(), value.as_bytes())));
    let incoming = match mcp::decode(&headers, &body) {
        Ok(incoming) => incoming,
        Err(refusal) => return refuse(gateway, known, &refusal, None),
    };
    let (era, id) = match &incoming {
        Incoming::Request(envelope) => (envelope.era, Some(envelope.id.clone())),
        Incoming::Notification(_) | Incoming::Response(_) => (Era::Modern, None),
    };
    if let Err(failure) = needs(known, Scope::ToolsRead) {
        return refuse(gateway, known, &Refusal::before_call(era, id, &failure), Some(&failure));
    }
    let selection = match path.map(|path| selection::read(&known.snapshot, &known.caller, path)).transpose() {
        Ok(selection) => selection,
        Err(none) => {
            let failure = match &none {
                selection::NoSelection::Denied(failure) => Some(failure.as_ref()),
                selection::NoSelection::Malformed(_) | selection::NoSelection::Unknown(..) => None,
            };
            return refuse(gateway, known, &none.refusal(era, id), failure);
        }
    };
    let visit = Visit { gateway, known, request, accepts, selection };
    match incoming {
        Incoming::Request(envelope) => visit.request(*envelope, &headers).await,
        Incoming::Notification(notification) => visit.notified(notification).await,
        // Nobody here ever asks a client anything, so nobody waits for this.
        Incoming::Response(_) if request.headers().contains_key(SESSION) => accepted(known),
        Incoming::Response(_) => refuse(gateway, known, &Refusal::unexpected_response(), None),
    }
}

impl Visit<'_> {
    async fn request(&self, envelope: RequestEnvelope, headers: &Headers<'_>) -> HttpResponse {
        let RequestEnvelope { era, id, request, meta } = envelope;
        match request {
            Request::Ping => match self.alive(era).await {
                Ok(()) => self.ok(&id, mcp::encode::empty_result()),
                Err(failure) => self.fail(era, id, &failure),
            },
            Request::Initialize { requested, .. } => self.initialize(&id, &requested).await,
            Request::Discover => self.ok(&id, &mcp::encode::discover_result(&self.instructions(true))),
            Request::ToolsList { cursor } => match self.list(era, cursor.as_deref()).await {
                Ok(bytes) => self.ok(&id, &bytes),
                Err(failure) => self.fail(era, id, &failure),
            },
            Request::ToolsCall { name, arguments } => {
                let asked = mcp_call::Asked { era, id, name, arguments, meta };
                mcp_call::call(self, asked, headers).await
            }
            Request::Listen { .. } if !self.accepts.stream => {
                reply::start(StatusCode::NOT_ACCEPTABLE, &self.known.trace_id).finish()
            }
            Request::Listen { tools_list_changed } => streams::listen(self, id, tools_list_changed),
        }
    }

    /// Opens a session; its name goes into the header that later requests bring along.
    async fn initialize(&self, id: &Id, requested: &str) -> HttpResponse {
        let revision = mcp::Revision::negotiate(requested);
        let Known { caller, snapshot, .. } = self.known;
        let wanted = domain::Mode::Write; // the most the token and the tenant allow; loading is judged again
        let (executor, assignment) = (&self.gateway.executor, domain::Assignment::default());
        let opened = executor.open_session(snapshot, caller, wanted, self.selection.clone(), assignment).await;
        match opened {
            Ok(session) => {
                let result = mcp::encode::initialize_result(revision, &self.instructions(false));
                let mut response = self.ok(id, &result);
                let name = actix_web::http::header::HeaderName::from_static("mcp-session-id");
                if let Ok(value) = session.id.to_string().parse() {
                    response.headers_mut().insert(name, value);
                }
                response
            }
            Err(failure) => self.fail(Era::Legacy(revision), id.clone(), &failure),
        }
    }

    async fn list(&self, era: Era, cursor: Option<&str>) -> Result<Bytes, Failure> {
        let Known { caller, snapshot, .. } = self.known;
        let catalog = &snapshot.catalog;
        let page = match (era, self.handle(era)) {
            (Era::Legacy(_), handle @ Handle::Transport(_)) => {
                let held = self.gateway.executor.session(snapshot, caller, &handle).await?;
                let view = View::Growing { grown: held.session.grown };
                mcp_list::page(self.gateway, catalog, &held.session.loaded, view, era, cursor)?
            }
            (Era::Legacy(_) | Era::Modern, _) => {
                let loaded = self.selection.as_ref().unwrap_or(catalog.defaults());
                mcp_list::page(self.gateway, catalog, loaded, View::Fixed, era, cursor)?
            }
        };
        Ok(page.bytes)
    }

    /// Whether the session that a request names is one of this caller's; without a name there is nothing to check.
    async fn alive(&self, era: Era) -> Result<(), Failure> {
        match self.handle(era) {
            Handle::None => Ok(()),
            handle @ (Handle::Transport(_) | Handle::Told(_)) => {
                self.gateway.executor.session(&self.known.snapshot, &self.known.caller, &handle).await.map(|_| ())
            }
        }
    }

    /// The transport's session. The modern era has none: a stray header is ignored there.
    pub(super) fn handle(&self, era: Era) -> Handle {
        match (era, session_header(self.request)) {
            (Era::Legacy(_), Some(text)) => Handle::Transport(text),
            (Era::Legacy(_), None) | (Era::Modern, _) => Handle::None,
        }
    }

    async fn notified(&self, notification: Notification) -> HttpResponse {
        if let (Notification::Cancelled { request_id }, Some(text)) = (notification, session_header(self.request)) {
            mcp_call::cancel(self, text, request_id).await;
        }
        accepted(self.known)
    }

    fn instructions(&self, modern: bool) -> String {
        let catalog = &self.known.snapshot.catalog;
        let names = |default| catalog.toolsets().iter().filter(move |t| t.default == default).map(|t| t.name.as_str());
        let (issued, loadable): (Vec<&str>, Vec<&str>) = (names(true).collect(), names(false).collect());
        mcp::instructions::write(&issued, &loadable, modern)
    }

    /// An answer around a ready-made result.
    pub(super) fn ok(&self, id: &Id, result: &[u8]) -> HttpResponse {
        let body = mcp::encode::result(id, result);
        reply::start(StatusCode::OK, &self.known.trace_id).content_type("application/json").body(body)
    }

    /// An answer that says no before there was a call.
    pub(super) fn fail(&self, era: Era, id: Id, failure: &Failure) -> HttpResponse {
        let refusal = Refusal::before_call(era, Some(id), failure);
        refuse(self.gateway, self.known, &refusal, Some(failure))
    }
}

/// `DELETE /mcp`: the session ends, for every replica.
pub async fn delete(known: Known, request: HttpRequest, gateway: Data<Gateway>) -> HttpResponse {
    if legacy_only(&request).is_none() {
        return method_not_allowed(&known);
    }
    let Some(text) = session_header(&request) else {
        return reply::start(StatusCode::BAD_REQUEST, &known.trace_id).finish();
    };
    match gateway.executor.close_session(&known.caller, &Handle::Transport(text)).await {
        Ok(()) => reply::start(StatusCode::NO_CONTENT, &known.trace_id).finish(),
        Err(failure) => refuse(&gateway, &known, &Refusal::before_call(Era::Modern, None, &failure), Some(&failure)),
    }
}

/// `GET /mcp`: the stream of a legacy session.
pub async fn get(known: Known, request: HttpRequest, gateway: Data<Gateway>) -> HttpResponse {
    let (Some(_), Some(text)) = (legacy_only(&request), session_header(&request)) else {
        return method_not_allowed(&known);
    };
    if !body::accepts(request.headers()).stream {
        return reply::start(StatusCode::NOT_ACCEPTABLE, &known.trace_id).finish();
    }
    if let Err(failure) = needs(&known, Scope::ToolsRead) {
        return refuse(&gateway, &known, &Refusal::before_call(Era::Modern, None, &failure), Some(&failure));
    }
    streams::session(&gateway, &known, text).await
}

fn legacy_only(request: &HttpRequest) -> Option<mcp::Revision> {
    let headers = Headers::read(request.headers().iter().map(|(name, value)| (name.as_str(), value.as_bytes())));
    mcp::era::of_stream(&headers)
}

fn session_header(request: &HttpRequest) -> Option<String> {
    let value = request.headers().get(SESSION)?;
    Some(value.to_str().unwrap_or_default().to_owned())
}

fn method_not_allowed(known: &Known) -> HttpResponse {
    reply::start(StatusCode::METHOD_NOT_ALLOWED, &known.trace_id).insert_header(("Allow", "POST")).finish()
}

fn accepted(known: &Known) -> HttpResponse {
    reply::start(StatusCode::ACCEPTED, &known.trace_id).finish()
}

/// A refusal as it travels, with the headers its failure brings along.
pub(super) fn refuse(gateway: &Gateway, known: &Known, refusal: &Refusal, failure: Option<&Failure>) -> HttpResponse {
    let reply = refusal.reply(Some(&known.trace_id));
    finish(gateway, known, reply, failure)
}

/// A finished answer of the protocol as an HTTP response.
pub(super) fn finish(gateway: &Gateway, known: &Known, reply: mcp::Reply, failure: Option<&Failure>) -> HttpResponse {
    let status = StatusCode::from_u16(reply.status).unwrap_or(StatusCode::OK);
    let mut response = reply::start(status, &known.trace_id).content_type("application/json").body(reply.body);
    if let Some(failure) = failure {
        reply::dress(gateway, &mut response, failure);
    }
    response
}

/// Any other method on the endpoint.
pub async fn other_method(known: Known) -> HttpResponse {
    method_not_allowed(&known)
}
