//! The REST turn API over HTTP: open a session, take this turn's schema set, call.
//!
//! An adapter: what is answered is decided in [`turn`].

use crate::app::Gateway;
use crate::http::caller::{AuthedRequest, administers};
use crate::http::{body, catch, reply};
use crate::openapi::shapes;
use crate::protocol::turn::{self, SessionRequest, SessionView, TurnCall};
use crate::session_desk::{self, SessionInUse, SessionsInUse};
use actix_web::http::StatusCode;
use actix_web::http::header::{ETAG, IF_NONE_MATCH};
use actix_web::web::{Data, Path, Payload, Query};
use actix_web::{HttpRequest, HttpResponse};
use domain::{Assignment, Code, Failure, LoadedToolsets, SessionDoor, SessionMode, TokenScope};
use schemars::JsonSchema;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

const TOKENS: &str = "x-quartermaster-tokens";

/// `POST /v1/sessions`.
pub async fn open(
    authed: AuthedRequest,
    request: HttpRequest,
    payload: Payload,
    gateway: Data<Gateway>,
) -> HttpResponse {
    let opened = async {
        let exchange = authed.exchange(&gateway);
        // Before the body is read, so that a caller without the scope is refused whatever it sent.
        exchange.require(TokenScope::ToolsRead)?;
        let opening: SessionRequest = read(&request, payload, &gateway).await?;
        turn::open(&exchange, opening).await
    };
    shown(&gateway, &authed, StatusCode::CREATED, opened.await)
}

/// The query of a page of sessions.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct SessionsQuery {
    after: Option<String>,
}

/// Open sessions of the tenant, as they travel.
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct SessionList {
    /// The sessions, those that were opened last first.
    sessions: Vec<ListedSession>,
    /// What to ask for next, as `after`; none on the last page.
    next_cursor: Option<String>,
    /// Whether there are more than the list goes through.
    cut: bool,
}

/// One session, as people see it.
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct ListedSession {
    /// Its id.
    id: String,
    /// Whose it is.
    owner: String,
    /// The program, as it names itself.
    client: Option<String>,
    /// How it was opened: `legacy` or `modern` by the protocol's era, or `rest`.
    door: Option<&'static str>,
    /// The tenant's agent and workflow, as far as they were named.
    #[schemars(with = "shapes::AnyObject")]
    assignment: Assignment,
    /// What it may be used for.
    #[schemars(with = "shapes::SessionMode")]
    mode: SessionMode,
    /// `read` or `write` by toolset.
    #[schemars(with = "std::collections::BTreeMap<String, String>")]
    loaded_toolsets: LoadedToolsets,
    /// What its list of tools costs a model.
    tokens: u32,
    /// Whether it has read text from outside.
    tainted: bool,
    /// When it was opened.
    opened_at: String,
    /// When the audit log last mentions it, among its newest entries.
    last_used_at: Option<String>,
    /// Its calls of today and yesterday; none if they were counted together with others.
    calls: Option<u64>,
}

/// `GET /v1/sessions?after=`: for people.
pub async fn list(authed: AuthedRequest, query: Query<SessionsQuery>, gateway: Data<Gateway>) -> HttpResponse {
    let listed = async {
        let SessionsInUse { sessions, next, cut } =
            session_desk::list(&gateway, &authed, query.after.as_deref()).await?;
        let listed = |SessionInUse { session, tokens, last_used, calls }: SessionInUse| ListedSession {
            id: session.id.to_string(),
            owner: session.owner.subject,
            client: session.client.as_deref().map(str::to_owned),
            door: session.door.map(SessionDoor::as_str),
            assignment: session.assignment,
            mode: session.mode,
            loaded_toolsets: session.loaded,
            tokens,
            tainted: session.tainted,
            opened_at: session.opened_at.to_string(),
            last_used_at: last_used.map(|at| at.to_string()),
            calls,
        };
        let sessions = sessions.into_iter().map(listed).collect();
        Ok(SessionList { sessions, next_cursor: next.map(|next| next.to_string()), cut })
    };
    reply::operation(&gateway, &authed, "list_sessions", Box::pin(listed)).await
}

/// `GET /v1/sessions/{id}`.
pub async fn show(authed: AuthedRequest, id: Path<String>, gateway: Data<Gateway>) -> HttpResponse {
    let session = turn::show(&authed.exchange(&gateway), id.into_inner()).await;
    shown(&gateway, &authed, StatusCode::OK, session)
}

