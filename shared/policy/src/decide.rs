//! One verdict for one call. No I/O, no clock, and neither `bool` nor `Result`: a refusal is an answer.

use crate::{Basis, CallEvidence, Gate, Pattern, Permit, PermitMode};
use domain::run::OnReject;
use domain::{
    Call, Caller, Code, Effect, Failure, Level, LoadedToolsets, RateExceeded, SessionMode, Switch, SwitchMode,
    TokenScope, ToolsetName, switch,
};

/// A tenant's rules. They only tighten.
#[derive(Debug, Clone)]
pub struct Policy {
    /// The most a session may be for.
    pub mode: SessionMode,
    /// Calls that are refused.
    pub deny: Vec<Pattern>,
    /// Calls that ask a person even though they only read.
    pub require_approval: Vec<Gate>,
    /// How many calls the tenant may make in a minute.
    pub calls_per_minute: u64,
}

/// The verdict.
#[derive(Debug)]
pub enum Decision {
    /// Go on, with this proof.
    Permit(Permit),
    /// Ask a person; this permit is good for the preview only.
    Ask(Question, Permit),
    /// No.
    Deny(DenyReason),
}

/// Why a person is asked.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Question {
    /// The call changes something.
    Effect(Effect),
    /// A rule of the tenant wants a person to look.
    Rule,
}

/// Why not, in words for the caller, and the rule of the tenant that refuses, if one does.
#[derive(Debug, Clone, PartialEq)]
pub struct DenyReason(pub Failure, pub Option<Pattern>);

impl DenyReason {
    fn new(code: Code, message: String, next: &str) -> DenyReason {
        DenyReason(Failure::new(code, message).next(next), None)
    }
}

/// What would be decided about a call, in words and without a permit.
#[derive(Debug, Clone, PartialEq)]
pub enum Explanation {
    /// It would go on.
    Allowed,
    /// A person would be asked.
    Asks(Question),
    /// It would be refused.
    Denied(DenyReason),
}

/// Judges one call. The order is from who asks, over what was issued, to what the rules say.
pub fn decide(policy: &Policy, call: Call, evidence: &CallEvidence) -> Decision {
    match judge(policy, &call, evidence) {
        Explanation::Denied(reason) => Decision::Deny(reason),
        Explanation::Allowed => Decision::Permit(Permit::grant(call, PermitMode::Act, Basis::ReadOnly)),
        Explanation::Asks(question) => match &evidence.approved {
            // The approval was given to one digest. It opens nothing else, and was judged by today's rules just above.
            Some(approved) if approved.digest == call.digest() => {
                let approval = approved.approval.clone();
                Decision::Permit(Permit::grant(call, PermitMode::Act, Basis::Run(approval)))
            }
            Some(_) | None => Decision::Ask(question, Permit::grant(call, PermitMode::Rehearse, Basis::Asking)),
        },
    }
}

/// What [`decide`] would say to a call in a session of this mode that has loaded its tool and made no call before, while
/// these switches are set.
pub fn explain(policy: &Policy, call: &Call, mode: SessionMode, switches: &[Switch]) -> Explanation {
    let loaded = LoadedToolsets::from_iter([(call.toolset.clone(), Level::Write)]);
    let evidence = CallEvidence {
        loaded,
        mode,
        calls_this_minute: 1,
        stopped: false,
        switches: switches.to_vec(),
        approved: None,
        recorded: true,
    };
    judge(policy, call, &evidence)
}

fn judge(policy: &Policy, call: &Call, evidence: &CallEvidence) -> Explanation {
    // A switch is for everything, the tools the service answers itself included.
    let refusal = scope(call).or_else(|| rate(policy, evidence)).or_else(|| switched(call, &evidence.switches));
    let refusal = refusal.or_else(|| unrecorded(policy, call, evidence));
    // Every session has the tools the service answers itself, they reach no target, and no rule is about them.
    let refusal = refusal.or_else(|| if call.is_control() { None } else { refusal_of_tool(policy, call, evidence) });
    match (refusal, question(policy, call)) {
        (Some(reason), _) => Explanation::Denied(reason),
        (None, Some(question)) => Explanation::Asks(question),
        (None, None) => Explanation::Allowed,
    }
}

fn refusal_of_tool(policy: &Policy, call: &Call, evidence: &CallEvidence) -> Option<DenyReason> {
    issued(call, evidence)
        .or_else(|| mode(policy, call, evidence))
        .or_else(|| stopped(call, evidence))
        .or_else(|| denied(policy, call))
}

