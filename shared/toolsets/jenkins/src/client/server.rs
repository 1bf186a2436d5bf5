//! One server, for one permit: what reads go through, and where a writer is had.

use crate::client::fault;
use crate::client::line::{BodyLimit, JenkinsConnection, MOST_BYTES};
use crate::client::path::JobPath;
use crate::client::request::{ServerRequest, Verb};
use domain::Failure;
use egress::GuardedResponse;
use policy::Permit;
use serde::de::DeserializeOwned;
use std::sync::Arc;
use std::time::Duration;
use tokio::time::{Instant, sleep};

/// How long the calls through one handle may take together, unless said otherwise.
const DEADLINE: Duration = Duration::from_secs(30);
/// How often a read is repeated, and the first and longest wait between.
const RETRIES: u32 = 2;
const FIRST_WAIT: Duration = Duration::from_millis(100);
const LONGEST_WAIT: Duration = Duration::from_secs(2);

/// One server of the permit's tenant. Lives no longer than the permit.
pub struct PermittedServer<'p> {
    pub(in crate::client) line: Arc<JenkinsConnection>,
    pub(in crate::client) permit: &'p Permit,
    pub(in crate::client) deadline: Instant,
}

impl<'p> PermittedServer<'p> {
    pub(in crate::client) fn new(line: Arc<JenkinsConnection>, permit: &'p Permit) -> PermittedServer<'p> {
        PermittedServer { line, permit, deadline: Instant::now() + DEADLINE }
    }

    /// The same handle, whose calls must all be done within this time from now.
    #[must_use]
    pub fn within(mut self, time: Duration) -> PermittedServer<'p> {
        self.deadline = Instant::now() + time;
        self
    }

    /// How much of that time is left.
    pub fn time_left(&self) -> Duration {
        self.deadline.saturating_duration_since(Instant::now())
    }

    /// Its name.
    pub fn name(&self) -> &str {
        &self.line.config.name
    }

    /// Who we are there.
    pub fn user(&self) -> &str {
        &self.line.config.user
    }

    /// Whether it is the sandbox.
    pub fn simulated(&self) -> bool {
        self.line.config.simulated
    }

    /// The parameter that is filled with the run's id wherever a job declares it.
    pub fn run_id_parameter(&self) -> &str {
        &self.line.config.run_id_parameter
    }

    /// Where people look at a job or a build of it: made from the configured address, never from an answer.
    pub fn address(&self, job: &JobPath, number: Option<u32>) -> String {
        let base = self.line.config.url.as_str().trim_end_matches('/');
        let number = number.map(|number| format!("/{number}")).unwrap_or_default();
        format!("{base}{}{number}/", job.address())
    }

    /// A GET whose answer is JSON.
    pub(in crate::client) async fn read_json<T: DeserializeOwned>(
        &self,
        request: &ServerRequest,
    ) -> Result<T, Failure> {
        let answer = self.read(request, BodyLimit::Whole(MOST_BYTES)).await?;
        serde_json::from_slice(&answer.body).map_err(|_| fault::not_jenkins())
    }

    /// A GET, repeated while the server is busy and the deadline allows. Anything but a 2xx is a failure.
    pub(in crate::client) async fn read(
        &self,
        request: &ServerRequest,
        take: BodyLimit,
    ) -> Result<GuardedResponse, Failure> {
        debug_assert_eq!(request.verb, Verb::Get);
        let (mut wait, mut left) = (FIRST_WAIT, RETRIES);
        loop {
            let sent = self.line.send(request, take, self.deadline).await;
            let answer = sent.map_err(|lost| fault::of_read(&lost))?;
            if (200..300).contains(&answer.status) {
                return Ok(answer);
            }
            let busy = matches!(answer.status, 429 | 503 | 504);
            let pause = fault::retry_after(&answer).unwrap_or(wait);
            if !busy || left == 0 || Instant::now() + pause >= self.deadline {
                return Err(fault::of_status(request, &answer));
            }
            sleep(pause).await;
            (wait, left) = ((wait * 2).min(LONGEST_WAIT), left - 1);
        }
    }
}

impl std::fmt::Debug for PermittedServer<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Server({} of {})", self.name(), self.permit.tenant())
    }
}
