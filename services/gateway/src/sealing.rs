//! Seals the audit logs that this replica writes to; each within moments, and none that is idle.
//!
//! From its first entry until it is sealed, signed and exported, a line in the index of what is due says that this replica
//! is at work on a tenant's audit log. The line is renewed as long as the replica lives. If it dies, the line comes due and
//! another replica takes the work over.

use crate::app::Gateway;
use crate::authenticity;
use domain::Tenant;
use std::collections::BTreeSet;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};
use store::{Duty, StoreError, TenantStore};
use telemetry::metrics;
use tokio_util::sync::CancellationToken;

/// How far the seal of an audit log may be behind. It is a promise, so there is no setting for it.
const SEAL_EVERY: Duration = Duration::from_secs(1);
/// Items of the audit log that are sealed in one step.
const SEALED_AT_ONCE: usize = 128;
/// How long others leave a line alone that is not renewed, and how often it is.
const HELD_FOR: Duration = Duration::from_secs(10);
const RENEW_EVERY: Duration = Duration::from_secs(3);

/// The audit logs this replica is at work on.
#[derive(Default)]
pub struct Sealing {
    /// Those with a line in the store.
    held: Mutex<BTreeSet<Tenant>>,
    /// Those that somebody else left unsealed.
    taken_over: Mutex<BTreeSet<Tenant>>,
}

impl Sealing {
    /// Seals a tenant's audit log although this replica did not write to it.
    pub(crate) fn take_over(&self, tenant: &Tenant) {
        lock(&self.taken_over).insert(tenant.clone());
    }

    /// Takes over from replicas that do not renew their lines any more.
    pub(crate) async fn adopt(&self, gateway: &Gateway, due: Vec<Duty>) -> Result<(), StoreError> {
        let mut lines = Vec::new();
        for duty in due {
            if let Duty::Audit(tenant, replica) = &duty
                && *replica != gateway.replica
            {
                tracing::info!(%tenant, replica, "the audit log of a tenant is taken over from a replica that fell silent");
                self.take_over(tenant);
                lines.push(duty);
            }
        }
        // First its own lines, so that nothing is nobody's in between.
        self.hold(gateway, lines.iter().map(|duty| duty.tenant().clone()).collect()).await?;
        gateway.store.duties().remove(&lines).await
    }

    /// Says of these tenants that this replica is at work on their audit logs.
    async fn hold(&self, gateway: &Gateway, tenants: BTreeSet<Tenant>) -> Result<(), StoreError> {
        // A file has one process, which finds what it left when it starts again.
        let Some(now) = gateway.duties.now().filter(|_| gateway.store.backend() == "redis") else { return Ok(()) };
        let fresh: Vec<Tenant> = {
            let held = lock(&self.held);
            tenants.into_iter().filter(|tenant| !held.contains(tenant)).collect()
        };
        let lines: Vec<Duty> = fresh.iter().map(|tenant| line(gateway, tenant)).collect();
        gateway.store.duties().set(&lines, now.plus(HELD_FOR)).await?;
        lock(&self.held).extend(fresh);
        Ok(())
    }

    /// Renews the lines of tenants with something left to do, and takes out the others.
    async fn renew(&self, gateway: &Gateway, due: &BTreeSet<Tenant>) -> Result<(), StoreError> {
        let held = lock(&self.held).clone();
        let Some(now) = gateway.duties.now().filter(|_| !held.is_empty()) else { return Ok(()) };
        let unsealed = gateway.store.unsealed_tenants();
        let is_at_work =
            |tenant: &Tenant| due.contains(tenant) || unsealed.contains(tenant) || gateway.archive.is_at_work(tenant);
        let (stays, done): (Vec<Tenant>, Vec<Tenant>) = held.into_iter().partition(is_at_work);
        let lines = |tenants: &[Tenant]| tenants.iter().map(|tenant| line(gateway, tenant)).collect::<Vec<_>>();
        gateway.store.duties().set(&lines(&stays), now.plus(HELD_FOR)).await?;
        // Forgotten first: whoever writes an entry meanwhile writes its line anew.
        lock(&self.held).retain(|tenant| !done.contains(tenant));
        gateway.store.duties().remove(&lines(&done)).await?;
        // An entry may have been written, and its line with it, while the lines were taken out.
        let again = gateway.store.unsealed_tenants().into_iter().filter(|tenant| done.contains(tenant));
        self.hold(gateway, again.collect()).await
    }
}

