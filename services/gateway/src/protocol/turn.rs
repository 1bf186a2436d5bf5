//! The REST turn: open a session, take this turn's schema set, call.
//!
//! It is not MCP: the host rebuilds its tool array each turn, so the list may grow.

use crate::openapi::shapes;
use crate::protocol::exchange::McpExchange;
use crate::protocol::list::{self, ListForm};
use crate::protocol::method_span;
use catalog::{CachedToolsPage, ListAudience, NameMatch, Progress};
use domain::{
    Assignment, Code, Content, Failure, LoadedToolsets, Outcome, RunId, Session, SessionId, SessionMode, TokenScope,
    ToolOutput,
};
use executor::{CallRequest, Handle};
use external::TenantServers;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};
use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;
use telemetry::names;
use tenancy::SectionTypeError;
use tokio_util::sync::CancellationToken;
use tracing::Instrument;

/// The longest a request waits: common clients give up at a minute.
pub const LONGEST_WAIT_MS: u64 = 55_000;

/// What a session is opened with.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct SessionRequest {
    /// `read` unless it is given.
    #[serde(default = "read_mode")]
    #[schemars(with = "Option<shapes::SessionMode>")]
    mode: SessionMode,
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

fn read_mode() -> SessionMode {
    SessionMode::Read
}

/// A session, as it travels.
#[derive(Debug, Serialize, JsonSchema)]
pub struct SessionView {
    /// The tenant's agent and workflow, and parameters of external servers, as far as they were named.
    #[schemars(with = "shapes::AnyObject")]
    pub assignment: Assignment,
    /// When it ends, unless it is used before.
    pub expires_at: String,
    /// Its id.
    pub id: String,
    /// `read` or `write` by toolset.
    #[schemars(with = "BTreeMap<String, String>")]
    pub loaded_toolsets: LoadedToolsets,
    /// What it may be used for.
    #[schemars(with = "shapes::SessionMode")]
    pub mode: SessionMode,
    /// When it was opened.
    pub opened_at: String,
    /// The rejected run that blocks changes in it.
    pub stopped_by: Option<String>,
    /// Whether it has read text from outside.
    pub tainted: bool,
}

/// One call of a turn.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct TurnCall {
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

/// What a call is answered with.
#[derive(Debug)]
pub struct TurnReply {
    /// Whether it is a run that is still open, and not yet a result.
    pub waiting: bool,
    /// The JSON text.
    pub body: String,
}

/// Opens a session, and gives it as JSON.
pub async fn open(exchange: &McpExchange, request: SessionRequest) -> Result<SessionView, Failure> {
    let McpExchange { gateway, caller, snapshot, .. } = exchange;
    exchange.require(TokenScope::ToolsRead)?;
    let SessionRequest { mode, agent, workflow, params } = request;
    if mode == SessionMode::Write {
        exchange.require(TokenScope::ToolsWrite)?;
        if snapshot.policy.mode == SessionMode::Read {
            let message = "this tenant is read-only, so no session can be for writing";
            return Err(Failure::new(Code::PolicyDenied, message).next("open the session with mode read"));
        }
    }
    let assignment = Assignment { agent, workflow, params };
    if !assignment.is_empty() {
        // Refused here rather than at the first call: whoever opens the session can still mend it.
        let config = gateway.tenants.config_of(&caller.tenant);
        let unserved = || Failure::new(Code::ForbiddenTenant, "the tenant is not served here");
        let config = config.ok_or_else(unserved)?;
        let unreadable = |error: SectionTypeError| Failure::new(Code::Internal, error.to_string());
        TenantServers::of(&config).map_err(unreadable)?.check_assignment(&assignment)?;
    }
    let client = exchange.client.as_deref().map(Into::into);
    let origin = executor::SessionOrigin { assignment, client, door: Some(domain::SessionDoor::Rest) };
    let opened = gateway.executor.open_session(snapshot, caller, mode, None, origin).await?;
    Ok(describe(exchange, &opened.session, opened.stopped_by))
}

/// A session as JSON.
pub async fn show(exchange: &McpExchange, id: String) -> Result<SessionView, Failure> {
    let session = find(exchange, id).await?;
    let stopped_by = exchange.gateway.executor.stopped_by(&exchange.caller.tenant, &session).await?;
    Ok(describe(exchange, &session, stopped_by))
}

