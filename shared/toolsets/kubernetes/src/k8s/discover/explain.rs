//! What a field means: the kind's own schema, walked to the path.

use super::is_field;
use crate::client::{Cluster, Kind};
use crate::codes;
use crate::k8s::grammar::KindText;
use crate::k8s::reply::ClusterReplyFields;
use domain::outcome::near;
use domain::{Code, Failure};
use schemars::JsonSchema;
use serde::Serialize;
use serde_json::{Map, Value};

/// The longest text about one field.
const MOST_DOC: usize = 300;
/// The fields that are shown of one object.
const MOST_FIELDS: usize = 80;
/// How far references lead; a schema may refer to itself.
const MOST_STEPS: usize = 32;

/// One field.
#[derive(Debug, PartialEq, Serialize, JsonSchema)]
pub(super) struct ExplainedField {
    #[serde(rename = "type", skip_serializing_if = "Option::is_none")]
    kind: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    doc: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    required: Option<Vec<String>>,
    #[serde(rename = "enum", skip_serializing_if = "Option::is_none")]
    choices: Option<Vec<String>>,
    /// `name <type>: what it is`.
    #[serde(skip_serializing_if = "Option::is_none")]
    fields: Option<Vec<String>>,
}

/// Explains `Kind`, or `Kind.path.to.field`.
pub(super) async fn explain(
    cluster: &Cluster<'_>,
    target: &str,
    common: &mut ClusterReplyFields,
) -> Result<ExplainedField, Failure> {
    let (kind, path) = split(cluster, target).await?;
    let document = cluster.openapi(&kind).await?;
    let schemas = &document["components"]["schemas"];
    let (group, version) = (kind.group(), kind.version());
    let root = schemas.as_object().into_iter().flatten().map(|(_, schema)| schema).find(|schema| {
        let kinds = schema["x-kubernetes-group-version-kind"].as_array();
        kinds.into_iter().flatten().any(|k| k["group"] == group && k["version"] == version && k["kind"] == kind.kind())
    });
    let Some(root) = root else {
        return Err(Failure::new(codes::UNKNOWN_FIELD, format!("the cluster has no docs for {}", kind.kind()))
            .next("look at an object with k8s_get view=full"));
    };
    let (explained, left) = walk(schemas, root, &path)?;
    common.cut_items(left, "name a field in target");
    Ok(explained)
}

/// Kind and path. A group has dots as well, so the shortest beginning that is a kind counts.
async fn split(cluster: &Cluster<'_>, target: &str) -> Result<(Kind, Vec<String>), Failure> {
    let (before, last) = target.rsplit_once('/').map_or(("", target), |(before, last)| (before, last));
    let words: Vec<&str> = last.split('.').collect();
    let mut first = None;
    for n in 1..=words.len().min(6) {
        let head = match before {
            "" => words[..n].join("."),
            before => format!("{before}/{}", words[..n].join(".")),
        };
        let Ok(text) = KindText::try_from(head) else { break };
        match cluster.kind(text.as_str()).await {
            Ok(kind) => {
                let path: Vec<String> = words[n..].iter().map(|word| field(word)).collect();
                return match path.iter().all(|word| is_field(word)) {
                    true => Ok((kind, path)),
                    false => {
                        Err(Failure::new(Code::InvalidArgument, "a field is named with letters, digits, '-' and '_'")
                            .next("write target like Deployment.spec.strategy"))
                    }
                };
            }
            Err(failure) if failure.code == codes::UNKNOWN_KIND => first = first.or(Some(failure)),
            Err(failure) => return Err(failure),
        }
    }
    Err(first.unwrap_or_else(|| {
        Failure::new(Code::InvalidArgument, "the target is no kind").next("write target like Deployment.spec.strategy")
    }))
}

/// `containers[0]` and `containers[]` mean an item of the list, which is explained with the list.
fn field(word: &str) -> String {
    word.split('[').next().unwrap_or_default().to_owned()
}

/// Walks to a field. Also gives how many of its fields were left out.
fn walk(schemas: &Value, root: &Value, path: &[String]) -> Result<(ExplainedField, usize), Failure> {
    let mut here = resolve(schemas, root);
    let mut doc = here["description"].as_str();
    for (n, word) in path.iter().enumerate() {
        let inside = items(schemas, here);
        let Some(next) = inside["properties"].get(word) else {
            // A map of anything: every key is right.
            if inside["additionalProperties"].is_object() {
                here = resolve(schemas, &inside["additionalProperties"]);
                continue;
            }
            return Err(unknown(&path[..n], word, inside["properties"].as_object()));
        };
        here = resolve(schemas, next);
        // What is said where a type is used tells more than what is said of the type.
        doc = next["description"].as_str().or_else(|| here["description"].as_str());
    }
    let inside = items(schemas, here);
    let strings = |value: &Value| -> Option<Vec<String>> {
        Some(value.as_array()?.iter().filter_map(|v| v.as_str().map(str::to_owned)).collect())
    };
    let mut fields: Vec<String> = inside["properties"]
        .as_object()
        .into_iter()
        .flatten()
        .map(|(name, field)| {
            let kind = type_of(schemas, field);
            let doc = field["description"].as_str().or_else(|| resolve(schemas, field)["description"].as_str());
            let doc = doc.map(|doc| format!(": {}", first_sentence(doc))).unwrap_or_default();
            format!("{name} <{kind}>{doc}")
        })
        .collect();
    let left = fields.len().saturating_sub(MOST_FIELDS);
    fields.truncate(MOST_FIELDS);
    let explained = ExplainedField {
        kind: Some(type_of(schemas, here)),
        doc: doc.map(|doc| cut(doc, MOST_DOC)),
        required: strings(&inside["required"]),
        choices: here["enum"].as_array().map(|values| values.iter().map(word).collect()),
        fields: (!fields.is_empty()).then_some(fields),
    };
    Ok((explained, left))
}

