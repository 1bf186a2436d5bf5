//! `/v1/runner`: where runners take jobs, show that they are there, and report.
//!
//! A runner's token has the scope `runner:work` and no other, and opens nothing but these addresses. It names the labels
//! whose jobs the runner may take; a token without labels takes none.
//!
//! Not here: how a job may move (see `domain::job`) and how it is kept (see `store`).

use crate::app::Gateway;
use crate::http::caller::AuthedRequest;
use crate::http::{catch, reply, sessions};
use crate::openapi::shapes::AnyObject;
use actix_web::http::StatusCode;
use actix_web::web::{Data, Path, Payload};
use actix_web::{HttpRequest, HttpResponse};
use domain::job::{JobEnding, JobHolder, JobOutput, JobRefusal, JobSpec, RunnerLabel};
use domain::text::visible;
use domain::{Code, Failure, Job, JobId, RunnerId, SwitchMode, SwitchSubject, Tenant, TokenScope};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use std::collections::BTreeSet;
use std::time::Duration;
use store::{AuditEntry, JobChange, JobStore, OutputPiece, Phase, RunnerPresence, StoreError, Topic, WakeUp};
use telemetry::metrics;
use tokio::time::{Instant, timeout_at};
use tracing::Instrument;

/// The longest that a request for a job waits.
const LONGEST_WAIT: Duration = Duration::from_secs(25);
/// A job that was claimed and never started comes up without a wake-up, so a waiting request looks now and then.
const LOOK_EVERY: Duration = Duration::from_secs(5);
/// How much output one report may carry.
const PIECE_BYTES: usize = 64 * 1024;
/// The longest reason that is kept of an ending.
const REASON: usize = 500;
/// The longest name of a runner.
const NAME: usize = 100;

/// A runner asks for a job.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct JobRequest {
    #[schemars(with = "String")]
    runner: RunnerId,
    #[serde(default)]
    name: String,
    #[schemars(with = "Vec<String>")]
    labels: Vec<RunnerLabel>,
    #[serde(default)]
    slots: u32,
    #[serde(default)]
    wait_ms: u64,
}

/// What a runner is given.
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct JobOffer {
    job: Option<ClaimedJob>,
}

/// A job that is the runner's for a while.
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct ClaimedJob {
    #[schemars(with = "String")]
    id: JobId,
    /// The run or call it belongs to.
    owner: String,
    epoch: u64,
    lease_ms: u64,
    /// How long the request had waited when the job was claimed: the lease does not begin before that.
    waited_ms: u64,
    #[schemars(with = "AnyObject")]
    spec: JobSpec,
}

/// A runner speaks of a job that it has.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct JobReport {
    #[schemars(with = "String")]
    runner: RunnerId,
    epoch: u64,
    #[serde(default)]
    piece: Option<ReportedPiece>,
    #[serde(default)]
    #[schemars(with = "Option<serde_json::Value>")]
    ending: Option<JobEnding>,
}

/// A piece of output.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct ReportedPiece {
    number: u64,
    #[schemars(with = "Vec<serde_json::Value>")]
    output: Vec<JobOutput>,
    #[serde(default)]
    dropped_bytes: u64,
}

/// A runner goes.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct Departure {
    #[schemars(with = "String")]
    runner: RunnerId,
}

/// `POST /v1/runner/claim`: the job that has waited longest, or none after waiting.
pub async fn claim(
    mut authed: AuthedRequest,
    request: HttpRequest,
    payload: Payload,
    gateway: Data<Gateway>,
) -> HttpResponse {
    // Whoever waits holds no place of those who do not.
    drop(authed.place.take());
    let claimed = async {
        serves(&authed)?;
        let asked: JobRequest = sessions::read(&request, payload, &gateway).await?;
        let labels = served(&authed, &asked.labels)?;
        let _place = gateway.executor.admit_waiting(&authed.caller)?;
        let jobs = gateway.store.of(&authed.caller.tenant).jobs();
        let lease = gateway.settings.runners.lease;
        let name = visible(&asked.name).chars().take(NAME).collect();
        let presence = RunnerPresence { id: asked.runner, name, labels, slots: asked.slots };
        if !jobs.announce(&presence, lease * 2).await.map_err(|error| stored(&error))? {
            let message = "as many runners of a label are there as may be";
            return Err(Failure::new(Code::QuotaExceeded, message).retry_after_ms(30_000));
        }
        let wait = Duration::from_millis(asked.wait_ms).min(LONGEST_WAIT).min(lease);
        let job = waited(&gateway, &authed, &jobs, &presence, wait).await?;
        Ok(JobOffer { job: job.map(|(job, waited)| offered(job, waited, lease)) })
    };
    answer(&gateway, &authed, "runner claim", Box::pin(claimed)).await
}

