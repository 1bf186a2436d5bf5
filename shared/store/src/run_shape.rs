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
}

const UNREADABLE: StoreError = StoreError::Corrupt { what: "a run's record" };

pub(crate) fn to_bytes(run: &Run) -> Result<Vec<u8>, StoreError> {
    let Run { asked, state, answers, execute_by, claim, ending, delivered, changed_at, .. } = run.clone();
    let shape = StoredRun { v: 1, asked, state, answers, execute_by, claim, ending, delivered, changed_at };
    serde_json::to_vec(&shape).map_err(|_| UNREADABLE)
}

pub(crate) fn from_bytes(id: RunId, bytes: &[u8]) -> Result<Run, StoreError> {
    let StoredRun { asked, state, answers, execute_by, claim, ending, delivered, changed_at, .. } =
        serde_json::from_slice(bytes).map_err(|_| UNREADABLE)?;
    Ok(Run { id, asked, state, answers, execute_by, claim, ending, delivered, changed_at })
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

/// A run as it is kept: once it is over, nobody needs its exact arguments any more. Their digest stays, and so does what
/// people were shown, but for the arguments: those were shown as they are, secrets of a requester included. What was
/// reviewed keeps them where its tool says how they are shown, because its history is told by them.
pub(crate) fn without_arguments(run: &Run) -> Cow<'_, Run> {
    if !run.state.is_final() || run.asked.arguments == SCRUBBED_ARGUMENTS {
        return Cow::Borrowed(run);
    }
    let mut kept = run.clone();
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
