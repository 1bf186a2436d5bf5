//! What was accepted of a server's tools, and what of a list may be offered because of it. Pure.
//!
//! A pin is a digest over everything a server says of a tool. While the two agree, the tool is offered; a tool that
//! changed or came anew waits until an administrator accepts the very definition that was shown. A pin outlives the
//! tool: what goes and comes back as another is still another.

use crate::definition::ListedDefinition;
use crate::offer::{TOOLS, ToolOffer};
use domain::{Moment, Principal};
use serde::Serialize;
use store::{AcceptedPins, Pin};

/// The largest definition that is kept to be compared with later ones. With [`MOST`] it bounds the record.
const KEPT: usize = 8 * 1024;
/// How many pins one server may have. Beyond it those are forgotten that the server no longer lists: should such a tool
/// come back, it is a new one.
const MOST: usize = 2 * TOOLS;

/// How a tool stands to what was accepted.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum PinState {
    /// It is what was accepted.
    Accepted,
    /// It is another than was accepted.
    Changed,
    /// It was never accepted.
    New,
    /// It was accepted and is no longer listed.
    Removed,
    /// It is not offered, whatever anybody accepts.
    Refused,
    /// The tenant does not want it.
    NotAllowed,
}

/// How one listed tool stands.
pub(crate) fn state(listed: &ListedDefinition, pins: Option<&AcceptedPins>) -> PinState {
    match pins.and_then(|pins| pins.tools.get(&listed.name)) {
        _ if listed.tool.is_err() => PinState::Refused,
        Some(pin) if pin.digest == listed.digest => PinState::Accepted,
        Some(_) => PinState::Changed,
        None => PinState::New,
    }
}

/// The pins once these tools are accepted.
pub(crate) fn accepted<'a>(
    before: Option<&AcceptedPins>,
    offer: &ToolOffer,
    tools: impl IntoIterator<Item = &'a ListedDefinition>,
    by: Option<&Principal>,
    at: Moment,
) -> AcceptedPins {
    let mut pins = before.cloned().unwrap_or_default();
    for listed in tools {
        let definition = Some(listed.canonical.clone()).filter(|text| text.len() <= KEPT);
        let pin = Pin { digest: listed.digest.clone(), definition, by: by.cloned(), at };
        pins.tools.insert(listed.name.clone(), pin);
    }
    let over = pins.tools.len().saturating_sub(MOST);
    let is_listed = |name: &str| offer.tools.iter().any(|listed| listed.name == name);
    let mut gone: Vec<(Moment, String)> =
        pins.tools.iter().filter(|(name, _)| !is_listed(name)).map(|(name, pin)| (pin.at, name.clone())).collect();
    gone.sort();
    for (_, name) in gone.into_iter().take(over) {
        pins.tools.remove(&name);
    }
    pins
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::{Value, json};

    fn tool(name: &str, description: &str) -> Value {
        json!({ "name": name, "description": description, "inputSchema": { "type": "object" } })
    }

    fn offer(tools: &[(&str, &str)]) -> ToolOffer {
        ToolOffer::of(tools.iter().map(|(name, text)| tool(name, text)).collect())
    }

    fn states(offer: &ToolOffer, pins: &AcceptedPins) -> Vec<PinState> {
        offer.tools.iter().map(|listed| state(listed, Some(pins))).collect()
    }

    #[test]
    fn what_is_not_exactly_what_was_accepted_is_not_offered() {
        let first = offer(&[("a", "x"), ("b", "x"), ("c", "x")]);
        let pins = accepted(None, &first, &first.tools, None, Moment::from_secs(1));
        assert_eq!(states(&first, &pins), [PinState::Accepted; 3]);
        let then = offer(&[("a", "x"), ("b", "y"), ("d", "x")]);
        assert_eq!(states(&then, &pins), [PinState::Accepted, PinState::Changed, PinState::New]);
        let broken = ToolOffer::of(vec![json!({ "name": "a", "inputSchema": 7 })]);
        assert_eq!(states(&broken, &pins), [PinState::Refused]);
    }

    #[test]
    fn tp9_what_went_and_came_back_as_another_is_another() {
        let first = offer(&[("a", "x"), ("b", "x")]);
        let pins = accepted(None, &first, &first.tools, None, Moment::from_secs(1));
        let without = offer(&[("b", "x")]);
        let pins = accepted(Some(&pins), &without, &without.tools, None, Moment::from_secs(2));
        assert_eq!(states(&offer(&[("a", "evil"), ("b", "x")]), &pins), [PinState::Changed, PinState::Accepted]);
        assert_eq!(states(&first, &pins), [PinState::Accepted; 2]);
    }

    #[test]
    fn the_record_stays_within_its_bounds() {
        let mut pins = AcceptedPins::default();
        for round in 0..5 {
            let names: Vec<String> = (0..150).map(|n| format!("t{round}_{n}")).collect();
            let offer = offer(&names.iter().map(|name| (name.as_str(), "x")).collect::<Vec<_>>());
            pins = accepted(Some(&pins), &offer, &offer.tools, None, Moment::from_secs(round));
            assert_eq!(states(&offer, &pins), [PinState::Accepted; 150]);
        }
        assert_eq!(pins.tools.len(), MOST);
        assert!(!pins.tools.contains_key("t0_0") && pins.tools.contains_key("t3_0"), "the oldest go first");
        let large = "x".repeat(KEPT);
        let large = offer(&[("a", &large)]);
        let pins = accepted(None, &large, &large.tools, None, Moment::from_secs(1));
        assert_eq!(pins.tools["a"].definition, None, "the digest alone is enough to tell");
    }
}
