//! The catalog as it travels: sheets, what the tenant's rules say about each tool, and what toolsets cost.

use super::outside::{Outside, Waiting};
use catalog::{Catalog, Sheet, VirtualSheet};
use domain::run::OnReject;
use domain::{Level, Mode};
use policy::Policy;
use serde::Serialize;
use upstream::PinState;

/// One page.
#[derive(Debug, Serialize)]
pub(super) struct Page<'a> {
    /// Names this very set of definitions.
    pub(super) digest: &'a str,
    /// The most a session of the tenant may be for.
    pub(super) mode: Mode,
    /// What the toolsets of the list cost; on the first page.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) toolsets: Option<Vec<Total<'a>>>,
    /// The tools, in catalog order.
    pub(super) tools: Vec<Offer<'a>>,
    /// What the service answers itself, in every session; on the first page.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) virtual_tools: Option<Vec<VirtualSheet>>,
    /// Tools of external servers that wait to be accepted; on the first page, and for people only.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) quarantine: Option<Vec<Waiting<'a>>>,
    /// What to ask for next; none on the last page.
    pub(super) next_cursor: Option<String>,
}

/// One tool, and what the tenant's rules say about it.
#[derive(Debug, Serialize)]
pub(super) struct Offer<'a> {
    #[serde(flatten)]
    sheet: Sheet<'a>,
    /// Whether a rule makes calls of it wait for a person, besides what it changes.
    gated: bool,
    /// Those rules.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    gates: Vec<Asks>,
    /// Rules that refuse some of its calls.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    denied: Vec<String>,
    /// Of a tool from an external server: whether it is still what was accepted.
    #[serde(skip_serializing_if = "Option::is_none")]
    pin: Option<PinState>,
}

/// A rule that asks a person.
#[derive(Debug, Serialize)]
struct Asks {
    pattern: String,
    on_reject: OnReject,
}

impl<'a> Offer<'a> {
    pub(super) fn of(sheet: Sheet<'a>, policy: &Policy, outside: &Outside) -> Offer<'a> {
        let gates = policy.require_approval.iter().filter(|gate| gate.pattern.tool_matches(sheet.name));
        let gates: Vec<Asks> =
            gates.map(|gate| Asks { pattern: gate.pattern.to_string(), on_reject: gate.on_reject }).collect();
        let denied = policy.deny.iter().filter(|rule| rule.tool_matches(sheet.name)).map(ToString::to_string).collect();
        Offer { gated: !gates.is_empty(), gates, denied, pin: outside.pin_of(&sheet), sheet }
    }
}

/// What one list of a toolset comes to.
#[derive(Debug, Default, Serialize)]
struct Sum {
    tools: u32,
    tokens: u32,
}

/// What a toolset comes to.
#[derive(Debug, Serialize)]
pub(super) struct Total<'a> {
    name: &'a str,
    /// Whether its read list is there when a session opens.
    default: bool,
    read: Sum,
    write: Sum,
}

/// What the listed tools come to, by toolset and in catalog order; toolsets without any are left out.
pub(super) fn totals<'a>(catalog: &'a Catalog, listed: &[Sheet<'_>]) -> Vec<Total<'a>> {
    let sum = |name: &str, list: Level| {
        listed
            .iter()
            .filter(|sheet| sheet.toolset == name && sheet.list == list)
            .fold(Sum::default(), |sum, sheet| Sum { tools: sum.tools + 1, tokens: sum.tokens + sheet.tokens })
    };
    let sets = catalog.toolsets().iter().map(|set| {
        let name = set.name.as_str();
        Total { name, default: set.default, read: sum(name, Level::Read), write: sum(name, Level::Write) }
    });
    sets.filter(|total| total.read.tools + total.write.tools > 0).collect()
}
