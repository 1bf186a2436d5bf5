use crate::tools::world::World;
use domain::{Effect, Level};
use serde_json::json;

#[tokio::test]
async fn the_lists_hold_what_they_should_and_cost_what_they_may() {
    let world = World::new().await;
    let names = |level: Level| -> Vec<&str> {
        world.tools.iter().filter(|tool| tool.list() == level).map(|tool| tool.name().as_str()).collect()
    };
    assert_eq!(names(Level::Read), ["memory_search", "memory_read", "memory_list", "memory_history"]);
    assert_eq!(names(Level::Write), ["memory_remember", "memory_patch", "memory_propose_promotion", "memory_forget"]);
    let array = |tools: Vec<&str>| catalog::tokens::measure(&format!("[{}]", tools.join(",")));
    let all = array(world.tools.iter().map(|tool| tool.brief()).collect());
    let read = array(world.tools.iter().filter(|tool| tool.list() == Level::Read).map(|tool| tool.brief()).collect());
    assert!(read <= 200, "read list: {read}");
    assert!(all <= 578, "whole toolset: {all}");
}

#[tokio::test]
async fn the_effect_is_what_changes_outside_the_session() {
    let world = World::new().await;
    let sha = "0".repeat(64);
    let effect = |tool: &str, path: &str| {
        let args = match tool {
            "memory_remember" => json!({ "path": path, "type": "note", "content": "x", "evidence": "y" }),
            "memory_patch" => json!({ "path": path, "if_sha256": sha, "content": "x", "evidence": "y" }),
            "memory_forget" => json!({ "path": path, "reason": "x" }),
            other => panic!("{other}"),
        };
        world.entry(tool).parse(args.as_object().unwrap().clone()).unwrap().effect
    };
    for (tool, beyond) in
        [("memory_remember", Effect::Change), ("memory_patch", Effect::Change), ("memory_forget", Effect::Disrupt)]
    {
        assert_eq!(effect(tool, "session/notes/a"), Effect::Read, "{tool}");
        assert_eq!(effect(tool, "user/notes/a"), beyond, "{tool}");
        assert_eq!(effect(tool, "tenant/runbooks/a"), beyond, "{tool}");
    }
    let proposal = json!({ "path": "session/notes/a", "to": "user/notes/a", "reason": "x" });
    let parsed = world.entry("memory_propose_promotion").parse(proposal.as_object().unwrap().clone()).unwrap();
    assert_eq!((parsed.effect, parsed.about.as_deref()), (Effect::Change, Some("user")));
    let reviewed = world.entry("memory_propose_promotion").definition().reviewed.unwrap();
    assert_eq!(reviewed.as_secs(), 14 * 86_400);
}

#[tokio::test]
async fn arguments_are_held_to_their_grammar_before_anything_looks_at_them() {
    let world = World::new().await;
    let (note, sha) =
        (json!({ "path": "session/notes/a", "type": "note", "content": "x", "evidence": "y" }), "0".repeat(64));
    let with = |key: &str, value: serde_json::Value| {
        let mut args = note.clone();
        args[key] = value;
        args
    };
    let patch = |key: &str, value| {
        let mut args = json!({ "path": "session/notes/a", "if_sha256": sha, "evidence": "y" });
        args[key] = value;
        args
    };
    for (tool, args) in [
        ("memory_remember", with("path", json!("session/notes/../a"))),
        ("memory_remember", with("path", json!("/etc/passwd"))),
        ("memory_remember", with("type", json!("secret"))),
        ("memory_remember", with("content", json!(""))),
        ("memory_remember", with("content", json!("x".repeat(100_001)))),
        ("memory_remember", with("evidence", json!("x".repeat(2_001)))),
        ("memory_remember", with("tags", json!(["Not a label"]))),
        ("memory_remember", with("tags", json!(vec!["a"; 17]))),
        ("memory_remember", with("if_sha256", json!("abc"))),
        ("memory_remember", with("trust", json!("approved"))),
        ("memory_remember", with("tenant", json!("other"))),
        ("memory_patch", patch("edits", json!([]))),
        ("memory_patch", patch("edits", json!(vec![json!({ "find": "a", "replace": "b" }); 21]))),
        ("memory_patch", patch("diff", json!("x".repeat(65_537)))),
        ("memory_forget", json!({ "path": "session/notes/a", "reason": "" })),
        ("memory_search", json!({ "query": "" })),
        ("memory_search", json!({ "query": "x", "limit": 21 })),
        ("memory_search", json!({ "query": "x", "scope": "others" })),
        ("memory_list", json!({ "path": "elsewhere" })),
        ("memory_read", json!({ "path": "session/notes/a", "version": 0 })),
    ] {
        assert!(world.entry(tool).parse(args.as_object().unwrap().clone()).is_err(), "{tool} {args}");
    }
}
