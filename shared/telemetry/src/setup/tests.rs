//! What leaves by the exporter, and what does not.

use super::*;
use crate::callsites::is_ours;
use crate::otlp::queue::Queued;
use crate::{Step, current_trace_id, link_to, names, note_on, set_parent, store_round_trip};
use opentelemetry_proto::tonic::trace::v1::Span;
use opentelemetry_proto::tonic::trace::v1::span::SpanKind;
use std::sync::Arc;
use tracing::{debug_span, info, info_span};

const PARENT: &str = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01";
const PARENT_TRACE: &str = "4bf92f3577b34da6a3ce929d0e0e4736";

/// The spans that leave while `work` is done.
fn left(config: &Config, work: impl FnOnce()) -> Vec<Span> {
    let (spans, mut kept) = OtlpQueue::channel(Signal::Traces, 4_096);
    let subscriber = subscriber(config, "replica-1", Some(spans), None, std::io::sink).unwrap();
    tracing::subscriber::with_default(subscriber, work);
    let mut spans = Vec::new();
    while let Ok(Queued::Item(record)) = kept.try_recv() {
        spans.extend(spans::written(*record));
    }
    spans
}

fn everything() -> Config {
    Config { sample_ratio: 1.0, ..Config::default() }
}

fn nothing() -> Config {
    Config { sample_ratio: 0.0, ..Config::default() }
}

fn attributes(span: &Span) -> Vec<(&str, String)> {
    span.attributes.iter().map(|pair| (pair.key.as_str(), text_of(pair.value.as_ref()))).collect()
}

fn text_of(value: Option<&opentelemetry_proto::tonic::common::v1::AnyValue>) -> String {
    match value.and_then(|value| value.value.as_ref()) {
        Some(Value::StringValue(text)) => text.clone(),
        other => format!("{other:?}"),
    }
}

#[test]
fn an_attribute_outside_the_list_does_not_leave() {
    let spans = left(&everything(), || {
        let span = info_span!("call", { names::TENANT } = "acme", authorization = "Bearer canary", result = "canary");
        link_to(&span, PARENT, "request");
        note_on(&span, |attributes| {
            attributes
                .set("url.full", "https://canary")
                .set(names::RESULT_BYTES, 7_u64)
                .set(names::RESULT_TRUNCATED, true);
        });
        span.in_scope(|| info!(canary = "canary", "canary in an event"));
    });

    let kept = [
        (names::TENANT, "acme".to_owned()),
        (names::RESULT_BYTES, "Some(IntValue(7))".to_owned()),
        (names::RESULT_TRUNCATED, "Some(BoolValue(true))".to_owned()),
    ];
    assert_eq!(attributes(&spans[0]), kept);
    assert!(!format!("{spans:?}").contains("canary"), "{spans:?}");
    assert_eq!(spans[0].links[0].trace_id, spans[0].links[0].trace_id);
    assert_eq!(spans[0].links[0].attributes[0].key, names::LINK);
    assert_eq!(spans[0].dropped_attributes_count, 3, "two fields and the address");
}

#[test]
fn a_failed_span_leaves_with_its_name_and_status() {
    let spans = left(&everything(), || {
        let method = info_span!(
            "mcp",
            { names::OTEL_KIND } = "server",
            { names::MCP_METHOD_NAME } = "tools/call",
            { names::GEN_AI_OPERATION_NAME } = "execute_tool",
            { names::GEN_AI_TOOL_NAME } = "k8s_get",
            { names::ERROR_TYPE } = tracing::field::Empty
        );
        method.record(names::ERROR_TYPE, "tool_error");
        note_on(&method, |attributes| {
            attributes.set(names::CODE, "deadline").set(names::CODE, "not_found");
        });
    });

    let span = &spans[0];
    assert_eq!((span.name.as_str(), span.kind), ("tools/call k8s_get", SpanKind::Server.into()));
    assert_eq!(
        span.status.as_ref().map(|status| (status.code, status.message.as_str())),
        Some((2, "it failed with not_found"))
    );
    assert_eq!(attributes(span).iter().filter(|(name, _)| *name == names::CODE).count(), 1, "the later value counts");
}

