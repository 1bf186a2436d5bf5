//! A store, a notebook and the people and agents who use it.

use catalog::ToolPreview;
use domain::run::{Answer, Preview, Run, RunRequest, Verdict};
use domain::{
    Call, CallId, Caller, Effect, Level, Moment, Principal, RunId, Scopes, SessionId, SessionMode, Tenant, ToolName,
    ToolUse, ToolsetName,
};
use memory::documents::{DocPath, DocumentAuthor, DocumentKind, DocumentReader, Documents, PromotionRequest, Write};
use policy::{CallEvidence, Decision, Permit, Policy, decide};
use std::sync::Arc;
use store::{AuditEntry, Phase, RunCasOutcome, Store};
use testkit::bench::Opened;

pub(crate) struct World {
    pub(crate) store: Store,
    pub(crate) notebook: Documents,
}

/// Somebody, in a session.
#[derive(Clone, Copy)]
pub(crate) struct Who {
    pub(crate) tenant: &'static str,
    pub(crate) subject: &'static str,
    pub(crate) session: u8,
    pub(crate) tainted: bool,
}

pub(crate) const AGENT: Who = Who { tenant: "acme", subject: "agent", session: 1, tainted: false };

impl World {
    pub(crate) async fn new() -> World {
        let config = store::Config::at("memory:");
        let store = Store::open(&config).await.unwrap();
        World { notebook: Documents::new(store.clone()), store }
    }

    /// Writes a run down as it was shown to people, and gives the author that its approval makes.
    pub(crate) async fn approved(&self, who: Who, number: u8, sketch: &ToolPreview) -> DocumentAuthor {
        let run = RunId::from_random([number; 16]);
        self.open(who, &Run::new(run, self.asked(who, sketch).await)).await;
        who.author(Some(run))
    }

    /// Writes a proposal down that waits for people.
    pub(crate) async fn proposed(&self, who: Who, number: u8, sketch: &ToolPreview, promote: &PromotionRequest) {
        let arguments = format!(r#"{{"path":"{}","to":"{}","reason":"x"}}"#, promote.path, promote.to);
        let tool = ToolName::parse(memory::documents::PROMOTION_TOOL).unwrap();
        let asked = RunRequest { tool, arguments, ..self.asked(who, sketch).await };
        self.open(who, &Run::new(RunId::from_random([number; 16]), asked)).await;
    }

    async fn asked(&self, who: Who, sketch: &ToolPreview) -> RunRequest {
        let call = who.call(Effect::Change);
        RunRequest {
            idempotent: true,
            preview: Preview {
                summary: sketch.summary.clone(),
                text: sketch.text.clone(),
                warnings: sketch.warnings.clone(),
                fingerprint: sketch.fingerprint.clone(),
                arguments: None,
                hidden: Vec::new(),
            },
            expires_at: Moment::from_secs(4_000_000_000),
            execute_within_ms: 60_000,
            ..RunRequest::new(&call, self.store.now().await.unwrap())
        }
    }

    async fn open(&self, who: Who, run: &Run) {
        let tenant = Tenant::parse(who.tenant).unwrap();
        let opened = self.store.of(&tenant).runs().open(run, None, 100, &AuditEntry::new(Phase::Transition)).await;
        assert!(matches!(opened.unwrap(), RunCasOutcome::Done(_)));
    }
}

impl Who {
    pub(crate) fn named(self, subject: &'static str) -> Who {
        Who { subject, ..self }
    }

    pub(crate) fn in_session(self, session: u8) -> Who {
        Who { session, ..self }
    }

    pub(crate) fn of(self, tenant: &'static str) -> Who {
        Who { tenant, ..self }
    }

    pub(crate) fn tainted(self) -> Who {
        Who { tainted: true, ..self }
    }

    pub(crate) fn caller(self) -> Caller {
        Caller {
            tenant: Tenant::parse(self.tenant).unwrap(),
            principal: Principal::new("https://login.example", self.subject),
            scopes: Scopes::parse("tools:write"),
            expires_at: Moment::from_secs(9),
            token: None,
            labels: Vec::new(),
        }
    }

    pub(crate) fn call(self, effect: Effect) -> Call {
        let used = ToolUse {
            tool: ToolName::parse("memory_remember").unwrap(),
            toolset: ToolsetName::parse("memory").unwrap(),
            needs: Level::Write,
            effect,
            about: None,
            schema: "",
            arguments: "{}",
        };
        let session = Some(SessionId::from_random([self.session; 16]));
        let call = Call::new(CallId::from_random([1; 16]), Arc::new(self.caller()), session, used);
        call.with_session_facts(self.tainted, Arc::default())
    }

    pub(crate) fn permit(self, effect: Effect, run: Option<RunId>) -> Permit {
        let call = self.call(effect);
        let evidence = match run {
            Some(run) => evidence_of(&call, run),
            None => CallEvidence::of_address(&Opened, [(call.toolset.clone(), Level::Write)].into_iter().collect()),
        };
        let policy = Policy { mode: SessionMode::Write, deny: vec![], require_approval: vec![], calls_per_minute: 10 };
        match decide(&policy, call, &evidence) {
            Decision::Permit(permit) | Decision::Ask(_, permit) => permit,
            denied @ Decision::Deny(_) => panic!("{denied:?}"),
        }
    }

    /// The agent at work in its session, or on an approved run.
    pub(crate) fn author(self, run: Option<RunId>) -> DocumentAuthor {
        DocumentAuthor::of(&self.permit(if run.is_some() { Effect::Change } else { Effect::Read }, run))
    }

    /// The agent asking for a change that nobody has approved.
    pub(crate) fn asking(self) -> DocumentAuthor {
        DocumentAuthor::of(&self.permit(Effect::Change, None))
    }

    pub(crate) fn person(self) -> DocumentAuthor {
        DocumentAuthor::person(&self.caller())
    }

    pub(crate) fn reader(self) -> DocumentReader {
        DocumentReader::of(&self.permit(Effect::Read, None))
    }
}

/// The evidence of a run of this call that Ada approved.
fn evidence_of(call: &Call, run: RunId) -> CallEvidence {
    let at = Moment::from_secs(7);
    let by = Principal::new("https://login.example", "ada");
    let answer = Answer { by, verdict: Verdict::Approve, reason: None, at, span: None };
    CallEvidence::of_approved_run(&Run { answers: vec![answer], ..Run::new(run, RunRequest::new(call, at)) }, &Opened)
        .unwrap()
}

pub(crate) fn path(text: &str) -> DocPath {
    DocPath::parse(text).unwrap()
}

pub(crate) fn note(at: &str, content: &str) -> Write {
    Write {
        path: path(at),
        kind: DocumentKind::Note,
        title: None,
        content: content.into(),
        evidence: "seen in the logs".into(),
        tags: vec!["db".into()],
        if_sha256: None,
    }
}
