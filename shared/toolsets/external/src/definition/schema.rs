//! What a server's input schema may hold, walked before anything is compiled, and the text of it that a model reads.
//!
//! The validator behind runs patterns in linear time and fetches nothing. What is left to bound here is work: how much
//! there is to walk, how often references repeat it, and whether it ends at all.

use crate::visible::{cut, has_tricks, visible};
use serde_json::{Map, Value};
use std::collections::HashMap;

/// How large a schema may be, as compact JSON.
pub(crate) const BYTES: usize = 64 * 1024;
/// How deep schemas may lie within each other, references followed.
pub(crate) const DEPTH: usize = 16;
/// How many schemas there may be in one.
pub(crate) const SUBSCHEMAS: usize = 500;
/// How many there may be once every reference is followed; below this, repeating one is only convenient.
const UNFOLDED: usize = 5_000;
/// How many values one list of choices may hold.
const CHOICES: usize = 1_000;
/// How many patterns there may be: each costs memory once compiled.
const PATTERNS: usize = 20;
/// How much a model is told of one argument.
const TOLD_CHARS: usize = 500;
/// The largest default a model is shown.
const DEFAULT_BYTES: usize = 200;

/// Why a schema is not used.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub(crate) enum UnusableSchema {
    #[error("its input schema is missing or is no object schema (`type: object`)")]
    NotAnObject,
    #[error("its input schema is larger than {BYTES} bytes")]
    Large,
    #[error("its input schema is nested deeper than {DEPTH} levels")]
    Deep,
    #[error("its input schema holds more than {SUBSCHEMAS} schemas, or {UNFOLDED} once its references are followed")]
    Many,
    #[error("its input schema refers to something outside itself, or in a way that is not understood")]
    Reference,
    #[error("its input schema refers to itself in a circle")]
    Circle,
    #[error("its input schema uses `{0}`, which is not supported")]
    Keyword(&'static str),
    #[error("its input schema holds a list of more than {CHOICES} choices")]
    Choices,
    #[error("its input schema holds more than {PATTERNS} patterns")]
    Patterns,
    #[error("its input schema hides characters in a choice, a bound or a name")]
    Hidden,
    #[error("its input schema cannot be used: {0}")]
    Unusable(String),
}

/// Keywords that hold one schema.
const ONE: [&str; 12] = [
    "additionalProperties",
    "items",
    "additionalItems",
    "contains",
    "propertyNames",
    "not",
    "if",
    "then",
    "else",
    "unevaluatedItems",
    "unevaluatedProperties",
    "contentSchema",
];
/// Keywords that hold a list of schemas; `items` is one in older drafts.
const LIST: [&str; 5] = ["allOf", "anyOf", "oneOf", "prefixItems", "items"];
/// Keywords that hold schemas by name; `dependencies` holds lists of names as well.
const NAMED: [&str; 6] =
    ["properties", "patternProperties", "$defs", "definitions", "dependentSchemas", "dependencies"];
/// Keywords by which a schema is not what it says where it stands.
const REFUSED: [&str; 5] = ["$dynamicRef", "$dynamicAnchor", "$recursiveRef", "$recursiveAnchor", "$vocabulary"];
/// Keywords of plain values that a model reads; every other one is left out of what it is shown.
const PLAIN: [&str; 20] = [
    "type",
    "required",
    "enum",
    "const",
    "format",
    "pattern",
    "minimum",
    "maximum",
    "exclusiveMinimum",
    "exclusiveMaximum",
    "multipleOf",
    "minLength",
    "maxLength",
    "minItems",
    "maxItems",
    "uniqueItems",
    "minProperties",
    "maxProperties",
    "dependentRequired",
    "$ref",
];

/// Checks a schema and gives back the number of its patterns.
pub(crate) fn check(schema: &Value) -> Result<usize, UnusableSchema> {
    if schema.get("type").and_then(Value::as_str) != Some("object") {
        return Err(UnusableSchema::NotAnObject);
    }
    if schema.to_string().len() > BYTES {
        return Err(UnusableSchema::Large);
    }
    let mut walk = SchemaWalk { root: schema, seen: HashMap::new(), patterns: 0 };
    let size = walk.visit(schema, 1)?;
    if size.unfolded > UNFOLDED {
        return Err(UnusableSchema::Many);
    }
    Ok(walk.patterns)
}

#[derive(Clone, Copy)]
struct Size {
    unfolded: usize,
    height: usize,
}

/// What is known of a schema that was met before: nothing yet while the walk is still inside it.
type VisitedSchema = Option<Size>;

struct SchemaWalk<'a> {
    root: &'a Value,
    /// By where they lie in memory: each value of the document has one place.
    seen: HashMap<*const Value, VisitedSchema>,
    patterns: usize,
}

