//! An agent that calls memory tools, and what it is told.

use catalog::{CatalogEntry, ProbeResult, Progress, ToolPreview};
use domain::run::{Preview, Run, RunRequest};
use domain::{
    Call, CallId, Caller, Content, Effect, Failure, Level, Moment, Principal, RunId, Scopes, SessionId, SessionMode,
    Tenant, ToolOutput, ToolUse,
};
use memory::documents::Documents;
use policy::{CallEvidence, Decision, Permit, PermitApproval, Policy, decide};
use serde_json::Value;
use std::sync::Arc;
use store::{AuditEntry, Phase, RunCasOutcome, Store};
use testkit::bench::{Opened, evidence_of};

pub(crate) struct World {
    store: Store,
    pub(crate) tools: Vec<Arc<CatalogEntry>>,
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
        let config = store::Config::at("memory:");
        let store = Store::open(&config).await.unwrap();
        let (notebook, cursors) = (Documents::new(store.clone()), target::Cursors::new([7; 32]));
        let tools =
            memory::tools::list(&memory::tools::MemoryDeps { notebook, cursors }, &catalog::CompiledTools::default())
                .unwrap();
        World { store, tools, tainted: false }
    }

    pub(crate) fn entry(&self, tool: &str) -> &CatalogEntry {
        self.tools.iter().find(|entry| entry.name().as_str() == tool).unwrap()
    }

    /// Calls a tool that runs at once.
    pub(crate) async fn call(&self, tool: &str, args: Value) -> Result<Told, Failure> {
        let parsed = self.entry(tool).parse(args.as_object().unwrap().clone())?;
        assert_eq!(parsed.effect, Effect::Read, "{tool} would have to ask");
        told(parsed.work.run(&self.permit(tool, Effect::Read, None), &Progress::default()).await)
    }

    /// What a person is shown before a call is carried out.
    pub(crate) async fn preview(&self, tool: &str, args: &Value) -> Result<ToolPreview, Failure> {
        let parsed = self.entry(tool).parse(args.as_object().unwrap().clone())?;
        let permit = self.permit(tool, parsed.effect, None);
        parsed.work.preview(&permit).await.map(Option::unwrap)
    }

    /// Writes the run down that a preview leads to.
    pub(crate) async fn ask(&self, tool: &str, args: &Value, number: u8) -> RunId {
        let drawn = self.preview(tool, args).await.unwrap();
        let call = self.calls(tool, Effect::Change);
        let asked = RunRequest {
            arguments: args.to_string(),
            idempotent: true,
            preview: Preview {
                summary: drawn.summary,
                text: drawn.text,
                warnings: drawn.warnings,
                fingerprint: drawn.fingerprint,
                arguments: None,
                hidden: Vec::new(),
            },
            expires_at: Moment::from_secs(4_000_000_000),
            execute_within_ms: 60_000,
            ..RunRequest::new(&call, self.store.now().await.unwrap())
        };
        let run = Run::new(RunId::from_random([number; 16]), asked);
        let tenant = Tenant::parse("acme").unwrap();
        let opened = self.store.of(&tenant).runs().open(&run, None, 100, &AuditEntry::new(Phase::Transition)).await;
        assert!(matches!(opened.unwrap(), RunCasOutcome::Done(_)));
        run.id
    }

    /// Carries an approved run out.
    pub(crate) async fn carry_out(&self, tool: &str, args: &Value, run: RunId) -> Result<Told, Failure> {
        let parsed = self.entry(tool).parse(args.as_object().unwrap().clone())?;
        let permit = self.permit(tool, parsed.effect, Some(run));
        told(parsed.work.run(&permit, &Progress::default()).await)
    }

    /// Looks whether a run has happened.
    pub(crate) async fn probe(&self, tool: &str, args: &Value, run: RunId) -> ProbeResult {
        let parsed = self.entry(tool).parse(args.as_object().unwrap().clone()).unwrap();
        let permit = self.permit(tool, parsed.effect, Some(run)).for_preview();
        parsed.work.probe(&permit).await
    }

    fn calls(&self, tool: &str, effect: Effect) -> Call {
        let entry = self.entry(tool);
        let caller = Caller {
            tenant: Tenant::parse("acme").unwrap(),
            principal: Principal::new("https://login.example", "agent"),
            scopes: Scopes::parse("tools:write"),
            expires_at: Moment::from_secs(9),
            token: None,
            labels: Vec::new(),
        };
        let used = ToolUse {
            tool: entry.name().clone(),
            toolset: entry.definition().toolset.clone(),
            needs: entry.list(),
            effect,
            about: None,
            schema: "",
            arguments: "{}",
        };
        let session = Some(SessionId::from_random([3; 16]));
        let call = Call::new(CallId::from_random([1; 16]), Arc::new(caller), session, used);
        call.with_session_facts(self.tainted, Arc::default())
    }

    fn permit(&self, tool: &str, effect: Effect, run: Option<RunId>) -> Permit {
        let call = self.calls(tool, effect);
        let evidence = match run {
            Some(run) => evidence_of(&call, &approval(run)),
            None => CallEvidence::of_address(&Opened, [(call.toolset.clone(), Level::Write)].into_iter().collect()),
        };
        let policy = Policy { mode: SessionMode::Write, deny: vec![], require_approval: vec![], calls_per_minute: 10 };
        match decide(&policy, call, &evidence) {
            Decision::Permit(permit) | Decision::Ask(_, permit) => permit,
            denied @ Decision::Deny(_) => panic!("{denied:?}"),
        }
    }
}

fn approval(run: RunId) -> PermitApproval {
    let ada = Principal::new("https://login.example", "ada");
    PermitApproval { run, by: vec![ada], at: Moment::from_secs(7) }
}

fn told(outcome: Result<ToolOutput, Failure>) -> Result<Told, Failure> {
    let output = outcome?;
    let structured = output.structured.unwrap();
    let text = match output.content.as_slice() {
        [] => structured.clone(),
        [Content::Text(text)] => text.clone(),
        other => panic!("{other:?}"),
    };
    Ok(Told { value: serde_json::from_str(&structured).unwrap(), text, tainting: output.tainting })
}
