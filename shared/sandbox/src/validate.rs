//! What the server refuses in an object: unknown fields, wrong shapes, bad names, changes of fixed fields.

mod fixed;
mod rules;

use serde_json::Value;

pub(crate) use self::fixed::check_fixed;
pub(crate) use self::rules::check_rules;
use crate::json;
use crate::kinds::ApiKind;
use crate::schema::{FieldShape, SchemaNode, Types};
use crate::status::{ApiStatus, FieldCause};

/// What is to happen with fields nobody knows.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Unknown {
    Ignore,
    Warn,
    Refuse,
}

/// What a walk along the schema found.
#[derive(Debug, Default)]
pub(crate) struct Findings {
    /// Places of fields the type does not have.
    pub(crate) unknown: Vec<String>,
    /// Places whose value has the wrong shape, with what was expected and found.
    pub(crate) misshapen: Vec<(String, &'static str, &'static str)>,
}

/// Walks an object along its type; unknown fields are taken out.
pub(crate) fn prune(object: &mut Value, types: &Types, place: &SchemaNode) -> Findings {
    let mut findings = Findings::default();
    walk(object, types, place, &mut String::new(), &mut findings);
    findings
}

fn walk(value: &mut Value, types: &Types, place: &SchemaNode, path: &mut String, findings: &mut Findings) {
    if value.is_null() || place.shape == FieldShape::Any {
        return;
    }
    if let Some((wanted, found)) = misfit(value, &place.shape) {
        findings.misshapen.push((path.clone(), wanted, found));
        return;
    }
    let length = path.len();
    if let Value::Object(map) = value {
        map.retain(|key, value| {
            if !path.is_empty() {
                path.push('.');
            }
            path.push_str(key);
            let below = types.below(place, key);
            match &below {
                Some(below) => walk(value, types, below, path, findings),
                None => findings.unknown.push(path.clone()),
            }
            path.truncate(length);
            below.is_some()
        });
    } else if let Value::Array(items) = value {
        let below = types.items(place);
        for (at, item) in items.iter_mut().enumerate() {
            path.push_str(&format!("[{at}]"));
            walk(item, types, &below, path, findings);
            path.truncate(length);
        }
    }
}

/// What was expected and what was found, if they differ.
fn misfit(value: &Value, shape: &FieldShape) -> Option<(&'static str, &'static str)> {
    let (fits, wanted) = match shape {
        FieldShape::Text | FieldShape::Bytes | FieldShape::Time => (value.is_string(), "string"),
        FieldShape::Quantity | FieldShape::IntOrText => (value.is_string() || value.is_number(), "string"),
        FieldShape::Int => (value.is_i64() || value.as_f64().is_some_and(|number| number.fract() == 0.0), "int32"),
        FieldShape::Number => (value.is_number(), "float64"),
        FieldShape::Bool => (value.is_boolean(), "bool"),
        FieldShape::Struct(_) | FieldShape::Map(_) => (value.is_object(), "map"),
        FieldShape::List(_) => (value.is_array(), "list"),
        FieldShape::Any => (true, ""),
    };
    (!fits).then_some((wanted, name_of(value)))
}

fn name_of(value: &Value) -> &'static str {
    match value {
        Value::Null => "null",
        Value::Bool(_) => "bool",
        Value::Number(_) => "number",
        Value::String(_) => "string",
        Value::Array(_) => "array",
        Value::Object(_) => "object",
    }
}

/// The refusal of a misshapen or unknown field in a create or replace; else the warnings to send along.
pub(crate) fn judge(findings: &Findings, unknown: Unknown, kind: &ApiKind) -> Result<Vec<String>, ApiStatus> {
    let head = format!("{} in version {:?} cannot be handled as a {}", kind.kind, kind.version, kind.kind);
    if let Some((path, wanted, found)) = findings.misshapen.first() {
        let why = format!("json: cannot unmarshal {found} into Go struct field {}.{path} of type {wanted}", kind.kind);
        return Err(ApiStatus::bad_request(format!("{head}: {why}")));
    }
    let lines: Vec<String> = findings.unknown.iter().map(|path| format!("unknown field {path:?}")).collect();
    match unknown {
        _ if lines.is_empty() => Ok(Vec::new()),
        Unknown::Ignore => Ok(Vec::new()),
        Unknown::Warn => Ok(lines),
        Unknown::Refuse => Err(ApiStatus::bad_request(format!("{head}: strict decoding error: {}", lines.join(", ")))),
    }
}

/// The same for a patch, whose refusal shows the patch.
pub(crate) fn judge_patch(
    findings: &Findings,
    unknown: Unknown,
    kind: &ApiKind,
    patch: &Value,
) -> Result<Vec<String>, ApiStatus> {
    judge(findings, unknown, kind).map_err(|refused| {
        let nothing = crate::status::KindNames { group: String::new(), plural: String::new(), kind: String::new() };
        let why = refused.message.split_once(": ").map_or(refused.message.as_str(), |(_, why)| why).to_owned();
        ApiStatus::invalid(&nothing, "", &[FieldCause::invalid("patch", &Value::String(patch.to_string()), &why)])
    })
}

/// The same for server-side apply, whose refusal comes from the typed merge.
pub(crate) fn judge_apply(findings: &Findings, kind: &ApiKind, object: &Value) -> Result<(), ApiStatus> {
    let mut lines: Vec<String> =
        findings.unknown.iter().map(|path| format!(".{path}: field not declared in schema")).collect();
    let shapes = findings.misshapen.iter();
    lines.extend(shapes.map(|(path, wanted, found)| format!(".{path}: expected {wanted}, got {found}")));
    if lines.is_empty() {
        return Ok(());
    }
    let namespace = json::namespace(object);
    let name = json::name(object);
    let name = if namespace.is_empty() { format!("/{name}") } else { format!("{namespace}/{name}") };
    let what = format!("{name}; {}, Kind={}", kind.api_version(), kind.kind);
    let why = if lines.len() == 1 { lines[0].clone() } else { format!("errors:\n  {}", lines.join("\n  ")) };
    Err(ApiStatus::unclassified(format!("failed to create typed patch object ({what}): {why}")))
}

/// Fields that must be given, wherever the type is present.
pub(crate) fn missing(object: &Value, types: &Types, place: &SchemaNode) -> Vec<FieldCause> {
    let mut causes = Vec::new();
    find_missing(object, types, place, &mut String::new(), &mut causes);
    causes
}

fn find_missing(value: &Value, types: &Types, place: &SchemaNode, path: &mut String, causes: &mut Vec<FieldCause>) {
    let length = path.len();
    if let Value::Object(map) = value {
        if let FieldShape::Struct(name) = &place.shape
            && let Some(ty) = types.find(name)
        {
            for (field, _) in ty.fields.iter().filter(|(key, field)| field.required && !map.contains_key(*key)) {
                let at = if path.is_empty() { field.clone() } else { format!("{path}.{field}") };
                if !at.starts_with("status") {
                    causes.push(FieldCause::required(at, ""));
                }
            }
        }
        for (key, value) in map {
            if path.is_empty() && (key == "status" || key == "metadata") {
                continue;
            }
            let Some(below) = types.below(place, key) else { continue };
            if !path.is_empty() {
                path.push('.');
            }
            path.push_str(key);
            find_missing(value, types, &below, path, causes);
            path.truncate(length);
        }
    } else if let Value::Array(items) = value {
        let below = types.items(place);
        for (at, item) in items.iter().enumerate() {
            path.push_str(&format!("[{at}]"));
            find_missing(item, types, &below, path, causes);
            path.truncate(length);
        }
    }
}
