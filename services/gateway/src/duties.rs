//! What has to be done for tenants in the background, and which replica does it.
//!
//! Everything starts from one index of the store that names the tenants with something due ([`store::DutyStore`]): a tenant
//! that is not in it costs nothing, however many there are. Each tenant has an owner among the replicas that are there,
//! by rendezvous: all of them compute the same order for a tenant, and the first of it acts. The second acts when a duty
//! was due for a moment and is still there, the third a moment later. So a replica that died, or cannot serve the tenant,
//! is stood in for within seconds, and nothing but the order has to be agreed on: whoever acts does so by compare-and-set.
//!
//! A duty is only a hint, and a hint can be lost. A walk over all tenants looks at each of them once in a long while, and
//! once soon after the start; it is shared among the replicas and never faster than a fixed pace.
//!
//! Not here: what is done about runs (see `executor::runs::sweep`) and audit logs (see [`sealing`](crate::sealing)).

use crate::app::Gateway;
use crate::archiving;
use domain::{Moment, Tenant, json};
use std::collections::{BTreeSet, HashMap, HashSet};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};
use store::{Duty, StoreError, TenantAtRest};
use tokio::sync::Semaphore;

/// As many duties as are looked at in one round.
const AT_ONCE: usize = 4_096;
/// As many tenants as are swept at once.
const SWEPT_AT_ONCE: usize = 16;
/// How long a replica counts as there after it was last heard of.
const PRESENT_FOR: Duration = Duration::from_secs(5);
/// How long a replica waits for each one before it in a tenant's order.
const STAGGER: Duration = Duration::from_secs(1);
/// How long a tenant is left to the replica that has begun to look at its runs.
const CLAIMED_FOR: Duration = Duration::from_secs(15);
/// How long a duty of a tenant that no replica serves is left alone.
const NOBODYS: Duration = Duration::from_secs(600);
/// How long such a duty has to be due before it counts as nobody's.
const UNCLAIMED: Duration = Duration::from_secs(60);
/// The pause between two tenants on the first walk, and at least on every other one.
const PACES: (Duration, Duration) = (Duration::from_millis(10), Duration::from_millis(400));
/// How often the lists of a tenant that is in use are tidied.
const TIDIED_EVERY: Duration = Duration::from_secs(600);

/// What this replica knows of the others and of what is due.
#[derive(Default)]
pub struct Duties {
    state: Mutex<DutiesState>,
}

#[derive(Default)]
struct DutiesState {
    replicas: Vec<String>,
    /// The store's time, and when it was read.
    clock: Option<(Moment, Instant)>,
    /// How many walks over all tenants were finished.
    walks: u64,
}

impl Duties {
    /// How many replicas come before this one in a tenant's order; none if this one is its owner.
    pub fn rank(&self, tenant: &Tenant, own: &str) -> u32 {
        rank(&self.lock().replicas, tenant, own)
    }

    /// The replicas that were heard of lately; before the first look only this one.
    pub(crate) fn replicas(&self, own: &str) -> Vec<String> {
        let mut replicas = self.lock().replicas.clone();
        if replicas.is_empty() {
            replicas.push(own.to_owned());
        }
        replicas.sort();
        replicas
    }

    /// The store's time, as far as it can be told without asking.
    pub(crate) fn now(&self) -> Option<Moment> {
        self.lock().clock.map(|(now, read)| now.plus(read.elapsed()))
    }

    /// How many walks over all tenants were finished.
    pub fn walks(&self) -> u64 {
        self.lock().walks
    }

    fn lock(&self) -> MutexGuard<'_, DutiesState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn rank(replicas: &[String], tenant: &Tenant, own: &str) -> u32 {
    let weight = |replica: &str| json::sha256_hex(format!("{replica}\n{tenant}").as_bytes());
    let mine = weight(own);
    let before = replicas.iter().filter(|replica| *replica != own && weight(replica) > mine).count();
    u32::try_from(before).unwrap_or(u32::MAX)
}

