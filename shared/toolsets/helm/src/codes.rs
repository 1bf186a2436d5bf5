//! The codes that the toolset `helm` raises.

domain::tool_codes! {
    /// There is no such release.
    RELEASE_NOT_FOUND = "release_not_found": NotFound,
    /// There is a release of that name already.
    RELEASE_EXISTS = "release_exists": Conflict,
    /// The release is stuck in a pending state.
    RELEASE_LOCKED = "release_locked": Conflict,
    /// Another run works on the release.
    RELEASE_BUSY = "release_busy": Conflict retry,
    /// A hook of the chart failed.
    HOOK_FAILED = "hook_failed": Unprocessable,
    /// The target did not get there in the time it was given.
    TIMED_OUT = "timed_out": Timeout,
    /// The chart repository or registry does not answer.
    REPO_UNREACHABLE = "repo_unreachable": Unavailable retry,
    /// The repository has no such chart.
    CHART_NOT_FOUND = "chart_not_found": NotFound,
    /// The chart has no such version.
    VERSION_NOT_FOUND = "version_not_found": NotFound,
    /// The chart cannot be rendered with these values.
    RENDER_FAILED = "render_failed": Unprocessable,
    /// The values do not fit the schema of the chart.
    SCHEMA_INVALID = "schema_invalid": Unprocessable,
    /// The release is not stuck.
    NOT_LOCKED = "not_locked": Conflict,
    /// What looks stuck may still be at work.
    STILL_RUNNING = "still_running": Conflict,
    /// The release has no tests.
    NO_TESTS = "no_tests": Unprocessable,
    /// A test of the release failed.
    TEST_FAILED = "test_failed": Unprocessable,
}