/// This turn's schema set in the named format, ready for the model call.
pub async fn tools(exchange: &McpExchange, id: String, format: Option<&str>) -> Result<CachedToolsPage, Failure> {
    let form = match format {
        None | Some("mcp") => ListForm::RestMcp,
        Some("openai") => ListForm::OpenAi,
        Some("anthropic") => ListForm::Anthropic,
        Some(_) => {
            let failure = Failure::new(Code::InvalidRequest, "there is no such format");
            return Err(failure.next("use mcp, openai or anthropic"));
        }
    };
    let session = find(exchange, id).await?;
    let view = ListAudience::Growing { grown: session.grown };
    let McpExchange { gateway, caller, snapshot, .. } = exchange;
    let page = list::whole(gateway, &snapshot.catalog, &session.loaded, view, form);
    gateway.executor.usage().list(caller, Some(session.id), &snapshot.catalog, page.tokens, true);
    Ok(page)
}

/// Carries out one call.
pub async fn call(exchange: &McpExchange, session: String, turn: TurnCall) -> Result<TurnReply, Failure> {
    exchange.require(TokenScope::ToolsRead)?;
    let TurnCall { tool, arguments, wait_ms, idempotency_key } = turn;
    // A name that is not in the catalog is the caller's own text and is not recorded.
    let listed_name = (!matches!(exchange.snapshot.catalog.find(&tool), NameMatch::Nothing)).then_some(tool.as_str());
    let span = tracing::info_span!(
        "execute_tool",
        gen_ai.operation.name = names::SPAN_EXECUTE_TOOL,
        gen_ai.tool.name = listed_name,
        quartermaster.tenant = exchange.caller.tenant.as_str(),
        quartermaster.entry = "rest",
        quartermaster.session.id = SessionId::parse(&session).is_ok().then_some(session.as_str()),
    );
    let request = CallRequest {
        caller: Arc::clone(&exchange.caller),
        tool,
        arguments,
        handle: Handle::Transport(session),
        selection: None,
        era: executor::ClientEra::Modern,
        progress: Progress::default(),
        cancel: CancellationToken::new(),
        hold: (wait_ms > 0).then(|| Duration::from_millis(wait_ms.min(LONGEST_WAIT_MS))),
        idempotency_key,
        trace: Some(exchange.trace_id.clone()),
        client: exchange.client.clone(),
    };
    let work = async {
        let outcome = exchange.gateway.executor.call(&exchange.snapshot, request).await;
        method_span::note_outcome(&outcome);
        outcome
    };
    let outcome = Box::pin(work.instrument(span)).await;
    reply(outcome, &exchange.trace_id)
}

/// What a client of the REST turn is answered when a call has ended.
fn reply(outcome: Outcome, trace_id: &str) -> Result<TurnReply, Failure> {
    match outcome {
        Outcome::Done(output) => Ok(TurnReply { waiting: false, body: result(&output, trace_id) }),
        Outcome::Waiting(run) => {
            Ok(TurnReply { waiting: true, body: result(&ToolOutput::structured(run.json), trace_id) })
        }
        Outcome::Failed(failure) => Err(failure),
    }
}

async fn find(exchange: &McpExchange, id: String) -> Result<Session, Failure> {
    let McpExchange { gateway, caller, snapshot, .. } = exchange;
    exchange.require(TokenScope::ToolsRead)?;
    Ok(gateway.executor.session(snapshot, caller, &Handle::Transport(id)).await?.session)
}

fn describe(exchange: &McpExchange, session: &Session, stopped_by: Option<RunId>) -> SessionView {
    let gateway = &exchange.gateway;
    let last = session.opened_at.plus(gateway.lives.longest);
    let idle = gateway.clock.now().plus(gateway.lives.idle);
    SessionView {
        assignment: session.assignment.clone(),
        expires_at: idle.min(last).to_string(),
        id: session.id.to_string(),
        loaded_toolsets: session.loaded.clone(),
        mode: session.mode,
        opened_at: session.opened_at.to_string(),
        stopped_by: stopped_by.map(|run| run.to_string()),
        tainted: session.tainted,
    }
}

fn result(output: &ToolOutput, trace_id: &str) -> String {
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
