//! What every world of tools needs: calls of one agent, judged by the real policy, and answers held to their schema.

use catalog::validate::Arguments;
use catalog::{Entry, Parsed};
use domain::{Call, CallId, Caller, Effect, Level, Mode, Moment, Principal, Scopes, Tenant, ToolName, ToolsetName};
use policy::{Approved, Decision, Evidence, Policy, decide};
use serde_json::{Map, Value};
use std::sync::Arc;

/// The tenant of every world.
pub(crate) fn tenant() -> Tenant {
    Tenant::parse("acme").unwrap()
}

/// The toolset of a tool: what stands before the first underscore.
fn toolset(tool: &str) -> ToolsetName {
    ToolsetName::parse(tool.split('_').next().unwrap()).unwrap()
}

/// An understood call.
pub(crate) fn call(tool: &str, parsed: &Parsed) -> Call {
    call_of(tool, parsed.effect, parsed.about.clone())
}

/// A call of the agent.
pub(crate) fn call_of(tool: &str, effect: Effect, about: Option<String>) -> Call {
    Call {
        id: CallId::from_random([1; 16]),
        caller: Arc::new(Caller {
            tenant: tenant(),
            principal: Principal { issuer: "https://login.example".into(), subject: "agent".into() },
            scopes: Scopes::parse("tools:write"),
            expires_at: Moment::from_secs(9),
        }),
        session: None,
        tool: ToolName::parse(tool).unwrap(),
        toolset: toolset(tool),
        needs: Level::Write,
        effect,
        about,
        digest: "d".to_owned(),
        tainted: false,
        assignment: std::sync::Arc::default(),
    }
}

/// What policy says to it, with this yes as evidence.
pub(crate) fn judged(call: Call, approved: Option<Approved>) -> Decision {
    let policy = Policy { mode: Mode::Write, deny: vec![], require_approval: vec![], calls_per_minute: 10 };
    let evidence = Evidence {
        loaded: [(call.toolset.clone(), Level::Write)].into_iter().collect(),
        mode: Mode::Write,
        tainted: false,
        calls_this_minute: 1,
        stopped: false,
        approved,
    };
    decide(&policy, call, &evidence)
}

/// Holds an answer to the schema of its tool, which knows every field.
pub(crate) fn fits(entry: &Entry, text: &str) {
    let answer: Map<String, Value> = serde_json::from_str(text).unwrap();
    let schema = entry.definition().output.as_ref().expect("an output schema");
    let unknown: Vec<&String> = answer.keys().filter(|key| schema["properties"].get(key.as_str()).is_none()).collect();
    assert!(unknown.is_empty(), "{} tells what its schema does not know: {unknown:?}", entry.name());
    let checked = Arguments::compile(entry.name().as_str(), schema).unwrap().check(answer);
    assert!(checked.is_ok(), "{} broke its schema: {:?}\n{text}", entry.name(), checked.unwrap_err());
}
