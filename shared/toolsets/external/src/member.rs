//! One server of one tenant in memory: what it offers, what of it is accepted, and how hard it is pressed.
//!
//! Everything a call or a list needs is read from here and never waits. Whoever brings it up to date reads the store
//! first and then swaps the whole view.

use crate::config::ExternalServerConfig;
use crate::definition::ListedDefinition;
use crate::effect::{self, JudgedEffect};
use crate::naming;
use crate::offer::ToolOffer;
use crate::pins::{self, PinState};
use crate::places::ServerSlots;
use crate::tool::{self, ExternalDeps, ExternalTool};
use catalog::CatalogEntry;
use domain::{Tenant, ToolName, ToolsetName, json};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::atomic::AtomicBool;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use store::{AcceptedPins, ListFacts};
use target::Breaker;
use tokio::time::Instant;

/// One server of one tenant.
pub(crate) struct Member {
    pub(crate) tenant: Tenant,
    pub(crate) id: String,
    pub(crate) toolset: ToolsetName,
    pub(crate) breaker: Breaker,
    /// Held by whoever brings it up to date: one at a time in this process.
    pub(crate) flight: Arc<tokio::sync::Mutex<()>>,
    /// Whether it has to be asked again as soon as that is done.
    pub(crate) again: AtomicBool,
    state: Mutex<MemberState>,
}

struct MemberState {
    config: Arc<ExternalServerConfig>,
    places: Arc<ServerSlots>,
    view: Arc<MemberView>,
    /// When to look again.
    due: Instant,
}

/// What was read of a server.
#[derive(Clone, Default)]
pub(crate) struct ServerReading {
    pub(crate) listing: ListFacts,
    pub(crate) offer: Option<Arc<ToolOffer>>,
    pub(crate) pins: AcceptedState,
}

/// What is known of what was accepted.
#[derive(Clone, Default)]
pub(crate) enum AcceptedState {
    /// It cannot be read, or nobody has looked yet: nothing is offered.
    #[default]
    Unreadable,
    /// Nothing ever was.
    Nothing,
    /// These.
    Pins(Arc<AcceptedPins>),
}

impl AcceptedState {
    pub(crate) fn pins(&self) -> Option<&AcceptedPins> {
        match self {
            AcceptedState::Pins(pins) => Some(pins),
            AcceptedState::Unreadable | AcceptedState::Nothing => None,
        }
    }
}

/// One listed tool, judged.
#[derive(Clone)]
pub(crate) struct JudgedTool {
    pub(crate) listed: ListedDefinition,
    pub(crate) name: Option<ToolName>,
    pub(crate) state: PinState,
    pub(crate) judged: Option<JudgedEffect>,
    pub(crate) refused: Option<String>,
}

/// What follows from what was read, under the present configuration.
#[derive(Default)]
pub(crate) struct MemberView {
    pub(crate) known: ServerReading,
    pub(crate) tools: Vec<JudgedTool>,
    entries: Vec<(String, Arc<CatalogEntry>)>,
    /// What may be called: the server's names, each with the definition that was accepted.
    live: BTreeMap<String, String>,
}

impl MemberView {
    pub(crate) fn entries(&self) -> impl Iterator<Item = &Arc<CatalogEntry>> {
        self.entries.iter().map(|(_, entry)| entry)
    }

    fn offers_the_same(&self, other: &MemberView) -> bool {
        self.entries.iter().map(|(mark, _)| mark).eq(other.entries.iter().map(|(mark, _)| mark))
    }
}

impl Member {
    /// A server of which nothing is known yet.
    pub(crate) fn new(tenant: &Tenant, toolset: ToolsetName, config: ExternalServerConfig) -> Arc<Member> {
        let places = Arc::new(ServerSlots::new(config.limits.in_flight, config.limits.waiting));
        let (id, config, view) = (config.id.clone(), Arc::new(config), Arc::default());
        Arc::new(Member {
            tenant: tenant.clone(),
            id,
            toolset,
            breaker: Breaker::default(),
            flight: Arc::default(),
            again: AtomicBool::new(false),
            state: Mutex::new(MemberState { config, places, view, due: Instant::now() }),
        })
    }

    pub(crate) fn config(&self) -> Arc<ExternalServerConfig> {
        Arc::clone(&self.lock().config)
    }

    pub(crate) fn view(&self) -> Arc<MemberView> {
        Arc::clone(&self.lock().view)
    }

    pub(crate) fn places(&self) -> Arc<ServerSlots> {
        Arc::clone(&self.lock().places)
    }

    pub(crate) fn is_due(&self, now: Instant) -> bool {
        now >= self.lock().due
    }

    pub(crate) fn look_again(&self, at: Instant) {
        self.lock().due = at;
    }

    /// Whether a tool is still the accepted one, by what is known at this moment.
    pub(crate) fn is_live(&self, tool: &str, digest: &str) -> bool {
        self.lock().view.live.get(tool).is_some_and(|accepted| accepted == digest)
    }

    /// Takes another configuration. Calls under way keep their places; the next ones find the new ones.
    pub(crate) fn configure(self: &Arc<Member>, config: ExternalServerConfig, shared: &Arc<ExternalDeps>) {
        let mut state = self.lock();
        let (old, new) = (&state.config.limits, &config.limits);
        if (old.in_flight, old.waiting) != (new.in_flight, new.waiting) {
            state.places = Arc::new(ServerSlots::new(new.in_flight, new.waiting));
        }
        (state.config, state.due) = (Arc::new(config), Instant::now());
        let known = state.view.known.clone();
        drop(state);
        self.know(known, shared);
    }

