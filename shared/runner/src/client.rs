//! The service's API as a runner uses it.
//!
//! The token is read from its file for every request, so that a new one counts from then on.

use crate::lease::now_ms;
use domain::job::{JobEnding, JobOutput, JobSpec, RunnerLabel};
use domain::{JobId, RunnerId};
use egress::{FetchRequest, HttpClient};
use serde::Deserialize;
use serde_json::{Value, json};
use std::path::PathBuf;
use std::time::Duration;
use tokio::time::timeout;

/// How long a request that does not wait may take.
const ANSWER: Duration = Duration::from_secs(10);
/// How long a request for a job waits at the service.
const WAIT: Duration = Duration::from_secs(25);

/// A service and how this runner shows itself there.
pub struct JobClient {
    url: String,
    token_file: PathBuf,
    http: HttpClient,
    /// This process.
    pub runner: RunnerId,
    /// What it calls itself.
    pub name: String,
    /// What it serves.
    pub labels: Vec<RunnerLabel>,
    /// How many jobs it takes at a time.
    pub slots: u32,
}

/// A job that is ours for a while.
#[derive(Debug, Deserialize)]
pub struct ClaimedJob {
    /// Its id.
    pub id: JobId,
    /// The run or call it belongs to.
    pub owner: String,
    /// Which claim of it this is.
    pub epoch: u64,
    /// How long it is ours, from [`taken_ms`](ClaimedJob::taken_ms) on.
    pub lease_ms: u64,
    /// How long the request had waited at the service when the job was claimed.
    pub waited_ms: u64,
    /// What to execute.
    pub spec: JobSpec,
    /// No later than it was claimed, by this host's clock.
    #[serde(skip)]
    pub taken_ms: u64,
}

/// What the service says to a report.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
pub(crate) struct ReportAnswer {
    pub(crate) lease_ms: u64,
    pub(crate) cancel: bool,
    #[serde(skip)]
    pub(crate) sent_ms: u64,
}

/// Why there is no answer that helps.
#[derive(Debug, thiserror::Error)]
pub enum ClientFault {
    /// The token cannot be read.
    #[error("the token cannot be read")]
    Token(#[source] std::io::Error),
    /// The service is away, or something else answered. Trying again may help.
    #[error("the service did not answer: {0}")]
    Away(String),
    /// The service does not know the token, or does not let it do this.
    #[error("{code}: {message}")]
    Denied {
        /// The service's code.
        code: String,
        /// The service's words.
        message: String,
    },
    /// The job is not ours any more, or is over. Trying again does not help.
    #[error("{0}")]
    Lost(String),
    /// The service cannot read what was sent.
    #[error("{0}")]
    Rejected(String),
}

impl ClientFault {
    /// Whether the same request may succeed later.
    pub fn may_pass(&self) -> bool {
        match self {
            ClientFault::Token(_) | ClientFault::Away(_) | ClientFault::Denied { .. } => true,
            ClientFault::Lost(_) | ClientFault::Rejected(_) => false,
        }
    }
}

impl JobClient {
    /// A client for the service at this address.
    pub fn new(url: &str, token_file: PathBuf, http: HttpClient, runner: RunnerId) -> JobClient {
        let url = url.trim_end_matches('/').to_owned();
        JobClient { url, token_file, http, runner, name: String::new(), labels: Vec::new(), slots: 1 }
    }

    /// Waits for a job for a while. `None`: there was none.
    pub async fn claim(&self) -> Result<Option<ClaimedJob>, ClientFault> {
        #[derive(Deserialize)]
        struct OfferedJob {
            job: Option<ClaimedJob>,
        }
        let asked_ms = now_ms();
        let body = json!({
            "runner": self.runner, "name": self.name, "labels": self.labels, "slots": self.slots,
            "wait_ms": u64::try_from(WAIT.as_millis()).unwrap_or(0),
        });
        let answer = self.ask("/v1/runner/claim", body, WAIT + ANSWER).await?;
        let offer: OfferedJob = serde_json::from_value(answer).map_err(|_| unreadable())?;
        // The claim came later than the request by at least what the service had waited, so the lease lasts until later.
        let taken_ms = |job: &ClaimedJob| asked_ms.saturating_add(job.waited_ms).min(now_ms());
        Ok(offer.job.map(|job| ClaimedJob { taken_ms: taken_ms(&job), ..job }))
    }

    /// Reports that the job is about to be executed.
    pub(crate) async fn start(&self, job: &ClaimedJob) -> Result<ReportAnswer, ClientFault> {
        self.report(job, "start", json!({})).await
    }

    /// Shows that this process is still there, with a piece of output.
    pub(crate) async fn events(&self, job: &ClaimedJob, piece: Option<&Value>) -> Result<ReportAnswer, ClientFault> {
        self.report(job, "events", json!({ "piece": piece })).await
    }

    /// Reports what became of the job.
    pub(crate) async fn end(&self, job: &ClaimedJob, ending: &JobEnding) -> Result<ReportAnswer, ClientFault> {
        self.report(job, "end", json!({ "ending": ending })).await
    }

    /// Says that this process takes no more jobs.
    pub(crate) async fn leave(&self) -> Result<(), ClientFault> {
        self.ask("/v1/runner/leave", json!({ "runner": self.runner }), ANSWER).await.map(drop)
    }

    async fn report(&self, job: &ClaimedJob, what: &str, mut body: Value) -> Result<ReportAnswer, ClientFault> {
        body["runner"] = json!(self.runner);
        body["epoch"] = json!(job.epoch);
        let sent_ms = now_ms();
        let answer = self.ask(&format!("/v1/runner/jobs/{}/{what}", job.id), body, ANSWER).await?;
        let answer: ReportAnswer = serde_json::from_value(answer).map_err(|_| unreadable())?;
        Ok(ReportAnswer { sent_ms, ..answer })
    }

    async fn ask(&self, path: &str, body: Value, within: Duration) -> Result<Value, ClientFault> {
        let token = tokio::fs::read_to_string(&self.token_file).await.map_err(ClientFault::Token)?;
        let url = format!("{}{path}", self.url);
        let request = FetchRequest { method: "POST", url: &url, bearer: token.trim(), body: Some(body) };
        let (status, bytes) = match timeout(within, egress::ask(&self.http, request)).await {
            Ok(Ok(answer)) => answer,
            Ok(Err(error)) => return Err(ClientFault::Away(domain::text::error_chain(&error))),
            Err(_) => return Err(ClientFault::Away("no answer in time".into())),
        };
        let answer: Value = serde_json::from_slice(&bytes).unwrap_or(Value::Null);
        if (200..300).contains(&status) {
            return Ok(answer);
        }
        let text = |key: &str| answer["error"][key].as_str().unwrap_or_default().chars().take(300).collect::<String>();
        let (code, message) = (text("code"), domain::text::visible(&text("message")));
        Err(match (status, code.is_empty()) {
            (401 | 403, false) => ClientFault::Denied { code, message },
            (404 | 409, false) => ClientFault::Lost(message),
            (400 | 413 | 422, false) => ClientFault::Rejected(message),
            _ => ClientFault::Away(format!("status {status} {message}")),
        })
    }
}

fn unreadable() -> ClientFault {
    ClientFault::Away("its answer cannot be read".into())
}

/// One piece of output, as it travels.
pub(crate) fn piece(number: u64, output: &[JobOutput], dropped_bytes: u64) -> Value {
    json!({ "number": number, "output": output, "dropped_bytes": dropped_bytes })
}
