//! Which trace and which span a piece of work is, in the words of W3C Trace Context.

use std::cell::Cell;
use std::hash::{BuildHasher, RandomState};
use std::sync::Arc;

/// The longest `tracestate` that is taken over.
const MOST_STATE_BYTES: usize = 512;
/// The longest `traceparent` that is looked at: today's form has 55 characters, a later one may have more.
const MOST_PARENT_BYTES: usize = 256;

/// A span of a trace, and whether the trace is kept.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct TraceContext {
    pub(crate) trace: u128,
    pub(crate) span: u64,
    pub(crate) sampled: bool,
    /// What tracing systems of others noted, to be passed on as it came.
    pub(crate) state: Option<Arc<str>>,
}

impl TraceContext {
    /// The first span of a new trace.
    pub(crate) fn root(is_sampled: impl FnOnce(u128) -> bool) -> TraceContext {
        let trace = u128::from(random_id()) << 64 | u128::from(random_id());
        TraceContext { trace, span: random_id(), sampled: is_sampled(trace), state: None }
    }

    /// A new span below this one.
    pub(crate) fn child(&self) -> TraceContext {
        TraceContext { span: random_id(), ..self.clone() }
    }

    /// Reads headers. What is malformed or too long is no context; only a bad `tracestate` leaves the rest standing.
    pub(crate) fn parse(traceparent: &str, tracestate: Option<&str>) -> Option<TraceContext> {
        if traceparent.len() > MOST_PARENT_BYTES || tracestate.is_some_and(|state| state.len() > MOST_STATE_BYTES) {
            return None;
        }
        let mut parts = traceparent.split('-');
        let (version, trace, span, flags) = (parts.next()?, parts.next()?, parts.next()?, parts.next()?);
        let known = match version {
            "00" => parts.next().is_none(),
            "ff" => false,
            // A later version may say more behind what is known today.
            later => is_hex(later, 2),
        };
        if !known || !is_hex(trace, 32) || !is_hex(span, 16) || !is_hex(flags, 2) {
            return None;
        }
        let (trace, span) = (u128::from_str_radix(trace, 16).ok()?, u64::from_str_radix(span, 16).ok()?);
        let sampled = u8::from_str_radix(flags, 16).ok()? & 1 == 1;
        let state = tracestate.filter(|state| is_state(state)).map(Arc::from);
        (trace != 0 && span != 0).then_some(TraceContext { trace, span, sampled, state })
    }

    /// The header that continues the trace.
    pub(crate) fn traceparent(&self) -> String {
        format!("00-{:032x}-{:016x}-{:02x}", self.trace, self.span, u8::from(self.sampled))
    }
}

fn is_hex(text: &str, digits: usize) -> bool {
    text.len() == digits && text.bytes().all(|byte| byte.is_ascii_digit() || (b'a'..=b'f').contains(&byte))
}

/// Whether this is a list of `key=value`, in letters that a header may hold.
fn is_state(state: &str) -> bool {
    let key = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || b"_-*/@".contains(&byte);
    let member = |member: &str| match member.trim().split_once('=') {
        Some((name, value)) => {
            !name.is_empty() && name.bytes().all(key) && value.bytes().all(|byte| matches!(byte, b' '..=b'~'))
        }
        None => member.trim().is_empty(),
    };
    !state.is_empty() && state.split(',').all(member)
}

/// A number that no other span has, never zero. It is no secret, so a generator that begins at random will do.
fn random_id() -> u64 {
    thread_local! {
        static STATE: Cell<u64> = Cell::new(RandomState::new().hash_one(0));
    }
    STATE.with(|state| {
        // SplitMix64.
        state.set(state.get().wrapping_add(0x9e37_79b9_7f4a_7c15));
        let mixed = state.get();
        let mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        (mixed ^ (mixed >> 31)).max(1)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    const PARENT: &str = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01";

    #[test]
    fn what_is_read_is_written_alike() {
        for parent in [PARENT, &PARENT.replace("-01", "-00")] {
            assert_eq!(TraceContext::parse(parent, None).unwrap().traceparent(), parent);
        }
        let later = TraceContext::parse(&format!("{}-more", PARENT.replacen("00", "01", 1)), None).unwrap();
        assert_eq!(later.traceparent(), PARENT, "what a later version adds is left out");
    }

    #[test]
    fn a_malformed_or_oversized_context_is_none() {
        let long = format!("{PARENT}-{}", "x".repeat(300));
        for bad in [
            "",
            "nonsense",
            "00-00000000000000000000000000000000-00f067aa0ba902b7-01",
            "00-4bf92f3577b34da6a3ce929d0e0e4736-0000000000000000-01",
            "ff-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01",
            "00-4BF92F3577B34DA6A3CE929D0E0E4736-00f067aa0ba902b7-01",
            "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01-more",
            "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01\r\nx: y",
            "00-+bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01",
            &long,
        ] {
            assert_eq!(TraceContext::parse(bad, None), None, "{bad}");
        }
        assert_eq!(TraceContext::parse(PARENT, Some(&"x".repeat(513))), None);
    }

    #[test]
    fn a_state_that_no_header_may_hold_is_left_out() {
        let state = |state| TraceContext::parse(PARENT, Some(state)).unwrap().state;
        assert_eq!(state("vendor=1,other@a=b c").as_deref(), Some("vendor=1,other@a=b c"));
        for bad in ["", "no value", "a=1\r\nx: y", "Key=1", "a=ä"] {
            assert_eq!(state(bad), None, "{bad:?}");
        }
    }

    #[test]
    fn ids_differ() {
        let ids: std::collections::HashSet<u64> = (0..10_000).map(|_| random_id()).collect();
        assert_eq!(ids.len(), 10_000);
        let elsewhere = std::thread::spawn(random_id).join().unwrap();
        assert!(!ids.contains(&elsewhere));
    }
}