#[test]
fn spans_are_called_as_the_conventions_say() {
    let spans = left(&everything(), || {
        drop(debug_span!("http", { names::HTTP_REQUEST_METHOD } = "GET", { names::HTTP_ROUTE } = "/v1/runs"));
        drop(debug_span!("http", { names::HTTP_REQUEST_METHOD } = "GET"));
        drop(info_span!("mcp", { names::MCP_METHOD_NAME } = "ping"));
        drop(info_span!("run", { names::GEN_AI_OPERATION_NAME } = "execute_tool", { names::GEN_AI_TOOL_NAME } = "x"));
        drop(info_span!(
            "memory",
            { names::GEN_AI_OPERATION_NAME } = "search_memory",
            { names::GEN_AI_TOOL_NAME } = "x"
        ));
        drop(info_span!("helm", { names::OTEL_NAME } = "helm upgrade"));
        drop(info_span!("await_run"));
    });

    let names = ["GET /v1/runs", "GET", "ping", "execute_tool x", "search_memory", "helm upgrade", "await_run"];
    assert_eq!(names_of(&spans), names);
}

#[test]
fn whoever_receives_spans_knows_who_sent_them() {
    let config = Config { resource_attributes: "service.name=other,team=a".to_owned(), ..Config::default() };
    let attributes = resource(&config, "replica-1").attributes;
    let told = |key: &str| {
        let found: Vec<String> =
            attributes.iter().filter(|pair| pair.key == key).map(|pair| text_of(pair.value.as_ref())).collect();
        found.join(",")
    };
    assert_eq!(
        (told("service.name"), told("service.instance.id"), told("team")),
        ("quartermaster".to_owned(), "replica-1".to_owned(), "a".to_owned())
    );
}

#[test]
fn a_callers_word_is_believed_only_if_it_counts() {
    let spans = left(&Config { caller_samples_per_minute: 1, ..nothing() }, || {
        info_span!("ours").in_scope(|| assert!(current_trace_id().is_some()));
        for (name, tenant) in [("believed", Some("acme")), ("not believed", Some("acme")), ("of nobody", None)] {
            let asked = info_span!("asked", { names::OTEL_NAME } = name);
            assert!(set_parent(&asked, PARENT, None, tenant), "it is part of the caller's trace either way");
            asked.in_scope(|| info_span!("below").in_scope(|| {}));
        }
        let silent = info_span!("silent");
        set_parent(&silent, &PARENT.replace("-01", "-00"), None, Some("bolt"));
        silent.in_scope(|| {});
    });

    assert_eq!(names_of(&spans), ["below", "believed"]);
    assert_eq!(spans[1].parent_span_id, 0x00f0_67aa_0ba9_02b7_u64.to_be_bytes());
    assert_eq!((&spans[0].parent_span_id, &spans[0].trace_id), (&spans[1].span_id, &spans[1].trace_id));
}

fn names_of(spans: &[Span]) -> Vec<&str> {
    spans.iter().map(|span| span.name.as_str()).collect()
}

#[test]
fn a_trace_in_which_something_failed_or_waits_for_a_person_is_whole_whatever_the_share() {
    let request = || {
        debug_span!(
            "request",
            { names::OTEL_KIND } = "server",
            { names::HTTP_REQUEST_METHOD } = "POST",
            { names::HTTP_ROUTE } = "/mcp",
            { names::TENANT } = "acme"
        )
    };
    let spans = left(&nothing(), || {
        for (ending, key, value) in [
            ("failed", names::ERROR_TYPE, "tool_error"),
            ("asked", names::DECISION, "ask"),
            ("fine", names::DECISION, "permit"),
        ] {
            request().in_scope(|| {
                let call = info_span!("call", { names::OTEL_NAME } = ending);
                call.in_scope(|| info_span!("below").in_scope(|| {}));
                note_on(&call, |attributes| {
                    attributes.set(key, value);
                });
            });
        }
        let claimed = |code: &str| info_span!("run", { names::RUN_ID } = "run_1", { names::CODE } = code);
        claimed("ok").in_scope(|| info_span!("below a run").in_scope(|| {}));
        claimed(names::NOT_CLAIMED).in_scope(|| {});
    });

    let expected = ["failed", "below", "POST /mcp", "asked", "below", "POST /mcp", "below a run", "run"];
    assert_eq!(names_of(&spans), expected);
    assert!(spans.iter().all(|span| span.flags & 1 == 1), "a collector drops what says that it is not sampled");
    assert!(spans[..3].iter().all(|span| span.trace_id == spans[0].trace_id));
}

