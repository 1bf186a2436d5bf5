//! The codes that the toolset `jenkins` raises.

domain::tool_codes! {
    /// There is no such job.
    JOB_NOT_FOUND = "job_not_found": NotFound,
    /// The job has no such build.
    BUILD_NOT_FOUND = "build_not_found": NotFound,
    /// The target lacks the plugin for it.
    PLUGIN_MISSING = "plugin_missing": Conflict,
    /// The build has no test report.
    NO_TEST_REPORT = "no_test_report": NotFound,
    /// What is there is not text.
    NOT_TEXT = "not_text": Unprocessable,
    /// The item has left the queue.
    QUEUE_ITEM_GONE = "queue_item_gone": NotFound,
    /// The job has no such parameter.
    UNKNOWN_PARAMETER = "unknown_parameter": Invalid,
    /// The parameter does not take that value.
    INVALID_CHOICE = "invalid_choice": Invalid,
    /// The job is switched off.
    JOB_DISABLED = "job_disabled": Conflict,
    /// The job is not a pipeline.
    NOT_A_PIPELINE = "not_a_pipeline": Unprocessable,
    /// The build took passwords, so it cannot be run again.
    PASSWORD_PARAMETERS = "password_parameters": Unprocessable,
    /// The tenant has several servers, and none was named.
    SERVER_REQUIRED = "server_required": Invalid,
}
