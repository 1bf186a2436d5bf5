//! The REST turn API: open a session, take this turn's schema set, call.
//!
//! It is not MCP: the host rebuilds its tool array each turn, so the list may grow.

use crate::app::Gateway;
use crate::http::caller::{Known, needs};
use crate::http::mcp_list::{self, Form};
use crate::http::{body, catch, reply};
use actix_web::http::StatusCode;
use actix_web::http::header::{ETAG, IF_NONE_MATCH};
use actix_web::web::{Data, Path, Payload, Query};
use actix_web::{HttpRequest, HttpResponse};
use catalog::{Progress, View};
use domain::run::State;
use domain::{Assignment, Code, Content, Failure, Mode, Output, RunId, Scope, Session};
use executor::{CallRequest, Handle};
use serde::Deserialize;
use serde::de::DeserializeOwned;
use serde_json::{Map, Value, json};
use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;
use tokio_util::sync::CancellationToken;
use tracing::Instrument;

const TOKENS: &str = "x-quartermaster-tokens";

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Opening {
    #[serde(default = "read_mode")]
    mode: Mode,
    /// The tenant's agent that works in it.
    #[serde(default)]
    agent: Option<String>,
    /// The tenant's workflow it belongs to.
    #[serde(default)]
    workflow: Option<String>,
    /// Parameters of external servers that the workflow gives, by server.
    #[serde(default)]
    params: BTreeMap<String, BTreeMap<String, String>>,
}

fn read_mode() -> Mode {
    Mode::Read
}

/// `POST /v1/sessions`.
pub async fn open(known: Known, request: HttpRequest, payload: Payload, gateway: Data<Gateway>) -> HttpResponse {
    let opened = async {
        needs(&known, Scope::ToolsRead)?;
        let opening: Opening = read(&request, payload, &gateway).await?;
        if opening.mode == Mode::Write {
            needs(&known, Scope::ToolsWrite)?;
            if known.snapshot.policy.mode == Mode::Read {
                return Err(Failure::new(
                    Code::PolicyDenied,
                    "this tenant is read-only, so no session can be for writing",
                )
                .next("open the session with mode read"));
            }
        }
        let Opening { mode, agent, workflow, params } = opening;
        let assignment = Assignment { agent, workflow, params };
        if !assignment.is_empty() {
            // Refused here rather than at the first call: whoever opens the session can still mend it.
            let config = gateway.tenants.config_of(&known.caller.tenant);
            let unserved = || Failure::new(Code::ForbiddenTenant, "the tenant is not served here");
            config.ok_or_else(unserved)?.check_assignment(&assignment)?;
        }
        gateway.executor.open_session(&known.snapshot, &known.caller, mode, None, assignment).await
    };
    match opened.await {
        Ok(session) => reply::json(StatusCode::CREATED, &known.trace_id, shown(&gateway, &session, None).to_string()),
        Err(failure) => reply::failure(&gateway, &failure, &known.trace_id),
    }
}

/// `GET /v1/sessions/{id}`.
pub async fn show(known: Known, id: Path<String>, gateway: Data<Gateway>) -> HttpResponse {
    let found = async {
        let session = held(&gateway, &known, &id).await?;
        let stopped_by = gateway.executor.stopped_by(&known.caller.tenant, session.id).await?;
        Ok(shown(&gateway, &session, stopped_by).to_string())
    };
    match found.await {
        Ok(told) => reply::json(StatusCode::OK, &known.trace_id, told),
        Err(failure) => reply::failure(&gateway, &failure, &known.trace_id),
    }
}

/// `DELETE /v1/sessions/{id}`.
pub async fn close(known: Known, id: Path<String>, gateway: Data<Gateway>) -> HttpResponse {
    match gateway.executor.close_session(&known.caller, &Handle::Transport(id.into_inner())).await {
        Ok(()) => reply::start(StatusCode::NO_CONTENT, &known.trace_id).finish(),
        Err(failure) => reply::failure(&gateway, &failure, &known.trace_id),
    }
}

/// The query of `tools`.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Wanted {
    format: Option<String>,
}

