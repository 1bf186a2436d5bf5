//! The codes that tools of external servers raise.

domain::tool_codes! {
    /// The external server is down, left alone for now, or has too many calls waiting.
    UPSTREAM_UNAVAILABLE = "upstream_unavailable": Unavailable retry,
    /// The external server may not be reached, or nobody answers at its address.
    UPSTREAM_REFUSED = "upstream_refused": BadGateway,
    /// The external server answered with an error.
    UPSTREAM_ERROR = "upstream_error": BadGateway quotes,
    /// What the external server said cannot be understood.
    UPSTREAM_PROTOCOL = "upstream_protocol": BadGateway,
}
