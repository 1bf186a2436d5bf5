//! What is laid down about an external server: how much may be asked of it, and whose word on its tools counts.
//!
//! Said by whoever configures servers, held to by whoever calls them; here, because neither knows the other.

use crate::Pattern;
use domain::Effect;
use std::ops::RangeInclusive;
use std::time::Duration;

/// How much may be asked of a server, per tenant.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ServerLimits {
    /// How long one call may take.
    pub deadline: Duration,
    /// Calls under way at the same time.
    pub in_flight: u32,
    /// Calls that wait for one of those to end.
    pub waiting: u32,
    /// The largest arguments.
    pub argument_bytes: usize,
    /// The largest result, unpacked.
    pub result_bytes: usize,
    /// How long a list of its tools is taken for current.
    pub refresh: Duration,
}

impl ServerLimits {
    /// What [`ServerLimits::deadline`] may be.
    pub const DEADLINE: RangeInclusive<Duration> = Duration::from_secs(1)..=Duration::from_secs(600);
    /// What [`ServerLimits::in_flight`] may be.
    pub const IN_FLIGHT: RangeInclusive<u32> = 1..=256;
    /// What [`ServerLimits::waiting`] may be; with zero, nobody waits.
    pub const WAITING: RangeInclusive<u32> = 0..=1_024;
    /// What [`ServerLimits::argument_bytes`] may be.
    pub const ARGUMENT_BYTES: RangeInclusive<u32> = 1_024..=1_048_576;
    /// What [`ServerLimits::result_bytes`] may be.
    pub const RESULT_BYTES: RangeInclusive<u32> = 4_096..=67_108_864;
    /// What [`ServerLimits::refresh`] may be.
    pub const REFRESH: RangeInclusive<Duration> = Duration::from_secs(10)..=Duration::from_secs(86_400);
}

impl Default for ServerLimits {
    fn default() -> ServerLimits {
        ServerLimits {
            deadline: Duration::from_secs(10),
            in_flight: 8,
            waiting: 32,
            argument_bytes: 64 * 1024,
            result_bytes: 8 * 1024 * 1024,
            refresh: Duration::from_secs(10 * 60),
        }
    }
}

/// What the operator vouches for. Without it every tool of the server counts as one that changes something.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct TrustedEffects {
    /// Whether the server's own word on what its tools do is taken.
    pub annotations: bool,
    /// What tools do, by the server's own names for them; the first that matches counts.
    pub effects: Vec<(Pattern, Effect)>,
}

impl TrustedEffects {
    /// What the operator says a tool does, by the server's own name for it.
    pub fn effect(&self, tool: &str) -> Option<Effect> {
        // What is said about some calls only is said about none: arguments of others' tools are not looked into.
        let named = |(pattern, _): &&(Pattern, Effect)| pattern.is_whole() && pattern.tool_matches(tool);
        self.effects.iter().find(named).map(|(_, effect)| *effect)
    }
}

/// What is done with the tools of a server's first list.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Accept {
    /// They are taken as they are; every later change waits for an admin.
    #[default]
    First,
    /// Each waits for an admin.
    Each,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_word_on_a_whole_tool_counts_and_a_word_on_some_of_its_calls_does_not() {
        let said = |text: &str, effect| (Pattern::parse(text).unwrap(), effect);
        let trusted = TrustedEffects {
            annotations: false,
            effects: vec![
                said("get:secrets", Effect::Change),
                said("get", Effect::Read),
                said("get*", Effect::Disrupt),
                said("put:x", Effect::Read),
            ],
        };
        assert_eq!(trusted.effect("get"), Some(Effect::Read));
        assert_eq!(trusted.effect("get_all"), Some(Effect::Disrupt));
        assert_eq!(trusted.effect("put"), None, "what only some calls do vouches for no call");
        assert_eq!(trusted.effect("other"), None);
    }
}
