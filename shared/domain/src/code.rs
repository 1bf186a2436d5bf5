//! The stable names of failures: one spelling on the wire, in metrics and in the audit.
//!
//! A code is added only if a caller would act on it. How each one travels stands once, in `mcp::codes`.

/// Why something did not happen.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Code {
    /// The arguments do not fit the tool's schema.
    InvalidArgument,
    /// An argument the tool does not have.
    UnknownArgument,
    /// No such tool, or none this caller may see.
    UnknownTool,
    /// No such toolset, or none this caller may see.
    UnknownToolset,
    /// The tool's toolset is not loaded.
    NotLoaded,
    /// Its toolset is loaded, but not its write tools.
    WriteNotLoaded,
    /// The call needs a session and has none.
    SessionRequired,
    /// The handle names no live session of this caller.
    SessionExpired,
    /// The transport's session header names no live session of this caller.
    SessionNotFound,
    /// The thing asked for is not there.
    NotFound,
    /// No document at that path.
    DocNotFound,
    /// The path is taken; overwriting needs the current digest.
    DocExists,
    /// The document changed meanwhile.
    MemoryConflict,
    /// The text seems to hold a secret.
    SecretFound,
    /// The store named in a path does not exist.
    UnknownStore,
    /// Over a size bound.
    TooLarge,
    /// Over a quota.
    QuotaExceeded,
    /// A rule of the tenant or of the product says no.
    PolicyDenied,
    /// A person said no.
    Rejected,
    /// Nobody answered, or nobody began, in time.
    Expired,
    /// The run was taken back.
    RunCancelled,
    /// What was approved is not what would be done now.
    Stale,
    /// What would happen cannot be shown, so nobody is asked to sign.
    PreviewUnavailable,
    /// Something may have been sent, and nobody knows what came of it.
    OutcomeUnknown,
    /// Too many runs of this caller wait for a person.
    TooManyPending,
    /// The caller's key was used for another call.
    KeyReused,
    /// Somebody else decided first.
    AlreadyDecided,
    /// The requester cannot decide its own run.
    OwnRequest,
    /// The run is not where this could happen.
    NotPossible,
    /// The token lacks a scope.
    InsufficientScope,
    /// The token's tenant is not served here, or switched off.
    ForbiddenTenant,
    /// No valid token.
    Unauthenticated,
    /// Too many calls.
    RateLimited,
    /// A cursor that is not ours, not this caller's, or out of date.
    BadCursor,
    /// The call took longer than it may.
    Deadline,
    /// The caller withdrew the call.
    Cancelled,
    /// The result does not fit the cap and cannot be cut.
    ResultTooLarge,
    /// The state store did not answer; nothing was executed.
    StoreUnavailable,
    /// The state store is full; nothing was executed.
    StoreFull,
    /// What a person said was written down, but may still be forgotten: say it again.
    DecisionNotDurable,
    /// The service is shutting down.
    Draining,
    /// The request is not of the form it must have.
    InvalidRequest,
    /// The Host or Origin of the request is not served here.
    BadOrigin,
    /// The keys of the token's issuer cannot be had.
    KeysUnavailable,
    /// Our fault.
    Internal,
}

impl Code {
    /// Every code, for tables and snapshots.
    pub const ALL: [Code; 45] = [
        Code::InvalidArgument,
        Code::UnknownArgument,
        Code::UnknownTool,
        Code::UnknownToolset,
        Code::NotLoaded,
        Code::WriteNotLoaded,
        Code::SessionRequired,
        Code::SessionExpired,
        Code::SessionNotFound,
        Code::NotFound,
        Code::DocNotFound,
        Code::DocExists,
        Code::MemoryConflict,
        Code::SecretFound,
        Code::UnknownStore,
        Code::TooLarge,
        Code::QuotaExceeded,
        Code::PolicyDenied,
        Code::Rejected,
        Code::Expired,
        Code::RunCancelled,
        Code::Stale,
        Code::PreviewUnavailable,
        Code::OutcomeUnknown,
        Code::TooManyPending,
        Code::KeyReused,
        Code::AlreadyDecided,
        Code::OwnRequest,
        Code::NotPossible,
        Code::InsufficientScope,
        Code::ForbiddenTenant,
        Code::Unauthenticated,
        Code::RateLimited,
        Code::BadCursor,
        Code::Deadline,
        Code::Cancelled,
        Code::ResultTooLarge,
        Code::StoreUnavailable,
        Code::StoreFull,
        Code::DecisionNotDurable,
        Code::Draining,
        Code::InvalidRequest,
        Code::BadOrigin,
        Code::KeysUnavailable,
        Code::Internal,
    ];

    /// The one spelling.
    pub const fn as_str(self) -> &'static str {
        match self {
            Code::InvalidArgument => "invalid_argument",
            Code::UnknownArgument => "unknown_argument",
            Code::UnknownTool => "unknown_tool",
            Code::UnknownToolset => "unknown_toolset",
            Code::NotLoaded => "not_loaded",
            Code::WriteNotLoaded => "write_not_loaded",
            Code::SessionRequired => "session_required",
            Code::SessionExpired => "session_expired",
            Code::SessionNotFound => "session_not_found",
            Code::NotFound => "not_found",
            Code::DocNotFound => "doc_not_found",
            Code::DocExists => "doc_exists",
            Code::MemoryConflict => "memory_conflict",
            Code::SecretFound => "secret_found",
            Code::UnknownStore => "unknown_store",
            Code::TooLarge => "too_large",
            Code::QuotaExceeded => "quota_exceeded",
            Code::PolicyDenied => "policy_denied",
            Code::Rejected => "rejected",
            Code::Expired => "expired",
            Code::RunCancelled => "run_cancelled",
            Code::Stale => "stale",
            Code::PreviewUnavailable => "preview_unavailable",
            Code::OutcomeUnknown => "outcome_unknown",
            Code::TooManyPending => "too_many_pending",
            Code::KeyReused => "key_reused",
            Code::AlreadyDecided => "already_decided",
            Code::OwnRequest => "own_request",
            Code::NotPossible => "not_possible",
            Code::InsufficientScope => "insufficient_scope",
            Code::ForbiddenTenant => "forbidden_tenant",
            Code::Unauthenticated => "unauthenticated",
            Code::RateLimited => "rate_limited",
            Code::BadCursor => "bad_cursor",
            Code::Deadline => "deadline",
            Code::Cancelled => "cancelled",
            Code::ResultTooLarge => "result_too_large",
            Code::StoreUnavailable => "store_unavailable",
            Code::StoreFull => "store_full",
            Code::DecisionNotDurable => "decision_not_durable",
            Code::Draining => "draining",
            Code::InvalidRequest => "invalid_request",
            Code::BadOrigin => "bad_origin",
            Code::KeysUnavailable => "keys_unavailable",
            Code::Internal => "internal",
        }
    }

    /// Reads the spelling back.
    pub fn parse(text: &str) -> Option<Code> {
        Code::ALL.into_iter().find(|code| code.as_str() == text)
    }

    /// Whether the same call, unchanged, may succeed later.
    pub const fn retryable(self) -> bool {
        matches!(
            self,
            Code::RateLimited
                | Code::Deadline
                | Code::StoreUnavailable
                | Code::StoreFull
                | Code::DecisionNotDurable
                | Code::Draining
                | Code::KeysUnavailable
        )
    }
}
