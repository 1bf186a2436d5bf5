//! The chain over an audit log: each entry's link is a digest of the link before it, the place of its item and its bytes.
//!
//! Pure. Whoever has the tenant's name and the entries can compute every link again, here or with any SHA-256 tool:
//! `link n = SHA-256(link n-1 ‖ milliseconds ‖ number ‖ entry)`, both halves of the item's place as eight bytes, highest
//! first, and `link 0 = SHA-256("quartermaster ledger 1" ‖ 0 ‖ tenant)`. The number of an entry within its item is not
//! hashed: items stand in order and no two at one place, so the order of the links implies it.
//!
//! Only the last link of a batch is kept whole. Of those before it their first bytes are kept, by which the first bad
//! entry is found; that nothing in the batch was changed, the whole one proves.
//!
//! Not here: when links are made (see [`TenantStore::seal`](crate::TenantStore::seal)) and how a broken chain is told (see
//! [`Walker`](crate::Walker)). A chain is no signature: whoever can write everything can also link everything anew.

use crate::{EntryPlace, StreamId};
use domain::{Tenant, json};
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};

/// What the first link of every audit log begins with; another way to link would begin otherwise.
const ORIGIN: &[u8] = b"quartermaster ledger 1\0";
/// How a link is written.
const SCHEME: &str = "sha256:";

/// How many bytes are kept of a link that is not the last one of its batch.
const SHORT: usize = 8;

/// The link of one entry, whole. The newest one of an audit log is its seal.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(into = "StoredLink", try_from = "StoredLink")]
pub struct ChainLink {
    /// Which entry of the audit log it is, counted from 1.
    pub seq: u64,
    /// The entry's place.
    pub entry: EntryPlace,
    /// The digest that holds it and everything before it.
    pub link: [u8; 32],
}

/// The text is not a link.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error(
    "a link names its place as `milliseconds-number` and its digest as `sha256:` with 64 hex digits, or 16 of them"
)]
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
        let EntryLink { seq, entry, kept } = EntryLink::try_from(shape)?;
        match kept {
            KeptLink::Whole(link) => Ok(ChainLink { seq, entry, link }),
            KeptLink::Short(_) => Err(NotALink),
        }
    }
}

/// As much of a link as is kept.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum KeptLink {
    /// All of it.
    Whole([u8; 32]),
    /// Its first bytes.
    Short([u8; SHORT]),
}

impl KeptLink {
    /// Whether a link is this one, as far as it was kept.
    pub(crate) fn fits(&self, link: &[u8; 32]) -> bool {
        link.starts_with(self.bytes())
    }

    fn bytes(&self) -> &[u8] {
        match self {
            KeptLink::Whole(bytes) => bytes,
            KeptLink::Short(bytes) => bytes,
        }
    }
}

/// The link of one entry, as far as it was kept.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(into = "StoredLink", try_from = "StoredLink")]
pub struct EntryLink {
    /// Which entry of the audit log it is, counted from 1.
    pub seq: u64,
    /// The entry's place.
    pub entry: EntryPlace,
    /// What was kept of the digest.
    pub kept: KeptLink,
}

impl EntryLink {
    /// Whether this is the link of that entry, as far as it was kept.
    pub fn fits(&self, whole: &ChainLink) -> bool {
        self.seq == whole.seq && self.entry == whole.entry && self.kept.fits(&whole.link)
    }
}

impl From<ChainLink> for EntryLink {
    fn from(ChainLink { seq, entry, link }: ChainLink) -> EntryLink {
        EntryLink { seq, entry, kept: KeptLink::Whole(link) }
    }
}

impl From<EntryLink> for StoredLink {
    fn from(EntryLink { seq, entry, kept }: EntryLink) -> StoredLink {
        StoredLink { seq, entry: entry.to_string(), link: format!("{SCHEME}{}", json::hex(kept.bytes())) }
    }
}

impl TryFrom<StoredLink> for EntryLink {
    type Error = NotALink;

