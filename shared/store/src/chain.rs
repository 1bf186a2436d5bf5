//! The chain over an audit log: each entry's link is a digest of the link before it, the entry's place and its bytes.
//!
//! Pure. Whoever has the tenant's name and the entries can compute every link again, here or with any SHA-256 tool:
//! `link n = SHA-256(link n-1 ‖ milliseconds ‖ number ‖ body)`, both halves of the place as eight bytes, highest first,
//! and `link 0 = SHA-256("quartermaster ledger 1" ‖ 0 ‖ tenant)`.
//!
//! Not here: when links are made (see [`TenantStore::seal`](crate::TenantStore::seal)) and how a broken chain is told (see
//! [`Walker`](crate::Walker)). A chain is no signature: whoever can write everything can also link everything anew.

use crate::StreamId;
use domain::{Tenant, json};
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};

/// What the first link of every audit log begins with; another way to link would begin otherwise.
const ORIGIN: &[u8] = b"quartermaster ledger 1\0";
/// How a link is written.
const SCHEME: &str = "sha256:";

/// The link of one entry. The newest one of an audit log is its seal.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(into = "StoredLink", try_from = "StoredLink")]
pub struct ChainLink {
    /// Which entry of the audit log it is, counted from 1.
    pub seq: u64,
    /// The entry's place.
    pub entry: StreamId,
    /// The digest that holds it and everything before it.
    pub link: [u8; 32],
}

/// The text is not a link.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("a link names its place as `milliseconds-number` and its digest as `sha256:` with 64 hex digits")]
pub struct NotALink;

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct StoredLink {
    seq: u64,
    entry: String,
    link: String,
}

impl From<ChainLink> for StoredLink {
    fn from(link: ChainLink) -> StoredLink {
        StoredLink { seq: link.seq, entry: link.entry.to_string(), link: format!("{SCHEME}{}", json::hex(&link.link)) }
    }
}

impl TryFrom<StoredLink> for ChainLink {
    type Error = NotALink;

    fn try_from(shape: StoredLink) -> Result<ChainLink, NotALink> {
        let entry = StreamId::parse(&shape.entry).ok_or(NotALink)?;
        let link = shape.link.strip_prefix(SCHEME).and_then(unhex).ok_or(NotALink)?;
        Ok(ChainLink { seq: shape.seq, entry, link })
    }
}

fn unhex(text: &str) -> Option<[u8; 32]> {
    let digits: Vec<u8> = text.bytes().map(digit).collect::<Option<_>>()?;
    let bytes: Vec<u8> = digits.chunks_exact(2).map(|pair| pair[0] << 4 | pair[1]).collect();
    if digits.len() == 64 { bytes.try_into().ok() } else { None }
}

/// Lower case only, so that a digest has one spelling.
fn digit(byte: u8) -> Option<u8> {
    match byte {
        b'0'..=b'9' => Some(byte - b'0'),
        b'a'..=b'f' => Some(byte - b'a' + 10),
        _ => None,
    }
}

/// A chain up to some entry.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Chain {
    seq: u64,
    tip: [u8; 32],
}

impl Chain {
    /// The chain of an audit log that holds nothing yet.
    pub fn of(tenant: &Tenant) -> Chain {
        let mut hash = Sha256::new();
        hash.update(ORIGIN);
        hash.update(tenant.as_str());
        Chain { seq: 0, tip: hash.finalize().into() }
    }

    /// The chain that goes on behind this link.
    pub fn behind(link: &ChainLink) -> Chain {
        Chain { seq: link.seq, tip: link.link }
    }

    /// How many entries it holds.
    pub fn len(&self) -> u64 {
        self.seq
    }

    /// Whether it holds none.
    pub fn is_empty(&self) -> bool {
        self.seq == 0
    }

    /// The link that an entry would have as the next one.
    pub fn link(&self, entry: StreamId, body: &[u8]) -> ChainLink {
        let mut hash = Sha256::new();
        hash.update(self.tip);
        // Fixed widths in front, so that no two pairs of place and body read alike.
        hash.update(entry.at.millis().to_be_bytes());
        hash.update(entry.seq.to_be_bytes());
        hash.update(body);
        ChainLink { seq: self.seq.saturating_add(1), entry, link: hash.finalize().into() }
    }

