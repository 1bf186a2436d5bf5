//! The catalog as it travels: sheets, what the tenant's rules say about each tool, and what toolsets cost.

use super::standings::{ServerStandings, UnacceptedTool};
use crate::openapi::shapes::{self, AnyObject};
use catalog::{Catalog, ToolSheet, VirtualSheet};
use domain::run::OnReject;
use domain::{Level, SessionMode};
use external::PinState;
use policy::Policy;
use schemars::JsonSchema;
use serde::Serialize;

/// One page.
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct CatalogPage<'a> {
    /// Names this very set of definitions.
    pub(super) digest: &'a str,
    /// The most a session of the tenant may be for.
    #[schemars(with = "shapes::SessionMode")]
    pub(super) mode: SessionMode,
    /// What the toolsets of the list cost; on the first page.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) toolsets: Option<Vec<Total<'a>>>,
    /// The tools, in catalog order.
    pub(super) tools: Vec<CatalogTool<'a>>,
    /// What the service answers itself, in every session; on the first page.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<Vec<AnyObject>>")]
    pub(super) virtual_tools: Option<Vec<VirtualSheet>>,
    /// Tools of external servers that wait to be accepted; on the first page, and for people only.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<Vec<AnyObject>>")]
    pub(super) quarantine: Option<Vec<UnacceptedTool<'a>>>,
    /// What to ask for next; none on the last page.
    pub(super) next_cursor: Option<String>,
}

/// One tool, and what the tenant's rules say about it.
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct CatalogTool<'a> {
    #[serde(flatten)]
    #[schemars(with = "AnyObject")]
    sheet: ToolSheet<'a>,
    /// Whether a rule makes calls of it wait for a person, besides what it changes.
    gated: bool,
    /// Those rules.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    gates: Vec<ApprovalRule>,
    /// Rules that refuse some of its calls.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    denied: Vec<String>,
    /// Of a tool from an external server: whether it is still what was accepted.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<String>")]
    pin: Option<PinState>,
}

/// A rule that asks a person.
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct ApprovalRule {
    pattern: String,
    #[schemars(with = "shapes::OnReject")]
    on_reject: OnReject,
}

impl<'a> CatalogTool<'a> {
    pub(super) fn of(sheet: ToolSheet<'a>, policy: &Policy, standings: &ServerStandings) -> CatalogTool<'a> {
        let gates = policy.require_approval.iter().filter(|gate| gate.pattern.tool_matches(sheet.name));
        let gates: Vec<ApprovalRule> =
            gates.map(|gate| ApprovalRule { pattern: gate.pattern.to_string(), on_reject: gate.on_reject }).collect();
        let denied = policy.deny.iter().filter(|rule| rule.tool_matches(sheet.name)).map(ToString::to_string).collect();
        CatalogTool { gated: !gates.is_empty(), gates, denied, pin: standings.pin_of(&sheet), sheet }
    }
}

/// What one list of a toolset comes to.
#[derive(Debug, Default, Serialize, JsonSchema)]
pub(crate) struct ListTotals {
    tools: u32,
    tokens: u32,
}

/// What a toolset comes to.
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct Total<'a> {
    name: &'a str,
    /// Whether its read list is there when a session opens.
    default: bool,
    read: ListTotals,
    write: ListTotals,
}

/// What the listed tools come to, by toolset and in catalog order; toolsets without any are left out.
pub(super) fn totals<'a>(catalog: &'a Catalog, listed: &[ToolSheet<'_>]) -> Vec<Total<'a>> {
    let sum = |name: &str, list: Level| {
        listed.iter().filter(|sheet| sheet.toolset == name && sheet.list == list).fold(
            ListTotals::default(),
            |sum, sheet| ListTotals { tools: sum.tools + 1, tokens: sum.tokens + sheet.tokens },
        )
    };
    let sets = catalog.toolsets().iter().map(|set| {
        let name = set.name.as_str();
        Total { name, default: set.default, read: sum(name, Level::Read), write: sum(name, Level::Write) }
    });
    sets.filter(|total| total.read.tools + total.write.tools > 0).collect()
}
