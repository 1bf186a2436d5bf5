//! An assignment: which of the tenant's agents a session works as, in which workflow, and with what parameters.
//!
//! Told once, when a session opens, and never changed after that: what a person approves within the session is done
//! with these parameters or not at all. It never holds a secret; those stand in the tenant's own configuration.

use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// What a session was opened for, as far as it decides the parameters of external servers.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Assignment {
    /// The agent, by its name in the tenant's configuration.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub agent: Option<String>,
    /// The workflow, by its name in the tenant's configuration.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub workflow: Option<String>,
    /// What the workflow gives besides: parameters by the name of the server, over everything that is configured.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub params: BTreeMap<String, BTreeMap<String, String>>,
}

impl Assignment {
    /// Whether nothing was said.
    pub fn is_empty(&self) -> bool {
        *self == Assignment::default()
    }
}
