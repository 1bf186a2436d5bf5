//! What a run looks like to its requester, to whoever decides it, and to an auditor.
//!
//! Whoever decides sees what will be executed as it is. The requester sees what it asked for and what became of it, and
//! nothing that was read from a target to decide about it. An auditor sees what deciders do, masked by its looks.

use domain::run::{Answer, OnReject, Run, RunState, Verdict};
use domain::{Code, Failure, Outcome, ToolOutput, WaitingRun};
use redact::redact;
use serde_json::{Value, json};

/// How long an agent should wait between looks.
const POLL_AFTER_MS: u64 = 2_000;

/// As it stands in answers.
pub const fn verdict(verdict: Verdict) -> &'static str {
    match verdict {
        Verdict::Approve => "approved",
        Verdict::Reject => "rejected",
    }
}

/// What the agent is told: the run while it is open, its result when it is done, an error it can act on otherwise.
/// `codes` are those of the toolsets, to read the code of a failure back.
pub fn to_agent(run: &Run, replayed: bool, codes: &[Code]) -> Outcome {
    let ended = run.ending.as_ref();
    let message = |fallback: &str| ended.map_or_else(|| fallback.to_owned(), |ending| ending.message.clone());
    match run.state {
        RunState::PendingApproval | RunState::Approved | RunState::Executing => {
            Outcome::Waiting(WaitingRun { id: run.id, state: run.state, json: open(run, replayed) })
        }
        RunState::Succeeded | RunState::ReconciledSucceeded => {
            let tainting = ended.is_some_and(|ending| ending.tainting);
            Outcome::Done(ToolOutput { tainting, ..ToolOutput::structured(done(run, replayed)) })
        }
        RunState::Rejected if run.asked.on_reject == OnReject::Continue => {
            let told = json!({ "run": facts(run, replayed) });
            Outcome::Done(ToolOutput::structured(told.to_string()))
        }
        RunState::Rejected => Outcome::Failed(
            about(run, Code::Rejected, rejection(run))
                .next("stop here: further changes in this session are refused until a person clears it"),
        ),
        RunState::Expired => {
            let code = ended.and_then(|e| e.code.as_deref()).and_then(|text| Code::parse(text, codes));
            let failure =
                about(run, code.unwrap_or(Code::Expired), message("nobody answered, or nobody began, in time"));
            Outcome::Failed(failure.next("look at the target again, then call again if it is still needed"))
        }
        RunState::Cancelled => Outcome::Failed(about(run, Code::RunCancelled, "the run was taken back".into())),
        RunState::Failed | RunState::ReconciledFailed => {
            let code = ended
                .and_then(|e| e.code.as_deref())
                .and_then(|text| Code::parse(text, codes))
                .unwrap_or(Code::Internal);
            let code = if run.state == RunState::ReconciledFailed { Code::NotPossible } else { code };
            let mut failure = about(run, code, message("it was not done"));
            let told =
                ended.and_then(|ending| ending.result.as_deref()).and_then(|text| serde_json::from_str(text).ok());
            if let (Some(Value::Object(told)), Some(Value::Object(details))) = (told, &mut failure.details) {
                // What the tool said about its failure, beside the run.
                for (key, value) in told {
                    details.entry(key).or_insert(value);
                }
            }
            Outcome::Failed(failure.next("look at the target again before asking anew"))
        }
        RunState::OutcomeUnknown => Outcome::Failed(
            about(run, Code::OutcomeUnknown, message("nobody knows whether it was done"))
                .next("do not call again; await_run tells when it is settled"),
        ),
    }
}

/// The same for an agent whose people have pages: what waits says where its page is, to be handed on to them.
pub(crate) fn with_page(outcome: Outcome, pages: Option<&str>) -> Outcome {
    match (outcome, pages) {
        (Outcome::Waiting(mut waiting), Some(pages)) => {
            let mut told: Value = serde_json::from_str(&waiting.json).unwrap_or_default();
            if told["run"].is_object() {
                told["run"]["page"] = json!(format!("{pages}{}", waiting.id));
                waiting.json = told.to_string();
            }
            Outcome::Waiting(waiting)
        }
        (outcome, _) => outcome,
    }
}

