//! The section `limits`: what one caller and one tenant may use.

use super::SettingsError;
use serde::Deserialize;

/// What one caller and one tenant may use, beside what the tenant's own file says.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct LimitSettings {
    /// The part of its tenant's slots that one caller may use, and of the calls per minute while others call too.
    pub caller_share: f64,
    /// Requests a minute of one caller that are no calls.
    pub requests_per_caller: u64,
    /// Requests a minute of one tenant that are no calls.
    pub requests_per_tenant: u64,
    /// Calls of one caller that may wait at once.
    pub waiting_per_caller: u32,
    /// Calls of one tenant that may wait at once.
    pub waiting_per_tenant: u32,
    /// Event streams that one caller may have open.
    pub streams_per_caller: u32,
    /// Event streams that one tenant may have open.
    pub streams_per_tenant: u32,
    /// Open sessions of one caller.
    pub sessions_per_caller: u64,
    /// Open sessions of one tenant.
    pub sessions_per_tenant: u64,
    /// Bytes of the stored runs of one caller.
    pub run_bytes_per_caller: u64,
    /// Bytes of the stored runs of one tenant.
    pub run_bytes_per_tenant: u64,
    /// Bytes of the audit log and the runs of one tenant.
    pub store_bytes_per_tenant: u64,
}

impl LimitSettings {
    /// As the executor takes them.
    pub fn call_limits(&self) -> executor::CallLimits {
        let LimitSettings { caller_share, waiting_per_caller, waiting_per_tenant, .. } = *self;
        let LimitSettings { streams_per_caller, streams_per_tenant, requests_per_caller, requests_per_tenant, .. } =
            *self;
        executor::CallLimits {
            caller_share,
            requests_per_caller,
            requests_per_tenant,
            waiting_per_caller,
            waiting_per_tenant,
            streams_per_caller,
            streams_per_tenant,
        }
    }

    /// As the store takes them.
    pub fn store_limits(&self) -> store::StoreLimits {
        store::StoreLimits {
            sessions_per_caller: self.sessions_per_caller,
            sessions_per_tenant: self.sessions_per_tenant,
            run_bytes_per_caller: self.run_bytes_per_caller,
            run_bytes_per_tenant: self.run_bytes_per_tenant,
            bytes_per_tenant: self.store_bytes_per_tenant,
        }
    }

    pub(super) fn check(&self) -> Result<(), SettingsError> {
        let wrong = |why: &str| Err(SettingsError::Wrong(why.to_owned()));
        if !(self.caller_share > 0.0 && self.caller_share <= 1.0) {
            return wrong("limits.caller_share must be above 0 and at most 1");
        }
        if [self.waiting_per_caller, self.waiting_per_tenant].contains(&0) {
            return wrong("limits.waiting_per_caller and waiting_per_tenant must be above 0");
        }
        if [self.requests_per_caller, self.requests_per_tenant].contains(&0) {
            return wrong("limits.requests_per_caller and requests_per_tenant must be above 0");
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use crate::settings::{DEFAULTS, Settings};

    #[test]
    fn the_defaults_of_the_crates_are_those_of_the_file() {
        let limits = Settings::defaults().unwrap().limits;
        assert_eq!(limits.call_limits(), executor::CallLimits::default());
        assert_eq!(limits.store_limits(), store::StoreLimits::default());
        assert!(DEFAULTS.contains("[limits]"));
        limits.check().unwrap();
    }

    #[test]
    fn a_share_is_a_part() {
        let limits = Settings::defaults().unwrap().limits;
        for foul in [0.0, -0.5, 1.01, f64::NAN] {
            let mut limits = limits.clone();
            limits.caller_share = foul;
            assert!(limits.check().is_err(), "{foul}");
        }
    }
}
