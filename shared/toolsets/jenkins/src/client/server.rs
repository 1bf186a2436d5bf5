//! One server, for one permit: what reads go through, and where a writer is had.

use crate::client::connection::{BodyLimit, JenkinsConnection, MOST_BYTES};
use crate::client::fault;
use crate::client::path::JobPath;
use crate::client::request::{ServerRequest, Verb};
use domain::Failure;
use egress::GuardedResponse;
use policy::Permit;
use serde::de::DeserializeOwned;
use std::sync::Arc;
use std::time::Duration;
use target::BusyRetries;
use tokio::time::{Instant, sleep};

/// How long the calls through one handle may take together, unless said otherwise.
const DEADLINE: Duration = Duration::from_secs(30);
/// How long before a read is repeated for the first time.
const FIRST_WAIT: Duration = Duration::from_millis(100);

/// One server of the permit's tenant. Lives no longer than the permit.
pub struct PermittedServer<'p> {
    pub(in crate::client) connection: Arc<JenkinsConnection>,
    pub(in crate::client) permit: &'p Permit,
    pub(in crate::client) deadline: Instant,
}

impl<'p> PermittedServer<'p> {
    pub(in crate::client) fn new(connection: Arc<JenkinsConnection>, permit: &'p Permit) -> PermittedServer<'p> {
        PermittedServer { connection, permit, deadline: Instant::now() + DEADLINE }
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
        &self.connection.config.name
    }

    /// Who we are there.
    pub fn user(&self) -> &str {
        &self.connection.config.user
    }

    /// Whether it is the sandbox.
    pub fn simulated(&self) -> bool {
        self.connection.config.simulated
    }

    /// Where it is, as configured.
    pub fn base(&self) -> &str {
        self.connection.config.url.as_str().trim_end_matches('/')
    }

    /// The parameter that is filled with the run's id wherever a job declares it.
    pub fn run_id_parameter(&self) -> &str {
        &self.connection.config.run_id_parameter
    }

    /// Where people look at a job or a build of it: made from the configured address, never from an answer.
    pub fn address(&self, job: &JobPath, number: Option<u32>) -> String {
        let base = self.base();
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
        let mut retries = BusyRetries::new(FIRST_WAIT);
        loop {
            let sent = self.connection.send(request, take, self.deadline).await;
            let answer = sent.map_err(|lost| fault::of_read(&lost))?;
            if (200..300).contains(&answer.status) {
                return Ok(answer);
            }
            match retries.next_wait(answer.status, fault::retry_after(&answer), self.deadline) {
                Some(wait) => sleep(wait).await,
                None => return Err(fault::of_status(request, &answer)),
            }
        }
    }
}

impl std::fmt::Debug for PermittedServer<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Server({} of {})", self.name(), self.permit.tenant())
    }
}
