//! Ages and quantities, as Kubernetes writes them and as people read them.

use domain::Moment;
use serde_json::Value;

/// How long ago something was, in its largest unit or two: `45s`, `12m`, `3h`, `5d`, `2y`.
pub(crate) fn age(then: &Value, now: Moment) -> Option<String> {
    Some(span(now.since(Moment::parse(then.as_str()?)?).as_secs()))
}

/// A span of seconds, short.
pub(crate) fn span(secs: u64) -> String {
    const MINUTE: u64 = 60;
    const HOUR: u64 = 60 * MINUTE;
    const DAY: u64 = 24 * HOUR;
    const YEAR: u64 = 365 * DAY;
    let two = |n: u64, unit: &str, rest: u64, small: &str| match rest {
        0 => format!("{n}{unit}"),
        rest => format!("{n}{unit}{rest}{small}"),
    };
    match secs {
        s if s < 2 * MINUTE => format!("{s}s"),
        s if s < 10 * MINUTE => two(s / MINUTE, "m", s % MINUTE, "s"),
        s if s < 3 * HOUR => format!("{}m", s / MINUTE),
        s if s < 8 * HOUR => two(s / HOUR, "h", s % HOUR / MINUTE, "m"),
        s if s < 2 * DAY => format!("{}h", s / HOUR),
        s if s < 8 * DAY => two(s / DAY, "d", s % DAY / HOUR, "h"),
        s if s < 2 * YEAR => format!("{}d", s / DAY),
        s => two(s / YEAR, "y", s % YEAR / DAY, "d"),
    }
}

/// A CPU quantity in thousandths of a core: `250m`, `1.5`, `100000n`.
pub(crate) fn cpu_milli(text: &str) -> Option<u64> {
    whole(number(text)? * 1_000.0)
}

/// A memory quantity in mebibytes: `128974848`, `129M`, `123Mi`.
pub(crate) fn memory_mi(text: &str) -> Option<u64> {
    whole(number(text)? / (1024.0 * 1024.0))
}

fn whole(number: f64) -> Option<u64> {
    // Half up, so that a few kibibytes are not nothing and 999.6m is a core.
    let rounded = number.round();
    #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "finite, not negative, below 2^53")]
    (0.0..9.0e15).contains(&rounded).then_some(rounded as u64)
}

/// A Kubernetes quantity as a number.
fn number(text: &str) -> Option<f64> {
    const SUFFIXES: [(&str, f64); 14] = [
        ("Ki", 1024.0),
        ("Mi", 1024.0 * 1024.0),
        ("Gi", 1024.0 * 1024.0 * 1024.0),
        ("Ti", 1024.0 * 1024.0 * 1024.0 * 1024.0),
        ("Pi", 1024.0 * 1024.0 * 1024.0 * 1024.0 * 1024.0),
        ("Ei", 1024.0 * 1024.0 * 1024.0 * 1024.0 * 1024.0 * 1024.0),
        ("n", 1e-9),
        ("u", 1e-6),
        ("m", 1e-3),
        ("k", 1e3),
        ("M", 1e6),
        ("G", 1e9),
        ("T", 1e12),
        ("P", 1e15),
    ];
    let (digits, factor) = SUFFIXES
        .iter()
        .find_map(|(suffix, factor)| text.strip_suffix(suffix).map(|digits| (digits, *factor)))
        .unwrap_or((text, 1.0));
    let fits = !digits.is_empty()
        && digits.bytes().all(|b| b.is_ascii_digit() || matches!(b, b'.' | b'e' | b'E' | b'+' | b'-'));
    digits.parse::<f64>().ok().filter(|n| fits && n.is_finite()).map(|n| n * factor)
}

/// How much of a whole, in percent.
pub(crate) fn percent(part: u64, whole: u64) -> Option<u64> {
    (part.saturating_mul(100) + whole / 2).checked_div(whole)
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn ages_read_like_those_of_kubectl() {
        let now = Moment::from_secs(1_763_280_000);
        assert_eq!(age(&json!("2025-11-16T07:59:15Z"), now).as_deref(), Some("45s"));
        assert_eq!(age(&json!("2025-11-16T09:00:00Z"), now).as_deref(), Some("0s"), "a clock ahead of ours is now");
        assert_eq!(age(&json!(null), now), None);
        for (secs, text) in [
            (119, "119s"),
            (120, "2m"),
            (185, "3m5s"),
            (3_600, "60m"),
            (4 * 3_600 + 120, "4h2m"),
            (30 * 3_600, "30h"),
            (3 * 86_400 + 7_200, "3d2h"),
            (400 * 86_400, "400d"),
            (800 * 86_400, "2y70d"),
        ] {
            assert_eq!(span(secs), text);
        }
    }

    #[test]
    fn quantities_are_numbers() {
        for (text, milli) in
            [("250m", 250), ("1", 1_000), ("1.5", 1_500), ("100000000n", 100), ("0", 0), ("2k", 2_000_000)]
        {
            assert_eq!(cpu_milli(text), Some(milli), "{text}");
        }
        for (text, mi) in
            [("128Mi", 128), ("1Gi", 1024), ("134217728", 128), ("512Ki", 1), ("1G", 954), ("1e3Mi", 1000)]
        {
            assert_eq!(memory_mi(text), Some(mi), "{text}");
        }
        for bad in ["", "m", "x", "1x", "NaN", "inf", "-5"] {
            assert_eq!(cpu_milli(bad), None, "{bad}");
        }
        assert_eq!(percent(1, 3), Some(33));
        assert_eq!(percent(1, 0), None);
    }
}
