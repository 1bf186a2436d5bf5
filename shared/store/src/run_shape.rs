//! The shape in which a run is stored, what is left of it once it is over, and what counts of one that nobody sealed.

use crate::guard::{GuardedRead, ReadRecord};
use crate::runs::VersionedRun;
use crate::{StoreError, StoredRecord};
use domain::run::{Answer, Claim, Ending, Preview, Run, RunRequest, RunState};
use domain::{Code, Moment, RunId};
use serde::{Deserialize, Serialize};
use std::borrow::Cow;

/// What a run that was scrubbed shows where somebody's words stood.
pub(crate) const SCRUBBED: &str = "[redacted]";
/// And where the arguments stood: still an object, so that whoever reads runs need not know.
pub(crate) const SCRUBBED_ARGUMENTS: &str = r#"{"redacted":true}"#;

/// The shape in which a run is stored; the number tells later releases how to read it.
#[derive(Serialize, Deserialize)]
struct StoredRun {
    v: u8,
    asked: RunRequest,
    state: RunState,
    answers: Vec<Answer>,
    execute_by: Option<Moment>,
    claim: Option<Claim>,
    ending: Option<Ending>,
    delivered: bool,
    changed_at: Moment,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    executed_in: Option<String>,
}

const UNREADABLE: StoreError = StoreError::Corrupt { what: "a run's record" };

pub(crate) fn to_bytes(run: &Run) -> Result<Vec<u8>, StoreError> {
    let Run { asked, state, answers, execute_by, claim, ending, delivered, changed_at, executed_in, .. } = run.clone();
    let shape =
        StoredRun { v: 1, asked, state, answers, execute_by, claim, ending, delivered, changed_at, executed_in };
    serde_json::to_vec(&shape).map_err(|_| UNREADABLE)
}

pub(crate) fn from_bytes(id: RunId, bytes: &[u8]) -> Result<Run, StoreError> {
    let StoredRun { asked, state, answers, execute_by, claim, ending, delivered, changed_at, executed_in, .. } =
        serde_json::from_slice(bytes).map_err(|_| UNREADABLE)?;
    Ok(Run { id, asked, state, answers, execute_by, claim, ending, delivered, changed_at, executed_in })
}

/// What the store answered, as a run.
pub(crate) fn opened(
    reading: &GuardedRead,
    id: RunId,
    record: Option<StoredRecord>,
) -> Result<Option<VersionedRun>, StoreError> {
    let Some(ReadRecord { record, authentic, .. }) = reading.look(record)? else { return Ok(None) };
    let run = if authentic {
        from_bytes(id, &record.body)?
    } else {
        let refusal = reading.refuse_unsealed(record.version);
        distrusted(from_bytes(id, &record.body).map_err(|_| refusal)?)
    };
    Ok(Some(VersionedRun { run, version: record.version }))
}

/// A run whose record nobody has sealed: from an older release, or somebody else wrote it. Nothing of it is executed, sent
/// or handed to an agent: who asked for which tool may be read, and whoever still wants it asks again. What may have been
/// sent is left to a person.
fn distrusted(run: Run) -> Run {
    let message = "the record of this run is not sealed by this service, so nothing was done by it";
    let ending =
        Ending { basis: "the seal of the record".into(), ..Ending::not_attempted(Code::RecordNotAuthentic, message) };
    // What says that it is over is history: whoever asks the same again is not answered by it.
    let (state, ending, delivered) = match run.state {
        RunState::PendingApproval | RunState::Approved => (RunState::Expired, Some(ending), run.delivered),
        RunState::Executing | RunState::OutcomeUnknown => {
            (RunState::OutcomeUnknown, Some(Ending { attempted: true, ..ending }), run.delivered)
        }
        RunState::Rejected
        | RunState::Expired
        | RunState::Cancelled
        | RunState::Succeeded
        | RunState::Failed
        | RunState::ReconciledSucceeded
        | RunState::ReconciledFailed => (run.state, run.ending, true),
    };
    let ending = ending.map(|ending| Ending { result: None, ..ending });
    let mut run = Run { state, ending, delivered, claim: None, ..run };
    run.asked.arguments = SCRUBBED_ARGUMENTS.to_owned();
    run
}

/// A run as it is kept: once it is over, nobody needs its exact arguments any more. Their digest stays, and so do what it
/// was done to and what people were shown, but for the arguments: those were shown as they are, secrets of a requester included. What was
/// reviewed keeps them where its tool says how they are shown, because its history is told by them.
pub(crate) fn without_arguments(run: &Run) -> Cow<'_, Run> {
    if !run.state.is_final() || run.asked.arguments == SCRUBBED_ARGUMENTS {
        return Cow::Borrowed(run);
    }
    let mut kept = run.clone();
    kept.asked.kept_object = run.asked.object();
    kept.asked.arguments = SCRUBBED_ARGUMENTS.to_owned();
    let preview = &mut kept.asked.preview;
    if kept.asked.reviewed && preview.arguments.is_some() {
        return Cow::Owned(kept);
    }
    preview.arguments = None;
    // No argument begins a line of its own, so the last of these marks is the one before them.
    if let Some(at) = preview.text.rfind(Preview::ARGUMENTS) {
        preview.text.truncate(at + Preview::ARGUMENTS.len());
        preview.text.push_str(SCRUBBED);
    }
    Cow::Owned(kept)
}