fn about(run: &Run, code: Code, message: String) -> Failure {
    Failure::new(code, message).details(json!({ "run": facts(run, false) }))
}

fn rejection(run: &Run) -> String {
    match run.decision() {
        Some(Answer { by, reason: Some(reason), .. }) => format!("rejected by {}: {reason}", by.subject),
        Some(Answer { by, reason: None, .. }) => format!("rejected by {}", by.subject),
        None => "rejected".to_owned(),
    }
}

fn open(run: &Run, replayed: bool) -> String {
    let mut told = facts(run, replayed);
    told["poll_after_ms"] = json!(POLL_AFTER_MS);
    let said = if run.state == RunState::PendingApproval { "must approve" } else { "approved" };
    told["next"] = json!(format!("A person {said}. Call await_run with this run id; do not repeat the call."));
    json!({ "run": told, "preview": { "summary": run.asked.requested() } }).to_string()
}

/// The result as it would have come at once, with the run beside it.
fn done(run: &Run, replayed: bool) -> String {
    let result = run.ending.as_ref().and_then(|ending| ending.result.as_deref()).unwrap_or("null");
    let facts = facts(run, replayed);
    // Spliced: the result was serialised once, when the tool gave it.
    format!(r#"{{"run":{facts},"result":{result}}}"#)
}

fn facts(run: &Run, replayed: bool) -> Value {
    let mut told = json!({
        "id": run.id.to_string(),
        "state": run.state.as_str(),
        "effect": run.asked.effect.as_str(),
        "expires_at": run.asked.expires_at.to_string(),
        "digest": run.asked.digest,
    });
    if let Some(answer) = run.decision() {
        told["decided_by"] = json!(answer.by.subject);
        if let Some(reason) = &answer.reason {
            told["reason"] = json!(reason);
        }
    }
    if replayed {
        told["replayed"] = json!(true);
    }
    told
}

/// Everything a person may want to know before signing, and afterwards.
pub fn to_person(run: &Run) -> Value {
    let asked = &run.asked;
    let arguments = asked.preview.arguments.as_ref().unwrap_or(&asked.arguments);
    let mut told = to_requester(run);
    told["arguments"] = serde_json::from_str(arguments).unwrap_or(Value::Null);
    told["warnings"] = json!(asked.preview.warnings);
    let preview = &asked.preview;
    told["preview"] = json!({ "summary": preview.summary, "text": preview.text, "hidden": preview.hidden });
    if let Some(claim) = &run.claim {
        told["claim"] =
            json!({ "owner": claim.owner, "epoch": claim.epoch, "lease_until": claim.lease_until.to_string() });
    }
    told
}

/// The same for somebody who reads runs and decides none: masked by its looks.
pub fn to_auditor(run: &Run) -> Value {
    let mut told = to_person(run);
    masked(&mut told["arguments"]);
    masked(&mut told["warnings"]);
    masked(&mut told["preview"]);
    told
}

fn masked(value: &mut Value) {
    match value {
        Value::String(text) => *text = redact(text),
        Value::Array(items) => items.iter_mut().for_each(masked),
        Value::Object(fields) => fields.values_mut().for_each(masked),
        Value::Null | Value::Bool(_) | Value::Number(_) => {}
    }
}

/// What the requester may read of its own run: what it asked for, what people said, and what became of it.
pub fn to_requester(run: &Run) -> Value {
    let asked = &run.asked;
    let answer = |a: &Answer| json!({ "by": a.by.subject, "verdict": verdict(a.verdict), "reason": a.reason, "at": a.at.to_string() });
    let mut told = json!({
        "id": run.id.to_string(),
        "state": run.state.as_str(),
        "tool": asked.tool.as_str(),
        "toolset": asked.toolset.as_str(),
        "effect": asked.effect.as_str(),
        "preview": { "summary": run.asked.requested() },
        "digest": asked.digest,
        "requested_by": asked.requester.subject,
        "session": asked.session.map(|id| id.to_string()),
        "session_tainted": asked.tainted,
        "asked_at": asked.asked_at.to_string(),
        "expires_at": asked.expires_at.to_string(),
        "deciders": asked.deciders,
        "reviewed": asked.reviewed,
        "on_reject": asked.on_reject,
        "decisions": run.answers.iter().map(answer).collect::<Vec<_>>(),
    });
    if let Some(by) = run.execute_by {
        told["execute_by"] = json!(by.to_string());
    }
    if let Some(ending) = &run.ending {
        let result: Value = ending.result.as_deref().and_then(|r| serde_json::from_str(r).ok()).unwrap_or(Value::Null);
        told["outcome"] = json!({
            "code": ending.code, "message": ending.message, "attempted": ending.attempted,
            "result": result, "basis": ending.basis,
        });
    }
    told
}

#[cfg(test)]
mod tests {
    use super::super::example;
    use super::*;
    use domain::run::Ending;
    use domain::{Moment, Principal};

    fn answered(state: RunState, verdict: Verdict, reason: Option<&str>) -> Run {
        let by = Principal::new("i", "ana");
        let answer = Answer { by, verdict, reason: reason.map(str::to_owned), at: Moment::from_secs(150), span: None };
        Run { answers: vec![answer], ..example::run(state) }
    }

    fn failed(run: &Run) -> Failure {
        match to_agent(run, false, &[]) {
            Outcome::Failed(failure) => failure,
            other @ (Outcome::Done(_) | Outcome::Waiting(_)) => panic!("{other:?}"),
        }
    }

    fn done(run: &Run, replayed: bool) -> (Value, bool) {
        match to_agent(run, replayed, &[]) {
            Outcome::Done(output) => (serde_json::from_str(&output.structured.unwrap()).unwrap(), output.tainting),
            other @ (Outcome::Failed(_) | Outcome::Waiting(_)) => panic!("{other:?}"),
        }
    }

    #[test]
    fn an_agent_that_waits_is_told_for_whom() {
        for (state, next) in [
            (RunState::PendingApproval, "A person must approve."),
            (RunState::Approved, "A person approved."),
            (RunState::Executing, "A person approved."),
        ] {
            let Outcome::Waiting(told) = to_agent(&example::run(state), false, &[]) else { panic!("{state:?}") };
            assert_eq!((told.id, told.state), (example::run(state).id, state));
            let told: Value = serde_json::from_str(&told.json).unwrap();
            assert_eq!(told["run"]["state"], state.as_str());
            assert!(told["run"]["next"].as_str().unwrap().starts_with(next), "{told}");
            assert_eq!((&told["run"]["poll_after_ms"], &told["run"]["replayed"]), (&json!(2_000), &Value::Null));
            assert_eq!(told["preview"]["summary"], "k8s_scale");
        }
    }

    #[test]
    fn an_agent_is_handed_the_result_with_the_run_beside_it() {
        let ending = Ending { tainting: true, ..Ending::done(Some(r#"{"replicas":3}"#.into())) };
        for state in [RunState::Succeeded, RunState::ReconciledSucceeded] {
            let run = Run { ending: Some(ending.clone()), ..answered(state, Verdict::Approve, Some("fine")) };
            let (told, tainting) = done(&run, true);
            assert_eq!((&told["result"], tainting), (&json!({ "replicas": 3 }), true));
            assert_eq!(told["run"]["id"], run.id.to_string());
            assert_eq!(told["run"]["expires_at"], Moment::from_secs(200).to_string());
            let facts = ["state", "effect", "decided_by", "reason"].map(|key| told["run"][key].as_str().unwrap());
            assert_eq!(facts, [state.as_str(), "change", "ana", "fine"]);
            assert_eq!((&told["run"]["digest"], &told["run"]["replayed"]), (&json!(run.asked.digest), &json!(true)));
        }
    }

    #[test]
    fn a_rejection_ends_the_step_only_where_a_rule_says_so() {
        let mut run = answered(RunState::Rejected, Verdict::Reject, Some("not today"));
        let (told, tainting) = done(&run, false);
        assert_eq!((&told["run"]["reason"], tainting), (&json!("not today"), false));
        run.asked.on_reject = OnReject::Fail;
        let failure = failed(&run);
        assert_eq!((failure.code, failure.message.as_str()), (Code::Rejected, "rejected by ana: not today"));
        assert_eq!(failure.details.unwrap()["run"]["decided_by"], "ana");
        run.answers[0].reason = None;
        assert_eq!(failed(&run).message, "rejected by ana");
        run.answers.clear();
        assert_eq!(failed(&run).message, "rejected");
    }

    #[test]
    fn an_agent_is_told_why_nothing_came_of_a_run() {
        let ended = |state, code, message: &str| {
            let ending = Some(Ending::failed(code, message));
            let failure = failed(&Run { ending, ..example::run(state) });
            (failure.code, failure.message)
        };
        let bare = |state| {
            let failure = failed(&example::run(state));
            (failure.code, failure.message)
        };
        assert_eq!(ended(RunState::Failed, Code::Stale, "it moved"), (Code::Stale, "it moved".into()));
        assert_eq!(bare(RunState::Failed), (Code::Internal, "it was not done".into()));
        let settled = ended(RunState::ReconciledFailed, Code::OutcomeUnknown, "it did not happen");
        assert_eq!(settled, (Code::NotPossible, "it did not happen".into()), "nothing is unknown any more");
        let expired = "nobody answered, or nobody began, in time";
        assert_eq!(bare(RunState::Expired), (Code::Expired, expired.into()));
        let forged = ended(RunState::Expired, Code::RecordNotAuthentic, "not ours");
        assert_eq!(forged, (Code::RecordNotAuthentic, "not ours".into()));
        assert_eq!(bare(RunState::Cancelled), (Code::RunCancelled, "the run was taken back".into()));
        assert_eq!(bare(RunState::OutcomeUnknown).0, Code::OutcomeUnknown);
    }

    #[test]
    fn each_reader_is_shown_what_is_theirs() {
        let mut run = answered(RunState::PendingApproval, Verdict::Approve, None);
        let preview = &mut run.asked.preview;
        preview.text = "run it with password=hunter2x9".into();
        preview.summary = "a summary".into();
        preview.warnings = vec!["token=abcdefgh12345".into()];
        run.asked.arguments = r#"{"list":["password=hunter2x9"],"n":1}"#.into();
        let person = to_person(&run);
        assert_eq!(person["arguments"], json!({ "list": ["password=hunter2x9"], "n": 1 }), "as it will be executed");
        assert_eq!(person["preview"]["text"], "run it with password=hunter2x9");
        assert_eq!((&person["id"], &person["claim"]), (&json!(run.id.to_string()), &Value::Null));
        assert_eq!(person["decisions"][0]["verdict"], "approved");
        let auditor = to_auditor(&run);
        assert!(!auditor.to_string().contains("hunter2x9") && !auditor.to_string().contains("abcdefgh12345"));
        assert_eq!((&auditor["arguments"]["n"], &auditor["preview"]["summary"]), (&json!(1), &json!("a summary")));
        let requester = to_requester(&run);
        assert_eq!((&requester["arguments"], &requester["warnings"]), (&Value::Null, &Value::Null));
        assert_eq!((&requester["tool"], &requester["requested_by"]), (&json!("k8s_scale"), &json!("agent")));
        assert_eq!((verdict(Verdict::Approve), verdict(Verdict::Reject)), ("approved", "rejected"));
    }
}
