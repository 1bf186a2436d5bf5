//! How every failure travels, once: by MCP as a tool error or as a JSON-RPC error, by REST as a status.
//!
//! The choice between the first two: if the model can do something about it, it is a tool error; if only the host or
//! an operator can, it is a JSON-RPC error. Codes of ours are positive, outside what JSON-RPC and MCP reserve.

use domain::Code;

/// A JSON-RPC error code and the HTTP status it comes with in each era.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Rpc {
    /// The code in the error object.
    pub code: i32,
    /// The status in the legacy era.
    pub legacy: u16,
    /// The status in the modern era.
    pub modern: u16,
}

const fn rpc(code: i32, legacy: u16, modern: u16) -> Rpc {
    Rpc { code, legacy, modern }
}

/// How a [`Code`] reaches an MCP client.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Travel {
    /// A result with `isError`, HTTP 200: the model reads it.
    ToolError,
    /// A JSON-RPC error: the host reads it.
    Rpc(Rpc),
}

/// How a failure of a call reaches an MCP client.
#[expect(clippy::too_many_lines, reason = "a table: every code has its line, so that a new one cannot be forgotten")]
pub const fn travel(code: Code) -> Travel {
    match code {
        Code::InvalidArgument
        | Code::UnknownArgument
        | Code::UnknownToolset
        | Code::NotLoaded
        | Code::WriteNotLoaded
        | Code::SessionRequired
        | Code::SessionExpired
        | Code::NotFound
        | Code::DocNotFound
        | Code::DocExists
        | Code::MemoryConflict
        | Code::SecretFound
        | Code::UnknownStore
        | Code::TooLarge
        | Code::QuotaExceeded
        | Code::PolicyDenied
        | Code::Rejected
        | Code::Expired
        | Code::RunCancelled
        | Code::Stale
        | Code::PreviewUnavailable
        | Code::OutcomeUnknown
        | Code::TooManyPending
        | Code::KeyReused
        | Code::AlreadyDecided
        | Code::OwnRequest
        | Code::NotPossible
        | Code::RateLimited
        | Code::Deadline
        | Code::Cancelled
        | Code::ResultTooLarge
        | Code::UnknownKind
        | Code::AmbiguousKind
        | Code::UnknownField
        | Code::InvalidManifest
        | Code::CursorExpired
        | Code::CursorMismatch
        | Code::ClusterRequired
        | Code::ClusterUnknown
        | Code::NamespaceDenied
        | Code::Protected
        | Code::ImageDenied
        | Code::Forbidden
        | Code::DeniedByAdmission
        | Code::ImmutableField
        | Code::AlreadyExists
        | Code::Conflict
        | Code::FieldConflict
        | Code::ReplicasChanged
        | Code::UidChanged
        | Code::NamespaceConflict
        | Code::NotScalable
        | Code::StrategicUnsupported
        | Code::UnsupportedKind
        | Code::RevisionNotFound
        | Code::RolloutPaused
        | Code::ContainerRequired
        | Code::ContainerNotFound
        | Code::NoPreviousLogs
        | Code::TooManyPods
        | Code::PdbBlocked
        | Code::EmptydirData
        | Code::UnmanagedPods
        | Code::CommandNotFound
        | Code::ConnectionRefused
        | Code::NoEndpoints
        | Code::MetricsUnavailable
        | Code::ToolsetNotConfigured
        | Code::TargetBusy
        | Code::TargetUnreachable
        | Code::UnsafeText
        | Code::LogDump
        | Code::EditNotFound
        | Code::EditAmbiguous
        | Code::DiffMismatch
        | Code::ReadOnlyStore
        | Code::TypeNotAllowed
        | Code::Redacted
        | Code::ReleaseNotFound
        | Code::ReleaseExists
        | Code::ReleaseLocked
        | Code::ReleaseBusy
        | Code::HookFailed
        | Code::TimedOut
        | Code::RepoUnreachable
        | Code::ChartNotFound
        | Code::VersionNotFound
        | Code::RenderFailed
        | Code::SchemaInvalid
        | Code::NotLocked
        | Code::StillRunning
        | Code::NoTests
        | Code::TestFailed
        | Code::HostDenied
        | Code::UnknownCredential
        | Code::ArgoNotInstalled
        | Code::NothingToPromote
        | Code::AlreadyStable
        | Code::NotInProgress
        | Code::NotAborted
        | Code::UnsupportedWorkload
        | Code::AlreadyFinished
        | Code::Unsupported
        | Code::JobNotFound
        | Code::BuildNotFound
        | Code::PluginMissing
        | Code::NoTestReport
        | Code::NotText
        | Code::QueueItemGone
        | Code::UnknownParameter
        | Code::InvalidChoice
        | Code::JobDisabled
        | Code::NotAPipeline
        | Code::PasswordParameters
        | Code::ServerRequired
        | Code::ServerUnknown
        | Code::CredentialsRefused
        | Code::UpstreamUnavailable
        | Code::UpstreamRefused
        | Code::UpstreamError
        | Code::UpstreamProtocol
        | Code::ToolChanged
        | Code::ConfigInvalid
        | Code::ConfigConflict
        | Code::ConfigLocked
        | Code::StoreFull => Travel::ToolError,
        Code::UnknownTool | Code::BadCursor => Travel::Rpc(rpc(-32602, 200, 400)),
        Code::StoreUnavailable | Code::DecisionNotDurable | Code::Draining | Code::Internal => {
            Travel::Rpc(rpc(-32603, 200, 200))
        }
        Code::InvalidRequest => Travel::Rpc(rpc(-32600, 400, 400)),
        // An issuer without keys vouches for nobody; `/mcp` itself never answers 5xx.
        Code::Unauthenticated | Code::KeysUnavailable => Travel::Rpc(rpc(1001, 401, 401)),
        Code::InsufficientScope | Code::ForbiddenTenant | Code::BadOrigin => Travel::Rpc(rpc(1003, 403, 403)),
        Code::SessionNotFound => Travel::Rpc(rpc(1004, 404, 404)),
    }
}

