//! The stable names of failures: one spelling on the wire, in metrics and in the audit log.
//!
//! [`Code`] holds the codes of the path of a call. A toolset has a table of its own, made with
//! [`tool_codes!`](crate::tool_codes), and raises [`Code::Tool`]. Every code has a [`Class`], from which the REST status
//! follows, and says whether a retry may help. Add a code only if a caller would act on it.

/// What kind of failure a code is. Transports derive their status from it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Class {
    /// The request or its arguments are wrong.
    Invalid,
    /// The service does not know the caller.
    Unauthenticated,
    /// The caller may not do this.
    Forbidden,
    /// Something the call names does not exist.
    NotFound,
    /// The state of the session, the run or the target does not allow it now.
    Conflict,
    /// It existed and is gone.
    Gone,
    /// The version the caller named is no longer the current one.
    PreconditionFailed,
    /// A bound on size is exceeded.
    TooLarge,
    /// The request is well formed and cannot be carried out as it is.
    Unprocessable,
    /// The caller must slow down.
    RateLimited,
    /// The service has a fault.
    Internal,
    /// A target answered with an error or with nonsense.
    BadGateway,
    /// The service or a target cannot do it for now.
    Unavailable,
    /// It took longer than it may.
    Timeout,
}

/// A code that a toolset raises.
#[derive(Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct ToolCode {
    /// The one spelling.
    pub name: &'static str,
    /// What kind of failure it is.
    pub class: Class,
    /// Whether the same call, unchanged, may succeed later.
    pub retryable: bool,
    /// Whether its message quotes words of the target, so that reading it taints the session.
    pub quotes_target: bool,
    /// Whether it says by itself why nobody is asked: a preview that fails with it is reported as it is.
    pub before_asking: bool,
}

