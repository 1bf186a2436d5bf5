//! Slots: how much of something may be under way at once, per tenant and per caller.
//!
//! A tenant and a caller that have nothing under way are not remembered, so the memory is that of what is under way.

use super::CountedAs;
use std::collections::HashMap;
use std::collections::hash_map::Entry;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// How many slots of one kind each tenant and each caller has taken. A clone is another handle to the same.
#[derive(Debug, Clone, Default)]
pub(super) struct SlotPools(Arc<Mutex<HashMap<u64, u32>>>);

/// Whose slots are all in use.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum SlotsTaken {
    /// The tenant's.
    Tenant,
    /// The caller's.
    Caller,
}

/// One slot, until it is dropped.
#[derive(Debug)]
pub struct SlotGuard {
    pools: SlotPools,
    counted: CountedAs,
}

impl SlotPools {
    /// Takes a slot, if fewer than so many of the tenant and of the caller are taken.
    pub(super) fn take(&self, counted: CountedAs, per_tenant: u32, per_caller: u32) -> Result<SlotGuard, SlotsTaken> {
        let mut taken = self.lock();
        let of = |key| taken.get(&key).copied().unwrap_or_default();
        if of(counted.tenant) >= per_tenant {
            return Err(SlotsTaken::Tenant);
        }
        if of(counted.caller) >= per_caller {
            return Err(SlotsTaken::Caller);
        }
        for key in [counted.tenant, counted.caller] {
            *taken.entry(key).or_default() += 1;
        }
        Ok(SlotGuard { pools: self.clone(), counted })
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<u64, u32>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for SlotGuard {
    fn drop(&mut self) {
        let mut taken = self.pools.lock();
        for key in [self.counted.tenant, self.counted.caller] {
            if let Entry::Occupied(mut slots) = taken.entry(key) {
                *slots.get_mut() -= 1;
                if *slots.get() == 0 {
                    slots.remove();
                }
            }
        }
    }
}
