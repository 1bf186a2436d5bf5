//! Every metric: its name for Prometheus and for OTLP, its labels, its buckets, and what it is.
//!
//! A label holds a word of a closed list, or a name that an operator or a tenant configured. Ids, paths and what
//! callers write are never labels.

/// What a metric counts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum MetricKind {
    /// It only grows.
    Counter,
    /// It goes up and down.
    Gauge,
    /// It sorts what it is given into buckets.
    Histogram,
}

/// A metric's name, and what belongs to it.
#[derive(Debug)]
pub struct MetricName {
    /// As `/metrics` names it.
    pub prometheus: &'static str,
    /// As OTLP names it.
    pub otlp: &'static str,
    /// The unit, as OTLP spells it; empty for plain numbers.
    pub unit: &'static str,
    /// What it counts.
    pub kind: MetricKind,
    /// Its labels. An empty value means that a series does not have the label.
    pub labels: &'static [&'static str],
    /// The upper ends of its buckets.
    pub buckets: &'static [f64],
    /// One sentence about it.
    pub help: &'static str,
}

const MCP: &[f64] = &[0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1.0, 2.0, 5.0, 10.0, 30.0, 60.0, 120.0, 300.0];
const EXECUTE: &[f64] = &[0.01, 0.02, 0.04, 0.08, 0.16, 0.32, 0.64, 1.28, 2.56, 5.12, 10.24, 20.48, 40.96, 81.92];
const WAIT: &[f64] = &[1.0, 5.0, 15.0, 60.0, 300.0, 900.0, 3_600.0, 14_400.0, 86_400.0, 604_800.0];
const CLAIM: &[f64] = &[0.01, 0.05, 0.1, 0.5, 1.0, 5.0, 15.0, 60.0, 300.0, 900.0];
const STORE: &[f64] = &[0.0001, 0.00025, 0.0005, 0.001, 0.0025, 0.005, 0.01, 0.05, 0.1, 0.5, 1.0];
const TOKENS: &[f64] = &[64.0, 256.0, 1_024.0, 4_096.0, 16_384.0, 65_536.0];

/// The label of a tenant: only if it is switched on, and then for some tenants.
pub const TENANT_LABEL: &str = "tenant";

