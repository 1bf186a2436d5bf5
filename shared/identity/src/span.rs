//! Spans of time as people write them in settings: a whole number and one of `ms`, `s`, `m`, `h`, `d`.

use serde::de::{Deserialize, Deserializer, Error};
use std::time::Duration;

pub(crate) fn deserialize<'de, D: Deserializer<'de>>(from: D) -> Result<Duration, D::Error> {
    let text = String::deserialize(from)?;
    parse(&text).ok_or_else(|| D::Error::custom("a span of time is a whole number and ms, s, m, h or d, such as 60s"))
}

fn parse(text: &str) -> Option<Duration> {
    let (digits, unit) = text.split_at(text.find(|c: char| !c.is_ascii_digit())?);
    let count: u64 = digits.parse().ok()?;
    let millis: u64 = match unit {
        "ms" => 1,
        "s" => 1000,
        "m" => 60 * 1000,
        "h" => 60 * 60 * 1000,
        "d" => 24 * 60 * 60 * 1000,
        _ => return None,
    };
    count.checked_mul(millis).map(Duration::from_millis)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_unit_is_read() {
        for (text, millis) in [("5ms", 5), ("60s", 60_000), ("2m", 120_000), ("24h", 86_400_000), ("1d", 86_400_000)] {
            assert_eq!(parse(text), Some(Duration::from_millis(millis)), "{text}");
        }
    }

    #[test]
    fn what_is_no_span_is_refused() {
        for text in ["", "60", "s", "1.5s", "-1s", "+1s", " 1s", "1 s", "1s ", "1S", "1w", "99999999999999999999s"] {
            assert_eq!(parse(text), None, "{text}");
        }
        assert_eq!(parse("18446744073709551615d"), None);
    }
}