fn line(gateway: &Gateway, tenant: &Tenant) -> Duty {
    Duty::Audit(tenant.clone(), gateway.replica.clone())
}

/// Starts the tasks.
pub(crate) fn watch(gateway: &Arc<Gateway>) {
    let (watched, stopping) = (Arc::clone(gateway), gateway.tasks.stopping().clone());
    gateway.tasks.spawn("audit lines", async move {
        loop {
            tokio::select! {
                () = stopping.cancelled() => return,
                () = watched.store.has_unsealed() => {}
            }
            // Whatever becomes of the line, the entry is sealed here; the walk finds it should this replica die.
            if let Err(error) = watched.sealing.hold(&watched, watched.store.unsealed_tenants()).await {
                tracing::debug!(%error, "other replicas are not told of audit logs that are being written");
            }
        }
    });
    let (watched, stopping) = (Arc::clone(gateway), gateway.tasks.stopping().clone());
    gateway.tasks.spawn("seal", async move { seal_each(&watched, &stopping).await });
}

async fn seal_each(gateway: &Arc<Gateway>, stopping: &CancellationToken) {
    let (mut due, mut broken) = (BTreeSet::new(), BTreeSet::new());
    let (mut all_sealed, mut renewed) = (Instant::now(), Instant::now());
    loop {
        tokio::select! {
            () = stopping.cancelled() => return,
            () = tokio::time::sleep(SEAL_EVERY) => {}
        }
        authenticity::record(gateway).await;
        due.append(&mut gateway.store.take_unsealed());
        due.append(&mut lock(&gateway.sealing.taken_over));
        if let Err(error) = gateway.sealing.hold(gateway, due.clone()).await {
            tracing::debug!(%error, "other replicas are not told of audit logs that are to be sealed");
        }
        while let Some(tenant) = due.pop_first() {
            match seal(&gateway.store.of(&tenant), stopping).await {
                Ok(entries) => {
                    broken.remove(&tenant);
                    gateway.archive.sealed(&tenant, entries);
                }
                // That the store is away is reported elsewhere; asking it for each tenant would only take longer.
                Err(error) if error.code().retryable() => {
                    due.insert(tenant);
                    break;
                }
                Err(error) => {
                    if broken.insert(tenant.clone()) {
                        tracing::error!(%tenant, %error, "the audit log of a tenant cannot be sealed");
                    }
                }
            }
        }
        // One that cannot be sealed is tried again, and shows in the lag meanwhile.
        due.extend(broken.iter().cloned());
        if due.is_empty() {
            all_sealed = Instant::now();
        }
        metrics::AUDIT_SEAL_LAG.set([], all_sealed.elapsed().as_secs_f64());
        if renewed.elapsed() >= RENEW_EVERY {
            renewed = Instant::now();
            if let Err(error) = gateway.sealing.renew(gateway, &due).await {
                tracing::debug!(%error, "other replicas are not told of audit logs that are being worked on");
            }
        }
    }
}

/// Seals one audit log to its end, and tells how many entries that were.
async fn seal(tenant_store: &TenantStore, stopping: &CancellationToken) -> Result<u64, StoreError> {
    let mut sealed = 0;
    loop {
        let batch = tenant_store.seal(SEALED_AT_ONCE).await?;
        sealed += batch.count as u64;
        if !batch.behind || stopping.is_cancelled() {
            return Ok(sealed);
        }
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