#[cfg(test)]
mod tests {
    use super::*;
    use domain::{Call, CallId, Caller, Effect, Level, Principal, Scopes, Tenant, ToolName, ToolUse, ToolsetName};
    use std::sync::Arc;

    fn run(state: RunState) -> Run {
        let caller = Caller {
            tenant: Tenant::parse("acme").unwrap(),
            principal: Principal::new("i", "agent"),
            scopes: Scopes::parse("tools:write"),
            expires_at: Moment::from_secs(9),
            token: None,
            labels: Vec::new(),
        };
        let used = ToolUse {
            tool: ToolName::parse("k8s_scale").unwrap(),
            toolset: ToolsetName::parse("k8s").unwrap(),
            needs: Level::Write,
            effect: Effect::Change,
            about: None,
            schema: "",
            arguments: "{}",
        };
        let call = Call::new(CallId::from_random([1; 16]), Arc::new(caller), None, used);
        let asked =
            RunRequest { arguments: r#"{"replicas":0}"#.into(), ..RunRequest::new(&call, Moment::from_secs(1)) };
        let claim = Claim { owner: "somebody".into(), epoch: 1, lease_until: Moment::from_secs(9) };
        let ending = Ending::done(Some("{}".into()));
        Run { state, claim: Some(claim), ending: Some(ending), ..Run::new(RunId::from_random([1; 16]), asked) }
    }

    #[test]
    fn nothing_of_a_run_that_nobody_sealed_can_be_done_or_handed_over() {
        for state in RunState::ALL {
            let run = distrusted(run(state));
            assert_eq!((run.claim, run.asked.arguments.as_str()), (None, SCRUBBED_ARGUMENTS), "{state:?}");
            let ending = run.ending.unwrap();
            assert_eq!(ending.result, None, "{state:?}");
            let not_ours = (Some(Code::RecordNotAuthentic.as_str()), "the seal of the record");
            match state {
                RunState::PendingApproval | RunState::Approved => {
                    assert_eq!((run.state, run.delivered, ending.attempted), (RunState::Expired, false, false));
                    assert_eq!((ending.code.as_deref(), ending.basis.as_str()), not_ours);
                }
                RunState::Executing | RunState::OutcomeUnknown => {
                    assert_eq!((run.state, run.delivered, ending.attempted), (RunState::OutcomeUnknown, false, true));
                    assert_eq!((ending.code.as_deref(), ending.basis.as_str()), not_ours);
                }
                RunState::Rejected
                | RunState::Expired
                | RunState::Cancelled
                | RunState::Succeeded
                | RunState::Failed
                | RunState::ReconciledSucceeded
                | RunState::ReconciledFailed => {
                    assert_eq!((run.state, run.delivered, ending.code), (state, true, None), "it is history");
                }
            }
        }
    }

    #[test]
    fn arguments_go_with_the_end_of_a_run_and_what_was_shown_above_them_stays() {
        let shown = |text: &str, reviewed: bool| {
            let mut run = run(RunState::Succeeded);
            (run.asked.preview.text, run.asked.reviewed) = (text.to_owned(), reviewed);
            run.asked.preview.arguments = Some(r#"{"replicas":0}"#.into());
            run
        };
        let mut named = run(RunState::Succeeded);
        named.asked.arguments = r#"{"name":"web","kind":"Deployment","env":"TOKEN=x"}"#.into();
        let kept = without_arguments(&named).into_owned();
        assert_eq!(kept.asked.object().as_deref(), Some("Deployment/web"), "what it was done to stays");
        assert!(!String::from_utf8(to_bytes(&kept).unwrap()).unwrap().contains("TOKEN"));
        assert_eq!(from_bytes(kept.id, &to_bytes(&kept).unwrap()).unwrap().asked.object(), kept.asked.object());

        let with_arguments = format!("scale{}{{\"replicas\":0}}", Preview::ARGUMENTS);
        let kept = without_arguments(&shown(&with_arguments, false)).into_owned().asked;
        assert_eq!((kept.arguments.as_str(), kept.preview.arguments), (SCRUBBED_ARGUMENTS, None));
        assert_eq!(kept.preview.text, format!("scale{}{SCRUBBED}", Preview::ARGUMENTS));
        let reviewed = without_arguments(&shown(&with_arguments, true)).into_owned().asked;
        assert_eq!((reviewed.arguments.as_str(), reviewed.preview.text), (SCRUBBED_ARGUMENTS, with_arguments.clone()));
        assert!(reviewed.preview.arguments.is_some(), "its history is told by them");
        let open = Run { state: RunState::Approved, ..shown(&with_arguments, false) };
        assert_eq!(*without_arguments(&open), open);
    }
}
