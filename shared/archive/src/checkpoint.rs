//! A checkpoint: the service's signature under the audit log of a tenant as far as it was sealed.
//!
//! It is a JSON object with its members in the order of their names, without spaces, whose values are whole numbers and
//! plain texts. So its bytes are those of RFC 8785, and any JSON library can make them again. The signature is over the
//! object without the member `sig`; the member `former` of the next one is the SHA-256 of the whole object.
//!
//! Not here: when one is made (see `sign`), and how entries lead to a link (see `store`).

use crate::keys::{PublicKeys, SigningKey};
use domain::{Moment, Tenant, json};
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};
use std::fmt;
use store::ChainLink;

/// The shape of checkpoints.
const SHAPE: u8 = 1;

/// A checkpoint. The order of the fields is that of their names.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Checkpoint {
    /// Its number among the tenant's, from 1.
    pub checkpoint: u64,
    /// The place of the last entry it holds.
    pub entry: String,
    /// The number of the first entry it holds.
    pub first: u64,
    /// The digest of the checkpoint before it; none for the first one.
    pub former: Option<String>,
    /// The id of the key that signed it.
    pub key: String,
    /// The number of the last entry it holds.
    pub last: u64,
    /// The link of that entry, which holds everything before it.
    pub link: String,
    /// When it was made, by the store's clock.
    pub made: String,
    /// The signature over everything else.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub sig: String,
    /// Whose audit log it is.
    pub tenant: String,
    /// The shape.
    pub v: u8,
}

impl Checkpoint {
    /// Signs the audit log of a tenant as far as it is sealed, behind the checkpoint before it.
    pub fn sign(
        tenant: &Tenant,
        seal: &ChainLink,
        former: Option<&Checkpoint>,
        made: Moment,
        key: &SigningKey,
    ) -> Checkpoint {
        let mut made = Checkpoint {
            checkpoint: former.map_or(0, |former| former.checkpoint) + 1,
            entry: seal.entry.to_string(),
            first: former.map_or(0, |former| former.last) + 1,
            former: former.map(Checkpoint::digest),
            key: key.public().id().to_owned(),
            last: seal.seq,
            link: format!("sha256:{}", json::hex(&seal.link)),
            made: made.to_string(),
            sig: String::new(),
            tenant: tenant.to_string(),
            v: SHAPE,
        };
        made.sig = key.sign(made.to_line().as_bytes());
        made
    }

    /// Reads one, if it is written as this service writes them.
    pub fn read(line: &str) -> Option<Checkpoint> {
        let read: Checkpoint = serde_json::from_str(line).ok()?;
        (read.v == SHAPE && !read.sig.is_empty() && read.to_line() == line).then_some(read)
    }

    /// As it is written.
    pub fn to_line(&self) -> String {
        // Neither a map with odd keys nor a failing writer is at work here.
        serde_json::to_string(self).unwrap_or_default()
    }

    /// What the next one holds of it.
    pub fn digest(&self) -> String {
        format!("sha256:{}", json::hex(&Sha256::digest(self.to_line())))
    }

    /// Whether it ends at this link.
    pub fn ends_at(&self, link: &ChainLink) -> bool {
        self.last == link.seq && self.link == format!("sha256:{}", json::hex(&link.link))
    }

    /// When it was made.
    pub fn made_at(&self) -> Option<Moment> {
        Moment::parse(&self.made)
    }

    /// The link at which it ends; `None` if it names none.
    pub(crate) fn chain_link(&self) -> Option<ChainLink> {
        let link = serde_json::json!({ "seq": self.last, "entry": self.entry, "link": self.link });
        serde_json::from_value(link).ok()
    }

    pub(crate) fn is_signed(&self, keys: &PublicKeys) -> Option<bool> {
        let unsigned = Checkpoint { sig: String::new(), ..self.clone() };
        keys.verify(&self.key, unsigned.to_line().as_bytes(), &self.sig)
    }
}

/// What is wrong with a checkpoint.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CheckpointFlaw {
    /// Its signature does not fit.
    Forged,
    /// No known key has signed it.
    UnknownKey,
    /// It is of another tenant.
    Foreign,
    /// One before it is not there.
    Missing,
    /// It stands elsewhere than when it was made, or twice.
    Reordered,
    /// It does not follow from the one before it.
    Forked,
    /// The entries that it signs are others than those that are there.
    Contradicted,
    /// Entries that are long sealed have none.
    Absent,
}

