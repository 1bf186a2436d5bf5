//! The pages of `docs/toolsets` are written from the catalog, so that they cannot drift from it.
//!
//! `UPDATE_DOCS=1 cargo test -p gateway --test it toolset_docs` writes them anew. What a page says above its first tool is written by
//! hand and kept: everything up to the line that says where the generated part begins.

use catalog::{CatalogEntry, ToolDefinition};
use domain::{Effect, Level};
use serde_json::Value;
use std::fmt::Write as _;
use std::path::PathBuf;
use std::sync::Arc;

const BEGINS: &str =
    "<!-- From here on this page is written by `UPDATE_DOCS=1 cargo test -p gateway --test it toolset_docs`. -->\n";

async fn tools() -> Vec<Arc<CatalogEntry>> {
    let toolsets = gateway::commands::toolsets().await.unwrap();
    toolsets.tools_for_several().unwrap()
}

#[tokio::test]
async fn every_toolset_has_a_page_that_says_what_its_tools_are() {
    #[expect(clippy::disallowed_methods, reason = "asks whoever runs the test, not the service's settings")]
    let update = std::env::var("UPDATE_DOCS").is_ok();
    let tools = tools().await;
    let mut sets: Vec<&str> = tools.iter().map(|tool| tool.definition().toolset.as_str()).collect();
    sets.dedup();
    for set in sets {
        let path = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join(format!("../../docs/toolsets/{set}.md"));
        let kept = std::fs::read_to_string(&path).unwrap_or_default();
        let by_hand = kept.split_once(BEGINS).map_or(kept.as_str(), |(head, _)| head).trim_end();
        let of_set = tools.iter().filter(|tool| tool.definition().toolset.as_str() == set);
        let page = format!("{by_hand}\n\n{BEGINS}\n{}", described(&of_set.collect::<Vec<_>>()));
        if update {
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            std::fs::write(&path, &page).unwrap();
        }
        assert!(kept == page || update, "docs/toolsets/{set}.md is behind; UPDATE_DOCS=1 writes it anew");
        assert!(by_hand.starts_with("# "), "docs/toolsets/{set}.md has no beginning of its own");
    }
}

fn described(tools: &[&Arc<CatalogEntry>]) -> String {
    let mut page = String::new();
    for (level, title) in [(Level::Read, "Read list"), (Level::Write, "Write list")] {
        let listed: Vec<_> = tools.iter().filter(|tool| tool.list() == level).collect();
        let tokens: u32 = listed.iter().map(|tool| tool.tokens()).sum();
        writeln!(page, "## {title}\n\n{} tools, about {tokens} tokens.\n", listed.len()).unwrap();
        for tool in listed {
            one(&mut page, tool.definition());
        }
    }
    page.trim_end().to_owned() + "\n"
}

fn one(page: &mut String, tool: &ToolDefinition) {
    let effect = match tool.most {
        Effect::Read => "reads",
        Effect::Change => "may change something, which needs approval",
        Effect::Disrupt => "may remove something or put service at risk, which needs approval",
    };
    let again = if tool.idempotent { "idempotent" } else { "never repeated by the service" };
    let (name, title, description) = (&tool.name, &tool.title, &tool.description);
    writeln!(page, "### `{name}`\n\n{title}: {effect}; {again}; deadline {} s.\n", tool.deadline.as_secs()).unwrap();
    writeln!(page, "> {description}\n").unwrap();
    if let Some(hint) = &tool.hint {
        writeln!(page, "{hint}\n").unwrap();
    }
    let arguments = fields(&tool.strict, &tool.strict);
    if arguments.is_empty() {
        writeln!(page, "No arguments.\n").unwrap();
    } else {
        writeln!(page, "| argument | type | limits |\n|---|---|---|").unwrap();
        let required: Vec<&str> =
            tool.strict["required"].as_array().into_iter().flatten().filter_map(Value::as_str).collect();
        for (name, field) in arguments {
            let mark = if required.contains(&name.as_str()) { " (required)" } else { "" };
            writeln!(page, "| `{name}`{mark} | {} | {} |", kind(&field), limits(&field)).unwrap();
        }
        page.push('\n');
    }
    let output = tool.output.as_ref().map(|output| fields(output, output)).unwrap_or_default();
    let names: Vec<String> = output.into_iter().map(|(name, _)| format!("`{name}`")).collect();
    if !names.is_empty() {
        writeln!(page, "Returns {}.\n", names.join(", ")).unwrap();
    }
}

/// The properties of a schema, with references followed.
fn fields(schema: &Value, root: &Value) -> Vec<(String, Value)> {
    let properties = schema["properties"].as_object().into_iter().flatten();
    properties.map(|(name, field)| (name.clone(), followed(field, root))).collect()
}

fn followed(field: &Value, root: &Value) -> Value {
    let whole = |reference: &str| reference.strip_prefix('#').and_then(|pointer| root.pointer(pointer)).cloned();
    match field["$ref"].as_str().and_then(whole) {
        Some(target) => followed(&target, root),
        None => field.clone(),
    }
}

fn kind(field: &Value) -> String {
    if let Some(values) = field["enum"].as_array() {
        let words: Vec<String> = values.iter().filter_map(Value::as_str).map(|word| format!("`{word}`")).collect();
        return words.join(", ");
    }
    let plain = |kind: &Value| kind.as_str().map(str::to_owned);
    let named = match &field["type"] {
        Value::Array(kinds) => {
            kinds.iter().filter_map(plain).filter(|kind| kind != "null").collect::<Vec<_>>().join(" or ")
        }
        other @ (Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) | Value::Object(_)) => {
            plain(other).unwrap_or_else(|| "any".to_owned())
        }
    };
    match named.as_str() {
        "array" => format!("list of {}", kind(&field["items"])),
        "string" => "text".to_owned(),
        "integer" => "whole number".to_owned(),
        "boolean" => "true or false".to_owned(),
        _ => named,
    }
}

fn limits(field: &Value) -> String {
    let told = [
        ("minimum", "at least"),
        ("maximum", "at most"),
        ("maxLength", "characters at most"),
        ("maxItems", "items at most"),
        ("maxProperties", "entries at most"),
    ];
    let mut words: Vec<String> =
        told.into_iter().filter_map(|(key, words)| Some(format!("{words} {}", field[key].as_f64()?))).collect();
    if let Some(pattern) = field["pattern"].as_str() {
        words.push(format!("`{}`", pattern.replace('|', "\\|")));
    }
    words.join("; ")
}
