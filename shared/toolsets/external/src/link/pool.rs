//! Which lines are open, and which of them is used next.
//!
//! A slot stands for one target of one server of one tenant. It holds at most one line, opens it when somebody needs it
//! and one attempt at a time, and remembers the era of the server after the line is closed.

use super::connection::{ConnectionSetup, ServerConnection};
use super::fault::LinkFault;
use super::target::{LinkTarget, TargetDigest};
use super::token::{GivenTokens, TokenSource};
use super::{LinkKey, LinkLimits, LinksConfig, ServerEra};
use domain::Tenant;
use redact::SecretText;
use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::time::Duration;
use tokio::sync::broadcast;
use tokio::task::JoinSet;
use tokio::time::Instant;

/// Where the tokens of one server come from, by what they are fetched with.
type TokenSources = Vec<(TargetDigest, Arc<TokenSource>)>;

/// All slots.
pub(crate) struct Pool {
    config: LinksConfig,
    changes: broadcast::Sender<LinkKey>,
    slots: Mutex<HashMap<LinkKey, Vec<Arc<PoolSlot>>>>,
    /// Where tokens come from, by what they are fetched with. Sessions with other parameters share them.
    sources: Mutex<HashMap<LinkKey, TokenSources>>,
    given: Arc<GivenTokens>,
    /// Closes what nobody uses; begins with the first line.
    sweeping: Mutex<JoinSet<()>>,
}

/// The place of one line.
pub(crate) struct PoolSlot {
    key: LinkKey,
    digest: TargetDigest,
    kept: Mutex<PooledConnection>,
    /// Held by whoever opens the line.
    opening: tokio::sync::Mutex<()>,
}

struct PooledConnection {
    line: Option<Arc<ServerConnection>>,
    era: Option<ServerEra>,
    used: Instant,
}

impl Pool {
    pub(crate) fn new(config: LinksConfig, changes: broadcast::Sender<LinkKey>) -> Arc<Pool> {
        let (slots, sources, sweeping) = (Mutex::default(), Mutex::default(), Mutex::default());
        Arc::new(Pool { config, changes, slots, sources, given: Arc::default(), sweeping })
    }

    /// The slot of a target. If its server has too many, the one that was not used for longest goes.
    pub(crate) fn slot(self: &Arc<Pool>, key: &LinkKey, target: &LinkTarget) -> Arc<PoolSlot> {
        self.sweep();
        let digest = target.digest();
        let mut all = locked(&self.slots);
        let slots = all.entry(key.clone()).or_default();
        if let Some(slot) = slots.iter().find(|slot| slot.digest == digest) {
            return Arc::clone(slot);
        }
        if slots.len() >= self.config.per_server.max(1) {
            let oldest = (0..slots.len()).min_by_key(|&at| slots[at].kept().used);
            oldest.map(|at| slots.swap_remove(at));
        }
        let slot = Arc::new(PoolSlot {
            key: key.clone(),
            digest,
            kept: Mutex::new(PooledConnection { line: None, era: None, used: Instant::now() }),
            opening: tokio::sync::Mutex::new(()),
        });
        slots.push(Arc::clone(&slot));
        slot
    }

    /// An open line: the one there is, or a new one.
    pub(crate) async fn line(
        &self,
        slot: &PoolSlot,
        target: &LinkTarget,
        limits: &LinkLimits,
    ) -> Result<Arc<ServerConnection>, LinkFault> {
        if let Some(line) = slot.open_line() {
            return Ok(line);
        }
        let turn = tokio::time::timeout_at(limits.deadline, slot.opening.lock());
        let _turn = turn.await.map_err(|_| LinkFault::Late)?;
        // Somebody else may have opened it while we waited for our turn.
        if let Some(line) = slot.open_line() {
            return Ok(line);
        }
        let known = slot.kept().era;
        let (config, key, changes) = (&self.config, &slot.key, &self.changes);
        let tokens = self.tokens(key, target)?;
        let setup = ConnectionSetup { config, key, target, limits, tokens: tokens.as_ref(), known, changes };
        let opened = Box::pin(ServerConnection::open(setup)).await;
        let mut kept = slot.kept();
        match opened {
            Ok(line) => {
                let line = Arc::new(line);
                (kept.era, kept.line, kept.used) = (Some(line.era()), Some(Arc::clone(&line)), Instant::now());
                Ok(line)
            }
            Err(fault) => {
                // A server that speaks another language now is asked again which one.
                kept.era.take_if(|_| matches!(fault, LinkFault::NotMcp(_) | LinkFault::Error { .. }));
                Err(fault)
            }
        }
    }

