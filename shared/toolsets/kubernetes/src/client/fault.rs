//! A target's refusal, or its silence, as a failure the caller can act on.
//!
//! Whatever the target wrote is masked, cut and put into `details` with `untrusted`; our own sentence stands alone.

use crate::client::connection::{ClusterConnection, NoClusterAnswer};
use crate::client::mask::Masker;
use crate::client::request::RequestSubject;
use crate::codes;
use domain::{Code, Failure};
use http::StatusCode;
use serde_json::{Value, json};
use std::time::Duration;
use target::{NamedTarget, NoAnswerWords, connection};

/// How much of a target's message is passed on.
const MESSAGE_MAX: usize = 500;
/// How many of its causes are.
const CAUSES_MAX: usize = 10;

const WORDS: NoAnswerWords = NoAnswerWords {
    target: ClusterConnection::WORDS,
    narrow: "narrow the call by name, namespace or selector",
    change: "the change",
    look: "the target",
};

/// No answer to a read.
pub(in crate::client) fn of_read(lost: &NoClusterAnswer) -> Failure {
    WORDS.read(lost)
}

/// No answer to a write.
pub(in crate::client) fn of_write(lost: &NoClusterAnswer) -> Failure {
    WORDS.write(lost)
}

/// A write was sent, and nobody knows what came of it.
pub(in crate::client) fn unknown(message: &str) -> Failure {
    WORDS.unknown(message)
}

/// Whether a write's answer leaves open what happened.
pub(in crate::client) fn is_ambiguous(status: StatusCode, body: &[u8]) -> bool {
    // A webhook that could not be asked stops the change before it is stored; a body that does not fit is no change.
    let stopped = || {
        let said = StatusObject::read(body);
        said.message.contains("failed calling webhook") || said.is_mistyped()
    };
    connection::is_ambiguous(status.as_u16()) && !stopped()
}

/// An answer that is no success.
pub(in crate::client) fn of_status(
    masker: &Masker,
    about: &RequestSubject,
    status: StatusCode,
    retry_after: Option<Duration>,
    body: &[u8],
) -> Failure {
    let said = StatusObject::read(body);
    let ClusterErrorText(code, why, next) = judge(status, &said);
    let message = format!("cannot {}: {why}", what(about));
    let mut failure = Failure::new(code, message).next(next).details(details(masker, about, status, &said));
    if code.retryable() {
        failure = failure.retry_after(retry_after.unwrap_or(Duration::from_secs(1)));
    }
    failure
}

/// Code, reason and next step.
struct ClusterErrorText(Code, &'static str, &'static str);

const ADMISSION: ClusterErrorText = ClusterErrorText(
    codes::DENIED_BY_ADMISSION,
    "a check of the cluster refused it",
    "read details; do not repeat it unchanged",
);
const FIELD: ClusterErrorText = ClusterErrorText(
    codes::UNKNOWN_FIELD,
    "the kind does not have every field given",
    "read details; look the fields up with k8s_discover ask=explain",
);
const BAD: ClusterErrorText =
    ClusterErrorText(Code::InvalidArgument, "the cluster does not understand it", "read details and correct it");
const CREDENTIAL: ClusterErrorText = ClusterErrorText(
    target::codes::FORBIDDEN,
    "the cluster does not accept the tenant's credential",
    "ask an admin of the tenant to renew it; do not retry",
);
const QUOTA: ClusterErrorText =
    ClusterErrorText(Code::QuotaExceeded, "a quota of the namespace is used up", "read details; free something first");
const FORBIDDEN: ClusterErrorText = ClusterErrorText(
    target::codes::FORBIDDEN,
    "the cluster's rules do not allow it to the tenant's credential",
    "ask an admin for that verb and resource, or use another tool; do not retry",
);
const ABSENT: ClusterErrorText =
    ClusterErrorText(Code::NotFound, "it is not there", "check name and namespace; list the kind with k8s_get");
const IMPOSSIBLE: ClusterErrorText =
    ClusterErrorText(codes::UNSUPPORTED_KIND, "the kind does not offer it", "use another kind or tool");
const EXISTS: ClusterErrorText =
    ClusterErrorText(codes::ALREADY_EXISTS, "there is one already", "read it, and change it instead");
const OWNED: ClusterErrorText = ClusterErrorText(
    codes::FIELD_CONFLICT,
    "fields belong to another manager",
    "leave the fields in details out, or take them over with force",
);
const ANOTHER: ClusterErrorText = ClusterErrorText(codes::UID_CHANGED, "it was made anew meanwhile", "read it again");
const CHANGED: ClusterErrorText = ClusterErrorText(
    Code::Conflict,
    "it changed meanwhile, or an operation does not fit it",
    "read it again, then call again",
);
const MOVED_ON: ClusterErrorText =
    ClusterErrorText(target::codes::CURSOR_EXPIRED, "the list has moved on", "call again without cursor");
const LARGE: ClusterErrorText = ClusterErrorText(Code::TooLarge, "it is too large for the cluster", "split it");
const STRATEGIC: ClusterErrorText = ClusterErrorText(
    codes::STRATEGIC_UNSUPPORTED,
    "the kind does not take this type of patch",
    "use type merge or json",
);
const IMMUTABLE: ClusterErrorText = ClusterErrorText(
    codes::IMMUTABLE_FIELD,
    "a field cannot be changed any more",
    "read details; deleting and making it anew is a step of its own",
);
const BUDGET: ClusterErrorText =
    ClusterErrorText(codes::PDB_BLOCKED, "a disruption budget does not allow it now", "wait until more pods are ready");
