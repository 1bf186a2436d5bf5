//! An agent that calls memory tools, and what it is told.

use catalog::{Drawn, Entry, Probe, Progress};
use domain::run::{Asked, OnReject, Preview, Run};
use domain::{
    Call, CallId, Caller, Content, Effect, Failure, Level, Loaded, Mode, Moment, Output, Principal, RunId, Scopes,
    SessionId, Tenant, ToolsetName,
};
use memory::Notebook;
use policy::{Approval, Approved, Decision, Evidence, Permit, Policy, decide, look};
use serde_json::Value;
use std::sync::Arc;
use std::time::Duration;
use store::{AuditEntry, FoldedRun, Phase, Store};

pub(crate) struct World {
    store: Store,
    pub(crate) tools: Vec<Arc<Entry>>,
    pub(crate) tainted: bool,
}

/// A result, and whether it taints.
#[derive(Debug)]
pub(crate) struct Told {
    pub(crate) value: Value,
    pub(crate) text: String,
    pub(crate) tainting: bool,
}

impl World {
    pub(crate) async fn new() -> World {
        let config = store::Config {
            url: "memory:".into(),
            prefix: "qm".into(),
            deadline: Duration::from_secs(5),
            accept_unsafe: true,
            confirm_replicas: store::Confirm::Auto,
        };
        let store = Store::open(&config).await.unwrap();
        let (notebook, cursors) = (Notebook::new(store.clone()), tools::Cursors::new([7; 32]));
        let tools = tools::memory::list(&tools::memory::MemoryKit { notebook, cursors }).unwrap();
        World { store, tools, tainted: false }
    }

    pub(crate) fn entry(&self, tool: &str) -> &Entry {
        self.tools.iter().find(|entry| entry.name().as_str() == tool).unwrap()
    }

    /// Calls a tool that runs at once.
    pub(crate) async fn call(&self, tool: &str, args: Value) -> Result<Told, Failure> {
        let parsed = self.entry(tool).parse(args.as_object().unwrap().clone())?;
        assert_eq!(parsed.effect, Effect::Read, "{tool} would have to ask");
        told(parsed.work.run(&self.permit(tool, Effect::Read, None), &Progress::default()).await)
    }

    /// What a person is shown before a call is carried out.
    pub(crate) async fn preview(&self, tool: &str, args: &Value) -> Result<Drawn, Failure> {
        let parsed = self.entry(tool).parse(args.as_object().unwrap().clone())?;
        let permit = self.permit(tool, parsed.effect, None);
        parsed.work.preview(&permit).await.map(Option::unwrap)
    }

    /// Writes the run down that a preview leads to.
    pub(crate) async fn ask(&self, tool: &str, args: &Value, number: u8) -> RunId {
        let drawn = self.preview(tool, args).await.unwrap();
        let call = self.calls(tool, Effect::Change);
        let asked = Asked {
            requester: call.caller.principal.clone(),
            scopes: call.caller.scopes.to_claim(),
            session: call.session,
            tool: call.tool,
            toolset: call.toolset,
            needs: Level::Write,
            schema: String::new(),
            arguments: args.to_string(),
            effect: Effect::Change,
            about: None,
            digest: call.digest,
            idempotent: true,
            preview: Preview {
                summary: drawn.summary,
                text: drawn.text,
                warnings: drawn.warnings,
                fingerprint: drawn.fingerprint,
                arguments: None,
            },
            reviewed: false,
            on_reject: OnReject::Continue,
            deciders: 1,
            tainted: false,
            assignment: domain::Assignment::default(),
            asked_at: self.store.now().await.unwrap(),
            expires_at: Moment::from_secs(4_000_000_000),
            execute_within_ms: 60_000,
            trace: None,
        };
        let run = Run::new(RunId::from_random([number; 16]), asked);
        let tenant = Tenant::parse("acme").unwrap();
        let opened = self.store.of(&tenant).runs().open(&run, None, 100, &AuditEntry::new(Phase::Transition)).await;
        assert!(matches!(opened.unwrap(), FoldedRun::Done(_)));
        run.id
    }

    /// Carries an approved run out.
    pub(crate) async fn carry_out(&self, tool: &str, args: &Value, run: RunId) -> Result<Told, Failure> {
        let parsed = self.entry(tool).parse(args.as_object().unwrap().clone())?;
        let permit = self.permit(tool, parsed.effect, Some(run));
        told(parsed.work.run(&permit, &Progress::default()).await)
    }

    /// Looks whether a run has happened.
    pub(crate) async fn probe(&self, tool: &str, args: &Value, run: RunId) -> Probe {
        let parsed = self.entry(tool).parse(args.as_object().unwrap().clone()).unwrap();
        let permit = look(self.calls(tool, parsed.effect), approval(run));
        parsed.work.probe(&permit).await
    }

    fn calls(&self, tool: &str, effect: Effect) -> Call {
        let entry = self.entry(tool);
        Call {
            id: CallId::from_random([1; 16]),
            caller: Arc::new(Caller {
                tenant: Tenant::parse("acme").unwrap(),
                principal: Principal { issuer: "https://login.example".into(), subject: "agent".into() },
                scopes: Scopes::parse("tools:write"),
                expires_at: Moment::from_secs(9),
            }),
            session: Some(SessionId::from_random([3; 16])),
            tainted: self.tainted,
            assignment: Arc::default(),
            tool: entry.name().clone(),
            toolset: entry.definition().toolset.clone(),
            needs: entry.list(),
            effect,
            about: None,
            digest: "digest".into(),
        }
    }

    fn permit(&self, tool: &str, effect: Effect, run: Option<RunId>) -> Permit {
        let evidence = Evidence {
            loaded: [(ToolsetName::parse("memory").unwrap(), Level::Write)].into_iter().collect::<Loaded>(),
            mode: Mode::Write,
            tainted: self.tainted,
            calls_this_minute: 1,
            stopped: false,
            approved: run.map(|run| Approved { approval: approval(run), digest: "digest".into() }),
        };
        let policy = Policy { mode: Mode::Write, deny: vec![], require_approval: vec![], calls_per_minute: 10 };
        match decide(&policy, self.calls(tool, effect), &evidence) {
            Decision::Permit(permit) | Decision::Ask(_, permit) => permit,
            denied @ Decision::Deny(_) => panic!("{denied:?}"),
        }
    }
}

fn approval(run: RunId) -> Approval {
    let ada = Principal { issuer: "https://login.example".into(), subject: "ada".into() };
    Approval { run, by: vec![ada], at: Moment::from_secs(7) }
}

fn told(outcome: Result<Output, Failure>) -> Result<Told, Failure> {
    let output = outcome?;
    let structured = output.structured.unwrap();
    let text = match output.content.as_slice() {
        [] => structured.clone(),
        [Content::Text(text)] => text.clone(),
        other => panic!("{other:?}"),
    };
    Ok(Told { value: serde_json::from_str(&structured).unwrap(), text, tainting: output.tainting })
}
