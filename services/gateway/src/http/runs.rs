//! `/v1/runs`, and the same at `/runs`: people list, read and decide runs.
//!
//! A `GET` never decides. What may be seen and done is in `run_desk`, which the console calls too.

use crate::app::Gateway;
use crate::http::caller::AuthedRequest;
use crate::http::{catch, reply, sessions};
use crate::protocol::turn;
use crate::run_desk::{self, RunFilter, RunViewer};
use actix_web::http::StatusCode;
use actix_web::web::{Data, Path, Payload, Query};
use actix_web::{HttpRequest, HttpResponse};
use catalog::Progress;
use domain::Failure;
use domain::run::{RunState, Verdict};
use executor::runs::{RunWait, WaitUntil, report};
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::{Value, json};
use std::time::Duration;
use store::RunBrief;

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
pub async fn list(authed: AuthedRequest, query: Query<RunsQuery>, gateway: Data<Gateway>) -> HttpResponse {
    let page = async {
        let RunsQuery { state, session, tool, cursor } = query.into_inner();
        let filter = RunFilter { state, session, tool, ..RunFilter::default() };
        let page = run_desk::page(&gateway, &authed, &filter, cursor.as_deref()).await?;
        let runs: Vec<Value> = page.runs.iter().map(|(run, viewer)| brief(run, *viewer)).collect();
        Ok::<Value, Failure>(json!({ "runs": runs, "next_cursor": page.next }))
    };
    answer(&gateway, &authed, page.await)
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
        run_desk::sees_runs(&authed)?;
        let id = run_desk::parse(&id)?;
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
            may_see: &|run| run_desk::may_see(&authed, run),
            progress: &Progress::default(),
        };
        let versioned = gateway.executor.wait_for(tenant, id, waiting).await?;
        let run = &versioned.run;
        Ok(run_desk::told(run, run_desk::viewer(&authed, &run.asked.requester)))
    };
    answer(&gateway, &authed, run.await)
}

/// `GET /v1/runs/{id}/arguments`: the exact arguments, with nothing hidden, for somebody who decides. Who read them is in
/// the audit log before they leave.
pub async fn arguments(authed: AuthedRequest, id: Path<String>, gateway: Data<Gateway>) -> HttpResponse {
    answer(&gateway, &authed, run_desk::arguments(&gateway, &authed, &id).await)
}

/// What a person decides with.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct DecisionRequest {
    #[serde(default)]
    reason: Option<String>,
}

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
        Ok(report::to_person(&run_desk::decide(gateway, authed, id, verdict, reason).await?))
    };
    answer(gateway, authed, Box::pin(decided).await)
}

/// `POST /v1/runs/{id}/cancel`: the requester takes a pending run back.
pub async fn cancel(authed: AuthedRequest, id: Path<String>, gateway: Data<Gateway>) -> HttpResponse {
    let cancelled = async { Ok(report::to_requester(&run_desk::cancel(&gateway, &authed, &id).await?)) };
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
        let succeeded = outcome == SettledOutcome::Succeeded;
        Ok(report::to_person(&run_desk::resolve(&gateway, &authed, &id, succeeded).await?))
    };
    answer(&gateway, &authed, resolved.await)
}

/// `POST /v1/runs/{id}/clear`: a person unblocks the session that this rejection blocked.
pub async fn clear(authed: AuthedRequest, id: Path<String>, gateway: Data<Gateway>) -> HttpResponse {
    let cleared = async { Ok(report::to_person(&run_desk::clear(&gateway, &authed, &id).await?)) };
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
    json!({
        "id": run.id.to_string(),
        "state": run.state.as_str(),
        "tool": run.tool.as_str(),
        "effect": run.effect.as_str(),
        "summary": run_desk::summary(run, viewer),
        "requested_by": run.requester.subject,
        "asked_at": run.asked_at.to_string(),
        "expires_at": run.expires_at.to_string(),
    })
}
