//! Asks whether enough replicas have what was written, once for all who want to know at the same time.
//!
//! `WAIT` stands still on its connection, so one after the other would queue up behind it. Whoever comes while an answer
//! is under way is asked for together with all others who did. The first of them asks; if it gives up, the next one does.

use super::replicas::UNKNOWN;
use super::route::{Batch, Shards};
use super::shard::LinkUse;
use super::{RedisBackend, pipeline};
use crate::error::StoreError;
use crate::keys;
use crate::ops::{HeldRecord, millis};
use redis::{FromRedisValue, Pipeline, Value};
use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;
use tokio::sync::oneshot;
use tokio::time::timeout;

/// How long what is written for replicas to catch up with stays.
const ACK: Duration = Duration::from_secs(1);

/// Those who wait for replicas: one queue for each slot of a cluster, and one where all slots are on one node.
#[derive(Default)]
pub(super) struct ConfirmQueues(Mutex<HashMap<u16, Arc<ConfirmQueue>>>);

#[derive(Default)]
struct ConfirmQueue {
    waiting: Mutex<Vec<WaitingRecord>>,
    /// Held by the one who asks.
    turn: tokio::sync::Mutex<()>,
}

/// A record that somebody wants to be held by enough.
struct WaitingRecord {
    record: String,
    within: Duration,
    told: oneshot::Sender<Result<HeldRecord, StoreError>>,
}

impl ConfirmQueues {
    fn of(&self, slot: u16) -> Arc<ConfirmQueue> {
        Arc::clone(self.0.lock().unwrap_or_else(PoisonError::into_inner).entry(slot).or_default())
    }
}

impl ConfirmQueue {
    fn join(&self, record: &str, within: Duration) -> oneshot::Receiver<Result<HeldRecord, StoreError>> {
        let (told, answer) = oneshot::channel();
        let waiting = WaitingRecord { record: record.to_owned(), within, told };
        self.waiting.lock().unwrap_or_else(PoisonError::into_inner).push(waiting);
        answer
    }

    fn take(&self) -> Vec<WaitingRecord> {
        std::mem::take(&mut self.waiting.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

impl RedisBackend {
    /// Whether anybody but the server that holds this record has to have what it was told.
    pub(crate) fn confirms(&self, record: &str) -> bool {
        // Where nobody serves it, asking will tell so; and a server that was never met may lack what another one took.
        self.shards.of(record).map_or(true, |shard| {
            let replicas = shard.server().replicas();
            replicas.needed() > 0 || !replicas.is_met()
        })
    }

    /// Reads a record, and asks whether enough replicas have all that was written before; the server waits that long for
    /// them to catch up.
    ///
    /// Replicas follow in order, so one that has the later `ack` has everything before it, by whichever connection that
    /// came; and the record is read at the same server, so nothing is confirmed that it has forgotten.
    pub(crate) async fn confirm(&self, record: &str, ack: &str, within: Duration) -> Result<HeldRecord, StoreError> {
        let queue = self.confirming.of(match &self.shards {
            Shards::Single(_) | Shards::Sentinel(_) => 0,
            Shards::Cluster(_) => keys::slot(record),
        });
        let asked = async {
            loop {
                let mut answer = queue.join(record, within);
                tokio::select! {
                    biased; // an answer that is there needs no turn
                    told = &mut answer => if let Ok(told) = told { return told },
                    _turn = queue.turn.lock() => {
                        self.confirm_together(queue.take(), ack).await;
                        if let Ok(told) = answer.await {
                            return told;
                        }
                    }
                }
                // Whoever asked for us has given up.
            }
        };
        timeout(self.deadline, asked).await.unwrap_or(Err(StoreError::Timeout))
    }

    async fn confirm_together(&self, waiting: Vec<WaitingRecord>, ack: &str) {
        let Some(longest) = waiting.iter().map(|one| one.within).max() else { return };
        let records: Vec<&str> = waiting.iter().map(|one| one.record.as_str()).collect();
        let asked = self.wait_for_replicas(&records, ack, longest).await;
        match asked {
            // Whoever has gone meanwhile wants no answer.
            Ok(held) => waiting.into_iter().zip(held).for_each(|(one, held)| drop(one.told.send(Ok(held)))),
            Err(error) => waiting.into_iter().for_each(|one| drop(one.told.send(Err(error.repeated())))),
        }
    }

    /// One round trip: the records, something for the replicas to catch up with, and how many have.
    async fn wait_for_replicas(
        &self,
        records: &[&str],
        ack: &str,
        within: Duration,
    ) -> Result<Vec<HeldRecord>, StoreError> {
        let needed = self.shards.of(ack)?.server().replicas().needed();
        // Standing still would bring nobody nearer who is not known.
        let within = if needed == UNKNOWN { Duration::ZERO } else { within };
        let mut pipe = Pipeline::with_capacity(records.len() + 2);
        for record in records {
            pipe.add_command(pipeline::fetch(record));
        }
        pipe.cmd("SET").arg(ack).arg(1).arg("PX").arg(millis(ACK));
        pipe.cmd("WAIT").arg(needed).arg(millis(within).max(1));
        let mut answers = self.send(LinkUse::Confirming, "confirm", Batch::whole(&pipe, ack)).await?;
        let have = u64::from_redis_value(answers.pop().unwrap_or(Value::Nil)).map_err(|_| pipeline::ODD)?;
        answers.truncate(records.len());
        // A replica may have come or gone while the server waited; the greater need counts.
        let needed = needed.max(self.shards.of(ack)?.server().replicas().needed());
        let enough = needed != UNKNOWN && have >= u64::from(needed);
        answers.into_iter().map(|held| Ok(HeldRecord { record: pipeline::record(held)?, enough })).collect()
    }
}
