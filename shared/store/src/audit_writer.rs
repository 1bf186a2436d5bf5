//! The writing of audit entries: what comes in for a tenant while its last batch is being written goes together.
//!
//! An opening is written at once if nothing of its tenant is under way, and its call waits until that is done; whatever
//! comes in meanwhile is the next batch, one item of the stream. "At once" means: as soon as no further call of the tenant
//! is ready to come along on this runtime. A closing entry that nobody waits for gathers for a moment first, so that the
//! next opening takes it along.
//!
//! One task writes for a tenant, on the runtime that asked, because each runtime has a connection of its own. It ends when
//! nothing is left to write, so a tenant that is idle has no task and no place in the map.
//!
//! Bounded: a tenant whose queue is full makes its callers wait, so a slow store slows them instead of filling memory.
//! Whoever gives up before a batch is taken is left out of it. A batch that failed fails every call in it; its closing
//! entries are repeated until the store takes them. If only the answer got lost they stand in the audit log twice, under
//! the same id; a missing entry would be worse. A process that dies loses what has gathered, and those calls stay open in
//! the audit log, as does a call whose process dies before it ends.

use crate::keys::KeySpace;
use crate::ops::{EnterStep, EntryStep, EntryVerdict, Op, OpResults};
use crate::seal::Unsealed;
use crate::store::Backend;
use crate::{EntryPlace, StoreError, StreamName};
use domain::Tenant;
use futures_util::FutureExt;
use std::collections::{HashMap, VecDeque};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;
use tokio::runtime::{Handle, Id};
use tokio::sync::{Notify, OwnedSemaphorePermit, Semaphore, oneshot};
use tokio::time::{Instant, sleep_until, timeout};
use tokio_util::sync::{CancellationToken, DropGuard};
use tokio_util::task::TaskTracker;

/// The window in which calls are counted.
pub(crate) const MINUTE: Duration = Duration::from_secs(60);
/// How many entries go together at most.
const BATCH: usize = 128;
/// No further entry is added to a batch of so many bytes.
const BATCH_BYTES: usize = 128 << 10;
/// How many bytes of one tenant may wait.
const QUEUE_BYTES: u32 = 8 << 20;
/// How often a batch may wait for calls that are ready to come along; each time is one turn of the runtime.
const MOST_TURNS: usize = 16;
/// How long to wait before closing entries are tried again.
const AGAIN_AFTER: Duration = Duration::from_millis(200);

/// What became of an entry that somebody waited for.
pub(crate) struct EnteredEntry {
    pub(crate) verdict: EntryVerdict,
    /// Where it stands; nowhere if it was refused.
    pub(crate) place: Option<EntryPlace>,
    /// How long the calls of this minute stay used up.
    pub(crate) left: Duration,
    /// The answers to what was read along.
    pub(crate) answers: OpResults,
}

impl EnteredEntry {
    /// The place of an entry that cannot be refused.
    pub(crate) fn place(self) -> Result<EntryPlace, StoreError> {
        self.place.ok_or(StoreError::Corrupt { what: "an audit entry without a place" })
    }
}

type EntryReply = oneshot::Sender<Result<EnteredEntry, StoreError>>;

/// An entry that is to be written.
struct WaitingEntry {
    step: EntryStep,
    /// What is read along.
    reads: Vec<Op>,
    /// Who waits for it.
    reply: Option<EntryReply>,
    _room: OwnedSemaphorePermit,
}

impl WaitingEntry {
    fn is_given_up(&self) -> bool {
        self.reply.as_ref().is_some_and(EntryReply::is_closed)
    }
}

/// What waits for the writer of one tenant.
struct EntryQueue {
    waiting: VecDeque<WaitingEntry>,
    /// When the first of those came that nobody waits for.
    since: Option<Instant>,
    room: Arc<Semaphore>,
    wake: Arc<Notify>,
}

impl EntryQueue {
    /// Puts an entry last, and tells the task if somebody waits for it.
    fn add(&mut self, entry: WaitingEntry) {
        if entry.reply.is_some() {
            self.wake.notify_one();
        } else {
            self.since.get_or_insert_with(Instant::now);
        }
        self.waiting.push_back(entry);
    }

    fn is_urgent(&self) -> bool {
        self.waiting.len() >= BATCH || self.waiting.iter().any(|entry| entry.reply.is_some())
    }

