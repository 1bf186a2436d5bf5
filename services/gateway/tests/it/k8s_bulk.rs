//! A namespace of twenty thousand pods: every answer within its bounds, nothing lost, nothing twice, memory bounded.

use crate::here::processes;
use crate::k8s_yard::{Draft, MOST_BYTES, Yard};
use sandbox::Seed;
use serde_json::{Value, json};
use std::collections::HashSet;
use testkit::Process;

const PODS: usize = 20_000;
/// What the service may grow by while it pages through all of them. The pods themselves are over 20 MB of JSON.
const GROWTH: usize = 96 * 1024 * 1024;

/// The name in a row, which is the whole object in a full view.
fn name(row: &Value) -> &str {
    row["name"].as_str().or_else(|| row["metadata"]["name"].as_str()).unwrap_or_else(|| panic!("no name: {row}"))
}

/// Follows the cursor to the end and gives every name that was told.
async fn all(yard: &Yard<Process>, first: Value) -> Vec<String> {
    let (mut names, mut args) = (Vec::new(), first);
    loop {
        let page = yard.read("k8s_get", args.clone()).await;
        assert!(page.to_string().len() <= MOST_BYTES);
        let rows = page["items"].as_array().unwrap();
        assert!(!rows.is_empty(), "a page without rows: {page}");
        assert_eq!(page["count"], rows.len());
        names.extend(rows.iter().map(|row| name(row).to_owned()));
        match page["next_cursor"].as_str() {
            Some(cursor) => args["cursor"] = json!(cursor),
            None => return names,
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn twenty_thousand_pods_are_paged_within_bounds() {
    let draft = Draft::simulated(Seed::empty().with_pods("bulk", PODS)).await;
    let yard = draft.start_as(processes()).await;
    let first = yard.read("k8s_get", json!({ "kind": "pods", "namespace": "bulk" })).await;
    assert!(
        first["truncated"] == true && first["remaining"].as_u64().is_some_and(|more| more > 19_000),
        "{}",
        first["remaining"]
    );
    let before = yard.world.part(0).resident_bytes();

    let names = all(&yard, json!({ "kind": "pods", "namespace": "bulk" })).await;
    assert_eq!(names.len(), PODS);
    assert_eq!(names.iter().collect::<HashSet<_>>().len(), PODS, "each of them once");
    let shard = all(&yard, json!({ "kind": "po", "namespace": "*", "selector": "shard=7", "view": "full" })).await;
    assert_eq!(shard.iter().collect::<HashSet<_>>().len(), PODS / 10);
    assert_eq!(shard.len(), PODS / 10);

    let grown = yard.world.part(0).resident_bytes().saturating_sub(before);
    assert!(grown < GROWTH, "the service grew by {grown} bytes");
    let busy = yard.refused("k8s_logs", json!({ "selector": "app=bulk", "namespace": "bulk" })).await;
    assert_eq!(busy["code"], "too_many_pods");
}
