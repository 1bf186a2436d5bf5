//! The instruments of this process: one for each metric of [`names::metrics`](crate::names::metrics).
//!
//! They are there from the start and are used where the fact is known, without a handle that would have to be passed
//! down. Noting something costs a hash of the labels, a read lock and one or two atomic additions; it allocates only
//! when a series is new. Counters and histograms count what this process did; gauges about the store are set by whoever
//! is about to read them.
//!
//! Reading order: `family` (the series of a metric), `instrument` (the kinds), this file (the instruments), `tenant`
//! (whether tenants are told apart), `process` (what the system says of this process), `text` (what Prometheus reads).

mod family;
mod instrument;
mod process;
mod tenant;
mod text;

#[cfg(test)]
mod tests;

pub use instrument::{Counter, Gauge, GaugeGuard, Histogram};
pub use tenant::{label_tenants, tenant_label};
pub use text::TextFormat;

use crate::names::metrics as names;
use instrument::Instrument;

pub(crate) use family::SeriesReading;
pub(crate) use instrument::MetricReading;

/// Defines the instruments together with the list of all of them.
macro_rules! instruments {
    ($($ident:ident: $kind:ident<$labels:literal>;)*) => {
        $(
            #[doc = concat!("See [`", stringify!($ident), "`](crate::names::metrics::", stringify!($ident), ").")]
            pub static $ident: $kind<$labels> = $kind::new(&names::$ident);
        )*
        static ALL: &[&dyn Instrument] = &[$(&$ident),*];
    };
}

instruments! {
    MCP_SERVER_OPERATION: Histogram<5>;
    MCP_CLIENT_OPERATION: Histogram<6>;
    MCP_SERVER_SESSION: Histogram<2>;
    MCP_CLIENT_SESSION: Histogram<2>;
    EXECUTE_TOOL: Histogram<3>;
    CALLS: Counter<5>;
    CALLS_IN_FLIGHT: Gauge<1>;
    SESSIONS_ACTIVE: Gauge<0>;
    STREAMS_OPEN: Gauge<1>;
    RUNS: Gauge<1>;
    RUNS_OLDEST: Gauge<1>;
    RUNS_OLDEST_RATIO: Gauge<1>;
    RUNS_OVERDUE: Gauge<1>;
    RUN_TRANSITIONS: Counter<2>;
    RUN_FENCED: Counter<0>;
    RUN_WAIT: Histogram<1>;
    DECISIONS: Counter<2>;
    RUN_UNCONFIRMED: Counter<1>;
    JOBS: Counter<1>;
    JOB_WAIT: Histogram<0>;
    RUNNERS_WAITING: Gauge<0>;
    STORE_DURATION: Histogram<2>;
    STORE_ERRORS: Counter<1>;
    STORE_MEMORY_RATIO: Gauge<1>;
    STORE_GENERATION: Gauge<1>;
    STORE_REPLICAS: Gauge<1>;
    STORE_REPLICAS_MISSING: Gauge<1>;
    STORE_UNSAFE: Gauge<1>;
    CACHE_REQUESTS: Counter<2>;
    TOOLSET_LOADS: Counter<3>;
    TOOLSET_TOKENS: Gauge<1>;
    RESULT_TOKENS: Histogram<1>;
    UPSTREAM_BREAKER: Gauge<1>;
    UPSTREAM_IN_FLIGHT: Gauge<1>;
    UPSTREAM_WAITING: Gauge<1>;
    UPSTREAM_TOKENS: Counter<2>;
    TOOLS_QUARANTINED: Gauge<1>;
    AUTH_FAILURES: Counter<1>;
    SIGN_INS: Counter<2>;
    CROSS_TENANT_DENIED: Counter<0>;
    RATE_LIMITED: Counter<2>;
    AUDIT_RECORDS: Counter<1>;
    AUDIT_UNRECORDED_READS: Counter<1>;
    AUDIT_OPEN: Gauge<0>;
    AUDIT_SEAL_LAG: Gauge<0>;
    AUDIT_CHECKPOINT_AGE: Gauge<0>;
    AUDIT_EXPORT_LAG: Gauge<0>;
    AUDIT_VERIFY_FAILURES: Gauge<0>;
    CONFIG_RELOAD_FAILED: Counter<0>;
    OPERATOR_RECONCILES: Histogram<2>;
    OPERATOR_WRITES: Counter<1>;
    OPERATOR_LEADER: Gauge<0>;
    TELEMETRY_DROPPED: Counter<1>;
    JWKS_AGE: Gauge<1>;
    JWKS_AGE_RATIO: Gauge<1>;
    CONFIG_LOADED: Gauge<0>;
    NOT_READY: Gauge<1>;
    BUILD_INFO: Gauge<2>;
    PROCESS_CPU: Gauge<0>;
    PROCESS_START_TIME: Gauge<0>;
    PROCESS_RESIDENT_MEMORY: Gauge<0>;
    PROCESS_VIRTUAL_MEMORY: Gauge<0>;
    PROCESS_OPEN_FDS: Gauge<0>;
    PROCESS_MAX_FDS: Gauge<0>;
    PROCESS_THREADS: Gauge<0>;
}

/// Makes the series visible that alerts compare with their own past: without the zero before it, the first failure of a
/// process would be no increase.
pub fn begin(version: &str, commit: &str) {
    BUILD_INFO.set([version, commit], 1.0);
    for counter in [&RUN_FENCED, &CROSS_TENANT_DENIED, &CONFIG_RELOAD_FAILED] {
        counter.add([], 0);
    }
    for verdict in ["approve", "reject"] {
        for result in ["won", "lost", "repeated", "not_durable", "refused"] {
            DECISIONS.add([verdict, result], 0);
        }
    }
    for kind in ["timeout", "connection", "readonly", "noscript", "oom", "noreplicas", "unconfirmed", "conflict"] {
        STORE_ERRORS.add([kind], 0);
    }
    AUDIT_UNRECORDED_READS.add([""], 0);
    for scope in ["address", "caller", "tenant", "slots"] {
        RATE_LIMITED.add([scope, ""], 0);
    }
    for signal in ["traces", "logs", "metrics", "attributes"] {
        TELEMETRY_DROPPED.add([signal], 0);
    }
}

/// Everything, as Prometheus reads it. What the process itself is asked for is looked up now.
pub fn text(format: TextFormat) -> String {
    text::write(&read(), format)
}

/// Everything as it is now.
pub(crate) fn read() -> Vec<MetricReading> {
    process::look();
    ALL.iter().map(|instrument| instrument.read()).collect()
}