impl CheckpointFlaw {
    /// As it is written.
    pub const fn as_str(self) -> &'static str {
        match self {
            CheckpointFlaw::Forged => "forged",
            CheckpointFlaw::UnknownKey => "signed by an unknown key",
            CheckpointFlaw::Foreign => "of another tenant",
            CheckpointFlaw::Missing => "missing",
            CheckpointFlaw::Reordered => "reordered",
            CheckpointFlaw::Forked => "forked",
            CheckpointFlaw::Contradicted => "contradicted by the entries",
            CheckpointFlaw::Absent => "missing for entries that are long sealed",
        }
    }
}

/// The first bad checkpoint.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub struct CheckpointBreak {
    /// Its number.
    pub checkpoint: u64,
    /// What is wrong with it.
    pub what: CheckpointFlaw,
}

impl fmt::Display for CheckpointBreak {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "checkpoint {} is {}", self.checkpoint, self.what.as_str())
    }
}

/// The checkpoints of one audit log, walked from the first.
#[derive(Debug)]
pub struct CheckpointChain<'k> {
    tenant: String,
    keys: &'k PublicKeys,
    newest: Option<Checkpoint>,
    /// Whether the first one that comes may be any.
    anywhere: bool,
}

impl<'k> CheckpointChain<'k> {
    /// Before the first checkpoint of a tenant; `anywhere` if it may be that earlier ones are kept elsewhere.
    pub fn new(tenant: &Tenant, keys: &'k PublicKeys, anywhere: bool) -> CheckpointChain<'k> {
        CheckpointChain { tenant: tenant.to_string(), keys, newest: None, anywhere }
    }

    /// The newest one that was found to be in order.
    pub fn newest(&self) -> Option<&Checkpoint> {
        self.newest.as_ref()
    }

    /// Takes the next one, or tells why it is not the next one.
    pub fn take(&mut self, next: Checkpoint) -> Result<&Checkpoint, CheckpointBreak> {
        let bad = |number: u64, what: CheckpointFlaw| Err(CheckpointBreak { checkpoint: number, what });
        let number = next.checkpoint;
        match next.is_signed(self.keys) {
            None => return bad(number, CheckpointFlaw::UnknownKey),
            Some(false) => return bad(number, CheckpointFlaw::Forged),
            Some(true) => {}
        }
        if next.tenant != self.tenant {
            return bad(number, CheckpointFlaw::Foreign);
        }
        let (before, last) = self.newest.as_ref().map_or((0, 0), |newest| (newest.checkpoint, newest.last));
        let free = self.newest.is_none() && self.anywhere;
        if !free {
            if number > before + 1 {
                return bad(before + 1, CheckpointFlaw::Missing);
            }
            if number <= before {
                return bad(number, CheckpointFlaw::Reordered);
            }
            let follows = next.former == self.newest.as_ref().map(Checkpoint::digest) && next.first == last + 1;
            if !follows || next.last < next.first {
                return bad(number, CheckpointFlaw::Forked);
            }
        }
        Ok(self.newest.insert(next))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use store::Chain;

    fn tenant(name: &str) -> Tenant {
        Tenant::parse(name).unwrap()
    }

    fn key(number: u8) -> SigningKey {
        SigningKey::derive(&[number; 32]).unwrap()
    }

    fn links(count: u64) -> Vec<ChainLink> {
        let mut chain = Chain::of(&tenant("acme"));
        let place = |at: u64| store::EntryPlace::from(store::StreamId { at: Moment::from_millis(at), seq: 0 });
        (1..=count).map(|at| chain.add(place(at), b"{}")).collect()
    }

    /// Three checkpoints over nine entries, the last one under another key.
    fn three() -> Vec<Checkpoint> {
        let links = links(9);
        let mut made: Vec<Checkpoint> = Vec::new();
        for (number, at) in [(1, 2), (1, 5), (2, 8)] {
            let next = Checkpoint::sign(&tenant("acme"), &links[at], made.last(), Moment::from_secs(1), &key(number));
            made.push(next);
        }
        made
    }

    fn keys() -> PublicKeys {
        PublicKeys::new([key(2).public().clone(), key(1).public().clone()])
    }

    fn judge(checkpoints: &[Checkpoint]) -> Result<u64, CheckpointBreak> {
        let keys = keys();
        let mut chain = CheckpointChain::new(&tenant("acme"), &keys, false);
        for next in checkpoints {
            chain.take(next.clone())?;
        }
        Ok(chain.newest().map_or(0, |newest| newest.last))
    }

    #[test]
    fn checkpoints_follow_each_other_across_a_change_of_keys() {
        let three = three();
        assert_eq!(judge(&three), Ok(9));
        assert!(three[1].ends_at(&links(9)[5]) && !three[1].ends_at(&links(9)[4]));
        for checkpoint in &three {
            assert_eq!(Checkpoint::read(&checkpoint.to_line()).as_ref(), Some(checkpoint));
        }
    }

    #[test]
    fn a_checkpoint_stays_what_it_was_in_earlier_releases() {
        let links = links(1);
        let made = Checkpoint::sign(&tenant("acme"), &links[0], None, Moment::from_secs(1_763_280_000), &key(1));
        let line = made.to_line();
        let (before, after) = line.split_once(&made.sig).unwrap();
        let link = json::hex(&links[0].link);
        assert_eq!(
            before,
            format!(
                r#"{{"checkpoint":1,"entry":"1-0","first":1,"former":null,"key":"{}","last":1,"link":"sha256:{link}","made":"2025-11-16T08:00:00Z","sig":""#,
                key(1).public().id()
            )
        );
        assert_eq!(after, r#"","tenant":"acme","v":1}"#);
    }

    #[test]
    fn one_spelling_is_read_and_no_other() {
        let line = three()[0].to_line();
        for bad in [
            String::new(),
            format!("{line} "),
            line.replace(r#""v":1"#, r#""v":2"#),
            line.replace(r#""v":1"#, r#""v":1,"x":1"#),
            line.replace(r#","v""#, r#", "v""#),
            line.replace(&format!(r#""sig":"{}","#, three()[0].sig), ""),
        ] {
            assert_eq!(Checkpoint::read(&bad), None, "{bad}");
        }
    }

    #[test]
    fn whatever_is_done_to_a_checkpoint_is_named() {
        type Change = fn(&mut Checkpoint);
        let changes: [(&str, Change); 9] = [
            ("number", |one| one.checkpoint += 1),
            ("entry", |one| one.entry.push('0')),
            ("first", |one| one.first += 1),
            ("former", |one| one.former = Some("sha256:00".to_owned())),
            ("last", |one| one.last += 1),
            ("link", |one| one.link.replace_range(10..11, "x")),
            ("made", |one| one.made.push('0')),
            ("sig", |one| one.sig.replace_range(0..1, if one.sig.starts_with('A') { "B" } else { "A" })),
            ("tenant", |one| one.tenant.push('x')),
        ];
        for (what, change) in changes {
            for at in 0..3 {
                let mut bent = three();
                change(&mut bent[at]);
                let found = judge(&bent).unwrap_err();
                assert_eq!(found.what, CheckpointFlaw::Forged, "{what} of {at}");
            }
        }
        let of = |checkpoint: u64, what: CheckpointFlaw| Err(CheckpointBreak { checkpoint, what });
        let [one, two, three] = three().try_into().unwrap();
        assert_eq!(judge(&[two.clone(), three.clone()]), of(1, CheckpointFlaw::Missing));
        assert_eq!(judge(&[one.clone(), three.clone()]), of(2, CheckpointFlaw::Missing));
        assert_eq!(judge(&[one.clone(), two.clone(), one.clone()]), of(1, CheckpointFlaw::Reordered));
        assert_eq!(judge(&[one.clone(), one.clone()]), of(1, CheckpointFlaw::Reordered));

        // Whoever has a published key signs another history, and can only do it from there to the end.
        let links = links(9);
        let other = Checkpoint::sign(&tenant("acme"), &links[6], Some(&one), Moment::from_secs(1), &key(1));
        assert_eq!(judge(&[one.clone(), other, three.clone()]), of(3, CheckpointFlaw::Forked));
        let stranger = Checkpoint::sign(&tenant("acme"), &links[5], Some(&one), Moment::from_secs(1), &key(3));
        assert_eq!(judge(&[one.clone(), stranger]), of(2, CheckpointFlaw::UnknownKey));
        let foreign = Checkpoint::sign(&tenant("bolt"), &links[5], Some(&one), Moment::from_secs(1), &key(1));
        assert_eq!(judge(&[one, foreign]), of(2, CheckpointFlaw::Foreign));
    }
}
