//! `/v1/runs`, and the same at `/runs`: people list, read and decide runs.
//!
//! A `GET` never decides. Deciding needs `runs:decide` and no tool scope; agents see only their own runs, and of those
//! only what they asked for and what became of it.

use crate::app::Gateway;
use crate::http::caller::AuthedRequest;
use crate::http::{catch, reply, sessions};
use crate::protocol::turn;
use actix_web::http::StatusCode;
use actix_web::web::{Data, Path, Payload, Query};
use actix_web::{HttpRequest, HttpResponse};
use catalog::Progress;
use domain::run::{Run, RunState, Verdict};
use domain::{Caller, Code, Failure, Moment, Principal, RunId, TokenScope};
use executor::runs::{RunWait, WaitUntil, report};
use executor::{RunDecision, ServiceKeys};
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::{Value, json};
use std::time::Duration;
use store::{RunBrief, StoreError};

/// Runs on one page.
const PAGE: usize = 50;
/// How many runs are looked through for a filtered page, by their brief records.
const MOST_SCANNED: usize = 1_000;
/// How many of these records are read at once.
const READ_AT_ONCE: usize = 100;

/// The query of a list.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct RunsQuery {
    #[schemars(with = "Option<crate::openapi::shapes::RunState>")]
    state: Option<RunState>,
    session: Option<String>,
    tool: Option<String>,
    cursor: Option<String>,
}

/// `GET /v1/runs`: newest first.
pub async fn list(authed: AuthedRequest, filter: Query<RunsQuery>, gateway: Data<Gateway>) -> HttpResponse {
    let page = async {
        sees_runs(&authed)?;
        let place = |text: &str| read_cursor(&gateway.keys, &authed.caller, text);
        let from = filter.cursor.as_deref().map(place).transpose()?;
        let runs = gateway.store.of(&authed.caller.tenant).runs();
        let own = (!sees_all(&authed)).then_some(&authed.caller.principal);
        let ids = runs.ids(own, from.map(|(at, _)| at), MOST_SCANNED).await.map_err(|e| no_store(&e))?;
        // Several runs may have been requested in one millisecond; the cursor names the last one that was read.
        let behind = from.and_then(|(_, id)| ids.iter().position(|run| *run == id)).map_or(0, |at| at + 1);
        let (mut page, mut last) = (Vec::new(), None);
        for some in ids[behind..].chunks(READ_AT_ONCE) {
            for run in runs.briefs(some).await.map_err(|e| no_store(&e))? {
                if page.len() == PAGE {
                    break;
                }
                if matches(&filter, &run) {
                    page.push(brief(&run, viewer(&authed, &run.requester)));
                }
                last = Some((run.asked_at, run.id));
            }
            if page.len() == PAGE {
                break;
            }
        }
        let more = page.len() == PAGE || ids.len() == MOST_SCANNED;
        // The last run that was read may be one that is not shown, so its place is sealed.
        let next = last
            .filter(|_| more)
            .map(|(at, id)| gateway.keys.seal_place(&authed.caller, &format!("{}-{id}", at.millis())));
        Ok::<Value, Failure>(json!({ "runs": page, "next_cursor": next }))
    };
    answer(&gateway, &authed, page.await)
}

fn no_store(error: &StoreError) -> Failure {
    Failure::new(error.code(), "the state store did not answer").retry_after_ms(1_000)
}

fn matches(filter: &RunsQuery, run: &RunBrief) -> bool {
    filter.state.is_none_or(|state| run.state == state)
        && filter.tool.as_deref().is_none_or(|tool| run.tool.as_str() == tool)
        && filter.session.as_deref().is_none_or(|id| run.session.is_some_and(|s| s.to_string() == id))
}

fn read_cursor(keys: &ServiceKeys, caller: &Caller, text: &str) -> Result<(Moment, RunId), Failure> {
    let read = || {
        let place = keys.open_place(caller, text)?;
        let (at, id) = place.split_once('-')?;
        Some((Moment::from_millis(at.parse().ok()?), RunId::parse(id).ok()?))
    };
    read().ok_or_else(|| Failure::new(Code::BadCursor, "the cursor is not one of this list"))
}

/// The query of one run.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct RunQuery {
    #[serde(default)]
    wait_ms: u64,
}