    /// Takes an entry in as the next one.
    pub fn add(&mut self, entry: StreamId, body: &[u8]) -> ChainLink {
        let link = self.link(entry, body);
        *self = Chain::behind(&link);
        link
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use domain::Moment;

    fn chain(slug: &str) -> Chain {
        Chain::of(&Tenant::parse(slug).unwrap())
    }

    fn place(at: u64, seq: u64) -> StreamId {
        StreamId { at: Moment::from_millis(at), seq }
    }

    #[test]
    fn a_link_can_be_computed_with_any_sha256() {
        let origin = Sha256::digest(b"quartermaster ledger 1\0acme");
        let first = Sha256::digest([&origin[..], &[0, 0, 0, 0, 0, 0, 1, 2], &[0, 0, 0, 0, 0, 0, 0, 3], b"{}"].concat());
        assert_eq!(chain("acme").add(place(0x102, 3), b"{}").link[..], first[..]);
    }

    #[test]
    fn links_stay_what_they_were_in_earlier_releases() {
        let mut chain = chain("acme");
        chain.add(place(1_763_280_000_000, 0), br#"{"v":1}"#);
        let second = chain.add(place(1_763_280_000_000, 1), br#"{"v":1}"#);
        let digest = "66ec724583ccfdb791b5972a2034f3b026cdfee1f6b22bbd361f692187df80be";
        let recorded = format!(r#"{{"seq":2,"entry":"1763280000000-1","link":"sha256:{digest}"}}"#);
        assert_eq!(serde_json::to_string(&second).unwrap(), recorded);
    }

    #[test]
    fn every_part_of_what_was_before_moves_the_link() {
        let link = |slug: &str, entries: &[(u64, u64, &str)]| {
            let mut chain = chain(slug);
            entries.iter().map(|(at, seq, body)| chain.add(place(*at, *seq), body.as_bytes())).last().unwrap().link
        };
        let held = link("acme", &[(1, 0, "a"), (1, 1, "b")]);
        for other in [
            link("acme2", &[(1, 0, "a"), (1, 1, "b")]),
            link("acme", &[(1, 1, "b"), (1, 0, "a")]),
            link("acme", &[(1, 0, "b"), (1, 1, "a")]),
            link("acme", &[(1, 0, "a"), (1, 2, "b")]),
            link("acme", &[(1, 0, "a"), (2, 1, "b")]),
            link("acme", &[(1, 0, "a"), (1, 1, "b ")]),
            link("acme", &[(1, 1, "b")]),
            link("acme", &[(1, 0, "a"), (1, 0, "a"), (1, 1, "b")]),
        ] {
            assert_ne!(held, other);
        }
    }

    #[test]
    fn a_chain_goes_on_where_a_link_left_it() {
        let mut whole = chain("acme");
        let first = whole.add(place(1, 0), b"a");
        assert_eq!(Chain::behind(&first).add(place(2, 0), b"b"), whole.add(place(2, 0), b"b"));
        assert_eq!((whole.len(), whole.is_empty(), chain("acme").is_empty()), (2, false, true));
    }

    #[test]
    fn a_link_reads_back_as_itself_and_nothing_else_reads_as_one() {
        let link = chain("acme").add(place(5, 6), b"x");
        let text = serde_json::to_string(&link).unwrap();
        assert_eq!(serde_json::from_str::<ChainLink>(&text).unwrap(), link);
        let hex = "0".repeat(64);
        for (entry, digest) in [
            ("5", format!("sha256:{hex}")),
            ("5-6", hex.clone()),
            ("5-6", format!("sha256:{}", &hex[1..])),
            ("5-6", format!("sha256:{hex}0")),
            ("5-6", format!("sha256:{}A", &hex[1..])),
            ("5-6", format!("sha256:{}é", &hex[2..])),
        ] {
            let bad = serde_json::json!({ "seq": 1, "entry": entry, "link": digest });
            assert!(serde_json::from_value::<ChainLink>(bad.clone()).is_err(), "{bad}");
        }
        assert!(serde_json::from_str::<ChainLink>(&text.replace('{', r#"{"more":1,"#)).is_err());
    }
}