const SLOW: ClusterErrorText =
    ClusterErrorText(Code::Deadline, "the cluster took too long", "narrow the call, or try later");
const BUSY: ClusterErrorText =
    ClusterErrorText(target::codes::TARGET_BUSY, "the cluster is busy or not well", "wait, then call again");

fn judge(status: StatusCode, said: &StatusObject) -> ClusterErrorText {
    let message = said.message.as_str();
    let says = |text: &str| message.contains(text);
    match status.as_u16() {
        400 | 403 | 422 | 500 if said.by_admission() => ADMISSION,
        400 | 422 if says("unknown field") => FIELD,
        500 if said.is_mistyped() && says("not declared in schema") => FIELD,
        500 if said.is_mistyped() => BAD,
        401 => CREDENTIAL,
        403 if says("exceeded quota") => QUOTA,
        403 => FORBIDDEN,
        404 => ABSENT,
        405 | 406 => IMPOSSIBLE,
        409 if said.reason == "AlreadyExists" => EXISTS,
        409 if !said.managers().is_empty() => OWNED,
        409 if says("UID in precondition") => ANOTHER,
        409 => CHANGED,
        410 => MOVED_ON,
        413 => LARGE,
        415 => STRATEGIC,
        422 if says("immutable") || said.causes.iter().any(|cause| cause.contains("immutable")) => IMMUTABLE,
        // How a `test` of a JSON Patch that did not hold is told.
        422 if says("testing value") || says("error in our request") => CHANGED,
        429 if said.is_budget() => BUDGET,
        504 => SLOW,
        400..=428 | 430..=499 => BAD,
        _ => BUSY,
    }
}

fn what(about: &RequestSubject) -> String {
    let RequestSubject { verb, resource, namespace, name } = about;
    let name = name.as_ref().map(|name| format!(" {name}")).unwrap_or_default();
    let place = namespace.as_ref().map(|namespace| format!(" in {namespace}")).unwrap_or_default();
    format!("{verb} {resource}{name}{place}")
}

fn details(masker: &Masker, about: &RequestSubject, status: StatusCode, said: &StatusObject) -> Value {
    let cut = |text: &str| masker.text(text).chars().take(MESSAGE_MAX).collect::<String>();
    let mut details = json!({ "status": status.as_u16(), "verb": about.verb, "resource": about.resource });
    let mut put = |key: &str, value: Value| details[key] = value;
    if let Some(namespace) = &about.namespace {
        put("namespace", json!(namespace));
    }
    if let Some(name) = &about.name {
        put("name", json!(name));
    }
    if !said.message.is_empty() {
        put("message", json!(cut(&said.message)));
        put("untrusted", json!(true));
    }
    if !said.causes.is_empty() {
        put("causes", said.causes.iter().take(CAUSES_MAX).map(|cause| cut(cause)).collect());
    }
    let managers = said.managers();
    if !managers.is_empty() {
        put("managers", json!(managers));
    }
    details
}

/// The `Status` object of an answer, as far as it is one.
#[derive(Debug, Default)]
struct StatusObject {
    reason: String,
    message: String,
    causes: Vec<String>,
    budget: bool,
}

impl StatusObject {
    fn read(body: &[u8]) -> StatusObject {
        let Ok(value) = serde_json::from_slice::<Value>(body) else { return StatusObject::default() };
        let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
        let causes = || value["details"]["causes"].as_array().into_iter().flatten();
        StatusObject {
            reason: text(&value["reason"]),
            message: text(&value["message"]),
            causes: causes()
                .map(|cause| match (cause["field"].as_str(), cause["message"].as_str()) {
                    (Some(field), Some(message)) if !field.is_empty() => format!("{field}: {message}"),
                    (_, message) => message.unwrap_or_default().to_owned(),
                })
                .collect(),
            budget: causes().any(|cause| cause["reason"] == "DisruptionBudget"),
        }
    }

    fn is_budget(&self) -> bool {
        self.budget || self.message.contains("disruption budget")
    }

    /// An apply whose body does not fit the kind's schema is answered as if the server had failed. It never began.
    fn is_mistyped(&self) -> bool {
        self.message.starts_with("failed to create typed patch object")
    }

    fn by_admission(&self) -> bool {
        [
            "admission webhook",
            "failed calling webhook",
            "ValidatingAdmissionPolicy",
            "violates PodSecurity",
            "denied the request",
        ]
        .iter()
        .any(|mark| self.message.contains(mark))
    }

    /// Who owns the fields of a conflict: `conflict with "kubectl" using apps/v1: .spec.replicas`.
    fn managers(&self) -> Vec<String> {
        let quoted = |cause: &String| {
            let (_, rest) = cause.split_once("conflict with \"")?;
            Some(rest.split_once('"')?.0.chars().filter(|c| !c.is_control()).take(64).collect::<String>())
        };
        let mut managers: Vec<String> = self.causes.iter().filter_map(quoted).collect();
        managers.sort_unstable();
        managers.dedup();
        managers
    }
}
