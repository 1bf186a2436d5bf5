//! Who is behind the address: asked on every new connection, before it is used, and on every look at the store's health.
//!
//! A node that follows another one is not used at all: it takes no changes, and what it holds may be old. A primary that
//! is not the one of before is written into the [`EpochRecord`], so that every process judges the runs it finds alike.
//!
//! Not here: what the whole store is, of which this may be one shard (see [`EpochMemory`]).

use super::epochs::EpochMemory;
use super::fault::code;
use super::mark::{EpochContext, EpochRecord};
use super::replicas::ReplicaCount;
use super::script;
use crate::keys;
use crate::ops::RawCommit;
use crate::{Committed, RecordVersion};
use domain::{Moment, json};
use redis::aio::MultiplexedConnection;
use redis::{ErrorKind, RedisError, Script, ServerErrorKind};
use std::sync::{Arc, Mutex, PoisonError};

/// How often the mark is folded on what another process wrote.
const FOLDS: usize = 8;

pub(super) struct RedisNode {
    /// Where its mark stands; nowhere while it serves no slot of its cluster.
    mark: Mutex<Option<String>>,
    /// Whether it is one of several shards.
    joins: bool,
    script: Script,
    replicas: ReplicaCount,
    memory: Arc<EpochMemory>,
}

impl RedisNode {
    /// The one node of a store, or of whoever leads.
    pub(super) fn alone(prefix: &str, replicas: ReplicaCount, memory: Arc<EpochMemory>) -> RedisNode {
        let mark = Mutex::new(Some(keys::mark(prefix)));
        RedisNode { mark, joins: false, script: script::load(), replicas, memory }
    }

    /// A shard of a cluster. Where its mark stands is told when its slots are known.
    pub(super) fn shard(replicas: ReplicaCount, memory: Arc<EpochMemory>) -> RedisNode {
        RedisNode { mark: Mutex::default(), joins: true, script: script::load(), replicas, memory }
    }

    /// Where the mark stands from now on.
    pub(super) fn place_mark(&self, key: Option<String>) {
        *self.mark.lock().unwrap_or_else(PoisonError::into_inner) = key;
    }

    /// The replicas that must have what may not be lost.
    pub(super) fn replicas(&self) -> &ReplicaCount {
        &self.replicas
    }

    /// Asks the node who it is, and sees to the mark. Gives its own account of itself, where it lets us ask.
    pub(super) async fn learn(&self, connection: &mut MultiplexedConnection) -> Result<Option<String>, RedisError> {
        let info = account(connection).await?;
        let read = |name: &str| info.as_deref().and_then(|info| field(info, name));
        if let Some(mode) = read("redis_mode") {
            let fits = mode == if self.joins { "cluster" } else { "standalone" };
            self.memory.is_of_kind(fits, mode);
            if !fits {
                return Err((ErrorKind::Client, "the server is of another kind than store.url says").into());
            }
        }
        if read("role") == Some("slave") {
            return Err((ErrorKind::Server(ServerErrorKind::ReadOnly), "the node follows another one").into());
        }
        let name = match (read("run_id"), read("master_replid")) {
            (Some(run), Some(line)) => Some(format!("{run}/{line}")),
            (_, _) => None,
        };
        let key = self.mark.lock().unwrap_or_else(PoisonError::into_inner).clone();
        if let Some(key) = key {
            self.see_to_mark(connection, &key, name.clone()).await?;
        }
        self.replicas.see(name.as_deref(), info.as_deref().unwrap_or_default());
        Ok(info)
    }

    async fn see_to_mark(
        &self,
        connection: &mut MultiplexedConnection,
        key: &str,
        name: Option<String>,
    ) -> Result<(), RedisError> {
        let mut pipe = redis::pipe();
        pipe.cmd("TIME").cmd("HMGET").arg(key).arg("v").arg("b");
        type Told = ((u64, u64), (Option<u64>, Option<Vec<u8>>));
        let ((secs, micros), (version, body)): Told = match pipe.query_async(connection).await {
            Err(error) if on_its_way(&error) => {
                self.memory.doubt(key, name);
                return Ok(());
            }
            told => told?,
        };
        let now = Moment::from_millis(secs.saturating_mul(1000).saturating_add(micros / 1000));
        let mut bits = [0; 8];
        getrandom::fill(&mut bits)
            .map_err(|_| RedisError::from((ErrorKind::Client, "the system gave no randomness")))?;
        let here = EpochContext {
            server: name,
            now,
            line: json::hex(&bits),
            generation: self.memory.generation(),
            joins: self.joins,
        };
        let (mut version, mut found) = (version.unwrap_or(0), body.as_deref().map(read_mark).transpose()?);
        for _ in 0..FOLDS {
            let known = self.memory.known(key);
            let Some(next) = EpochRecord::due(found.as_ref(), known.as_ref(), &here) else { break };
            match self.write(connection, key, version, &next).await {
                Ok(Committed::Done(..)) => {
                    found = Some(next);
                    break;
                }
                Ok(Committed::Conflict(newer, body)) => {
                    version = newer.number();
                    found = if newer == RecordVersion::NONE { None } else { Some(read_mark(&body)?) };
                }
                Ok(Committed::Late(_) | Committed::NoRoom(_)) => break,
                // A store that is full, waits for its replicas or moves its slots keeps the old mark. What we know counts
                // all the same, and the next look tries again.
                Err(error) if refused(&error) || on_its_way(&error) => {
                    self.memory.expect(key, &next, here.server);
                    return Ok(());
                }
                Err(error) => return Err(error),
            }
        }
        if let Some(mark) = found {
            self.memory.adopt(key, mark);
        }
        Ok(())
    }

    async fn write(
        &self,
        connection: &mut MultiplexedConnection,
        key: &str,
        expect: u64,
        mark: &EpochRecord,
    ) -> Result<Committed, RedisError> {
        let odd = || RedisError::from((ErrorKind::Client, "the store's mark cannot be written"));
        let body = Some(serde_json::to_vec(mark).map_err(|_| odd())?);
        let (append, index, beside) = (Vec::new(), Vec::new(), Vec::new());
        let (expires, not_after, wake, rooms, usage, quota) = (None, None, None, Vec::new(), None, None);
        let record = key.to_owned();
        let commit =
            RawCommit { record, expect, body, expires, not_after, append, index, beside, wake, rooms, usage, quota };
        script::read(script::invoke(&self.script, &commit, connection).await?).map_err(|_| odd())
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

/// Whether the key's slot is being moved to another node, so that its record can be read and written nowhere for a moment.
fn on_its_way(error: &RedisError) -> bool {
    matches!(code(error).as_deref(), Some("ASK" | "TRYAGAIN"))
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_is_found_by_its_whole_name() {
        let info = "# Replication\r\nrole:master\r\nconnected_slaves:2\r\n";
        assert_eq!((field(info, "role"), field(info, "rol")), (Some("master"), None));
    }
}
