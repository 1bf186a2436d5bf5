//! `/metrics` of the real program, read by a strict parser and compared with the table of metrics by name.

use crate::here::processes;
use crate::k8s_yard::{Draft, Yard, deployment, manifest};
use crate::runs_desk::{approve, await_run, ended, reject, say};
use crate::upstream_yard::{Shelf, draw, ours};
use sandbox::Seed;
use serde_json::json;
use std::collections::{BTreeMap, BTreeSet};
use std::net::{Ipv4Addr, SocketAddr, TcpListener};
use testkit::upstream::{Era, McpServer};
use testkit::{Collector, Plan, Process, Request, until};

/// The metrics as the design names them: name, type, and every label a series may have. Those that only an audit log with
/// checkpoints, a Redis or the usage of tokens can fill stand in [`ELSEWHERE`].
const TABLE: &[(&str, &str, &[&str])] = &[
    (
        "mcp_server_operation_duration_seconds",
        "histogram",
        &["mcp_method_name", "gen_ai_tool_name", "error_type", "mcp_protocol_version", "network_transport"],
    ),
    (
        "mcp_client_operation_duration_seconds",
        "histogram",
        &["mcp_method_name", "gen_ai_tool_name", "error_type", "network_transport", "server_address"],
    ),
    ("mcp_server_session_duration_seconds", "histogram", &["mcp_protocol_version", "error_type"]),
    ("gen_ai_execute_tool_duration_seconds", "histogram", &["gen_ai_tool_name", "gen_ai_tool_type", "error_type"]),
    ("quartermaster_calls_total", "counter", &["toolset", "effect", "decision", "code"]),
    ("quartermaster_calls_in_flight", "gauge", &["toolset"]),
    ("quartermaster_sessions_active", "gauge", &[]),
    ("quartermaster_streams_open", "gauge", &["era"]),
    ("quartermaster_runs", "gauge", &["state"]),
    ("quartermaster_runs_oldest_seconds", "gauge", &["state"]),
    ("quartermaster_runs_oldest_ratio", "gauge", &["state"]),
    ("quartermaster_runs_overdue", "gauge", &["state"]),
    ("quartermaster_run_transitions_total", "counter", &["to"]),
    ("quartermaster_run_fenced_total", "counter", &[]),
    ("quartermaster_run_wait_seconds", "histogram", &["verdict"]),
    ("quartermaster_decisions_total", "counter", &["verdict", "result"]),
    ("quartermaster_store_duration_seconds", "histogram", &["backend", "operation"]),
    ("quartermaster_store_errors_total", "counter", &["kind"]),
    ("quartermaster_store_generation", "gauge", &["store"]),
    ("quartermaster_store_unsafe", "gauge", &["store"]),
    ("quartermaster_cache_requests_total", "counter", &["level", "result"]),
    ("quartermaster_toolset_loads_total", "counter", &["toolset", "mode", "result"]),
    ("quartermaster_toolset_tokens", "gauge", &["toolset"]),
    ("quartermaster_result_tokens", "histogram", &["toolset"]),
    ("quartermaster_upstream_breaker", "gauge", &["upstream"]),
    ("quartermaster_upstream_in_flight", "gauge", &["upstream"]),
    ("quartermaster_upstream_waiting", "gauge", &["upstream"]),
    ("quartermaster_upstream_tokens_total", "counter", &["upstream", "code"]),
    ("quartermaster_tools_quarantined", "gauge", &["upstream"]),
    ("quartermaster_auth_failures_total", "counter", &["reason"]),
    ("quartermaster_cross_tenant_denied_total", "counter", &[]),
    ("quartermaster_rate_limited_total", "counter", &["scope"]),
    ("quartermaster_audit_records_total", "counter", &["phase"]),
    ("quartermaster_audit_unrecorded_reads_total", "counter", &[]),
    ("quartermaster_audit_open", "gauge", &[]),
    ("quartermaster_audit_seal_lag_seconds", "gauge", &[]),
    ("quartermaster_audit_checkpoint_age_seconds", "gauge", &[]),
    ("quartermaster_audit_export_lag_seconds", "gauge", &[]),
    ("quartermaster_audit_verify_failures_total", "counter", &[]),
    ("quartermaster_config_reload_failed_total", "counter", &[]),
    ("quartermaster_telemetry_dropped_total", "counter", &["signal"]),
    ("quartermaster_config_loaded_timestamp_seconds", "gauge", &[]),
    ("quartermaster_build_info", "gauge", &["version", "commit"]),
    ("process_cpu_seconds_total", "counter", &[]),
    ("process_start_time_seconds", "gauge", &[]),
    ("process_resident_memory_bytes", "gauge", &[]),
    ("process_virtual_memory_bytes", "gauge", &[]),
    ("process_open_fds", "gauge", &[]),
    ("process_max_fds", "gauge", &[]),
    ("process_threads", "gauge", &[]),
];