/// `GET /v1/runs/{id}?wait_ms=`: reads the run and changes nothing, whoever asks. The agent that asked for it receives
/// its result by the call itself or by `await_run`.
pub async fn show(
    mut authed: AuthedRequest,
    id: Path<String>,
    patience: Query<RunQuery>,
    gateway: Data<Gateway>,
) -> HttpResponse {
    // Whoever waits holds no place of those who do not.
    let place = authed.place.take();
    let run = async {
        sees_runs(&authed)?;
        let id = parse(&id)?;
        let tenant = &authed.caller.tenant;
        let _place = match patience.wait_ms {
            0 => place,
            _ => {
                drop(place);
                Some(gateway.executor.admit_waiting(&authed.caller)?)
            }
        };
        let waiting = RunWait {
            until: WaitUntil::Moved,
            patience: Duration::from_millis(patience.wait_ms.min(turn::LONGEST_WAIT_MS)),
            may_see: &|run| may_see(&authed, run),
            progress: &Progress::default(),
        };
        let versioned = gateway.executor.wait_for(tenant, id, waiting).await?;
        let run = &versioned.run;
        Ok(match viewer(&authed, &run.asked.requester) {
            RunViewer::Decider => report::to_person(run),
            RunViewer::Auditor => report::to_auditor(run),
            RunViewer::Requester => report::to_requester(run),
        })
    };
    answer(&gateway, &authed, run.await)
}

/// `GET /v1/runs/{id}/arguments`: the exact arguments, with nothing hidden, for somebody who decides. Who read them is in
/// the audit log before they leave.
pub async fn arguments(authed: AuthedRequest, id: Path<String>, gateway: Data<Gateway>) -> HttpResponse {
    let exact = async {
        executor::may_decide(&authed.caller)?;
        let run = gateway.executor.exact_arguments(&authed.caller, parse(&id)?).await?;
        let unreadable = |_| Failure::new(Code::Internal, "the arguments of the run cannot be read");
        let arguments: Value = serde_json::from_str(&run.asked.arguments).map_err(unreadable)?;
        Ok(json!({
            "id": run.id.to_string(), "tool": run.asked.tool.as_str(), "digest": run.asked.digest,
            "arguments": arguments,
        }))
    };
    answer(&gateway, &authed, exact.await)
}

/// What a person decides with.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct DecisionRequest {
    #[serde(default)]
    reason: Option<String>,
}

/// The longest reason a person can give.
const LONGEST_REASON: usize = 2_000;

/// `POST /v1/runs/{id}/approve`.
pub async fn approve(
    authed: AuthedRequest,
    request: HttpRequest,
    id: Path<String>,
    payload: Payload,
    gateway: Data<Gateway>,
) -> HttpResponse {
    catch::on_rest(&authed, decide(&authed, &request, &id, payload, &gateway, Verdict::Approve)).await
}

/// `POST /v1/runs/{id}/reject`.
pub async fn reject(
    authed: AuthedRequest,
    request: HttpRequest,
    id: Path<String>,
    payload: Payload,
    gateway: Data<Gateway>,
) -> HttpResponse {
    catch::on_rest(&authed, decide(&authed, &request, &id, payload, &gateway, Verdict::Reject)).await
}

async fn decide(
    authed: &AuthedRequest,
    request: &HttpRequest,
    id: &str,
    payload: Payload,
    gateway: &Data<Gateway>,
    verdict: Verdict,
) -> HttpResponse {
    let decided = async {
        executor::may_decide(&authed.caller)?;
        let DecisionRequest { reason } = sessions::read(request, payload, gateway).await?;
        if reason.as_ref().is_some_and(|reason| reason.len() > LONGEST_REASON) {
            return Err(Failure::new(Code::TooLarge, format!("a reason has at most {LONGEST_REASON} bytes")));
        }
        let decision = RunDecision { verdict, reason };
        let run = gateway.executor.answer(&authed.snapshot, &authed.caller, parse(id)?, decision).await?;
        Ok(report::to_person(&run))
    };
    answer(gateway, authed, Box::pin(decided).await)
}

/// `POST /v1/runs/{id}/cancel`: the requester takes a pending run back.
pub async fn cancel(authed: AuthedRequest, id: Path<String>, gateway: Data<Gateway>) -> HttpResponse {
    let cancelled = async {
        let run = gateway.executor.cancel_run(&authed.caller, parse(&id)?).await?;
        Ok(report::to_requester(&run))
    };
    answer(&gateway, &authed, cancelled.await)
}

