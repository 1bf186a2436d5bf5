//! A call: one request to use one tool, its arguments parsed and its effect known.
//!
//! [`OpenedCall`] is what policy wants to see before it judges one: the audit entry is open, and this was read beside it.

use crate::{Assignment, CallId, Caller, Effect, KnownSwitches, Level, Session, SessionId, ToolsetName};
use serde::{Deserialize, Serialize};
use std::fmt;
use std::sync::Arc;

/// A tool's name: 1 to 64 of letters, digits, `_` and `-`.
#[derive(Clone, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct ToolName(Arc<str>);

/// The text is not a tool's name.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("a tool is named with 1 to 64 of letters, digits, '_' and '-'")]
pub struct NotAToolName;

impl ToolName {
    /// Checks the name.
    pub fn parse(text: &str) -> Result<ToolName, NotAToolName> {
        let fits = |b: &u8| b.is_ascii_alphanumeric() || matches!(b, b'_' | b'-');
        if (1..=64).contains(&text.len()) && text.as_bytes().iter().all(fits) {
            Ok(ToolName(text.into()))
        } else {
            Err(NotAToolName)
        }
    }

    /// The name.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl TryFrom<String> for ToolName {
    type Error = NotAToolName;
    fn try_from(text: String) -> Result<Self, NotAToolName> {
        ToolName::parse(&text)
    }
}

impl From<ToolName> for String {
    fn from(name: ToolName) -> String {
        name.0.as_ref().to_owned()
    }
}

impl fmt::Display for ToolName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl fmt::Debug for ToolName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// The tool and the arguments of a call, as the catalog parsed them.
#[derive(Debug, Clone)]
pub struct ToolUse<'a> {
    /// The tool.
    pub tool: ToolName,
    /// The toolset the tool belongs to.
    pub toolset: ToolsetName,
    /// How much of that toolset must be loaded for it.
    pub needs: Level,
    /// What these arguments would do.
    pub effect: Effect,
    /// What the arguments are about, where a rule may single it out (`k8s_get:secrets`).
    pub about: Option<String>,
    /// SHA-256 of the schema the arguments were checked against.
    pub schema: &'a str,
    /// The arguments in their canonical form, as JSON text.
    pub arguments: &'a str,
}

/// One request to use one tool. What policy judges and what a permit carries.
#[derive(Debug, Clone)]
pub struct Call {
    /// Its name in the audit.
    pub id: CallId,
    /// Who asks.
    pub caller: Arc<Caller>,
    /// The session it is made in, if any.
    pub session: Option<SessionId>,
    /// Whether that session has read text from outside, as far as was known when the call was judged.
    pub tainted: bool,
    /// What that session was opened for.
    pub assignment: Arc<Assignment>,
    /// The tool.
    pub tool: ToolName,
    /// The toolset the tool belongs to.
    pub toolset: ToolsetName,
    /// How much of that toolset must be loaded for it.
    pub needs: Level,
    /// What these arguments would do.
    pub effect: Effect,
    /// What the arguments are about, where a rule may single it out (`k8s_get:secrets`).
    pub about: Option<String>,
    /// What it is aimed at, as the audit log names it (`cluster/prod`, `server/wiki`).
    pub target: Option<String>,
    digest: String,
    control: bool,
}

impl Call {
    /// A call of a tool. It computes its own digest: tenant, principal, session, tool, schema and canonical arguments,
    /// which is what an approval is given to.
    pub fn new(id: CallId, caller: Arc<Caller>, session: Option<SessionId>, used: ToolUse<'_>) -> Call {
        let ToolUse { tool, toolset, needs, effect, about, schema, arguments } = used;
        let digest = digest(&caller, session, &tool, schema, arguments);
        let (tainted, assignment, target, control) = (false, Arc::default(), None, false);
        Call { id, caller, session, tainted, assignment, tool, toolset, needs, effect, about, target, digest, control }
    }

    /// A call of a tool that the service answers itself. Every session has those tools and no rule is about them, so the
    /// call is one that only reads, whatever it is called.
    pub fn of_control_tool(
        id: CallId,
        caller: Arc<Caller>,
        session: Option<SessionId>,
        (tool, toolset): (ToolName, ToolsetName),
        arguments: &str,
    ) -> Call {
        let (needs, effect, about, schema) = (Level::Read, Effect::Read, None, "");
        let used = ToolUse { tool, toolset, needs, effect, about, schema, arguments };
        Call { control: true, ..Call::new(id, caller, session, used) }
    }

