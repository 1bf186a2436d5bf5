//! What the toolset tells a model and what that costs.

use super::*;
use crate::client::Clusters;
use catalog::tokens;
use domain::{Effect, Level};
use target::cursor::Cursors;

fn tools(many_clusters: bool) -> Vec<Arc<CatalogEntry>> {
    let kit = K8sDeps { clusters: Clusters::none(), cursors: Cursors::new([0; 32]) };
    list(&kit, &catalog::CompiledTools::default(), many_clusters).unwrap()
}

fn cost(tools: &[Arc<CatalogEntry>], lists: &[Level]) -> u32 {
    let briefs: Vec<&str> = tools.iter().filter(|tool| lists.contains(&tool.list())).map(|tool| tool.brief()).collect();
    tokens::measure(&format!("[{}]", briefs.join(",")))
}

#[test]
fn the_toolset_fits_its_budget() {
    let all = [Level::Read, Level::Write];
    assert!(cost(&tools(false), &[Level::Read]) <= 170, "read list: {}", cost(&tools(false), &[Level::Read]));
    assert!(cost(&tools(false), &all) <= 400, "whole: {}", cost(&tools(false), &all));
    assert!(cost(&tools(true), &all) <= 430, "with several clusters: {}", cost(&tools(true), &all));
}

#[test]
fn what_a_model_reads_is_as_reviewed() {
    let briefs: Vec<String> = tools(true).iter().map(|tool| tool.brief().to_owned()).collect();
    insta::assert_snapshot!("wire", briefs.join("\n"));
}

#[test]
fn only_what_may_be_repeated_says_so() {
    let told =
        |tool: &Arc<CatalogEntry>| (tool.name().to_string(), tool.definition().idempotent, tool.definition().most);
    let all: Vec<_> = tools(false).iter().map(told).collect();
    assert_eq!(
        all,
        [
            ("argo_get".to_owned(), true, Effect::Read),
            ("argo_history".to_owned(), true, Effect::Read),
            ("argo_rollout".to_owned(), false, Effect::Disrupt),
            ("argo_analysis".to_owned(), true, Effect::Disrupt),
        ]
    );
}
