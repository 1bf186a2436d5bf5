//! Who is behind the address: asked on every new connection, before it is used, and on every look at the store's health.
//!
//! A node that follows another one is not used at all: it takes no changes, and what it holds may be old. A primary that
//! is not the one of before is written into the [`EpochRecord`], so that every process judges the runs it finds alike.

use super::fault::wrong_node;
use super::mark::{EpochContext, EpochRecord};
use super::script;
use crate::config::Confirm;
use crate::keys;
use crate::lineage::{StoreEpoch, StoreEpochs};
use crate::ops::RawCommit;
use crate::{Committed, RecordVersion};
use domain::{Moment, json};
use redis::aio::MultiplexedConnection;
use redis::{ErrorKind, RedisError, Script, ServerErrorKind};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};
use tokio::sync::watch;

/// How long a loss is told of on the readiness page.
const TELL: Duration = Duration::from_secs(600);
/// How often the mark is folded on what another process wrote.
const FOLDS: usize = 8;

pub(super) struct RedisNode {
    key: String,
    script: Script,
    confirm: Confirm,
    known: Mutex<ServerEpoch>,
    lineage: watch::Sender<StoreEpoch>,
}

#[derive(Default)]
struct ServerEpoch {
    mark: Option<EpochRecord>,
    /// The server's name for this run of itself.
    name: Option<String>,
    /// Whether that server was ever seen with a replica. One that falls away is not forgotten while the server stays:
    /// it is the one that would be promoted.
    replicated: bool,
    lost: Option<Instant>,
    /// The server whose mark could not be written, and was told of.
    unwritten: Option<Option<String>>,
}

impl RedisNode {
    pub(super) fn new(prefix: &str, confirm: Confirm) -> RedisNode {
        let (known, lineage) = (Mutex::default(), watch::Sender::new(StoreEpoch::default()));
        RedisNode { key: keys::mark(prefix), script: script::load(), confirm, known, lineage }
    }

    pub(super) fn lineages(&self) -> StoreEpochs {
        StoreEpochs::new(self.lineage.subscribe())
    }

    /// Whether all records were lost not long ago.
    pub(super) fn lost_lately(&self) -> bool {
        self.known().lost.is_some_and(|at| at.elapsed() < TELL)
    }

    /// How many replicas must have a decision or a claim.
    pub(super) fn confirmations(&self) -> u8 {
        match self.confirm {
            Confirm::Auto => u8::from(self.known().replicated),
            Confirm::Exactly(many) => many,
        }
    }

    /// Asks the node who it is, and sees to the mark. Gives its own account of itself, where it lets us ask.
    pub(super) async fn learn(&self, connection: &mut MultiplexedConnection) -> Result<Option<String>, RedisError> {
        let info = account(connection).await?;
        let read = |name: &str| info.as_deref().and_then(|info| field(info, name));
        if read("role") == Some("slave") {
            return Err((ErrorKind::Server(ServerErrorKind::ReadOnly), "the node follows another one").into());
        }
        let name = match (read("run_id"), read("master_replid")) {
            (Some(run), Some(line)) => Some(format!("{run}/{line}")),
            (_, _) => None,
        };
        let replicas = info.as_deref().map_or(0, online);
        self.see_to_mark(connection, name.clone()).await?;
        let mut known = self.known();
        known.replicated = replicas > 0 || (known.replicated && known.name == name);
        known.name = name;
        drop(known);
        Ok(info)
    }

    async fn see_to_mark(
        &self,
        connection: &mut MultiplexedConnection,
        name: Option<String>,
    ) -> Result<(), RedisError> {
        let mut pipe = redis::pipe();
        pipe.cmd("HMGET").arg(&self.key).arg("v").arg("b").cmd("TIME");
        type Told = ((Option<u64>, Option<Vec<u8>>), (u64, u64));
        let ((version, body), (secs, micros)): Told = pipe.query_async(connection).await?;
        let now = Moment::from_millis(secs.saturating_mul(1000).saturating_add(micros / 1000));
        let mut bits = [0; 8];
        getrandom::fill(&mut bits)
            .map_err(|_| RedisError::from((ErrorKind::Client, "the system gave no randomness")))?;
        let here = EpochContext { server: name, now, line: json::hex(&bits) };
        let (mut version, mut found) = (version.unwrap_or(0), body.as_deref().map(read_mark).transpose()?);
        for _ in 0..FOLDS {
            let known = self.known().mark.clone();
            let Some(next) = EpochRecord::due(found.as_ref(), known.as_ref(), &here) else { break };
            match self.write(connection, version, &next).await {
                Ok(Committed::Done(..)) => {
                    found = Some(next);
                    break;
                }
                Ok(Committed::Conflict(newer, body)) => {
                    version = newer.number();
                    found = if newer == RecordVersion::NONE { None } else { Some(read_mark(&body)?) };
                }
                Ok(Committed::Late(_) | Committed::NoRoom(_)) => break,
                Err(error) if wrong_node(&error) || !refused(&error) => return Err(error),
                // A store that is full, or waits for its replicas, keeps the old mark. What we know counts all the same,
                // and the next look tries again.
                Err(_) => {
                    self.expect(&next, here.server);
                    return Ok(());
                }
            }
        }
        if let Some(mark) = found {
            self.adopt(mark);
        }
        Ok(())
    }

