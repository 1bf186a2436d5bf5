//! Why a document was not read or written, in words that say what to do next.

use crate::codes;
use crate::documents::{DocPath, Prefix, diff};
use domain::outcome::near;
use domain::{Code, Failure};
use serde_json::json;
use store::{DocScope, Document, DocumentStore, QuotaExceeded, StoreError};

/// How many earlier versions are looked through for the one a writer began with.
const LOOKED_BACK: usize = 50;
/// How much of a text is told where no difference can be.
const EXCERPT: usize = 600;

/// A store that did not answer, as a failure of the call.
pub(in crate::documents) fn no_store(error: &StoreError) -> Failure {
    tracing::warn!(%error, "the state store failed the memory");
    error.failure("")
}

/// Nothing is there. Near names come from the same scope, so they tell the caller nothing it could not list.
pub(in crate::documents) async fn not_found(memory: &DocumentStore, scope: &DocScope, path: &DocPath) -> Failure {
    let all = Prefix::of(path.scope());
    let known = memory.heads(scope, all.as_str()).await.unwrap_or_default();
    Failure::new(codes::DOC_NOT_FOUND, format!("there is no such document at {path}"))
        .next("list with memory_list, or search with memory_search")
        .did_you_mean(near(path.as_str(), known.iter().map(|head| head.path.as_str())))
}

/// There is no text any more; who took it away, when and why.
pub(in crate::documents) fn redacted(document: &Document) -> Failure {
    let failure = Failure::new(codes::REDACTED, format!("the text of {} was removed for good", document.path))
        .next("go on without it; its history shows what is left");
    match &document.redacted {
        Some(gone) => failure.details(json!({
            "by": gone.by.subject, "at": gone.at.to_string(), "reason": gone.reason, "version": document.version,
        })),
        None => failure,
    }
}

/// The path is taken, and the caller did not say that it knows.
pub(in crate::documents) fn exists(found: &Document) -> Failure {
    Failure::new(codes::DOC_EXISTS, format!("{} exists already", found.path))
        .next("read it, then call again with if_sha256 to overwrite it")
        .details(json!({ "sha256": found.sha256, "version": found.version }))
}

/// The document is not the one the caller began with; what it is now, and what changed since.
pub(in crate::documents) async fn conflict(
    memory: &DocumentStore,
    scope: &DocScope,
    found: Option<&Document>,
    began: &str,
) -> Failure {
    let failure = Failure::new(codes::MEMORY_CONFLICT, "the document is not the one that if_sha256 names");
    let Some(found) = found else { return failure.next("it does not exist; call again without if_sha256") };
    let mut details = json!({ "sha256": found.sha256, "version": found.version });
    // An error is no place for a text that may speak to its reader.
    if !found.suspect && !found.provenance.tainted {
        let past = memory.history(scope, &found.path, Some(found.version), LOOKED_BACK).await.unwrap_or_default();
        match past.iter().find(|version| version.sha256 == began) {
            Some(yours) => {
                details["diff_since_yours"] = diff::unified(&yours.content, &found.content, diff::TOLD).into()
            }
            None => details["excerpt"] = found.content.chars().take(EXCERPT).collect::<String>().into(),
        }
        details["untrusted"] = true.into();
    }
    failure.next("read it again, then decide").details(details)
}

/// There is no room.
pub(in crate::documents) fn over(what: &str, room: QuotaExceeded, path: &DocPath) -> Failure {
    let place = match room {
        QuotaExceeded::Scope => format!("{}/", path.scope().as_str()),
        QuotaExceeded::Part => format!("{}/{}/", path.scope().as_str(), path.store()),
    };
    Failure::new(Code::QuotaExceeded, format!("{place} may hold no more {what}"))
        .next("shorten, replace or forget something that is kept there")
}

/// What was approved is not what would be done now.
pub(in crate::documents) fn stale() -> Failure {
    Failure::new(Code::Stale, "a document changed after it was approved, so nothing was written")
        .next("read it again and propose again")
}
