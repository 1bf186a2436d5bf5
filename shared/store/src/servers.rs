//! External servers as records: what each last offered, who is asking it now, and what of it was accepted.
//!
//! The list itself may be megabytes, so what is looked at often stands apart from it: a small record says when the list
//! was fetched, by which digest it goes and who holds the right to fetch it anew. The list changes only together with
//! that record. What was accepted is an audit log of its own and never ends; the list is a cache.
//!
//! Not here: what a definition means, and whether it is the accepted one (see `upstream`).

use crate::commit::SideWrite;
use crate::entry::AuditEntry;
use crate::ops::Op;
use crate::{Commit, Committed, RecordKey, RecordVersion, StoreError, TenantStore, Topic};
use domain::{Moment, Principal};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::time::Duration;

/// How long a list is kept that nobody fetches anew.
const KEEP: Duration = Duration::from_secs(7 * 24 * 60 * 60);
const BAD_LISTING: StoreError = StoreError::Corrupt { what: "what is known of an external server's list" };
const BAD_PINS: StoreError = StoreError::Corrupt { what: "the accepted tools of an external server" };

/// What is known of a server's list, without the list itself.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct ListFacts {
    /// The last list that was fetched.
    pub fetched: Option<FetchedList>,
    /// Who fetches it now.
    pub lease: Option<FetchLease>,
    /// Why the last attempt gave none.
    pub trouble: Option<FetchFailure>,
}

/// One fetched list.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct FetchedList {
    /// When, by the store's clock.
    pub at: Moment,
    /// Names the list.
    pub digest: String,
    /// The protocol's era in which the server spoke.
    pub era: String,
    /// Names where it was fetched from: what another address offers says nothing about this one.
    pub target: String,
}

/// The right to fetch a list, for a while.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct FetchLease {
    /// Whose.
    pub owner: String,
    /// Until when, by the store's clock.
    pub until: Moment,
}

/// Why a list could not be fetched.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct FetchFailure {
    /// The stable name of the failure.
    pub code: String,
    /// In words.
    pub message: String,
    /// Since when every attempt has failed.
    pub since: Moment,
    /// When the last one did.
    pub at: Moment,
}

/// What is known of a list, and the version that a change has to name.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct VersionedListing {
    /// What is known.
    pub listing: ListFacts,
    version: RecordVersion,
}

/// The tools that were accepted, by the server's own names for them.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct AcceptedPins {
    /// Each with its pin.
    pub tools: BTreeMap<String, Pin>,
}

/// One accepted definition.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Pin {
    /// SHA-256 over the definition, in hex.
    pub digest: String,
    /// The definition as canonical JSON, where it is small enough to be kept.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub definition: Option<String>,
    /// Who accepted it; `None`: the service, as part of the first list.
    #[serde(default, skip_serializing_if = "Option::is_none", with = "whose")]
    pub by: Option<Principal>,
    /// When.
    pub at: Moment,
}

/// How a change of pins ended.
#[derive(Debug, Clone, PartialEq, Eq)]
#[must_use = "only `Done` wrote something"]
pub enum PinOutcome {
    /// Written.
    Done,
    /// Somebody was quicker: read again and fold again.
    Conflict,
}

/// The external servers of one tenant.
#[derive(Debug, Clone)]
pub struct ServerStore(TenantStore);

impl ServerStore {
    pub(crate) fn new(shelf: TenantStore) -> ServerStore {
        ServerStore(shelf)
    }

    /// What is known of a server's list, and the store's time with it.
    pub async fn listing(&self, server: &str) -> Result<(VersionedListing, Moment), StoreError> {
        let key = RecordKey::server_fetch(server);
        let reading = self.0.reading(&key);
        let mut answers = self.0.run(&[Op::Get { key: self.0.space.record(&key) }, Op::Now]).await?;
        let (record, now) = (answers.record()?, answers.now()?);
        // A cache: what cannot be read, or is not authentic, is fetched again and written over.
        let held = match reading.open(record) {
            Ok(Some(record)) => {
                VersionedListing { listing: listing_of(&record.body).unwrap_or_default(), version: record.version }
            }
            Ok(None) => VersionedListing { listing: ListFacts::default(), version: RecordVersion::NONE },
            Err(StoreError::NotAuthentic { version, .. }) => {
                VersionedListing { listing: ListFacts::default(), version }
            }
            Err(error) => return Err(error),
        };
        Ok((held, now))
    }

