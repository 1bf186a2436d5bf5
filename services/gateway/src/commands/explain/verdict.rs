//! The verdict on one call, in words.

use super::rules::{Rules, Shown};
use domain::run::OnReject;
use domain::{
    Call, CallId, Caller, Code, Effect, Level, Loaded, Mode, Moment, Principal, Scopes, ToolName, ToolsetName,
};
use policy::{Decision, Evidence, Policy, Question};
use serde::Serialize;
use std::fmt;
use std::sync::Arc;
use tenancy::{RuleKind, TenantConfig};

/// What is asked about.
pub(super) struct Asked {
    pub(super) tool: ToolName,
    pub(super) toolset: ToolsetName,
    pub(super) needs: Level,
    pub(super) effect: Effect,
    pub(super) about: Option<String>,
    pub(super) notes: Vec<String>,
}

/// Yes, a person, or no.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum Verdict {
    Allowed,
    Asks,
    Denied,
}

/// The answer.
#[derive(Debug, Clone, Serialize)]
pub(super) struct Explained {
    pub(super) tool: String,
    pub(super) verdict: Verdict,
    pub(super) why: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) effect: Option<Effect>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) about: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) rule: Option<Shown>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) on_reject: Option<OnReject>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub(super) notes: Vec<String>,
    /// The rule about a server that settled it, before its line is known.
    #[serde(skip)]
    pub(super) of_server: Option<(RuleKind, String)>,
}

impl Explained {
    fn new(tool: &str, verdict: Verdict, why: impl Into<String>) -> Explained {
        let (tool, why, notes) = (tool.to_owned(), why.into(), Vec::new());
        Explained { tool, verdict, why, effect: None, about: None, rule: None, on_reject: None, notes, of_server: None }
    }

    /// A yes that no rule had to be asked for.
    pub(super) fn allowed(tool: &str, why: impl Into<String>) -> Explained {
        Explained::new(tool, Verdict::Allowed, why)
    }

    /// A no that no rule had to be asked for.
    pub(super) fn denied(tool: &str, why: impl Into<String>) -> Explained {
        Explained::new(tool, Verdict::Denied, why)
    }

    pub(super) fn is_no(&self) -> bool {
        self.verdict == Verdict::Denied
    }
}

impl fmt::Display for Explained {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let verdict = match self.verdict {
            Verdict::Allowed => "allowed",
            Verdict::Asks => "asks",
            Verdict::Denied => "denied",
        };
        writeln!(f, "{}: {verdict}", self.tool)?;
        writeln!(f, "    why: {}", self.why)?;
        if let Some(Shown { key, text, file, line, column }) = &self.rule {
            writeln!(f, "    rule: {file}:{line}:{column}: {key} {text}")?;
        }
        match self.on_reject {
            Some(OnReject::Fail) => writeln!(f, "    a no: ends the step of the session")?,
            Some(OnReject::Continue) => writeln!(f, "    a no: is told to the agent, which may go on")?,
            None => {}
        }
        if let Some(effect) = self.effect {
            let about = self.about.as_ref().map_or_else(String::new, |about| format!(", about {about}"));
            writeln!(f, "    effect: {}{about}", effect.as_str())?;
        }
        self.notes.iter().try_for_each(|note| writeln!(f, "    note: {note}"))
    }
}

/// Judges the call as the service would, in a session of this mode that has loaded the tool.
pub(super) fn judge(config: &TenantConfig, rules: &Rules, asked: Asked, scope: &str, mode: Mode) -> Explained {
    let policy = Policy {
        mode: config.mode,
        deny: config.deny.clone(),
        require_approval: config.gates(),
        calls_per_minute: u64::from(config.limits.calls_per_minute),
    };
    let evidence = Evidence {
        loaded: Loaded::from_iter([(asked.toolset.clone(), Level::Write)]),
        mode,
        tainted: false,
        calls_this_minute: 1,
        stopped: false,
        approved: None,
    };
    let Asked { tool, toolset, needs, effect, about, notes } = asked;
    let (name, subject) = (tool.as_str().to_owned(), about.clone());
    let call = Call {
        id: CallId::from_random([0; 16]),
        caller: Arc::new(caller(config, scope)),
        session: None,
        tainted: false,
        assignment: Arc::default(),
        tool,
        toolset,
        needs,
        effect,
        about,
        digest: String::new(),
    };
    let rejected = policy::on_reject(&policy, &call);
    let base = |verdict, why: String| Explained {
        effect: Some(effect),
        about: subject.clone(),
        notes: notes.clone(),
        ..Explained::new(&name, verdict, why)
    };
    match policy::decide(&policy, call, &evidence) {
        Decision::Permit(_) => base(Verdict::Allowed, "it only reads, and no rule asks".to_owned()),
        Decision::Ask(question, _) => {
            let why = match question {
                Question::Rule => "a rule of the tenant wants a person to look".to_owned(),
                Question::Effect(Effect::Disrupt) => "it may disrupt something, and that always asks".to_owned(),
                Question::Effect(Effect::Change | Effect::Read) => {
                    "it changes something, and that always asks".to_owned()
                }
            };
            let rule = rules.asks(&name, subject.as_deref()).map(|(rule, _)| rule);
            Explained { rule, on_reject: Some(rejected), ..base(Verdict::Asks, why) }
        }
        Decision::Deny(reason) => {
            let writes = needs == Level::Write || effect > Effect::Read;
            // The same order as policy's: the mode is looked at before the rules.
            let rule = match (writes, config.mode, mode) {
                _ if reason.0.code != Code::PolicyDenied => None,
                (true, Mode::Read, _) => rules.mode(),
                (true, Mode::Write, Mode::Read) => None,
                (true, Mode::Write, Mode::Write) | (false, _, _) => rules.denies(&name, subject.as_deref()),
            };
            Explained { rule, ..base(Verdict::Denied, reason.0.message) }
        }
    }
}

/// A caller of the tenant whose token has these scopes.
fn caller(config: &TenantConfig, scope: &str) -> Caller {
    Caller {
        tenant: config.tenant.clone(),
        principal: Principal { issuer: "quartermaster".into(), subject: "explain".into() },
        scopes: Scopes::parse(scope),
        expires_at: Moment::from_secs(u64::from(u32::MAX)),
    }
}
