//! The one writer: a thread that takes everything queued into one synced transaction and then answers all of it.
//!
//! One sync serves as many calls as came in during the last one, so throughput grows with load.
//! A failed transaction fails every call in it, and leaves no trace of any.

use super::clock::EmbeddedClock;
use super::fault::fault;
use super::tables::Tables;
use crate::hub::Notifier;
use crate::ops::{Op, OpResult, RawCommit};
use crate::{Committed, StoreError};
use domain::Moment;
use redb::{Database, Durability};
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::{mpsc, oneshot};

/// How many calls one transaction takes in.
const AT_ONCE: usize = 256;
/// How often the sweep comes along with a transaction.
const SWEEP_EVERY: Duration = Duration::from_secs(30);

pub(super) struct WriteJob {
    pub(super) work: WriterTask,
    pub(super) reply: oneshot::Sender<Result<WriteResult, StoreError>>,
}

pub(super) enum WriterTask {
    Batch(Vec<Op>),
    Commit(Box<RawCommit>),
    /// Ends the thread, which lets go of the file.
    Stop,
}

/// What a job gave.
pub(super) enum WriteResult {
    Batch(Vec<OpResult>),
    Commit(Committed),
    Stopped,
}

pub(super) struct EmbeddedWriter {
    pub(super) database: Arc<Database>,
    pub(super) clock: Arc<EmbeddedClock>,
    pub(super) hub: Arc<Notifier>,
    /// When the sweep last came along.
    pub(super) swept: Moment,
}

impl EmbeddedWriter {
    /// Works until told to stop, or until nobody is left who could ask.
    pub(super) fn run(mut self, mut jobs: mpsc::Receiver<WriteJob>) {
        let mut queue = Vec::with_capacity(AT_ONCE);
        while jobs.blocking_recv_many(&mut queue, AT_ONCE) > 0 {
            let (stops, mut group): (Vec<WriteJob>, Vec<WriteJob>) =
                queue.drain(..).partition(|job| matches!(job.work, WriterTask::Stop));
            // Whoever gave up before we began is spared the change.
            group.retain(|job| !job.reply.is_closed());
            if !group.is_empty() {
                self.settle(group);
            }
            if !stops.is_empty() {
                drop(self);
                stops.into_iter().for_each(|stop| answer(stop, Ok(WriteResult::Stopped)));
                return;
            }
        }
    }

    fn settle(&mut self, group: Vec<WriteJob>) {
        let mut wakes = Vec::new();
        match self.transact(&group, &mut wakes) {
            Ok(given) => {
                // Wake-ups first: whoever begins to watch after the answer is not told of what it knows already.
                wakes.into_iter().for_each(|(channel, text)| self.hub.deliver(&channel, &text));
                group.into_iter().zip(given).for_each(|(job, given)| answer(job, Ok(given)));
            }
            Err(error) => {
                let error = Arc::new(error);
                tracing::warn!(db.system.name = "redb", error.type = %error, "a transaction of the store failed");
                group.into_iter().for_each(|job| answer(job, Err(fault(&error))));
            }
        }
    }

    fn transact(
        &mut self,
        group: &[WriteJob],
        wakes: &mut Vec<(String, String)>,
    ) -> Result<Vec<WriteResult>, redb::Error> {
        let mut transaction = self.database.begin_write()?;
        transaction.set_durability(Durability::Immediate)?;
        let mut given = Vec::with_capacity(group.len());
        {
            let mut tables = Tables::open(&transaction)?;
            for job in group {
                given.push(carry_out(&mut tables, &job.work, self.clock.now(), wakes)?);
            }
            let now = self.clock.now();
            if now.since(self.swept) >= SWEEP_EVERY {
                tables.sweep(now)?;
                self.swept = now;
            }
            tables.note_time(now)?;
        }
        transaction.commit()?;
        Ok(given)
    }
}

fn carry_out(
    tables: &mut Tables<'_>,
    work: &WriterTask,
    now: Moment,
    wakes: &mut Vec<(String, String)>,
) -> Result<WriteResult, redb::Error> {
    match work {
        WriterTask::Batch(ops) => {
            let mut answers = Vec::with_capacity(ops.len());
            for op in ops {
                answers.push(tables.step(op, now)?);
                if let Op::Publish { channel, text } = op {
                    wakes.push((channel.clone(), text.clone()));
                }
            }
            Ok(WriteResult::Batch(answers))
        }
        WriterTask::Commit(commit) => {
            let committed = tables.commit(commit, now)?;
            if matches!(committed, Committed::Done(..)) {
                wakes.extend(commit.wake.clone());
            }
            Ok(WriteResult::Commit(committed))
        }
        WriterTask::Stop => Ok(WriteResult::Stopped),
    }
}

fn answer(job: WriteJob, given: Result<WriteResult, StoreError>) {
    // An error means that the asker has given up meanwhile, which is its right.
    drop(job.reply.send(given));
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ops::{EnterStep, EntryStep};
    use redb::ReadableDatabase;

    #[test]
    fn what_is_queued_is_settled_before_the_stop_and_what_was_given_up_is_left_out() {
        let database = redb::Database::builder().create_with_backend(redb::backends::InMemoryBackend::new()).unwrap();
        let (database, clock) = (Arc::new(database), Arc::new(EmbeddedClock::starting_at(0)));
        let writer = EmbeddedWriter {
            database: Arc::clone(&database),
            clock,
            hub: Notifier::local(),
            swept: Moment::from_millis(0),
        };
        let (sender, receiver) = mpsc::channel(8);
        let append = |name: &str| {
            let (stream, entries) = (name.to_owned(), vec![EntryStep { body: b"{}".to_vec(), judged: None }]);
            let (minute, usage) = ("minute".to_owned(), "usage".to_owned());
            let step = EnterStep { stream, minute, window: Duration::from_secs(60), usage, entries };
            WriterTask::Batch(vec![Op::Enter(step)])
        };
        let queue = |work| {
            let (reply, answer) = oneshot::channel();
            assert!(sender.try_send(WriteJob { work, reply }).is_ok());
            answer
        };
        let (one, given_up, two) = (queue(append("one")), queue(append("given up")), queue(append("two")));
        let stopped = queue(WriterTask::Stop);
        drop(given_up);

        writer.run(receiver);

        for mut answer in [one, two] {
            assert!(matches!(answer.try_recv(), Ok(Ok(WriteResult::Batch(_)))));
        }
        assert!(matches!({ stopped }.try_recv(), Ok(Ok(WriteResult::Stopped))));
        let snapshot = database.begin_read().unwrap();
        let mut names = Vec::new();
        let table = snapshot.open_table(super::super::tables::STREAMS).unwrap();
        for entry in redb::ReadableTable::iter(&table).unwrap() {
            let (key, _) = entry.unwrap();
            names.push(key.value().0.to_owned());
        }
        assert_eq!(names, ["one", "two"]);
        assert_eq!(Arc::strong_count(&database), 1, "the writer has let go of the file");
    }
}