    /// The list itself, as it was written.
    pub async fn list(&self, server: &str) -> Result<Option<Vec<u8>>, StoreError> {
        match self.0.get(&RecordKey::server_tools(server)).await {
            Ok(record) => Ok(record.map(|record| record.body)),
            // A cache that somebody else wrote is none.
            Err(StoreError::NotAuthentic { .. }) => Ok(None),
            Err(error) => Err(error),
        }
    }

    /// Takes the right to fetch. `None`: somebody else was quicker.
    pub async fn lease(
        &self,
        server: &str,
        held: &VersionedListing,
        lease: FetchLease,
    ) -> Result<Option<VersionedListing>, StoreError> {
        let listing = ListFacts { lease: Some(lease), ..held.listing.clone() };
        match self.0.commit(written(server, held.version, &listing)?).await? {
            Committed::Done(version, _) => Ok(Some(VersionedListing { listing, version })),
            Committed::Conflict(..) | Committed::Late(_) | Committed::NoRoom(_) => Ok(None),
        }
    }

    /// Writes a fetched list and gives the right back. Whoever watches is woken if the list is another one than before.
    /// `false`: the right had run out and somebody else has it; nothing was written.
    pub async fn fetched(
        &self,
        server: &str,
        held: &VersionedListing,
        fetched: FetchedList,
        list: Vec<u8>,
    ) -> Result<bool, StoreError> {
        let before = held.listing.fetched.as_ref();
        let other = before.is_none_or(|before| before.digest != fetched.digest) || held.listing.trouble.is_some();
        let listing = ListFacts { fetched: Some(fetched), lease: None, trouble: None };
        let mut commit = written(server, held.version, &listing)?;
        commit.beside.push(SideWrite::Write(RecordKey::server_tools(server), list, Some(KEEP)));
        commit.wake = other.then_some(Topic::Servers);
        done(self.0.commit(commit).await?)
    }

    /// Writes why there is no list and gives the right back. The list from before stays. `false`: as for a list.
    pub async fn failed(
        &self,
        server: &str,
        held: &VersionedListing,
        trouble: FetchFailure,
    ) -> Result<bool, StoreError> {
        let since = held.listing.trouble.as_ref().map_or(trouble.since, |before| before.since);
        let trouble = Some(FetchFailure { since, ..trouble });
        let listing = ListFacts { lease: None, trouble, ..held.listing.clone() };
        done(self.0.commit(written(server, held.version, &listing)?).await?)
    }

    /// What was accepted; `None` if nothing ever was.
    pub async fn pins(&self, server: &str) -> Result<(Option<AcceptedPins>, RecordVersion), StoreError> {
        match self.0.get(&RecordKey::server_pins(server)).await? {
            Some(record) => Ok((Some(pins_of(&record.body)?), record.version)),
            None => Ok((None, RecordVersion::NONE)),
        }
    }

    /// Writes what is accepted from now on, with its entry in the audit log and a wake-up.
    pub async fn pin(
        &self,
        server: &str,
        version: RecordVersion,
        pins: &AcceptedPins,
        entry: &AuditEntry,
    ) -> Result<PinOutcome, StoreError> {
        let body = serde_json::to_vec(&PinsShape { v: 1, tools: pins.tools.clone() }).map_err(|_| BAD_PINS)?;
        let mut commit = Commit::write(RecordKey::server_pins(server), version, body);
        commit.append.push(self.0.audit().write_out(entry)?);
        commit.wake = Some(Topic::Servers);
        match self.0.commit(commit).await? {
            Committed::Done(..) => Ok(PinOutcome::Done),
            Committed::Conflict(..) | Committed::Late(_) | Committed::NoRoom(_) => Ok(PinOutcome::Conflict),
        }
    }
}

