//! `/v1/runs`, and the same at `/runs`: what waits for a person, and what a person says to it.
//!
//! A `GET` never decides. Whoever decides needs `runs:decide` and no tool scope; agents see their own runs and no others.

use crate::app::Gateway;
use crate::http::caller::AuthedRequest;
use crate::http::{catch, reply, sessions};
use crate::protocol::turn;
use actix_web::http::StatusCode;
use actix_web::web::{Data, Path, Payload, Query};
use actix_web::{HttpRequest, HttpResponse};
use catalog::Progress;
use domain::run::{Run, RunState, Verdict};
use domain::{Code, Failure, Moment, RunId, TokenScope};
use executor::RunDecision;
use executor::runs::{RunWait, WaitUntil, told};
use serde::Deserialize;
use serde_json::{Value, json};
use std::time::Duration;
use store::{RunBrief, StoreError};

/// Runs on one page.
const PAGE: usize = 50;
/// How many runs are looked through for a filtered page, by their brief records.
const LOOKED_THROUGH: usize = 1_000;
/// How many of these records are read at once.
const READ_AT_ONCE: usize = 100;

/// The query of a list.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct RunsQuery {
    state: Option<RunState>,
    session: Option<String>,
    tool: Option<String>,
    cursor: Option<String>,
}

/// `GET /v1/runs`: newest first.
pub async fn list(known: AuthedRequest, filter: Query<RunsQuery>, gateway: Data<Gateway>) -> HttpResponse {
    let page = async {
        sees_runs(&known)?;
        let from = filter.cursor.as_deref().map(read_cursor).transpose()?;
        let runs = gateway.store.of(&known.caller.tenant).runs();
        let own = (!sees_all(&known)).then_some(&known.caller.principal);
        let ids = runs.ids(own, from.map(|(at, _)| at), LOOKED_THROUGH).await.map_err(|e| no_store(&e))?;
        // Several runs may have been asked in one millisecond; the cursor names the last one that was looked at.
        let behind = from.and_then(|(_, id)| ids.iter().position(|run| *run == id)).map_or(0, |at| at + 1);
        let (mut shown, mut last) = (Vec::new(), None);
        for some in ids[behind..].chunks(READ_AT_ONCE) {
            for run in runs.briefs(some).await.map_err(|e| no_store(&e))? {
                if shown.len() == PAGE {
                    break;
                }
                if wanted(&filter, &run) {
                    shown.push(brief(&run));
                }
                last = Some((run.asked_at, run.id));
            }
            if shown.len() == PAGE {
                break;
            }
        }
        let more = shown.len() == PAGE || ids.len() == LOOKED_THROUGH;
        let next = last.filter(|_| more).map(|(at, id)| format!("{}-{id}", at.millis()));
        Ok::<Value, Failure>(json!({ "runs": shown, "next_cursor": next }))
    };
    answer(&gateway, &known, page.await)
}

fn no_store(error: &StoreError) -> Failure {
    Failure::new(error.code(), "the state store did not answer").retry_after_ms(1_000)
}

fn wanted(filter: &RunsQuery, run: &RunBrief) -> bool {
    filter.state.is_none_or(|state| run.state == state)
        && filter.tool.as_deref().is_none_or(|tool| run.tool.as_str() == tool)
        && filter.session.as_deref().is_none_or(|id| run.session.is_some_and(|s| s.to_string() == id))
}

fn read_cursor(text: &str) -> Result<(Moment, RunId), Failure> {
    let read = || {
        let (at, id) = text.split_once('-')?;
        Some((Moment::from_millis(at.parse().ok()?), RunId::parse(id).ok()?))
    };
    read().ok_or_else(|| Failure::new(Code::BadCursor, "the cursor is not one of this list"))
}

/// The query of one run.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct RunQuery {
    #[serde(default)]
    wait_ms: u64,
}

