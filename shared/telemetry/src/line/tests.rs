//! Lines as they are written, captured behind the real subscriber.

use super::Format;
use crate::config::Config;
use crate::otlp::Signal;
use crate::otlp::queue::OtlpQueue;
use crate::{names, setup};
use proptest::prelude::*;
use serde_json::Value;
use std::io;
use std::sync::{Arc, Mutex};
use tracing::{info, info_span, warn};
use tracing_subscriber::fmt::MakeWriter;

#[derive(Clone, Default)]
struct Captured(Arc<Mutex<Vec<u8>>>);

impl io::Write for Captured {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.lock().unwrap().write(bytes)
    }
    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl MakeWriter<'_> for Captured {
    type Writer = Captured;
    fn make_writer(&self) -> Captured {
        self.clone()
    }
}

/// What is written while `work` is done.
fn written(log: &str, format: Format, work: impl FnOnce()) -> String {
    let captured = Captured::default();
    let config = Config { log: log.to_owned(), format, ..Config::default() };
    let (spans, _kept) = OtlpQueue::channel(Signal::Traces, 16);
    let subscriber = setup::subscriber(&config, "replica-1", Some(spans), None, captured.clone()).unwrap();
    tracing::subscriber::with_default(subscriber, work);
    String::from_utf8(captured.0.lock().unwrap().clone()).unwrap()
}

/// The one line that is written while `work` is done.
fn line(work: impl FnOnce()) -> Value {
    let text = written("info", Format::Json, work);
    assert_eq!(text.matches('\n').count(), 1, "{text}");
    serde_json::from_str(&text).expect("one JSON object")
}

