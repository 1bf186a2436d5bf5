//! Trimming: what is old enough, signed, and with every sink leaves the store, whole checkpoints at a time.
//!
//! What is left begins behind a checkpoint, whose link is kept beside the audit log, and verification begins there. The
//! bytes that leave no longer count for the tenant.

use crate::archive::Archive;
use crate::checkpoint::Checkpoint;
use crate::export::exported;
use std::time::Duration;
use store::{StoreError, StreamName, TenantStore, Trim};

/// Checkpoints that are looked at in one go.
const AT_ONCE: usize = 100;

impl Archive {
    /// Takes the oldest checkpointed entries of a tenant out of the store, if they are older than `keep`. Tells how many
    /// entries that were.
    pub async fn trim(&self, shelf: &TenantStore, keep: Duration) -> Result<u64, StoreError> {
        let trimmed = shelf.trimmed().await?;
        let (from, after) = trimmed.as_ref().map_or((0, None), |trimmed| (trimmed.link.seq, Some(trimmed.checkpoint)));
        let now = shelf.store().now().await?;
        let mut gone = 0;
        let (mut most_entry, mut most_checkpoint) = (u64::MAX, u64::MAX);
        for sink in self.sinks.iter().filter(|sink| sink.config.takes(shelf.tenant())) {
            let place = exported(shelf, &sink.config.name).await?;
            most_entry = most_entry.min(place.seq());
            most_checkpoint = most_checkpoint.min(place.checkpoint);
        }
        for (id, body) in shelf.read(&StreamName::checkpoints(), after, AT_ONCE).await? {
            let line = std::str::from_utf8(&body).ok().and_then(Checkpoint::read);
            let checkpoint = line.ok_or(StoreError::Corrupt { what: "a checkpoint" })?;
            let Some(link) = checkpoint.chain_link() else { return Err(StoreError::Corrupt { what: "a checkpoint" }) };
            let old = now.since(link.entry.item.at) >= keep;
            if !old || checkpoint.last > most_entry || checkpoint.checkpoint > most_checkpoint {
                break;
            }
            // A checkpoint in the store may be anybody's; only a signature of ours lets entries go.
            if checkpoint.is_signed(&self.keys.public) != Some(true) || checkpoint.tenant != shelf.tenant().as_str() {
                return Err(StoreError::Corrupt { what: "a checkpoint" });
            }
            if !shelf.trim(&Trim { link, checkpoint: id }).await? {
                break;
            }
            gone = checkpoint.last - from;
        }
        Ok(gone)
    }
}
