//! What leaves by the exporter, and what does not.

use super::*;
use crate::context::join;
use crate::{current_trace_id, names};
use opentelemetry::trace::{SpanContext, SpanKind, Status};
use opentelemetry_sdk::error::OTelSdkResult;
use opentelemetry_sdk::trace::SpanData;
use std::sync::{Arc, Mutex};
use tracing::{info, info_span};
use tracing_opentelemetry::OpenTelemetrySpanExt;

const PARENT: &str = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01";
const PARENT_TRACE: &str = "4bf92f3577b34da6a3ce929d0e0e4736";

/// An exporter that keeps what it is given.
#[derive(Debug, Clone, Default)]
struct Kept {
    spans: Arc<Mutex<Vec<SpanData>>>,
    resource: Arc<Mutex<Option<Resource>>>,
}

impl SpanExporter for Kept {
    async fn export(&self, batch: Vec<SpanData>) -> OTelSdkResult {
        self.spans.lock().unwrap().extend(batch);
        Ok(())
    }

    fn set_resource(&mut self, resource: &Resource) {
        *self.resource.lock().unwrap() = Some(resource.clone());
    }
}

/// The spans that left while `work` was done, and how much was kept back.
fn left(config: &Config, work: impl FnOnce()) -> (Vec<SpanData>, u64) {
    let (kept, dropped) = (Kept::default(), DroppedCount::default());
    let provider = sending(config, "replica-1", kept.clone(), &dropped);
    tracing::subscriber::with_default(
        subscriber(config, "replica-1", Some(&provider), None, std::io::sink).unwrap(),
        work,
    );
    TelemetryGuard { provider: Some(provider), logs: None, metrics: None, dropped: dropped.clone() }
        .shutdown(Duration::from_secs(10))
        .unwrap();
    let spans = std::mem::take(&mut *kept.spans.lock().unwrap());
    (spans, dropped.count())
}

fn attributes(span: &SpanData) -> Vec<(&str, String)> {
    span.attributes.iter().map(|pair| (pair.key.as_str(), pair.value.to_string())).collect()
}

#[test]
fn an_attribute_outside_the_list_does_not_leave() {
    let (spans, dropped) = left(&Config::default(), || {
        let span = info_span!("call", { names::TENANT } = "acme", authorization = "Bearer canary", result = "canary");
        span.add_link_with_attributes(
            SpanContext::new(7.into(), 7.into(), Default::default(), true, Default::default()),
            vec![KeyValue::new(names::LINK, "request"), KeyValue::new("url.full", "https://canary")],
        );
        span.in_scope(|| info!(canary = "canary", "canary in an event"));
        span.add_event("canary", vec![KeyValue::new("exception.message", "canary")]);
    });

    assert_eq!(attributes(&spans[0]), [(names::TENANT, "acme".to_owned())]);
    assert!(!format!("{spans:?}").contains("canary"), "{spans:?}");
    assert_eq!(spans[0].links.links[0].attributes, [KeyValue::new(names::LINK, "request")]);
    assert_eq!(dropped, 4, "two fields, the link's address and the event");
}

#[test]
fn a_failed_span_leaves_with_its_name_and_status() {
    let (spans, _) = left(&Config::default(), || {
        let span = info_span!("call", { names::OTEL_NAME } = "tools/call k8s_get", { names::OTEL_KIND } = "server");
        span.set_status(Status::error("the tool failed"));
        span.set_attribute(names::ERROR_TYPE, "tool_error");
    });

    assert_eq!(spans[0].name, "tools/call k8s_get");
    assert_eq!(spans[0].span_kind, SpanKind::Server);
    assert_eq!(spans[0].status, Status::error("the tool failed"));
    assert_eq!(attributes(&spans[0]), [(names::ERROR_TYPE, "tool_error".to_owned())]);
}

#[test]
fn whoever_receives_spans_knows_who_sent_them() {
    let kept = Kept::default();
    let provider = sending(&Config::default(), "replica-1", kept.clone(), &DroppedCount::default());
    provider.shutdown_with_timeout(Duration::from_secs(10)).unwrap();

    let resource = kept.resource.lock().unwrap().clone().unwrap();
    let told = |key: &'static str| resource.get(&key.into()).map(|value| value.to_string());
    assert_eq!(told("service.name").as_deref(), Some("quartermaster"));
    assert_eq!(told("service.instance.id").as_deref(), Some("replica-1"));
}

#[test]
fn a_callers_word_is_believed_only_if_it_counts() {
    let (spans, _) = left(&Config { sample_ratio: 0.0, ..Config::default() }, || {
        info_span!("ours").in_scope(|| assert!(current_trace_id().is_some()));
        for (name, counts) in [("believed", true), ("not believed", false)] {
            let asked = info_span!("asked", { names::OTEL_NAME } = name);
            assert!(join(&asked, PARENT, None, |_| counts), "it is part of the caller's trace either way");
            asked.in_scope(|| info_span!("step").in_scope(|| {}));
        }
        let silent = info_span!("silent");
        join(&silent, &PARENT.replace("-01", "-00"), None, |_| true);
        silent.in_scope(|| {});
    });

    assert_eq!(names_of(&spans), ["step", "believed"]);
}