/// Why a call that nobody can record is refused: it is no plain read of a tool.
fn unrecorded(policy: &Policy, call: &Call, evidence: &CallEvidence) -> Option<DenyReason> {
    let reads = call.effect == Effect::Read && call.needs == Level::Read && !call.is_control();
    let harmless = reads && question(policy, call).is_none();
    (!evidence.recorded && !harmless).then(|| {
        DenyReason::new(
            Code::StoreUnavailable,
            "the audit log cannot be written, so only reads run".to_owned(),
            "go on with reads, or try again later",
        )
    })
}

/// Why a person must be asked, if one must. A tainted session cannot loosen this: everything above `Read` asks.
pub fn question(policy: &Policy, call: &Call) -> Option<Question> {
    match call.effect {
        Effect::Read if call.is_control() => None,
        Effect::Read => gate(policy, call).map(|_| Question::Rule),
        effect @ (Effect::Change | Effect::Disrupt) => Some(Question::Effect(effect)),
    }
}

/// What a rejection of this call means. Unless a rule of the tenant says that it ends the step, the agent may go on.
pub fn on_reject(policy: &Policy, call: &Call) -> OnReject {
    gate(policy, call).map_or(OnReject::Continue, |gate| gate.on_reject)
}

/// The rule of the tenant that asks a person about this call, if one does.
pub fn asking_rule<'a>(policy: &'a Policy, call: &Call) -> Option<&'a Pattern> {
    gate(policy, call).map(|gate| &gate.pattern)
}

/// The same for a call of which only the tool is known, and what it is about.
pub fn asking_rule_of<'a>(policy: &'a Policy, tool: &str, about: Option<&str>) -> Option<&'a Pattern> {
    gate_of(policy, tool, about).map(|gate| &gate.pattern)
}

fn gate<'a>(policy: &'a Policy, call: &Call) -> Option<&'a Gate> {
    gate_of(policy, call.tool.as_str(), call.about.as_deref())
}

fn gate_of<'a>(policy: &'a Policy, tool: &str, about: Option<&str>) -> Option<&'a Gate> {
    let mut gates = policy.require_approval.iter().filter(|gate| gate.pattern.matches(tool, about));
    // Of several rules the strictest counts.
    let first = gates.next()?;
    Some(if first.on_reject == OnReject::Fail {
        first
    } else {
        gates.find(|g| g.on_reject == OnReject::Fail).unwrap_or(first)
    })
}

/// Judges whether toolsets may be loaded at these levels by this caller in a session of this mode.
pub fn decide_load(
    policy: &Policy,
    caller: &Caller,
    session: SessionMode,
    wanted: &[(ToolsetName, Level)],
) -> Result<(), DenyReason> {
    if !caller.scopes.allow(TokenScope::ToolsRead) {
        return Err(lacks(TokenScope::ToolsRead));
    }
    if wanted.iter().all(|(_, level)| *level == Level::Read) {
        return Ok(());
    }
    if !caller.scopes.allow(TokenScope::ToolsWrite) {
        return Err(lacks(TokenScope::ToolsWrite));
    }
    match policy.mode.min(session) {
        SessionMode::Write => Ok(()),
        SessionMode::Read => Err(read_only(policy)),
    }
}

fn scope(call: &Call) -> Option<DenyReason> {
    // A tool of the write list needs the scope even for arguments that only read: the list is what was granted.
    let needed = match (call.needs, call.effect) {
        (Level::Read, Effect::Read) => TokenScope::ToolsRead,
        (Level::Write, _) | (_, Effect::Change | Effect::Disrupt) => TokenScope::ToolsWrite,
    };
    (!call.caller.scopes.allow(needed)).then(|| lacks(needed))
}

fn lacks(scope: TokenScope) -> DenyReason {
    let message = format!("the token lacks the scope {scope}");
    let mut reason =
        DenyReason::new(Code::InsufficientScope, message, "use a token that has it; do not retry with this one");
    reason.0.details = Some(serde_json::json!({ "scope": scope.as_str() }));
    reason
}

fn rate(policy: &Policy, evidence: &CallEvidence) -> Option<DenyReason> {
    let most = policy.calls_per_minute;
    (evidence.calls_this_minute > most).then(|| over_rate(RateExceeded::Tenant(most)))
}

