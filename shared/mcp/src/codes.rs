//! How every failure travels, once: by MCP as a tool error or as a JSON-RPC error, by REST as a status.
//!
//! The choice between the first two: if the model can do something about it, it is a tool error; if only the host or
//! an operator can, it is a JSON-RPC error. Codes of ours are positive, outside what JSON-RPC and MCP reserve.

use domain::{Class, Code};

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
pub enum CodeTransport {
    /// A result with `isError`, HTTP 200: the model reads it.
    ToolError,
    /// A JSON-RPC error: the host reads it.
    Rpc(Rpc),
}

/// How a failure of a call reaches an MCP client.
pub const fn travel(code: Code) -> CodeTransport {
    match code {
        Code::InvalidArgument
        | Code::UnknownArgument
        | Code::UnknownToolset
        | Code::NotLoaded
        | Code::WriteNotLoaded
        | Code::SessionRequired
        | Code::SessionExpired
        | Code::NotFound
        | Code::TooLarge
        | Code::QuotaExceeded
        | Code::PolicyDenied
        | Code::SwitchedOff
        | Code::SwitchedReadOnly
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
        | Code::Conflict
        | Code::UnknownCredential
        | Code::ToolChanged
        | Code::RecordNotAuthentic
        | Code::ConfigInvalid
        | Code::ConfigConflict
        | Code::ConfigLocked
        | Code::StoreFull
        | Code::Tool(_) => CodeTransport::ToolError,
        Code::UnknownTool | Code::BadCursor => CodeTransport::Rpc(rpc(-32602, 200, 400)),
        Code::StoreUnavailable | Code::DecisionNotDurable | Code::Draining | Code::Internal => {
            CodeTransport::Rpc(rpc(-32603, 200, 200))
        }
        Code::InvalidRequest => CodeTransport::Rpc(rpc(-32600, 400, 400)),
        // An issuer without keys vouches for nobody; `/mcp` itself never answers 5xx.
        Code::Unauthenticated | Code::KeysUnavailable => CodeTransport::Rpc(rpc(1001, 401, 401)),
        Code::InsufficientScope | Code::ForbiddenTenant | Code::ForbiddenScope | Code::BadOrigin => {
            CodeTransport::Rpc(rpc(1003, 403, 403))
        }
        Code::SessionNotFound => CodeTransport::Rpc(rpc(1004, 404, 404)),
    }
}

/// The status of a failure on the REST API.
pub const fn rest_status(code: Code) -> u16 {
    match code.class() {
        Class::Invalid => 400,
        Class::Unauthenticated => 401,
        Class::Forbidden => 403,
        Class::NotFound => 404,
        Class::Conflict => 409,
        Class::Gone => 410,
        Class::PreconditionFailed => 412,
        Class::TooLarge => 413,
        Class::Unprocessable => 422,
        Class::RateLimited => 429,
        Class::Internal => 500,
        Class::BadGateway => 502,
        Class::Unavailable => 503,
        Class::Timeout => 504,
    }
}

/// What is wrong with a message before any tool is looked at.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum MessageFault {
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
    /// A hosted service did not answer a message that was passed on to it.
    ServiceUnreachable,
    /// A hosted service, or something before it, answered what no MCP service answers.
    BadServiceAnswer,
}

impl MessageFault {
    /// Every fault, for tables and snapshots.
    pub const ALL: [MessageFault; 14] = [
        MessageFault::ParseError,
        MessageFault::InvalidRequest,
        MessageFault::MethodNotFound,
        MessageFault::InvalidEnvelope,
        MessageFault::InvalidParams,
        MessageFault::HeaderMismatch,
        MessageFault::MissingClientCapability,
        MessageFault::UnsupportedVersion,
        MessageFault::BadOrigin,
        MessageFault::UnknownSelection,
        MessageFault::MalformedSelection,
        MessageFault::TooManyRequests,
        MessageFault::ServiceUnreachable,
        MessageFault::BadServiceAnswer,
    ];

    /// The one spelling, in `data.code`.
    pub const fn as_str(self) -> &'static str {
        match self {
            MessageFault::ParseError => "parse_error",
            MessageFault::InvalidRequest => "invalid_request",
            MessageFault::MethodNotFound => "method_not_found",
            MessageFault::InvalidEnvelope => "invalid_envelope",
            MessageFault::InvalidParams => "invalid_params",
            MessageFault::HeaderMismatch => "header_mismatch",
            MessageFault::MissingClientCapability => "missing_client_capability",
            MessageFault::UnsupportedVersion => "unsupported_version",
            MessageFault::BadOrigin => "bad_origin",
            MessageFault::UnknownSelection => Code::UnknownToolset.as_str(),
            MessageFault::MalformedSelection => "malformed_selection",
            MessageFault::TooManyRequests => Code::RateLimited.as_str(),
            MessageFault::ServiceUnreachable => "service_unreachable",
            MessageFault::BadServiceAnswer => "bad_service_answer",
        }
    }

    /// How it travels.
    pub const fn rpc(self) -> Rpc {
        match self {
            MessageFault::ParseError => rpc(-32700, 400, 400),
            MessageFault::InvalidRequest | MessageFault::MalformedSelection => rpc(-32600, 400, 400),
            MessageFault::MethodNotFound => rpc(-32601, 200, 404),
            MessageFault::InvalidEnvelope => rpc(-32602, 400, 400),
            MessageFault::InvalidParams => rpc(-32602, 200, 400),
            MessageFault::HeaderMismatch => rpc(-32020, 400, 400),
            MessageFault::MissingClientCapability => rpc(-32021, 400, 400),
            MessageFault::UnsupportedVersion => rpc(-32022, 400, 400),
            MessageFault::BadOrigin => rpc(1003, 403, 403),
            MessageFault::UnknownSelection => rpc(-32602, 404, 404),
            MessageFault::TooManyRequests => rpc(1029, 429, 429),
            MessageFault::ServiceUnreachable | MessageFault::BadServiceAnswer => rpc(-32603, 200, 200),
        }
    }

    /// Whether the same message, unchanged, may succeed later.
    pub const fn retryable(self) -> bool {
        matches!(self, MessageFault::TooManyRequests | MessageFault::ServiceUnreachable)
    }
}

#[cfg(test)]
mod tests;
