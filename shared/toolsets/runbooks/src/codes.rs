//! The codes that the toolset `runbooks` raises.

domain::tool_codes! {
    /// A command of the runbook failed; the message says which, how, and what it wrote last.
    RUNBOOK_FAILED = "runbook_failed": Unprocessable quotes,
    /// No runner serves the label. Nothing was executed.
    RUNNER_OFFLINE = "runner_offline": Unavailable retry early,
    /// No runner took it in time. Nothing was executed.
    RUNNER_BUSY = "runner_busy": Unavailable retry,
    /// The runner's owner does not let it run this. Nothing was executed.
    RUNNER_REFUSED = "runner_refused": Forbidden quotes,
}
