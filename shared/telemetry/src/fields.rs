//! The fields of a log line as bounded JSON values: those of its event, and those of the spans around it.

use crate::names;
use crate::record::{AttributeValue, SpanAttributes};
use serde_json::Value;
use std::error::Error;
use std::fmt::{self, Write};
use tracing::field::{Field, Visit};

/// The most bytes of one field.
const MOST_BYTES: usize = 2048;
/// The most causes of one error.
const MOST_CAUSES: usize = 16;

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
    pub(crate) fn set_carried(&mut self, span: &SpanAttributes) {
        for (name, value) in span.iter() {
            let Some(key) = names::log_key(name) else { continue };
            match value {
                AttributeValue::Text(text) => self.set(key, text),
                AttributeValue::Bool(value) => self.set(key, value),
                AttributeValue::Int(value) => self.set(key, value),
                AttributeValue::Float(value) => self.set(key, value),
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
    let mut capped = String::new();
    CappedText::new(&mut capped).show(text);
    capped
}

/// Appends to a text, up to the bound of one field.
pub(crate) struct CappedText<'t> {
    text: &'t mut String,
    most: usize,
}

impl CappedText<'_> {
    pub(crate) fn new(text: &mut String) -> CappedText<'_> {
        let most = text.len() + MOST_BYTES;
        CappedText { text, most }
    }

    /// What is displayed, with a mark where it was cut.
    pub(crate) fn show(mut self, text: fmt::Arguments<'_>) {
        // An error here means that the bound was reached, or that a `Display` gave up; either way this is what there is.
        if self.write_fmt(text).is_err() {
            self.text.push('…');
        }
    }

    /// The same of a plain text.
    pub(crate) fn push(mut self, text: &str) {
        if self.write_str(text).is_err() {
            self.text.push('…');
        }
    }
}

impl Write for CappedText<'_> {
    fn write_str(&mut self, part: &str) -> fmt::Result {
        let room = self.most.saturating_sub(self.text.len());
        if part.len() <= room {
            self.text.push_str(part);
            return Ok(());
        }
        let end = (0..=room).rev().find(|end| part.is_char_boundary(*end)).unwrap_or(0);
        self.text.push_str(&part[..end]);
        Err(fmt::Error)
    }
}
