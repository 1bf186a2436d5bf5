//! Failures that any step of a call may end with, and the randomness every id needs.

use domain::text::error_chain;
use domain::{Code, Failure};
use store::StoreError;

/// The state store did not answer, or has no room for this tenant or caller, so nothing was executed.
pub(crate) fn no_store(error: &StoreError) -> Failure {
    if let StoreError::QuotaReached(quota) = error {
        return Failure::new(error.code(), quota.to_string()).next(quota.next());
    }
    tracing::warn!(error = %error_chain(error), "the state store failed a call");
    error.failure(", so nothing was executed")
}

/// 128 random bits for an id.
pub(crate) fn random() -> Result<[u8; 16], Failure> {
    store::random_bits().map_err(|_| Failure::new(Code::Internal, "the system gave no randomness"))
}
