//! Arguments against the strict schema, with errors a model can act on.

use domain::{Code, Failure, json, outcome, text};
use jsonschema::error::ValidationErrorKind;
use jsonschema::{Draft, PatternOptions, ValidationError, Validator};
use serde_json::{Map, Value};

/// How many faults are told at once; a model mends the first few and calls again.
const TOLD: usize = 3;
/// How long one told fault may be: a value is echoed in it, and values can be long.
const TOLD_CHARS: usize = 200;

/// A strict schema, compiled once.
#[derive(Debug)]
pub struct Arguments {
    validator: Validator,
    known: Vec<String>,
    required: Vec<String>,
}

/// The schema cannot be compiled.
#[derive(Debug, thiserror::Error)]
#[error("the schema of `{tool}` cannot be used: {why}")]
pub struct BadSchema {
    /// The tool.
    pub tool: String,
    /// What the compiler said.
    pub why: String,
}

impl Arguments {
    /// Compiles a schema of the draft it names. Patterns run on the linear-time engine, and nothing is ever fetched.
    pub fn compile(tool: &str, schema: &Value) -> Result<Arguments, BadSchema> {
        let draft = draft(schema).ok_or_else(|| BadSchema {
            tool: tool.to_owned(),
            why: "its `$schema` is neither draft-07, 2019-09 nor 2020-12".to_owned(),
        })?;
        let validator = jsonschema::options()
            .with_draft(draft)
            .with_pattern_options(PatternOptions::regex().size_limit(256 * 1024))
            .offline()
            .build(schema)
            .map_err(|error| BadSchema { tool: tool.to_owned(), why: error.to_string() })?;
        let texts = |list: Option<&Value>| match list {
            Some(Value::Array(items)) => items.iter().filter_map(|i| i.as_str().map(str::to_owned)).collect(),
            Some(Value::Object(fields)) => fields.keys().cloned().collect(),
            _ => Vec::new(),
        };
        let (known, required) = (texts(schema.get("properties")), texts(schema.get("required")));
        Ok(Arguments { validator, known, required })
    }

    /// Brings arguments to their one form and checks them: an explicit null for an optional argument is dropped,
    /// `3.0` is `3`, and nothing else is coerced.
    pub fn check(&self, arguments: Map<String, Value>) -> Result<Value, Failure> {
        let kept = arguments
            .into_iter()
            .filter(|(key, value)| !value.is_null() || self.required.contains(key) || !self.known.contains(key));
        let mut arguments = Value::Object(kept.collect());
        json::normalise(&mut arguments);
        if self.validator.is_valid(&arguments) {
            return Ok(arguments);
        }
        Err(self.failure(&arguments))
    }

    fn failure(&self, arguments: &Value) -> Failure {
        let faults: Vec<ValidationError<'_>> = self.validator.iter_errors(arguments).take(TOLD).collect();
        let unknown = faults.iter().find_map(|fault| unexpected(fault));
        let told: Vec<String> = faults.iter().map(tell).collect();
        let message = told.join("; ");
        match unknown {
            Some(name) => {
                let near = outcome::near(name, self.known.iter().map(String::as_str));
                Failure::new(Code::UnknownArgument, message).next(self.allowed()).did_you_mean(near)
            }
            None => Failure::new(Code::InvalidArgument, message).next("correct the arguments and call again"),
        }
    }

    fn allowed(&self) -> String {
        match self.known.as_slice() {
            [] => "call again without arguments".to_owned(),
            known => format!("use only these arguments: {}", known.join(", ")),
        }
    }
}

/// The draft a schema is written in: the one it names, or the one MCP takes it for.
fn draft(schema: &Value) -> Option<Draft> {
    let named = match schema.get("$schema") {
        None => return Some(Draft::Draft202012),
        Some(named) => named.as_str()?,
    };
    match named.trim_end_matches('#') {
        "https://json-schema.org/draft/2020-12/schema" => Some(Draft::Draft202012),
        "https://json-schema.org/draft/2019-09/schema" => Some(Draft::Draft201909),
        "http://json-schema.org/draft-07/schema" | "https://json-schema.org/draft-07/schema" => Some(Draft::Draft7),
        _ => None,
    }
}

#[expect(clippy::wildcard_enum_match_arm, reason = "a foreign enum of three dozen variants; one has a name to tell")]
fn unexpected<'a>(fault: &'a ValidationError<'_>) -> Option<&'a str> {
    match fault.kind() {
        ValidationErrorKind::AdditionalProperties { unexpected } => unexpected.first().map(String::as_str),
        _ => None,
    }
}