/// What this test's service has no cause to show.
const ELSEWHERE: &[&str] = &[
    "quartermaster_console_sign_ins_total",
    "quartermaster_upstream_tokens_total",
    "mcp_client_session_duration_seconds",
    "quartermaster_store_memory_ratio",
    "quartermaster_store_replicas",
    "quartermaster_store_replicas_missing",
    "quartermaster_run_unconfirmed_total",
    "quartermaster_jwks_age_seconds",
    "quartermaster_jwks_age_ratio",
    "quartermaster_not_ready",
    "quartermaster_jobs_total",
    "quartermaster_job_wait_seconds",
    "quartermaster_runners_waiting",
    "quartermaster_operator_reconcile_duration_seconds",
    "quartermaster_operator_writes_total",
    "quartermaster_operator_leader",
];

/// One metric as it was read.
#[derive(Debug, Default)]
struct Family {
    kind: String,
    /// The value of each series, by its name and labels.
    samples: BTreeMap<(String, BTreeMap<String, String>), f64>,
}

/// Reads the text format as strictly as Prometheus does: help, type, then all samples of the metric and no others.
fn parse(text: &str) -> BTreeMap<String, Family> {
    assert!(text.ends_with('\n'), "the last line ends");
    let (mut families, mut current) = (BTreeMap::<String, Family>::new(), String::new());
    let mut lines = text.lines();
    while let Some(line) = lines.next() {
        if let Some(help) = line.strip_prefix("# HELP ") {
            let (name, sentence) = help.split_once(' ').expect("a sentence of help");
            assert!(!sentence.is_empty());
            let kind = lines.next().and_then(|line| line.strip_prefix("# TYPE ")).expect("a type behind the help");
            let (typed, kind) = kind.split_once(' ').unwrap();
            assert_eq!(typed, name);
            let family = Family { kind: kind.to_owned(), ..Family::default() };
            assert!(families.insert(name.to_owned(), family).is_none(), "{name} stands twice");
            current = name.to_owned();
            continue;
        }
        let (series, value) = line.rsplit_once(' ').unwrap_or_else(|| panic!("no value: {line}"));
        let (name, labels) = match series.split_once('{') {
            Some((name, labels)) => (name, labels.strip_suffix('}').expect("a closing brace")),
            None => (series, ""),
        };
        let family = families.get_mut(&current).expect("a type before the first sample");
        let suffix = name.strip_prefix(&current).unwrap_or_else(|| panic!("{name} stands below {current}"));
        match family.kind.as_str() {
            "histogram" => assert!(["_bucket", "_sum", "_count"].contains(&suffix), "{line}"),
            "counter" | "gauge" => assert_eq!(suffix, "", "{line}"),
            other => panic!("no such type: {other}"),
        }
        let value: f64 = value.parse().unwrap_or_else(|_| panic!("no number: {line}"));
        assert!(value >= 0.0, "{line}");
        let key = (name.to_owned(), read_labels(labels));
        assert!(family.samples.insert(key, value).is_none(), "the series stands twice: {line}");
    }
    families.iter().for_each(|(name, family)| check_histogram(name, family));
    families
}

