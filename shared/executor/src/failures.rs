//! Failures that any step of a call may end with, and the randomness every id needs.

use domain::{Code, Failure};
use store::StoreError;

/// The state store did not answer, or has no room for this tenant or caller, so nothing was executed.
pub(crate) fn no_store(error: &StoreError) -> Failure {
    if let StoreError::QuotaReached(quota) = error {
        return Failure::new(error.code(), quota.to_string()).next(quota.next());
    }
    tracing::warn!(error = %chain(error), "the state store failed a call");
    Failure::new(error.code(), "the state store did not answer, so nothing was executed")
        .next("try again shortly")
        .retry_after_ms(1_000)
}

/// An error and its causes, in one line.
pub(crate) fn chain(error: &dyn std::error::Error) -> String {
    let mut text = error.to_string();
    let mut cause = error.source();
    while let Some(inner) = cause {
        text.push_str(": ");
        text.push_str(&inner.to_string());
        cause = inner.source();
    }
    text
}

/// 128 random bits for an id.
pub(crate) fn random() -> Result<[u8; 16], Failure> {
    store::random_bits().map_err(|_| Failure::new(Code::Internal, "the system gave no randomness"))
}
