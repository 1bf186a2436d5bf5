//! A server's refusal, or its silence, as a failure the caller can act on.
//!
//! Whatever the server wrote is masked, cut and put into `details` with `untrusted`; our own sentence stands alone.

use crate::client::connection::{JenkinsConnection, NoServerAnswer};
use crate::client::path::BuildSelector;
use crate::client::request::{MissingSubject, ServerRequest};
use crate::codes;
use domain::{Code, Failure};
use egress::GuardedResponse;
use serde_json::json;
use std::time::Duration;
use target::{NamedTarget, NoAnswerWords};

const WORDS: NoAnswerWords = NoAnswerWords {
    target: JenkinsConnection::WORDS,
    narrow: "narrow the call",
    change: "it",
    look: "the job's builds and the queue",
};

/// No answer to a read.
pub(in crate::client) fn of_read(lost: &NoServerAnswer) -> Failure {
    WORDS.read(lost)
}

/// No answer to a write.
pub(in crate::client) fn of_write(lost: &NoServerAnswer) -> Failure {
    WORDS.write(lost)
}

/// A write was sent, and nobody knows what came of it.
pub(in crate::client) fn unknown(message: &str) -> Failure {
    WORDS.unknown(message)
}

/// Whether an answer sends the caller to sign in somewhere. What was asked for has then not been looked at.
pub(in crate::client) fn asks_to_sign_in(answer: &GuardedResponse) -> bool {
    let signs = ["login", "securityrealm", "oauth", "saml"];
    (300..400).contains(&answer.status) && {
        let to = header(answer, "location").unwrap_or_default().to_ascii_lowercase();
        signs.iter().any(|sign| to.contains(sign))
    }
}

/// The answer is not what a Jenkins would say.
pub(in crate::client) fn not_jenkins() -> Failure {
    Failure::new(target::codes::TARGET_UNREACHABLE, "the address answers, but not like a Jenkins server")
        .next("ask an admin to check the server's address")
}

/// Code, reason and next step.
struct JenkinsErrorText(Code, String, &'static str);

/// An answer that is no success.
pub(in crate::client) fn of_status(request: &ServerRequest, answer: &GuardedResponse) -> Failure {
    let JenkinsErrorText(code, message, next) = judge(request, answer);
    let mut details = json!({ "status": answer.status });
    let said = [("x-error", "message"), ("x-required-permission", "permission")];
    for (name, key) in said {
        if let Some(text) = header(answer, name) {
            details[key] = json!(redact::message(text));
            details["untrusted"] = json!(true);
        }
    }
    let mut failure = Failure::new(code, message).next(next).details(details);
    if code.retryable() {
        failure = failure.retry_after(retry_after(answer).unwrap_or(Duration::from_secs(1)));
    }
    failure
}

fn judge(request: &ServerRequest, answer: &GuardedResponse) -> JenkinsErrorText {
    let plain = |code, message: &str, next| JenkinsErrorText(code, message.to_owned(), next);
    match answer.status {
        401 => plain(
            target::codes::CREDENTIALS_REFUSED,
            "the Jenkins server does not accept the tenant's token",
            "ask an admin of the tenant to renew it; do not retry",
        ),
        _ if asks_to_sign_in(answer) => plain(
            target::codes::CREDENTIALS_REFUSED,
            "the Jenkins server wants somebody to sign in instead of the tenant's token",
            "ask an admin to check the server's address and token; do not retry",
        ),
        403 => plain(
            target::codes::FORBIDDEN,
            "the Jenkins server does not allow it to the tenant's user",
            "ask an admin of the server for the permission in details; do not retry",
        ),
        404 => absent(&request.absent),
        409 => plain(codes::JOB_DISABLED, "the job cannot be built now", "ask its owners to enable it"),
        413 => plain(Code::TooLarge, "it is too large for the Jenkins server", "send less"),
        429 | 500..=599 => {
            plain(target::codes::TARGET_BUSY, "the Jenkins server is busy or not well", "wait, then call again")
        }
        300..=399 => plain(
            target::codes::TARGET_UNREACHABLE,
            "the Jenkins server answers that it is somewhere else, and that is not followed",
            "ask an admin to check the server's address",
        ),
        _ => plain(Code::InvalidArgument, "the Jenkins server does not understand it", "read details and correct it"),
    }
}

fn absent(absent: &MissingSubject) -> JenkinsErrorText {
    match absent {
        MissingSubject::Server => JenkinsErrorText(
            target::codes::TARGET_UNREACHABLE,
            "the address answers, but not like a Jenkins server".to_owned(),
            "ask an admin to check the server's address",
        ),
        MissingSubject::Job(job) => JenkinsErrorText(
            codes::JOB_NOT_FOUND,
            format!("there is no job {job}"),
            "list what is there with jenkins_jobs",
        ),
        MissingSubject::Build(job, which @ BuildSelector::Number(_)) => JenkinsErrorText(
            codes::BUILD_NOT_FOUND,
            format!("{job} has no build {which}"),
            "look at jenkins_job show=builds",
        ),
        MissingSubject::Build(job, which) => JenkinsErrorText(
            codes::BUILD_NOT_FOUND,
            format!("{job} has no {which} yet"),
            "look at jenkins_job show=builds",
        ),
        MissingSubject::Item(id) => JenkinsErrorText(
            codes::QUEUE_ITEM_GONE,
            format!("item {id} has left the queue"),
            "look at the newest builds with jenkins_job show=builds",
        ),
        MissingSubject::Report => JenkinsErrorText(
            codes::NO_TEST_REPORT,
            "the build has no test report".to_owned(),
            "look at the log with jenkins_log, or at show=stages",
        ),
        MissingSubject::Plugin(plugin) => JenkinsErrorText(
            codes::PLUGIN_MISSING,
            format!("the server lacks the plugin {plugin}, or the build is of a kind it does not serve"),
            "use another view of the build, or jenkins_log",
        ),
        MissingSubject::Artifact(path) => JenkinsErrorText(
            Code::NotFound,
            format!("the build has no artifact {path}"),
            "choose a path from jenkins_build show=artifacts",
        ),
    }
}

pub(in crate::client) fn header<'a>(answer: &'a GuardedResponse, name: &str) -> Option<&'a str> {
    answer.headers.get(name).and_then(|value| value.to_str().ok())
}

/// How long the server asks to wait. The other form, a date, is not used by Jenkins.
pub(in crate::client) fn retry_after(answer: &GuardedResponse) -> Option<Duration> {
    header(answer, "retry-after").and_then(|text| text.trim().parse().ok()).map(Duration::from_secs)
}
