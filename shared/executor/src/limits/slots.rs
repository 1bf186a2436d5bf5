//! Slots: how much of something may be under way at once, per tenant and per caller.
//!
//! A tenant and a caller that have nothing under way are not remembered, so the memory is that of what is under way.

use domain::{Caller, Principal, Tenant};
use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// What every tenant has under way of one kind. A clone is another handle to the same.
#[derive(Debug, Clone, Default)]
pub struct SlotPools(Arc<Mutex<HashMap<Tenant, SlotPool>>>);

#[derive(Debug, Default)]
struct SlotPool {
    total: u32,
    callers: HashMap<Principal, u32>,
}

/// Whose slots are all in use.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SlotsTaken {
    /// The tenant's.
    Tenant,
    /// The caller's.
    Caller,
}

/// One slot, until it is dropped.
#[derive(Debug)]
pub struct SlotGuard {
    pools: SlotPools,
    tenant: Tenant,
    caller: Principal,
}

impl SlotPools {
    /// Takes a slot, if fewer than so many of the tenant and of the caller are taken.
    pub fn take(&self, caller: &Caller, per_tenant: u32, per_caller: u32) -> Result<SlotGuard, SlotsTaken> {
        let Caller { tenant, principal, .. } = caller;
        let mut pools = self.lock();
        let pool = pools.get(tenant);
        if pool.is_some_and(|pool| pool.total >= per_tenant) || per_tenant == 0 {
            return Err(SlotsTaken::Tenant);
        }
        let own = pool.and_then(|pool| pool.callers.get(principal)).copied().unwrap_or_default();
        if own >= per_caller {
            return Err(SlotsTaken::Caller);
        }
        let pool = pools.entry(tenant.clone()).or_default();
        pool.total += 1;
        *pool.callers.entry(principal.clone()).or_default() += 1;
        Ok(SlotGuard { pools: self.clone(), tenant: tenant.clone(), caller: principal.clone() })
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<Tenant, SlotPool>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for SlotGuard {
    fn drop(&mut self) {
        let mut pools = self.pools.lock();
        let Some(pool) = pools.get_mut(&self.tenant) else { return };
        pool.total = pool.total.saturating_sub(1);
        if let Some(own) = pool.callers.get_mut(&self.caller) {
            *own = own.saturating_sub(1);
            if *own == 0 {
                pool.callers.remove(&self.caller);
            }
        }
        if pool.total == 0 {
            pools.remove(&self.tenant);
        }
    }
}
