//! People who set up agents are told more than a model is: every tool says when to give it to one, and what to mind.

use catalog::{ToolDefinition, ToolSource};
use std::collections::HashSet;

async fn tools() -> Vec<ToolDefinition> {
    let toolsets = gateway::commands::toolsets().await.unwrap();
    let entries = toolsets.tools_for_several().unwrap();
    entries.iter().map(|entry| entry.definition().clone()).collect()
}

#[tokio::test]
async fn every_tool_says_when_to_give_it_to_an_agent() {
    let mut told = HashSet::new();
    for tool in tools().await {
        let (name, hint) = (&tool.name, tool.hint.as_deref().unwrap_or_default());
        assert!(hint.len() > 40 && hint.ends_with('.'), "{name} has no hint, or not a whole sentence: `{hint}`");
        assert!(hint.len() <= 240, "{name}: a hint is one sentence, and this one has {} bytes", hint.len());
        assert!(!hint.contains("  "), "{name}: a line of its hint is broken in the wrong place");
        assert!(hint != tool.description && hint != tool.title, "{name} only says again what it is");
        assert!(told.insert(hint.to_owned()), "{name} has the hint of another tool");
        assert_eq!(tool.source, ToolSource::BuiltIn, "{name}");
    }
}

#[tokio::test]
async fn a_hint_names_only_tools_that_exist() {
    let tools = tools().await;
    let names: HashSet<&str> = tools.iter().map(|tool| tool.name.as_str()).collect();
    let sets: HashSet<&str> = tools.iter().map(|tool| tool.toolset.as_str()).collect();
    for tool in &tools {
        for quoted in tool.hint.as_deref().unwrap_or_default().split('`').skip(1).step_by(2) {
            let named = quoted.split(':').next().unwrap_or(quoted);
            let of_ours = named.split_once('_').is_some_and(|(set, _)| sets.contains(set));
            assert!(!of_ours || names.contains(named), "{} speaks of `{named}`, which there is not", tool.name);
        }
    }
}