fn unknown(path: &[String], word: &str, known: Option<&Map<String, Value>>) -> Failure {
    let known: Vec<&str> = known.into_iter().flatten().map(|(key, _)| key.as_str()).collect();
    let at = if path.is_empty() { "the kind".to_owned() } else { path.join(".") };
    let next = match known.len() {
        0 => format!("{at} has no fields of its own; ask for it alone"),
        1..=40 => format!("fields of {at}: {}", known.join(", ")),
        _ => "use did_you_mean, or ask for the parent alone".to_owned(),
    };
    Failure::new(codes::UNKNOWN_FIELD, format!("{at} has no field {word}")).next(next).did_you_mean(near(word, known))
}

/// Follows references, and the single-branch `allOf` that carries a default beside one.
fn resolve<'a>(schemas: &'a Value, mut schema: &'a Value) -> &'a Value {
    for _ in 0..MOST_STEPS {
        let reference = schema["$ref"].as_str().and_then(|r| r.rsplit('/').next());
        let next = match (reference, schema["allOf"].as_array().map(Vec::as_slice)) {
            (Some(name), _) => schemas.get(name),
            (None, Some([only])) => Some(only),
            (None, _) => None,
        };
        match next {
            Some(next) => schema = next,
            None => break,
        }
    }
    schema
}

/// What a list holds, or the thing itself.
fn items<'a>(schemas: &'a Value, schema: &'a Value) -> &'a Value {
    match schema["items"].is_object() {
        true => resolve(schemas, &schema["items"]),
        false => schema,
    }
}

fn type_of(schemas: &Value, schema: &Value) -> String {
    let schema = resolve(schemas, schema);
    let own = schema["type"].as_str().unwrap_or("object");
    if own == "array" {
        return format!("[]{}", type_of(schemas, &schema["items"]));
    }
    if schema["additionalProperties"].is_object() {
        return format!("map[string]{}", type_of(schemas, &schema["additionalProperties"]));
    }
    match schema["x-kubernetes-int-or-string"] == true || schema["format"] == "int-or-string" {
        true => "int or string".to_owned(),
        false => own.to_owned(),
    }
}

fn first_sentence(doc: &str) -> String {
    let end = doc.find(". ").map_or(doc.len(), |at| at + 1);
    cut(&doc[..end], 100)
}

fn cut(text: &str, most: usize) -> String {
    match text.char_indices().nth(most) {
        Some((at, _)) => format!("{}…", &text[..at]),
        None => text.to_owned(),
    }
}

/// A choice as it is written: text without its quotes.
fn word(value: &Value) -> String {
    value.as_str().map_or_else(|| value.to_string(), str::to_owned)
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn schemas() -> Value {
        json!({
            "Deployment": { "type": "object", "description": "A workload. It rolls.", "properties": {
                "spec": { "allOf": [{ "$ref": "#/components/schemas/Spec" }], "default": {}, "description": "What is wanted." },
            } },
            "Spec": { "type": "object", "required": ["selector"], "properties": {
                "replicas": { "type": "integer", "description": "How many. Defaults to 1." },
                "strategy": { "type": "string", "enum": ["Recreate", "RollingUpdate"] },
                "labels": { "type": "object", "additionalProperties": { "type": "string" } },
                "containers": { "type": "array", "items": { "$ref": "#/components/schemas/Container" } },
                "again": { "$ref": "#/components/schemas/Spec" },
            } },
            "Container": { "type": "object", "properties": { "image": { "type": "string", "description": "é".repeat(400) } } },
            "Loop": { "$ref": "#/components/schemas/Loop" },
        })
    }

    fn walked(path: &[&str]) -> Result<ExplainedField, Failure> {
        let schemas = schemas();
        let path: Vec<String> = path.iter().map(|p| field(p)).collect();
        walk(&schemas, &schemas["Deployment"], &path).map(|(explained, _)| explained)
    }

    #[test]
    fn a_path_leads_through_references_and_lists() {
        let spec = walked(&["spec"]).unwrap();
        assert_eq!((spec.kind.as_deref(), spec.doc.as_deref()), (Some("object"), Some("What is wanted.")));
        assert_eq!(spec.required, Some(vec!["selector".to_owned()]));
        let fields = spec.fields.unwrap();
        assert!(fields.contains(&"replicas <integer>: How many.".to_owned()), "{fields:?}");
        assert!(
            fields.contains(&"containers <[]object>".to_owned())
                && fields.contains(&"labels <map[string]string>".to_owned())
        );
        assert_eq!(walked(&["spec", "strategy"]).unwrap().choices.unwrap().len(), 2);
        let image = walked(&["spec", "containers[0]", "image"]).unwrap();
        assert_eq!(image.doc.unwrap().chars().count(), MOST_DOC + 1);
        assert!(walked(&["spec", "again", "again", "replicas"]).is_ok());
        assert_eq!(walked(&["spec", "labels", "anything"]).unwrap().kind.as_deref(), Some("string"));
    }

    #[test]
    fn a_wrong_field_names_near_ones() {
        let failure = walked(&["spec", "replica"]).unwrap_err();
        assert_eq!((failure.code, failure.did_you_mean), (codes::UNKNOWN_FIELD, vec!["replicas".to_owned()]));
        assert!(walked(&["spec", "replicas", "deeper"]).unwrap_err().next.unwrap().contains("no fields of its own"));
    }

    #[test]
    fn a_schema_that_refers_to_itself_ends() {
        let schemas = schemas();
        assert!(walk(&schemas, &schemas["Loop"], &[]).is_ok());
    }
}