/// The status of a failure on the REST API.
#[expect(clippy::too_many_lines, reason = "a table: every code has its line, so that a new one cannot be forgotten")]
pub const fn rest_status(code: Code) -> u16 {
    match code {
        Code::InvalidRequest
        | Code::InvalidArgument
        | Code::UnknownArgument
        | Code::SessionRequired
        | Code::AmbiguousKind
        | Code::InvalidManifest
        | Code::CursorMismatch
        | Code::ClusterRequired
        | Code::NamespaceConflict
        | Code::ContainerRequired
        | Code::UnknownParameter
        | Code::InvalidChoice
        | Code::ServerRequired
        | Code::BadCursor => 400,
        Code::Unauthenticated => 401,
        Code::PolicyDenied
        | Code::InsufficientScope
        | Code::ForbiddenTenant
        | Code::BadOrigin
        | Code::NamespaceDenied
        | Code::Protected
        | Code::ImageDenied
        | Code::Forbidden
        | Code::DeniedByAdmission
        | Code::ReadOnlyStore
        | Code::HostDenied
        | Code::CredentialsRefused
        | Code::OwnRequest => 403,
        Code::UnknownTool
        | Code::UnknownToolset
        | Code::SessionExpired
        | Code::SessionNotFound
        | Code::NotFound
        | Code::DocNotFound
        | Code::UnknownKind
        | Code::UnknownField
        | Code::ClusterUnknown
        | Code::RevisionNotFound
        | Code::ContainerNotFound
        | Code::NoPreviousLogs
        | Code::ReleaseNotFound
        | Code::ChartNotFound
        | Code::VersionNotFound
        | Code::UnknownCredential
        | Code::JobNotFound
        | Code::BuildNotFound
        | Code::NoTestReport
        | Code::QueueItemGone
        | Code::ServerUnknown
        | Code::UnknownStore => 404,
        Code::NotLoaded
        | Code::WriteNotLoaded
        | Code::DocExists
        | Code::MemoryConflict
        | Code::QuotaExceeded
        | Code::Cancelled
        | Code::Rejected
        | Code::RunCancelled
        | Code::Stale
        | Code::OutcomeUnknown
        | Code::KeyReused
        | Code::AlreadyDecided
        | Code::ImmutableField
        | Code::AlreadyExists
        | Code::Conflict
        | Code::FieldConflict
        | Code::ReplicasChanged
        | Code::UidChanged
        | Code::RolloutPaused
        | Code::PdbBlocked
        | Code::EmptydirData
        | Code::UnmanagedPods
        | Code::ToolsetNotConfigured
        | Code::EditNotFound
        | Code::EditAmbiguous
        | Code::DiffMismatch
        | Code::ReleaseExists
        | Code::ReleaseLocked
        | Code::ReleaseBusy
        | Code::NotLocked
        | Code::StillRunning
        | Code::ArgoNotInstalled
        | Code::NothingToPromote
        | Code::AlreadyStable
        | Code::NotInProgress
        | Code::NotAborted
        | Code::AlreadyFinished
        | Code::PluginMissing
        | Code::JobDisabled
        | Code::ToolChanged
        | Code::ConfigLocked
        | Code::NotPossible => 409,
        Code::Expired | Code::CursorExpired | Code::Redacted => 410,
        Code::ConfigConflict => 412,
        Code::TooLarge => 413,
        Code::SecretFound
        | Code::NotScalable
        | Code::StrategicUnsupported
        | Code::UnsupportedKind
        | Code::TooManyPods
        | Code::CommandNotFound
        | Code::ResultTooLarge
        | Code::UnsafeText
        | Code::LogDump
        | Code::TypeNotAllowed
        | Code::HookFailed
        | Code::RenderFailed
        | Code::SchemaInvalid
        | Code::NoTests
        | Code::TestFailed
        | Code::UnsupportedWorkload
        | Code::Unsupported
        | Code::NotText
        | Code::NotAPipeline
        | Code::PasswordParameters
        | Code::ConfigInvalid
        | Code::PreviewUnavailable => 422,
        Code::RateLimited | Code::TooManyPending => 429,
        Code::Internal => 500,
        Code::ConnectionRefused
        | Code::NoEndpoints
        | Code::UpstreamRefused
        | Code::UpstreamError
        | Code::UpstreamProtocol => 502,
        Code::StoreUnavailable
        | Code::StoreFull
        | Code::DecisionNotDurable
        | Code::Draining
        | Code::MetricsUnavailable
        | Code::TargetBusy
        | Code::TargetUnreachable
        | Code::RepoUnreachable
        | Code::UpstreamUnavailable
        | Code::KeysUnavailable => 503,
        Code::Deadline | Code::TimedOut => 504,
    }
}