fn shown(
    gateway: &Gateway,
    authed: &AuthedRequest,
    status: StatusCode,
    session: Result<SessionView, Failure>,
) -> HttpResponse {
    let written = session.and_then(|session| {
        serde_json::to_string(&session).map_err(|_| Failure::new(Code::Internal, "the session cannot be written"))
    });
    match written {
        Ok(text) => reply::json(status, &authed.trace_id, text),
        Err(failure) => reply::failure(gateway, &failure, &authed.trace_id),
    }
}

/// `DELETE /v1/sessions/{id}`: of the caller, or of anybody for an administrator of the tenant.
pub async fn close(authed: AuthedRequest, id: Path<String>, gateway: Data<Gateway>) -> HttpResponse {
    let closed = async {
        match administers(&authed) {
            // Whoever administers the tenant has no sessions of their own, and ends those of others.
            Ok(()) => session_desk::end(&gateway, &authed, &id).await,
            Err(_) => authed.exchange(&gateway).close_session(id.into_inner()).await,
        }
    };
    match closed.await {
        Ok(()) => reply::start(StatusCode::NO_CONTENT, &authed.trace_id).finish(),
        Err(failure) => reply::failure(&gateway, &failure, &authed.trace_id),
    }
}

/// The query of `tools`.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct SessionToolsQuery {
    format: Option<String>,
}

/// `GET /v1/sessions/{id}/tools?format=`: this turn's schema set, ready for the model call.
pub async fn tools(
    authed: AuthedRequest,
    request: HttpRequest,
    id: Path<String>,
    query: Query<SessionToolsQuery>,
    gateway: Data<Gateway>,
) -> HttpResponse {
    let page = match turn::tools(&authed.exchange(&gateway), id.into_inner(), query.format.as_deref()).await {
        Ok(page) => page,
        Err(failure) => return reply::failure(&gateway, &failure, &authed.trace_id),
    };
    let seen = request.headers().get(IF_NONE_MATCH).and_then(|v| v.to_str().ok()).unwrap_or_default();
    let unchanged = seen.split(',').any(|tag| tag.trim() == &*page.etag);
    let status = if unchanged { StatusCode::NOT_MODIFIED } else { StatusCode::OK };
    let mut response = reply::start(status, &authed.trace_id);
    response.insert_header((ETAG, &*page.etag)).insert_header((TOKENS, page.tokens));
    response.insert_header(("Cache-Control", "private, no-cache"));
    if unchanged { response.finish() } else { response.content_type("application/json").body(page.bytes) }
}

/// `POST /v1/sessions/{id}/calls`.
pub async fn call(
    authed: AuthedRequest,
    request: HttpRequest,
    id: Path<String>,
    payload: Payload,
    gateway: Data<Gateway>,
) -> HttpResponse {
    let called = async {
        let exchange = authed.exchange(&gateway);
        exchange.require(TokenScope::ToolsRead)?;
        let call: TurnCall = read(&request, payload, &gateway).await?;
        turn::call(&exchange, id.into_inner(), call).await
    };
    let answer = async {
        match called.await {
            Ok(answered) => {
                let status = if answered.waiting { StatusCode::ACCEPTED } else { StatusCode::OK };
                reply::json(status, &authed.trace_id, answered.body)
            }
            Err(failure) => reply::failure(&gateway, &failure, &authed.trace_id),
        }
    };
    catch::on_rest(&authed, answer).await
}

/// Any other address: the same answer for every authenticated caller.
pub async fn nothing_here(authed: AuthedRequest, gateway: Data<Gateway>) -> HttpResponse {
    reply::failure(&gateway, &Failure::new(Code::NotFound, "there is nothing at this address"), &authed.trace_id)
}

/// Reads a body strictly: JSON, no key twice, no unknown field.
pub(super) async fn read<T: DeserializeOwned>(
    request: &HttpRequest,
    payload: Payload,
    gateway: &Gateway,
) -> Result<T, Failure> {
    if !body::is_json(request.headers()) {
        return Err(Failure::new(Code::InvalidRequest, "the body must be application/json"));
    }
    let bytes = body::read(request, payload, gateway.settings.listen.body_bytes).await.map_err(|status| {
        let code = if status == StatusCode::PAYLOAD_TOO_LARGE { Code::TooLarge } else { Code::InvalidRequest };
        Failure::new(code, "the body could not be read")
    })?;
    let value = domain::json::read(&bytes).map_err(|error| Failure::new(Code::InvalidRequest, error.to_string()))?;
    if !value.is_object() {
        // A list would be read field by field, which is nobody's intention.
        return Err(Failure::new(Code::InvalidRequest, "the body must be a JSON object"));
    }
    serde_json::from_value(value).map_err(|error| Failure::new(Code::InvalidRequest, error.to_string()))
}
