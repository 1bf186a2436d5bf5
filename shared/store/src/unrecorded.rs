//! What a read is judged by while the store takes no entries: everything is read again, and nothing is written.
//!
//! Whatever cannot be known is an error, and then nothing runs: the store must answer, the kill switches must be what this
//! service wrote, and the session must be there. A node that follows another one is not asked, because it may be behind
//! (see the links of the Redis backend).
//!
//! Not here: which reads may run so, and who counts them (see the executor).

use crate::ops::Op;
use crate::sessions::{SessionConfig, VersionedSession, authentic, live};
use crate::{RecordKey, StoreError, SwitchesInForce, TenantStore};
use domain::{Moment, Principal, SessionId};

/// What is known of a call whose audit entry could not be opened.
#[derive(Debug)]
pub struct UnrecordedStart {
    /// The session; `None` if it is absent, over, or somebody else's.
    pub session: Option<VersionedSession>,
    /// The store's time.
    pub now: Moment,
    /// The kill switches in force, as they are in the store now.
    pub switches: SwitchesInForce,
}

impl TenantStore {
    /// Reads what a call is judged by, without writing anything: the session does not live longer for it.
    pub async fn begin_unrecorded(
        &self,
        session: Option<SessionId>,
        caller: &Principal,
        lives: SessionConfig,
    ) -> Result<UnrecordedStart, StoreError> {
        let switches = self.store().switches();
        switches.refresh().await?;
        if !switches.is_good() {
            return Err(StoreError::Corrupt { what: "the kill switches" });
        }
        let mut ops = vec![Op::Now];
        ops.extend(session.map(|id| Op::Get { key: self.space.record(&RecordKey::session(id)) }));
        let mut answers = self.run(&ops).await?;
        let now = answers.now()?;
        let session = match session {
            Some(id) => {
                let record = authentic(self.reading(&RecordKey::session(id)).open(answers.record()?))?;
                live(record, id, caller, lives, now)?
            }
            None => None,
        };
        Ok(UnrecordedStart { session, now, switches: switches.in_force(self.tenant(), now) })
    }
}
