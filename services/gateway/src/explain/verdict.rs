//! The verdict on one call, in words.

use super::rules::{FileRules, RulePosition};
use domain::run::OnReject;
use domain::{
    Call, CallId, Caller, Code, Effect, Level, Moment, Principal, Scopes, SessionMode, Switch, ToolName, ToolUse,
    ToolsetName,
};
use policy::{Explanation, Policy, Question};
use serde::Serialize;
use std::fmt;
use std::sync::Arc;
use tenancy::{RuleKind, TenantConfig};

/// The call to judge.
pub(crate) struct ExplainRequest {
    pub(crate) tool: ToolName,
    pub(crate) toolset: ToolsetName,
    pub(crate) needs: Level,
    pub(crate) effect: Effect,
    pub(crate) about: Option<String>,
    /// What it is aimed at, as far as that can be known here.
    pub(crate) target: Option<String>,
    pub(crate) notes: Vec<String>,
}

/// What would happen to the call.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum ExplainVerdict {
    Allowed,
    Asks,
    Denied,
}

/// The answer.
#[derive(Debug, Clone, Serialize)]
pub(crate) struct ExplainAnswer {
    pub(crate) tool: String,
    pub(crate) verdict: ExplainVerdict,
    pub(crate) why: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) effect: Option<Effect>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) about: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) rule: Option<RulePosition>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) on_reject: Option<OnReject>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub(crate) notes: Vec<String>,
    /// The rule about a server that decided it, before its line is known.
    #[serde(skip)]
    pub(crate) of_server: Option<(RuleKind, String)>,
}

impl ExplainAnswer {
    fn new(tool: &str, verdict: ExplainVerdict, why: impl Into<String>) -> ExplainAnswer {
        let (tool, why, notes) = (tool.to_owned(), why.into(), Vec::new());
        ExplainAnswer {
            tool,
            verdict,
            why,
            effect: None,
            about: None,
            rule: None,
            on_reject: None,
            notes,
            of_server: None,
        }
    }

    /// Allowed, whatever the rules are.
    pub(crate) fn allowed(tool: &str, why: impl Into<String>) -> ExplainAnswer {
        ExplainAnswer::new(tool, ExplainVerdict::Allowed, why)
    }

    /// Denied, whatever the rules are.
    pub(crate) fn denied(tool: &str, why: impl Into<String>) -> ExplainAnswer {
        ExplainAnswer::new(tool, ExplainVerdict::Denied, why)
    }

    pub(crate) fn is_denied(&self) -> bool {
        self.verdict == ExplainVerdict::Denied
    }
}

impl fmt::Display for ExplainAnswer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let verdict = match self.verdict {
            ExplainVerdict::Allowed => "allowed",
            ExplainVerdict::Asks => "needs approval",
            ExplainVerdict::Denied => "denied",
        };
        writeln!(f, "{}: {verdict}", self.tool)?;
        writeln!(f, "    why: {}", self.why)?;
        if let Some(RulePosition { key, text, file, line, column }) = &self.rule {
            writeln!(f, "    rule: {file}:{line}:{column}: {key} {text}")?;
        }
        match self.on_reject {
            Some(OnReject::Fail) => {
                writeln!(f, "    on rejection: the session can change nothing until a person clears it")?
            }
            Some(OnReject::Continue) => {
                writeln!(f, "    on rejection: the agent receives the reason and may continue")?
            }
            None => {}
        }
        if let Some(effect) = self.effect {
            let about = self.about.as_ref().map_or_else(String::new, |about| format!(", about {about}"));
            writeln!(f, "    effect: {}{about}", effect.as_str())?;
        }
        self.notes.iter().try_for_each(|note| writeln!(f, "    note: {note}"))
    }
}

/// Judges the call as the service would, in a session of this mode that has loaded the tool, under these switches.
pub(crate) fn judge(
    config: &TenantConfig,
    rules: &FileRules,
    request: ExplainRequest,
    scopes: Scopes,
    (mode, switches): (SessionMode, &[Switch]),
) -> ExplainAnswer {
    let policy = Policy {
        mode: config.mode,
        deny: config.deny.clone(),
        require_approval: config.gates(),
        calls_per_minute: u64::from(config.limits.calls_per_minute),
    };
    let ExplainRequest { tool, toolset, needs, effect, about, target, notes } = request;
    let (name, subject) = (tool.as_str().to_owned(), about.clone());
    let used = ToolUse { tool, toolset, needs, effect, about, schema: "", arguments: "{}" };
    let call = Call::new(CallId::from_random([0; 16]), Arc::new(caller(config, scopes)), None, used).aimed_at(target);
    let rejected = policy::on_reject(&policy, &call);
    let base = |verdict, why: String| ExplainAnswer {
        effect: Some(effect),
        about: subject.clone(),
        notes: notes.clone(),
        ..ExplainAnswer::new(&name, verdict, why)
    };
    match policy::explain(&policy, &call, mode, switches) {
        Explanation::Allowed => {
            base(ExplainVerdict::Allowed, "it only reads, and no rule requires approval".to_owned())
        }
        Explanation::Asks(question) => {
            let why = match question {
                Question::Rule => "a rule of the tenant requires approval".to_owned(),
                Question::Effect(Effect::Disrupt) => {
                    "it may disrupt something, which always requires approval".to_owned()
                }
                Question::Effect(Effect::Change | Effect::Read) => {
                    "it changes something, which always requires approval".to_owned()
                }
            };
            let rule = rules.asks(&name, subject.as_deref()).map(|(rule, _)| rule);
            ExplainAnswer { rule, on_reject: Some(rejected), ..base(ExplainVerdict::Asks, why) }
        }
        Explanation::Denied(reason) => {
            let writes = needs == Level::Write || effect > Effect::Read;
            // The same order as policy's: the mode is looked at before the rules.
            let rule = match (writes, config.mode, mode) {
                _ if reason.0.code != Code::PolicyDenied => None,
                (true, SessionMode::Read, _) => rules.mode(),
                (true, SessionMode::Write, SessionMode::Read) => None,
                (true, SessionMode::Write, SessionMode::Write) | (false, _, _) => {
                    rules.denies(&name, subject.as_deref())
                }
            };
            ExplainAnswer { rule, ..base(ExplainVerdict::Denied, reason.0.message) }
        }
    }
}

/// A caller of the tenant whose token has these scopes.
fn caller(config: &TenantConfig, scopes: Scopes) -> Caller {
    Caller {
        tenant: config.tenant.clone(),
        principal: Principal::new("quartermaster", "explain"),
        scopes,
        expires_at: Moment::from_secs(u64::from(u32::MAX)),
        token: None,
        labels: Vec::new(),
    }
}