/// Starts the tasks.
pub(crate) fn watch(gateway: &Arc<Gateway>) {
    let (watched, stopping) = (Arc::clone(gateway), gateway.tasks.stopping().clone());
    gateway.tasks.spawn("duties", async move {
        let mut rounds = Rounds::new(watched);
        let every = rounds.gateway.settings.approvals.sweep_every;
        loop {
            if let Err(error) = rounds.round().await {
                // That the store is away is told of elsewhere; the next round tries again.
                tracing::debug!(%error, "what is due cannot be read");
            }
            tokio::select! {
                () = stopping.cancelled() => break,
                () = tokio::time::sleep(every) => {}
            }
        }
        if let Err(error) = rounds.gateway.store.duties().leave().await {
            tracing::debug!(%error, "other replicas find out by themselves that this one is gone");
        }
    });
    let (watched, stopping) = (Arc::clone(gateway), gateway.tasks.stopping().clone());
    gateway.tasks.spawn("walk", stopping.run_until_cancelled_owned(async move { walk(&watched).await }));
}

/// The rounds in which due tenants are found.
struct Rounds {
    gateway: Arc<Gateway>,
    /// Since when a duty was seen to be due.
    seen: HashMap<Duty, Instant>,
    /// Tenants that are being swept.
    busy: Arc<Mutex<HashSet<Tenant>>>,
    slots: Arc<Semaphore>,
    /// Tenants that are served no longer, and in which something may wait.
    leaving: BTreeSet<Tenant>,
    tidied: Instant,
}

impl Rounds {
    fn new(gateway: Arc<Gateway>) -> Rounds {
        let slots = Arc::new(Semaphore::new(SWEPT_AT_ONCE));
        let (seen, busy, leaving) = (HashMap::new(), Arc::default(), BTreeSet::new());
        Rounds { gateway, seen, busy, slots, leaving, tidied: Instant::now() }
    }

    async fn round(&mut self) -> Result<(), StoreError> {
        let Gateway { store, duties, settings, .. } = &*self.gateway;
        let present_for = PRESENT_FOR.max(settings.approvals.sweep_every * 3);
        let roster = store.duties().look(duties.now(), present_for, AT_ONCE).await?;
        let read = Instant::now();
        {
            let mut state = duties.lock();
            (state.replicas, state.clock) = (roster.replicas, Some((roster.now, read)));
        }
        let due: HashSet<Duty> = roster.due.iter().cloned().collect();
        self.seen.retain(|duty, _| due.contains(duty));
        let (mut swept, mut audits, mut strays) = (Vec::new(), Vec::new(), Vec::new());
        for duty in roster.due {
            let since = *self.seen.entry(duty.clone()).or_insert(read);
            let turn = STAGGER * self.gateway.duties.rank(duty.tenant(), &self.gateway.replica);
            if read.duration_since(since) < turn {
                continue;
            }
            match &duty {
                Duty::Audit(..) => audits.push(duty),
                Duty::Runs(tenant) if self.gateway.tenants.knows(tenant) => swept.push(duty),
                Duty::Runs(_) if read.duration_since(since) >= UNCLAIMED => strays.push(duty),
                Duty::Runs(_) => {}
            }
        }
        self.sweep_each(swept, roster.now).await?;
        self.gateway.sealing.adopt(&self.gateway, audits).await?;
        for duty in strays {
            tidy_up(&self.gateway, &duty, roster.now).await?;
        }
        self.switch_off().await;
        self.look_at_those_that_appeared();
        self.tidy_those_in_use().await;
        Ok(())
    }

    /// Sweeps tenants in the background, each by one task at a time.
    async fn sweep_each(&self, duties: Vec<Duty>, now: Moment) -> Result<(), StoreError> {
        let mut begun = Vec::new();
        for duty in duties {
            let tenant = duty.tenant().clone();
            if self.gateway.tenants.is_suspended(&tenant) {
                // Its runs wait until the configuration is corrected, or for a replica that still has the previous one.
                continue;
            }
            let Ok(slot) = Arc::clone(&self.slots).try_acquire_owned() else { break };
            if lock(&self.busy).insert(tenant.clone()) {
                begun.push((duty, tenant, slot));
            }
        }
        let claimed: Vec<Duty> = begun.iter().map(|(duty, ..)| duty.clone()).collect();
        let written = self.gateway.store.duties().set(&claimed, now.plus(CLAIMED_FOR)).await;
        for (duty, tenant, slot) in begun {
            let (gateway, busy) = (Arc::clone(&self.gateway), Arc::clone(&self.busy));
            self.gateway.tasks.spawn("sweep", async move {
                if let Err(error) = sweep(&gateway, &duty).await {
                    tracing::debug!(%tenant, %error, "the runs of a tenant cannot be looked at");
                }
                lock(&busy).remove(&tenant);
                drop(slot);
            });
        }
        written
    }

