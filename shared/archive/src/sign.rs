//! Signing: the checkpoint record of a tenant and the stream of its checkpoints move by one compare-and-set, so of several
//! replicas one signs and the others have done nothing.
//!
//! What is signed was computed again from the last checkpoint on. So nobody who changes entries in the store gets a
//! signature for it, once they were sealed and signed; what is changed before that, nobody can tell.

use crate::archive::Archive;
use crate::checkpoint::Checkpoint;
use crate::range::{RangeError, RangeReader, tell_broken};
use domain::Moment;
use serde::{Deserialize, Serialize};
use std::time::Duration;
use store::{
    AuditLogPosition, ChainLink, Commit, Committed, RecordKey, RecordVersion, StoreError, StreamName, TenantStore,
};

/// How long a tenant is left to the replica that was quicker.
const LATER: Duration = Duration::from_secs(1);

const UNREADABLE: StoreError = StoreError::Corrupt { what: "the newest checkpoint of an audit log" };

/// The newest checkpoint as it is stored.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct NewestCheckpoint {
    v: u8,
    pub(crate) checkpoint: Checkpoint,
    /// The link at which it ends.
    pub(crate) link: ChainLink,
    /// Where the entries behind it begin.
    at: Option<String>,
}

impl NewestCheckpoint {
    /// The newest checkpoint of a tenant, and the version of its record.
    pub(crate) async fn find(shelf: &TenantStore) -> Result<(RecordVersion, Option<NewestCheckpoint>), StoreError> {
        let Some(record) = shelf.get(&RecordKey::checkpoint()).await? else { return Ok((RecordVersion::NONE, None)) };
        let newest: NewestCheckpoint = serde_json::from_slice(&record.body).map_err(|_| UNREADABLE)?;
        if newest.v == 1 { Ok((record.version, Some(newest))) } else { Err(UNREADABLE) }
    }
}

/// The newest checkpoint of a tenant, from the record that the service seals: the stream of checkpoints must reach it.
pub async fn newest_checkpoint(shelf: &TenantStore) -> Result<Option<Checkpoint>, StoreError> {
    Ok(NewestCheckpoint::find(shelf).await?.1.map(|newest| newest.checkpoint))
}

/// What came of a look at a tenant.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SignOutcome {
    /// Everything that is sealed is signed.
    Nothing,
    /// Something waits for its time, which comes after that long.
    Waiting(Duration),
    /// A checkpoint was made.
    Signed,
}

impl Archive {
    /// Makes a checkpoint of a tenant's audit log, if one is due.
    pub async fn sign(&self, shelf: &TenantStore) -> Result<SignOutcome, RangeError> {
        let Some(seal) = shelf.find_seal().await? else { return Ok(SignOutcome::Nothing) };
        let (version, newest) = NewestCheckpoint::find(shelf).await?;
        let tenant = shelf.tenant();
        let last = newest.as_ref().map_or(0, |newest| newest.checkpoint.last);
        if seal.seq == last && newest.as_ref().is_none_or(|newest| newest.link == seal) {
            self.status.unsigned(tenant, None);
            return Ok(SignOutcome::Nothing);
        }
        let now = shelf.store().now().await?;
        self.status.unsigned(tenant, Some(seal.entry.item.at));
        // The first checkpoint of a tenant is made at once.
        let due_in = newest
            .as_ref()
            .map_or(Duration::ZERO, |newest| self.config.checkpoint_every.saturating_sub(now.since(made(newest, now))));
        if seal.seq > last && seal.seq - last < self.config.checkpoint_entries && !due_in.is_zero() {
            return Ok(SignOutcome::Waiting(due_in));
        }
        let at = newest.as_ref().and_then(|newest| newest.at.as_deref()).and_then(AuditLogPosition::parse);
        let mut range = RangeReader::behind(shelf, newest.as_ref().map(|newest| &newest.link), at);
        let verified = if seal.seq > last { range.verify(&seal).await } else { Err(RangeError::Broken(seal.seq)) };
        if let Err(error @ RangeError::Broken(_)) = &verified {
            self.status.failed_to_verify();
            tell_broken(tenant, error);
        }
        verified?;
        let former = newest.as_ref().map(|newest| &newest.checkpoint);
        let checkpoint = Checkpoint::sign(tenant, &seal, former, now, &self.keys.signing);
        let line = checkpoint.to_line().into_bytes();
        let at = range.position().map(|at| at.to_string());
        let body =
            serde_json::to_vec(&NewestCheckpoint { v: 1, checkpoint, link: seal, at }).map_err(|_| UNREADABLE)?;
        let append = vec![(StreamName::checkpoints(), line)];
        match shelf.commit(Commit { append, ..Commit::write(RecordKey::checkpoint(), version, body) }).await? {
            Committed::Done(..) => {
                self.status.unsigned(tenant, None);
                Ok(SignOutcome::Signed)
            }
            // Another replica was quicker.
            Committed::Conflict(..) | Committed::Late(_) | Committed::NoRoom(_) => Ok(SignOutcome::Waiting(LATER)),
        }
    }
}

fn made(newest: &NewestCheckpoint, now: Moment) -> Moment {
    newest.checkpoint.made_at().unwrap_or(now)
}