    /// The next entries, at least one.
    fn take(&mut self) -> Vec<WaitingEntry> {
        let (mut batch, mut bytes) = (Vec::new(), 0);
        let fits = |bytes: usize, next: &WaitingEntry| bytes == 0 || bytes + next.step.body.len() <= BATCH_BYTES;
        while batch.len() < BATCH && self.waiting.front().is_some_and(|next| fits(bytes, next)) {
            let Some(next) = self.waiting.pop_front() else { break };
            if !next.is_given_up() {
                bytes += next.step.body.len();
                batch.push(next);
            }
        }
        self.since = self.waiting.front().map(|_| Instant::now());
        batch
    }
}

type QueueName = (Id, Tenant);

struct WriterParts {
    backend: Arc<Backend>,
    queues: Mutex<EntryQueues>,
    round_trips: Arc<AtomicU64>,
    unsealed: Arc<Unsealed>,
    /// Tells the tasks that closing entries get only one more try.
    closing: CancellationToken,
    deadline: Duration,
}

/// The queues of those tenants for which something is being written.
#[derive(Default)]
struct EntryQueues {
    of: HashMap<QueueName, EntryQueue>,
    closed: bool,
}

impl WriterParts {
    fn queues(&self) -> MutexGuard<'_, EntryQueues> {
        self.queues.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The queues, as long as they take anything.
    fn open_queues(&self) -> Result<MutexGuard<'_, EntryQueues>, StoreError> {
        let queues = self.queues();
        if queues.closed { Err(closed()) } else { Ok(queues) }
    }
}

pub(crate) struct AuditWriter {
    parts: Arc<WriterParts>,
    tasks: TaskTracker,
    closing: DropGuard,
}

fn closed() -> StoreError {
    StoreError::unavailable("the audit log is closed")
}

impl AuditWriter {
    pub(crate) fn new(
        backend: Arc<Backend>,
        deadline: Duration,
        round_trips: Arc<AtomicU64>,
        unsealed: Arc<Unsealed>,
    ) -> AuditWriter {
        let closing = CancellationToken::new();
        let queues = Mutex::default();
        let parts = WriterParts { backend, queues, round_trips, unsealed, closing: closing.clone(), deadline };
        AuditWriter { parts: Arc::new(parts), tasks: TaskTracker::new(), closing: closing.drop_guard() }
    }

    /// Writes an entry and waits for it, no longer than the deadline; `reads` are answered from the same round trip.
    pub(crate) async fn enter(
        &self,
        tenant: &Tenant,
        space: &KeySpace,
        step: EntryStep,
        reads: Vec<Op>,
    ) -> Result<EnteredEntry, StoreError> {
        let (reply, answer) = oneshot::channel();
        let entered = async {
            self.push(tenant, space, step, reads, Some(reply)).await?;
            // The task is gone only together with its runtime, or the process.
            answer.await.map_err(|_| closed())?
        };
        timeout(self.parts.deadline, entered).await.map_err(|_| StoreError::Timeout)?
    }

    /// Queues an entry that nobody waits for, waiting for room no longer than the deadline.
    pub(crate) async fn queue(&self, tenant: &Tenant, space: &KeySpace, step: EntryStep) -> Result<(), StoreError> {
        let mut queued = std::pin::pin!(self.push(tenant, space, step, Vec::new(), None));
        // As a rule it is queued at once, and nothing has to watch the time.
        if let Some(queued) = queued.as_mut().now_or_never() {
            return queued;
        }
        timeout(self.parts.deadline, queued).await.map_err(|_| StoreError::Timeout)?
    }

    async fn push(
        &self,
        tenant: &Tenant,
        space: &KeySpace,
        step: EntryStep,
        reads: Vec<Op>,
        reply: Option<EntryReply>,
    ) -> Result<(), StoreError> {
        // Without a runtime, as when one ends, nobody could write.
        let name = (Handle::try_current().map_err(|_| closed())?.id(), tenant.clone());
        let bytes = u32::try_from(step.body.len()).unwrap_or(u32::MAX).min(QUEUE_BYTES);
        let room = {
            let mut queues = self.parts.open_queues()?;
            match queues.of.get_mut(&name) {
                Some(queue) => {
                    // Nearly always there is room, and whoever waits for some has had what was free reserved.
                    if let Ok(held) = Arc::clone(&queue.room).try_acquire_many_owned(bytes) {
                        queue.add(WaitingEntry { step, reads, reply, _room: held });
                        return Ok(());
                    }
                    Arc::clone(&queue.room)
                }
                None => Arc::new(Semaphore::new(QUEUE_BYTES as usize)),
            }
        };
        let held = Arc::clone(&room).acquire_many_owned(bytes).await.map_err(|_| closed())?;
        let entry = WaitingEntry { step, reads, reply, _room: held };
        let mut fresh = None;
        {
            let mut queues = self.parts.open_queues()?;
            let queue = queues.of.entry(name.clone()).or_insert_with(|| {
                let (parts, wake) = (Arc::clone(&self.parts), Arc::new(Notify::new()));
                let (space, held, woken) = (space.clone(), HeldEntries::default(), Arc::clone(&wake));
                fresh = Some((WriterTask { parts, name, space, held, done: false }, woken));
                EntryQueue { waiting: VecDeque::new(), since: None, room, wake }
            });
            queue.add(entry);
        }
        // Not under the lock: a runtime that is ending drops the task at once, and that takes the queue out.
        if let Some((task, wake)) = fresh {
            self.tasks.spawn(task.run(wake));
        }
        Ok(())
    }

