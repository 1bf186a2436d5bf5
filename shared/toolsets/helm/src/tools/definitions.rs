//! Custom resource definitions, whose schemas are often longer than all the rest of a chart.
//!
//! A schema runs nothing and belongs to a kind that is new, so where all of them are too long to read they are told by
//! their digest. Everything else of a definition is shown, such as who converts its objects.

use super::objects::identity;
use catalog::preview::{PreviewBuilder, digest, short};
use serde_json::Value;

/// The most bytes of schemas that are shown.
const MOST_SCHEMAS: usize = 128 * 1024;

/// Whether an object makes a kind.
pub(super) fn is_definition(object: &Value) -> bool {
    object["kind"] == "CustomResourceDefinition"
}

/// Objects as they are shown: with digests in place of schemas that are too long together, each of which is told.
pub(super) fn without_long_schemas(preview: &mut PreviewBuilder, mut objects: Vec<Value>) -> Vec<Value> {
    let size = |object: &Value| schemas(object).map(|schema| schema.to_string().len()).sum::<usize>();
    if objects.iter().map(size).sum::<usize>() <= MOST_SCHEMAS {
        return objects;
    }
    for object in objects.iter_mut().filter(|object| is_definition(object)) {
        let what = identity(object);
        let versions = object.pointer_mut("/spec/versions").and_then(Value::as_array_mut);
        for version in versions.into_iter().flatten().filter(|version| version["schema"].is_object()) {
            let digest = digest(&version["schema"]);
            let name = version["name"].as_str().unwrap_or_default();
            let told = format!(
                "schema of {what}, version {name}, sha256 {}; the schemas are too long to show",
                short(&digest)
            );
            preview.withhold(version["schema"].to_string().chars().count(), told);
            version["schema"] = Value::from(format!("sha256 {}", short(&digest)));
        }
    }
    objects
}

fn schemas(object: &Value) -> impl Iterator<Item = &Value> {
    let versions = object["spec"]["versions"].as_array().filter(|_| is_definition(object));
    versions.into_iter().flatten().map(|version| &version["schema"])
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn schemas_that_are_too_long_are_told_by_their_digest_and_nothing_else_is() {
        let made = |bytes: usize| {
            let schema = json!({ "openAPIV3Schema": { "description": "x".repeat(bytes) } });
            let spec = json!({ "group": "example.com", "conversion": { "strategy": "Webhook" }, "versions": [{ "name": "v1", "schema": schema }] });
            json!({ "kind": "CustomResourceDefinition", "metadata": { "name": "things.example.com" }, "spec": spec })
        };
        let long = json!({ "kind": "ConfigMap", "data": { "a": "x".repeat(2 * MOST_SCHEMAS) } });
        let drawn = |objects: Vec<Value>| {
            let mut preview = PreviewBuilder::new("release");
            let shown = without_long_schemas(&mut preview, objects);
            (shown, preview.build("x", String::new(), String::new()).hidden)
        };
        let (shown, hidden) = drawn(vec![made(100), long.clone()]);
        assert_eq!((shown, hidden.len()), (vec![made(100), long.clone()], 0));

        let (shown, hidden) = drawn(vec![made(MOST_SCHEMAS), long.clone(), made(10)]);
        assert!(shown[0]["spec"]["versions"][0]["schema"].as_str().unwrap().starts_with("sha256 "), "{}", shown[0]);
        assert_eq!((&shown[0]["spec"]["conversion"]["strategy"], &shown[1]), (&json!("Webhook"), &long));
        assert_eq!(hidden.len(), 2);
        assert!(
            hidden[0].contains("characters hidden: schema of CustomResourceDefinition things.example.com"),
            "{hidden:?}"
        );
    }
}