fn tell(fault: &ValidationError<'_>) -> String {
    let place = fault.instance_path().to_string();
    let told = match place.trim_start_matches('/').replace('/', ".") {
        place if place.is_empty() => fault.to_string(),
        place => format!("{place}: {fault}"),
    };
    // Somebody's names and values are repeated in it, on one line.
    let mut told = text::written_out(&told, |c| c.is_control() || text::is_tricky(c));
    if let Some((cut, _)) = told.char_indices().nth(TOLD_CHARS) {
        told.truncate(cut);
        told.push('…');
    }
    told
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn arguments() -> Arguments {
        let schema = json!({
            "type": "object", "additionalProperties": false, "required": ["path"],
            "properties": { "path": { "type": "string", "maxLength": 8 }, "limit": { "type": "integer", "minimum": 1 } }
        });
        Arguments::compile("test", &schema).unwrap()
    }

    fn check(value: Value) -> Result<Value, Failure> {
        let Value::Object(map) = value else { panic!("an object") };
        arguments().check(map)
    }

    #[test]
    fn good_arguments_come_back_in_their_one_form() {
        assert_eq!(check(json!({ "path": "a", "limit": 3.0 })).unwrap(), json!({ "path": "a", "limit": 3 }));
        assert_eq!(check(json!({ "path": "a", "limit": null })).unwrap(), json!({ "path": "a" }));
    }

    #[test]
    fn nothing_is_coerced() {
        for bad in [json!({ "path": 1 }), json!({ "path": null }), json!({ "path": "a", "limit": "3" }), json!({})] {
            assert_eq!(check(bad).unwrap_err().code, Code::InvalidArgument);
        }
    }

    #[test]
    fn a_fault_names_the_argument_and_the_way_out() {
        let unknown = check(json!({ "pathh": "a", "path": "b" })).unwrap_err();
        assert_eq!((unknown.code, unknown.did_you_mean), (Code::UnknownArgument, vec!["path".to_owned()]));
        let unknown_null = check(json!({ "path": "b", "nope": null })).unwrap_err();
        assert_eq!(unknown_null.code, Code::UnknownArgument);
        let low = check(json!({ "path": "a", "limit": 0 })).unwrap_err();
        assert_eq!(low.message, "limit: 0 is less than the minimum of 1");
        let long = check(json!({ "path": "x".repeat(10_000) })).unwrap_err();
        assert!(long.message.chars().count() <= TOLD_CHARS + 1);
    }

    #[test]
    fn what_a_fault_repeats_can_be_seen() {
        let hidden = check(json!({ "path": 1, "pa\u{202e}th\u{3164}\n": "a" })).unwrap_err();
        assert!(hidden.message.contains("pa\\u{202e}th\\u{3164}\\u{000a}"), "{}", hidden.message);
    }

    #[test]
    fn a_schema_is_read_by_the_draft_it_names() {
        let pair = |name: &str| {
            let item = json!({ "type": "array", "items": [{ "type": "string" }], "additionalItems": false });
            json!({ "$schema": name, "type": "object", "properties": { "a": item } })
        };
        let old = Arguments::compile("old", &pair("http://json-schema.org/draft-07/schema#")).unwrap();
        let Value::Object(two) = json!({ "a": ["x", "y"] }) else { panic!() };
        assert!(old.check(two).is_err(), "a list of schemas is a tuple there");
        assert!(Arguments::compile("new", &pair("https://json-schema.org/draft/2020-12/schema")).is_err());
        assert!(
            Arguments::compile("odd", &json!({ "$schema": "https://example.org/mine", "type": "object" })).is_err()
        );
    }

    #[test]
    fn patterns_run_in_linear_time_and_nothing_is_fetched() {
        let bomb = json!({ "type": "object", "properties": { "a": { "type": "string", "pattern": "^(a+)+$" } } });
        let arguments = Arguments::compile("bomb", &bomb).unwrap();
        let Value::Object(map) = json!({ "a": format!("{}!", "a".repeat(50_000)) }) else { panic!() };
        assert!(arguments.check(map).is_err());
        let remote = json!({ "type": "object", "properties": { "a": { "$ref": "http://127.0.0.1:1/schema.json" } } });
        assert!(Arguments::compile("remote", &remote).is_err());
    }
}