    async fn write(
        &self,
        connection: &mut MultiplexedConnection,
        expect: u64,
        mark: &EpochRecord,
    ) -> Result<Committed, RedisError> {
        let odd = || RedisError::from((ErrorKind::Client, "the store's mark cannot be written"));
        let body = Some(serde_json::to_vec(mark).map_err(|_| odd())?);
        let (append, index, beside) = (Vec::new(), Vec::new(), Vec::new());
        let (expires, not_after, wake, rooms, usage, quota) = (None, None, None, Vec::new(), None, None);
        let record = self.key.clone();
        let commit =
            RawCommit { record, expect, body, expires, not_after, append, index, beside, wake, rooms, usage, quota };
        let reply = script::prepare(&self.script, &commit).invoke_async(connection).await?;
        script::read(reply).map_err(|_| odd())
    }

    /// Takes the mark that stands in the store as what is so.
    fn adopt(&self, mark: EpochRecord) {
        let mut known = self.known();
        let lost = known.mark.as_ref().is_some_and(|before| !before.same_line(&mark));
        if lost {
            known.lost = Some(Instant::now());
            tracing::error!(
                db.system.name = "redis",
                generation = mark.generation,
                "the store has lost its records; runs that this process still holds are written back as unknown"
            );
        }
        let lineage = StoreEpoch { generation: mark.generation, since: mark.since };
        (known.mark, known.unwritten) = (Some(mark), None);
        drop(known);
        self.tell(lineage);
    }

    /// Takes a mark that could not be written as what is so, once for each server.
    fn expect(&self, mark: &EpochRecord, name: Option<String>) {
        let mut known = self.known();
        let told = known.unwritten.replace(name.clone()) == Some(name);
        drop(known);
        if !told {
            self.tell(StoreEpoch { generation: mark.generation, since: mark.since });
        }
    }

    /// Never goes back: a connection that still leads to the server of before knows no better.
    fn tell(&self, lineage: StoreEpoch) {
        let moved = self.lineage.send_if_modified(|told| {
            let since =
                if lineage.generation == told.generation { lineage.since.max(told.since) } else { lineage.since };
            let newer = lineage.generation > told.generation || since > told.since;
            if lineage.generation >= told.generation && newer {
                *told = StoreEpoch { since, ..lineage };
                return true;
            }
            false
        });
        if moved && lineage.since.is_some() {
            tracing::warn!(db.system.name = "redis", "the store is held by another server than before");
        }
    }

    fn known(&self) -> MutexGuard<'_, ServerEpoch> {
        self.known.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn read_mark(body: &[u8]) -> Result<EpochRecord, RedisError> {
    serde_json::from_slice(body).map_err(|_| {
        tracing::error!("the store's own mark cannot be read, so nothing it holds is believed");
        (ErrorKind::Parse, "the store's mark cannot be read").into()
    })
}

/// Whether the server answered, and said no.
fn refused(error: &RedisError) -> bool {
    matches!(error.code(), Some("OOM" | "MISCONF" | "NOREPLICAS" | "NOPERM"))
}

/// The server's own account of itself; `None` where it answers but does not let us ask.
async fn account(connection: &mut MultiplexedConnection) -> Result<Option<String>, RedisError> {
    match redis::cmd("INFO").query_async::<String>(connection).await {
        Ok(text) => Ok(Some(text)),
        Err(error) if error.code().is_some() && !unready(&error) => Ok(None),
        Err(error) => Err(error),
    }
}

fn unready(error: &RedisError) -> bool {
    matches!(error.code(), Some("LOADING" | "MASTERDOWN" | "NOAUTH" | "WRONGPASS")) || error.is_timeout()
}

/// One line of the account.
pub(super) fn field<'a>(info: &'a str, name: &str) -> Option<&'a str> {
    info.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(':')).map(str::trim)
}

/// How many replicas follow and have caught up once: those still copying confirm nothing.
fn online(info: &str) -> usize {
    let is_replica = |line: &&str| line.starts_with("slave") && line.contains("state=online");
    info.lines().filter(is_replica).count()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_replica_counts_once_it_has_caught_up() {
        let info = "# Replication\r\nrole:master\r\nconnected_slaves:2\r\n\
                    slave0:ip=127.0.0.1,port=1,state=online,offset=14,lag=0\r\n\
                    slave1:ip=127.0.0.1,port=2,state=wait_bgsave,offset=0,lag=0\r\n";
        assert_eq!(online(info), 1);
        assert_eq!(field(info, "role"), Some("master"));
        assert_eq!(field(info, "rol"), None);
    }
}
