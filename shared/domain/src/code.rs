//! The stable names of failures: one spelling on the wire, in metrics and in the audit.
//!
//! A code is added only if a caller would act on it. How each one travels stands once, in `mcp::codes`.

/// Writes the enum, the list of all and the spelling from one table, so that none can be forgotten.
macro_rules! codes {
    ($($(#[$doc:meta])* $name:ident = $spelling:literal,)*) => {
        /// Why something did not happen.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
        pub enum Code {
            $($(#[$doc])* $name,)*
        }

        impl Code {
            /// Every code, for tables and snapshots.
            pub const ALL: [Code; [$($spelling),*].len()] = [$(Code::$name),*];

            /// The one spelling.
            pub const fn as_str(self) -> &'static str {
                match self {
                    $(Code::$name => $spelling,)*
                }
            }
        }
    };
}

codes! {
    /// The arguments do not fit the tool's schema.
    InvalidArgument = "invalid_argument",
    /// An argument the tool does not have.
    UnknownArgument = "unknown_argument",
    /// No such tool, or none this caller may see.
    UnknownTool = "unknown_tool",
    /// No such toolset, or none this caller may see.
    UnknownToolset = "unknown_toolset",
    /// The tool's toolset is not loaded.
    NotLoaded = "not_loaded",
    /// Its toolset is loaded, but not its write tools.
    WriteNotLoaded = "write_not_loaded",
    /// The call needs a session and has none.
    SessionRequired = "session_required",
    /// The handle names no live session of this caller.
    SessionExpired = "session_expired",
    /// The transport's session header names no live session of this caller.
    SessionNotFound = "session_not_found",
    /// The thing asked for is not there.
    NotFound = "not_found",
    /// No document at that path.
    DocNotFound = "doc_not_found",
    /// The path is taken; overwriting needs the current digest.
    DocExists = "doc_exists",
    /// The document changed meanwhile.
    MemoryConflict = "memory_conflict",
    /// The text seems to hold a secret.
    SecretFound = "secret_found",
    /// The store named in a path does not exist.
    UnknownStore = "unknown_store",
    /// Over a size bound.
    TooLarge = "too_large",
    /// Over a quota.
    QuotaExceeded = "quota_exceeded",
    /// A rule of the tenant or of the product says no.
    PolicyDenied = "policy_denied",
    /// A person said no.
    Rejected = "rejected",
    /// Nobody answered, or nobody began, in time.
    Expired = "expired",
    /// The run was taken back.
    RunCancelled = "run_cancelled",
    /// What was approved is not what would be done now.
    Stale = "stale",
    /// What would happen cannot be shown, so nobody is asked to sign.
    PreviewUnavailable = "preview_unavailable",
    /// Something may have been sent, and nobody knows what came of it.
    OutcomeUnknown = "outcome_unknown",
    /// Too many runs of this caller wait for a person.
    TooManyPending = "too_many_pending",
    /// The caller's key was used for another call.
    KeyReused = "key_reused",
    /// Somebody else decided first.
    AlreadyDecided = "already_decided",
    /// The requester cannot decide its own run.
    OwnRequest = "own_request",
    /// The run is not where this could happen.
    NotPossible = "not_possible",
    /// The token lacks a scope.
    InsufficientScope = "insufficient_scope",
    /// The token's tenant is not served here, or switched off.
    ForbiddenTenant = "forbidden_tenant",
    /// No valid token.
    Unauthenticated = "unauthenticated",
    /// Too many calls.
    RateLimited = "rate_limited",
    /// A cursor that is not ours, not this caller's, or out of date.
    BadCursor = "bad_cursor",
    /// The call took longer than it may.
    Deadline = "deadline",
    /// The caller withdrew the call.
    Cancelled = "cancelled",
    /// The result does not fit the cap and cannot be cut.
    ResultTooLarge = "result_too_large",
    /// The state store did not answer; nothing was executed.
    StoreUnavailable = "store_unavailable",
    /// The state store is full; nothing was executed.
    StoreFull = "store_full",
    /// What a person said was written down, but may still be forgotten: say it again.
    DecisionNotDurable = "decision_not_durable",
    /// The service is shutting down.
    Draining = "draining",
    /// The request is not of the form it must have.
    InvalidRequest = "invalid_request",
    /// The Host or Origin of the request is not served here.
    BadOrigin = "bad_origin",
    /// The keys of the token's issuer cannot be had.
    KeysUnavailable = "keys_unavailable",
    /// The cluster knows no such kind.
    UnknownKind = "unknown_kind",
    /// Several kinds answer to the name.
    AmbiguousKind = "ambiguous_kind",
    /// The kind has no such field.
    UnknownField = "unknown_field",
    /// The manifest cannot be read, or is none.
    InvalidManifest = "invalid_manifest",
    /// The result that a cursor would continue is too old.
    CursorExpired = "cursor_expired",
    /// The cursor was given to another caller, or for other arguments.
    CursorMismatch = "cursor_mismatch",
    /// The tenant has several clusters, and none was named.
    ClusterRequired = "cluster_required",
    /// The tenant has no cluster of that name.
    ClusterUnknown = "cluster_unknown",
    /// The namespace is not one of those the tenant may use.
    NamespaceDenied = "namespace_denied",
    /// What the product or the tenant protects is left alone.
    Protected = "protected",
    /// The image's registry is not one of those the tenant may use.
    ImageDenied = "image_denied",
    /// The target's own rules do not allow it to our identity.
    Forbidden = "forbidden",
    /// An admission rule of the target said no.
    DeniedByAdmission = "denied_by_admission",
    /// The field cannot be changed once set.
    ImmutableField = "immutable_field",
    /// Something of that name is there already.
    AlreadyExists = "already_exists",
    /// The target changed meanwhile.
    Conflict = "conflict",
    /// Fields belong to another manager.
    FieldConflict = "field_conflict",
    /// The workload does not run as many replicas as was said.
    ReplicasChanged = "replicas_changed",
    /// Another object has taken the name meanwhile.
    UidChanged = "uid_changed",
    /// Manifest and argument name different namespaces.
    NamespaceConflict = "namespace_conflict",
    /// The kind has no replicas to set.
    NotScalable = "not_scalable",
    /// The kind cannot be patched strategically.
    StrategicUnsupported = "strategic_unsupported",
    /// The tool does not work with that kind.
    UnsupportedKind = "unsupported_kind",
    /// The workload has no such revision.
    RevisionNotFound = "revision_not_found",
    /// The rollout is paused.
    RolloutPaused = "rollout_paused",
    /// The pod has several containers, and none was named.
    ContainerRequired = "container_required",
    /// The pod has no such container.
    ContainerNotFound = "container_not_found",
    /// The container has not run before.
    NoPreviousLogs = "no_previous_logs",
    /// More pods match than one call may look at.
    TooManyPods = "too_many_pods",
    /// A disruption budget does not allow it now.
    PdbBlocked = "pdb_blocked",
    /// A pod keeps data that would be lost.
    EmptydirData = "emptydir_data",
    /// A pod has nobody who would start it again.
    UnmanagedPods = "unmanaged_pods",
    /// The container has no such command.
    CommandNotFound = "command_not_found",
    /// Nothing listens there.
    ConnectionRefused = "connection_refused",
    /// The service has nobody behind it.
    NoEndpoints = "no_endpoints",
    /// The cluster measures nothing.
    MetricsUnavailable = "metrics_unavailable",
    /// The tenant has nothing configured that the tool could act on.
    ToolsetNotConfigured = "toolset_not_configured",
    /// The target has too much to do, or fails for now.
    TargetBusy = "target_busy",
    /// The target cannot be reached.
    TargetUnreachable = "target_unreachable",
    /// The text tries to give orders, or hides something.
    UnsafeText = "unsafe_text",
    /// The text is a log, not a note.
    LogDump = "log_dump",
    /// The text to be replaced does not occur.
    EditNotFound = "edit_not_found",
    /// The text to be replaced occurs more than once.
    EditAmbiguous = "edit_ambiguous",
    /// The difference does not fit the text.
    DiffMismatch = "diff_mismatch",
    /// Only people write to that store.
    ReadOnlyStore = "read_only_store",
    /// The store does not take documents of that type.
    TypeNotAllowed = "type_not_allowed",
    /// The text was removed for good.
    Redacted = "redacted",
    /// There is no such release.
    ReleaseNotFound = "release_not_found",
    /// There is a release of that name already.
    ReleaseExists = "release_exists",
    /// The release is stuck in a pending state.
    ReleaseLocked = "release_locked",
    /// Another run works on the release.
    ReleaseBusy = "release_busy",
    /// A hook of the chart failed.
    HookFailed = "hook_failed",
    /// The target did not get there in the time it was given.
    TimedOut = "timed_out",
    /// The chart repository or registry does not answer.
    RepoUnreachable = "repo_unreachable",
    /// The repository has no such chart.
    ChartNotFound = "chart_not_found",
    /// The chart has no such version.
    VersionNotFound = "version_not_found",
    /// The chart cannot be rendered with these values.
    RenderFailed = "render_failed",
    /// The values do not fit the schema of the chart.
    SchemaInvalid = "schema_invalid",
    /// The release is not stuck.
    NotLocked = "not_locked",
    /// What looks stuck may still be at work.
    StillRunning = "still_running",
    /// The release has no tests.
    NoTests = "no_tests",
    /// A test of the release failed.
    TestFailed = "test_failed",
    /// The host is not one of those that may be reached.
    HostDenied = "host_denied",
    /// The tenant has no secret of that name.
    UnknownCredential = "unknown_credential",
    /// The cluster does not know Argo Rollouts.
    ArgoNotInstalled = "argo_not_installed",
    /// The rollout waits for nothing.
    NothingToPromote = "nothing_to_promote",
    /// The newest version serves already.
    AlreadyStable = "already_stable",
    /// The rollout is not on its way.
    NotInProgress = "not_in_progress",
    /// The rollout was not aborted.
    NotAborted = "not_aborted",
    /// The rollout takes its template from a kind that cannot be changed here.
    UnsupportedWorkload = "unsupported_workload",
    /// It is over already.
    AlreadyFinished = "already_finished",
    /// The target cannot do that.
    Unsupported = "unsupported",
    /// There is no such job.
    JobNotFound = "job_not_found",
    /// The job has no such build.
    BuildNotFound = "build_not_found",
    /// The target lacks the plugin for it.
    PluginMissing = "plugin_missing",
    /// The build has no test report.
    NoTestReport = "no_test_report",
    /// What is there is not text.
    NotText = "not_text",
    /// The item has left the queue.
    QueueItemGone = "queue_item_gone",
    /// The job has no such parameter.
    UnknownParameter = "unknown_parameter",
    /// The parameter does not take that value.
    InvalidChoice = "invalid_choice",
    /// The job is switched off.
    JobDisabled = "job_disabled",
    /// The job is not a pipeline.
    NotAPipeline = "not_a_pipeline",
    /// The build took passwords, so it cannot be run again.
    PasswordParameters = "password_parameters",
    /// The tenant has several servers, and none was named.
    ServerRequired = "server_required",
    /// The tenant has no server of that name.
    ServerUnknown = "server_unknown",
    /// The target does not accept the credentials of the tenant.
    CredentialsRefused = "credentials_refused",
    /// The external server is down, left alone for now, or has too many calls waiting.
    UpstreamUnavailable = "upstream_unavailable",
    /// The external server may not be reached, or nobody answers at its address.
    UpstreamRefused = "upstream_refused",
    /// The external server answered with an error.
    UpstreamError = "upstream_error",
    /// What the external server said cannot be understood.
    UpstreamProtocol = "upstream_protocol",
    /// The external server's tool is not the one that was accepted.
    ToolChanged = "tool_changed",
    /// The configuration has mistakes; nothing of it is used.
    ConfigInvalid = "config_invalid",
    /// The configuration changed meanwhile.
    ConfigConflict = "config_conflict",
    /// The operator does not let the configuration be changed over HTTP.
    ConfigLocked = "config_locked",
    /// Our fault.
    Internal = "internal",
}

impl Code {
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
                | Code::ReleaseBusy
                | Code::RepoUnreachable
                | Code::UpstreamUnavailable
        )
    }
}