/// `GET /v1/sessions/{id}/tools?format=`: this turn's schema set, ready for the model call.
pub async fn tools(
    known: Known,
    request: HttpRequest,
    id: Path<String>,
    wanted: Query<Wanted>,
    gateway: Data<Gateway>,
) -> HttpResponse {
    let form = match wanted.format.as_deref() {
        None | Some("mcp") => Form::RestMcp,
        Some("openai") => Form::OpenAi,
        Some("anthropic") => Form::Anthropic,
        Some(_) => {
            let failure = Failure::new(Code::InvalidRequest, "there is no such format");
            return reply::failure(&gateway, &failure.next("use mcp, openai or anthropic"), &known.trace_id);
        }
    };
    let session = match held(&gateway, &known, &id).await {
        Ok(session) => session,
        Err(failure) => return reply::failure(&gateway, &failure, &known.trace_id),
    };
    let view = View::Growing { grown: session.grown };
    let page = mcp_list::turn(&gateway, &known.snapshot.catalog, &session.loaded, view, form);
    let seen = request.headers().get(IF_NONE_MATCH).and_then(|v| v.to_str().ok()).unwrap_or_default();
    let unchanged = seen.split(',').any(|tag| tag.trim() == &*page.etag);
    let status = if unchanged { StatusCode::NOT_MODIFIED } else { StatusCode::OK };
    let mut response = reply::start(status, &known.trace_id);
    response.insert_header((ETAG, &*page.etag)).insert_header((TOKENS, page.tokens));
    response.insert_header(("Cache-Control", "private, no-cache"));
    if unchanged { response.finish() } else { response.content_type("application/json").body(page.bytes) }
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Calling {
    tool: String,
    #[serde(default)]
    arguments: Map<String, Value>,
    /// How long to wait for a decision; calls that only read are answered at once.
    #[serde(default)]
    wait_ms: u64,
    /// Under which a repeated call finds the run it began.
    #[serde(default)]
    idempotency_key: Option<String>,
}

/// The longest a request is held: common clients give up at a minute.
pub(super) const LONGEST_WAIT_MS: u64 = 55_000;

/// `POST /v1/sessions/{id}/calls`.
pub async fn call(
    known: Known,
    request: HttpRequest,
    id: Path<String>,
    payload: Payload,
    gateway: Data<Gateway>,
) -> HttpResponse {
    let outcome = async {
        needs(&known, Scope::ToolsRead)?;
        let Calling { tool, arguments, wait_ms, idempotency_key } = read(&request, payload, &gateway).await?;
        let span = tracing::info_span!(
            "execute_tool",
            otel.name = "execute_tool",
            gen_ai.operation.name = "execute_tool",
            quartermaster.tenant = %known.caller.tenant,
            quartermaster.entry = "rest",
        );
        let request = CallRequest {
            caller: Arc::clone(&known.caller),
            tool,
            arguments,
            handle: Handle::Transport(id.into_inner()),
            selection: None,
            era: executor::Era::Modern,
            progress: Progress::default(),
            cancel: CancellationToken::new(),
            hold: (wait_ms > 0).then(|| Duration::from_millis(wait_ms.min(LONGEST_WAIT_MS))),
            idempotency_key,
            trace: Some(known.trace_id.clone()),
        };
        Box::pin(gateway.executor.call(&known.snapshot, request).instrument(span)).await
    };
    let answer = async {
        match outcome.await {
            Ok(output) => {
                let status = if waits(&output) { StatusCode::ACCEPTED } else { StatusCode::OK };
                reply::json(status, &known.trace_id, result(&output, &known.trace_id))
            }
            Err(failure) => reply::failure(&gateway, &failure, &known.trace_id),
        }
    };
    catch::on_rest(&known, answer).await
}

/// What is answered where there is nothing: the same for everybody, once known.
pub async fn nothing_here(known: Known, gateway: Data<Gateway>) -> HttpResponse {
    reply::failure(&gateway, &Failure::new(Code::NotFound, "there is nothing at this address"), &known.trace_id)
}

async fn held(gateway: &Gateway, known: &Known, id: &str) -> Result<Session, Failure> {
    needs(known, Scope::ToolsRead)?;
    let handle = Handle::Transport(id.to_owned());
    Ok(gateway.executor.session(&known.snapshot, &known.caller, &handle).await?.session)
}

/// Whether the answer is a run that is still open, and not yet a result.
fn waits(output: &Output) -> bool {
    const OPEN: [State; 3] = [State::PendingApproval, State::Approved, State::Executing];
    let told: Option<Value> = output.structured.as_deref().and_then(|text| serde_json::from_str(text).ok());
    let state = told.as_ref().and_then(|told| told.get("run")?.get("state")?.as_str());
    state.is_some_and(|state| OPEN.iter().any(|open| open.as_str() == state))
}

fn shown(gateway: &Gateway, session: &Session, stopped_by: Option<RunId>) -> Value {
    let last = session.opened_at.plus(gateway.lives.longest);
    let idle = gateway.clock.now().plus(gateway.lives.idle);
    json!({
        "id": session.id.to_string(),
        "mode": session.mode.as_str(),
        "loaded_toolsets": session.loaded,
        "tainted": session.tainted,
        "assignment": session.assignment,
        "stopped_by": stopped_by.map(|run| run.to_string()),
        "opened_at": session.opened_at.to_string(),
        "expires_at": idle.min(last).to_string(),
    })
}

fn result(output: &Output, trace_id: &str) -> String {
    let structured = output.structured.as_deref().unwrap_or("null");
    let blocks: Vec<Value> = output
        .content
        .iter()
        .map(|block| match block {
            Content::Text(text) => json!({ "type": "text", "text": text }),
            Content::Block(block) => block.clone(),
        })
        .collect();
    format!(r#"{{"result":{structured},"content":{},"trace_id":"{trace_id}"}}"#, Value::Array(blocks))
}

/// Reads a body strictly: JSON, no key twice, no field that is not known.
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
