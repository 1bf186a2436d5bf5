//! What is known of a span while it is open: where it stands in its trace, and its attributes.
//!
//! Attributes are kept as they come, texts in one buffer, and become what a collector reads only if the span is sent.
//! Without a collector a record holds what log lines carry and nothing else.

use crate::fields::CappedText;
use crate::names;
use crate::trace_context::TraceContext;
use std::fmt;
use std::time::SystemTime;
use tracing::field::{Field, Visit};

/// Spans below an open one that may wait for it. What a call does beyond that is not told of a trace that failed.
const MOST_WAITING: usize = 64;

/// A span.
#[derive(Debug)]
pub(crate) struct SpanRecord {
    /// How its callsite calls it.
    pub(crate) name: &'static str,
    pub(crate) attributes: SpanAttributes,
    /// Where it stands in its trace; `None` if nobody collects spans.
    pub(crate) place: Option<SpanPlace>,
    /// The spans that it is linked to, and as what.
    pub(crate) links: Vec<(TraceContext, &'static str)>,
    /// Spans below it that have ended. They are sent if this one turns out to be worth it, and dropped with it if not.
    #[expect(clippy::vec_box, reason = "records are handed on by pointer, from span to span and into the queue")]
    pub(crate) waiting: Vec<Box<SpanRecord>>,
    /// Whether something below it turned out to be worth sending.
    pub(crate) worth: bool,
}

/// Where a span stands in its trace, and when it was.
#[derive(Debug)]
pub(crate) struct SpanPlace {
    pub(crate) context: TraceContext,
    /// The span above it.
    pub(crate) parent: Option<u64>,
    pub(crate) began: SystemTime,
    pub(crate) ended: SystemTime,
}

impl SpanRecord {
    pub(crate) fn new(name: &'static str, attributes: SpanAttributes, place: Option<SpanPlace>) -> SpanRecord {
        SpanRecord { name, attributes, place, links: Vec::new(), waiting: Vec::new(), worth: false }
    }

    /// Keeps spans that have ended below this one until it is known whether they are sent.
    pub(crate) fn wait(&mut self, spans: impl IntoIterator<Item = Box<SpanRecord>>) {
        let room = MOST_WAITING.saturating_sub(self.waiting.len());
        self.waiting.extend(spans.into_iter().take(room));
    }
}

impl SpanPlace {
    /// A span that begins now.
    pub(crate) fn now(context: TraceContext, parent: Option<u64>) -> SpanPlace {
        let began = SystemTime::now();
        SpanPlace { context, parent, began, ended: began }
    }
}

/// The attributes of a span.
#[derive(Debug, Default)]
pub struct SpanAttributes {
    texts: String,
    values: Vec<(&'static str, StoredValue)>,
    /// Whether only what log lines carry is kept.
    for_lines: bool,
    /// Whether a name may be there already.
    is_filled: bool,
}

#[derive(Debug, Clone, Copy)]
enum StoredValue {
    /// From here to there in the texts.
    Text(u32, u32),
    Bool(bool),
    Int(i64),
    Float(f64),
}

/// The value of an attribute.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum AttributeValue<'a> {
    /// A text of a closed list, an id or a name; never what a caller wrote freely.
    Text(&'a str),
    /// A truth.
    Bool(bool),
    /// A number.
    Int(i64),
    /// A number with a fraction.
    Float(f64),
}

impl<'a> From<&'a str> for AttributeValue<'a> {
    fn from(text: &'a str) -> Self {
        AttributeValue::Text(text)
    }
}

impl From<bool> for AttributeValue<'_> {
    fn from(value: bool) -> Self {
        AttributeValue::Bool(value)
    }
}

impl From<u64> for AttributeValue<'_> {
    fn from(value: u64) -> Self {
        AttributeValue::Int(i64::try_from(value).unwrap_or(i64::MAX))
    }
}

impl From<f64> for AttributeValue<'_> {
    fn from(value: f64) -> Self {
        AttributeValue::Float(value)
    }
}