#[test]
fn what_waits_for_the_end_of_a_trace_is_bounded() {
    let spans = left(&nothing(), || {
        let call = info_span!("call");
        call.in_scope(|| (0..1_000).for_each(|_| drop(info_span!("below"))));
        note_on(&call, |attributes| {
            attributes.set(names::ERROR_TYPE, "tool_error");
        });
    });
    assert_eq!(spans.len(), 65);
}

#[test]
fn a_step_is_told_if_it_was_slow_or_failed() {
    let steps = || {
        Step::begin("quick").end(None);
        Step::begin("failed").end(Some("not_found"));
        let slow = Step::begin("slow");
        std::thread::sleep(Duration::from_millis(2));
        slow.end(None);
        store_round_trip("redis", "quick", Duration::from_millis(4), None);
        store_round_trip("redis", "cas", Duration::from_millis(6), None);
        store_round_trip("redb", "append", Duration::ZERO, Some("timeout"));
    };
    let spans = left(&everything(), || {
        steps();
        info_span!("call").in_scope(steps);
    });

    assert_eq!(names_of(&spans), ["failed", "slow", "cas", "append", "call"], "and nothing outside of every trace");
    let call = spans.last().unwrap();
    assert!(spans[..4].iter().all(|step| (&step.parent_span_id, &step.trace_id) == (&call.span_id, &call.trace_id)));
    assert!(spans[..4].iter().all(|step| step.start_time_unix_nano <= step.end_time_unix_nano));
    assert!(spans[2].end_time_unix_nano - spans[2].start_time_unix_nano == 6_000_000);
    assert_eq!((spans[0].kind, spans[3].kind), (SpanKind::Internal.into(), SpanKind::Client.into()));
    let attributes_of_append = [("db.system.name", "redb"), ("db.operation.name", "append"), ("error.type", "timeout")];
    assert_eq!(attributes(&spans[3]), attributes_of_append.map(|(name, value)| (name, value.to_owned())));

    let unseen = left(&nothing(), || info_span!("call").in_scope(steps));
    assert_eq!(unseen, Vec::new());
    let failed = left(&nothing(), || info_span!("call", { names::ERROR_TYPE } = "tool_error").in_scope(steps));
    assert_eq!(names_of(&failed), ["call", "failed", "slow", "cas", "append"], "a call that failed has its steps");
}

#[test]
fn strangers_cannot_fill_the_queue() {
    let spans = left(&everything(), || {
        for _ in 0..1_000 {
            let span = debug_span!("GET /", { names::OTEL_KIND } = "server", { names::HTTP_REQUEST_METHOD } = "GET");
            set_parent(&span, &PARENT.replace("-01", "-00"), None, None);
            span.in_scope(|| {});
            debug_span!("GET", { names::OTEL_KIND } = "server", { names::HTTP_REQUEST_METHOD } = "GET").in_scope(|| {});
        }
        let known = debug_span!(
            "known",
            { names::OTEL_KIND } = "server",
            { names::HTTP_REQUEST_METHOD } = "PUT",
            { names::TENANT } = "acme"
        );
        known.in_scope(|| {});
    });

    assert_eq!(spans.iter().filter(|span| span.name == "GET").count(), 60);
    assert!(!spans.iter().any(|span| span.trace_id == 0x4bf9_2f35_77b3_4da6_a3ce_929d_0e0e_4736_u128.to_be_bytes()));
    assert_eq!(spans.last().map(|span| span.name.as_str()), Some("PUT"));
}

#[test]
fn a_callers_trace_is_joined_unless_it_is_malformed() {
    let trace_under = |traceparent: &str, tracestate: Option<&str>| {
        let mut trace = None;
        left(&nothing(), || {
            let span = info_span!("request");
            set_parent(&span, traceparent, tracestate, None);
            trace = span.in_scope(current_trace_id);
        });
        trace.expect("a trace")
    };
    assert_eq!(trace_under(PARENT, None), PARENT_TRACE);
    assert_eq!(trace_under(PARENT, Some("vendor=1")), PARENT_TRACE);
    assert_ne!(trace_under("nonsense", None), PARENT_TRACE);
    assert_ne!(trace_under(PARENT, Some(&"x".repeat(513))), PARENT_TRACE);
}