/// `POST /v1/runner/jobs/{job}/start`: the runner is about to execute. Without this answer it must not.
pub async fn start(
    authed: AuthedRequest,
    request: HttpRequest,
    id: Path<String>,
    payload: Payload,
    gateway: Data<Gateway>,
) -> HttpResponse {
    let started = async {
        serves(&authed)?;
        let report: JobReport = sessions::read(&request, payload, &gateway).await?;
        let (jobs, holder, lease) = parts(&gateway, &authed, report.runner);
        let changed = jobs.start(parse(&id)?, &holder, report.epoch, lease, &entry(&gateway, &authed)).await;
        moved(changed).map(|job| held(&job, lease))
    };
    answer(&gateway, &authed, "runner start", Box::pin(started)).await
}

/// `POST /v1/runner/jobs/{job}/events`: the runner is still there, perhaps with more output. The answer tells whether the
/// job is to be ended.
pub async fn events(
    authed: AuthedRequest,
    request: HttpRequest,
    id: Path<String>,
    payload: Payload,
    gateway: Data<Gateway>,
) -> HttpResponse {
    let renewed = async {
        serves(&authed)?;
        let report: JobReport = sessions::read(&request, payload, &gateway).await?;
        let piece = report.piece.map(checked).transpose()?;
        let (jobs, holder, lease) = parts(&gateway, &authed, report.runner);
        let changed = jobs.renew(parse(&id)?, &holder, report.epoch, lease, piece.as_ref()).await;
        moved(changed).map(|job| held(&job, lease))
    };
    answer(&gateway, &authed, "runner events", Box::pin(renewed)).await
}

/// `POST /v1/runner/jobs/{job}/end`: what became of the job.
pub async fn end(
    authed: AuthedRequest,
    request: HttpRequest,
    id: Path<String>,
    payload: Payload,
    gateway: Data<Gateway>,
) -> HttpResponse {
    let ended = async {
        serves(&authed)?;
        let report: JobReport = sessions::read(&request, payload, &gateway).await?;
        let ending = report.ending.ok_or_else(|| Failure::new(Code::InvalidRequest, "ending is missing"))?;
        let (jobs, holder, lease) = parts(&gateway, &authed, report.runner);
        let entry = entry(&gateway, &authed);
        let changed = jobs.end(parse(&id)?, &holder, report.epoch, &shortened(ending), &entry).await;
        moved(changed).map(|job| held(&job, lease))
    };
    answer(&gateway, &authed, "runner end", Box::pin(ended)).await
}

/// `POST /v1/runner/leave`: the runner takes no more jobs. What it has it still reports.
pub async fn leave(
    authed: AuthedRequest,
    request: HttpRequest,
    payload: Payload,
    gateway: Data<Gateway>,
) -> HttpResponse {
    let left = async {
        serves(&authed)?;
        let Departure { runner } = sessions::read(&request, payload, &gateway).await?;
        let jobs = gateway.store.of(&authed.caller.tenant).jobs();
        jobs.depart(runner, &authed.caller.labels).await.map_err(|error| stored(&error))?;
        Ok(json!({}))
    };
    answer(&gateway, &authed, "runner leave", Box::pin(left)).await
}

/// Checks that the token is a runner's: a runner executes what others ask for, so it may ask for nothing itself.
fn serves(authed: &AuthedRequest) -> Result<(), Failure> {
    let scopes = authed.caller.scopes;
    let message = if !scopes.allow(TokenScope::RunnerWork) {
        "the token lacks the scope runner:work"
    } else if scopes.iter().count() > 1 {
        "a runner's token has the scope runner:work and no other"
    } else if authed.caller.labels.is_empty() {
        "the token names no labels, so it may take no jobs"
    } else {
        return Ok(());
    };
    let scope = json!({ "scope": TokenScope::RunnerWork.as_str() });
    Err(Failure::new(Code::InsufficientScope, message).details(scope))
}

/// The labels a runner wants to serve, each of which its token has to name.
fn served(authed: &AuthedRequest, wanted: &[RunnerLabel]) -> Result<Vec<RunnerLabel>, Failure> {
    if wanted.is_empty() {
        return Err(Failure::new(Code::InvalidRequest, "labels is empty"));
    }
    match wanted.iter().find(|label| !authed.caller.labels.contains(label)) {
        None => Ok(wanted.iter().cloned().collect::<BTreeSet<_>>().into_iter().collect()),
        Some(label) => {
            let message = format!("the token does not name the label {label}");
            let scope = json!({ "scope": TokenScope::RunnerWork.as_str(), "label": label });
            Err(Failure::new(Code::InsufficientScope, message).details(scope))
        }
    }
}

