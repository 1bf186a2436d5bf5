//! The arguments of a runbook's tool: the schema that a model reads, the one that checks calls, and what a call gives.
//!
//! What a value may be is judged by [`runbook::ArgumentRule`], on the text that a command gets for it: once here, and once
//! more by a runner whose owner pinned the runbook.

use crate::declaration::Runbook;
use crate::overlay;
use domain::text::{is_tricky, written_out};
use domain::{Code, Failure};
use runbook::{ArgumentKind, ArgumentRule};
use serde_json::{Map, Number, Value, json};
use std::collections::BTreeMap;

/// The field of every runbook's tool that lays variables over those of the runbook.
pub const OVERLAY: &str = "env";
/// The longest value of a variable.
const VALUE_BYTES: usize = 4_096;
/// How many variables one call may lay over those of the runbook.
const MOST_VARIABLES: usize = 32;

/// What a call gives.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct GivenArguments {
    /// Values of arguments as the texts that commands get, by name; defaults are not among them.
    pub values: BTreeMap<String, String>,
    /// Variables laid over those of the runbook, by name.
    pub overlay: BTreeMap<String, String>,
}

/// The schema of a runbook's tool as a model reads it, and the one that checks calls.
pub fn schemas(runbook: &Runbook) -> (Value, Value) {
    let rules = &runbook.text.arguments;
    let required: Vec<&String> = rules.iter().filter(|(_, rule)| rule.required).map(|(name, _)| name).collect();
    let object = |fields: Map<String, Value>| {
        let mut schema = json!({ "type": "object", "properties": fields, "additionalProperties": false });
        if !required.is_empty() {
            schema["required"] = json!(required);
        }
        schema
    };
    let variables = json!({ "type": "object", "additionalProperties": { "type": "string" } });
    let mut read: Map<String, Value> = rules
        .iter()
        .map(|(name, rule)| (name.clone(), described(rule, runbook.meanings.get(name).map(String::as_str))))
        .collect();
    let mut checked: Map<String, Value> = rules.iter().map(|(name, rule)| (name.clone(), strict(rule))).collect();
    for (fields, key, value) in [
        (&mut read, "description", json!("Variables laid over the runbook's environment.")),
        (&mut checked, "maxProperties", json!(MOST_VARIABLES)),
    ] {
        let mut field = variables.clone();
        field[key] = value;
        fields.insert(OVERLAY.to_owned(), field);
    }
    (object(read), object(checked))
}

/// One argument as a model reads it.
fn described(rule: &ArgumentRule, meaning: Option<&str>) -> Value {
    let kind = match rule.kind {
        ArgumentKind::String => "string",
        ArgumentKind::Number => "number",
        ArgumentKind::Bool => "boolean",
    };
    let value = |text: &String| json_value(rule.kind, text);
    let fields = [
        ("pattern", rule.pattern.as_ref().map(|pattern| json!(pattern))),
        ("minimum", rule.min.map(|min| json!(min))),
        ("maximum", rule.max.map(|max| json!(max))),
        ("enum", (!rule.one_of.is_empty()).then(|| rule.one_of.iter().map(value).collect())),
        ("default", rule.default.as_ref().map(value)),
        ("description", meaning.map(|meaning| json!(meaning))),
    ];
    let fields = fields.into_iter().filter_map(|(key, value)| Some((key.to_owned(), value?)));
    Value::Object(std::iter::once(("type".to_owned(), json!(kind))).chain(fields).collect())
}

/// One argument as a call is checked: a value of its kind, or text that stands for one. The rules themselves are judged
/// when the call is understood; they stand here all the same, because an approval is void once the schema has changed.
fn strict(rule: &ArgumentRule) -> Value {
    let kinds = match rule.kind {
        ArgumentKind::String => json!("string"),
        ArgumentKind::Number => json!(["number", "string"]),
        ArgumentKind::Bool => json!(["boolean", "string"]),
    };
    json!({ "type": kinds, "x-rules": described(rule, None) })
}

