//! Changing. A writer is had only by a permit to change that may act, and sends each request once.
//!
//! What comes of a request whose answer is lost is unknown, never failed: see `fault`. Jenkins has no dry run, so under
//! a rehearsal there is no writer at all.

use crate::client::connection::BodyLimit;
use crate::client::fault;
use crate::client::path::{BuildSelector, JobPath};
use crate::client::request::{MissingSubject, ServerRequest, Verb};
use crate::client::server::PermittedServer;
use domain::{Code, Effect, Failure};
use egress::{GuardedResponse, Url};
use policy::PermitMode;
use serde::Deserialize;
use serde_json::json;

/// How much of an answer to a write is looked at.
const MOST_BYTES: usize = 64 * 1024;

/// What writes go through.
#[derive(Debug)]
pub struct JenkinsWriter<'a> {
    server: &'a PermittedServer<'a>,
}

/// How hard a build is stopped.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum StopSignal {
    /// It is asked to end.
    Stop,
    /// A pipeline is ended without waiting for its steps.
    Term,
    /// A pipeline is ended without any clean-up.
    Kill,
}

impl PermittedServer<'_> {
    /// A writer, for a permit to change something. A rehearsal has none.
    pub fn write(&self) -> Result<JenkinsWriter<'_>, Failure> {
        match (self.permit.effect(), self.permit.extent()) {
            (Effect::Change | Effect::Disrupt, PermitMode::Act) => Ok(JenkinsWriter { server: self }),
            (Effect::Read, PermitMode::Rehearse | PermitMode::Act) => {
                Err(Failure::new(Code::PolicyDenied, "a call that only reads changes nothing"))
            }
            (Effect::Change | Effect::Disrupt, PermitMode::Rehearse) => {
                Err(Failure::new(Code::PolicyDenied, "a rehearsal sends nothing to a Jenkins server"))
            }
        }
    }
}

