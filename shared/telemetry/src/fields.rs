//! The fields of an event or a span as bounded JSON values.
//!
//! Spans keep only what their log lines carry, in a text that is appended to and never parsed back while a call is
//! on its way: `key`, [`UNIT`], the value as JSON, [`RECORD`]. JSON text holds no control characters, so the two
//! separators cannot be forged by a value.

use crate::names;
use serde_json::Value;
use std::error::Error;
use std::fmt::{self, Write};
use tracing::field::{Field, Visit};
use tracing_subscriber::field::RecordFields;
use tracing_subscriber::fmt::FormatFields;
use tracing_subscriber::fmt::format::Writer;

/// The most bytes of one field.
const MOST_BYTES: usize = 2048;
/// The most causes of one error.
const MOST_CAUSES: usize = 16;
const UNIT: char = '\u{1f}';
const RECORD: char = '\u{1e}';

/// Fields in the order in which they were set; a later value replaces an earlier one.
#[derive(Debug, Default)]
pub(crate) struct LogFields(Vec<(&'static str, Value)>);

impl LogFields {
    pub(crate) fn set(&mut self, key: &'static str, value: impl Into<Value>) {
        let value = value.into();
        match self.0.iter_mut().find(|(known, _)| *known == key) {
            Some((_, old)) => *old = value,
            None => self.0.push((key, value)),
        }
    }

    pub(crate) fn find(&self, key: &str) -> Option<&Value> {
        self.0.iter().find(|(known, _)| *known == key).map(|(_, value)| value)
    }

    /// All of them: the known keys in their order, then the others.
    pub(crate) fn in_order(mut self) -> Vec<(&'static str, Value)> {
        let place = |key: &str| names::LOG_KEYS.iter().position(|known| *known == key).unwrap_or(usize::MAX);
        self.0.sort_by_key(|(key, _)| place(key));
        self.0
    }

    /// Adds what a span carries.
    pub(crate) fn set_carried(&mut self, carried: &str) {
        for record in carried.split(RECORD) {
            let Some((key, json)) = record.trim_start().split_once(UNIT) else { continue };
            let key = names::LOG_KEYS.into_iter().find(|known| *known == key);
            if let (Some(key), Ok(value)) = (key, serde_json::from_str::<Value>(json)) {
                self.set(key, value);
            }
        }
    }

    fn note(&mut self, field: &Field, value: impl Into<Value>) {
        let key = match field.name() {
            "message" => "msg",
            name => names::log_key(name).unwrap_or(name),
        };
        self.set(key, value);
    }
}

impl Visit for LogFields {
    fn record_f64(&mut self, field: &Field, value: f64) {
        self.note(field, value);
    }
    fn record_i64(&mut self, field: &Field, value: i64) {
        self.note(field, value);
    }
    fn record_u64(&mut self, field: &Field, value: u64) {
        self.note(field, value);
    }
    fn record_bool(&mut self, field: &Field, value: bool) {
        self.note(field, value);
    }
    fn record_str(&mut self, field: &Field, value: &str) {
        self.note(field, capped(format_args!("{value}")));
    }
    fn record_error(&mut self, field: &Field, value: &(dyn Error + 'static)) {
        let chain = std::iter::successors(Some(value), |error: &&(dyn Error + 'static)| (*error).source());
        let causes: Vec<String> = chain.take(MOST_CAUSES).map(|error| capped(format_args!("{error}"))).collect();
        self.note(field, causes);
    }
    fn record_debug(&mut self, field: &Field, value: &dyn fmt::Debug) {
        self.note(field, capped(format_args!("{value:?}")));
    }
}

/// Text up to its bound. What lies beyond is not even formatted.
fn capped(text: fmt::Arguments<'_>) -> String {
    let mut capped = CappedText(String::new());
    // An error here means that the bound was reached, or that a `Display` gave up; either way this is what there is.
    if capped.write_fmt(text).is_err() {
        capped.0.push('…');
    }
    capped.0
}

struct CappedText(String);

impl Write for CappedText {
    fn write_str(&mut self, part: &str) -> fmt::Result {
        let room = MOST_BYTES.saturating_sub(self.0.len()).min(part.len());
        let end = (0..=room).rev().find(|end| part.is_char_boundary(*end)).unwrap_or(0);
        self.0.push_str(&part[..end]);
        if end < part.len() { Err(fmt::Error) } else { Ok(()) }
    }
}

/// Keeps the fields of a span that its log lines carry.
#[derive(Debug, Clone, Copy)]
pub(crate) struct SpanFieldsLayer;

impl<'writer> FormatFields<'writer> for SpanFieldsLayer {
    fn format_fields<R: RecordFields>(&self, mut writer: Writer<'writer>, fields: R) -> fmt::Result {
        let mut all = LogFields::default();
        fields.record(&mut OnlyCarried(&mut all));
        all.0.iter().try_for_each(|(key, value)| write!(writer, "{key}{UNIT}{value}{RECORD}"))
    }
}

/// Passes on the fields log lines carry, before anything is formatted for the others.
struct OnlyCarried<'f>(&'f mut LogFields);

impl OnlyCarried<'_> {
    fn when_carried(&mut self, field: &Field, note: impl FnOnce(&mut LogFields)) {
        if names::log_key(field.name()).is_some() {
            note(self.0);
        }
    }
}

impl Visit for OnlyCarried<'_> {
    fn record_f64(&mut self, field: &Field, value: f64) {
        self.when_carried(field, |fields| fields.record_f64(field, value));
    }
    fn record_i64(&mut self, field: &Field, value: i64) {
        self.when_carried(field, |fields| fields.record_i64(field, value));
    }
    fn record_u64(&mut self, field: &Field, value: u64) {
        self.when_carried(field, |fields| fields.record_u64(field, value));
    }
    fn record_bool(&mut self, field: &Field, value: bool) {
        self.when_carried(field, |fields| fields.record_bool(field, value));
    }
    fn record_str(&mut self, field: &Field, value: &str) {
        self.when_carried(field, |fields| fields.record_str(field, value));
    }
    fn record_debug(&mut self, field: &Field, value: &dyn fmt::Debug) {
        self.when_carried(field, |fields| fields.record_debug(field, value));
    }
}