/// The verdict on a call whose rate is used up, whatever it asks for: it is refused before anything is read of it.
pub fn over_rate(exceeded: RateExceeded) -> DenyReason {
    let message = match exceeded {
        RateExceeded::Tenant(limit) => format!("the tenant's limit of {limit} calls a minute is used up"),
        RateExceeded::Caller(limit) => {
            format!("this caller's share of the tenant's calls, {limit} a minute, is used up")
        }
    };
    DenyReason(Failure::new(Code::RateLimited, message).next("wait, then call again").retry_after_ms(10_000), None)
}

/// Why a switch refuses a call, if one does: what is switched, by whom in general, until when, and why.
fn switched(call: &Call, switches: &[Switch]) -> Option<DenyReason> {
    let switch = switch::strictest(switches, call)?;
    let (code, how) = match switch.mode {
        SwitchMode::Stop => (Code::SwitchedOff, "stopped"),
        SwitchMode::ReadOnly => (Code::SwitchedReadOnly, "read-only"),
    };
    let until = switch.until.map_or_else(|| "until it is lifted".to_owned(), |until| format!("until {until}"));
    let (on, by, reason) = (&switch.on, switch.owner.in_words(), &switch.reason);
    let message = format!("{on} was switched to {how} by {by}, {until}: {reason}");
    let next = match switch.mode {
        SwitchMode::Stop => "do not retry; tell the person you work for, who can ask for the switch to be lifted",
        SwitchMode::ReadOnly => {
            "go on with reads; tell the person you work for, who can ask for the switch to be lifted"
        }
    };
    let mut reason = DenyReason::new(code, message, next);
    reason.0.details = Some(serde_json::json!({
        "switch": switch.id(),
        "on": on,
        "mode": switch.mode,
        "by": switch.owner,
        "until": switch.until.map(|until| until.to_string()),
    }));
    Some(reason)
}

fn issued(call: &Call, evidence: &CallEvidence) -> Option<DenyReason> {
    let (tool, set) = (&call.tool, &call.toolset);
    match (evidence.loaded.level(set), call.needs) {
        (Some(Level::Write), _) | (Some(Level::Read), Level::Read) => None,
        (None, Level::Read) => Some(DenyReason::new(
            Code::NotLoaded,
            format!("{tool} is in toolset {set}, which is not loaded"),
            &format!("call load_toolset with toolset={set}"),
        )),
        (None | Some(Level::Read), Level::Write) => Some(DenyReason::new(
            Code::WriteNotLoaded,
            format!("{tool} is not loaded for writing"),
            &format!("call load_toolset with toolset={set}, include_write_tools=true"),
        )),
    }
}

fn mode(policy: &Policy, call: &Call, evidence: &CallEvidence) -> Option<DenyReason> {
    let writes = call.needs == Level::Write || call.effect > Effect::Read;
    (writes && policy.mode.min(evidence.mode) == SessionMode::Read).then(|| read_only(policy))
}

fn stopped(call: &Call, evidence: &CallEvidence) -> Option<DenyReason> {
    (evidence.stopped && call.effect > Effect::Read).then(|| {
        DenyReason::new(
            Code::PolicyDenied,
            "a person rejected an earlier change of this session, or of one before it, and that ended the step"
                .to_owned(),
            "change nothing more, a new session begins blocked too; a person can clear the rejected run",
        )
    })
}

fn read_only(policy: &Policy) -> DenyReason {
    match policy.mode {
        SessionMode::Read => DenyReason::new(
            Code::PolicyDenied,
            "this tenant is read-only, so write tools are not issued".to_owned(),
            "go on with read tools, or ask the tenant's admin",
        ),
        SessionMode::Write => DenyReason::new(
            Code::PolicyDenied,
            "this session was opened for reading, so write tools are not issued".to_owned(),
            "open a session with mode=write, if the task needs changes",
        ),
    }
}

fn denied(policy: &Policy, call: &Call) -> Option<DenyReason> {
    let rule = policy.deny.iter().find(|rule| rule.matches(call.tool.as_str(), call.about.as_deref()))?;
    let message = format!("the tenant's rule deny `{rule}` refuses this call");
    let refusal =
        DenyReason::new(Code::PolicyDenied, message, "do not retry; choose another way or ask the tenant's admin");
    Some(DenyReason(refusal.0, Some(rule.clone())))
}

#[cfg(test)]
mod tests;
