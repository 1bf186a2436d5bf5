//! What a call does to the world, and what a session is for.

use serde::{Deserialize, Serialize};

/// What a call does to the world. Ordered: the higher it is, the more it asks for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Effect {
    /// Looks, and leaves everything as it was.
    Read,
    /// Changes something that can be changed back.
    Change,
    /// Takes something away, or puts service at risk.
    Disrupt,
}

impl Effect {
    /// As it stands on the wire, in metrics and in the audit.
    pub const fn as_str(self) -> &'static str {
        match self {
            Effect::Read => "read",
            Effect::Change => "change",
            Effect::Disrupt => "disrupt",
        }
    }
}

/// What a session is for. The tenant's configuration sets the most it may be.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum SessionMode {
    /// Looking only: write tools cannot be loaded.
    Read,
    /// Write tools may be loaded by those whose token allows it.
    Write,
}

impl SessionMode {
    /// As it stands on the wire.
    pub const fn as_str(self) -> &'static str {
        match self {
            SessionMode::Read => "read",
            SessionMode::Write => "write",
        }
    }
}