/// What is wrong with a message before any tool is looked at.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Fault {
    /// Not one JSON text.
    ParseError,
    /// JSON, but no JSON-RPC message we take.
    InvalidRequest,
    /// No such method in this era.
    MethodNotFound,
    /// `params._meta` lacks what the modern era demands, or holds what nobody can mean.
    InvalidEnvelope,
    /// The parameters of the method have the wrong shape.
    InvalidParams,
    /// A header is missing, sent twice, or contradicts the body.
    HeaderMismatch,
    /// The call needs a capability the client did not declare.
    MissingClientCapability,
    /// A protocol version we do not serve.
    UnsupportedVersion,
    /// `Host` or `Origin` is not one of ours.
    BadOrigin,
    /// The address selects a toolset that does not exist.
    UnknownSelection,
    /// The address selects nothing that could be a toolset.
    MalformedSelection,
    /// Too many requests; found before the body is read.
    TooManyRequests,
}

impl Fault {
    /// Every fault, for tables and snapshots.
    pub const ALL: [Fault; 12] = [
        Fault::ParseError,
        Fault::InvalidRequest,
        Fault::MethodNotFound,
        Fault::InvalidEnvelope,
        Fault::InvalidParams,
        Fault::HeaderMismatch,
        Fault::MissingClientCapability,
        Fault::UnsupportedVersion,
        Fault::BadOrigin,
        Fault::UnknownSelection,
        Fault::MalformedSelection,
        Fault::TooManyRequests,
    ];

    /// The one spelling, in `data.code`.
    pub const fn as_str(self) -> &'static str {
        match self {
            Fault::ParseError => "parse_error",
            Fault::InvalidRequest => "invalid_request",
            Fault::MethodNotFound => "method_not_found",
            Fault::InvalidEnvelope => "invalid_envelope",
            Fault::InvalidParams => "invalid_params",
            Fault::HeaderMismatch => "header_mismatch",
            Fault::MissingClientCapability => "missing_client_capability",
            Fault::UnsupportedVersion => "unsupported_version",
            Fault::BadOrigin => "bad_origin",
            Fault::UnknownSelection => Code::UnknownToolset.as_str(),
            Fault::MalformedSelection => "malformed_selection",
            Fault::TooManyRequests => Code::RateLimited.as_str(),
        }
    }

    /// How it travels.
    pub const fn rpc(self) -> Rpc {
        match self {
            Fault::ParseError => rpc(-32700, 400, 400),
            Fault::InvalidRequest | Fault::MalformedSelection => rpc(-32600, 400, 400),
            Fault::MethodNotFound => rpc(-32601, 200, 404),
            Fault::InvalidEnvelope => rpc(-32602, 400, 400),
            Fault::InvalidParams => rpc(-32602, 200, 400),
            Fault::HeaderMismatch => rpc(-32020, 400, 400),
            Fault::MissingClientCapability => rpc(-32021, 400, 400),
            Fault::UnsupportedVersion => rpc(-32022, 400, 400),
            Fault::BadOrigin => rpc(1003, 403, 403),
            Fault::UnknownSelection => rpc(-32602, 404, 404),
            Fault::TooManyRequests => rpc(1029, 429, 429),
        }
    }

    /// Whether the same message, unchanged, may succeed later.
    pub const fn retryable(self) -> bool {
        matches!(self, Fault::TooManyRequests)
    }
}

#[cfg(test)]
mod tests;
