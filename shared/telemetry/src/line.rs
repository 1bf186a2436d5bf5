//! Log lines: one event, one line, whatever the event holds.
//!
//! Control characters, direction marks and invisible characters are escaped in both formats, so that text from outside
//! can mislead neither a terminal nor a reader of lines.

use crate::config::Format;
use crate::fields::{LogFields, SpanFieldsLayer};
use domain::text::{is_invisible, json_escape};
use opentelemetry::Context;
use opentelemetry::trace::TraceContextExt;
use serde_json::Value;
use std::fmt;
use std::sync::Arc;
use tracing::{Event, Subscriber};
use tracing_subscriber::fmt::format::Writer;
use tracing_subscriber::fmt::time::{FormatTime, SystemTime};
use tracing_subscriber::fmt::{FmtContext, FormatEvent, FormattedFields};
use tracing_subscriber::registry::{LookupSpan, SpanRef};

/// Writes lines in one format, each signed with the replica.
#[derive(Debug, Clone)]
pub(crate) struct LineFormat {
    pub(crate) format: Format,
    pub(crate) replica: Arc<str>,
}

impl<S> FormatEvent<S, SpanFieldsLayer> for LineFormat
where
    S: Subscriber + for<'a> LookupSpan<'a>,
{
    fn format_event(
        &self,
        ctx: &FmtContext<'_, S, SpanFieldsLayer>,
        writer: Writer<'_>,
        event: &Event<'_>,
    ) -> fmt::Result {
        let mut fields = gathered(ctx.event_scope().into_iter().flat_map(|scope| scope.from_root()), event);
        // Ours come last, so that no event can pass for another replica's or another trace's.
        let mut ts = String::new();
        SystemTime.format_time(&mut Writer::new(&mut ts))?;
        fields.set("ts", ts);
        fields.set("level", event.metadata().level().as_str().to_ascii_lowercase());
        fields.set("replica", self.replica.as_ref());
        trace(&mut fields);
        match self.format {
            Format::Json => json(fields, writer),
            Format::Text => text(fields, writer),
        }
    }
}

/// What an event says, with what the spans around it carry.
pub(crate) fn gathered<'a, R: LookupSpan<'a> + 'a>(
    spans: impl Iterator<Item = SpanRef<'a, R>>,
    event: &Event<'_>,
) -> LogFields {
    let mut fields = LogFields::default();
    for span in spans {
        if let Some(carried) = span.extensions().get::<FormattedFields<SpanFieldsLayer>>() {
            fields.set_carried(&carried.fields);
        }
    }
    event.record(&mut fields);
    if fields.find("event").is_none() {
        fields.set("event", event.metadata().target());
    }
    fields
}

/// The trace the line belongs to, if any.
fn trace(fields: &mut LogFields) {
    let context = Context::current();
    let span = context.span();
    let span = span.span_context();
    if span.is_valid() {
        fields.set("trace_id", span.trace_id().to_string());
        fields.set("span_id", span.span_id().to_string());
    }
}

fn json(fields: LogFields, mut writer: Writer<'_>) -> fmt::Result {
    for (index, (key, value)) in fields.in_order().into_iter().enumerate() {
        let before = if index == 0 { '{' } else { ',' };
        write!(writer, "{before}{}:", Value::from(key))?;
        escape(&value.to_string(), &mut writer)?;
    }
    writer.write_str("}\n")
}

/// `ts LEVEL event: msg key=value`.
fn text(fields: LogFields, mut writer: Writer<'_>) -> fmt::Result {
    for (key, value) in fields.in_order() {
        let plain = value.as_str().unwrap_or_default();
        match key {
            "ts" => writer.write_str(plain)?,
            "level" => write!(writer, " {:>5}", plain.to_ascii_uppercase())?,
            "event" => {
                writer.write_char(' ')?;
                escape(plain, &mut writer)?;
                writer.write_char(':')?;
            }
            "msg" => {
                writer.write_char(' ')?;
                escape(plain, &mut writer)?;
            }
            // A person watching one process knows which one it is.
            "replica" => {}
            _ => {
                write!(writer, " {key}=")?;
                escape(&value.to_string(), &mut writer)?;
            }
        }
    }
    writer.write_char('\n')
}

/// Writes text with everything that a terminal obeys or does not show as `\uXXXX`, which is also JSON's notation.
fn escape(text: &str, writer: &mut Writer<'_>) -> fmt::Result {
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