#[test]
fn whoever_is_asked_continues_the_trace() {
    left(&everything(), || {
        let span = info_span!("request");
        set_parent(&span, PARENT, Some("vendor=1"), Some("acme"));
        let headers = span.in_scope(crate::trace_headers);
        assert!(headers[0].1.starts_with(&format!("00-{PARENT_TRACE}-")) && headers[0].1.ends_with("-01"));
        assert_eq!(headers[1], ("tracestate", "vendor=1".to_owned()));
        assert_eq!(Some(&headers[0].1), crate::span_reference(&span).as_ref());
    });
}

#[test]
fn outside_of_every_span_there_is_no_trace() {
    assert_eq!(current_trace_id(), None);
}

#[test]
fn settings_that_make_no_sense_are_named() {
    let with = |change: fn(&mut Config)| {
        let mut config = Config::default();
        change(&mut config);
        start(&config, "replica-1", &nowhere()).map(|_| ()).unwrap_err().to_string()
    };

    let cause = |change: fn(&mut Config)| {
        let mut config = Config::default();
        change(&mut config);
        let error = start(&config, "replica-1", &nowhere()).map(|_| ()).unwrap_err();
        std::error::Error::source(&error).unwrap().to_string()
    };
    assert_eq!(cause(|config| config.sample_ratio = 1.5), "the sample ratio 1.5 is not between 0 and 1");
    assert_eq!(cause(|config| config.sample_ratio = f64::NAN), "the sample ratio NaN is not between 0 and 1");
    assert_eq!(with(|config| config.log = "a=b=c".to_owned()), "could not read the log directives `a=b=c`");
    assert_eq!(
        with(|config| config.otlp_endpoint = "http://127.0.0.1:4317".to_owned()),
        "could not prepare sending to the collector outside of an async runtime"
    );
}

/// A client that reaches nobody.
fn nowhere() -> HttpSend {
    Arc::new(|_| Box::pin(async { None }))
}

fn collector(endpoint: &str) -> Result<OtlpSender, TelemetryError> {
    let config = Config { otlp_endpoint: endpoint.to_owned(), ..Config::default() };
    Ok(sender(&config, Signal::Traces, &nowhere())?.expect("a collector"))
}

#[tokio::test]
async fn a_collector_that_is_away_fails_nothing_at_the_start() {
    assert!(collector("http://127.0.0.1:1").is_ok());
    assert!(collector("https://collector.example:4317").is_ok());
    assert!(matches!(collector("http://not an address"), Err(TelemetryError::Collector(_))));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn spans_reach_the_collector_over_http_2() {
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let sender = collector(&format!("http://{}", listener.local_addr().unwrap())).unwrap();
    let spans: SpanQueue = OtlpQueue::start(sender, 16, |records| spans::request(records, &Resource::default()));
    let lines = subscriber(&everything(), "replica-1", Some(spans.clone()), None, std::io::sink).unwrap();
    tracing::subscriber::with_default(lines, || info_span!("call").in_scope(|| {}));
    let guard = TelemetryGuard { spans: Some(spans), logs: None, metrics: None };

    let ended = tokio::task::spawn_blocking(move || guard.shutdown(Duration::from_secs(10)));
    let (mut stream, _) = listener.accept().await.unwrap();
    let mut preface = [0; 14];
    tokio::io::AsyncReadExt::read_exact(&mut stream, &mut preface).await.unwrap();
    drop((stream, listener));

    assert_eq!(&preface, b"PRI * HTTP/2.0");
    // A collector that hangs up costs spans, never more than the time that was given.
    ended.await.expect("shutting down does not panic").ok();
}

#[test]
fn the_steps_of_a_call_reach_a_collector_and_those_of_libraries_do_not() {
    let spans = left(&everything(), || {
        tracing::debug_span!(target: "a_toolset_nobody_has_heard_of", "decide").in_scope(|| ());
        tracing::trace_span!(target: "executor::call", "detail").in_scope(|| ());
    });

    assert_eq!(names_of(&spans), ["decide"]);
    assert!(is_ours("shared/toolsets/one_more/src/lib.rs") && is_ours("services/gateway/src/app.rs"));
    for library in
        ["/home/a/.cargo/registry/src/index/h2-0.4.0/src/codec/mod.rs", "vendor/h2/src/lib.rs", "/rustc/std.rs"]
    {
        assert!(!is_ours(library), "{library}");
    }
}