fn names_of(spans: &[SpanData]) -> Vec<&str> {
    spans.iter().map(|span| span.name.as_ref()).collect()
}

#[test]
fn what_failed_or_waits_for_a_person_is_kept_whatever_the_share() {
    let request = |name: &str| {
        info_span!(
            "request",
            { names::OTEL_NAME } = name,
            { names::OTEL_KIND } = "server",
            { names::HTTP_ROUTE } = "/mcp",
            { names::TENANT } = "acme"
        )
    };
    let (spans, _) = left(&Config { sample_ratio: 0.0, ..Config::default() }, || {
        for (ending, key, value) in [
            ("failed", names::ERROR_TYPE, "tool_error"),
            ("asked", names::DECISION, "ask"),
            ("fine", names::DECISION, "permit"),
        ] {
            request(&format!("request {ending}")).in_scope(|| {
                let call = info_span!("call", { names::OTEL_NAME } = ending, { names::OTEL_KIND } = "server");
                call.in_scope(|| info_span!("step").in_scope(|| {}));
                call.set_attribute(key, value);
            });
        }
        let claimed = |code: &str| info_span!("run", { names::RUN_ID } = "run_1", { names::CODE } = code);
        claimed("ok").in_scope(|| info_span!("step of a run").in_scope(|| {}));
        claimed(names::NOT_CLAIMED).in_scope(|| {});
    });

    assert_eq!(names_of(&spans), ["failed", "request failed", "asked", "request asked", "step of a run", "run"]);
    assert!(spans.iter().all(|span| span.span_context.is_sampled()), "a collector drops what says that it is not");
}

#[test]
fn strangers_cannot_fill_the_queue() {
    let (spans, _) = left(&Config::default(), || {
        for _ in 0..1_000 {
            let span = info_span!("GET /", { names::OTEL_KIND } = "server", { names::HTTP_REQUEST_METHOD } = "GET");
            join(&span, PARENT, None, |_| false);
            span.in_scope(|| {});
            info_span!("GET", { names::OTEL_KIND } = "server", { names::HTTP_REQUEST_METHOD } = "GET").in_scope(|| {});
        }
        let known = info_span!(
            "known",
            { names::OTEL_KIND } = "server",
            { names::HTTP_REQUEST_METHOD } = "GET",
            { names::TENANT } = "acme"
        );
        known.in_scope(|| {});
    });

    assert_eq!(spans.iter().filter(|span| span.name == "GET").count(), 60);
    assert_eq!(spans.iter().filter(|span| span.name == "GET /").count(), 0);
    assert_eq!(spans.last().map(|span| span.name.as_ref()), Some("known"));
}

/// The trace of a span that was given this parent, without a collector.
fn trace_under(traceparent: &str, tracestate: Option<&str>) -> String {
    let subscriber = subscriber(&Config::default(), "replica-1", Some(&silent()), None, std::io::sink).unwrap();
    tracing::subscriber::with_default(subscriber, || {
        let span = info_span!("request");
        join(&span, traceparent, tracestate, |_| true);
        span.in_scope(|| current_trace_id().expect("a trace"))
    })
}

#[test]
fn a_callers_trace_is_joined() {
    assert_eq!(trace_under(PARENT, None), PARENT_TRACE);
    assert_eq!(trace_under(PARENT, Some("vendor=1")), PARENT_TRACE);
}

#[test]
fn a_malformed_or_oversized_parent_begins_a_fresh_trace() {
    let long = format!("{PARENT}-{}", "x".repeat(300));
    for bad in [
        "",
        "nonsense",
        "00-00000000000000000000000000000000-00f067aa0ba902b7-01",
        "00-4bf92f3577b34da6a3ce929d0e0e4736-0000000000000000-01",
        "ff-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01",
        "00-4BF92F3577B34DA6A3CE929D0E0E4736-00f067aa0ba902b7-01",
        "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01\r\nx: y",
        &long,
    ] {
        assert_ne!(trace_under(bad, None), PARENT_TRACE, "{bad}");
    }
    assert_ne!(trace_under(PARENT, Some(&"x".repeat(513))), PARENT_TRACE);
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

fn collector(endpoint: &str) -> Result<OtlpSpans, TelemetryError> {
    let config = Config { otlp_endpoint: endpoint.to_owned(), ..Config::default() };
    Ok(OtlpSpans::new(sender(&config, Signal::Traces, &nowhere())?.expect("a collector")))
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
    let exporter = collector(&format!("http://{}", listener.local_addr().unwrap())).unwrap();
    let provider = sending(&Config::default(), "replica-1", exporter, &DroppedCount::default());
    let lines = subscriber(&Config::default(), "replica-1", Some(&provider), None, std::io::sink).unwrap();
    tracing::subscriber::with_default(lines, || info_span!("call").in_scope(|| {}));
    let guard =
        TelemetryGuard { provider: Some(provider), logs: None, metrics: None, dropped: DroppedCount::default() };

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
    let config = Config { sample_ratio: 1.0, ..Config::default() };
    let (spans, _) = left(&config, || {
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
