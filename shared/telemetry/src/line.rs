//! Log lines: one event, one line, whatever the event holds.
//!
//! Control characters, direction marks and invisible characters are escaped in both formats, so that text from outside
//! can mislead neither a terminal nor a reader of lines.

use crate::config::Format;
use crate::fields::LogFields;
use crate::record::SpanRecord;
use crate::trace_context::TraceContext;
use domain::text::{is_invisible, json_escape};
use serde_json::Value;
use std::fmt::{self, Write};
use std::io::Write as _;
use std::sync::Arc;
use tracing::{Event, Subscriber};
use tracing_subscriber::Layer;
use tracing_subscriber::fmt::MakeWriter;
use tracing_subscriber::fmt::format::Writer;
use tracing_subscriber::fmt::time::{FormatTime, SystemTime};
use tracing_subscriber::layer::Context;
use tracing_subscriber::registry::LookupSpan;

/// Writes lines in one format, each signed with the replica.
#[derive(Debug, Clone)]
pub(crate) struct LineLayer<W> {
    pub(crate) format: Format,
    pub(crate) replica: Arc<str>,
    pub(crate) writer: W,
}

impl<S, W> Layer<S> for LineLayer<W>
where
    S: Subscriber + for<'a> LookupSpan<'a>,
    W: for<'w> MakeWriter<'w> + 'static,
{
    fn on_event(&self, event: &Event<'_>, context: Context<'_, S>) {
        let mut line = String::new();
        if self.write(gathered(event, &context), event, &mut line).is_ok() {
            // There is nowhere left to say that a line could not be written.
            self.writer.make_writer_for(event.metadata()).write_all(line.as_bytes()).ok();
        }
    }
}

impl<W> LineLayer<W> {
    fn write(&self, facts: LineFacts, event: &Event<'_>, line: &mut String) -> fmt::Result {
        let LineFacts { mut fields, trace } = facts;
        // Ours come last, so that no event can pass for another replica's or another trace's.
        let mut ts = String::new();
        SystemTime.format_time(&mut Writer::new(&mut ts))?;
        fields.set("ts", ts);
        fields.set("level", event.metadata().level().as_str().to_ascii_lowercase());
        fields.set("replica", self.replica.as_ref());
        if let Some(trace) = trace {
            fields.set("trace_id", format!("{:032x}", trace.trace));
            fields.set("span_id", format!("{:016x}", trace.span));
        }
        match self.format {
            Format::Json => json(fields, line),
            Format::Text => text(fields, line),
        }
    }
}

/// What an event says, with what the spans around it carry, and the trace it belongs to.
pub(crate) struct LineFacts {
    pub(crate) fields: LogFields,
    pub(crate) trace: Option<TraceContext>,
}

/// Gathers them.
pub(crate) fn gathered<S>(event: &Event<'_>, context: &Context<'_, S>) -> LineFacts
where
    S: Subscriber + for<'a> LookupSpan<'a>,
{
    let (mut fields, mut trace) = (LogFields::default(), None);
    // Inner spans come last: they know better.
    for span in context.event_scope(event).into_iter().flat_map(|scope| scope.from_root()) {
        if let Some(record) = span.extensions().get::<Box<SpanRecord>>() {
            fields.set_carried(&record.attributes);
            trace = record.place.as_ref().map(|place| place.context.clone()).or(trace);
        }
    }
    event.record(&mut fields);
    if fields.find("event").is_none() {
        fields.set("event", event.metadata().target());
    }
    LineFacts { fields, trace }
}

fn json(fields: LogFields, writer: &mut String) -> fmt::Result {
    for (index, (key, value)) in fields.in_order().into_iter().enumerate() {
        let before = if index == 0 { '{' } else { ',' };
        write!(writer, "{before}{}:", Value::from(key))?;
        escape(&value.to_string(), writer)?;
    }
    writer.write_str("}\n")
}

/// `ts LEVEL event: msg key=value`.
fn text(fields: LogFields, writer: &mut String) -> fmt::Result {
    for (key, value) in fields.in_order() {
        let plain = value.as_str().unwrap_or_default();
        match key {
            "ts" => writer.write_str(plain)?,
            "level" => write!(writer, " {:>5}", plain.to_ascii_uppercase())?,
            "event" => {
                writer.write_char(' ')?;
                escape(plain, writer)?;
                writer.write_char(':')?;
            }
            "msg" => {
                writer.write_char(' ')?;
                escape(plain, writer)?;
            }
            // A person watching one process knows which one it is.
            "replica" => {}
            _ => {
                write!(writer, " {key}=")?;
                escape(&value.to_string(), writer)?;
            }
        }
    }
    writer.write_char('\n')
}

/// Writes text with everything that a terminal obeys or does not show as `\uXXXX`, which is also JSON's notation.
fn escape(text: &str, writer: &mut String) -> fmt::Result {
    for letter in text.chars() {
        if letter.is_control() || is_invisible(letter) {
            writer.write_str(&json_escape(letter))?;
        } else {
            writer.write_char(letter)?;
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests;
