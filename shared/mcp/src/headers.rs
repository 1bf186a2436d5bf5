//! The headers the protocol gives a meaning to, and the base64 form their values may take.
//!
//! Headers are compared with the body and then forgotten: nothing is ever decided from one.

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use std::borrow::Cow;

/// All values of each protocol header, in order, blanks around them removed.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct ProtocolHeaders<'a> {
    /// `MCP-Protocol-Version`.
    pub version: Vec<&'a str>,
    /// `Mcp-Method`.
    pub method: Vec<&'a str>,
    /// `Mcp-Name`.
    pub name: Vec<&'a str>,
    /// `Mcp-Param-*`: the lower-case rest of the header's name, and the value.
    pub params: Vec<(String, &'a str)>,
}

/// Stands for a value that is not UTF-8: present, and equal to nothing a body may lawfully hold.
const UNREADABLE: &str = "\u{fffd}";

impl<'a> ProtocolHeaders<'a> {
    /// Picks the protocol's headers out of all headers of a request.
    pub fn read(all: impl IntoIterator<Item = (&'a str, &'a [u8])>) -> ProtocolHeaders<'a> {
        let mut headers = ProtocolHeaders::default();
        for (name, value) in all {
            let value = str::from_utf8(value).unwrap_or(UNREADABLE).trim_matches([' ', '\t']);
            if name.eq_ignore_ascii_case("mcp-protocol-version") {
                headers.version.push(value);
            } else if name.eq_ignore_ascii_case("mcp-method") {
                headers.method.push(value);
            } else if name.eq_ignore_ascii_case("mcp-name") {
                headers.name.push(value);
            } else if let Some(rest) = param(name) {
                headers.params.push((rest, value));
            }
        }
        headers
    }
}

fn param(name: &str) -> Option<String> {
    const PREFIX: &str = "mcp-param-";
    let (prefix, rest) = name.split_at_checked(PREFIX.len())?;
    prefix.eq_ignore_ascii_case(PREFIX).then(|| rest.to_ascii_lowercase())
}

/// The value a header stands for: `=?base64?…?=` decoded, anything else as it is. `None` if it is marked as base64
/// and is not canonical base64 of UTF-8.
pub(crate) fn plain(value: &str) -> Option<Cow<'_, str>> {
    match value.strip_prefix("=?base64?").and_then(|rest| rest.strip_suffix("?=")) {
        Some(coded) => String::from_utf8(STANDARD.decode(coded).ok()?).ok().map(Cow::Owned),
        None => Some(Cow::Borrowed(value)),
    }
}

/// The other way round: a value as it can stand in a header. Marked as base64 where it could not stand there as it is.
pub(crate) fn coded(value: &str) -> Cow<'_, str> {
    let stands = value.bytes().all(|byte| (b' '..=b'~').contains(&byte)) && value.trim_matches([' ', '\t']) == value;
    match stands && !value.starts_with("=?base64?") {
        true => Cow::Borrowed(value),
        false => Cow::Owned(format!("=?base64?{}?=", STANDARD.encode(value))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_read_without_case_and_values_without_the_blanks_around_them() {
        let all: [(&str, &[u8]); 6] = [
            ("MCP-PROTOCOL-VERSION", b" 2026-07-28\t"),
            ("mcp-method", b"tools/call"),
            ("Mcp-Name", b"  k8s_get  "),
            ("Mcp-Param-Region", b"eu"),
            ("Mcp-Name", b"\xff"),
            ("Accept", b"*/*"),
        ];

        let headers = ProtocolHeaders::read(all);

        assert_eq!(headers.version, ["2026-07-28"]);
        assert_eq!(headers.method, ["tools/call"]);
        assert_eq!(headers.name, ["k8s_get", UNREADABLE]);
        assert_eq!(headers.params, [("region".to_owned(), "eu")]);
    }

    #[test]
    fn a_coded_value_is_read_back_as_it_was() {
        for value in ["k8s_get", "", "two words", " blank", "\u{e4}\n", "=?base64?SGVsbG8=?=", "=?base64?"] {
            let coded = coded(value);
            assert!(coded.bytes().all(|byte| (b' '..=b'~').contains(&byte)), "{coded}");
            assert_eq!(plain(&coded).as_deref(), Some(value), "{coded}");
        }
    }

    #[test]
    fn only_a_value_between_both_markers_is_base64() {
        for (value, meant) in [
            ("=?base64?SGVsbG8=?=", Some("Hello")),
            ("=?base64??=", Some("")),
            ("SGVsbG8=", Some("SGVsbG8=")),
            ("=?base64?SGVsbG8=", Some("=?base64?SGVsbG8=")),
            ("=?BASE64?SGVsbG8=?=", Some("=?BASE64?SGVsbG8=?=")),
            ("=?base64?=", Some("=?base64?=")),
            ("=?base64?SGVsbG8?=", None),
            ("=?base64?SGVs!!!bG8=?=", None),
            ("=?base64?SGVsbG9=?=", None),
            ("=?base64?_-__?=", None),
            ("=?base64?/w==?=", None),
        ] {
            assert_eq!(plain(value).as_deref(), meant, "{value}");
        }
    }
}