    /// The same call with what its session is known to be.
    #[must_use]
    pub fn with_session_facts(self, tainted: bool, assignment: Arc<Assignment>) -> Call {
        Call { tainted, assignment, ..self }
    }

    /// The same call with what it is aimed at.
    #[must_use]
    pub fn aimed_at(self, target: Option<String>) -> Call {
        Call { target, ..self }
    }

    /// SHA-256, in hex, of who asks for what: two calls that differ in any of it have different digests.
    pub fn digest(&self) -> &str {
        &self.digest
    }

    /// Whether the service answers it itself.
    pub fn is_control(&self) -> bool {
        self.control
    }
}

fn digest(caller: &Caller, session: Option<SessionId>, tool: &ToolName, schema: &str, arguments: &str) -> String {
    let Caller { tenant, principal, .. } = caller;
    let session = session.map(|id| id.to_string()).unwrap_or_default();
    // Each part is quoted, so that no two calls can read alike.
    let parts = [tenant.as_str(), &principal.issuer, &principal.subject, &session, tool.as_str(), schema, arguments];
    let text = serde_json::to_string(&parts).unwrap_or_else(|_| serde_json::Value::from(parts.to_vec()).to_string());
    crate::json::sha256_hex(text.as_bytes())
}

/// Proof that the audit entry of a call is open, and what was read from the store together with opening it.
///
/// The store implements it for what `begin` returns, and nothing else outside of tests does: whoever has one has opened
/// the entry. Rust cannot say "only that crate", so a new `impl OpenedCall` is what a reviewer has to look for.
pub trait OpenedCall: KnownSwitches {
    /// The caller's session, if the call named a live one of its own.
    fn session(&self) -> Option<&Session>;

    /// The tenant's calls in the current minute, this one included.
    fn calls_this_minute(&self) -> u64;

    /// Whether a rejection ended the step of the session, or of an earlier one of the same principal, so that nothing may
    /// be changed until a person clears it.
    fn is_stopped(&self) -> bool;
}

/// Whose rate of calls is used up, and how many calls a minute that is. It is evidence against a call, so anybody may
/// bring it forward.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RateExceeded {
    /// The whole tenant's.
    Tenant(u64),
    /// The caller's share of it.
    Caller(u64),
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Moment, Principal, Scopes, Tenant};

    fn caller(tenant: &str, subject: &str) -> Arc<Caller> {
        Arc::new(Caller {
            tenant: Tenant::parse(tenant).unwrap(),
            principal: Principal::new("i", subject),
            scopes: Scopes::parse("tools:read"),
            expires_at: Moment::from_secs(9),
            token: None,
            labels: Vec::new(),
        })
    }

    fn used<'a>(tool: &str, schema: &'a str, arguments: &'a str) -> ToolUse<'a> {
        ToolUse {
            tool: ToolName::parse(tool).unwrap(),
            toolset: ToolsetName::parse("k8s").unwrap(),
            needs: Level::Read,
            effect: Effect::Read,
            about: None,
            schema,
            arguments,
        }
    }

    #[test]
    fn a_digest_tells_apart_who_asks_for_what_and_not_when() {
        let call = |number, caller, session, used| Call::new(CallId::from_random([number; 16]), caller, session, used);
        let (ana, session) = (|| caller("acme", "ana"), Some(SessionId::from_random([1; 16])));
        let digest = |call: Call| call.digest().to_owned();
        let first = digest(call(1, ana(), session, used("a", "s", "{}")));
        assert_eq!(first, digest(call(2, ana(), session, used("a", "s", "{}"))), "asked again");
        let tainted = call(1, ana(), session, used("a", "s", "{}")).with_session_facts(true, Arc::default());
        assert_eq!(first, digest(tainted), "what the session has read is no part of it");
        for other in [
            call(1, caller("other", "ana"), session, used("a", "s", "{}")),
            call(1, caller("acme", "bob"), session, used("a", "s", "{}")),
            call(1, ana(), None, used("a", "s", "{}")),
            call(1, ana(), session, used("b", "s", "{}")),
            call(1, ana(), session, used("a", "t", "{}")),
            call(1, ana(), session, used("a", "s", "[]")),
        ] {
            assert_ne!(first, digest(other));
        }
    }

    #[test]
    fn a_call_of_a_control_tool_only_reads() {
        let names = (ToolName::parse("load_toolset").unwrap(), ToolsetName::parse("virtual").unwrap());
        let call = Call::of_control_tool(CallId::from_random([1; 16]), caller("acme", "ana"), None, names, "{}");
        assert_eq!((call.is_control(), call.effect, call.needs), (true, Effect::Read, Level::Read));
    }
}
