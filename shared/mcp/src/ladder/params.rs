//! Rung 7: `Mcp-Param-*` headers mirror the arguments whose schema asks for it with `x-mcp-header`.
//!
//! Only what hangs on `properties` is looked at, and only strings, integers and booleans. Headers no annotation
//! asks for are ignored.

use super::mismatch;
use crate::era::Era;
use crate::headers::{ProtocolHeaders, plain};
use crate::id::Id;
use crate::refusal::{Refusal, WireError};
use serde_json::{Map, Value};

const ANNOTATION: &str = "x-mcp-header";

/// Compares the arguments of a modern call with the headers its tool's schema wants.
pub fn check_param_headers(
    id: &Id,
    schema: &Value,
    arguments: &Map<String, Value>,
    headers: &ProtocolHeaders<'_>,
) -> Result<(), Refusal> {
    object(schema, Some(arguments), headers).map_err(|error| Refusal::new(Era::Modern, Some(id.clone()), error))
}

fn object(
    schema: &Value,
    arguments: Option<&Map<String, Value>>,
    headers: &ProtocolHeaders<'_>,
) -> Result<(), WireError> {
    let Some(properties) = schema.get("properties").and_then(Value::as_object) else { return Ok(()) };
    for (key, property) in properties {
        let argument = arguments.and_then(|arguments| arguments.get(key)).filter(|argument| !argument.is_null());
        if let Some(header) = mirrored(property) {
            one(header, argument, headers)?;
        }
        object(property, argument.and_then(Value::as_object), headers)?;
    }
    Ok(())
}

/// The header a property is mirrored in, if its annotation is a valid one.
fn mirrored(property: &Value) -> Option<&str> {
    let plain_type = |name: &Value| matches!(name.as_str(), Some("string" | "integer" | "boolean"));
    let types = property.get("type")?;
    let fits = types.as_array().map_or_else(|| plain_type(types), |types| types.iter().any(plain_type));
    let header = property.get(ANNOTATION)?.as_str()?;
    let token = |b: u8| b.is_ascii_alphanumeric() || b"!#$%&'*+-.^_`|~".contains(&b);
    (fits && !header.is_empty() && header.bytes().all(token)).then_some(header)
}

fn one(header: &str, argument: Option<&Value>, headers: &ProtocolHeaders<'_>) -> Result<(), WireError> {
    let mut sent = headers.params.iter().filter(|(name, _)| name.eq_ignore_ascii_case(header)).map(|(_, value)| *value);
    match (argument, sent.next(), sent.next()) {
        (None, None, None) => Ok(()),
        (_, Some(_), Some(_)) => Err(mismatch(format!("Mcp-Param-{header} header was sent more than once"))),
        (Some(_), None, _) => Err(mismatch(format!("Mcp-Param-{header} header is missing"))),
        (Some(argument), Some(sent), None) if same(argument, sent) => Ok(()),
        (_, _, _) => Err(mismatch(format!("Mcp-Param-{header} header does not match the argument"))),
    }
}

fn same(argument: &Value, sent: &str) -> bool {
    let Some(sent) = plain(sent) else { return false };
    match argument {
        Value::String(text) => *text == sent,
        Value::Bool(flag) => sent == if *flag { "true" } else { "false" },
        Value::Number(number) => match (number.as_i128(), sent.parse::<i128>()) {
            // Whole numbers are compared exactly; a float would not tell neighbours above 2^53 apart.
            (Some(number), Ok(sent)) => number == sent,
            _ => sent.parse::<f64>().is_ok_and(|sent| number.as_f64() == Some(sent)),
        },
        Value::Null | Value::Array(_) | Value::Object(_) => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn check(arguments: Value, params: &[(&str, &'static str)]) -> Result<(), String> {
        let schema = json!({ "type": "object", "properties": {
            "region": { "type": "string", "x-mcp-header": "Region" },
            "count": { "type": ["integer", "null"], "x-mcp-header": "Count" },
            "force": { "type": "boolean", "x-mcp-header": "Force" },
            "deep": { "type": "object", "properties": { "inner": { "type": "string", "x-mcp-header": "Inner" } } },
            "list": { "type": "array", "x-mcp-header": "List" },
            "odd": { "type": "string", "x-mcp-header": "not a token" },
            "plain": { "type": "string" },
        }});
        let params = params.iter().map(|(name, value)| ((*name).to_owned(), *value)).collect();
        let headers = ProtocolHeaders { params, ..ProtocolHeaders::default() };
        let id = Id::Text("c1".into());
        check_param_headers(&id, &schema, arguments.as_object().unwrap(), &headers).map_err(|refusal| {
            assert_eq!(
                (refusal.status, refusal.error.name(), refusal.id.as_ref()),
                (400, "header_mismatch", Some(&id))
            );
            refusal.error.to_string()
        })
    }

    #[test]
    fn headers_that_say_what_the_arguments_say_pass() {
        for (arguments, params) in [
            (json!({}), &[] as &[_]),
            (json!({ "plain": "x", "list": [1], "odd": "x" }), &[]),
            (json!({ "region": "eu" }), &[("region", "eu"), ("unknown", "x")]),
            (json!({ "region": "Hello" }), &[("region", "=?base64?SGVsbG8=?=")]),
            (json!({ "region": "" }), &[("region", "")]),
            (json!({ "count": 42 }), &[("count", "42.0")]),
            (json!({ "count": 42.0 }), &[("count", "42")]),
            (json!({ "count": -9_007_199_254_740_993_i64 }), &[("count", "-9007199254740993")]),
            (json!({ "force": true }), &[("force", "true")]),
            (json!({ "count": null }), &[]),
            (json!({ "deep": { "inner": "x" } }), &[("inner", "x")]),
        ] {
            assert_eq!(check(arguments.clone(), params), Ok(()), "{arguments} {params:?}");
        }
    }

    #[test]
    fn headers_that_contradict_the_arguments_are_refused() {
        for (arguments, params, why) in [
            (json!({ "region": "eu" }), &[] as &[_], "Region header is missing"),
            (json!({}), &[("region", "eu")], "Region header does not match"),
            (json!({ "region": null }), &[("region", "eu")], "Region header does not match"),
            (json!({ "region": "eu" }), &[("region", "EU")], "Region header does not match"),
            (json!({ "region": "Hello" }), &[("region", "=?base64?SGVsbG8?=")], "Region header does not match"),
            (json!({ "region": "eu" }), &[("region", "eu"), ("region", "eu")], "Region header was sent more than once"),
            (json!({ "count": 42 }), &[("count", "43")], "Count header does not match"),
            (
                json!({ "count": 9_007_199_254_740_993_i64 }),
                &[("count", "9007199254740992")],
                "Count header does not match",
            ),
            (json!({ "force": true }), &[("force", "TRUE")], "Force header does not match"),
            (json!({ "region": ["eu"] }), &[("region", "eu")], "Region header does not match"),
            (json!({ "deep": { "inner": "x" } }), &[], "Inner header is missing"),
            (json!({ "deep": 1 }), &[("inner", "x")], "Inner header does not match"),
        ] {
            let told = check(arguments.clone(), params).unwrap_err();
            assert!(told.contains(why), "{arguments} {params:?}: {told}");
        }
    }
}
