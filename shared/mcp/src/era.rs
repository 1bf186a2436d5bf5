//! The two eras of the protocol, and which of them a request belongs to.
//!
//! The era is decided once per request, from the request alone: neither the connection nor a session can
//! move it.

use crate::headers::ProtocolHeaders;

/// The one revision of the modern era.
pub const MODERN: &str = "2026-07-28";

/// A revision of the legacy era.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum LegacyRevision {
    /// The first with one endpoint for everything; also what a request without a version counts as.
    V2025_03_26,
    /// The one that added structured content.
    V2025_06_18,
    /// The last that opens with `initialize`.
    V2025_11_25,
}

impl LegacyRevision {
    /// Every legacy revision we serve, oldest first.
    pub const ALL: [LegacyRevision; 3] =
        [LegacyRevision::V2025_03_26, LegacyRevision::V2025_06_18, LegacyRevision::V2025_11_25];

    /// As it stands on the wire.
    pub const fn as_str(self) -> &'static str {
        match self {
            LegacyRevision::V2025_03_26 => "2025-03-26",
            LegacyRevision::V2025_06_18 => "2025-06-18",
            LegacyRevision::V2025_11_25 => "2025-11-25",
        }
    }

    /// The revision of that name, if we serve it.
    pub fn find(text: &str) -> Option<LegacyRevision> {
        LegacyRevision::ALL.into_iter().find(|revision| revision.as_str() == text)
    }

    /// What `initialize` answers: the asked revision where we serve it, else the newest legacy one.
    pub fn negotiate(requested: &str) -> LegacyRevision {
        LegacyRevision::find(requested).unwrap_or(LegacyRevision::V2025_11_25)
    }
}

/// Which rules a request is read and answered by.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Era {
    /// `initialize`, sessions, `GET` streams.
    Legacy(LegacyRevision),
    /// Each request carries its version and capabilities; no handshake.
    Modern,
}

impl Era {
    /// The revision's name, for logs and spans.
    pub const fn as_str(self) -> &'static str {
        match self {
            Era::Legacy(revision) => revision.as_str(),
            Era::Modern => MODERN,
        }
    }
}

/// The era of a message with an id. `version_in_meta` tells whether `_meta` names a protocol version at all.
pub(crate) fn of_request(headers: Option<&ProtocolHeaders<'_>>, version_in_meta: bool) -> Era {
    if version_in_meta {
        return Era::Modern;
    }
    match headers {
        // A version we do not serve, or two of them, goes to the modern ladder, which refuses it by name.
        Some(headers) => of_stream(headers).map_or(Era::Modern, Era::Legacy),
        None => Era::Legacy(LegacyRevision::V2025_03_26),
    }
}

/// The revision of a `GET` or `DELETE`. `None`: there is no such stream in that era, answer 405 with `Allow: POST`.
pub fn of_stream(headers: &ProtocolHeaders<'_>) -> Option<LegacyRevision> {
    match headers.version.as_slice() {
        [] => Some(LegacyRevision::V2025_03_26),
        [version] => LegacyRevision::find(version),
        [_, _, ..] => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_stream_exists_only_in_the_legacy_era() {
        let with = |version: &[&'static str]| {
            of_stream(&ProtocolHeaders { version: version.to_vec(), ..ProtocolHeaders::default() })
        };
        assert_eq!(with(&[]), Some(LegacyRevision::V2025_03_26));
        assert_eq!(with(&["2025-06-18"]), Some(LegacyRevision::V2025_06_18));
        for other in [&["2026-07-28"] as &[_], &["2024-11-05"], &[""], &["2025-06-18", "2025-06-18"]] {
            assert_eq!(with(other), None, "{other:?}");
        }
    }

    #[test]
    fn an_asked_revision_is_kept_and_an_unknown_one_becomes_the_newest_legacy_one() {
        for revision in LegacyRevision::ALL {
            assert_eq!(LegacyRevision::negotiate(revision.as_str()), revision);
        }
        for unknown in ["2024-11-05", "2026-07-28", "", "latest"] {
            assert_eq!(LegacyRevision::negotiate(unknown), LegacyRevision::V2025_11_25);
        }
    }
}