impl JenkinsWriter<'_> {
    /// Starts a build, and gives the id of its item in the queue. A job that declares parameters is started by another
    /// address than one that does not, also where none is given.
    pub async fn trigger(&self, job: &JobPath, parameters: Option<&[(String, String)]>) -> Result<u64, Failure> {
        let request = match parameters {
            None => ServerRequest::job(Verb::Post, job, "/build", "/job/{job}/build"),
            Some(form) => {
                let request =
                    ServerRequest::job(Verb::Post, job, "/buildWithParameters", "/job/{job}/buildWithParameters");
                form.iter().fold(request, |request, (name, value)| request.field(name, value))
            }
        };
        let answer = self.send(&request).await?;
        let item = fault::header(&answer, "location").and_then(item_of).filter(|_| answer.status == 201);
        // Some answer all the same that they took it; without an item nobody knows what they made of it.
        item.ok_or_else(|| fault::unknown("the Jenkins server did not say what it queued"))
    }

    /// Stops a build.
    pub async fn stop(&self, job: &JobPath, number: u32, how: StopSignal) -> Result<(), Failure> {
        let (rest, route) = match how {
            StopSignal::Stop => ("/stop", "/job/{job}/{build}/stop"),
            StopSignal::Term => ("/term", "/job/{job}/{build}/term"),
            StopSignal::Kill => ("/kill", "/job/{job}/{build}/kill"),
        };
        self.send(&ServerRequest::build(Verb::Post, (job, BuildSelector::Number(number)), rest, route)).await.map(drop)
    }

    /// Takes an item out of the queue.
    pub async fn cancel(&self, id: u64) -> Result<(), Failure> {
        let request = ServerRequest::post("/queue/cancelItem", "/queue/cancelItem", MissingSubject::Item(id));
        match self.send(&request.query("id", id.to_string())).await {
            Err(failure) if failure.details.as_ref().is_some_and(|details| details["status"] == 422) => {
                Err(Failure::new(target::codes::FORBIDDEN, "the Jenkins server does not let the item be cancelled")
                    .next("ask an admin of the server for the permission to cancel; do not retry"))
            }
            other => other.map(drop),
        }
    }

    /// Runs a pipeline build again as it was.
    pub async fn rebuild(&self, job: &JobPath, number: u32) -> Result<(), Failure> {
        let route = "/job/{job}/{build}/replay/rebuild";
        let request = ServerRequest::build(Verb::Post, (job, BuildSelector::Number(number)), "/replay/rebuild", route);
        self.send(&request.or(MissingSubject::Plugin("workflow-cps"))).await.map(drop)
    }

    /// Runs a pipeline build again with another script.
    pub async fn replay(&self, job: &JobPath, number: u32, script: &str) -> Result<(), Failure> {
        let route = "/job/{job}/{build}/replay/run";
        let request = ServerRequest::build(Verb::Post, (job, BuildSelector::Number(number)), "/replay/run", route);
        let request = request.field("json", json!({ "mainScript": script }).to_string());
        self.send(&request.or(MissingSubject::Plugin("workflow-cps"))).await.map(drop)
    }

    /// Sets what a build is called and what is said about it; what is not given stays as it is. Both are sent, because
    /// Jenkins empties what is absent, and what is kept is read here, unmasked, and goes nowhere else.
    pub async fn describe(
        &self,
        job: &JobPath,
        number: u32,
        name: Option<&str>,
        description: Option<&str>,
    ) -> Result<(), Failure> {
        #[derive(Deserialize)]
        #[serde(rename_all = "camelCase")]
        struct BuildTexts {
            display_name: Option<String>,
            description: Option<String>,
        }
        let which = (job, BuildSelector::Number(number));
        let now = ServerRequest::build(Verb::Get, which, "/api/json", "/job/{job}/{build}/api/json");
        let now: BuildTexts = self.server.read_json(&now.tree("displayName,description")).await?;
        // A build without a name of its own is called by its number, and an empty name leaves it at that.
        let own = now.display_name.filter(|name| *name != format!("#{number}")).unwrap_or_default();
        let form = json!({
            "displayName": name.unwrap_or(&own),
            "description": description.or(now.description.as_deref()).unwrap_or_default(),
        });
        let request = ServerRequest::build(Verb::Post, which, "/configSubmit", "/job/{job}/{build}/configSubmit");
        self.send(&request.field("json", form.to_string())).await.map(drop)
    }

    /// Turns round whether a build is kept for ever. Look first: there is no way to say which.
    pub async fn toggle_keep(&self, job: &JobPath, number: u32) -> Result<(), Failure> {
        let route = "/job/{job}/{build}/toggleLogKeep";
        self.send(&ServerRequest::build(Verb::Post, (job, BuildSelector::Number(number)), "/toggleLogKeep", route))
            .await
            .map(drop)
    }

    /// Sends a write. A redirect is how Jenkins says that it is done; nobody goes there.
    async fn send(&self, request: &ServerRequest) -> Result<GuardedResponse, Failure> {
        let PermittedServer { connection, deadline, .. } = self.server;
        let sent = connection.send(request, BodyLimit::Part(MOST_BYTES), *deadline).await;
        let answer = sent.map_err(|lost| fault::of_write(&lost))?;
        let done = (200..400).contains(&answer.status) && !fault::asks_to_sign_in(&answer);
        if done && is_at_home(&connection.config.url, &answer) {
            return Ok(answer);
        }
        if done {
            return Err(fault::unknown("somebody in front of the Jenkins server sent us elsewhere"));
        }
        let failure = fault::of_status(request, &answer);
        if !target::connection::is_ambiguous(answer.status) {
            return Err(failure);
        }
        let mut unknown = fault::unknown("the Jenkins server failed while it was at it");
        unknown.details = failure.details;
        Err(unknown)
    }
}

/// Whether an answer that points somewhere points to the server itself. Who points elsewhere may be a proxy that kept
/// the request.
fn is_at_home(base: &Url, answer: &GuardedResponse) -> bool {
    match fault::header(answer, "location") {
        // Where a server thinks it is need not be where we reach it; of a new item only the number is taken.
        Some(_) if answer.status == 201 => true,
        Some(to) => base.join(to).is_ok_and(|to| to.host_str() == base.host_str()),
        None => true,
    }
}

/// The id of the item at the end of an address. Only the number is taken: nobody goes where the address points.
fn item_of(location: &str) -> Option<u64> {
    let (_, id) = location.trim_end_matches('/').rsplit_once("/queue/item/")?;
    id.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn of_an_address_only_the_number_of_the_item_is_taken() {
        assert_eq!(item_of("https://ci.example/ci/queue/item/31/"), Some(31));
        assert_eq!(item_of("/queue/item/7"), Some(7));
        for bad in ["", ".", "https://ci.example/job/a/", "/queue/item/", "/queue/item/7/api", "/queue/item/-7"] {
            assert_eq!(item_of(bad), None, "{bad}");
        }
    }
}