impl<'a> SchemaWalk<'a> {
    fn visit(&mut self, at: &'a Value, depth: usize) -> Result<Size, UnusableSchema> {
        if depth > DEPTH {
            return Err(UnusableSchema::Deep);
        }
        let place = std::ptr::from_ref(at);
        match self.seen.get(&place) {
            Some(Some(size)) if depth + size.height > DEPTH + 1 => return Err(UnusableSchema::Deep),
            Some(Some(size)) => return Ok(*size),
            Some(None) => return Err(UnusableSchema::Circle),
            None => {}
        }
        if self.seen.len() >= SUBSCHEMAS {
            return Err(UnusableSchema::Many);
        }
        self.seen.insert(place, None);
        let mut size = Size { unfolded: 1, height: 1 };
        if let Value::Object(fields) = at {
            self.keywords(fields, depth == 1)?;
            for below in below(fields).chain(self.target(fields)?) {
                let inner = self.visit(below, depth + 1)?;
                size.unfolded = size.unfolded.saturating_add(inner.unfolded);
                size.height = size.height.max(inner.height + 1);
            }
        }
        self.seen.insert(place, Some(size));
        Ok(size)
    }

    /// What a schema says besides the schemas in it.
    fn keywords(&mut self, fields: &Map<String, Value>, is_root: bool) -> Result<(), UnusableSchema> {
        if let Some(word) = REFUSED.into_iter().find(|word| fields.contains_key(*word)) {
            return Err(UnusableSchema::Keyword(word));
        }
        for word in ["$id", "$schema"] {
            if !is_root && fields.get(word).is_some_and(Value::is_string) {
                return Err(UnusableSchema::Keyword(word));
            }
        }
        if fields.get("enum").and_then(Value::as_array).is_some_and(|choices| choices.len() > CHOICES) {
            return Err(UnusableSchema::Choices);
        }
        let hidden = |word: &&str| fields.get(*word).is_some_and(hides);
        let names = |word: &&str| fields.get(*word).and_then(Value::as_object).map(Map::keys);
        let hidden_name = NAMED.iter().filter_map(names).flatten().any(|name| has_tricks(name));
        if hidden_name || PLAIN.iter().any(hidden) {
            return Err(UnusableSchema::Hidden);
        }
        let by_pattern = fields.get("patternProperties").and_then(Value::as_object).map_or(0, Map::len);
        self.patterns += by_pattern + usize::from(fields.contains_key("pattern"));
        if self.patterns > PATTERNS { Err(UnusableSchema::Patterns) } else { Ok(()) }
    }

    /// What `$ref` leads to: only into the document itself, by a plain path.
    fn target(&self, fields: &Map<String, Value>) -> Result<Option<&'a Value>, UnusableSchema> {
        let path = match fields.get("$ref") {
            None => return Ok(None),
            Some(Value::String(text)) => text.strip_prefix('#'),
            Some(_) => None,
        };
        let path = path.filter(|path| !path.contains('%') && (path.is_empty() || path.starts_with('/')));
        path.and_then(|path| self.root.pointer(path)).map(Some).ok_or(UnusableSchema::Reference)
    }
}

/// The schemas right below one.
fn below(fields: &Map<String, Value>) -> impl Iterator<Item = &Value> {
    let is_schema = |value: &&Value| value.is_object() || value.is_boolean();
    let one = ONE.into_iter().filter_map(|word| fields.get(word)).filter(is_schema);
    let list = LIST.into_iter().filter_map(|word| fields.get(word)?.as_array()).flatten();
    let named =
        NAMED.into_iter().filter_map(|word| fields.get(word)?.as_object()).flat_map(Map::values).filter(is_schema);
    one.chain(list).chain(named)
}

fn hides(value: &Value) -> bool {
    match value {
        Value::String(text) => has_tricks(text),
        Value::Array(items) => items.iter().any(hides),
        Value::Object(fields) => fields.iter().any(|(key, value)| has_tricks(key) || hides(value)),
        Value::Null | Value::Bool(_) | Value::Number(_) => false,
    }
}

/// The schema as a model reads it: what it needs to call, with nothing in it that reads otherwise than it looks.
/// `remarks` are told what was changed.
pub(crate) fn told(schema: &Value, remarks: &mut Vec<String>) -> Value {
    let Value::Object(fields) = schema else { return schema.clone() };
    let told = |(word, value): (&String, &Value)| Some((word.clone(), told_word(word, value, remarks)?));
    Value::Object(fields.iter().filter_map(told).collect())
}

/// What a model is told by one keyword, if anything.
fn told_word(word: &str, value: &Value, remarks: &mut Vec<String>) -> Option<Value> {
    if word == "description" {
        let text = value.as_str()?;
        if has_tricks(text) {
            remark(remarks, "the description of an argument holds invisible characters; they are written out");
        }
        return Some(Value::String(cut(&visible(text), TOLD_CHARS)));
    }
    if word == "default" {
        if hides(value) {
            remark(remarks, "a default holds invisible characters; it is not shown");
        }
        return Some(value.clone()).filter(|value| !hides(value) && value.to_string().len() <= DEFAULT_BYTES);
    }
    if PLAIN.contains(&word) {
        return Some(value.clone());
    }
    if let (Some(named), true) = (value.as_object(), NAMED.contains(&word)) {
        let below = named.iter().map(|(name, inner)| (name.clone(), told(inner, remarks)));
        return Some(Value::Object(below.collect()));
    }
    if let (Some(list), true) = (value.as_array(), LIST.contains(&word)) {
        return Some(list.iter().map(|inner| told(inner, remarks)).collect());
    }
    ONE.contains(&word).then(|| told(value, remarks))
}

fn remark(remarks: &mut Vec<String>, text: &str) {
    if !remarks.iter().any(|told| told == text) {
        remarks.push(text.to_owned());
    }
}