    /// Nobody could decide what waits in a tenant that is no longer served, so it is taken back. What cannot be done now is
    /// tried again in the next round.
    async fn switch_off(&mut self) {
        let gateway = &self.gateway;
        self.leaving.extend(gateway.tenants.take_gone());
        self.leaving.retain(|tenant| !gateway.tenants.knows(tenant) || gateway.tenants.is_suspended(tenant));
        for tenant in self.leaving.clone() {
            match gateway.executor.cancel_waiting(&tenant).await {
                Ok(true) => {}
                Ok(false) => {
                    tracing::info!(%tenant, "the tenant is no longer served; what waited for a person was taken back");
                    self.leaving.remove(&tenant);
                }
                Err(failure) => {
                    tracing::debug!(%tenant, code = failure.code.as_str(), "waiting runs were not taken back");
                }
            }
        }
    }

    /// Looks soon at tenants that have just appeared: whoever served them before may have left something undone.
    fn look_at_those_that_appeared(&self) {
        // Until the first walk is over, it may come by at them itself.
        if self.gateway.duties.walks() == 0 {
            return;
        }
        let appeared = self.gateway.tenants.take_appeared();
        if appeared.is_empty() {
            return;
        }
        let (gateway, stopping) = (Arc::clone(&self.gateway), self.gateway.tasks.stopping().clone());
        let looks = async move {
            for tenant in &appeared {
                if gateway.duties.rank(tenant, &gateway.replica) == 0
                    && let Err(error) = look_at(&gateway, tenant).await
                {
                    tracing::debug!(%tenant, %error, "a tenant cannot be looked at");
                }
                tokio::time::sleep(PACES.0).await;
            }
        };
        self.gateway.tasks.spawn("appeared", stopping.run_until_cancelled_owned(looks));
    }

    async fn tidy_those_in_use(&mut self) {
        if self.tidied.elapsed() < TIDIED_EVERY {
            return;
        }
        self.tidied = Instant::now();
        let gateway = Arc::clone(&self.gateway);
        self.gateway.tasks.spawn("tidy", async move {
            for (tenant, _) in gateway.tenants.all() {
                if gateway.duties.rank(&tenant, &gateway.replica) == 0 {
                    gateway.executor.tidy(&tenant).await;
                }
            }
        });
    }
}

/// Looks at the runs of one tenant, and says when they are due next.
async fn sweep(gateway: &Arc<Gateway>, duty: &Duty) -> Result<(), StoreError> {
    let tenant = duty.tenant();
    let snapshot = match gateway.tenants.get_when_read(tenant).await {
        Ok(snapshot) => snapshot,
        // It is due again when the claim is over.
        Err(failure) => {
            tracing::debug!(%tenant, code = failure.code.as_str(), "a tenant with due runs cannot be served");
            return Ok(());
        }
    };
    let next = gateway.executor.sweep(&snapshot, tenant).await?;
    drop(snapshot);
    settle(gateway, duty, next).await
}

/// Moves a duty to when it is due next, and looks once more behind that: a run may have changed meanwhile, and its hint
/// may have come before.
async fn settle(gateway: &Gateway, duty: &Duty, next: Option<Moment>) -> Result<(), StoreError> {
    let duties = gateway.store.duties();
    let now = gateway.duties.now().unwrap_or(Moment::from_millis(0));
    let next = next.map(|at| at.max(now.plus(gateway.settings.approvals.sweep_every)));
    match next {
        Some(at) => duties.set(std::slice::from_ref(duty), at).await?,
        None => duties.remove(std::slice::from_ref(duty)).await?,
    }
    let first = gateway.store.of(duty.tenant()).runs().due(1).await?.runs.first().map(|(_, at)| *at);
    match first {
        Some(at) if next.is_none_or(|next| at < next) => duties.hint(std::slice::from_ref(duty), at.max(now)).await,
        Some(_) | None => Ok(()),
    }
}

