//! What belongs to one tenant: records, streams, indexes and wake-ups under its keys and no others.

use crate::commit::{Room, SideWrite};
use crate::entry::AuditEntry;
use crate::guard::GuardedRead;
use crate::keys::{KeySpace, Summed};
use crate::ops::{Op, OpResults, RawAppend, RawBeside, RawCommit, RawPlacing, RawRoom, StreamWalk};
use crate::{
    AuditStore, Commit, Committed, DocumentStore, IndexName, RecordKey, RecordVersion, RunStore, SessionStore, Store,
    StoreError, StoredRecord, StreamId, StreamName, TenantTexts, TenantWatch, Topic,
};
use domain::Tenant;

/// One tenant's part of the store. A clone is another handle to the same part.
#[derive(Debug, Clone)]
pub struct TenantStore {
    store: Store,
    tenant: Tenant,
    pub(crate) space: KeySpace,
}

impl TenantStore {
    pub(crate) fn new(store: Store, tenant: Tenant, space: KeySpace) -> TenantStore {
        TenantStore { store, tenant, space }
    }

    /// Whose it is.
    pub fn tenant(&self) -> &Tenant {
        &self.tenant
    }

    /// The store it is a part of.
    pub fn store(&self) -> &Store {
        &self.store
    }

    /// Reads a record. One that is to be sealed and was not, or not by this service, is [`StoreError::NotAuthentic`].
    pub async fn get(&self, key: &RecordKey) -> Result<Option<StoredRecord>, StoreError> {
        let reading = self.reading(key);
        reading.open(self.run(&[Op::Get { key: self.space.record(key) }]).await?.record()?)
    }

    /// Makes one all-or-nothing change.
    pub async fn commit(&self, commit: Commit) -> Result<Committed, StoreError> {
        let reading = self.reading(&commit.record);
        let (key, epoch) = (commit.record.clone(), self.store.epoch());
        let moves = matches!(commit.wake, Some(Topic::Config | Topic::Secrets | Topic::Servers));
        if commit.append.iter().any(|(stream, _)| *stream == StreamName::audit()) {
            self.store.unsealed().add(&self.tenant);
        }
        match self.store.commit(self.write_out(self.sealed(commit)?)).await? {
            Committed::Conflict(version, body) if version != RecordVersion::NONE => {
                let record = reading.open(Some(StoredRecord { version, body }))?;
                Ok(Committed::Conflict(version, record.map(|record| record.body).unwrap_or_default()))
            }
            Committed::Done(version, at) => {
                self.store.guard().wrote(&self.tenant, &key, version, epoch);
                if moves {
                    self.store.note_moved(&self.tenant, at);
                }
                Ok(Committed::Done(version, at))
            }
            ended @ (Committed::Conflict(..) | Committed::Late(_) | Committed::NoRoom(_)) => Ok(ended),
        }
    }

    /// Prepares the reading of a record; what the store answers goes through it.
    pub(crate) fn reading(&self, key: &RecordKey) -> GuardedRead {
        GuardedRead::new(&self.store, &self.tenant, key.clone())
    }

    /// Seals a record that is not sealed under the current key anew, with this entry in the audit log, completed with
    /// what it is about. Tells whether it was written.
    pub async fn reseal(&self, key: &RecordKey, entry: &AuditEntry) -> Result<bool, StoreError> {
        let reading = self.reading(key);
        let record = self.run(&[Op::Get { key: self.space.record(key) }]).await?.record()?;
        // What was never sealed is not ours to seal.
        let older = reading.look(record)?.filter(|read| read.authentic && !read.current);
        let Some(read) = older else { return Ok(false) };
        let entry = AuditEntry { target: Some(format!("record {}: sealed anew", key.name())), ..entry.clone() };
        let append = vec![self.audit().write_out(&entry)?];
        let commit = Commit { append, ..Commit::write(key.clone(), read.record.version, read.record.body) };
        Ok(matches!(self.commit(commit).await?, Committed::Done(..)))
    }

    /// The same change with every body sealed that has to be.
    fn sealed(&self, mut commit: Commit) -> Result<Commit, StoreError> {
        let (guard, next) = (self.store.guard(), commit.expect.next());
        if let Some(body) = commit.body.take() {
            commit.body = Some(guard.seal(&self.tenant, &commit.record, next, body)?);
        }
        for beside in &mut commit.beside {
            match beside {
                SideWrite::Write(key, body, _) | SideWrite::Replace(key, body) => {
                    *body = guard.seal(&self.tenant, key, RecordVersion::NONE, std::mem::take(body))?;
                }
                SideWrite::End(..) | SideWrite::Forget(_) | SideWrite::ForgetStream(_) | SideWrite::Trim(..) => {}
            }
        }
        Ok(commit)
    }

    /// Members of an index whose rank is in `from..=to`, lowest first, with their ranks.
    pub async fn range(
        &self,
        index: &IndexName,
        from: u64,
        to: u64,
        limit: usize,
    ) -> Result<Vec<(String, u64)>, StoreError> {
        self.run(&[Op::Range { index: self.space.index(index), from, to, limit }]).await?.members()
    }

    /// Entries of a stream behind `after`, oldest first.
    pub async fn read(
        &self,
        stream: &StreamName,
        after: Option<StreamId>,
        limit: usize,
    ) -> Result<Vec<(StreamId, Vec<u8>)>, StoreError> {
        self.walk(stream, StreamWalk::After(after), limit).await
    }

