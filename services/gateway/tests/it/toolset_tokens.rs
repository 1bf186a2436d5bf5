//! Holds the kept token figures to the tokenizer, and the budgets to the figures.
//!
//! `UPDATE_TOKENS=1 cargo test -p gateway --test it toolset_tokens` writes the table anew.

use catalog::{Catalog, ListAudience, tokens};
use domain::{Level, LoadedToolsets, Tenant, ToolsetName};
use std::path::Path;

async fn catalog(targets: usize) -> Catalog {
    let toolsets = gateway::commands::toolsets().await.unwrap();
    let defaults = ["k8s", "memory"].map(|name| ToolsetName::parse(name).unwrap());
    let mut tools = match targets {
        0 | 1 => toolsets.tools().to_vec(),
        _ => toolsets.tools_for_several().unwrap(),
    };
    // Without a target only what is loaded by default is offered.
    tools.retain(|tool| targets > 0 || defaults.contains(&tool.definition().toolset));
    Catalog::build(&Tenant::parse("any").unwrap(), tools, &defaults, catalog::CatalogRules::default()).unwrap()
}

/// Every text that is ever counted for our own tools.
fn texts(catalog: &Catalog) -> Vec<(String, String)> {
    let everything: LoadedToolsets = catalog.toolsets().iter().map(|set| (set.name.clone(), Level::Write)).collect();
    let views = [ListAudience::Growing { grown: true }, ListAudience::Fixed];
    let mut all: Vec<(String, String)> = views
        .into_iter()
        .flat_map(|view| {
            catalog
                .listed(&everything, view)
                .map(|line| (line.name.to_owned(), line.brief.to_owned()))
                .collect::<Vec<_>>()
        })
        .collect();
    // Virtual tools have a face per era, and some are listed in neither.
    all.extend(catalog.virtual_faces().map(|(name, brief)| (name.to_owned(), brief.to_owned())));
    all.sort();
    all.dedup();
    all
}

#[tokio::test]
async fn the_kept_figures_are_what_the_tokenizer_says() {
    // A tenant with several clusters or servers reads slightly other texts, and so does one that has neither.
    let mut texts = texts(&catalog(1).await);
    texts.extend(self::texts(&catalog(2).await));
    texts.extend(self::texts(&catalog(0).await));
    texts.sort();
    texts.dedup();
    let rows: Vec<String> = texts
        .iter()
        .map(|(name, text)| format!("{}\t{}\t{name}\n", tokens::key(text), tokens::measure(text)))
        .collect();
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../shared/catalog/src/tokens.tsv");
    #[expect(clippy::disallowed_methods, reason = "asks whoever runs the test, not the service's settings")]
    let update = std::env::var("UPDATE_TOKENS").is_ok();
    if update {
        std::fs::write(&path, rows.concat()).unwrap();
    }
    let kept = std::fs::read_to_string(&path).unwrap();
    assert_eq!(kept, rows.concat(), "run with UPDATE_TOKENS=1 and look at the difference");
}

#[tokio::test]
async fn the_budgets_hold() {
    let catalog = catalog(1).await;
    let array = |texts: Vec<&str>| tokens::measure(&format!("[{}]", texts.join(",")));
    let none = LoadedToolsets::default();
    let listed = |loaded, view| array(catalog.listed(loaded, view).map(|line| line.brief).collect());

    assert!(listed(&none, ListAudience::Growing { grown: false }) <= 150, "load_toolset alone");
    assert!(
        array(catalog.virtual_faces().filter(|(_, b)| b.contains("session\":")).map(|(_, b)| b).collect()) <= 350,
        "virtual tools"
    );
    let sum = |set: Option<&str>, most: Level| {
        let of = |e: &&std::sync::Arc<catalog::CatalogEntry>| {
            set.is_none_or(|set| e.definition().toolset.as_str() == set) && e.list() <= most
        };
        array(catalog.entries().iter().filter(of).map(|e| e.brief()).collect())
    };
    for (set, read, whole) in
        [("k8s", 650, 1_550), ("helm", 440, 1_050), ("argo", 170, 400), ("jenkins", 420, 720), ("memory", 200, 578)]
    {
        let told = (sum(Some(set), Level::Read), sum(Some(set), Level::Write));
        assert!(told.0 <= read && told.1 <= whole, "{set}: {told:?}, and at most {read} and {whole}");
    }
    assert_eq!(catalog.entries().len(), 50, "tools");
    assert!(sum(None, Level::Write) <= 4_300, "all tools: {}", sum(None, Level::Write));
    let default = listed(catalog.defaults(), ListAudience::Growing { grown: false });
    assert!(default <= 950, "default context: {default}");
}