/// The JSON value that a text stands for.
fn json_value(kind: ArgumentKind, text: &str) -> Value {
    match kind {
        ArgumentKind::String => json!(text),
        ArgumentKind::Number => serde_json::from_str::<Number>(text).map_or(Value::Null, Value::Number),
        ArgumentKind::Bool => json!(text == "true"),
    }
}

/// The text that a command gets for a value. `"7"` is a number where one is wanted, and `"true"` a yes: callers that can
/// only send text are understood. Whether the text is one that the argument may be is judged later.
pub fn text_of(kind: ArgumentKind, value: &Value) -> Result<String, &'static str> {
    match (kind, value) {
        (ArgumentKind::Number, Value::Number(number)) => Ok(number.to_string()),
        (ArgumentKind::Number, Value::String(text)) => {
            serde_json::from_str::<Number>(text.trim()).map(|number| number.to_string()).map_err(|_| "must be a number")
        }
        (ArgumentKind::Bool, Value::Bool(yes)) => Ok(yes.to_string()),
        (ArgumentKind::String | ArgumentKind::Bool, Value::String(text)) => Ok(text.clone()),
        (ArgumentKind::String, _) => Err("must be a string"),
        (ArgumentKind::Number, _) => Err("must be a number"),
        (ArgumentKind::Bool, _) => Err("must be true or false"),
    }
}

/// Reads the arguments of a call, which fit the strict schema.
pub fn given(runbook: &Runbook, arguments: &Map<String, Value>) -> Result<GivenArguments, Failure> {
    let mut given = GivenArguments::default();
    for (name, rule) in &runbook.text.arguments {
        let Some(value) = arguments.get(name) else { continue };
        let text = text_of(rule.kind, value).map_err(|must| wrong(&format!("the argument {name} {must}")))?;
        refuse_option(runbook, name, rule, &text)?;
        given.values.insert(name.clone(), text);
    }
    for (name, value) in arguments.get(OVERLAY).and_then(Value::as_object).into_iter().flatten() {
        overlay::check(name).map_err(|why| {
            let shown = written_out(name, |c| c.is_control() || is_tricky(c));
            let shown: String = shown.chars().take(overlay::NAME_BYTES).collect();
            wrong(&format!("the variable {shown} cannot be set: {why}"))
        })?;
        let text = value.as_str().unwrap_or_default();
        if text.len() > VALUE_BYTES || text.contains('\0') {
            let message = format!("the variable {name} must have at most {VALUE_BYTES} bytes, and no zero byte");
            return Err(wrong(&message));
        }
        given.overlay.insert(name.clone(), text.to_owned());
    }
    Ok(given)
}

/// A value that begins with a dash would be read as an option where it begins a word of a command. Whoever declares what
/// values look like has decided about that, and whoever writes `--` before it too.
fn refuse_option(runbook: &Runbook, name: &str, rule: &ArgumentRule, text: &str) -> Result<(), Failure> {
    let declared = rule.kind != ArgumentKind::String || rule.pattern.is_some() || !rule.one_of.is_empty();
    if declared || !text.starts_with('-') {
        return Ok(());
    }
    let begins = |word: &String| {
        word.strip_prefix("{{")
            .and_then(|rest| rest.trim_start().strip_prefix("args."))
            .is_some_and(|rest| rest.strip_prefix(name).is_some_and(|rest| rest.trim_start().starts_with("}}")))
    };
    let as_option = |command: &Vec<String>| command.iter().take_while(|word| *word != "--").any(begins);
    let text = &runbook.text;
    if text.check.iter().chain([&text.run]).chain(&text.verify).any(as_option) {
        let message = format!("the argument {name} must not begin with a dash: a command would read it as an option");
        return Err(wrong(&message).next("correct the argument; a runbook that wants such values declares a pattern"));
    }
    Ok(())
}

/// A call whose arguments are not those of the runbook.
pub fn wrong(message: &str) -> Failure {
    Failure::new(Code::InvalidArgument, message).next("correct the arguments and call again")
}
