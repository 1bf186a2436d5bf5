//! Lists that are larger than an answer.

use crate::k8s::world::{World, texts};
use sandbox::Seed;
use serde_json::json;
use std::collections::HashSet;
use std::sync::atomic::Ordering;

#[tokio::test]
async fn k6_twenty_thousand_pods_are_read_page_by_page() {
    let world = World::new(Seed::empty().with_pods("shop", 20_000)).await;

    let first = world.call("k8s_get", json!({ "kind": "Pod" })).await.unwrap();

    let shown = first["count"].as_u64().unwrap();
    assert!(shown > 50 && first["truncated"] == true && first["hint"].is_string(), "{}", first["hint"]);
    assert_eq!(shown + first["remaining"].as_u64().unwrap(), 20_000);
    assert_eq!(first["omitted"]["items"], first["remaining"]);
    let asked = world.sandbox.requests();
    assert!(
        asked.iter().filter(|r| r.contains("/pods")).all(|r| r.contains("limit=100")),
        "no request asks for everything"
    );
}

#[tokio::test]
async fn pages_hold_every_object_once() {
    let world = World::new(Seed::empty().with_pods("shop", 730)).await;
    let (mut seen, mut cursor, mut pages) = (HashSet::new(), None, 0);

    loop {
        let mut args = json!({ "kind": "Pod", "selector": "app=bulk" });
        if let Some(cursor) = &cursor {
            args["cursor"] = json!(cursor);
        }
        let page = world.call("k8s_get", args).await.unwrap();
        for name in texts(&page, "name") {
            assert!(seen.insert(name.to_owned()), "{name} was shown twice");
        }
        pages += 1;
        match page["next_cursor"].as_str() {
            Some(next) => cursor = Some(next.to_owned()),
            None => break,
        }
    }

    assert_eq!(seen.len(), 730);
    assert!(pages >= 8);
}

#[tokio::test]
async fn whole_objects_are_paged_within_the_bound() {
    let world = World::new(Seed::empty().with_pods("shop", 60)).await;
    let (mut seen, mut args) = (0, json!({ "kind": "Pod", "view": "full" }));
    loop {
        let page = world.call("k8s_get", args.clone()).await.unwrap();
        seen += page["count"].as_u64().unwrap();
        match page["next_cursor"].as_str() {
            Some(next) => args["cursor"] = json!(next),
            None => break,
        }
    }
    assert_eq!(seen, 60);
}

#[tokio::test]
async fn a_cursor_is_for_its_own_question_and_not_for_ever() {
    let world = World::new(Seed::empty().with_pods("shop", 300)).await;
    let page = world.call("k8s_get", json!({ "kind": "Pod" })).await.unwrap();
    let cursor = page["next_cursor"].as_str().unwrap();

    let other = world.refused("k8s_get", json!({ "kind": "Secret", "cursor": cursor })).await;
    assert_eq!(other.code, target::codes::CURSOR_MISMATCH);
    let narrowed = world.refused("k8s_get", json!({ "kind": "Pod", "selector": "app=bulk", "cursor": cursor })).await;
    assert_eq!(narrowed.code, target::codes::CURSOR_MISMATCH);
    assert!(world.call("k8s_get", json!({ "kind": "Pod", "cursor": cursor })).await.is_ok());
    world.later.store(601, Ordering::Relaxed);
    assert_eq!(
        world.refused("k8s_get", json!({ "kind": "Pod", "cursor": cursor })).await.code,
        target::codes::CURSOR_EXPIRED
    );
}

#[tokio::test]
async fn a_list_that_moved_on_too_far_is_told_to_begin_again() {
    let world = World::new(Seed::empty().with_pods("shop", 300)).await;
    let page = world.call("k8s_get", json!({ "kind": "Pod" })).await.unwrap();
    world.sandbox.compact();
    let failure = world.refused("k8s_get", json!({ "kind": "Pod", "cursor": page["next_cursor"] })).await;
    assert_eq!(
        (failure.code, failure.next.as_deref()),
        (target::codes::CURSOR_EXPIRED, Some("call again without cursor"))
    );
}