    fn try_from(shape: StoredLink) -> Result<EntryLink, NotALink> {
        let entry = EntryPlace::parse(&shape.entry).ok_or(NotALink)?;
        let digest = shape.link.strip_prefix(SCHEME).and_then(unhex).ok_or(NotALink)?;
        let whole = <[u8; 32]>::try_from(digest.as_slice()).map(KeptLink::Whole);
        let kept = whole.or_else(|_| <[u8; SHORT]>::try_from(digest.as_slice()).map(KeptLink::Short));
        Ok(EntryLink { seq: shape.seq, entry, kept: kept.map_err(|_| NotALink)? })
    }
}

/// The links of a batch of entries that were sealed together, as they stand in the stream of links:
/// `{"v":2,"seq":…,"link":"sha256:…","items":[["<item>","<16 hex digits per entry>"],…]}`. A link that an older service
/// wrote, one for each entry, is a batch of one.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct LinkBatch {
    seq: u64,
    link: [u8; 32],
    items: Vec<(StreamId, Vec<[u8; SHORT]>)>,
}

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct StoredBatch {
    v: u8,
    seq: u64,
    link: String,
    items: Vec<(String, String)>,
}

impl LinkBatch {
    /// The links of these entries, which follow each other; `None` if there are none.
    pub(crate) fn of(links: &[ChainLink]) -> Option<LinkBatch> {
        let last = links.last()?;
        let mut items: Vec<(StreamId, Vec<[u8; SHORT]>)> = Vec::new();
        for link in links {
            match items.last_mut() {
                Some((item, shorts)) if *item == link.entry.item => shorts.push(short(&link.link)),
                Some(_) | None => items.push((link.entry.item, vec![short(&link.link)])),
            }
        }
        Some(LinkBatch { seq: last.seq, link: last.link, items })
    }

    /// Reads what [`to_bytes`](LinkBatch::to_bytes) wrote, or an older service; `None` if it is neither.
    pub(crate) fn read(body: &[u8]) -> Option<LinkBatch> {
        if let Ok(link) = serde_json::from_slice::<ChainLink>(body) {
            return LinkBatch::of(&[link]).filter(|_| link.entry.index == 0);
        }
        let StoredBatch { v: 2, seq, link, items } = serde_json::from_slice(body).ok()? else { return None };
        let link = link.strip_prefix(SCHEME).and_then(unhex)?.try_into().ok()?;
        let item = |(id, digits): (String, String)| {
            let bytes = unhex(&digits).filter(|bytes| !bytes.is_empty())?;
            let (shorts, rest) = bytes.as_chunks::<SHORT>();
            rest.is_empty().then_some((StreamId::parse(&id)?, shorts.to_vec()))
        };
        let items: Vec<(StreamId, Vec<[u8; SHORT]>)> = items.into_iter().map(item).collect::<Option<_>>()?;
        let batch = LinkBatch { seq, link, items };
        // It counts back from its last entry, and the first entry of a log is number 1. The last one is there twice.
        let last = batch.items.last().and_then(|(_, shorts)| shorts.last()) == Some(&short(&batch.link));
        (last && (1..=seq).contains(&batch.count())).then_some(batch)
    }

    pub(crate) fn to_bytes(&self) -> Result<Vec<u8>, serde_json::Error> {
        let items = self.items.iter().map(|(item, shorts)| (item.to_string(), json::hex(shorts.as_flattened())));
        let link = format!("{SCHEME}{}", json::hex(&self.link));
        serde_json::to_vec(&StoredBatch { v: 2, seq: self.seq, link, items: items.collect() })
    }

    /// The number of its last entry.
    pub(crate) fn last(&self) -> u64 {
        self.seq
    }

    fn count(&self) -> u64 {
        self.items.iter().map(|(_, shorts)| shorts.len() as u64).sum()
    }

    /// The links, in the order of their entries.
    pub(crate) fn links(&self) -> impl Iterator<Item = EntryLink> + '_ {
        let entries = self.items.iter().flat_map(|(item, shorts)| {
            (0..).zip(shorts).map(|(index, short)| (EntryPlace { item: *item, index }, *short))
        });
        (self.seq + 1 - self.count()..).zip(entries).map(|(seq, (entry, short))| {
            let kept = if seq == self.seq { KeptLink::Whole(self.link) } else { KeptLink::Short(short) };
            EntryLink { seq, entry, kept }
        })
    }
}