    /// Takes what was read and draws everything else from it. Tells whether what is offered is another now.
    pub(crate) fn know(self: &Arc<Member>, known: ServerReading, shared: &Arc<ExternalDeps>) -> bool {
        let (config, before) = {
            let state = self.lock();
            (Arc::clone(&state.config), Arc::clone(&state.view))
        };
        // Schemas are compiled outside the lock: calls go on by the view from before.
        let view = Arc::new(self.draw(known, &config, &before, shared));
        let other = !view.offers_the_same(&before);
        self.lock().view = view;
        other
    }

    /// Forgets everything: the server is the tenant's no more.
    pub(crate) fn leave(&self) {
        self.lock().view = Arc::default();
    }

    fn draw(
        self: &Arc<Member>,
        known: ServerReading,
        config: &ExternalServerConfig,
        before: &MemberView,
        shared: &Arc<ExternalDeps>,
    ) -> MemberView {
        let offer = known.offer.clone();
        let listed = offer.as_ref().map_or(&[][..], |offer| offer.tools.as_slice());
        let names = naming::names(&self.id, listed.iter().map(|l| l.name.as_str()), &shared.reserved);
        let readable = !matches!(known.pins, AcceptedState::Unreadable);
        let (mut tools, mut entries, mut live) = (Vec::new(), Vec::new(), BTreeMap::new());
        for listed in listed {
            let mut stood = self.judge(listed, names.get(&listed.name), &known, config);
            if stood.state == PinState::Accepted && readable {
                match self.entry(&stood, config, before, shared) {
                    Ok(entry) => {
                        live.insert(listed.name.clone(), listed.digest.clone());
                        entries.push(entry);
                    }
                    Err(why) => (stood.state, stood.refused) = (PinState::Refused, Some(why)),
                }
            }
            tools.push(stood);
        }
        MemberView { known, tools, entries, live }
    }

    fn judge(
        &self,
        listed: &ListedDefinition,
        name: Option<&Result<ToolName, naming::BadName>>,
        known: &ServerReading,
        config: &ExternalServerConfig,
    ) -> JudgedTool {
        let wanted = config.allow.as_ref().is_none_or(|all| all.iter().any(|p| p.tool_matches(&listed.name)));
        let (name, bad_name) = match name {
            Some(Ok(name)) => (Some(name.clone()), None),
            Some(Err(bad)) => (None, Some(bad.to_string())),
            None => (None, Some(naming::BadName::Taken.to_string())),
        };
        let refused = bad_name.or_else(|| listed.tool.as_ref().err().cloned());
        let state = match (&refused, wanted) {
            (Some(_), _) => PinState::Refused,
            (None, false) => PinState::NotAllowed,
            (None, true) => pins::state(listed, known.pins.pins()),
        };
        let hints = listed.tool.as_ref().ok().map(|tool| tool.hints);
        let judged = hints.map(|hints| effect::judge(&listed.name, hints, &config.vouch, config.own));
        JudgedTool { listed: listed.clone(), name, state, judged, refused }
    }

    /// The entry of a tool; the one from before where nothing of it changed, since compiling is dear.
    fn entry(
        self: &Arc<Member>,
        stood: &JudgedTool,
        config: &ExternalServerConfig,
        before: &MemberView,
        shared: &Arc<ExternalDeps>,
    ) -> Result<(String, Arc<CatalogEntry>), String> {
        let (Some(name), Some(judged), Ok(usable)) = (&stood.name, stood.judged, &stood.listed.tool) else {
            return Err("it cannot be used".to_owned());
        };
        let listed = &stood.listed;
        let parts = [
            name.as_str(),
            &listed.name,
            &listed.digest,
            judged.effect.as_str(),
            judged.why,
            &judged.idempotent.to_string(),
            &config.limits.deadline.as_millis().to_string(),
            config.description.as_deref().unwrap_or_default(),
        ];
        let mark = json::sha256_hex(serde_json::Value::from(parts.to_vec()).to_string().as_bytes());
        if let Some(same) = before.entries.iter().find(|(known, _)| *known == mark) {
            return Ok(same.clone());
        }
        let definition = tool::definition(self, name, listed, usable, judged, config);
        let external = ExternalTool {
            member: Arc::downgrade(self),
            shared: Arc::clone(shared),
            name: name.clone(),
            tool: listed.name.clone(),
            digest: listed.digest.clone(),
            judged,
            hints: usable.hints,
        };
        let entry = CatalogEntry::new(definition, Arc::new(external)).map_err(|bad| bad.why)?;
        Ok((mark, Arc::new(entry)))
    }

    fn lock(&self) -> MutexGuard<'_, MemberState> {
        // Whole after every statement, so a panic elsewhere leaves it usable.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The server a tool belongs to, as long as it is the tenant's.
pub(crate) type MemberRef = Weak<Member>;

/// Names that no tool of a server may have.
pub(crate) fn reserved(given: BTreeSet<String>) -> BTreeSet<String> {
    given.into_iter().chain(catalog::ControlTool::ALL.iter().map(|v| v.name().to_owned())).collect()
}
