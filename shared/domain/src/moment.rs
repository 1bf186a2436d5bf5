//! A moment: milliseconds since 1970, as the store's clock told them.

use std::fmt;
use std::time::Duration;

/// One instant. Arithmetic saturates: a moment out of range is the last one there is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, serde::Serialize, serde::Deserialize)]
#[serde(transparent)]
pub struct Moment(u64);

impl Moment {
    /// From milliseconds since 1970.
    pub const fn from_millis(millis: u64) -> Moment {
        Moment(millis)
    }

    /// From whole seconds since 1970, as tokens carry them.
    pub const fn from_secs(secs: u64) -> Moment {
        Moment(secs.saturating_mul(1000))
    }

    /// From RFC 3339 text, as clusters write their times. Before 1970 there is nothing.
    pub fn parse(text: &str) -> Option<Moment> {
        let stamp: jiff::Timestamp = text.parse().ok()?;
        u64::try_from(stamp.as_millisecond()).ok().map(Moment)
    }

    /// Milliseconds since 1970.
    pub const fn millis(self) -> u64 {
        self.0
    }

    /// The moment that much later.
    pub fn plus(self, span: Duration) -> Moment {
        Moment(self.0.saturating_add(u64::try_from(span.as_millis()).unwrap_or(u64::MAX)))
    }

    /// How long from `earlier` to this one; nothing if it is not later.
    pub fn since(self, earlier: Moment) -> Duration {
        Duration::from_millis(self.0.saturating_sub(earlier.0))
    }

    /// RFC 3339 in UTC, to the millisecond: for what must tell two moments of one second apart.
    pub fn exact(self) -> String {
        let text = self.to_string();
        format!("{}.{:03}Z", text.trim_end_matches('Z'), self.0 % 1000)
    }
}

/// RFC 3339 in UTC, to the second, as people and clients read it.
impl fmt::Display for Moment {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let secs = i64::try_from(self.0 / 1000).unwrap_or(i64::MAX);
        let stamp = jiff::Timestamp::from_second(secs).unwrap_or(jiff::Timestamp::MAX);
        fmt::Display::fmt(&stamp, f)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_moment_reads_like_a_date() {
        assert_eq!(Moment::from_secs(1_763_280_000).to_string(), "2025-11-16T08:00:00Z");
        assert_eq!(Moment::from_millis(999).to_string(), "1970-01-01T00:00:00Z");
        assert!(!Moment::from_millis(u64::MAX).to_string().is_empty());
        let exact = Moment::from_millis(1_763_280_000_042);
        assert_eq!(exact.exact(), "2025-11-16T08:00:00.042Z");
        assert_eq!(Moment::parse(&exact.exact()), Some(exact));
    }

    #[test]
    fn a_date_is_read_back() {
        assert_eq!(Moment::parse("2025-11-16T08:00:00Z"), Some(Moment::from_secs(1_763_280_000)));
        assert_eq!(Moment::parse("2025-11-16T10:00:00.250+02:00"), Some(Moment::from_millis(1_763_280_000_250)));
        for bad in ["", "yesterday", "2025-11-16", "1969-12-31T23:59:59Z"] {
            assert_eq!(Moment::parse(bad), None, "{bad}");
        }
    }
}
