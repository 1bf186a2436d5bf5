//! What a person judges before a change, as one value: the target and the facts that were weighed.
//!
//! The value is compared once more before anything is sent. So it holds what would make the yes mean something else (the
//! object itself, a template, a list of pods that lose data) and nothing that moves by itself (status, counts, versions).
//!
//! Not here: changes of an object's own fields, which are judged by their difference (see [`preview`](super::preview)).

use super::preview::joined;
use crate::client::{Cluster, ResourceRef, without_marks};
use catalog::ToolPreview;
use catalog::preview::{PreviewBuilder, digest, judged_line, target_name};
use domain::Failure;
use serde_json::{Value, json};

/// What was judged: as it is compared, and as it is shown. Only the first sees the values of secrets, and nobody sees it.
pub(crate) struct Judgement {
    fingerprint: String,
    digest: String,
}

/// The judgement of a target, as it was read, and of the facts that were weighed.
pub(crate) fn fingerprint(cluster: &Cluster<'_>, target: &ResourceRef, object: &Value, facts: Value) -> Judgement {
    let (kind, uid) = (target.kind().full_name(), &object["metadata"]["uid"]);
    let all = json!([cluster.name(), kind, target.namespace(), target.name(), uid, facts]);
    let whole = cluster.judged_digest().of(&all);
    Judgement {
        // Behind the sign stands what the text is blind to: here that is everything.
        fingerprint: format!("{whole}#{whole}"),
        digest: digest(&without_marks(&all)),
    }
}

/// The preview. Its text ends with the beginning of a digest of what was judged: two texts are the same only if that is,
/// although the text itself does not say all of it. To the values of secrets it is blind.
pub(crate) fn drawn(preview: PreviewBuilder, summary: String, judgement: Judgement) -> ToolPreview {
    let text = joined(preview.lines(), preview.blocks());
    let text = format!("{}\n{}\n", text.trim_end(), judged_line(&judgement.digest));
    preview.build(summary, text, judgement.fingerprint)
}

/// The beginning of every preview: where it would happen.
pub(crate) fn heading(cluster: &Cluster<'_>, target: &ResourceRef) -> String {
    format!("{target} on cluster {}", target_name(cluster.name(), cluster.simulated()))
}

/// Wants a namespace that may be changed. A deed that cannot be rehearsed is refused here, before anybody is asked.
pub(crate) fn unprotected(cluster: &Cluster<'_>, target: &ResourceRef) -> Result<(), Failure> {
    match target.namespace().filter(|namespace| cluster.protects(namespace)) {
        Some(namespace) => Err(Failure::new(crate::codes::PROTECTED, format!("namespace {namespace} is protected"))
            .next("do not retry; nothing is changed there through this service")),
        None => Ok(()),
    }
}
