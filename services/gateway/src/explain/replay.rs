//! A draft of a configuration held against the calls of the audit log: what it would have stopped, asked for or let pass.
//!
//! The audit log tells who called what and what was decided; its contents have the arguments, so each call is judged by the
//! draft as if it were made again. Nothing is called. A call whose arguments were not kept, or no longer fit, is judged by
//! the effect it had then, and what a rule would say about its subject is unknown: such calls are counted.

use super::{ExplainAnswer, ExplainRequest, ExplainSubject, ExplainVerdict, FileRules, judge};
use crate::toolsets::Toolsets;
use catalog::{CatalogEntry, ControlTool};
use domain::{Effect, Level, Moment, Principal, Scopes, SessionMode, ToolName, ToolsetName};
use serde_json::Value;
use std::collections::HashMap;
use std::sync::Arc;
use tenancy::TenantConfig;

/// One call of the past.
#[derive(Debug, Clone, Default)]
pub(crate) struct PastCall {
    pub(crate) at: Option<Moment>,
    pub(crate) by: String,
    pub(crate) scopes: Scopes,
    pub(crate) tool: String,
    pub(crate) toolset: String,
    pub(crate) effect: Option<Effect>,
    pub(crate) target: Option<String>,
    /// The arguments, if they were kept whole.
    pub(crate) arguments: Option<String>,
    /// What was decided about it.
    pub(crate) was: Option<ExplainVerdict>,
    /// The run it became, if it waited for a person.
    pub(crate) run: Option<String>,
    /// Who approved that.
    pub(crate) approved_by: Vec<String>,
    /// Whether one of them is the reader.
    pub(crate) approved_by_reader: bool,
    /// The request it came with.
    trace: String,
}

/// Calls of the past, gathered from entries of the audit log in their order.
pub(crate) struct PastCalls {
    reader: Principal,
    calls: HashMap<String, PastCall>,
    /// Which call became which run.
    runs: HashMap<String, String>,
    order: Vec<String>,
}

impl PastCalls {
    /// None yet, for this reader.
    pub(crate) fn for_reader(reader: &Principal) -> PastCalls {
        PastCalls { reader: reader.clone(), calls: HashMap::new(), runs: HashMap::new(), order: Vec::new() }
    }

    /// Takes note of an entry; `arguments` opens those of an opening.
    pub(crate) fn note(&mut self, at: Moment, entry: &Value, arguments: impl FnOnce() -> Option<String>) {
        let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
        match entry["phase"].as_str() {
            Some("open") => {
                let id = text(&entry["call"]);
                // What the service answers itself is judged by no rule.
                if id.is_empty() || ControlTool::ALL.iter().any(|tool| entry["tool"] == tool.name()) {
                    return;
                }
                let scopes = entry["actor"]["scopes"].as_array().into_iter().flatten().filter_map(Value::as_str);
                let call = PastCall {
                    at: Some(at),
                    by: text(&entry["actor"]["sub"]),
                    scopes: Scopes::parse(&scopes.collect::<Vec<_>>().join(" ")),
                    tool: text(&entry["tool"]),
                    toolset: text(&entry["toolset"]),
                    effect: entry["effect"].as_str().and_then(effect_of),
                    target: entry["target"].as_str().map(str::to_owned),
                    arguments: arguments(),
                    trace: text(&entry["trace"]),
                    ..PastCall::default()
                };
                self.order.push(id.clone());
                self.calls.insert(id, call);
            }
            Some("close") => {
                if let Some(call) = self.calls.get_mut(entry["call"].as_str().unwrap_or_default()) {
                    call.was = match entry["decision"]["verdict"].as_str() {
                        Some("permit") => Some(ExplainVerdict::Allowed),
                        Some("ask") => Some(ExplainVerdict::Asks),
                        Some("deny") => Some(ExplainVerdict::Denied),
                        Some(_) | None => None,
                    };
                }
            }
            Some("transition") => {
                let run = text(&entry["run"]["id"]);
                if entry["run"]["from"].is_null()
                    && let Some(id) = self.asking(&text(&entry["trace"]), &text(&entry["tool"]))
                {
                    self.runs.insert(run.clone(), id);
                }
                self.approved(&run, &entry["run"]["approvals"]);
            }
            Some(_) | None => {}
        }
    }

