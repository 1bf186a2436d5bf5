//! Ids that belong to the client: echoed exactly, never a key across clients.

use crate::json::push_quoted;
use serde_json::{Number, Value};

const LONGEST: usize = 256;

/// The id of a request: a string of at most 256 bytes, or an integer.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum Id {
    /// A string.
    Text(String),
    /// An integer.
    Integer(Number),
}

impl Id {
    /// Reads an id; `None` for null, fractions, longer strings and everything else.
    pub fn read(value: Value) -> Option<Id> {
        match value {
            Value::String(text) if text.len() <= LONGEST => Some(Id::Text(text)),
            Value::Number(number) if !number.is_f64() => Some(Id::Integer(number)),
            Value::String(_) | Value::Number(_) | Value::Null | Value::Bool(_) | Value::Array(_) | Value::Object(_) => {
                None
            }
        }
    }

    pub(crate) fn push(&self, out: &mut Vec<u8>) {
        match self {
            Id::Text(text) => push_quoted(out, text),
            Id::Integer(number) => out.extend_from_slice(number.to_string().as_bytes()),
        }
    }
}

/// What a client wants its progress notifications marked with; has the shape of an [`Id`].
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct ProgressToken(pub Id);