    /// Takes nothing more and writes what is queued.
    pub(crate) async fn close(&self) {
        self.parts.queues().closed = true;
        self.closing.token().cancel();
        self.tasks.close();
        self.tasks.wait().await;
    }
}

/// Writes for one tenant until nothing is left.
struct WriterTask {
    parts: Arc<WriterParts>,
    name: QueueName,
    space: KeySpace,
    held: HeldEntries,
    /// Whether the queue was taken out in order.
    done: bool,
}

/// Closing entries that the store did not take. They go by themselves, so that they hold up no call.
#[derive(Default)]
struct HeldEntries {
    entries: VecDeque<WaitingEntry>,
    /// When they are tried again.
    due: Option<Instant>,
}

/// What the writer of a tenant does next.
enum WriterStep {
    /// Write what is there, and what comes along: so many entries are there.
    WriteWithOthers(usize),
    /// Write what is there.
    Write,
    /// Nothing before then, unless an entry comes that somebody waits for.
    WaitUntil(Instant),
    /// Nothing is left.
    End,
}

impl WriterTask {
    async fn run(mut self, wake: Arc<Notify>) {
        while self.gather(&wake).await {
            let batch = self.take();
            if batch.is_empty() {
                continue; // everybody in it has given up
            }
            let last_try = self.parts.closing.is_cancelled();
            if let Err(error) = self.write(batch).await
                && !self.held.entries.is_empty()
            {
                let entries = self.held.entries.len();
                if last_try {
                    tracing::error!(%error, entries, "closing entries of the audit were lost on shutdown");
                    self.held = HeldEntries::default();
                } else {
                    tracing::warn!(%error, entries, "closing entries of the audit wait for the store");
                    self.held.due = Some(Instant::now() + AGAIN_AFTER);
                }
            }
        }
    }

    /// Waits until there is something to write; `false` when nothing is left and the queue is taken out.
    async fn gather(&mut self, wake: &Notify) -> bool {
        loop {
            let closing = self.parts.closing.is_cancelled();
            let due = match self.look(closing) {
                WriterStep::WriteWithOthers(entries) => {
                    self.let_others_come(entries).await;
                    return true;
                }
                WriterStep::Write => return true,
                WriterStep::WaitUntil(due) => due,
                WriterStep::End => return false,
            };
            // Any of them is fine: the next look tells what there is to do.
            tokio::select! {
                () = sleep_until(due) => {}
                () = wake.notified() => {}
                () = self.parts.closing.cancelled(), if !closing => {}
            }
        }
    }

    /// What to do next. A queue with nothing left is taken out.
    fn look(&mut self, closing: bool) -> WriterStep {
        let mut queues = self.parts.queues();
        let Some(queue) = queues.of.get_mut(&self.name) else { return WriterStep::End };
        if queue.is_urgent() {
            return WriterStep::WriteWithOthers(queue.waiting.len());
        }
        let ripe = queue.since.map(|since| since + self.parts.backend.gathers());
        match [ripe, self.held.due].into_iter().flatten().min() {
            Some(due) if closing || due <= Instant::now() => WriterStep::Write,
            Some(due) => WriterStep::WaitUntil(due),
            None => {
                queues.of.remove(&self.name);
                self.done = true;
                WriterStep::End
            }
        }
    }

    /// Lets the runtime turn to whoever is ready, as long as that brings entries: what it has to do anyway is done first,
    /// and the store is asked once for all of them. Nobody waits for a caller that is not there.
    async fn let_others_come(&self, mut entries: usize) {
        for _ in 0..MOST_TURNS {
            tokio::task::yield_now().await;
            let now = self.parts.queues().of.get(&self.name).map_or(0, |queue| queue.waiting.len());
            if now == entries || now >= BATCH {
                return;
            }
            entries = now;
        }
    }

