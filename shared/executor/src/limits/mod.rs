//! How much one caller and one tenant may use of this process, and what the one too many is told.
//!
//! Everything here is counted in memory and judged before anything is written: [`TokenBuckets`] bound how often,
//! slots bound how much at once. The store counts once more over all replicas (see [`store::CallRate`]), and what
//! it refuses is refused here until its minute is over, without asking it again.
//! A caller is one principal of one tenant, whichever token it holds.

mod buckets;
mod recent;
mod slots;

pub use buckets::TokenBuckets;
pub use slots::SlotGuard;

use domain::{Caller, Code, Failure, RateExceeded};
use recent::RecentCallers;
use slots::{SlotPools, SlotsTaken};
use std::hash::{BuildHasher, RandomState};
use std::time::Duration;
use store::CallRate;
use telemetry::metrics;
use tokio::time::Instant;

/// How many callers' rates are remembered at once.
const MOST_CALLERS: usize = 50_000;

/// How often sessions that are over are looked for, for one caller that has no room for another.
const LOOKS_A_MINUTE: u64 = 4;

/// What one caller and one tenant may use; the operator's settings.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct CallLimits {
    /// The part of its tenant's slots that one caller may use, and of the calls per minute while others call too; above 0
    /// and at most 1.
    pub caller_share: f64,
    /// How many requests that are no calls one caller may send to this process in a minute.
    pub requests_per_caller: u64,
    /// How many requests that are no calls all callers of one tenant may send to this process in a minute.
    pub requests_per_tenant: u64,
    /// How many calls of one caller may wait at once in this process; they hold no slot.
    pub waiting_per_caller: u32,
    /// How many calls of one tenant may wait at once in this process.
    pub waiting_per_tenant: u32,
    /// How many event streams one caller may have open in this process.
    pub streams_per_caller: u32,
    /// How many event streams one tenant may have open in this process.
    pub streams_per_tenant: u32,
}

/// What the service's own settings say by default.
impl Default for CallLimits {
    fn default() -> CallLimits {
        CallLimits {
            caller_share: 0.75,
            requests_per_caller: 3_000,
            requests_per_tenant: 12_000,
            waiting_per_caller: 64,
            waiting_per_tenant: 512,
            streams_per_caller: 64,
            streams_per_tenant: 1_024,
        }
    }
}

impl CallLimits {
    /// A caller's share of what its tenant may use, at least one.
    fn share_of(&self, limit: u64) -> u64 {
        // Limits are far below 2^53, so nothing is lost on the way; the result is not above the limit.
        let share = (limit as f64 * self.caller_share).ceil() as u64;
        share.clamp(1, limit.max(1))
    }
}

/// Whose use is counted, as numbers of this process: a name is hashed once for each request, and no name is copied. The
/// hash is keyed at random, so nobody can choose a name that is counted as another.
#[derive(Debug, Clone, Copy)]
struct CountedAs {
    caller: u64,
    tenant: u64,
}

/// What callers use of this process at the moment.
pub(crate) struct CallAdmission {
    limits: CallLimits,
    hashes: RandomState,
    calls: TokenBuckets<u64>,
    callers: RecentCallers,
    requests: TokenBuckets<u64>,
    noted: TokenBuckets<u64>,
    looked: TokenBuckets<u64>,
    slots: SlotPools,
    requests_under_way: SlotPools,
    waiting: SlotPools,
    streams: SlotPools,
}

impl CallAdmission {
    pub(crate) fn new(limits: CallLimits) -> CallAdmission {
        CallAdmission {
            limits,
            hashes: RandomState::new(),
            calls: TokenBuckets::new(MOST_CALLERS),
            callers: RecentCallers::default(),
            requests: TokenBuckets::new(MOST_CALLERS),
            noted: TokenBuckets::new(MOST_CALLERS),
            looked: TokenBuckets::new(MOST_CALLERS),
            slots: SlotPools::default(),
            requests_under_way: SlotPools::default(),
            waiting: SlotPools::default(),
            streams: SlotPools::default(),
        }
    }

    fn counted(&self, caller: &Caller) -> CountedAs {
        let Caller { tenant, principal, .. } = caller;
        CountedAs { caller: self.hashes.hash_one((tenant, principal)), tenant: self.hashes.hash_one(tenant) }
    }

    /// How many calls a minute a tenant with this limit, and one caller of it beside others, may make.
    pub(crate) fn rate(&self, calls_per_minute: u64) -> CallRate {
        CallRate { tenant: calls_per_minute, caller: self.limits.share_of(calls_per_minute) }
    }

    /// Counts a call, unless its rate is used up.
    pub(crate) fn call(&self, caller: &Caller, rate: CallRate) -> Result<(), RateExceeded> {
        let (counted, now) = (self.counted(caller), Instant::now());
        let alone = !self.callers.note(counted, now);
        let own = CallRate { caller: if alone { rate.tenant } else { rate.caller }, ..rate };
        take(&self.calls, counted, own, now)
            .map_err(|exceeded| if alone { RateExceeded::Tenant(rate.tenant) } else { exceeded })
    }

    /// The store has counted more calls than this process, and refuses them for that long.
    pub(crate) fn calls_exceeded(&self, caller: &Caller, exceeded: RateExceeded, left: Duration) {
        let (counted, now) = (self.counted(caller), Instant::now());
        let (key, limit) = match exceeded {
            RateExceeded::Tenant(limit) => (counted.tenant, limit),
            RateExceeded::Caller(limit) => {
                // A share ends only where others call too, if not here then at another replica.
                self.callers.note_others(counted, now);
                (counted.caller, limit)
            }
        };
        self.calls.close(&key, limit, now + left);
    }

