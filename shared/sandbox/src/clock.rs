//! The cluster's own time: the wall clock, or a story's time while the seed is being told.

use std::time::Duration;

use jiff::{SignedDuration, Timestamp};

/// What time it is in the cluster.
#[derive(Debug, Clone, Copy)]
pub(crate) enum SandboxClock {
    Wall,
    /// Stands still until it is moved.
    Story(Timestamp),
}

impl SandboxClock {
    pub(crate) fn now(&self) -> Timestamp {
        match self {
            SandboxClock::Wall => Timestamp::now(),
            SandboxClock::Story(at) => *at,
        }
    }
}

/// A moment as the API writes it, to the second.
pub(crate) fn stamp(at: Timestamp) -> String {
    at.strftime("%Y-%m-%dT%H:%M:%SZ").to_string()
}

/// A moment as leases, events and log lines carry it.
pub(crate) fn fine_stamp(at: Timestamp) -> String {
    at.strftime("%Y-%m-%dT%H:%M:%S.%6fZ").to_string()
}

/// Reads either form.
pub(crate) fn read(text: &str) -> Option<Timestamp> {
    text.parse().ok()
}

/// How long ago something was, never negative.
pub(crate) fn since(then: Timestamp, now: Timestamp) -> Duration {
    Duration::try_from(now.duration_since(then)).unwrap_or_default()
}

/// A span as Argo writes it: seconds, or a number with its unit.
pub(crate) fn span(text: &str) -> Option<Duration> {
    let (number, unit) = text.split_at(text.find(|c: char| !c.is_ascii_digit()).unwrap_or(text.len()));
    let each = match unit {
        "" | "s" => 1,
        "m" => 60,
        "h" => 3_600,
        _ => return None,
    };
    number.parse::<u64>().ok().map(|number| Duration::from_secs(number.saturating_mul(each)))
}

/// A moment some time later.
pub(crate) fn after(then: Timestamp, by: Duration) -> Timestamp {
    SignedDuration::try_from(by).ok().and_then(|by| then.checked_add(by).ok()).unwrap_or(then)
}

/// A moment some time earlier.
pub(crate) fn before(then: Timestamp, by: Duration) -> Timestamp {
    SignedDuration::try_from(by).ok().and_then(|by| then.checked_sub(by).ok()).unwrap_or(then)
}