    /// The call that a new run came from: the last one of its tool in the same request that has none yet.
    fn asking(&self, trace: &str, tool: &str) -> Option<String> {
        let fits = |call: &PastCall| call.run.is_none() && call.trace == trace && call.tool == tool;
        self.order.iter().rev().find(|id| self.calls.get(*id).is_some_and(fits)).cloned()
    }

    fn approved(&mut self, run: &str, approvals: &Value) {
        let Some(call) = self.runs.get(run).and_then(|call| self.calls.get_mut(call)) else { return };
        call.run = Some(run.to_owned());
        let approvals = approvals.as_array().map(Vec::as_slice).unwrap_or_default();
        // Each later entry has all that came before.
        if approvals.len() > call.approved_by.len() {
            let name = |one: &Value| one["sub"].as_str().unwrap_or_default().to_owned();
            call.approved_by = approvals.iter().map(name).collect();
            let (iss, sub) = (self.reader.issuer.as_str(), self.reader.subject.as_str());
            call.approved_by_reader = approvals.iter().any(|one| one["iss"] == iss && one["sub"] == sub);
        }
    }

    /// The calls whose decision is known, the newest first.
    fn decided(self) -> impl Iterator<Item = PastCall> {
        let PastCalls { mut calls, order, .. } = self;
        order.into_iter().rev().filter_map(move |id| calls.remove(&id)).filter(|call| call.was.is_some())
    }
}

fn effect_of(text: &str) -> Option<Effect> {
    [Effect::Read, Effect::Change, Effect::Disrupt].into_iter().find(|effect| effect.as_str() == text)
}

/// A call that the draft judges otherwise.
#[derive(Debug, Clone)]
pub(crate) struct ReplayedCall {
    pub(crate) call: PastCall,
    pub(crate) would: ExplainAnswer,
}

/// What a draft would have done.
#[derive(Debug, Default)]
pub(crate) struct Replay {
    /// How many calls were judged.
    pub(crate) judged: usize,
    /// How many of them without their arguments.
    pub(crate) without_arguments: usize,
    /// How many could not be judged, because their tool is unknown now.
    pub(crate) unknown: usize,
    /// Calls that were let through or approved and would be denied.
    pub(crate) stopped: Vec<ReplayedCall>,
    /// Calls that ran at once and would wait for a person.
    pub(crate) asked: Vec<ReplayedCall>,
    /// Calls that were denied or waited, and would not.
    pub(crate) freed: Vec<ReplayedCall>,
}

impl Replay {
    /// How many of the stopped calls the reader had approved.
    pub(crate) fn stopped_approved_by_reader(&self) -> usize {
        self.stopped.iter().filter(|replayed| replayed.call.approved_by_reader).count()
    }
}

/// Holds a draft against calls of the past. Parses arguments, so it must not run on a task of the runtime.
pub(crate) fn replay(
    past: PastCalls,
    draft: &TenantConfig,
    toolsets: &Toolsets,
    known: &[Arc<CatalogEntry>],
) -> Replay {
    let rules = FileRules::of_config("draft", draft);
    let mut replay = Replay::default();
    for call in past.decided() {
        let Some((would, whole)) = judged(&call, draft, &rules, toolsets, known) else {
            replay.unknown += 1;
            continue;
        };
        replay.judged += 1;
        replay.without_arguments += usize::from(!whole);
        let replayed = || ReplayedCall { call: call.clone(), would: would.clone() };
        match (call.was, would.verdict) {
            (Some(ExplainVerdict::Allowed | ExplainVerdict::Asks), ExplainVerdict::Denied) => {
                replay.stopped.push(replayed());
            }
            (Some(ExplainVerdict::Allowed), ExplainVerdict::Asks) => replay.asked.push(replayed()),
            (Some(ExplainVerdict::Denied), ExplainVerdict::Allowed | ExplainVerdict::Asks)
            | (Some(ExplainVerdict::Asks), ExplainVerdict::Allowed) => replay.freed.push(replayed()),
            (Some(ExplainVerdict::Allowed), ExplainVerdict::Allowed)
            | (Some(ExplainVerdict::Asks), ExplainVerdict::Asks)
            | (Some(ExplainVerdict::Denied), ExplainVerdict::Denied)
            | (None, _) => {}
        }
    }
    replay
}