    /// Whether refusals of this caller are to be noted now: once a minute.
    pub(crate) fn notes_refusal(&self, caller: &Caller) -> bool {
        self.noted.take(&self.counted(caller).caller, 1, Instant::now())
    }

    /// Whether sessions of this caller that are over may be looked for now: it costs a look at many.
    pub(crate) fn looks_for_ended_sessions(&self, caller: &Caller) -> bool {
        self.looked.take(&self.counted(caller).caller, LOOKS_A_MINUTE, Instant::now())
    }

    /// Takes one of the tenant's call slots, or says that none is left: a queue here would only hide the trouble.
    pub(crate) fn slot(&self, caller: &Caller, slots: u32) -> Result<SlotGuard, Failure> {
        let share = self.share(slots);
        self.slots.take(self.counted(caller), slots, share).map_err(|taken| {
            let message = match taken {
                SlotsTaken::Tenant => "all of the tenant's call slots are in use".to_owned(),
                SlotsTaken::Caller => format!("this caller's share of the tenant's call slots, {share}, is in use"),
            };
            busy(caller, message, "wait for a running call to end, then call again")
        })
    }

    /// Takes a place among those who wait.
    pub(crate) fn waiting(&self, caller: &Caller) -> Result<SlotGuard, Failure> {
        let CallLimits { waiting_per_caller, waiting_per_tenant, .. } = self.limits;
        self.waiting.take(self.counted(caller), waiting_per_tenant, waiting_per_caller).map_err(|taken| {
            let message = match taken {
                SlotsTaken::Tenant => format!("{waiting_per_tenant} calls of the tenant are waiting already"),
                SlotsTaken::Caller => format!("{waiting_per_caller} calls of this caller are waiting already"),
            };
            busy(caller, message, "wait with fewer calls at once")
        })
    }

    /// Takes a place among the open event streams.
    pub(crate) fn stream(&self, caller: &Caller) -> Result<SlotGuard, Failure> {
        let CallLimits { streams_per_caller, streams_per_tenant, .. } = self.limits;
        self.streams.take(self.counted(caller), streams_per_tenant, streams_per_caller).map_err(|taken| {
            let message = match taken {
                SlotsTaken::Tenant => format!("{streams_per_tenant} event streams of the tenant are open already"),
                SlotsTaken::Caller => format!("{streams_per_caller} event streams of this caller are open already"),
            };
            busy(caller, message, "close a stream that is not needed")
        })
    }

    /// Counts a request beside calls, and takes one of the slots for those. A decision is held to its own caller's rate
    /// alone: agents that use up their tenant's requests must not keep people from deciding.
    pub(crate) fn request(&self, caller: &Caller, slots: u32, decides: bool) -> Result<SlotGuard, Failure> {
        let CallLimits { requests_per_caller, requests_per_tenant, .. } = self.limits;
        let rate = CallRate { tenant: requests_per_tenant, caller: requests_per_caller };
        let counted = self.counted(caller);
        let taken = if decides {
            let own = self.requests.take(&counted.caller, rate.caller, Instant::now());
            own.then_some(()).ok_or(RateExceeded::Caller(rate.caller))
        } else {
            take(&self.requests, counted, rate, Instant::now())
        };
        taken.map_err(|exceeded| {
            let (scope, message) = match exceeded {
                RateExceeded::Tenant(limit) => {
                    ("tenant", format!("the tenant's limit of {limit} requests a minute is used up"))
                }
                RateExceeded::Caller(limit) => {
                    ("caller", format!("this caller's limit of {limit} requests a minute is used up"))
                }
            };
            metrics::RATE_LIMITED.add([scope, metrics::tenant_label(caller.tenant.as_str())], 1);
            Failure::new(Code::RateLimited, message).next("wait, then ask again").retry_after_ms(10_000)
        })?;
        let share = self.share(slots);
        let most = if decides { u32::MAX } else { slots };
        self.requests_under_way.take(counted, most, share).map_err(|taken| {
            let message = match taken {
                SlotsTaken::Tenant => "as many requests of the tenant as may be are under way".to_owned(),
                SlotsTaken::Caller => format!("{share} requests of this caller are under way already"),
            };
            busy(caller, message, "wait for one of them to end, then ask again")
        })
    }

    fn share(&self, slots: u32) -> u32 {
        u32::try_from(self.limits.share_of(u64::from(slots))).unwrap_or(slots)
    }
}

fn take(buckets: &TokenBuckets<u64>, counted: CountedAs, rate: CallRate, now: Instant) -> Result<(), RateExceeded> {
    // The caller's first, so that one who is over its share uses up nothing of the tenant's.
    if !buckets.take(&counted.caller, rate.caller, now) {
        return Err(RateExceeded::Caller(rate.caller));
    }
    if !buckets.take(&counted.tenant, rate.tenant, now) {
        return Err(RateExceeded::Tenant(rate.tenant));
    }
    Ok(())
}

fn busy(caller: &Caller, message: String, next: &str) -> Failure {
    metrics::RATE_LIMITED.add(["slots", metrics::tenant_label(caller.tenant.as_str())], 1);
    Failure::new(Code::RateLimited, message).next(next).retry_after_ms(500)
}

#[cfg(test)]
mod tests;