impl SpanAttributes {
    /// For a span with so many fields; `for_lines`: nobody collects spans.
    pub(crate) fn with_capacity(fields: usize, for_lines: bool) -> SpanAttributes {
        let (texts, values) = match for_lines {
            true => (String::with_capacity(64), Vec::with_capacity(4)),
            false => (String::with_capacity(256), Vec::with_capacity(fields)),
        };
        SpanAttributes { texts, values, for_lines, is_filled: false }
    }

    /// From now on a name may come a second time.
    pub(crate) fn filled(mut self) -> SpanAttributes {
        self.is_filled = true;
        self
    }

    /// Sets an attribute; `name` is one of [`names`].
    pub fn set<'a>(&mut self, name: &'static str, value: impl Into<AttributeValue<'a>>) -> &mut SpanAttributes {
        if self.is_wanted(name) {
            let stored = match value.into() {
                AttributeValue::Text(text) => self.text(|capped| capped.push(text)),
                AttributeValue::Bool(value) => StoredValue::Bool(value),
                AttributeValue::Int(value) => StoredValue::Int(value),
                AttributeValue::Float(value) => StoredValue::Float(value),
            };
            self.store(name, stored);
        }
        self
    }

    /// Sets an attribute to what is displayed.
    pub fn show(&mut self, name: &'static str, value: impl fmt::Display) -> &mut SpanAttributes {
        if self.is_wanted(name) {
            let stored = self.text(|capped| capped.show(format_args!("{value}")));
            self.store(name, stored);
        }
        self
    }

    /// All of them.
    pub(crate) fn iter(&self) -> impl Iterator<Item = (&'static str, AttributeValue<'_>)> {
        self.values.iter().map(|(name, stored)| (*name, self.read(*stored)))
    }

    pub(crate) fn find(&self, name: &str) -> Option<AttributeValue<'_>> {
        self.iter().find(|(known, _)| *known == name).map(|(_, value)| value)
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.values.is_empty()
    }

    fn is_wanted(&self, name: &str) -> bool {
        !self.for_lines || names::log_key(name).is_some()
    }

    /// What was appended to the texts.
    fn text(&mut self, append: impl FnOnce(CappedText<'_>)) -> StoredValue {
        let place = |length: usize| length.try_into().unwrap_or(u32::MAX);
        let start = place(self.texts.len());
        append(CappedText::new(&mut self.texts));
        StoredValue::Text(start, place(self.texts.len()))
    }

    fn store(&mut self, name: &'static str, value: StoredValue) {
        let known = match self.is_filled {
            true => self.values.iter_mut().find(|(known, _)| *known == name),
            false => None,
        };
        match known {
            Some((_, old)) => *old = value,
            None => self.values.push((name, value)),
        }
    }

    fn read(&self, stored: StoredValue) -> AttributeValue<'_> {
        match stored {
            StoredValue::Text(start, end) => {
                AttributeValue::Text(self.texts.get(start as usize..end as usize).unwrap_or_default())
            }
            StoredValue::Bool(value) => AttributeValue::Bool(value),
            StoredValue::Int(value) => AttributeValue::Int(value),
            StoredValue::Float(value) => AttributeValue::Float(value),
        }
    }
}

impl Visit for SpanAttributes {
    fn record_f64(&mut self, field: &Field, value: f64) {
        self.set(field.name(), value);
    }
    fn record_i64(&mut self, field: &Field, value: i64) {
        self.set(field.name(), AttributeValue::Int(value));
    }
    fn record_u64(&mut self, field: &Field, value: u64) {
        self.set(field.name(), value);
    }
    fn record_bool(&mut self, field: &Field, value: bool) {
        self.set(field.name(), value);
    }
    fn record_str(&mut self, field: &Field, value: &str) {
        self.set(field.name(), value);
    }
    fn record_debug(&mut self, field: &Field, value: &dyn fmt::Debug) {
        self.show(field.name(), format_args!("{value:?}"));
    }
}
