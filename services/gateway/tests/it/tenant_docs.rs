//! `docs/tenant.schema.json` is written from the schema, and the worked file of `docs/tenants.md` uses every key of it.
//!
//! `UPDATE_DOCS=1 cargo test -p gateway --test it tenant_docs` writes the schema anew. That the worked file is right is tested in
//! `config_commands`.

use external::ServerCatalog;
use serde_json::Value;
use std::collections::BTreeSet;
use std::path::PathBuf;
use tenancy::{KnownNames, Section};

fn page(name: &str) -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../docs").join(name)
}

async fn sections() -> Vec<Section> {
    gateway::commands::toolsets().await.unwrap().sections(&ServerCatalog::none())
}

#[tokio::test]
async fn the_published_schema_is_the_one_the_service_has() {
    #[expect(clippy::disallowed_methods, reason = "asks whoever runs the test, not the service's settings")]
    let update = std::env::var("UPDATE_DOCS").is_ok();
    let text = format!("{}\n", serde_json::to_string_pretty(&tenancy::json_schema(&sections().await)).unwrap());
    let path = page("tenant.schema.json");
    let kept = std::fs::read_to_string(&path).unwrap_or_default();
    if update {
        std::fs::write(&path, &text).unwrap();
    }
    assert!(kept == text || update, "docs/tenant.schema.json is behind; UPDATE_DOCS=1 writes it anew");
}

/// Every key that stands in a schema, at any depth.
fn keys(schema: &Value, found: &mut BTreeSet<String>) {
    match schema {
        Value::Object(fields) => {
            if let Some(Value::Object(properties)) = fields.get("properties") {
                found.extend(properties.keys().cloned());
            }
            fields.values().for_each(|inner| keys(inner, found));
        }
        Value::Array(items) => items.iter().for_each(|inner| keys(inner, found)),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
    }
}

#[tokio::test]
async fn the_worked_file_has_every_key_there_is() {
    let text = std::fs::read_to_string(page("tenants.md")).unwrap();
    let begins = text.find("```yaml\n# acme.yaml\n").unwrap();
    let worked = text[begins..].split("```").nth(1).unwrap();
    let mut known = BTreeSet::new();
    keys(&tenancy::json_schema(&sections().await), &mut known);
    let said = |key: &String| worked.contains(&format!("{key}: ")) || worked.contains(&format!("{key}:\n"));
    let unsaid: Vec<&String> = known.iter().filter(|key| !said(key)).collect();
    assert!(unsaid.is_empty(), "the worked file of docs/tenants.md says nothing about {unsaid:?}");
}

/// The keys of the file that hold values, with their paths; a list or a mapping by names adds nothing to a path.
fn paths(root: &Value, schema: &Value, at: &str, found: &mut BTreeSet<String>) {
    let target = schema.get("$ref").and_then(Value::as_str).and_then(|name| root.pointer(name.trim_start_matches('#')));
    // A secret is one value, however it is written.
    if schema.get("$ref").is_some_and(|name| name == "#/$defs/SecretValue") {
        found.insert(at.to_owned());
        return;
    }
    let schema = target.unwrap_or(schema);
    let inner = [schema.get("items"), schema.get("additionalProperties").filter(|more| more.is_object())];
    let options = schema.get("anyOf").and_then(Value::as_array).into_iter().flatten();
    let parts: Vec<&Value> =
        inner.into_iter().flatten().chain(options).filter(|part| part.get("$ref").is_some()).collect();
    let properties = schema.get("properties").and_then(Value::as_object);
    if parts.is_empty() && properties.is_none() {
        found.insert(at.to_owned());
    }
    parts.into_iter().for_each(|part| paths(root, part, at, found));
    for (key, part) in properties.into_iter().flatten() {
        paths(root, part, &if at.is_empty() { key.clone() } else { format!("{at}.{key}") }, found);
    }
}

#[tokio::test]
async fn every_key_has_a_rule_for_texts_over_http() {
    let schema = tenancy::json_schema(&sections().await);
    let mut known = BTreeSet::new();
    paths(&schema, &schema, "", &mut known);
    let text = std::fs::read_to_string(page("tenants.md")).unwrap();
    let section = text.split("## What a text over HTTP may change").nth(1).unwrap().split("\n## ").next().unwrap();
    let rows = section.lines().filter(|line| line.starts_with("| ") && !line.starts_with("| rule"));
    let cells = rows.filter_map(|row| row.split(" | ").nth(1));
    let named: BTreeSet<String> = cells
        .flat_map(|cell| cell.split(", `").map(|key| key.trim_start_matches('`').split('`').next().unwrap().to_owned()))
        .collect();
    let missing: Vec<_> = known.difference(&named).collect();
    assert!(missing.is_empty(), "no rule says whether a text over HTTP may change {missing:?}");
    let gone: Vec<_> = named.difference(&known).filter(|key| !key.ends_with(".params")).collect();
    assert!(gone.is_empty(), "there is no such key: {gone:?}");
}

#[tokio::test]
async fn the_keys_are_listed_in_the_order_of_the_guide() {
    let (sections, text) = (sections().await, "tenant: acme\nx: 1\ntoolsets: { x: 1 }\n");
    let problems = tenancy::parse("acme.yaml", text, &KnownNames::only(&sections)).unwrap_err();
    let hints: Vec<&str> = problems.iter().filter_map(|problem| problem.hint.as_deref()).collect();
    let root = "known keys here: tenant, mode, default_toolsets, clusters, params, toolsets, servers, agents, workflows, \
                runbooks, policy, memory, limits, audit";
    assert_eq!(hints, [root, "known keys here: jenkins, helm"]);
}