fn read_labels(mut text: &str) -> BTreeMap<String, String> {
    let mut labels = BTreeMap::new();
    while !text.is_empty() {
        let (name, rest) = text.split_once("=\"").unwrap_or_else(|| panic!("no label: {text}"));
        assert!(name.bytes().all(|byte| byte.is_ascii_lowercase() || byte == b'_'), "{name}");
        let end = rest.find('"').expect("a closing quote");
        assert!(!rest[..end].contains('\\'), "nothing here needs escaping: {rest}");
        assert!(labels.insert(name.to_owned(), rest[..end].to_owned()).is_none(), "{name} stands twice");
        text = rest[end + 1..].trim_start_matches(',');
    }
    labels
}

/// The buckets of a series only grow, and the last one holds all of it.
fn check_histogram(name: &str, family: &Family) {
    let mut series = BTreeMap::<BTreeMap<String, String>, Vec<(f64, f64)>>::new();
    for ((sample, labels), value) in &family.samples {
        if let Some(end) = labels.get("le") {
            assert_eq!(*sample, format!("{name}_bucket"));
            let end = if end == "+Inf" { f64::INFINITY } else { end.parse().unwrap() };
            let mut rest = labels.clone();
            rest.remove("le");
            series.entry(rest).or_default().push((end, *value));
        }
    }
    for (labels, mut buckets) in series {
        buckets.sort_by(|one, other| one.0.total_cmp(&other.0));
        assert!(buckets.is_sorted_by(|one, other| one.1 <= other.1), "{name} {labels:?} {buckets:?}");
        let count = family.samples[&(format!("{name}_count"), labels.clone())];
        assert_eq!(buckets.last().copied(), Some((f64::INFINITY, count)), "{name} {labels:?}");
        assert!(family.samples.contains_key(&(format!("{name}_sum"), labels)));
    }
}

/// The sum of the series of a metric whose labels include these.
fn sum(families: &BTreeMap<String, Family>, name: &str, labels: &[(&str, &str)]) -> f64 {
    let family = families.iter().find(|(family, _)| name.starts_with(family.as_str()) && is_sample(name, family));
    let Some((_, family)) = family else { return 0.0 };
    let fits =
        |own: &BTreeMap<String, String>| labels.iter().all(|(key, value)| own.get(*key).is_some_and(|v| v == value));
    family.samples.iter().filter(|((sample, own), _)| sample == name && fits(own)).map(|(_, value)| value).sum()
}

fn is_sample(name: &str, family: &str) -> bool {
    ["", "_count", "_sum", "_bucket"].iter().any(|suffix| name.strip_prefix(family) == Some(suffix))
}

/// An address that is free at this moment.
fn free_address() -> SocketAddr {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
    listener.local_addr().unwrap()
}

async fn scrape(address: SocketAddr) -> BTreeMap<String, Family> {
    let answer = Request::new("GET", "/metrics").send(address).await;
    assert_eq!(answer.header("content-type"), Some("text/plain; version=0.0.4; charset=utf-8"));
    parse(&answer.text())
}

async fn yard(address: SocketAddr, more: &[(&str, &str)]) -> Yard<Process> {
    let draft = Draft::simulated(Seed::empty()).await.setting("QM_TELEMETRY__METRICS_LISTEN", &address.to_string());
    let draft = more.iter().fold(draft, |draft, (key, value)| draft.setting(key, value));
    draft.start_as(processes()).await
}

/// Calls of every kind: each way in, each decision, each ending, and some that are no calls.
async fn use_it(yard: &Yard<Process>) {
    let pods = json!({ "kind": "Pod" });
    yard.agent.call("k8s_get", pods.clone()).await;
    yard.agent.call("no_such_canary", json!({})).await;
    yard.agent.call("k8s_get", json!({ "kind": "NoSuchKind" })).await;
    yard.agent.list().await;
    let agent = yard.world.tenant("acme").agent();
    agent.modern().call("k8s_get", pods.clone()).await;
    let rest = agent.rest();
    let session = rest.open("read").await;
    rest.call(&session, "k8s_get", pods).await;
    let run = yard.ask("k8s_apply", json!({ "manifest": manifest(&[deployment("web", 1)]) })).await;
    approve(&yard.ana, &run).await;
    ended(&yard.ana, &run).await;
    await_run(&yard.agent, &run).await;
    assert_eq!(say(&yard.ana, &run, "reject", json!({})).await.status, 409);
    let run = yard.ask("k8s_apply", json!({ "manifest": manifest(&[deployment("api", 1)]) })).await;
    reject(&yard.ana, &run, "not now").await;
    yard.ask("k8s_apply", json!({ "manifest": manifest(&[deployment("db", 1)]) })).await;
    yard.agent.load("memory").await;
    let nobody = Request::new("GET", "/v1/runs").header("authorization", "Bearer nonsense");
    assert_eq!(nobody.send(yard.world.address(0)).await.status, 401);
    assert_eq!(Request::new("GET", "/v1/runs").send(yard.world.address(0)).await.status, 401);
    let closing = agent.legacy().await;
    assert_eq!(closing.delete().await.status, 204);
}

