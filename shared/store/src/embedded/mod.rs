//! The embedded backend: a redb file, or the same code on redb's memory, in this one process.
//!
//! Changes go through one [`writer`]; reading takes a snapshot right where it is asked for.

mod clock;
mod fault;
mod read;
mod tables;
mod write;
mod writer;

use crate::error::{StoreError, StoreOpenError};
use crate::health::{HealthFinding, HealthReport};
use crate::hub::Notifier;
use crate::ops::{Op, OpResult, RawCommit};
use crate::{Committed, Config};
use clock::EmbeddedClock;
use redb::{Database, ReadableDatabase, ReadableTable, backends::InMemoryBackend};
use std::fs::{File, OpenOptions};
use std::io;
use std::path::{Path, PathBuf};
use std::sync::{Arc, PoisonError, RwLock};
use std::time::Duration;
use tables::{CLOCK, Tables};
use tokio::sync::{mpsc, oneshot};
use writer::{EmbeddedWriter, WriteJob, WriteResult, WriterTask};

/// How many calls may wait for the writer before the next one waits to be queued.
const QUEUE: usize = 1_024;

const MIXED_UP: StoreError = StoreError::Corrupt { what: "an answer of another kind than asked for" };

pub(crate) struct Embedded {
    /// Taken out on closing, so that the file is free for another process.
    database: RwLock<Option<Arc<Database>>>,
    clock: Arc<EmbeddedClock>,
    hub: Arc<Notifier>,
    jobs: mpsc::Sender<WriteJob>,
    deadline: Duration,
}

impl Embedded {
    /// Opens the file, making it if it is missing; without a path the data lives in memory.
    pub(crate) async fn open(path: Option<PathBuf>, config: &Config) -> Result<Embedded, StoreOpenError> {
        let (deadline, cache) = (config.deadline, config.cache_bytes);
        // The whole file is walked, which may take a while.
        let opening = tokio::task::spawn_blocking(move || open(path, cache));
        // redb panics over some of the pages it did not write.
        let (database, mark) = opening.await.map_err(|panic| StoreOpenError::Damaged(panic.into()))??;
        let (database, clock, hub) =
            (Arc::new(database), Arc::new(EmbeddedClock::starting_at(mark)), Notifier::local());
        let (jobs, queue) = mpsc::channel(QUEUE);
        let swept = clock.now();
        let writer =
            EmbeddedWriter { database: Arc::clone(&database), clock: Arc::clone(&clock), hub: Arc::clone(&hub), swept };
        // A thread of its own, because a sync blocks and a transaction has to stay on one thread.
        std::thread::Builder::new()
            .name("store-writer".to_owned())
            .spawn(move || writer.run(queue))
            .map_err(|error| StoreOpenError::System(error.into()))?;
        Ok(Embedded { database: RwLock::new(Some(database)), clock, hub, jobs, deadline })
    }

    pub(crate) fn hub(&self) -> &Arc<Notifier> {
        &self.hub
    }

    /// One round trip: a snapshot if nothing is to be written, else one transaction.
    pub(crate) async fn run(&self, ops: &[Op]) -> Result<Vec<OpResult>, StoreError> {
        // Looking happens right here: a snapshot takes no lock that a writer holds, and the few pages touched are in
        // the page cache, so handing the work to another thread would cost more than the work.
        if !ops.iter().any(writes)
            && let Some(answers) = self.look(ops)?
        {
            return Ok(answers);
        }
        if ops.iter().all(|op| matches!(op, Op::Publish { .. })) {
            return Ok(self.publish(ops));
        }
        match self.submit(WriterTask::Batch(ops.to_vec())).await? {
            WriteResult::Batch(answers) => Ok(answers),
            WriteResult::Commit(_) | WriteResult::Stopped => Err(MIXED_UP),
        }
    }

    /// One round trip.
    pub(crate) async fn commit(&self, commit: RawCommit) -> Result<Committed, StoreError> {
        match self.submit(WriterTask::Commit(Box::new(commit))).await? {
            WriteResult::Commit(committed) => Ok(committed),
            WriteResult::Batch(_) | WriteResult::Stopped => Err(MIXED_UP),
        }
    }

    /// An empty transaction tells whether the disk still takes any.
    pub(crate) async fn health(&self) -> HealthReport {
        let mut health = HealthReport::default();
        match self.submit(WriterTask::Batch(Vec::new())).await {
            Ok(_) => {}
            Err(StoreError::Full) => health.warn(HealthFinding::StoreFull),
            Err(StoreError::ReadOnly) => health.refuse(HealthFinding::StoreReadonly),
            Err(
                StoreError::Unavailable { .. }
                | StoreError::Timeout
                | StoreError::Corrupt { .. }
                | StoreError::QuotaReached(_)
                | StoreError::NotAuthentic { .. },
            ) => health.refuse(HealthFinding::StoreUnreachable),
        }
        health
    }