/// `GET /v1/runs/{id}?wait_ms=`: reads the run and changes nothing, whoever asks. The agent that asked for it receives
/// its result by the call itself or by `await_run`.
pub async fn show(
    mut known: AuthedRequest,
    id: Path<String>,
    patience: Query<RunQuery>,
    gateway: Data<Gateway>,
) -> HttpResponse {
    // Whoever waits holds no place of those who do not.
    let place = known.place.take();
    let shown = async {
        sees_runs(&known)?;
        let id = parse(&id)?;
        let tenant = &known.caller.tenant;
        let _place = match patience.wait_ms {
            0 => place,
            _ => Some(gateway.executor.admit_waiting(&known.caller)?),
        };
        let waiting = RunWait {
            until: WaitUntil::Moved,
            patience: Duration::from_millis(patience.wait_ms.min(turn::LONGEST_WAIT_MS)),
            may_see: &|run| may_see(&known, run),
            progress: &Progress::default(),
        };
        let held = gateway.executor.wait_for(tenant, id, waiting).await?;
        Ok(told::to_person(&held.run))
    };
    answer(&gateway, &known, shown.await)
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct RejectionReason {
    #[serde(default)]
    reason: Option<String>,
}

/// The longest reason a person can give.
const LONGEST_REASON: usize = 2_000;

/// `POST /v1/runs/{id}/approve`.
pub async fn approve(
    known: AuthedRequest,
    request: HttpRequest,
    id: Path<String>,
    payload: Payload,
    gateway: Data<Gateway>,
) -> HttpResponse {
    catch::on_rest(&known, decide(&known, &request, &id, payload, &gateway, Verdict::Approve)).await
}

/// `POST /v1/runs/{id}/reject`.
pub async fn reject(
    known: AuthedRequest,
    request: HttpRequest,
    id: Path<String>,
    payload: Payload,
    gateway: Data<Gateway>,
) -> HttpResponse {
    catch::on_rest(&known, decide(&known, &request, &id, payload, &gateway, Verdict::Reject)).await
}

async fn decide(
    known: &AuthedRequest,
    request: &HttpRequest,
    id: &str,
    payload: Payload,
    gateway: &Data<Gateway>,
    verdict: Verdict,
) -> HttpResponse {
    let decided = async {
        executor::may_decide(&known.caller)?;
        let RejectionReason { reason } = sessions::read(request, payload, gateway).await?;
        if reason.as_ref().is_some_and(|reason| reason.len() > LONGEST_REASON) {
            return Err(Failure::new(Code::TooLarge, format!("a reason has at most {LONGEST_REASON} bytes")));
        }
        let said = RunDecision { verdict, reason };
        let run = gateway.executor.answer(&known.snapshot, &known.caller, parse(id)?, said).await?;
        Ok(told::to_person(&run))
    };
    answer(gateway, known, Box::pin(decided).await)
}

/// `POST /v1/runs/{id}/cancel`: the requester takes a pending run back.
pub async fn cancel(known: AuthedRequest, id: Path<String>, gateway: Data<Gateway>) -> HttpResponse {
    let cancelled = async {
        let run = gateway.executor.cancel_run(&known.caller, parse(&id)?).await?;
        Ok(told::to_person(&run))
    };
    answer(&gateway, &known, cancelled.await)
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct SettleRequest {
    outcome: SettledOutcome,
}

#[derive(Debug, Deserialize, PartialEq)]
#[serde(rename_all = "snake_case")]
enum SettledOutcome {
    Succeeded,
    Failed,
}

/// `POST /v1/runs/{id}/resolve`: a person settles an unknown outcome.
pub async fn resolve(
    known: AuthedRequest,
    request: HttpRequest,
    id: Path<String>,
    payload: Payload,
    gateway: Data<Gateway>,
) -> HttpResponse {
    let resolved = async {
        executor::may_decide(&known.caller)?;
        let SettleRequest { outcome } = sessions::read(&request, payload, &gateway).await?;
        let run = gateway.executor.resolve(&known.caller, parse(&id)?, outcome == SettledOutcome::Succeeded).await?;
        Ok(told::to_person(&run))
    };
    answer(&gateway, &known, resolved.await)
}

/// `POST /v1/runs/{id}/clear`: a person lets a session whose step this rejection ended go on.
pub async fn clear(known: AuthedRequest, id: Path<String>, gateway: Data<Gateway>) -> HttpResponse {
    let cleared = async { Ok(told::to_person(&gateway.executor.clear(&known.caller, parse(&id)?).await?)) };
    answer(&gateway, &known, cleared.await)
}

fn answer(gateway: &Gateway, known: &AuthedRequest, told: Result<Value, Failure>) -> HttpResponse {
    match told {
        Ok(told) => reply::json(StatusCode::OK, &known.trace_id, told.to_string()),
        Err(failure) => reply::failure(gateway, &failure, &known.trace_id),
    }
}

/// A line of a list: enough to choose from.
fn brief(run: &RunBrief) -> Value {
    json!({
        "id": run.id.to_string(),
        "state": run.state.as_str(),
        "tool": run.tool.as_str(),
        "effect": run.effect.as_str(),
        "summary": run.summary,
        "requested_by": run.requester.subject,
        "asked_at": run.asked_at.to_string(),
        "expires_at": run.expires_at.to_string(),
    })
}

/// Whoever calls tools sees its own runs; whoever decides, or reads the ledger, sees all of the tenant's.
fn may_see(known: &AuthedRequest, run: &Run) -> bool {
    sees_all(known) || run.asked.requester == known.caller.principal
}

fn sees_all(known: &AuthedRequest) -> bool {
    let scopes = known.caller.scopes;
    scopes.allow(TokenScope::RunsDecide) || scopes.allow(TokenScope::AuditRead)
}

fn sees_runs(known: &AuthedRequest) -> Result<(), Failure> {
    let scopes = known.caller.scopes;
    if [TokenScope::ToolsRead, TokenScope::RunsDecide, TokenScope::AuditRead]
        .into_iter()
        .any(|scope| scopes.allow(scope))
    {
        return Ok(());
    }
    let failure = Failure::new(Code::InsufficientScope, "the token may not see runs");
    Err(failure.details(json!({ "scope": TokenScope::RunsDecide.as_str() })))
}

/// What cannot be a run's name answers like one that never was.
fn parse(id: &str) -> Result<RunId, Failure> {
    RunId::parse(id).map_err(|_| unknown())
}

fn unknown() -> Failure {
    Failure::new(Code::NotFound, "no such run")
}