/// Declares the codes of a toolset: a constant for each, and `ALL` for tables and tests. A row is
/// `NAME = "spelling": Class`, then `retry` where the same call may succeed later, `quotes` where the message quotes words of
/// the target, and `early` where it says by itself why nobody is asked to approve the call.
#[macro_export]
macro_rules! tool_codes {
    ($($(#[$doc:meta])* $name:ident = $spelling:literal: $class:ident $($flag:ident)*,)*) => {
        $($(#[$doc])*
        pub const $name: $crate::Code = $crate::Code::Tool(&$crate::ToolCode {
            name: $spelling,
            class: $crate::Class::$class,
            retryable: $crate::code_flag!(retry $($flag)*),
            quotes_target: $crate::code_flag!(quotes $($flag)*),
            before_asking: $crate::code_flag!(early $($flag)*),
        });)*

        /// Every code of this table.
        pub const ALL: &[$crate::Code] = &[$($name),*];
    };
}

/// Whether a flag stands in a row of a table of codes.
#[doc(hidden)]
#[macro_export]
macro_rules! code_flag {
    (retry retry $($rest:ident)*) => { true };
    (quotes quotes $($rest:ident)*) => { true };
    (early early $($rest:ident)*) => { true };
    ($flag:ident $other:ident $($rest:ident)*) => { $crate::code_flag!($flag $($rest)*) };
    ($flag:ident) => { false };
}

/// Writes the enum, the list of all, spelling, class and retry from one table, so that none can be forgotten.
macro_rules! codes {
    ($($(#[$doc:meta])* $name:ident = $spelling:literal: $class:ident $($flag:ident)*,)*) => {
        /// Why something did not happen.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
        pub enum Code {
            $($(#[$doc])* $name,)*
            /// A code of a toolset.
            Tool(&'static ToolCode),
        }

        impl Code {
            /// Every code of the path of a call, for tables and snapshots. Toolsets have their own.
            pub const ALL: [Code; [$($spelling),*].len()] = [$(Code::$name),*];

            /// The one spelling.
            pub const fn as_str(self) -> &'static str {
                match self {
                    $(Code::$name => $spelling,)*
                    Code::Tool(code) => code.name,
                }
            }

            /// What kind of failure it is.
            pub const fn class(self) -> Class {
                match self {
                    $(Code::$name => Class::$class,)*
                    Code::Tool(code) => code.class,
                }
            }

            /// Whether the same call, unchanged, may succeed later.
            pub const fn retryable(self) -> bool {
                match self {
                    $(Code::$name => code_flag!(retry $($flag)*),)*
                    Code::Tool(code) => code.retryable,
                }
            }
        }
    };
}

codes! {
    /// The arguments do not fit the tool's schema.
    InvalidArgument = "invalid_argument": Invalid,
    /// An argument the tool does not have.
    UnknownArgument = "unknown_argument": Invalid,
    /// No such tool, or none this caller may see.
    UnknownTool = "unknown_tool": NotFound,
    /// No such toolset, or none this caller may see.
    UnknownToolset = "unknown_toolset": NotFound,
    /// The tool's toolset is not loaded.
    NotLoaded = "not_loaded": Conflict,
    /// Its toolset is loaded, but not its write tools.
    WriteNotLoaded = "write_not_loaded": Conflict,
    /// The call needs a session and has none.
    SessionRequired = "session_required": Invalid,
    /// The handle names no live session of this caller.
    SessionExpired = "session_expired": NotFound,
    /// The transport's session header names no live session of this caller.
    SessionNotFound = "session_not_found": NotFound,
    /// The thing asked for is not there.
    NotFound = "not_found": NotFound,
    /// Over a size bound.
    TooLarge = "too_large": TooLarge,
    /// Over a quota.
    QuotaExceeded = "quota_exceeded": Conflict,
    /// A rule of the tenant or of the product says no.
    PolicyDenied = "policy_denied": Forbidden,
    /// A kill switch lets nothing through.
    SwitchedOff = "switched_off": Forbidden,
    /// A kill switch lets only reads through.
    SwitchedReadOnly = "switched_read_only": Forbidden,
    /// A person said no.
    Rejected = "rejected": Conflict,
    /// Nobody answered, or nobody began, in time.
    Expired = "expired": Gone,
    /// The run was taken back.
    RunCancelled = "run_cancelled": Conflict,
    /// What was approved is not what would be done now.
    Stale = "stale": Conflict,
    /// What would happen cannot be shown, so nobody is asked to sign.
    PreviewUnavailable = "preview_unavailable": Unprocessable,
    /// Something may have been sent, and nobody knows what came of it.
    OutcomeUnknown = "outcome_unknown": Conflict,
    /// Too many runs of this caller wait for a person.
    TooManyPending = "too_many_pending": RateLimited,
    /// The caller's key was used for another call.
    KeyReused = "key_reused": Conflict,
    /// Somebody else decided first.
    AlreadyDecided = "already_decided": Conflict,
    /// The requester cannot decide its own run.
    OwnRequest = "own_request": Forbidden,
    /// The run is not where this could happen.
    NotPossible = "not_possible": Conflict,
    /// The token lacks a scope.
    InsufficientScope = "insufficient_scope": Forbidden,
    /// The token's tenant is not served here, or switched off.
    ForbiddenTenant = "forbidden_tenant": Forbidden,
    /// The token's issuer may not grant one of its scopes.
    ForbiddenScope = "forbidden_scope": Forbidden,
    /// No valid token.
    Unauthenticated = "unauthenticated": Unauthenticated,
    /// Too many calls.
    RateLimited = "rate_limited": RateLimited retry,
    /// A cursor that is not ours, not this caller's, or out of date.
    BadCursor = "bad_cursor": Invalid,
    /// The call took longer than it may.
    Deadline = "deadline": Timeout retry,
    /// The caller withdrew the call.
    Cancelled = "cancelled": Conflict,
    /// The result does not fit the cap and cannot be cut.
    ResultTooLarge = "result_too_large": Unprocessable,
    /// The state store did not answer; nothing was executed.
    StoreUnavailable = "store_unavailable": Unavailable retry,
    /// The state store is full; nothing was executed.
    StoreFull = "store_full": Unavailable retry,
    /// A record of the state store was not written by this service as it stands; nothing is done by it.
    RecordNotAuthentic = "record_not_authentic": Conflict,
    /// What a person said was written down, but may still be forgotten: say it again.
    DecisionNotDurable = "decision_not_durable": Unavailable retry,
    /// The service is shutting down.
    Draining = "draining": Unavailable retry,
    /// The request is not of the form it must have.
    InvalidRequest = "invalid_request": Invalid,
    /// The Host or Origin of the request is not served here.
    BadOrigin = "bad_origin": Forbidden,
    /// The keys of the token's issuer cannot be had.
    KeysUnavailable = "keys_unavailable": Unavailable retry,
    /// The target changed meanwhile.
    Conflict = "conflict": Conflict,
    /// The tenant has no secret of that name.
    UnknownCredential = "unknown_credential": NotFound,
    /// The external server's tool is not the one that was accepted.
    ToolChanged = "tool_changed": Conflict,
    /// The configuration has mistakes; nothing of it is used.
    ConfigInvalid = "config_invalid": Unprocessable,
    /// The configuration changed meanwhile.
    ConfigConflict = "config_conflict": PreconditionFailed,
    /// The operator does not let the configuration be changed over HTTP.
    ConfigLocked = "config_locked": Conflict,
    /// Our fault.
    Internal = "internal": Internal,
}

impl Code {
    /// Reads the spelling back, among the codes of the path of a call and these of toolsets.
    pub fn parse(text: &str, of_toolsets: &[Code]) -> Option<Code> {
        Code::ALL.iter().chain(of_toolsets).copied().find(|code| code.as_str() == text)
    }

    /// Whether it says by itself why nobody is asked to approve a call.
    pub const fn before_asking(self) -> bool {
        matches!(self, Code::Tool(ToolCode { before_asking: true, .. }))
    }

    /// Whether its message quotes words of a target, so that reading it taints the session.
    pub const fn quotes_target(self) -> bool {
        matches!(self, Code::Tool(ToolCode { quotes_target: true, .. }))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[expect(unreachable_pub, reason = "a table is public in the crate of a toolset")]
    mod library {
        crate::tool_codes! {
            /// The library has no such book.
            BOOK_NOT_FOUND = "book_not_found": NotFound,
            /// Somebody else has the book, and says so.
            BOOK_TAKEN = "book_taken": Conflict retry quotes,
        }
    }

    #[test]
    fn a_toolset_has_codes_of_its_own() {
        use library::{ALL, BOOK_NOT_FOUND, BOOK_TAKEN};
        assert_eq!((BOOK_TAKEN.as_str(), BOOK_TAKEN.class()), ("book_taken", Class::Conflict));
        assert!(BOOK_TAKEN.retryable() && BOOK_TAKEN.quotes_target());
        assert!(!BOOK_NOT_FOUND.retryable() && !BOOK_NOT_FOUND.quotes_target());
        assert_eq!(Code::parse("book_taken", ALL), Some(BOOK_TAKEN));
        assert_eq!(Code::parse("book_taken", &[]), None, "the toolset is not part of the service");
        assert_eq!(Code::parse("not_found", &[]), Some(Code::NotFound));
    }
}