#[derive(Debug, thiserror::Error)]
#[error("could not write the answer")]
struct Outer(#[source] io::Error);

#[test]
fn a_line_has_its_keys_in_a_fixed_order() {
    let text = written("info", Format::Json, || {
        info!(extra = 1, dur_ms = 7, { names::TENANT } = "acme", event = "call_ended", "a call ended");
    });

    let keys: Vec<_> =
        text.split("\"").skip(1).step_by(2).filter(|part| text.contains(&format!("\"{part}\":"))).collect();
    assert_eq!(keys, ["ts", "level", "event", "msg", "tenant", "dur_ms", "replica", "extra"]);
    assert!(text.contains(r#""level":"info","event":"call_ended","msg":"a call ended","tenant":"acme","dur_ms":7"#));
}

#[test]
fn a_line_inside_spans_says_whose_call_it_belongs_to() {
    let told = line(|| {
        let outer =
            info_span!("request", { names::TENANT } = "acme", { names::CODE } = tracing::field::Empty, secret = "x");
        let _outer = outer.enter();
        let _inner = info_span!("decide", { names::GEN_AI_TOOL_NAME } = %"k8s_get").entered();
        outer.record(names::CODE, "policy_denied");
        info!("refused");
    });

    assert_eq!(
        (&told["tenant"], &told["tool"], &told["code"]),
        (&"acme".into(), &"k8s_get".into(), &"policy_denied".into())
    );
    assert_eq!(told["secret"], Value::Null);
    assert_eq!(told["event"], module_path!());
}

#[test]
fn a_line_and_its_trace_have_the_same_id() {
    let mut id = None;
    let told = line(|| {
        let _span = info_span!("request").entered();
        id = crate::current_trace_id();
        info!("inside");
    });

    assert_eq!(told["trace_id"].as_str(), id.as_deref());
    assert_eq!(told["trace_id"].as_str().map(str::len), Some(32));
    assert_eq!(told["span_id"].as_str().map(str::len), Some(16));
    assert_eq!(line(|| info!("outside"))["trace_id"], Value::Null);
}

#[test]
fn an_error_is_told_with_all_its_causes() {
    let error = Outer(io::Error::other("line cut"));
    let told = line(|| warn!(error = &error as &(dyn std::error::Error + 'static), "not written"));

    assert_eq!(told["error"], serde_json::json!(["could not write the answer", "line cut"]));
}

#[test]
fn a_warning_keeps_its_tenant_when_only_warnings_are_logged() {
    let text = written("warn", Format::Json, || {
        let _span = info_span!("request", { names::TENANT } = "acme").entered();
        info!("not wanted");
        warn!("wanted");
    });

    assert_eq!(text.lines().count(), 1);
    assert!(text.contains(r#""msg":"wanted","tenant":"acme""#), "{text}");
}

#[test]
fn without_a_collector_a_span_keeps_what_its_lines_carry_and_has_no_trace() {
    let captured = Captured::default();
    let subscriber = setup::subscriber(&Config::default(), "replica-1", None, None, captured.clone()).unwrap();
    tracing::subscriber::with_default(subscriber, || {
        let span = info_span!("request", { names::ERA } = "modern", { names::CODE } = tracing::field::Empty);
        let _entered = span.clone().entered();
        let _step = tracing::debug_span!("only a collector asks for it", { names::TENANT } = "other").entered();
        crate::note(|attributes| {
            attributes.set(names::TENANT, "acme").set(names::ENTRY, "mcp");
        });
        span.record(names::CODE, "ok");
        let kept = crate::layer::at_span(&span, |_, span| {
            let extensions = span.extensions();
            let record = extensions.get::<Box<crate::record::SpanRecord>>()?;
            assert!(record.place.is_none());
            Some(record.attributes.iter().map(|(name, _)| name).collect::<Vec<_>>())
        });
        assert_eq!(kept, Some(vec![names::TENANT, names::CODE]));
        assert_eq!((crate::current_trace_id(), crate::trace_headers()), (None, Vec::new()));
        warn!("inside");
    });
    let text = String::from_utf8(captured.0.lock().unwrap().clone()).unwrap();
    assert!(text.contains(r#""tenant":"acme","code":"ok","replica":"replica-1""#), "{text}");
}

#[test]
fn directives_may_speak_of_spans() {
    let text = written("off,[decide{quartermaster.tenant=acme}]=debug", Format::Json, || {
        for tenant in ["acme", "bolt"] {
            let _span = info_span!("decide", { names::TENANT } = tenant).entered();
            tracing::debug!("wanted of one");
        }
    });
    assert_eq!(text.lines().count(), 1, "{text}");
    assert!(text.contains(r#""tenant":"acme""#), "{text}");
}

#[test]
fn an_event_cannot_pass_for_another_replica() {
    let told = line(|| info!(replica = "replica-2", level = "error", ts = 0, "hello"));

    assert_eq!((&told["replica"], &told["level"]), (&"replica-1".into(), &"info".into()));
    assert!(told["ts"].is_string());
}

#[test]
fn a_field_is_cut_and_still_text() {
    let told = line(|| info!(long = "ä".repeat(5_000), debug = ?vec!["x"; 5_000], "long"));

    for key in ["long", "debug"] {
        let text = told[key].as_str().unwrap();
        assert!(text.len() <= 2048 + '…'.len_utf8() && text.ends_with('…'), "{key}");
    }
}

#[test]
fn rustsec_2025_0055_logs_carry_no_escapes() {
    let hostile = "\u{1b}[2J\u{9b}31m\r\n{\"level\":\"info\"}\u{7f}\u{0}\u{202e}\u{2028}\u{200b}\u{e0041}\u{1e}\u{1f}";
    for format in [Format::Json, Format::Text] {
        let text = written("info", format, || {
            let _span = info_span!("request", { names::TENANT } = hostile).entered();
            info!(plain = hostile, shown = %hostile, debug = ?hostile, event = hostile, "{hostile}");
        });

        let (line, rest) = text.split_once('\n').unwrap();
        assert_eq!(rest, "", "{format:?} is one line");
        let harmful = |c: char| c.is_control() || domain::text::is_invisible(c);
        assert_eq!(line.find(harmful), None, "{format:?}: {line:?}");
    }
    assert_eq!(line(|| info!(plain = hostile, "x"))["plain"], hostile);
}

#[test]
fn a_line_for_people_is_short() {
    let text = written("info", Format::Text, || {
        info!({ names::TENANT } = "acme", dur_ms = 7, event = "call_ended", "a call ended");
    });

    let (_, after_time) = text.split_once(' ').unwrap();
    assert_eq!(after_time, " INFO call_ended: a call ended tenant=\"acme\" dur_ms=7\n");
}

proptest! {
    #[test]
    fn any_text_is_one_line_and_comes_back_unchanged(text in any::<String>()) {
        let told = line(|| {
            let _span = info_span!("request", { names::TENANT } = text.as_str()).entered();
            info!(field = text.as_str(), "told");
        });
        prop_assert_eq!(told["field"].as_str(), Some(text.as_str()));
        prop_assert_eq!(told["tenant"].as_str(), Some(text.as_str()));
    }
}
