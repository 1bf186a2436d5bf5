//! What an administrator sees of a server: how it is, what it offers, and what of it waits for a yes.

use crate::difference::{between, shown};
use crate::member::{AcceptedState, JudgedTool, Member, MemberView};
use crate::pins::PinState;
use crate::visible::visible;
use domain::{Effect, Moment};
use serde::Serialize;
use serde_json::Value;
use store::{AcceptedPins, Pin};
use tokio::time::Instant;

/// One server.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct ServerStanding {
    /// The tenant's name for it.
    pub id: String,
    /// What it is, for people.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub description: Option<String>,
    /// The toolset its tools are loaded with.
    pub toolset: String,
    /// Whether the tenant named its address itself.
    pub own: bool,
    /// How its list is.
    pub state: ListState,
    /// Since when it gives none, where it does not.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub trouble: Option<TroubleStanding>,
    /// Whether this replica sends nothing to it at the moment, because too many calls in a row failed.
    #[serde(skip_serializing_if = "is_false")]
    pub paused: bool,
    /// The protocol's era in which it spoke: `legacy` or `modern`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub era: Option<String>,
    /// When it was last listed.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub listed_at: Option<String>,
    /// Names the whole list; what accepting everything asks for.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub digest: Option<String>,
    /// Whether what was accepted can be read. While it cannot, nothing of the server is offered.
    pub pins_readable: bool,
    /// How many tools it lists beyond those that are looked at.
    #[serde(skip_serializing_if = "is_zero")]
    pub beyond: usize,
    /// Its tools, and those it no longer lists.
    pub tools: Vec<ToolStanding>,
}

/// How a server's list is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum ListState {
    /// There is none, and nothing went wrong yet.
    NeverListed,
    /// It is current.
    Fresh,
    /// It is older than it should be, and will be fetched with the next use.
    Stale,
    /// The server gives none; the one from before serves, if there is one.
    Unreachable,
}

/// Why a server gives no list.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct TroubleStanding {
    /// The stable name of the failure.
    pub code: String,
    /// In words.
    pub message: String,
    /// Since when every attempt has failed.
    pub since: String,
}

/// One tool.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct ToolStanding {
    /// The name agents know it by, if it has one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    /// What the server calls it.
    pub upstream_name: String,
    /// What it is taken to do.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub effect: Option<Effect>,
    /// On whose word.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub why: Option<&'static str>,
    /// How it stands to what was accepted.
    pub pin: PinState,
    /// Why it is refused.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
    /// Names its present definition; what accepting it asks for.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub digest: Option<String>,
    /// What was accepted, if anything was.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub accepted: Option<AcceptedStanding>,
    /// The present definition, where it waits for a yes.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub definition: Option<Value>,
    /// What changed since it was accepted, line by line.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub difference: Option<String>,
    /// What to mind about it.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub remarks: Vec<String>,
}

/// What was accepted of a tool.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct AcceptedStanding {
    /// Names the definition.
    pub digest: String,
    /// Who accepted it; nobody where the first list was taken as it was.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub by: Option<String>,
    /// When.
    pub at: String,
    /// The definition, where the tool is another now and it was small enough to be kept.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub definition: Option<Value>,
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "what serde hands over")]
fn is_zero(number: &usize) -> bool {
    *number == 0
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "what serde hands over")]
fn is_false(value: &bool) -> bool {
    !*value
}

/// How a server stands, by what was last read of it.
pub(crate) fn of(member: &Member, now: Moment) -> ServerStanding {
    let (config, view) = (member.config(), member.view());
    let listing = &view.known.listing;
    let fetched = listing.fetched.as_ref();
    let state = match (fetched, &listing.trouble) {
        (_, Some(_)) => ListState::Unreachable,
        (None, None) => ListState::NeverListed,
        (Some(fetched), None) if now.since(fetched.at) > config.limits.refresh + config.limits.refresh / 5 => {
            ListState::Stale
        }
        (Some(_), None) => ListState::Fresh,
    };
    ServerStanding {
        id: member.id.clone(),
        description: config.description.clone(),
        toolset: member.toolset.to_string(),
        own: config.own,
        state,
        trouble: listing.trouble.as_ref().map(|trouble| TroubleStanding {
            code: trouble.code.clone(),
            message: trouble.message.clone(),
            since: trouble.since.to_string(),
        }),
        paused: member.breaker.is_closed(Instant::now()),
        era: fetched.map(|fetched| fetched.era.clone()),
        listed_at: fetched.map(|fetched| fetched.at.to_string()),
        digest: view.known.offer.as_ref().map(|offer| offer.digest.clone()),
        pins_readable: !matches!(view.known.pins, AcceptedState::Unreadable),
        beyond: view.known.offer.as_ref().map_or(0, |offer| offer.beyond),
        tools: tools(&view),
    }
}

fn tools(view: &MemberView) -> Vec<ToolStanding> {
    let none = AcceptedPins::default();
    let pins = view.known.pins.pins().unwrap_or(&none);
    let listed = view.tools.iter().map(|stood| tool(stood, pins.tools.get(&stood.listed.name)));
    let gone = pins.tools.iter().filter(|(name, _)| !view.tools.iter().any(|stood| stood.listed.name == **name));
    listed.chain(gone.map(|(name, pin)| removed(name, pin))).collect()
}

fn tool(stood: &JudgedTool, pin: Option<&Pin>) -> ToolStanding {
    let listed = &stood.listed;
    let waits = matches!(stood.state, PinState::New | PinState::Changed);
    let old = pin.and_then(|pin| pin.definition.as_deref()).filter(|_| stood.state == PinState::Changed);
    let mut remarks = listed.tool.as_ref().map(|tool| tool.remarks.clone()).unwrap_or_default();
    if stood.state == PinState::Changed && old.is_none() {
        remarks.push(
            "the accepted definition was too large to be kept; the difference shows the new one whole".to_owned(),
        );
    }
    ToolStanding {
        name: stood.name.as_ref().map(ToString::to_string),
        upstream_name: visible(&listed.name),
        effect: stood.judged.map(|judged| judged.effect),
        why: stood.judged.map(|judged| judged.why),
        pin: stood.state,
        reason: stood.refused.clone(),
        digest: Some(listed.digest.clone()),
        accepted: pin.map(|pin| accepted(pin, old)),
        definition: waits.then(|| shown(&listed.canonical)),
        difference: (stood.state == PinState::Changed).then(|| between(old, Some(&listed.canonical))),
        remarks,
    }
}

fn removed(name: &str, pin: &Pin) -> ToolStanding {
    ToolStanding {
        name: None,
        upstream_name: visible(name),
        effect: None,
        why: None,
        pin: PinState::Removed,
        reason: None,
        digest: None,
        accepted: Some(accepted(pin, None)),
        definition: None,
        difference: None,
        remarks: Vec::new(),
    }
}

fn accepted(pin: &Pin, definition: Option<&str>) -> AcceptedStanding {
    AcceptedStanding {
        digest: pin.digest.clone(),
        by: pin.by.as_ref().map(|by| by.subject.clone()),
        at: pin.at.to_string(),
        definition: definition.map(shown),
    }
}
