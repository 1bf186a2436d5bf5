//! What became of a change, read from the release's own history: helm writes a revision down before it touches anything.

use super::release::{ReleaseRef, RevisionSummary};
use catalog::ProbeResult;
use domain::{Code, Failure, RunId};
use serde_json::json;

/// The label by which a revision names its run.
pub(super) const LABEL: &str = "quartermaster-run";

/// What the history says of a change that was based on one revision.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum SettledChange {
    /// No revision was made.
    NotDone,
    /// It was made and stands.
    Done(RevisionSummary),
    /// It was made and failed; what was rolled back to, if anything was.
    Failed(RevisionSummary, Option<RevisionSummary>),
    /// helm is at work on it, or was when it ended.
    Pending(RevisionSummary),
}

/// Looks what became of the revision after `base`.
pub(super) fn settle(base: u64, past: &[RevisionSummary]) -> SettledChange {
    let Some(made) = past.iter().find(|past| past.revision == base + 1) else { return SettledChange::NotDone };
    let back = past.iter().find(|past| past.revision == base + 2 && past.description.starts_with("Rollback to"));
    match made.status.as_str() {
        "deployed" => SettledChange::Done(made.clone()),
        "failed" => SettledChange::Failed(made.clone(), back.cloned()),
        // What stood once and was followed by another has stood.
        "superseded" => match back {
            Some(_) => SettledChange::Failed(made.clone(), back.cloned()),
            None => SettledChange::Done(made.clone()),
        },
        _ => SettledChange::Pending(made.clone()),
    }
}

/// What became of a call of helm that did not end well. `failure` is what helm said.
pub(super) async fn after_failure(
    spot: &ReleaseRef<'_>,
    base: u64,
    failure: Failure,
) -> Result<RevisionSummary, Failure> {
    let Ok(past) = spot.past().await else {
        return Err(unknown("helm did not end well, and the release cannot be looked at"));
    };
    match settle(base, &past) {
        SettledChange::NotDone => Err(failure),
        SettledChange::Done(made) => Ok(made),
        SettledChange::Failed(made, back) => {
            let mut details = failure.details.clone().unwrap_or_else(|| json!({}));
            details["revision"] = json!(made.revision);
            details["status"] = json!(made.status);
            if let Some(back) = back {
                details["rolled_back"] = json!(true);
                details["revision_now"] = json!(back.revision);
            }
            Err(failure.details(details))
        }
        SettledChange::Pending(made) => Err(unknown(&format!("revision {} is {}", made.revision, made.status))
            .details(json!({ "revision": made.revision, "status": made.status }))),
    }
}

/// What a look says about a run whose answer was lost, from the revision it made.
pub(super) fn probed(past: &[RevisionSummary], made: Option<&RevisionSummary>) -> ProbeResult {
    // helm writes a revision down before it touches anything else.
    let Some(made) = made else { return ProbeResult::NotDone };
    match settle(made.revision.saturating_sub(1), past) {
        SettledChange::Done(_) => ProbeResult::Done(None),
        SettledChange::Pending(_) => ProbeResult::Unknown,
        // It was made and did not stand: what was asked for is not so.
        SettledChange::Failed(_, _) | SettledChange::NotDone => ProbeResult::NotDone,
    }
}

/// The revision a run made by installing or upgrading. A rollback copies the labels of what it goes back to, so the first
/// that carries the run's is meant.
pub(super) async fn labelled<'a>(
    spot: &ReleaseRef<'_>,
    past: &'a [RevisionSummary],
    run: Option<RunId>,
) -> Result<Option<&'a RevisionSummary>, Failure> {
    let Some(run) = run.map(|run| run.to_string()) else { return Ok(None) };
    for past in past.iter().filter(|past| !past.description.starts_with("Rollback to")) {
        if spot.labels(past.revision).await?[LABEL].as_str() == Some(run.as_str()) {
            return Ok(Some(past));
        }
    }
    Ok(None)
}

fn unknown(message: &str) -> Failure {
    Failure::new(Code::OutcomeUnknown, format!("{message}; the change may have happened")).next(
        "do not call again; look at the release with helm_get, and free it with helm_recover if nobody is at work",
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    fn past(revision: u64, status: &str, description: &str) -> RevisionSummary {
        let text = String::new;
        let (updated, chart, app_version) = (text(), text(), text());
        RevisionSummary {
            revision,
            updated,
            status: status.into(),
            chart,
            app_version,
            description: description.into(),
        }
    }

    #[test]
    fn the_history_settles_what_became_of_a_change() {
        let one = past(1, "superseded", "Install complete");
        assert_eq!(settle(1, std::slice::from_ref(&one)), SettledChange::NotDone);
        let done = past(2, "deployed", "Upgrade complete");
        assert_eq!(settle(1, &[one.clone(), done.clone()]), SettledChange::Done(done));
        let failed = past(2, "failed", "Upgrade failed");
        let back = past(3, "deployed", "Rollback to 1");
        assert_eq!(settle(1, &[one.clone(), failed.clone()]), SettledChange::Failed(failed.clone(), None));
        assert_eq!(settle(1, &[one.clone(), failed.clone(), back.clone()]), SettledChange::Failed(failed, Some(back)));
        let pending = past(2, "pending-upgrade", "Preparing upgrade");
        assert_eq!(settle(1, &[one, pending.clone()]), SettledChange::Pending(pending));
    }
}
