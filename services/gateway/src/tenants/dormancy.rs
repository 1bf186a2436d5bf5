//! Tenants that nobody uses: made ready at their first use, let go when they were not used for a while.
//!
//! A dormant tenant is its checked file. Catalog, targets, connections, secrets and the listener for wake-ups are made when
//! somebody asks for the tenant, or when something of it is due, and what holds for it is read from the store then: what
//! was changed meanwhile is never missed. Whatever somebody still holds keeps its tenant awake: a call and a run hold the
//! snapshot, a stream holds a [`TenantUse`].

use super::{ConfigOrigin, ServedTenant, TenantRegistry, TenantsState, lock};
use domain::Tenant;
use executor::Snapshot;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, LazyLock};
use std::time::{Duration, Instant};

/// So many tenants are made ready before anybody asks for them, at the start and when their files appear. A small service
/// thus tells at once what cannot be put to use; a large one starts quickly.
pub(super) const READY_AT_ONCE: usize = 32;

/// Who uses a tenant, and when it was last used. Whoever holds one keeps the tenant awake.
#[derive(Debug)]
pub struct TenantUse {
    /// In milliseconds of this process.
    last: AtomicU64,
}

impl Default for TenantUse {
    fn default() -> TenantUse {
        TenantUse { last: AtomicU64::new(millis_now()) }
    }
}

impl TenantUse {
    fn note(&self) {
        self.last.store(millis_now(), Ordering::Relaxed);
    }

    fn idle_for(&self) -> Duration {
        Duration::from_millis(millis_now().saturating_sub(self.last.load(Ordering::Relaxed)))
    }
}

fn millis_now() -> u64 {
    static BEGAN: LazyLock<Instant> = LazyLock::new(Instant::now);
    u64::try_from(BEGAN.elapsed().as_millis()).unwrap_or(u64::MAX)
}

impl ServedTenant {
    /// The snapshot for somebody who uses the tenant now.
    pub(super) fn in_use(&self) -> Arc<Snapshot> {
        self.used.note();
        Arc::clone(&self.snapshot)
    }

    /// Whether nobody has used it for so long, nobody holds it, and nothing of it would be lost.
    fn can_be_let_go(&self, idle: Duration) -> bool {
        let from_file = matches!(self.origin, ConfigOrigin::File | ConfigOrigin::Http(_) | ConfigOrigin::Suspended);
        let is_held = Arc::strong_count(&self.snapshot) > 1 || Arc::strong_count(&self.used) > 1;
        from_file && !is_held && self.used.idle_for() >= idle && self.attached.iter().all(|one| one.can_be_let_go())
    }
}

impl TenantRegistry {
    /// Keeps a tenant awake for as long as the value is held; `None` if it is dormant, or not served here.
    pub fn hold(&self, tenant: &Tenant) -> Option<Arc<TenantUse>> {
        self.state.load().served.get(tenant).map(|served| {
            served.used.note();
            Arc::clone(&served.used)
        })
    }

    /// Lets tenants go that nobody has used for so long. Tells how many that were.
    pub async fn let_go(self: &Arc<TenantRegistry>, idle: Duration) -> usize {
        self.run_blocking(move |tenants| tenants.let_idle_go(idle)).await.unwrap_or_default()
    }

    fn let_idle_go(&self, idle: Duration) -> usize {
        let mut reconcile = lock(&self.reconcile);
        let old = self.state.load_full();
        let known = |tenant: &Tenant| old.files.contains_key(tenant) && !reconcile.fixed.contains_key(tenant);
        let idle = old.served.iter().filter(|(tenant, served)| known(tenant) && served.can_be_let_go(idle));
        let idle: Vec<Tenant> = idle.map(|(tenant, _)| tenant.clone()).collect();
        if idle.is_empty() {
            return 0;
        }
        let mut next = TenantsState::clone(&old);
        let gone: Vec<(Tenant, ServedTenant)> =
            idle.iter().filter_map(|tenant| next.served.remove_entry(tenant)).collect();
        self.publish(&old, next);
        drop(old);
        let mut back = Vec::new();
        let mut count = 0;
        for (tenant, served) in gone {
            // Somebody may have asked for it in the very moment: then it stays, and is tried again later.
            if Arc::strong_count(&served.snapshot) > 1 {
                back.push((tenant, served));
                continue;
            }
            reconcile.stored.remove(&tenant);
            lock(&self.refresh_locks).remove(&tenant);
            if let Some(ended) = lock(&self.listeners).remove(&tenant) {
                ended.cancel();
            }
            self.parts.toolsets.detach(&tenant);
            self.parts.vault.drop_tenant(&tenant);
            count += 1;
        }
        if !back.is_empty() {
            let old = self.state.load_full();
            let mut next = TenantsState::clone(&old);
            next.served.extend(back);
            self.publish(&old, next);
        }
        count
    }
}