#[tokio::test(flavor = "multi_thread")]
async fn every_metric_of_the_table_is_counted_where_it_happens() {
    let address = free_address();
    let yard = yard(address, &[]).await;
    let stream = yard.agent.open_stream().await;
    use_it(&yard).await;
    // The sweep has to see a run that waits before it is counted.
    let waiting = [("state", "pending_approval")];
    until("a run that waits", async || {
        (sum(&scrape(address).await, "quartermaster_runs", &waiting) == 1.0).then_some(())
    })
    .await;
    let read = scrape(address).await;

    let at_least = |name: &str, labels: &[(&str, &str)], least: f64| {
        let value = sum(&read, name, labels);
        assert!(value >= least, "{name} {labels:?} is {value}");
    };
    let calls = "quartermaster_calls_total";
    at_least(calls, &[("toolset", "k8s"), ("effect", "read"), ("decision", "permit"), ("code", "ok")], 3.0);
    at_least(calls, &[("toolset", "k8s"), ("effect", "change"), ("decision", "ask"), ("code", "ok")], 3.0);
    at_least(calls, &[("code", "unknown_tool")], 1.0);
    at_least(calls, &[("toolset", "virtual"), ("decision", "permit")], 1.0);
    let tool = ("gen_ai_tool_name", "k8s_get");
    at_least("gen_ai_execute_tool_duration_seconds_count", &[tool, ("gen_ai_tool_type", "extension")], 3.0);
    at_least("gen_ai_execute_tool_duration_seconds_count", &[("gen_ai_tool_name", "k8s_apply")], 1.0);
    let call = [("mcp_method_name", "tools/call"), tool, ("network_transport", "tcp")];
    at_least("mcp_server_operation_duration_seconds_count", &call, 3.0);
    at_least("mcp_server_operation_duration_seconds_count", &[tool, ("error_type", "tool_error")], 1.0);
    for method in ["initialize", "tools/list"] {
        at_least("mcp_server_operation_duration_seconds_count", &[("mcp_method_name", method)], 1.0);
    }
    at_least("mcp_server_session_duration_seconds_count", &[], 1.0);
    for (to, least) in [("pending_approval", 3.0), ("approved", 1.0), ("rejected", 1.0), ("succeeded", 1.0)] {
        at_least("quartermaster_run_transitions_total", &[("to", to)], least);
    }
    for (verdict, result) in [("approve", "won"), ("reject", "won"), ("reject", "lost")] {
        at_least("quartermaster_decisions_total", &[("verdict", verdict), ("result", result)], 1.0);
    }
    at_least("quartermaster_run_wait_seconds_count", &[("verdict", "approve")], 1.0);
    at_least("quartermaster_toolset_loads_total", &[("toolset", "memory"), ("result", "ok")], 1.0);
    at_least("quartermaster_toolset_tokens", &[("toolset", "k8s")], 1.0);
    at_least("quartermaster_result_tokens_count", &[("toolset", "k8s")], 3.0);
    at_least("quartermaster_auth_failures_total", &[("reason", "not_a_token")], 1.0);
    at_least("quartermaster_auth_failures_total", &[("reason", "no_token")], 1.0);
    at_least("quartermaster_cache_requests_total", &[("level", "l1"), ("result", "miss")], 1.0);
    for operation in ["cas", "append"] {
        at_least("quartermaster_store_duration_seconds_count", &[("backend", "redb"), ("operation", operation)], 1.0);
    }
    for phase in ["open", "close", "transition"] {
        at_least("quartermaster_audit_records_total", &[("phase", phase)], 1.0);
    }
    at_least("quartermaster_streams_open", &[("era", "legacy")], 1.0);
    at_least("quartermaster_sessions_active", &[], 1.0);
    at_least("quartermaster_build_info", &[("version", env!("CARGO_PKG_VERSION"))], 1.0);
    at_least("process_resident_memory_bytes", &[], 1e6);
    at_least("process_open_fds", &[], 3.0);
    assert_eq!(sum(&read, "quartermaster_runs", &[("state", "executing")]), 0.0);
    for gauge in ["breaker", "in_flight", "waiting"] {
        let mut series = read[&format!("quartermaster_upstream_{gauge}")].samples.keys();
        assert!(series.any(|(_, labels)| labels["upstream"] == "cluster/main"), "{gauge} of the cluster");
    }
    assert_eq!(sum(&read, "quartermaster_runs_overdue", &[]), 0.0);
    drop(stream);

    for (name, family) in &read {
        let (_, kind, labels) =
            TABLE.iter().find(|(known, ..)| known == name).unwrap_or_else(|| panic!("{name} is in no table"));
        assert_eq!(family.kind, *kind, "{name}");
        for (_, own) in family.samples.keys() {
            let unknown: Vec<_> = own.keys().filter(|key| *key != "le" && !labels.contains(&key.as_str())).collect();
            assert!(unknown.is_empty(), "{name} has {unknown:?}");
            assert!(own.values().all(|value| !value.contains("canary") && !value.contains("acme")), "{name} {own:?}");
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn calls_to_external_servers_are_measured_by_the_name_of_the_server() {
    let address = free_address();
    let wiki = McpServer::start(Era::Both).await;
    let shelf = Shelf::new().trusted("wiki", &wiki);
    let plan = shelf.under(Plan::embedded()).setting("QM_UPSTREAMS__PRIVATE", "true");
    let plan = plan.setting("QM_TELEMETRY__METRICS_LISTEN", &address.to_string());
    let world = plan.tenant("acme", "servers: [{ use: wiki }]").start(processes()).await;
    let client = world.tenant("acme").agent().legacy().await;
    draw(&client, "wiki").await;
    let tool = ours("wiki", "whoami");
    client.call(&tool, json!({})).await;

    let read = scrape(address).await;
    let call = [("mcp_method_name", "tools/call"), ("gen_ai_tool_name", &tool), ("server_address", "wiki")];
    assert!(sum(&read, "mcp_client_operation_duration_seconds_count", &call) >= 1.0);
    let list = [("mcp_method_name", "tools/list"), ("server_address", "wiki")];
    assert!(sum(&read, "mcp_client_operation_duration_seconds_count", &list) >= 1.0);
    for gauge in ["breaker", "in_flight", "waiting"] {
        let name = format!("quartermaster_upstream_{gauge}");
        assert_eq!(read[&name].samples.len(), 1, "{name}");
        assert_eq!(sum(&read, &name, &[("upstream", "wiki")]), 0.0);
    }
    assert!(read.contains_key("quartermaster_tools_quarantined"));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_session_with_an_external_server_is_measured_when_it_ends() {
    let (address, wiki) = (free_address(), McpServer::start(Era::Legacy).await);
    let shelf = Shelf::new().trusted("wiki", &wiki);
    let plan = shelf.under(Plan::embedded()).setting("QM_UPSTREAMS__PRIVATE", "true");
    let plan = plan.setting("QM_TELEMETRY__METRICS_LISTEN", &address.to_string());
    let world = plan.tenant("acme", "servers: [{ use: wiki }]").start(processes()).await;
    let client = world.tenant("acme").agent().legacy().await;
    draw(&client, "wiki").await;
    client.call(&ours("wiki", "whoami"), json!({})).await;
    world.configure("acme", "");
    until("the end of the session", async || {
        (sum(&scrape(address).await, "mcp_client_session_duration_seconds_count", &[]) >= 1.0).then_some(())
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn tenants_are_told_apart_only_if_the_operator_wants_it() {
    let address = free_address();
    let yard = yard(address, &[("QM_TELEMETRY__METRICS_BY_TENANT", "true")]).await;
    yard.agent.call("k8s_get", json!({ "kind": "Pod" })).await;

    let read = scrape(address).await;
    assert!(sum(&read, "quartermaster_calls_total", &[("tenant", "acme"), ("code", "ok")]) >= 1.0);
    let others: BTreeSet<&String> = read
        .iter()
        .filter(|(_, family)| family.samples.keys().any(|(_, own)| own.contains_key("tenant")))
        .map(|(name, _)| name)
        .collect();
    let allowed =
        ["quartermaster_calls_total", "quartermaster_rate_limited_total", "quartermaster_run_transitions_total"];
    assert!(others.iter().all(|name| allowed.contains(&name.as_str())), "{others:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn metrics_are_read_on_a_listener_of_their_own() {
    let address = free_address();
    let yard = yard(address, &[]).await;
    assert_eq!(Request::new("GET", "/metrics").send(yard.world.address(0)).await.status, 401);
    for path in ["/", "/health", "/mcp", "/v1/runs"] {
        assert_eq!(Request::new("GET", path).send(address).await.status, 404, "{path}");
    }
    let accept = "application/openmetrics-text;version=1.0.0;q=0.5,text/plain;version=0.0.4;q=0.3";
    let open = Request::new("GET", "/metrics").header("accept", accept).send(address).await;
    assert_eq!(open.header("content-type"), Some("application/openmetrics-text; version=1.0.0; charset=utf-8"));
    assert!(open.text().ends_with("\n# EOF\n"));
    assert!(
        open.text().contains("# TYPE quartermaster_calls counter\n")
            || !open.text().contains("quartermaster_calls_total")
    );
}

#[test]
fn the_table_and_the_names_agree() {
    let names: BTreeSet<&str> = telemetry::names::metrics::METRICS.iter().map(|metric| metric.prometheus).collect();
    let table: BTreeSet<&str> = TABLE.iter().map(|(name, ..)| *name).chain(ELSEWHERE.iter().copied()).collect();
    assert_eq!(names, table);
    for metric in telemetry::names::metrics::METRICS {
        let Some((_, kind, labels)) = TABLE.iter().find(|(name, ..)| *name == metric.prometheus) else { continue };
        assert_eq!(format!("{:?}", metric.kind).to_lowercase(), *kind);
        // The tenant is a label only where an operator wants it, and external servers do not tell their version.
        let own = metric.labels.iter().filter(|label| !["tenant", "mcp_protocol_version"].contains(*label));
        assert!(own.clone().all(|label| labels.contains(label)), "{}", metric.prometheus);
    }
}

#[test]
fn the_page_about_telemetry_lists_every_metric() {
    let page = include_str!("../../../../docs/telemetry.md");
    let listed: Vec<&str> = page.lines().filter(|line| line.starts_with("| `") && line.contains("_")).collect();
    for metric in telemetry::names::metrics::METRICS {
        let labels = if metric.labels.is_empty() { "–".to_owned() } else { metric.labels.join(", ") };
        let kind = format!("{:?}", metric.kind).to_lowercase();
        let row = format!("| `{}` | {kind} | {labels} | {} |", metric.prometheus, metric.help);
        assert!(listed.contains(&row.as_str()), "docs/telemetry.md lacks {row}");
    }
}

/// A service that sends everything here, often.
async fn sending(collector: &Collector, protocol: &str) -> Yard<Process> {
    let draft = Draft::simulated(Seed::empty()).await.setting("OTEL_EXPORTER_OTLP_ENDPOINT", &collector.url());
    let draft = draft.setting("OTEL_EXPORTER_OTLP_PROTOCOL", protocol);
    let draft = draft.setting("OTEL_EXPORTER_OTLP_HEADERS", "x-api-key=a%20planted%20key");
    let draft = draft.setting("OTEL_SERVICE_NAME", "tools").setting("OTEL_TRACES_SAMPLER", "always_on");
    let draft = draft.setting("OTEL_RESOURCE_ATTRIBUTES", "deployment.environment.name=staging");
    draft.setting("OTEL_METRIC_EXPORT_INTERVAL", "100").start_as(processes()).await
}

#[tokio::test(flavor = "multi_thread")]
async fn traces_metrics_and_logs_reach_a_collector_by_both_protocols() {
    for protocol in ["grpc", "http/protobuf"] {
        let collector = Collector::start().await;
        let yard = sending(&collector, protocol).await;
        use_it(&yard).await;

        let newest = |name: &str| collector.metrics().into_iter().rev().find(|metric| metric.name == name);
        for (name, kind, unit) in [
            ("mcp.server.operation.duration", "histogram", "s"),
            ("gen_ai.execute_tool.duration", "histogram", "s"),
            ("quartermaster.calls", "sum", "{call}"),
            ("quartermaster.runs", "gauge", "{run}"),
            ("quartermaster.store.duration", "histogram", "s"),
            ("process.memory.usage", "gauge", "By"),
        ] {
            let metric = until(name, async || newest(name)).await;
            assert_eq!((metric.kind, metric.unit.as_str()), (kind, unit), "{name}");
        }
        let calls = until("calls by tool", async || {
            let calls = newest("quartermaster.calls")?;
            calls.series.into_iter().find(|series| series.get("quartermaster.decision").is_some_and(|own| own == "ask"))
        });
        assert_eq!(calls.await["quartermaster.toolset"], "k8s");
        for metric in collector.metrics() {
            let known = telemetry::names::metrics::METRICS.iter().any(|known| known.otlp == metric.name);
            assert!(known, "{} is in no table", metric.name);
        }
        let waiting = async || collector.logs().into_iter().find(|log| log.body == "a call waits for a person");
        let waiting = until("a log line", waiting).await;
        assert_eq!((waiting.severity.as_str(), waiting.attributes["tenant"].as_str()), ("INFO", "acme"));
        let of_line =
            async || collector.spans().into_iter().find(|span| span.trace == waiting.trace && span.id == waiting.span);
        until("the span of the line", of_line).await;
        let resource = collector.resource();
        assert_eq!(
            (resource["service.name"].as_str(), resource["deployment.environment.name"].as_str()),
            ("tools", "staging")
        );
        let sent = String::from_utf8_lossy(&collector.taken()).into_owned();
        assert!(!sent.contains("no_such_canary") && !sent.contains("planted key"), "what nobody may see was sent");
        if protocol == "http/protobuf" {
            for path in ["/v1/traces", "/v1/metrics", "/v1/logs"] {
                let head = collector.heads().into_iter().find(|head| head.starts_with(&format!("POST {path} ")));
                let head = head.unwrap_or_else(|| panic!("nothing came to {path}")).to_lowercase();
                assert!(head.contains("content-type: application/x-protobuf\r\n"), "{head}");
                assert!(head.contains("x-api-key: a planted key\r\n"), "{head}");
            }
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_collector_that_is_away_is_counted_and_told_of() {
    let (address, nobody) = (free_address(), free_address());
    let settings = [
        ("QM_TELEMETRY__OTLP_ENDPOINT", format!("http://{nobody}")),
        ("QM_TELEMETRY__SAMPLE_RATIO", "1.0".to_owned()),
        ("QM_TELEMETRY__METRICS_EVERY_MS", "100".to_owned()),
    ];
    let yard = yard(address, &settings.each_ref().map(|(key, value)| (*key, value.as_str()))).await;
    yard.agent.call("k8s_get", json!({ "kind": "Pod" })).await;
    for signal in ["traces", "metrics", "logs"] {
        let counted = async || {
            (sum(&scrape(address).await, "quartermaster_telemetry_dropped_total", &[("signal", signal)]) > 0.0)
                .then_some(())
        };
        until(signal, counted).await;
    }
    let told = async || {
        let ready = yard.world.get(0, "/readyz").await;
        assert_eq!(ready.status, 200, "it serves all the same");
        ready.text().contains("otlp_down").then_some(())
    };
    until("otlp_down", told).await;
}
