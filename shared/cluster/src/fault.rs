//! A target's refusal, or its silence, as a failure the caller can act on.
//!
//! Whatever the target wrote is masked, cut and put into `details` with `untrusted`; our own sentence stands alone.

use crate::line::Lost;
use crate::mask::Masker;
use crate::request::About;
use domain::{Code, Failure};
use http::StatusCode;
use serde_json::{Value, json};
use std::time::Duration;

/// How much of a target's message is passed on.
const MESSAGE_MAX: usize = 500;
/// How many of its causes are.
const CAUSES_MAX: usize = 10;

/// No answer to a read.
pub(crate) fn of_read(lost: &Lost) -> Failure {
    match lost {
        Lost::Late => {
            Failure::new(Code::Deadline, "the cluster did not answer in time").next("narrow the call, or try later")
        }
        Lost::Broken => unreachable("the connection to the cluster broke"),
        Lost::TooLarge => {
            let failure = Failure::new(Code::ResultTooLarge, "the cluster's answer is larger than is taken");
            failure.next("narrow the call by name, namespace or selector")
        }
        Lost::Credential(_) | Lost::Closed(_) | Lost::Crowded | Lost::Unconnected => not_sent(lost),
    }
}

/// No answer to a write. Unless it is certain that nothing was sent, nobody knows what came of it.
pub(crate) fn of_write(lost: &Lost) -> Failure {
    match lost {
        Lost::Late => unknown("the cluster did not answer in time"),
        Lost::Broken => unknown("the connection to the cluster broke"),
        Lost::TooLarge => unknown("the cluster's answer is larger than is taken"),
        Lost::Credential(_) | Lost::Closed(_) | Lost::Crowded | Lost::Unconnected => not_sent(lost),
    }
}

fn not_sent(lost: &Lost) -> Failure {
    match lost {
        Lost::Credential(bad) => Failure::new(Code::ToolsetNotConfigured, format!("the cluster cannot be used: {bad}"))
            .next("ask an admin of the tenant to correct the cluster's configuration"),
        Lost::Closed(left) => {
            let failure = unreachable("the cluster could not be reached lately and is left alone for a moment");
            failure.retry_after_ms(millis(*left))
        }
        Lost::Crowded => Failure::new(Code::TargetBusy, "too many calls to this cluster are under way")
            .next("wait, then call again")
            .retry_after_ms(1000),
        Lost::Unconnected | Lost::Broken | Lost::Late | Lost::TooLarge => {
            unreachable("there is no connection to the cluster")
        }
    }
}

fn unreachable(message: &str) -> Failure {
    Failure::new(Code::TargetUnreachable, message).next("wait, then call again").retry_after_ms(5000)
}

/// A write was sent, and nobody knows what came of it.
pub(crate) fn unknown(message: &str) -> Failure {
    Failure::new(Code::OutcomeUnknown, format!("{message}; the change may have happened"))
        .next("do not call again; look at the target")
}

/// A write's answer that leaves open what happened: every error of a server but the one that says it did not begin.
pub(crate) fn is_ambiguous(status: StatusCode, body: &[u8]) -> bool {
    // A webhook that could not be asked stops the change before it is stored; a body that does not fit is no change.
    let stopped = || {
        let said = Status::read(body);
        said.message.contains("failed calling webhook") || said.is_mistyped()
    };
    status.is_server_error() && status != StatusCode::SERVICE_UNAVAILABLE && !stopped()
}

/// An answer that is no success.
pub(crate) fn of_status(
    masker: &Masker,
    about: &About,
    status: StatusCode,
    retry_after: Option<Duration>,
    body: &[u8],
) -> Failure {
    let said = Status::read(body);
    let Told(code, why, next) = judge(status, &said);
    let message = format!("cannot {}: {why}", what(about));
    let mut failure = Failure::new(code, message).next(next).details(details(masker, about, status, &said));
    if code.retryable() {
        failure = failure.retry_after_ms(retry_after.map_or(1000, millis));
    }
    failure
}

/// Code, reason and next step.
struct Told(Code, &'static str, &'static str);

const ADMISSION: Told =
    Told(Code::DeniedByAdmission, "a check of the cluster refused it", "read details; do not repeat it unchanged");
const FIELD: Told = Told(
    Code::UnknownField,
    "the kind does not have every field given",
    "read details; look the fields up with k8s_discover ask=explain",
);
const BAD: Told = Told(Code::InvalidArgument, "the cluster does not understand it", "read details and correct it");
const CREDENTIAL: Told = Told(
    Code::Forbidden,
    "the cluster does not accept the tenant's credential",
    "ask an admin of the tenant to renew it; do not retry",
);
const QUOTA: Told =
    Told(Code::QuotaExceeded, "a quota of the namespace is used up", "read details; free something first");
const FORBIDDEN: Told = Told(
    Code::Forbidden,
    "the cluster's rules do not allow it to the tenant's credential",
    "ask an admin for that verb and resource, or use another tool; do not retry",
);
const ABSENT: Told = Told(Code::NotFound, "it is not there", "check name and namespace; list the kind with k8s_get");
const IMPOSSIBLE: Told = Told(Code::UnsupportedKind, "the kind does not offer it", "use another kind or tool");
const EXISTS: Told = Told(Code::AlreadyExists, "there is one already", "read it, and change it instead");
const OWNED: Told = Told(
    Code::FieldConflict,
    "fields belong to another manager",
    "leave the fields in details out, or take them over with force",
);
const ANOTHER: Told = Told(Code::UidChanged, "it was made anew meanwhile", "read it again");
const CHANGED: Told =
    Told(Code::Conflict, "it changed meanwhile, or an operation does not fit it", "read it again, then call again");
const MOVED_ON: Told = Told(Code::CursorExpired, "the list has moved on", "call again without cursor");
const LARGE: Told = Told(Code::TooLarge, "it is too large for the cluster", "split it");
const STRATEGIC: Told =
    Told(Code::StrategicUnsupported, "the kind does not take this type of patch", "use type merge or json");
const IMMUTABLE: Told = Told(
    Code::ImmutableField,
    "a field cannot be changed any more",
    "read details; deleting and making it anew is a step of its own",
);
const BUDGET: Told =
    Told(Code::PdbBlocked, "a disruption budget does not allow it now", "wait until more pods are ready");
const SLOW: Told = Told(Code::Deadline, "the cluster took too long", "narrow the call, or try later");
const BUSY: Told = Told(Code::TargetBusy, "the cluster is busy or not well", "wait, then call again");

fn judge(status: StatusCode, said: &Status) -> Told {
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

fn what(about: &About) -> String {
    let About { verb, resource, namespace, name } = about;
    let name = name.as_ref().map(|name| format!(" {name}")).unwrap_or_default();
    let place = namespace.as_ref().map(|namespace| format!(" in {namespace}")).unwrap_or_default();
    format!("{verb} {resource}{name}{place}")
}

fn details(masker: &Masker, about: &About, status: StatusCode, said: &Status) -> Value {
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
struct Status {
    reason: String,
    message: String,
    causes: Vec<String>,
    budget: bool,
}

impl Status {
    fn read(body: &[u8]) -> Status {
        let Ok(value) = serde_json::from_slice::<Value>(body) else { return Status::default() };
        let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
        let causes = || value["details"]["causes"].as_array().into_iter().flatten();
        Status {
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

fn millis(time: Duration) -> u64 {
    u64::try_from(time.as_millis()).unwrap_or(u64::MAX)
}
