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
    /// The cluster knows no such kind.
    UnknownKind,
    /// Several kinds answer to the name.
    AmbiguousKind,
    /// The kind has no such field.
    UnknownField,
    /// The manifest cannot be read, or is none.
    InvalidManifest,
    /// The result that a cursor would continue is too old.
    CursorExpired,
    /// The cursor was given to another caller, or for other arguments.
    CursorMismatch,
    /// The tenant has several clusters, and none was named.
    ClusterRequired,
    /// The tenant has no cluster of that name.
    ClusterUnknown,
    /// The namespace is not one of those the tenant may use.
    NamespaceDenied,
    /// What the product or the tenant protects is left alone.
    Protected,
    /// The image's registry is not one of those the tenant may use.
    ImageDenied,
    /// The target's own rules do not allow it to our identity.
    Forbidden,
    /// An admission rule of the target said no.
    DeniedByAdmission,
    /// The field cannot be changed once set.
    ImmutableField,
    /// Something of that name is there already.
    AlreadyExists,
    /// The target changed meanwhile.
    Conflict,
    /// Fields belong to another manager.
    FieldConflict,
    /// The workload does not run as many replicas as was said.
    ReplicasChanged,
    /// Another object has taken the name meanwhile.
    UidChanged,
    /// Manifest and argument name different namespaces.
    NamespaceConflict,
    /// The kind has no replicas to set.
    NotScalable,
    /// The kind cannot be patched strategically.
    StrategicUnsupported,
    /// The tool does not work with that kind.
    UnsupportedKind,
    /// The workload has no such revision.
    RevisionNotFound,
    /// The rollout is paused.
    RolloutPaused,
    /// The pod has several containers, and none was named.
    ContainerRequired,
    /// The pod has no such container.
    ContainerNotFound,
    /// The container has not run before.
    NoPreviousLogs,
    /// More pods match than one call may look at.
    TooManyPods,
    /// A disruption budget does not allow it now.
    PdbBlocked,
    /// A pod keeps data that would be lost.
    EmptydirData,
    /// A pod has nobody who would start it again.
    UnmanagedPods,
    /// The container has no such command.
    CommandNotFound,
    /// Nothing listens there.
    ConnectionRefused,
    /// The service has nobody behind it.
    NoEndpoints,
    /// The cluster measures nothing.
    MetricsUnavailable,
    /// The tenant has nothing configured that the tool could act on.
    ToolsetNotConfigured,
    /// The target has too much to do, or fails for now.
    TargetBusy,
    /// The target cannot be reached.
    TargetUnreachable,
    /// Our fault.
    Internal,
}

impl Code {
    /// Every code, for tables and snapshots.
    pub const ALL: [Code; 84] = [
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
        Code::UnknownKind,
        Code::AmbiguousKind,
        Code::UnknownField,
        Code::InvalidManifest,
        Code::CursorExpired,
        Code::CursorMismatch,
        Code::ClusterRequired,
        Code::ClusterUnknown,
        Code::NamespaceDenied,
        Code::Protected,
        Code::ImageDenied,
        Code::Forbidden,
        Code::DeniedByAdmission,
        Code::ImmutableField,
        Code::AlreadyExists,
        Code::Conflict,
        Code::FieldConflict,
        Code::ReplicasChanged,
        Code::UidChanged,
        Code::NamespaceConflict,
        Code::NotScalable,
        Code::StrategicUnsupported,
        Code::UnsupportedKind,
        Code::RevisionNotFound,
        Code::RolloutPaused,
        Code::ContainerRequired,
        Code::ContainerNotFound,
        Code::NoPreviousLogs,
        Code::TooManyPods,
        Code::PdbBlocked,
        Code::EmptydirData,
        Code::UnmanagedPods,
        Code::CommandNotFound,
        Code::ConnectionRefused,
        Code::NoEndpoints,
        Code::MetricsUnavailable,
        Code::ToolsetNotConfigured,
        Code::TargetBusy,
        Code::TargetUnreachable,
        Code::Internal,
    ];

    /// The one spelling.
    #[expect(clippy::too_many_lines, reason = "one line for each code")]
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
            Code::UnknownKind => "unknown_kind",
            Code::AmbiguousKind => "ambiguous_kind",
            Code::UnknownField => "unknown_field",
            Code::InvalidManifest => "invalid_manifest",
            Code::CursorExpired => "cursor_expired",
            Code::CursorMismatch => "cursor_mismatch",
            Code::ClusterRequired => "cluster_required",
            Code::ClusterUnknown => "cluster_unknown",
            Code::NamespaceDenied => "namespace_denied",
            Code::Protected => "protected",
            Code::ImageDenied => "image_denied",
            Code::Forbidden => "forbidden",
            Code::DeniedByAdmission => "denied_by_admission",
            Code::ImmutableField => "immutable_field",
            Code::AlreadyExists => "already_exists",
            Code::Conflict => "conflict",
            Code::FieldConflict => "field_conflict",
            Code::ReplicasChanged => "replicas_changed",
            Code::UidChanged => "uid_changed",
            Code::NamespaceConflict => "namespace_conflict",
            Code::NotScalable => "not_scalable",
            Code::StrategicUnsupported => "strategic_unsupported",
            Code::UnsupportedKind => "unsupported_kind",
            Code::RevisionNotFound => "revision_not_found",
            Code::RolloutPaused => "rollout_paused",
            Code::ContainerRequired => "container_required",
            Code::ContainerNotFound => "container_not_found",
            Code::NoPreviousLogs => "no_previous_logs",
            Code::TooManyPods => "too_many_pods",
            Code::PdbBlocked => "pdb_blocked",
            Code::EmptydirData => "emptydir_data",
            Code::UnmanagedPods => "unmanaged_pods",
            Code::CommandNotFound => "command_not_found",
            Code::ConnectionRefused => "connection_refused",
            Code::NoEndpoints => "no_endpoints",
            Code::MetricsUnavailable => "metrics_unavailable",
            Code::ToolsetNotConfigured => "toolset_not_configured",
            Code::TargetBusy => "target_busy",
            Code::TargetUnreachable => "target_unreachable",
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
                | Code::PdbBlocked
                | Code::TargetBusy
                | Code::TargetUnreachable
        )
    }
}
