//! Spans of time as people write them in settings: a whole number and one unit, such as `250ms` or `30d`.

use serde::{Deserialize, Deserializer, de::Error};
use std::time::Duration;

/// Reads a span for serde.
pub fn deserialize<'de, D: Deserializer<'de>>(from: D) -> Result<Duration, D::Error> {
    let text = String::deserialize(from)?;
    parse(&text).ok_or_else(|| D::Error::custom("a span is a whole number and one of ms, s, m, h, d, such as \"1s\""))
}

fn parse(text: &str) -> Option<Duration> {
    let digits = text.bytes().take_while(u8::is_ascii_digit).count();
    let (number, unit) = text.split_at(digits);
    let number: u64 = number.parse().ok()?;
    let millis = match unit {
        "ms" => 1,
        "s" => 1_000,
        "m" => 60_000,
        "h" => 3_600_000,
        "d" => 86_400_000,
        _ => return None,
    };
    Some(Duration::from_millis(number.checked_mul(millis)?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_unit_is_understood() {
        for (text, millis) in
            [("250ms", 250), ("1s", 1_000), ("2m", 120_000), ("3h", 10_800_000), ("30d", 2_592_000_000)]
        {
            assert_eq!(parse(text), Some(Duration::from_millis(millis)), "{text}");
        }
    }

    #[test]
    fn what_is_no_span_is_refused() {
        for text in ["", "1", "s", "-1s", "1.5s", "1 s", "1S", "1w", "99999999999999999999s", "18446744073709551615d"] {
            assert_eq!(parse(text), None, "{text}");
        }
    }
}
