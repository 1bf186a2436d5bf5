//! A store, a notebook and the people and agents who use it.

use domain::run::{Asked, OnReject, Preview, Run};
use domain::{
    Call, CallId, Caller, Effect, Level, Loaded, Mode, Moment, Principal, RunId, Scopes, SessionId, Tenant, ToolName,
    ToolsetName,
};
use memory::{Author, DocPath, Kind, Notebook, Promote, Reader, Sketch, Write};
use policy::{Approval, Approved, Decision, Evidence, Permit, Policy, decide};
use std::sync::Arc;
use std::time::Duration;
use store::{AuditEntry, FoldedRun, Phase, Store};

pub(crate) struct World {
    pub(crate) store: Store,
    pub(crate) notebook: Notebook,
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
        let config = store::Config {
            url: "memory:".into(),
            prefix: "qm".into(),
            deadline: Duration::from_secs(5),
            accept_unsafe: true,
            confirm_replicas: store::Confirm::Auto,
        };
        let store = Store::open(&config).await.unwrap();
        World { notebook: Notebook::new(store.clone()), store }
    }

    /// Writes a run down as it was shown to people, and gives the author that its approval makes.
    pub(crate) async fn approved(&self, who: Who, number: u8, sketch: &Sketch) -> Author {
        let run = RunId::from_random([number; 16]);
        self.open(who, &Run::new(run, self.asked(who, sketch).await)).await;
        who.author(Some(run))
    }

    /// Writes a proposal down that waits for people.
    pub(crate) async fn proposed(&self, who: Who, number: u8, sketch: &Sketch, promote: &Promote) {
        let arguments = format!(r#"{{"path":"{}","to":"{}","reason":"x"}}"#, promote.path, promote.to);
        let tool = ToolName::parse(memory::PROMOTION_TOOL).unwrap();
        let asked = Asked { tool, arguments, ..self.asked(who, sketch).await };
        self.open(who, &Run::new(RunId::from_random([number; 16]), asked)).await;
    }

    async fn asked(&self, who: Who, sketch: &Sketch) -> Asked {
        let call = who.call(Effect::Change);
        Asked {
            requester: call.caller.principal.clone(),
            scopes: call.caller.scopes.to_claim(),
            session: call.session,
            tool: call.tool.clone(),
            toolset: call.toolset.clone(),
            needs: Level::Write,
            schema: String::new(),
            arguments: "{}".into(),
            effect: Effect::Change,
            about: None,
            digest: call.digest.clone(),
            idempotent: true,
            preview: Preview {
                summary: sketch.summary.clone(),
                text: sketch.text.clone(),
                warnings: sketch.warnings.clone(),
                fingerprint: sketch.fingerprint.clone(),
                arguments: None,
            },
            reviewed: false,
            on_reject: OnReject::Continue,
            deciders: 1,
            tainted: who.tainted,
            assignment: domain::Assignment::default(),
            asked_at: self.store.now().await.unwrap(),
            expires_at: Moment::from_secs(4_000_000_000),
            execute_within_ms: 60_000,
            trace: None,
        }
    }

    async fn open(&self, who: Who, run: &Run) {
        let tenant = Tenant::parse(who.tenant).unwrap();
        let opened = self.store.of(&tenant).runs().open(run, None, 100, &AuditEntry::new(Phase::Transition)).await;
        assert!(matches!(opened.unwrap(), FoldedRun::Done(_)));
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
            principal: Principal { issuer: "https://login.example".into(), subject: self.subject.into() },
            scopes: Scopes::parse("tools:write"),
            expires_at: Moment::from_secs(9),
        }
    }

    pub(crate) fn call(self, effect: Effect) -> Call {
        Call {
            id: CallId::from_random([1; 16]),
            caller: Arc::new(self.caller()),
            session: Some(SessionId::from_random([self.session; 16])),
            tainted: self.tainted,
            assignment: Arc::default(),
            tool: ToolName::parse("memory_remember").unwrap(),
            toolset: ToolsetName::parse("memory").unwrap(),
            needs: Level::Write,
            effect,
            about: None,
            digest: "digest".into(),
        }
    }

    pub(crate) fn permit(self, effect: Effect, run: Option<RunId>) -> Permit {
        let approved = run.map(|run| Approved {
            approval: Approval {
                run,
                by: vec![Principal { issuer: "https://login.example".into(), subject: "ada".into() }],
                at: Moment::from_secs(7),
            },
            digest: "digest".into(),
        });
        let evidence = Evidence {
            loaded: [(ToolsetName::parse("memory").unwrap(), Level::Write)].into_iter().collect::<Loaded>(),
            mode: Mode::Write,
            tainted: self.tainted,
            calls_this_minute: 1,
            stopped: false,
            approved,
        };
        let policy = Policy { mode: Mode::Write, deny: vec![], require_approval: vec![], calls_per_minute: 10 };
        match decide(&policy, self.call(effect), &evidence) {
            Decision::Permit(permit) | Decision::Ask(_, permit) => permit,
            denied @ Decision::Deny(_) => panic!("{denied:?}"),
        }
    }

    /// The agent at work in its session, or on an approved run.
    pub(crate) fn author(self, run: Option<RunId>) -> Author {
        Author::of(&self.permit(if run.is_some() { Effect::Change } else { Effect::Read }, run))
    }

    /// The agent asking for a change that nobody has approved.
    pub(crate) fn asking(self) -> Author {
        Author::of(&self.permit(Effect::Change, None))
    }

    pub(crate) fn person(self) -> Author {
        Author::person(&self.caller())
    }

    pub(crate) fn reader(self) -> Reader {
        Reader::of(&self.permit(Effect::Read, None))
    }
}

pub(crate) fn path(text: &str) -> DocPath {
    DocPath::parse(text).unwrap()
}

pub(crate) fn note(at: &str, content: &str) -> Write {
    Write {
        path: path(at),
        kind: Kind::Note,
        title: None,
        content: content.into(),
        evidence: "seen in the logs".into(),
        tags: vec!["db".into()],
        if_sha256: None,
    }
}