/// What the draft says to a call, and whether it was judged with its arguments.
fn judged(
    call: &PastCall,
    draft: &TenantConfig,
    rules: &FileRules,
    toolsets: &Toolsets,
    known: &[Arc<CatalogEntry>],
) -> Option<(ExplainAnswer, bool)> {
    let arguments = call.arguments.as_deref().and_then(|text| serde_json::from_str(text).ok());
    let whole = arguments.is_some();
    let with = super::subject(&call.tool, arguments, draft, toolsets, known);
    // Arguments that no longer fit say nothing; what was known then does.
    let (subject, whole) = match with {
        Ok(subject) => (subject, whole),
        Err(_) => (super::subject(&call.tool, None, draft, toolsets, known).ok()?, false),
    };
    let answer = match subject {
        ExplainSubject::Answered(answer) => rules.place(answer),
        ExplainSubject::Call(request) => {
            let request = if whole { request } else { as_it_was(call, request)? };
            // A session that called something that changes was one that may.
            judge(draft, rules, request, call.scopes, (SessionMode::Write, &[]))
        }
    };
    Some((answer, whole))
}

/// The call by what its entry says.
fn as_it_was(call: &PastCall, request: ExplainRequest) -> Option<ExplainRequest> {
    let effect = call.effect?;
    Some(ExplainRequest {
        tool: ToolName::parse(&call.tool).ok()?,
        toolset: ToolsetName::parse(&call.toolset).ok()?,
        needs: if effect == Effect::Read { request.needs } else { Level::Write },
        effect,
        about: None,
        target: call.target.clone(),
        notes: vec!["its arguments are not known any more, so rules about its subject were not looked at".to_owned()],
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn gathered(entries: &[Value]) -> Vec<PastCall> {
        let mut past = PastCalls::for_reader(&Principal::new("iss", "ana"));
        for (at, entry) in (1..).zip(entries) {
            past.note(Moment::from_secs(at), entry, || Some("{}".to_owned()));
        }
        past.decided().collect()
    }

    fn open(call: &str, tool: &str) -> Value {
        json!({ "phase": "open", "call": call, "tool": tool, "toolset": "k8s", "effect": "change", "trace": "t",
            "actor": { "sub": "bot", "scopes": ["tools:read", "tools:write"] } })
    }

    #[test]
    fn a_call_is_known_by_its_opening_its_closing_and_its_run() {
        let calls = gathered(&[
            open("call_1", "k8s_scale"),
            json!({ "phase": "transition", "tool": "k8s_scale", "trace": "t", "run": { "id": "run_1" } }),
            json!({ "phase": "close", "call": "call_1", "decision": { "verdict": "ask", "basis": "effect change" } }),
            json!({ "phase": "transition", "trace": "t", "run": { "id": "run_1", "from": "pending_approval", "approvals": [{ "iss": "iss", "sub": "ana" }] } }),
            open("call_2", "k8s_get"),
            open("call_3", "load_toolset"),
            json!({ "phase": "close", "call": "call_3", "decision": { "verdict": "permit" } }),
        ]);
        let [call] = calls.as_slice() else { panic!("{calls:?}") };
        assert_eq!(
            (call.tool.as_str(), call.was, call.run.as_deref()),
            ("k8s_scale", Some(ExplainVerdict::Asks), Some("run_1"))
        );
        assert!(call.approved_by_reader && call.approved_by == ["ana"], "{call:?}");
        assert!(call.scopes.allow(domain::TokenScope::ToolsWrite));
    }

    #[test]
    fn the_same_name_of_another_issuer_is_somebody_else() {
        let calls = gathered(&[
            open("call_1", "k8s_scale"),
            json!({ "phase": "transition", "tool": "k8s_scale", "trace": "t", "run": { "id": "run_1" } }),
            json!({ "phase": "close", "call": "call_1", "decision": { "verdict": "ask" } }),
            json!({ "phase": "transition", "run": { "id": "run_1", "from": "pending_approval", "approvals": [{ "iss": "other", "sub": "ana" }] } }),
        ]);
        assert!(!calls[0].approved_by_reader && calls[0].approved_by == ["ana"]);
    }
}