    /// Where the tokens for a target come from. If its server has too many such sources, the first of them goes.
    fn tokens(&self, key: &LinkKey, target: &LinkTarget) -> Result<Option<Arc<TokenSource>>, LinkFault> {
        let Some(credentials) = &target.credentials else { return Ok(None) };
        let digest = credentials.digest();
        let mut all = locked(&self.sources);
        let sources = all.entry(key.clone()).or_default();
        if let Some((_, source)) = sources.iter().find(|(known, _)| *known == digest) {
            return Ok(Some(Arc::clone(source)));
        }
        if sources.len() >= self.config.per_server.max(1) {
            sources.remove(0);
        }
        let client = self.config.client(&credentials.guard)?;
        let given = Arc::clone(&self.given);
        let source = Arc::new(TokenSource::new(key.clone(), credentials.clone(), client, given));
        sources.push((digest, Arc::clone(&source)));
        Ok(Some(source))
    }

    /// The tokens that were given for a tenant's servers lately.
    pub(crate) fn tokens_of(&self, tenant: &Tenant) -> Vec<SecretText> {
        self.given.of(tenant)
    }

    /// Forgets the slots of a tenant, or of one of its servers. Exchanges on their way end by themselves.
    pub(crate) fn forget(&self, tenant: &Tenant, server: Option<&str>) {
        let of_it = |key: &LinkKey| key.tenant == *tenant && server.is_none_or(|server| key.server == server);
        let gone: Vec<_> = locked(&self.slots).extract_if(|key, _| of_it(key)).collect();
        // Closed outside the lock.
        drop(gone);
        locked(&self.sources).retain(|key, _| !of_it(key));
    }

    /// Closes what was not used for a while. Slots stay, since they know the era.
    fn close_idle(&self) {
        let slots: Vec<_> = locked(&self.slots).values().flatten().cloned().collect();
        for slot in slots {
            let mut kept = slot.kept();
            let idle = kept.used.elapsed() >= self.config.idle;
            let closed = kept.line.take_if(|line| idle && Arc::strong_count(line) == 1);
            drop(kept);
            drop(closed);
        }
    }

    fn sweep(self: &Arc<Pool>) {
        let mut sweeping = locked(&self.sweeping);
        if sweeping.is_empty() {
            let (pool, pause) = (Arc::downgrade(self), (self.config.idle / 4).max(Duration::from_millis(10)));
            sweeping.spawn(sweep_every(pause, pool));
        }
    }
}

async fn sweep_every(pause: Duration, pool: Weak<Pool>) {
    loop {
        tokio::time::sleep(pause).await;
        let Some(pool) = pool.upgrade() else { return };
        pool.close_idle();
    }
}

impl PoolSlot {
    fn kept(&self) -> MutexGuard<'_, PooledConnection> {
        locked(&self.kept)
    }

    fn open_line(&self) -> Option<Arc<ServerConnection>> {
        let mut kept = self.kept();
        kept.used = Instant::now();
        kept.line.take_if(|line| !line.is_open());
        kept.line.clone()
    }

    /// The line is used no more; exchanges that are still on it end by themselves.
    pub(crate) fn discard(&self, line: &Arc<ServerConnection>) {
        self.kept().line.take_if(|kept| Arc::ptr_eq(kept, line));
    }

    /// An exchange is over.
    pub(crate) fn touch(&self) {
        self.kept().used = Instant::now();
    }
}

fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