fn done(committed: Committed) -> Result<bool, StoreError> {
    match committed {
        Committed::Done(..) => Ok(true),
        Committed::Conflict(..) | Committed::Late(_) | Committed::NoRoom(_) => Ok(false),
    }
}

fn written(server: &str, expect: RecordVersion, listing: &ListFacts) -> Result<Commit, StoreError> {
    let ListFacts { fetched, lease, trouble } = listing.clone();
    let body = serde_json::to_vec(&ListingShape { v: 1, fetched, lease, trouble }).map_err(|_| BAD_LISTING)?;
    Ok(Commit { expires: Some(KEEP), ..Commit::write(RecordKey::server_fetch(server), expect, body) })
}

#[derive(Serialize, Deserialize)]
struct ListingShape {
    v: u8,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    fetched: Option<FetchedList>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    lease: Option<FetchLease>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    trouble: Option<FetchFailure>,
}

#[derive(Serialize, Deserialize)]
struct PinsShape {
    v: u8,
    tools: BTreeMap<String, Pin>,
}

fn listing_of(body: &[u8]) -> Result<ListFacts, StoreError> {
    match serde_json::from_slice(body) {
        Ok(ListingShape { v: 1, fetched, lease, trouble }) => Ok(ListFacts { fetched, lease, trouble }),
        Ok(_) | Err(_) => Err(BAD_LISTING),
    }
}

fn pins_of(body: &[u8]) -> Result<AcceptedPins, StoreError> {
    match serde_json::from_slice(body) {
        Ok(PinsShape { v: 1, tools }) => Ok(AcceptedPins { tools }),
        Ok(_) | Err(_) => Err(BAD_PINS),
    }
}

/// A principal as two texts.
mod whose {
    use domain::Principal;
    use serde::{Deserialize, Deserializer, Serialize, Serializer};

    #[derive(Serialize, Deserialize)]
    struct StoredPrincipal {
        iss: String,
        sub: String,
    }

    pub(super) fn serialize<S: Serializer>(by: &Option<Principal>, to: S) -> Result<S::Ok, S::Error> {
        by.as_ref().map(|by| StoredPrincipal { iss: by.issuer.clone(), sub: by.subject.clone() }).serialize(to)
    }

    pub(super) fn deserialize<'de, D: Deserializer<'de>>(from: D) -> Result<Option<Principal>, D::Error> {
        let shape = Option::<StoredPrincipal>::deserialize(from)?;
        Ok(shape.map(|StoredPrincipal { iss, sub }| Principal::new(iss, sub)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const LISTING: &str = r#"{"v":1,"fetched":{"at":1763280000000,"digest":"ab","era":"modern","target":"cd"},"trouble":{"code":"deadline","message":"late","since":1,"at":2}}"#;
    const PINS: &str =
        r#"{"v":1,"tools":{"search":{"digest":"ab","definition":"{}","by":{"iss":"i","sub":"s"},"at":7}}}"#;

    #[test]
    fn what_an_older_build_wrote_reads_back_and_is_written_the_same() {
        let listing = listing_of(LISTING.as_bytes()).unwrap();
        assert_eq!(written("wiki", RecordVersion::NONE, &listing).unwrap().body.unwrap(), LISTING.as_bytes());
        let pins = pins_of(PINS.as_bytes()).unwrap();
        assert_eq!(serde_json::to_string(&PinsShape { v: 1, tools: pins.tools }).unwrap(), PINS);
    }

    #[test]
    fn a_record_that_is_not_ours_is_named_as_unreadable() {
        let newer = PINS.replace("\"v\":1", "\"v\":2");
        for bad in ["", "{}", "null", "[]", newer.as_str(), r#"{"v":1,"tools":{"a":{"digest":7,"at":1}}}"#] {
            assert!(matches!(pins_of(bad.as_bytes()), Err(StoreError::Corrupt { .. })), "{bad}");
        }
        let newer = LISTING.replace("\"v\":1", "\"v\":2");
        for bad in ["", "{}", newer.as_str()] {
            assert!(matches!(listing_of(bad.as_bytes()), Err(StoreError::Corrupt { .. })), "{bad}");
        }
    }
}
