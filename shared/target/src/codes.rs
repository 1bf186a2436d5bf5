//! The codes that several toolsets raise about their targets.

domain::tool_codes! {
    /// The result that a cursor would continue is too old.
    CURSOR_EXPIRED = "cursor_expired": Gone,
    /// The cursor was given to another caller, or for other arguments.
    CURSOR_MISMATCH = "cursor_mismatch": Invalid,
    /// The target's own rules do not allow it to our identity.
    FORBIDDEN = "forbidden": Forbidden,
    /// The tenant has nothing configured that the tool could act on.
    TOOLSET_NOT_CONFIGURED = "toolset_not_configured": Conflict,
    /// The target has too much to do, or fails for now.
    TARGET_BUSY = "target_busy": Unavailable retry,
    /// The target cannot be reached.
    TARGET_UNREACHABLE = "target_unreachable": Unavailable retry,
    /// The host is not one of those that may be reached.
    HOST_DENIED = "host_denied": Forbidden,
    /// It is over already.
    ALREADY_FINISHED = "already_finished": Conflict,
    /// The target cannot do that.
    UNSUPPORTED = "unsupported": Unprocessable,
    /// The tenant has no server of that name.
    SERVER_UNKNOWN = "server_unknown": NotFound,
    /// The target does not accept the credentials of the tenant.
    CREDENTIALS_REFUSED = "credentials_refused": Forbidden,
}
