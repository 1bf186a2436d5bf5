//! What every fixture of tools needs: calls of one agent, decided by the real policy, and answers held to their schema.

#![expect(clippy::unwrap_used, reason = "helpers of a test fail by panicking")]

use catalog::validate::Arguments;
use catalog::{CatalogEntry, ParsedCall};
use domain::run::{Answer, Run, RunRequest, Verdict};
use domain::{
    Call, CallId, Caller, Effect, Level, Moment, OpenedCall, Principal, Scopes, Session, SessionMode, Tenant, ToolName,
    ToolUse, ToolsetName,
};
use policy::{CallEvidence, Decision, Permit, PermitApproval, Policy, decide};
use serde_json::{Map, Value};
use std::sync::Arc;

/// The tenant of every world.
pub fn tenant() -> Tenant {
    Tenant::parse("acme").unwrap()
}

/// The toolset of a tool: what stands before the first underscore.
fn toolset(tool: &str) -> ToolsetName {
    ToolsetName::parse(tool.split('_').next().unwrap()).unwrap()
}

/// An understood call.
pub fn call(tool: &str, parsed: &ParsedCall) -> Call {
    call_of(tool, parsed.effect, parsed.about.clone())
}

/// A call of the agent.
pub fn call_of(tool: &str, effect: Effect, about: Option<String>) -> Call {
    let caller = Caller {
        tenant: tenant(),
        principal: Principal::new("https://login.example", "agent"),
        scopes: Scopes::parse("tools:write"),
        expires_at: Moment::from_secs(9),
        token: None,
        labels: Vec::new(),
    };
    let used = ToolUse {
        tool: ToolName::parse(tool).unwrap(),
        toolset: toolset(tool),
        needs: Level::Write,
        effect,
        about,
        schema: "",
        arguments: "{}",
    };
    Call::new(CallId::from_random([1; 16]), Arc::new(caller), None, used)
}

/// What policy says to it: as asked for, or as a run that was approved.
pub fn judged(call: Call, approval: Option<PermitApproval>) -> Decision {
    let policy = Policy { mode: SessionMode::Write, deny: vec![], require_approval: vec![], calls_per_minute: 10 };
    let evidence = match approval {
        Some(approval) => evidence_of(&call, &approval),
        None => CallEvidence::of_address(&Opened, [(call.toolset.clone(), Level::Write)].into_iter().collect()),
    };
    decide(&policy, call, &evidence)
}

/// A permit to look at an approved run, and no more.
pub fn looking(call: Call, approval: PermitApproval) -> Permit {
    match judged(call, Some(approval)) {
        Decision::Permit(permit) => permit.for_preview(),
        other @ (Decision::Ask(..) | Decision::Deny(_)) => panic!("{other:?}"),
    }
}

/// The evidence of a run of this call that was approved so.
pub fn evidence_of(call: &Call, approval: &PermitApproval) -> CallEvidence {
    let somebody = Principal::new("https://login.example", "ana");
    let by = approval.by.first().cloned().unwrap_or(somebody);
    let answer = Answer { by, verdict: Verdict::Approve, reason: None, at: approval.at, span: None };
    let asked = RunRequest::new(call, approval.at);
    CallEvidence::of_approved_run(&Run { answers: vec![answer], ..Run::new(approval.run, asked) }, &Opened).unwrap()
}

/// A call whose audit entry counts as open: the first of its minute, without a session.
#[derive(Debug, Clone, Copy)]
pub struct Opened;

impl domain::KnownSwitches for Opened {
    fn switches(&self) -> &[domain::Switch] {
        &[]
    }
}

impl OpenedCall for Opened {
    fn session(&self) -> Option<&Session> {
        None
    }

    fn calls_this_minute(&self) -> u64 {
        1
    }

    fn is_stopped(&self) -> bool {
        false
    }
}

/// Holds an answer to the schema of its tool, which knows every field.
pub fn fits(entry: &CatalogEntry, text: &str) {
    let answer: Map<String, Value> = serde_json::from_str(text).unwrap();
    let schema = entry.definition().output.as_ref().expect("an output schema");
    let unknown: Vec<&String> = answer.keys().filter(|key| schema["properties"].get(key.as_str()).is_none()).collect();
    assert!(unknown.is_empty(), "{} tells what its schema does not know: {unknown:?}", entry.name());
    let checked = Arguments::compile(entry.name().as_str(), schema).unwrap().check(answer);
    assert!(checked.is_ok(), "{} broke its schema: {:?}\n{text}", entry.name(), checked.unwrap_err());
}
