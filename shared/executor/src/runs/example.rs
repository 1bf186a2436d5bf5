//! A run to test with, and an executor on a store of its own.

use crate::executor::{Executor, Leases};
use crate::keys::ServiceKeys;
use domain::run::{Run, RunRequest, RunState};
use domain::{
    Call, CallId, Caller, Effect, Level, Moment, Principal, RunId, Scopes, Tenant, ToolName, ToolUse, ToolsetName,
};
use std::sync::Arc;
use std::time::Duration;
use store::{AuditEntry, Config, Phase, RunCasOutcome, SessionConfig, Store, VersionedRun};

/// An executor on an empty store in memory.
pub(crate) async fn executor() -> Executor {
    let config = Config::at("memory:");
    let long = Duration::from_secs(3600);
    let lives = SessionConfig { idle: long, longest: long, carry_over: long };
    let keys = Arc::new(ServiceKeys::derive(&[1; 32]).unwrap());
    let leases = Leases { lease: Duration::from_secs(30), renew_every: Duration::from_secs(10) };
    Executor::new(Store::open(&config).await.unwrap(), crate::tasks::Tasks::default(), lives, keys, leases)
}

/// Puts a run into the store as it is.
pub(crate) async fn put(executor: &Executor, run: &Run) -> VersionedRun {
    let runs = executor.store.of(&Tenant::parse("acme").unwrap()).runs();
    match runs.open(run, None, u64::MAX, &AuditEntry::new(Phase::Transition)).await.unwrap() {
        RunCasOutcome::Done(held) => held,
        refused @ (RunCasOutcome::Conflict(_)
        | RunCasOutcome::Late(_)
        | RunCasOutcome::TooManyWaiting
        | RunCasOutcome::Gone) => panic!("{refused:?}"),
    }
}

/// Somebody with these scopes.
pub(crate) fn caller(subject: &str, scopes: &str) -> Caller {
    Caller {
        tenant: Tenant::parse("acme").unwrap(),
        principal: Principal::new("i", subject),
        scopes: Scopes::parse(scopes),
        expires_at: Moment::from_secs(9_000),
        token: None,
        labels: Vec::new(),
    }
}

/// The call that a run is about.
pub(crate) fn call() -> Call {
    let used = ToolUse {
        tool: ToolName::parse("k8s_scale").unwrap(),
        toolset: ToolsetName::parse("k8s").unwrap(),
        needs: Level::Write,
        effect: Effect::Change,
        about: None,
        schema: "",
        arguments: "{}",
    };
    Call::new(CallId::from_random([1; 16]), Arc::new(caller("agent", "tools:write")), None, used)
}

/// A run in this state that an agent asked for at the second 100, to be answered before the second 200.
pub(crate) fn run(state: RunState) -> Run {
    let asked = RunRequest { expires_at: Moment::from_secs(200), ..RunRequest::new(&call(), Moment::from_secs(100)) };
    Run { state, ..Run::new(RunId::from_random([1; 16]), asked) }
}
