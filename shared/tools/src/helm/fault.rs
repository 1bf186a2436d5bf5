//! What helm says when it does not do something, as a failure the caller can act on.
//!
//! helm has no codes, so its words are looked at. They are somebody else's text: masked, cut, and kept out of our own
//! sentence. Words nobody knows become a plain refusal.

use cluster::{Cluster, KnownSecrets};
use domain::{Code, Failure};
use helm::{Ended, Finished};
use serde_json::json;

/// How much of helm's message is passed on.
const MESSAGE_MAX: usize = 500;

/// Words of helm, and what they mean. The first that fits counts.
const WORDS: [(&[&str], Told); 28] = [
    (&["cannot reuse a name that is still in use"], EXISTS),
    (&["release has no", "version"], NO_REVISION),
    (&["has no deployed releases"], NOT_FOUND),
    (&["release: not found"], NOT_FOUND),
    (&["another operation (install/upgrade/rollback) is in progress"], LOCKED),
    (&["cluster unreachable"], UNREACHABLE),
    (&["values don't meet the specifications of the schema"], SCHEMA),
    (&["hook", "failed"], HOOK),
    (&["pre-install"], HOOK),
    (&["post-install"], HOOK),
    (&["pre-upgrade"], HOOK),
    (&["post-upgrade"], HOOK),
    (&["context deadline exceeded"], LATE),
    (&["timed out waiting"], LATE),
    (&["execution error at"], RENDER),
    (&["error converting yaml"], RENDER),
    (&["yaml parse error"], RENDER),
    (&["template:"], RENDER),
    (&["parse error"], RENDER),
    (&["invalid ownership metadata"], OWNED),
    (&["no matches for kind"], KIND),
    (&["admission webhook"], ADMISSION),
    (&["exceeded quota"], QUOTA),
    (&["namespaces", "not found"], NO_NAMESPACE),
    (&["forbidden"], FORBIDDEN),
    (&["conflict occurred"], CONFLICT),
    (&["immutable"], IMMUTABLE),
    (&["is invalid"], INVALID),
];

/// Code, sentence and next step.
#[derive(Clone, Copy)]
struct Told(Code, &'static str, &'static str);

const EXISTS: Told = Told(Code::ReleaseExists, "there is a release of that name", "use helm_upgrade, or another name");
const NO_REVISION: Told =
    Told(Code::RevisionNotFound, "the release has no such revision", "list them with helm_get show=history");
const NOT_FOUND: Told = Told(Code::ReleaseNotFound, "there is no such release", "list what is there with helm_list");
const LOCKED: Told = Told(
    Code::ReleaseLocked,
    "another operation on the release is under way or was abandoned",
    "look with helm_get; if nobody is at work on it, use helm_recover",
);
const UNREACHABLE: Told = Told(Code::TargetUnreachable, "helm does not reach the cluster", "wait, then call again");
const SCHEMA: Told =
    Told(Code::SchemaInvalid, "the values do not fit the chart's schema", "read details and correct the values");
const HOOK: Told = Told(Code::HookFailed, "a hook of the chart failed", "read details; look at the hook's Job or Pod");
const LATE: Told = Told(
    Code::TimedOut,
    "not everything became ready in time",
    "look at the workloads with k8s_get; helm_rollback goes back",
);
const RENDER: Told = Told(Code::RenderFailed, "the chart cannot be rendered", "read details and correct the values");
const OWNED: Told = Told(
    Code::AlreadyExists,
    "an object of the chart exists and belongs to somebody else",
    "read details; remove or rename one of them",
);
const KIND: Told =
    Told(Code::UnknownKind, "the cluster does not know a kind of the chart", "install what brings that kind first");
const ADMISSION: Told =
    Told(Code::DeniedByAdmission, "a check of the cluster refused it", "read details; do not repeat it unchanged");
const QUOTA: Told =
    Told(Code::QuotaExceeded, "a quota of the namespace is used up", "read details; free something first");
const NO_NAMESPACE: Told =
    Told(Code::NotFound, "the namespace does not exist", "install with create_namespace=true, or name another one");
const FORBIDDEN: Told = Told(
    Code::Forbidden,
    "the cluster's rules do not allow it to the tenant's credential",
    "ask an admin for that verb and resource; do not retry",
);
const CONFLICT: Told =
    Told(Code::FieldConflict, "somebody else owns fields the chart sets", "read details; settle who owns them first");
const IMMUTABLE: Told = Told(
    Code::ImmutableField,
    "the chart changes a field that cannot be changed",
    "read details; deleting the object and installing it anew is a separate step",
);
const INVALID: Told = Told(Code::InvalidManifest, "the cluster refuses an object of the chart", "read details");
const OTHER: Told = Told(Code::NotPossible, "helm refused it", "read details");

/// Why helm did not do what it was asked for.
pub(super) fn of(cluster: &Cluster<'_>, known: &KnownSecrets, finished: &Finished) -> Failure {
    let said = finished.stderr.lossy();
    let Told(code, message, next) = match finished.ended {
        Ended::Stopped => LATE,
        Ended::Killed => {
            Told(Code::NotPossible, "helm was ended by somebody else", "look at the release with helm_get")
        }
        Ended::Exited(_) => judge(&said),
    };
    let failure = Failure::new(code, message).next(next).details(json!({
        "message": message_of(cluster, known, &said), "untrusted": true,
    }));
    match code.retryable() {
        true => failure.retry_after_ms(5_000),
        false => failure,
    }
}

fn judge(said: &str) -> Told {
    let said = said.to_lowercase();
    let fits = |words: &[&str]| words.iter().all(|word| said.contains(word));
    WORDS.iter().find(|(words, _)| fits(words)).map_or(OTHER, |(_, told)| *told)
}

/// helm's last complaint, as it may be shown.
fn message_of(cluster: &Cluster<'_>, known: &KnownSecrets, said: &str) -> String {
    let from = said.rfind("Error: ").map_or(0, |at| at + "Error: ".len());
    let masked = cluster.masked_text(said[from..].trim(), known);
    redact::redact(&masked).chars().filter(|c| !c.is_control() || *c == '\n').take(MESSAGE_MAX).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn helms_words_have_codes() {
        let code = |said: &str| judge(said).0;
        assert_eq!(code("Error: INSTALLATION FAILED: cannot reuse a name that is still in use"), Code::ReleaseExists);
        assert_eq!(code("Error: release has no 9 version"), Code::RevisionNotFound);
        assert_eq!(code("Error: uninstall: Release not loaded: x: release: not found"), Code::ReleaseNotFound);
        assert_eq!(code("Error: UPGRADE FAILED: \"x\" has no deployed releases"), Code::ReleaseNotFound);
        assert_eq!(
            code("Error: UPGRADE FAILED: another operation (install/upgrade/rollback) is in progress"),
            Code::ReleaseLocked
        );
        assert_eq!(
            code("Error: INSTALLATION FAILED: failed pre-install: 1 error occurred: timed out"),
            Code::HookFailed
        );
        assert_eq!(code("Error: UPGRADE FAILED: resource x not ready\ncontext deadline exceeded"), Code::TimedOut);
        assert_eq!(code("Error: parse error at (web/templates/a.yaml:3): unclosed action"), Code::RenderFailed);
        assert_eq!(
            code("Error: values don't meet the specifications of the schema(s) in the following chart(s):\nweb:\n- x"),
            Code::SchemaInvalid
        );
        assert_eq!(code("Error: something new"), Code::NotPossible);
    }
}