/// Sees to a duty of a tenant that no replica serves: it goes if nothing is open in it.
async fn tidy_up(gateway: &Gateway, duty: &Duty, now: Moment) -> Result<(), StoreError> {
    let open = gateway.store.of(duty.tenant()).runs().due(1).await?.runs;
    settle(gateway, duty, (!open.is_empty()).then(|| now.plus(NOBODYS))).await?;
    // What is open there is overdue for good, and `settle` has seen that.
    if open.is_empty() {
        Ok(())
    } else {
        gateway.store.duties().set(std::slice::from_ref(duty), now.plus(NOBODYS)).await
    }
}

/// Looks at each tenant of which this replica is the owner: soon after the start, and once in a long while from then on.
async fn walk(gateway: &Arc<Gateway>) {
    // Before anybody said who is there, every tenant would be this replica's.
    while gateway.duties.now().is_none() {
        tokio::time::sleep(PACES.0).await;
    }
    loop {
        if gateway.duties.walks() == 0 {
            // The first walk comes by at all that are there by now.
            drop(gateway.tenants.take_appeared());
        }
        let names = gateway.tenants.names();
        let own: Vec<&Tenant> =
            names.iter().filter(|tenant| gateway.duties.rank(tenant, &gateway.replica) == 0).collect();
        let every = gateway.settings.audit.look_every;
        let pace = match gateway.duties.walks() {
            0 => PACES.0,
            _ => (every / u32::try_from(own.len().max(1)).unwrap_or(u32::MAX)).max(PACES.1.min(every)),
        };
        if own.is_empty() {
            tokio::time::sleep(every.min(PRESENT_FOR)).await;
        }
        for tenant in own {
            tokio::time::sleep(pace).await;
            // That the store is away is told of elsewhere, and the next walk comes by again.
            if let Err(error) = look_at(gateway, tenant).await {
                tracing::debug!(%tenant, %error, "a tenant cannot be looked at");
            }
        }
        let served: HashSet<&Tenant> = names.iter().collect();
        gateway.archive.status.keep(|tenant| served.contains(tenant));
        let walks = {
            let mut state = gateway.duties.lock();
            state.walks += 1;
            state.walks
        };
        if walks == 1 {
            tracing::info!(tenants = names.len(), "every tenant was looked at once");
        }
    }
}

/// Finds what was lost of a tenant, and what is old enough to go.
async fn look_at(gateway: &Arc<Gateway>, tenant: &Tenant) -> Result<(), StoreError> {
    let Some(now) = gateway.duties.now() else { return Ok(()) };
    let TenantAtRest { next_run, unsealed, oldest_entry, untidy } = gateway.store.of(tenant).at_rest(now).await?;
    if let Some(at) = next_run {
        gateway.store.duties().hint(&[Duty::Runs(tenant.clone())], at).await?;
    }
    if unsealed {
        gateway.sealing.take_over(tenant);
    } else if let Some(oldest) = oldest_entry {
        // Another replica may have died before it had signed or exported what is sealed.
        gateway.archive.sealed(tenant, 0);
        archiving::trim_if_old(gateway, tenant, now.since(oldest)).await;
    }
    if untidy {
        gateway.executor.tidy(tenant).await;
    }
    Ok(())
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn replicas_agree_on_the_owner_of_every_tenant_and_share_them() {
        let replicas: Vec<String> = (0..4).map(|number| format!("rep_{number}")).collect();
        let mut owned = [0; 4];
        for number in 0..400 {
            let tenant = Tenant::parse(&format!("t{number}")).unwrap();
            let mut ranks: Vec<u32> = replicas.iter().map(|own| rank(&replicas, &tenant, own)).collect();
            owned[ranks.iter().position(|rank| *rank == 0).unwrap()] += 1;
            ranks.sort_unstable();
            assert_eq!(ranks, [0, 1, 2, 3], "each has its own place");
        }
        assert!(owned.iter().all(|owned| (60..=140).contains(owned)), "{owned:?}");
    }

    #[test]
    fn only_tenants_of_a_replica_that_is_gone_change_their_owner() {
        let all: Vec<String> = (0..4).map(|number| format!("rep_{number}")).collect();
        let owner = |replicas: &[String], tenant: &Tenant| {
            replicas.iter().find(|own| rank(replicas, tenant, own) == 0).cloned().unwrap()
        };
        for number in 0..100 {
            let tenant = Tenant::parse(&format!("t{number}")).unwrap();
            let (before, after) = (owner(&all, &tenant), owner(&all[1..], &tenant));
            assert!(before == after || before == all[0], "{tenant}");
        }
    }
}
