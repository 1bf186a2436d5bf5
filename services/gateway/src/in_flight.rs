//! Legacy calls under way in this process, by caller, session and request id, so that a message can cancel them.
//!
//! A call is noted before anybody has read whose session it names. The caller is therefore part of the key: whoever names
//! a foreign session finds, replaces and forgets nothing of its owner's.

use domain::{Caller, Principal, SessionId, Tenant};
use mcp::Id;
use std::collections::HashMap;
use std::sync::{Mutex, MutexGuard, PoisonError};
use tokio_util::sync::CancellationToken;

/// A request of a caller in a session that it names.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct RequestKey {
    tenant: Tenant,
    principal: Principal,
    /// The session that the request names.
    pub session: SessionId,
    request: Id,
}

impl RequestKey {
    /// The request of this caller.
    pub fn new(caller: &Caller, session: SessionId, request: Id) -> RequestKey {
        RequestKey { tenant: caller.tenant.clone(), principal: caller.principal.clone(), session, request }
    }
}

/// Calls under way.
#[derive(Debug, Default)]
pub struct InFlight(Mutex<HashMap<RequestKey, CancellationToken>>);

impl InFlight {
    /// Notes a call.
    pub fn insert(&self, key: RequestKey, cancel: CancellationToken) {
        self.lock().insert(key, cancel);
    }

    /// Forgets a call.
    pub fn remove(&self, key: &RequestKey) {
        self.lock().remove(key);
    }

    /// Cancels a call; `false` if it is not here.
    pub fn cancel(&self, key: &RequestKey) -> bool {
        let cancel = self.lock().get(key).cloned();
        cancel.map(|cancel| cancel.cancel()).is_some()
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<RequestKey, CancellationToken>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use domain::{Moment, Scopes};

    fn key(tenant: &str, subject: &str) -> RequestKey {
        let caller = Caller {
            tenant: Tenant::parse(tenant).unwrap(),
            principal: Principal::new("https://login.example", subject),
            scopes: Scopes::default(),
            expires_at: Moment::from_secs(1),
            token: None,
            labels: Vec::new(),
        };
        RequestKey::new(&caller, SessionId::from_random([1; 16]), Id::Text("7".to_owned()))
    }

    #[test]
    fn a_stranger_who_names_the_same_session_and_request_reaches_nothing_of_its_owners() {
        let (calls, hers) = (InFlight::default(), CancellationToken::new());
        calls.insert(key("acme", "ana"), hers.clone());
        for stranger in [key("acme", "bo"), key("other", "ana")] {
            assert!(!calls.cancel(&stranger));
            let his = CancellationToken::new();
            calls.insert(stranger.clone(), his.clone());
            assert!(calls.cancel(&stranger) && his.is_cancelled() && !hers.is_cancelled());
            calls.remove(&stranger);
        }
        assert!(calls.cancel(&key("acme", "ana")) && hers.is_cancelled());
    }
}