/// How a person settles an unknown outcome.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct SettleRequest {
    outcome: SettledOutcome,
}

/// What really happened.
#[derive(Debug, Deserialize, PartialEq, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub(crate) enum SettledOutcome {
    Succeeded,
    Failed,
}

/// `POST /v1/runs/{id}/resolve`: a person settles an unknown outcome.
pub async fn resolve(
    authed: AuthedRequest,
    request: HttpRequest,
    id: Path<String>,
    payload: Payload,
    gateway: Data<Gateway>,
) -> HttpResponse {
    let resolved = async {
        executor::may_decide(&authed.caller)?;
        let SettleRequest { outcome } = sessions::read(&request, payload, &gateway).await?;
        let run = gateway.executor.resolve(&authed.caller, parse(&id)?, outcome == SettledOutcome::Succeeded).await?;
        Ok(report::to_person(&run))
    };
    answer(&gateway, &authed, resolved.await)
}

/// `POST /v1/runs/{id}/clear`: a person unblocks the session that this rejection blocked.
pub async fn clear(authed: AuthedRequest, id: Path<String>, gateway: Data<Gateway>) -> HttpResponse {
    let cleared = async { Ok(report::to_person(&gateway.executor.clear(&authed.caller, parse(&id)?).await?)) };
    answer(&gateway, &authed, cleared.await)
}

fn answer(gateway: &Gateway, authed: &AuthedRequest, result: Result<Value, Failure>) -> HttpResponse {
    match result {
        Ok(body) => reply::json(StatusCode::OK, &authed.trace_id, body.to_string()),
        Err(failure) => reply::failure(gateway, &failure, &authed.trace_id),
    }
}

/// A line of a list: enough to choose from.
fn brief(run: &RunBrief, viewer: RunViewer) -> Value {
    let summary = match viewer {
        RunViewer::Decider => run.summary.clone(),
        RunViewer::Auditor => redact::redact(&run.summary),
        RunViewer::Requester => run.requested.clone(),
    };
    json!({
        "id": run.id.to_string(),
        "state": run.state.as_str(),
        "tool": run.tool.as_str(),
        "effect": run.effect.as_str(),
        "summary": summary,
        "requested_by": run.requester.subject,
        "asked_at": run.asked_at.to_string(),
        "expires_at": run.expires_at.to_string(),
    })
}

/// As whom somebody sees a run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum RunViewer {
    /// Somebody who may decide it, and reads what will be executed as it is.
    Decider,
    /// Somebody who reads what others decide.
    Auditor,
    /// Whoever asked for it, also with a token that decides the runs of others.
    Requester,
}

fn viewer(authed: &AuthedRequest, requester: &Principal) -> RunViewer {
    if requester.is_same_person(&authed.caller.principal) {
        RunViewer::Requester
    } else if executor::may_decide(&authed.caller).is_ok() {
        RunViewer::Decider
    } else {
        RunViewer::Auditor
    }
}

/// A caller who decides, or reads the audit log, sees all runs of the tenant; everybody else sees their own.
fn may_see(authed: &AuthedRequest, run: &Run) -> bool {
    sees_all(authed) || run.asked.requester == authed.caller.principal
}

/// A token that may call tools may be an agent's, whatever else its issuer put there, and no agent reads what others
/// asked for.
fn sees_all(authed: &AuthedRequest) -> bool {
    let scopes = authed.caller.scopes;
    let person = !scopes.allow(TokenScope::ToolsRead);
    person && (scopes.allow(TokenScope::RunsDecide) || scopes.allow(TokenScope::AuditRead))
}

fn sees_runs(authed: &AuthedRequest) -> Result<(), Failure> {
    let scopes = authed.caller.scopes;
    if [TokenScope::ToolsRead, TokenScope::RunsDecide, TokenScope::AuditRead]
        .into_iter()
        .any(|scope| scopes.allow(scope))
    {
        return Ok(());
    }
    let failure = Failure::new(Code::InsufficientScope, "the token may not see runs");
    Err(failure.details(json!({ "scope": TokenScope::RunsDecide.as_str() })))
}

/// An id that cannot be a run's answers like an unknown one.
fn parse(id: &str) -> Result<RunId, Failure> {
    RunId::parse(id).map_err(|_| unknown())
}

fn unknown() -> Failure {
    Failure::new(Code::NotFound, "no such run")
}