/// The attribute under which OTLP has a label.
pub fn attribute_of(label: &'static str) -> &'static str {
    match label {
        "mcp_method_name" => super::MCP_METHOD_NAME,
        "mcp_protocol_version" => super::MCP_PROTOCOL_VERSION,
        "gen_ai_tool_name" => super::GEN_AI_TOOL_NAME,
        "gen_ai_tool_type" => super::GEN_AI_TOOL_TYPE,
        "network_transport" => super::NETWORK_TRANSPORT,
        "error_type" => super::ERROR_TYPE,
        "server_address" => "server.address",
        "toolset" => super::TOOLSET,
        "effect" => super::EFFECT,
        "decision" => super::DECISION,
        "code" => super::CODE,
        "era" => super::ERA,
        "backend" => super::DB_SYSTEM_NAME,
        "operation" => super::DB_OPERATION_NAME,
        TENANT_LABEL => super::TENANT,
        other => other,
    }
}

/// Defines the names together with the list of all of them.
macro_rules! metrics {
    ($($ident:ident = $kind:ident $prometheus:literal $otlp:literal $unit:literal
       [$($label:literal),*] $($buckets:ident)?, $help:literal;)*) => {
        $(
            #[doc = $help]
            pub static $ident: MetricName = MetricName {
                prometheus: $prometheus,
                otlp: $otlp,
                unit: $unit,
                kind: MetricKind::$kind,
                labels: &[$($label),*],
                buckets: metrics!(@buckets $($buckets)?),
                help: $help,
            };
        )*
        /// Every metric there is.
        pub static METRICS: &[&MetricName] = &[$(&$ident),*];
    };
    (@buckets) => { &[] };
    (@buckets $buckets:ident) => { $buckets };
}

metrics! {
    MCP_SERVER_OPERATION = Histogram "mcp_server_operation_duration_seconds" "mcp.server.operation.duration" "s"
        ["mcp_method_name", "gen_ai_tool_name", "error_type", "mcp_protocol_version", "network_transport"] MCP,
        "How long a message of an MCP client took to answer.";
    MCP_CLIENT_OPERATION = Histogram "mcp_client_operation_duration_seconds" "mcp.client.operation.duration" "s"
        ["mcp_method_name", "gen_ai_tool_name", "error_type", "mcp_protocol_version", "network_transport",
         "server_address"] MCP,
        "How long an external MCP server took to answer.";
    MCP_SERVER_SESSION = Histogram "mcp_server_session_duration_seconds" "mcp.server.session.duration" "s"
        ["mcp_protocol_version", "error_type"] MCP,
        "How long a session was open when its client closed it.";
    MCP_CLIENT_SESSION = Histogram "mcp_client_session_duration_seconds" "mcp.client.session.duration" "s"
        ["mcp_protocol_version", "error_type"] MCP,
        "How long a session with an external MCP server lasted.";
    EXECUTE_TOOL = Histogram "gen_ai_execute_tool_duration_seconds" "gen_ai.execute_tool.duration" "s"
        ["gen_ai_tool_name", "gen_ai_tool_type", "error_type"] EXECUTE,
        "How long a tool ran.";
    CALLS = Counter "quartermaster_calls_total" "quartermaster.calls" "{call}"
        ["toolset", "effect", "decision", "code", "tenant"],
        "Calls by what they would do, what was decided and how they ended.";
    CALLS_IN_FLIGHT = Gauge "quartermaster_calls_in_flight" "quartermaster.calls.in_flight" "{call}"
        ["toolset"],
        "Calls under way in this process.";
    SESSIONS_ACTIVE = Gauge "quartermaster_sessions_active" "quartermaster.sessions.active" "{session}"
        [],
        "Sessions that made a call through this process within the last five minutes.";
    STREAMS_OPEN = Gauge "quartermaster_streams_open" "quartermaster.streams.open" "{stream}"
        ["era"],
        "Event streams open in this process.";
    RUNS = Gauge "quartermaster_runs" "quartermaster.runs" "{run}"
        ["state"],
        "Runs that are not over, by state, of all tenants; every replica reports the same.";
    RUNS_OLDEST = Gauge "quartermaster_runs_oldest_seconds" "quartermaster.runs.oldest" "s"
        ["state"],
        "How long ago the oldest run in a state was asked for.";
    RUNS_OLDEST_RATIO = Gauge "quartermaster_runs_oldest_ratio" "quartermaster.runs.oldest.ratio" "1"
        ["state"],
        "The largest part of its time that a run in a state has used: 1 is the moment at which it is due.";
    RUNS_OVERDUE = Gauge "quartermaster_runs_overdue" "quartermaster.runs.overdue" "{run}"
        ["state"],
        "Runs whose lease or deadline is over by more than 30 seconds and that nobody has looked at.";
    RUN_TRANSITIONS = Counter "quartermaster_run_transitions_total" "quartermaster.run.transitions" "{transition}"
        ["to", "tenant"],
        "Changes of a run's state that this process wrote.";
    RUN_FENCED = Counter "quartermaster_run_fenced_total" "quartermaster.run.fenced" "{run}"
        [],
        "Runs that this process had claimed and lost to another.";
    RUN_WAIT = Histogram "quartermaster_run_wait_seconds" "quartermaster.run.wait" "s"
        ["verdict"] WAIT,
        "How long a run waited for the decision that ended its waiting.";
    DECISIONS = Counter "quartermaster_decisions_total" "quartermaster.decisions" "{decision}"
        ["verdict", "result"],
        "Decisions of people, by what became of them.";
    RUN_UNCONFIRMED = Counter "quartermaster_run_unconfirmed_total" "quartermaster.run.unconfirmed" "{run}"
        ["state"],
        "Runs that an agent was not told of because too few replicas of the state store had confirmed them.";
    JOBS = Counter "quartermaster_jobs_total" "quartermaster.jobs" "{job}"
        ["state"],
        "Jobs for runners that this process moved, by the state they came into: submitted, claimed, started, or an ending.";
    JOB_WAIT = Histogram "quartermaster_job_wait_seconds" "quartermaster.job.wait" "s"
        [] CLAIM,
        "How long a job waited for the runner that claimed it.";
    RUNNERS_WAITING = Gauge "quartermaster_runners_waiting" "quartermaster.runners.waiting" "{runner}"
        [],
        "Runners that are connected to this process and wait for a job.";
    STORE_DURATION = Histogram "quartermaster_store_duration_seconds" "quartermaster.store.duration" "s"
        ["backend", "operation"] STORE,
        "How long a round trip to the state store took.";
    STORE_ERRORS = Counter "quartermaster_store_errors_total" "quartermaster.store.errors" "{error}"
        ["kind"],
        "Round trips to the state store that failed, and compare-and-sets that somebody else won.";
    STORE_MEMORY_RATIO = Gauge "quartermaster_store_memory_ratio" "quartermaster.store.memory.ratio" "1"
        ["store"],
        "The part of its memory limit that the state store uses.";
    STORE_GENERATION = Gauge "quartermaster_store_generation" "quartermaster.store.generation" ""
        ["store"],
        "Moves when the state store was restarted, replaced or failed over.";
    STORE_REPLICAS = Gauge "quartermaster_store_replicas" "quartermaster.store.replicas" "{replica}"
        ["store"],
        "Replicas that are connected to the state store.";
    STORE_REPLICAS_MISSING = Gauge "quartermaster_store_replicas_missing" "quartermaster.store.replicas.missing" "{replica}"
        ["store"],
        "Replicas that would have to follow the state store before a decision counts.";
    STORE_UNSAFE = Gauge "quartermaster_store_unsafe" "quartermaster.store.unsafe" ""
        ["store"],
        "1 if the state store may evict or forget records, whether that is accepted or not.";
    CACHE_REQUESTS = Counter "quartermaster_cache_requests_total" "quartermaster.cache.requests" "{request}"
        ["level", "result"],
        "Requests for lists of tools, by where they came from.";
    TOOLSET_LOADS = Counter "quartermaster_toolset_loads_total" "quartermaster.toolset.loads" "{load}"
        ["toolset", "mode", "result"],
        "Toolsets that sessions loaded.";
    TOOLSET_TOKENS = Gauge "quartermaster_toolset_tokens" "quartermaster.toolset.tokens" "{token}"
        ["toolset"],
        "What the schemas of a toolset cost a model that loads it.";
    RESULT_TOKENS = Histogram "quartermaster_result_tokens" "quartermaster.result.tokens" "{token}"
        ["toolset"] TOKENS,
        "What the result of a call costs a model.";
    UPSTREAM_BREAKER = Gauge "quartermaster_upstream_breaker" "quartermaster.upstream.breaker" ""
        ["upstream"],
        "1 if a target is not asked at the moment because it failed before.";
    UPSTREAM_IN_FLIGHT = Gauge "quartermaster_upstream_in_flight" "quartermaster.upstream.in_flight" "{request}"
        ["upstream"],
        "Requests under way to a target.";
    UPSTREAM_WAITING = Gauge "quartermaster_upstream_waiting" "quartermaster.upstream.waiting" "{request}"
        ["upstream"],
        "Requests that wait for a slot of a target.";
    UPSTREAM_TOKENS = Counter "quartermaster_upstream_tokens_total" "quartermaster.upstream.tokens" "{token}"
        ["upstream", "code"],
        "Tokens that authorization servers were asked for; with a code those that were not given.";
    TOOLS_QUARANTINED = Gauge "quartermaster_tools_quarantined" "quartermaster.tools.quarantined" "{tool}"
        ["upstream"],
        "Tools that are withheld until an admin accepts what their server changed.";
    AUTH_FAILURES = Counter "quartermaster_auth_failures_total" "quartermaster.auth.failures" "{request}"
        ["reason"],
        "Requests that were refused before a call because nobody was proven to send them.";
    SIGN_INS = Counter "quartermaster_console_sign_ins_total" "quartermaster.console.sign_ins" "{sign_in}"
        ["method", "result"],
        "Sign-ins to the console by how they were made and how they ended, and sign-outs.";
    CROSS_TENANT_DENIED = Counter "quartermaster_cross_tenant_denied_total" "quartermaster.cross_tenant.denied"
        "{request}" [],
        "Genuine tokens for a tenant that their issuer may not name.";
    RATE_LIMITED = Counter "quartermaster_rate_limited_total" "quartermaster.rate_limited" "{request}"
        ["scope", "tenant"],
        "Requests refused because a rate or the slots of a caller, a tenant or an address were used up.";
    AUDIT_RECORDS = Counter "quartermaster_audit_records_total" "quartermaster.audit.records" "{record}"
        ["phase"],
        "Records written to audit logs.";
    AUDIT_UNRECORDED_READS = Counter "quartermaster_audit_unrecorded_reads_total"
        "quartermaster.audit.unrecorded.reads" "{call}" ["tenant"],
        "Reads that ran without an audit record, because the store took none and the tenant allows it.";
    AUDIT_OPEN = Gauge "quartermaster_audit_open" "quartermaster.audit.open" "{record}"
        [],
        "Audit records that this process opened and has not closed.";
    AUDIT_SEAL_LAG = Gauge "quartermaster_audit_seal_lag_seconds" "quartermaster.audit.seal.lag" "s"
        [],
        "How far the seal of the audit log that is furthest behind is behind.";
    AUDIT_CHECKPOINT_AGE = Gauge "quartermaster_audit_checkpoint_age_seconds" "quartermaster.audit.checkpoint.age" "s"
        [],
        "The age of the oldest last checkpoint of an audit log that has grown since.";
    AUDIT_EXPORT_LAG = Gauge "quartermaster_audit_export_lag_seconds" "quartermaster.audit.export.lag" "s"
        [],
        "The age of the oldest audit record that is to be exported and is not.";
    AUDIT_VERIFY_FAILURES = Counter "quartermaster_audit_verify_failures_total" "quartermaster.audit.verify.failures"
        "{failure}" [],
        "Audit logs that did not verify.";
    CONFIG_RELOAD_FAILED = Counter "quartermaster_config_reload_failed_total" "quartermaster.config.reload.failed"
        "{failure}" [],
        "Configurations of tenants that could not be used when they were read.";
    OPERATOR_RECONCILES = Histogram "quartermaster_operator_reconcile_duration_seconds"
        "quartermaster.operator.reconcile.duration" "s" ["kind", "outcome"] EXECUTE,
        "How long a look of the operator at a resource took.";
    OPERATOR_WRITES = Counter "quartermaster_operator_writes_total" "quartermaster.operator.writes" "{write}" ["kind"],
        "Objects that the operator wrote to the API server, without its lease, and files that `sync` wrote (`file`, `secret_file`).";
    OPERATOR_LEADER = Gauge "quartermaster_operator_leader" "quartermaster.operator.leader" "" [],
        "1 if this operator holds the lease.";
    TELEMETRY_DROPPED = Counter "quartermaster_telemetry_dropped_total" "quartermaster.telemetry.dropped" "{item}"
        ["signal"],
        "Spans, log lines, exports of metrics and series that were dropped.";
    JWKS_AGE = Gauge "quartermaster_jwks_age_seconds" "quartermaster.jwks.age" "s"
        ["issuer"],
        "How long ago the keys of an issuer were fetched.";
    JWKS_AGE_RATIO = Gauge "quartermaster_jwks_age_ratio" "quartermaster.jwks.age.ratio" "1"
        ["issuer"],
        "The age of an issuer's keys as a part of the time they may be used without being fetched again.";
    CONFIG_LOADED = Gauge "quartermaster_config_loaded_timestamp_seconds" "quartermaster.config.loaded.timestamp" "s"
        [],
        "When a tenant's configuration was last taken over, in seconds since 1970.";
    NOT_READY = Gauge "quartermaster_not_ready" "quartermaster.not_ready" ""
        ["reason"],
        "1 for each reason why this process may not serve.";
    BUILD_INFO = Gauge "quartermaster_build_info" "quartermaster.build.info" ""
        ["version", "commit"],
        "Which build this is; always 1.";
    PROCESS_CPU = Counter "process_cpu_seconds_total" "process.cpu.time" "s"
        [],
        "CPU time that this process has used.";
    PROCESS_START_TIME = Gauge "process_start_time_seconds" "process.start_time" "s"
        [],
        "When this process started, in seconds since 1970.";
    PROCESS_RESIDENT_MEMORY = Gauge "process_resident_memory_bytes" "process.memory.usage" "By"
        [],
        "Resident memory of this process.";
    PROCESS_VIRTUAL_MEMORY = Gauge "process_virtual_memory_bytes" "process.memory.virtual" "By"
        [],
        "Virtual memory of this process.";
    PROCESS_OPEN_FDS = Gauge "process_open_fds" "process.open_file_descriptor.count" "{file_descriptor}"
        [],
        "Descriptors that this process has open.";
    PROCESS_MAX_FDS = Gauge "process_max_fds" "process.open_file_descriptor.limit" "{file_descriptor}"
        [],
        "Descriptors that this process may have open.";
    PROCESS_THREADS = Gauge "process_threads" "process.thread.count" "{thread}"
        [],
        "Threads of this process.";
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_metrics_are_these() {
        let line = |metric: &&MetricName| {
            let kind = format!("{:?}", metric.kind).to_lowercase();
            format!("{} {kind} {} = {}", metric.prometheus, metric.labels.join(","), metric.otlp)
        };
        insta::assert_snapshot!(METRICS.iter().map(line).collect::<Vec<_>>().join("\n"));
    }

    #[test]
    fn names_follow_the_rules_of_prometheus() {
        let mut seen = std::collections::BTreeSet::new();
        for metric in METRICS {
            let name = metric.prometheus;
            assert!(seen.insert(name) && seen.insert(metric.otlp), "{name} stands twice");
            assert!(
                name.bytes().all(|byte| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'_'),
                "{name}"
            );
            assert_eq!(name.ends_with("_total"), metric.kind == MetricKind::Counter, "{name}");
            assert_eq!(metric.buckets.is_empty(), metric.kind != MetricKind::Histogram, "{name}");
            assert!(metric.buckets.is_sorted(), "{name}");
            assert!(metric.help.ends_with('.'), "{name}");
            assert_eq!(metric.unit == "s", name.trim_end_matches("_total").ends_with("_seconds"), "{name}");
        }
    }

    #[test]
    fn no_label_could_hold_an_id_a_path_or_what_a_caller_wrote() {
        for label in METRICS.iter().flat_map(|metric| metric.labels) {
            for never in ["session", "run", "call", "trace", "span", "path", "url", "principal", "message", "id"] {
                assert_ne!(*label, never);
            }
        }
    }
}
