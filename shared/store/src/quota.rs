//! How much is stored for one tenant and one caller at most.
//!
//! Every number is counted in the commit that changes it, so none of them drifts: sessions and runs by their indexes, the
//! bytes of runs by indexes whose ranks are added up, and the tenant's bytes as what was appended to its streams and what
//! its runs hold. Documents, secrets and configurations have limits of their own.

use domain::Code;

/// The most that is stored. Reaching one of them stops what would add to it and nothing else.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct StoreLimits {
    /// Open sessions of one caller.
    pub sessions_per_caller: u64,
    /// Open sessions of one tenant.
    pub sessions_per_tenant: u64,
    /// Bytes of the runs that one caller has asked for.
    pub run_bytes_per_caller: u64,
    /// Bytes of one tenant's runs.
    pub run_bytes_per_tenant: u64,
    /// Bytes of one tenant's audit log and runs.
    pub bytes_per_tenant: u64,
}

/// What the service's own settings say by default.
impl Default for StoreLimits {
    fn default() -> StoreLimits {
        StoreLimits {
            sessions_per_caller: 200,
            sessions_per_tenant: 10_000,
            run_bytes_per_caller: 256 << 20,
            run_bytes_per_tenant: 1 << 30,
            bytes_per_tenant: 20 << 30,
        }
    }
}

/// Which limit was reached, and how much it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum StoreQuota {
    /// Open sessions of one caller.
    #[error("this caller has {0} sessions open already")]
    CallerSessions(u64),
    /// Open sessions of one tenant.
    #[error("the tenant has {0} sessions open already")]
    TenantSessions(u64),
    /// Bytes of the runs that one caller has asked for.
    #[error("the stored runs of this caller have reached {0} bytes")]
    CallerRuns(u64),
    /// Bytes of one tenant's runs.
    #[error("the stored runs of the tenant have reached {0} bytes")]
    TenantRuns(u64),
    /// Bytes of one tenant's audit log and runs.
    #[error("what is stored for the tenant has reached {0} bytes")]
    TenantBytes(u64),
}

impl StoreQuota {
    /// The stable name of reaching any of them.
    pub const CODE: Code = Code::QuotaExceeded;

    /// What whoever reaches it can do.
    pub fn next(self) -> &'static str {
        match self {
            StoreQuota::CallerSessions(_) | StoreQuota::TenantSessions(_) => {
                "close a session that is not needed, or go on in one that is open"
            }
            StoreQuota::CallerRuns(_) | StoreQuota::TenantRuns(_) => {
                "nothing was executed; runs are forgotten 30 days after they end, and the operator can allow more"
            }
            StoreQuota::TenantBytes(_) => {
                "nothing was executed; decisions, await_run and reads of runs and of the audit log go on; ask the operator"
            }
        }
    }
}