    /// Ends the writer after what is queued, and lets go of the file.
    pub(crate) async fn close(&self) {
        // An error means that it was closed before.
        drop(self.submit(WriterTask::Stop).await);
        drop(self.database.write().unwrap_or_else(PoisonError::into_inner).take());
    }

    fn look(&self, ops: &[Op]) -> Result<Option<Vec<OpResult>>, StoreError> {
        let database = self.database.read().unwrap_or_else(PoisonError::into_inner).clone().ok_or_else(closed)?;
        let now = self.clock.now();
        let look = || -> Result<Option<Vec<OpResult>>, redb::Error> {
            let snapshot = database.begin_read()?;
            ops.iter().map(|op| read::answer(&snapshot, op, now).transpose()).map(Option::transpose).collect()
        };
        look().map_err(|error| fault::fault(&Arc::new(error)))
    }

    /// A wake-up alone needs no transaction.
    fn publish(&self, ops: &[Op]) -> Vec<OpResult> {
        for op in ops {
            if let Op::Publish { channel, text } = op {
                self.hub.deliver(channel, text);
            }
        }
        vec![OpResult::Done; ops.len()]
    }

    async fn submit(&self, work: WriterTask) -> Result<WriteResult, StoreError> {
        let (reply, answer) = oneshot::channel();
        let asked = async {
            self.jobs.send(WriteJob { work, reply }).await.map_err(|_| closed())?;
            answer.await.map_err(|_| closed())?
        };
        tokio::time::timeout(self.deadline, asked).await.map_err(|_| StoreError::Timeout)?
    }
}

/// Whether a step can only be done in a transaction.
fn writes(op: &Op) -> bool {
    match op {
        Op::Count { .. } | Op::Rerank { .. } | Op::Place { .. } | Op::TakeOut { .. } | Op::Forget { .. } => true,
        // Openings over the rate are seen in a snapshot; any others fall through to the writer.
        Op::Enter(_) => false,
        Op::Get { .. }
        | Op::Touch { .. }
        | Op::Total { .. }
        | Op::Range { .. }
        | Op::RangeBack { .. }
        | Op::Read { .. }
        | Op::Publish { .. }
        | Op::Now => false,
    }
}

fn closed() -> StoreError {
    StoreError::unavailable("the store is closed")
}

/// Opens the file, making it if it is missing, so that only its owner can read it: arguments of runs and documents are
/// in it. One that everybody can read was made by an older build and is closed; a group that was let in stays.
#[cfg(unix)]
fn private_file(path: &Path) -> io::Result<File> {
    use std::os::unix::fs::{OpenOptionsExt, PermissionsExt};
    let file = OpenOptions::new().read(true).write(true).create(true).truncate(false).mode(0o600).open(path)?;
    let open_to_all = file.metadata()?.permissions().mode() & 0o007 != 0;
    if open_to_all && let Err(error) = file.set_permissions(std::fs::Permissions::from_mode(0o600)) {
        tracing::warn!(path = %path.display(), %error, "everybody on this host can read the store's file");
    }
    Ok(file)
}

#[cfg(not(unix))]
fn private_file(path: &Path) -> io::Result<File> {
    OpenOptions::new().read(true).write(true).create(true).truncate(false).open(path)
}

/// Opens the database, makes its tables, and reads how late it was. A file is read to its end first: redb looks at no
/// checksum later on, and a run that reads as absent or as another is worse than a start that is refused.
fn open(path: Option<PathBuf>, cache: usize) -> Result<(Database, u64), StoreOpenError> {
    let mut builder = Database::builder();
    builder.set_cache_size(cache);
    let database = match path {
        Some(path) => {
            let file = private_file(&path).map_err(|error| StoreOpenError::File(error.into()))?;
            let mut database = builder.create_file(file).map_err(fault::refused)?;
            if !database.check_integrity().map_err(fault::refused)? {
                return Err(StoreOpenError::Damaged("pages are not as they were written".into()));
            }
            database
        }
        None => builder.create_with_backend(InMemoryBackend::new()).map_err(fault::refused)?,
    };
    let prepare = || -> Result<u64, redb::Error> {
        let transaction = database.begin_write()?;
        let mark = Tables::open(&transaction)?.mark.get(CLOCK)?.map_or(0, |mark| mark.value());
        transaction.commit()?;
        Ok(mark)
    };
    match prepare() {
        Ok(mark) => Ok((database, mark)),
        Err(error) => Err(StoreOpenError::Damaged(error.into())),
    }
}