fn short(link: &[u8; 32]) -> [u8; SHORT] {
    let mut short = [0; SHORT];
    short.copy_from_slice(&link[..SHORT]);
    short
}

fn unhex(text: &str) -> Option<Vec<u8>> {
    let digits: Vec<u8> = text.bytes().map(digit).collect::<Option<_>>()?;
    let (pairs, rest) = digits.as_chunks::<2>();
    rest.is_empty().then(|| pairs.iter().map(|[high, low]| high << 4 | low).collect())
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
    pub fn link(&self, entry: EntryPlace, body: &[u8]) -> ChainLink {
        let mut hash = Sha256::new();
        hash.update(self.tip);
        // Fixed widths in front, so that no two pairs of place and body read alike.
        hash.update(entry.item.at.millis().to_be_bytes());
        hash.update(entry.item.seq.to_be_bytes());
        hash.update(body);
        ChainLink { seq: self.seq.saturating_add(1), entry, link: hash.finalize().into() }
    }

    /// Takes an entry in as the next one.
    pub fn add(&mut self, entry: EntryPlace, body: &[u8]) -> ChainLink {
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

    fn place(at: u64, seq: u64) -> EntryPlace {
        StreamId { at: Moment::from_millis(at), seq }.into()
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
    /// The links of that many entries, two in each item.
    fn links(count: u32) -> Vec<ChainLink> {
        let mut chain = chain("acme");
        let at = |n: u32| EntryPlace { item: place(1_000 + u64::from(n / 2), 0).item, index: n % 2 };
        (0..count).map(|n| chain.add(at(n), b"{}")).collect()
    }

    #[test]
    fn a_batch_keeps_the_beginning_of_each_link_and_all_of_the_last() {
        let links = links(5);
        let read = LinkBatch::read(&LinkBatch::of(&links[2..]).unwrap().to_bytes().unwrap()).unwrap();
        let kept: Vec<EntryLink> = read.links().collect();
        assert_eq!(kept.len(), 3);
        for (kept, link) in kept.iter().zip(&links[2..]) {
            assert_eq!((kept.seq, kept.entry, kept.kept.fits(&link.link)), (link.seq, link.entry, true));
            assert!(!kept.kept.fits(&links[0].link));
        }
        assert_eq!(kept[2], EntryLink::from(links[4]));
        assert!(matches!(kept[1].kept, KeptLink::Short(_)));
        assert_eq!(LinkBatch::of(&[]), None);
    }

    #[test]
    fn a_link_of_an_older_service_is_a_batch_of_one() {
        let link = links(1)[0];
        let read = LinkBatch::read(&serde_json::to_vec(&link).unwrap()).unwrap();
        assert_eq!(read.links().collect::<Vec<_>>(), [link.into()]);
    }

    #[test]
    fn what_is_no_batch_is_not_read_as_one() {
        let good = String::from_utf8(LinkBatch::of(&links(3)).unwrap().to_bytes().unwrap()).unwrap();
        assert!(LinkBatch::read(good.as_bytes()).is_some());
        for (from, to) in [
            ("\"v\":2", "\"v\":3"),
            ("\"seq\":3", "\"seq\":2"),
            ("\"seq\":3", "\"seq\":0"),
            ("sha256:", "md5:"),
            ("sha256:", "sha256:00"),
            ("1000-0\",\"", "1000-0\",\"0"),
            ("1000-0\",\"", "1000-0\",\"00"),
            ("1000-0", "1000"),
            ("{", "{\"more\":1,"),
        ] {
            let bad = good.replacen(from, to, 1);
            assert!(bad != good && LinkBatch::read(bad.as_bytes()).is_none(), "{bad}");
        }
        for bad in [r#"{"v":2,"seq":1,"link":"","items":[]}"#, "{}", ""] {
            assert!(LinkBatch::read(bad.as_bytes()).is_none(), "{bad}");
        }
        let empty = good.split_once(":[").map(|(head, _)| format!("{head}:[]}}")).unwrap();
        assert!(LinkBatch::read(empty.as_bytes()).is_none(), "{empty}");
    }
}