    /// The entries that are written next: those of the queue, or those that are tried again.
    fn take(&mut self) -> Vec<WaitingEntry> {
        let mut queues = self.parts.queues();
        match queues.of.get_mut(&self.name) {
            Some(queue) if !queue.waiting.is_empty() => queue.take(),
            Some(_) | None => {
                self.held.due = None;
                let most = BATCH.min(self.held.entries.len());
                self.held.entries.drain(..most).collect()
            }
        }
    }

    /// Writes a batch and tells whoever waits. What nobody waits for is held if that failed.
    async fn write(&mut self, mut batch: Vec<WaitingEntry>) -> Result<(), StoreError> {
        let mut ops = vec![self.entering(&mut batch)];
        let asked = read_along(&mut ops, &mut batch);
        let waited_for = batch.iter().any(|entry| entry.reply.is_some());
        let written = self.round_trip(&ops, waited_for).await;
        // Even if it failed something may have been written, and is to be sealed then.
        self.parts.unsealed.add(&self.name.1);
        let (entered, answers) = match written.and_then(|mut answers| Ok((answers.entered()?, answers.rest()))) {
            Ok(written) => written,
            Err(error) => {
                self.failed(ops, batch, &error);
                return Err(error);
            }
        };
        if !self.held.entries.is_empty() {
            // The store takes entries again.
            self.held.due = Some(Instant::now());
        }
        let mut places = (0..).map(|index| entered.item.map(|item| EntryPlace { item, index }));
        for ((entry, verdict), asked) in batch.into_iter().zip(entered.verdicts).zip(asked) {
            let place = match verdict {
                EntryVerdict::Written(_) => places.next().flatten(),
                EntryVerdict::TenantExceeded | EntryVerdict::CallerExceeded | EntryVerdict::QuotaReached => None,
            };
            if let Some(reply) = entry.reply {
                let answers = asked.iter().filter_map(|at| answers.get(at - 1).cloned()).collect();
                let answers = OpResults::new(answers);
                // An error means that the call has given up meanwhile, which is its right.
                drop(reply.send(Ok(EnteredEntry { verdict, place, left: entered.left, answers })));
            }
        }
        Ok(())
    }

    async fn round_trip(&self, ops: &[Op], waited_for: bool) -> Result<OpResults, StoreError> {
        if waited_for {
            crate::failpoint::round_trip().await?;
            self.parts.round_trips.fetch_add(1, Ordering::Relaxed);
        }
        self.parts.backend.run(ops).await
    }

    /// The step that writes the entries; their bodies move into it.
    fn entering(&self, batch: &mut [WaitingEntry]) -> Op {
        let none = || EntryStep { body: Vec::new(), judged: None };
        Op::Enter(EnterStep {
            stream: self.space.stream(&StreamName::audit()),
            minute: self.space.minute(),
            window: MINUTE,
            usage: self.space.usage(),
            entries: batch.iter_mut().map(|entry| std::mem::replace(&mut entry.step, none())).collect(),
        })
    }

    /// Tells whoever waits that nothing came of it, and holds the others, with their bodies.
    fn failed(&mut self, ops: Vec<Op>, batch: Vec<WaitingEntry>, error: &StoreError) {
        let Some(Op::Enter(EnterStep { entries: steps, .. })) = ops.into_iter().next() else { return };
        for (entry, step) in batch.into_iter().zip(steps) {
            match entry.reply {
                Some(reply) => drop(reply.send(Err(error.repeated()))),
                None => self.held.entries.push_back(WaitingEntry { step, ..entry }),
            }
        }
    }
}

impl Drop for WriterTask {
    /// A task that ended with its runtime leaves no queue behind that nobody empties.
    fn drop(&mut self) {
        if !self.done {
            self.parts.queues().of.remove(&self.name);
        }
    }
}

/// Adds what the entries want to be read along, the same only once. Tells for each entry which of the steps are its own.
fn read_along(ops: &mut Vec<Op>, batch: &mut [WaitingEntry]) -> Vec<Vec<usize>> {
    let mut known: HashMap<Op, usize> = HashMap::new();
    let asked = |entry: &mut WaitingEntry| {
        std::mem::take(&mut entry.reads)
            .into_iter()
            .map(|read| {
                let next = known.len() + 1;
                *known.entry(read).or_insert(next)
            })
            .collect()
    };
    let asked = batch.iter_mut().map(asked).collect();
    let mut reads: Vec<(Op, usize)> = known.into_iter().collect();
    reads.sort_unstable_by_key(|(_, at)| *at);
    ops.extend(reads.into_iter().map(|(read, _)| read));
    asked
}