/// Waits for a job, and tells how long it waited before it claimed one. A wake-up only says when to look.
async fn waited(
    gateway: &Gateway,
    authed: &AuthedRequest,
    jobs: &JobStore,
    runner: &RunnerPresence,
    wait: Duration,
) -> Result<Option<(Job, Duration)>, Failure> {
    let _waiting = metrics::RUNNERS_WAITING.enter([]);
    let mut watch = gateway.store.of(&authed.caller.tenant).watch();
    let holder = JobHolder { runner: runner.id, principal: authed.caller.principal.clone() };
    let (began, lease, entry) = (Instant::now(), gateway.settings.runners.lease, entry(gateway, authed));
    let until = began + wait;
    loop {
        let waited = began.elapsed();
        let claimed = match is_stopped(gateway, &authed.caller.tenant) {
            true => None,
            false => jobs.claim(&runner.labels, &holder, lease, &entry).await.map_err(|error| stored(&error))?,
        };
        if claimed.is_some() || Instant::now() >= until {
            return Ok(claimed.map(|job| (job, waited)));
        }
        let look = (Instant::now() + LOOK_EVERY).min(until);
        let woken = async {
            while let Ok(wake) = timeout_at(look, watch.next()).await {
                match wake {
                    WakeUp::Resync => return,
                    WakeUp::Topic(Topic::Jobs(label)) if runner.labels.contains(&label) => return,
                    WakeUp::Topic(_) => {}
                }
            }
        };
        tokio::select! {
            () = woken => {}
            () = gateway.tasks.stopping().cancelled() => return Ok(None),
        }
    }
}

/// Whether a kill switch stops the whole tenant: jobs that wait go on waiting.
fn is_stopped(gateway: &Gateway, tenant: &Tenant) -> bool {
    let now = gateway.clock.now();
    gateway.store.switches().all().iter().any(|switch| {
        switch.on == SwitchSubject::Tenant && switch.mode == SwitchMode::Stop && switch.is_in_force(tenant, now)
    })
}

fn offered(job: Job, waited: Duration, lease: Duration) -> ClaimedJob {
    let epoch = job.claim.as_ref().map_or(0, |claim| claim.epoch);
    ClaimedJob {
        id: job.id,
        owner: job.owner,
        epoch,
        lease_ms: millis(lease),
        waited_ms: millis(waited),
        spec: job.spec,
    }
}

fn held(job: &Job, lease: Duration) -> Value {
    json!({ "lease_ms": millis(lease), "cancel": job.cancel })
}

fn millis(span: Duration) -> u64 {
    u64::try_from(span.as_millis()).unwrap_or(u64::MAX)
}

fn parts(gateway: &Gateway, authed: &AuthedRequest, runner: RunnerId) -> (JobStore, JobHolder, Duration) {
    let jobs = gateway.store.of(&authed.caller.tenant).jobs();
    let holder = JobHolder { runner, principal: authed.caller.principal.clone() };
    (jobs, holder, gateway.settings.runners.lease)
}

fn parse(id: &str) -> Result<JobId, Failure> {
    JobId::parse(id).map_err(|_| absent())
}

fn checked(piece: ReportedPiece) -> Result<OutputPiece, Failure> {
    let ReportedPiece { number, output, dropped_bytes } = piece;
    if output.iter().map(|output| output.text.len()).sum::<usize>() > PIECE_BYTES {
        return Err(Failure::new(Code::TooLarge, format!("a report carries at most {PIECE_BYTES} bytes of output")));
    }
    Ok(OutputPiece { number, output, dropped_bytes })
}

/// The ending with its reason cut: it is a runner's text.
fn shortened(ending: JobEnding) -> JobEnding {
    let short = |reason: String| visible(&reason).chars().take(REASON).collect();
    match ending {
        JobEnding::Refused { reason } => JobEnding::Refused { reason: short(reason) },
        JobEnding::NotBegun { reason } => JobEnding::NotBegun { reason: short(reason) },
        JobEnding::Unknown { reason } => JobEnding::Unknown { reason: short(reason) },
        other @ (JobEnding::AlreadyDone | JobEnding::Succeeded | JobEnding::Failed { .. } | JobEnding::Cancelled) => {
            other
        }
    }
}

fn moved(changed: Result<JobChange, StoreError>) -> Result<Job, Failure> {
    match changed.map_err(|error| stored(&error))? {
        JobChange::Done(job) => Ok(job),
        JobChange::Absent => Err(absent()),
        JobChange::Refused(refusal) => {
            if refusal == JobRefusal::Fenced {
                tracing::warn!("a runner showed a claim that does not hold the job any more");
            }
            Err(Failure::new(Code::Conflict, refusal.to_string())
                .details(json!({ "reason": refusal.as_str() }))
                .next("execute nothing more of this job"))
        }
    }
}

fn absent() -> Failure {
    Failure::new(Code::NotFound, "there is no such job")
}

fn stored(error: &StoreError) -> Failure {
    error.failure("; the job is as it was")
}

fn entry(gateway: &Gateway, authed: &AuthedRequest) -> AuditEntry {
    AuditEntry {
        actor: Some(gateway.executor.runner(&authed.caller)),
        trace: Some(authed.trace_id.clone()),
        ..AuditEntry::new(Phase::Transition)
    }
}

async fn answer<T: Serialize>(
    gateway: &Gateway,
    authed: &AuthedRequest,
    operation: &'static str,
    work: impl Future<Output = Result<T, Failure>>,
) -> HttpResponse {
    let span = tracing::info_span!(
        "runner",
        otel.name = operation,
        quartermaster.tenant = %authed.caller.tenant,
        quartermaster.entry = "rest",
    );
    let response = async { reply::answer(gateway, authed, StatusCode::OK, None, work.instrument(span).await) };
    catch::on_rest(authed, response).await
}
