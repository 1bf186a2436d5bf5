//! A call: one request to use one tool, its arguments parsed and its effect known.

use crate::{Assignment, CallId, Caller, Effect, Level, SessionId, ToolsetName};
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
    /// SHA-256 over tool and canonical arguments, in hex.
    pub digest: String,
}
