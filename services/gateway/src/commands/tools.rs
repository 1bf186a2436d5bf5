//! `tools`: the catalog, and what it costs a model to read.

use crate::cli::{OutputFormat, Tools};
use crate::commands::{CommandOutcome, check, print, print_json, runtime};
use anyhow::bail;
use catalog::{Catalog, CatalogEntry, ListAudience, tokens};
use domain::{Level, LoadedToolsets, Tenant, ToolsetName};
use serde_json::{Value, json};
use std::fmt::Write as _;
use std::sync::Arc;

/// The toolsets of a new session by default.
const DEFAULT_TOOLSETS: [&str; 2] = ["k8s", "memory"];

pub(super) fn run(args: &Tools, output: OutputFormat) -> anyhow::Result<CommandOutcome> {
    let entries = runtime()?.block_on(check::builtin())?;
    let defaults = DEFAULT_TOOLSETS.iter().map(|name| ToolsetName::parse(name)).collect::<Result<Vec<_>, _>>()?;
    let catalog = Catalog::build(&Tenant::parse("catalog")?, entries, &defaults, catalog::CatalogRules::default())?;
    if let Some(name) = &args.toolset
        && !catalog.toolsets().iter().any(|set| set.name.as_str() == name)
    {
        let names: Vec<&str> = catalog.toolsets().iter().map(|set| set.name.as_str()).collect();
        bail!("there is no toolset `{name}`; choose one of {}", names.join(", "));
    }
    let entries: Vec<&Arc<CatalogEntry>> = catalog
        .entries()
        .iter()
        .filter(|e| args.toolset.as_deref().is_none_or(|name| e.definition().toolset.as_str() == name))
        .collect();
    match output {
        OutputFormat::Json => print_json(&as_json(&catalog, &entries))?,
        OutputFormat::Text => print(&as_text(&catalog, &entries, args.tokens)),
    }
    Ok(CommandOutcome::Done)
}

fn as_text(catalog: &Catalog, entries: &[&Arc<CatalogEntry>], with_tokens: bool) -> String {
    let mut text = String::new();
    for entry in entries {
        let d = entry.definition();
        let cost = if with_tokens { format!("{:>6}", entry.tokens()) } else { String::new() };
        writeln!(
            text,
            "{:<10} {:<18} {:<8}{cost}  {}",
            d.toolset.as_str(),
            d.name.as_str(),
            d.most.as_str(),
            d.description
        )
        .ok();
    }
    if with_tokens {
        text.push_str("\ntokens (o200k_base over the JSON array of name, description and inputSchema)\n");
        for (what, cost) in totals(catalog) {
            writeln!(text, "{what:<42} {cost:>6}").ok();
        }
    }
    text
}

fn as_json(catalog: &Catalog, entries: &[&Arc<CatalogEntry>]) -> Value {
    let tools: Vec<Value> = entries
        .iter()
        .map(|entry| {
            let d = entry.definition();
            json!({
                "name": d.name.as_str(), "toolset": d.toolset.as_str(), "description": d.description,
                "ui_hint": d.hint, "effect": d.most.as_str(), "list": entry.list().as_str(), "tokens": entry.tokens(),
            })
        })
        .collect();
    let totals: serde_json::Map<String, Value> =
        totals(catalog).into_iter().map(|(what, cost)| (what, json!(cost))).collect();
    json!({ "tools": tools, "tokens": totals })
}

/// The sums people ask for, each counted as one array, as a model is given it.
fn totals(catalog: &Catalog) -> Vec<(String, u32)> {
    let growing = ListAudience::Growing { grown: false };
    let array = |texts: Vec<&str>| tokens::measure(&format!("[{}]", texts.join(",")));
    let list = |loaded: &LoadedToolsets, view| array(catalog.listed(loaded, view).map(|line| line.brief).collect());
    let everything: LoadedToolsets = catalog.toolsets().iter().map(|set| (set.name.clone(), Level::Write)).collect();
    let none = LoadedToolsets::default();
    let mut sums = vec![
        ("default context".to_owned(), list(catalog.defaults(), growing)),
        ("default context, list that cannot grow".to_owned(), list(catalog.defaults(), ListAudience::Fixed)),
        ("load_toolset".to_owned(), list(&none, growing)),
        ("control tools together".to_owned(), array(catalog.virtual_briefs().collect())),
    ];
    for set in catalog.toolsets() {
        let of = |level: Level| {
            let briefs = catalog.entries().iter().filter(|e| e.definition().toolset == set.name && e.list() <= level);
            array(briefs.map(|e| e.brief()).collect())
        };
        sums.push((format!("toolset {} read", set.name), of(Level::Read)));
        sums.push((format!("toolset {} whole", set.name), of(Level::Write)));
    }
    sums.push(("everything".to_owned(), list(&everything, ListAudience::Growing { grown: true })));
    sums
}