    /// Entries of a stream before `before`, newest first.
    pub async fn read_back(
        &self,
        stream: &StreamName,
        before: Option<StreamId>,
        limit: usize,
    ) -> Result<Vec<(StreamId, Vec<u8>)>, StoreError> {
        self.walk(stream, StreamWalk::Before(before), limit).await
    }

    /// The tenant's sessions.
    pub fn sessions(&self) -> SessionStore {
        SessionStore::new(self.clone())
    }

    /// What runs hold for themselves while they are at work.
    pub fn holds(&self) -> crate::LockStore {
        crate::LockStore::new(self.clone())
    }

    /// The tenant's audit log.
    pub fn audit(&self) -> AuditStore {
        AuditStore::new(self.clone())
    }

    /// The tenant's documents.
    pub fn memory(&self) -> DocumentStore {
        DocumentStore::new(self.clone())
    }

    /// The tenant's external servers.
    pub fn servers(&self) -> crate::ServerStore {
        crate::ServerStore::new(self.clone())
    }

    /// The tenant's runs.
    pub fn runs(&self) -> RunStore {
        RunStore::new(self.clone())
    }

    /// People of the tenant who signed in with a browser.
    pub fn browsers(&self) -> crate::BrowserStore {
        crate::BrowserStore::new(self.clone())
    }

    /// The runs that people of the tenant put off.
    pub fn put_off(&self) -> crate::PutOffStore {
        crate::PutOffStore::new(self.clone())
    }

    /// The tenant's jobs for runners.
    pub fn jobs(&self) -> crate::JobStore {
        crate::JobStore::new(self.clone())
    }

    /// The tenant's configuration that was set over HTTP.
    pub fn tenant_text(&self) -> TenantTexts {
        TenantTexts::new(self.clone())
    }

    /// The tenant's sealed secrets.
    pub fn secrets(&self) -> crate::SecretStore {
        crate::SecretStore::new(self.clone())
    }

    /// What the tenant's callers used.
    pub fn used(&self) -> crate::UsageStore {
        crate::UsageStore::new(self.clone())
    }

    /// Hears the tenant's wake-ups.
    pub fn watch(&self) -> TenantWatch {
        self.store.hub().watch(self.space.wake())
    }

    /// Wakes whoever watches this tenant, without changing anything.
    pub async fn wake(&self, topic: &Topic) -> Result<(), StoreError> {
        let publish = Op::Publish { channel: self.space.wake(), text: topic.to_text() };
        self.run(&[publish]).await.map(|_| ())
    }

    pub(crate) async fn run(&self, ops: &[Op]) -> Result<OpResults, StoreError> {
        self.store.run(ops).await
    }

    async fn walk(
        &self,
        stream: &StreamName,
        walk: StreamWalk,
        limit: usize,
    ) -> Result<Vec<(StreamId, Vec<u8>)>, StoreError> {
        if walk.leads_nowhere() {
            return Ok(Vec::new());
        }
        self.run(&[Op::Read { stream: self.space.stream(stream), walk, limit }]).await?.entries()
    }

    fn room(&self, room: &Room) -> RawRoom {
        match room {
            Room::Members(index, most) => RawRoom { key: self.space.index(index), sum: false, added: 1, most: *most },
            Room::Sum { index, added, most } => {
                RawRoom { key: self.space.sum(index), sum: true, added: *added, most: *most }
            }
        }
    }

    /// How many bytes are stored for the tenant, as far as they are counted.
    pub async fn usage(&self) -> Result<u64, StoreError> {
        self.run(&[Op::Total { key: self.space.usage() }]).await?.count()
    }

    fn write_out(&self, commit: Commit) -> RawCommit {
        let Commit { record, expect, body, expires, not_after, append, index, beside, wake, rooms, held_to_quota } =
            commit;
        let append = append.into_iter().map(|(stream, body)| RawAppend {
            stream: self.space.stream(&stream),
            body,
            lives: stream.lives,
        });
        let index = index.into_iter().map(|place| RawPlacing {
            index: self.space.index(&place.index),
            sum: (place.index.summed != Summed::No).then(|| self.space.sum(&place.index)),
            used: place.index.summed == Summed::IntoUsage,
            member: place.member,
            rank: place.rank,
            lives: place.index.lives,
        });
        let beside = beside.into_iter().map(|beside| match beside {
            SideWrite::Write(key, body, expires) => RawBeside::Write { key: self.space.record(&key), body, expires },
            SideWrite::Replace(key, body) => RawBeside::Replace { key: self.space.record(&key), body },
            SideWrite::End(key, within) => RawBeside::End { key: self.space.record(&key), within },
            SideWrite::Forget(key) => RawBeside::Forget { key: self.space.record(&key) },
            SideWrite::ForgetStream(stream) => RawBeside::Forget { key: self.space.stream(&stream) },
            SideWrite::Trim(stream, through, bytes) => {
                RawBeside::Trim { stream: self.space.stream(&stream), through, bytes }
            }
        });
        RawCommit {
            record: self.space.record(&record),
            expect: expect.number(),
            body,
            expires,
            not_after,
            append: append.collect(),
            index: index.collect(),
            beside: beside.collect(),
            wake: wake.map(|topic| (self.space.wake(), topic.to_text())),
            rooms: rooms.iter().map(|room| self.room(room)).collect(),
            usage: Some(self.space.usage()),
            quota: held_to_quota.then(|| self.store.limits().bytes_per_tenant),
        }
    }
}
