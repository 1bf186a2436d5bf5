//! What helm says when it does not do something, as a failure the caller can act on.
//!
//! helm has no codes, so its words are looked at. They are somebody else's text: masked, cut, and kept out of our own
//! sentence. Words nobody knows become a plain refusal.

use crate::client::{HelmExit, HelmResult};
use crate::codes;
use domain::{Code, Failure};
use kubernetes::client::{Cluster, KnownSecrets};
use serde_json::json;

/// How much of helm's message is passed on.
const MESSAGE_MAX: usize = 500;

/// Words of helm, and what they mean. The first that fits counts.
const WORDS: [(&[&str], HelmErrorText); 28] = [
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
struct HelmErrorText(Code, &'static str, &'static str);

const EXISTS: HelmErrorText =
    HelmErrorText(codes::RELEASE_EXISTS, "there is a release of that name", "use helm_upgrade, or another name");
const NO_REVISION: HelmErrorText = HelmErrorText(
    kubernetes::codes::REVISION_NOT_FOUND,
    "the release has no such revision",
    "list them with helm_get show=history",
);
const NOT_FOUND: HelmErrorText =
    HelmErrorText(codes::RELEASE_NOT_FOUND, "there is no such release", "list what is there with helm_list");
const LOCKED: HelmErrorText = HelmErrorText(
    codes::RELEASE_LOCKED,
    "another operation on the release is under way or was abandoned",
    "look with helm_get; if nobody is at work on it, use helm_recover",
);
const UNREACHABLE: HelmErrorText =
    HelmErrorText(target::codes::TARGET_UNREACHABLE, "helm does not reach the cluster", "wait, then call again");
const SCHEMA: HelmErrorText = HelmErrorText(
    codes::SCHEMA_INVALID,
    "the values do not fit the chart's schema",
    "read details and correct the values",
);
const HOOK: HelmErrorText =
    HelmErrorText(codes::HOOK_FAILED, "a hook of the chart failed", "read details; look at the hook's Job or Pod");
const LATE: HelmErrorText = HelmErrorText(
    codes::TIMED_OUT,
    "not everything became ready in time",
    "look at the workloads with k8s_get; helm_rollback goes back",
);
const RENDER: HelmErrorText =
    HelmErrorText(codes::RENDER_FAILED, "the chart cannot be rendered", "read details and correct the values");
const OWNED: HelmErrorText = HelmErrorText(
    kubernetes::codes::ALREADY_EXISTS,
    "an object of the chart exists and belongs to somebody else",
    "read details; remove or rename one of them",
);
const KIND: HelmErrorText = HelmErrorText(
    kubernetes::codes::UNKNOWN_KIND,
    "the cluster does not know a kind of the chart",
    "install what brings that kind first",
);
const ADMISSION: HelmErrorText = HelmErrorText(
    kubernetes::codes::DENIED_BY_ADMISSION,
    "a check of the cluster refused it",
    "read details; do not repeat it unchanged",
);
const QUOTA: HelmErrorText =
    HelmErrorText(Code::QuotaExceeded, "a quota of the namespace is used up", "read details; free something first");
const NO_NAMESPACE: HelmErrorText = HelmErrorText(
    Code::NotFound,
    "the namespace does not exist",
    "install with create_namespace=true, or name another one",
);
const FORBIDDEN: HelmErrorText = HelmErrorText(
    target::codes::FORBIDDEN,
    "the cluster's rules do not allow it to the tenant's credential",
    "ask an admin for that verb and resource; do not retry",
);
const CONFLICT: HelmErrorText = HelmErrorText(
    kubernetes::codes::FIELD_CONFLICT,
    "somebody else owns fields the chart sets",
    "read details; settle who owns them first",
);
const IMMUTABLE: HelmErrorText = HelmErrorText(
    kubernetes::codes::IMMUTABLE_FIELD,
    "the chart changes a field that cannot be changed",
    "read details; deleting the object and installing it anew is a separate step",
);
const INVALID: HelmErrorText =
    HelmErrorText(kubernetes::codes::INVALID_MANIFEST, "the cluster refuses an object of the chart", "read details");
const OTHER: HelmErrorText = HelmErrorText(Code::NotPossible, "helm refused it", "read details");

/// Why helm did not do what it was asked for.
pub(super) fn of(cluster: &Cluster<'_>, known: &KnownSecrets, finished: &HelmResult) -> Failure {
    let message = message_of(cluster, known, &finished.stderr.lossy());
    coded(finished).details(json!({ "message": message, "untrusted": true }))
}

/// The same in our own words alone. helm's words quote what a template wrote, and a template may write anything that it
/// was given: values of the release, objects of the cluster.
pub(super) fn quiet(finished: &HelmResult) -> Failure {
    let failure = coded(finished);
    let next = if matches!(failure.code, codes::RENDER_FAILED | codes::SCHEMA_INVALID) {
        "render the chart with helm_template, which tells why, and correct the values"
    } else {
        "look at the release with helm_get and at its objects with k8s_get"
    };
    failure.next(next)
}

/// Whether helm was still rendering, or may have been.
pub(super) fn is_rendering(finished: &HelmResult) -> bool {
    coded(finished).code == codes::RENDER_FAILED
}

fn coded(finished: &HelmResult) -> Failure {
    let HelmErrorText(code, message, next) = match finished.ended {
        HelmExit::Stopped => LATE,
        HelmExit::Killed => {
            HelmErrorText(Code::NotPossible, "helm was ended by somebody else", "look at the release with helm_get")
        }
        HelmExit::Exited(_) => judge(&finished.stderr.lossy()),
    };
    let failure = Failure::new(code, message).next(next);
    match code.retryable() {
        true => failure.retry_after_ms(5_000),
        false => failure,
    }
}

fn judge(said: &str) -> HelmErrorText {
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
        assert_eq!(code("Error: INSTALLATION FAILED: cannot reuse a name that is still in use"), codes::RELEASE_EXISTS);
        assert_eq!(code("Error: release has no 9 version"), kubernetes::codes::REVISION_NOT_FOUND);
        assert_eq!(code("Error: uninstall: Release not loaded: x: release: not found"), codes::RELEASE_NOT_FOUND);
        assert_eq!(code("Error: UPGRADE FAILED: \"x\" has no deployed releases"), codes::RELEASE_NOT_FOUND);
        assert_eq!(
            code("Error: UPGRADE FAILED: another operation (install/upgrade/rollback) is in progress"),
            codes::RELEASE_LOCKED
        );
        assert_eq!(
            code("Error: INSTALLATION FAILED: failed pre-install: 1 error occurred: timed out"),
            codes::HOOK_FAILED
        );
        assert_eq!(code("Error: UPGRADE FAILED: resource x not ready\ncontext deadline exceeded"), codes::TIMED_OUT);
        assert_eq!(code("Error: parse error at (web/templates/a.yaml:3): unclosed action"), codes::RENDER_FAILED);
        assert_eq!(
            code("Error: values don't meet the specifications of the schema(s) in the following chart(s):\nweb:\n- x"),
            codes::SCHEMA_INVALID
        );
        assert_eq!(code("Error: something new"), Code::NotPossible);
    }
}
