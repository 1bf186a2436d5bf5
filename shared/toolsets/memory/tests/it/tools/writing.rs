use crate::tools::world::World;
use catalog::ProbeResult;
use domain::Code;
use serde_json::{Value, json};

fn note(path: &str, content: &str) -> Value {
    json!({ "path": path, "type": "runbook", "content": content, "evidence": "tried it" })
}

#[tokio::test]
async fn a_write_beyond_the_session_is_previewed_carried_out_and_proved() {
    let world = World::new().await;
    let args = note("tenant/runbooks/lag", "# Lag\nPromote another replica.");
    let drawn = world.preview("memory_remember", &args).await.unwrap();
    assert_eq!(drawn.summary, "create tenant/runbooks/lag (runbook, 30 bytes)");
    let run = world.ask("memory_remember", &args, 5).await;
    assert_eq!(world.probe("memory_remember", &args, run).await, ProbeResult::NotDone);

    let kept = world.carry_out("memory_remember", &args, run).await.unwrap().value;
    assert_eq!((&kept["trust"], &kept["version"], &kept["created"]), (&json!("approved"), &json!(1), &json!(true)));
    let ProbeResult::Done(Some(proved)) = world.probe("memory_remember", &args, run).await else {
        panic!("not proved")
    };
    assert_eq!(serde_json::from_str::<Value>(&proved).unwrap(), kept);
    assert_eq!(world.carry_out("memory_remember", &args, run).await.unwrap().value, kept, "sent again, it is the same");

    let read = world.call("memory_read", json!({ "path": "tenant/runbooks/lag" })).await.unwrap().value;
    assert_eq!((&read["provenance"]["approver"], &read["provenance"]["run"]), (&json!("ada"), &json!(run.to_string())));
}

#[tokio::test]
async fn a_preview_shows_the_difference_and_its_fingerprint_follows_the_document() {
    let world = World::new().await;
    let first = note("user/notes/a", "one\ntwo");
    let run = world.ask("memory_remember", &first, 5).await;
    let kept = world.carry_out("memory_remember", &first, run).await.unwrap().value;
    let edits = json!([{ "find": "two", "replace": "three" }]);
    let patch = json!({ "path": "user/notes/a", "if_sha256": kept["sha256"], "edits": edits, "evidence": "call_0000000000000000000000" });

    let drawn = world.preview("memory_patch", &patch).await.unwrap();
    assert!(
        drawn.text.contains("-two\n+three") && drawn.text.contains("trust: approved -> approved"),
        "{}",
        drawn.text
    );
    assert!(drawn.text.contains("call_0000000000000000000000 is not known"), "{}", drawn.text);
    assert!(drawn.fingerprint.contains(kept["sha256"].as_str().unwrap()));
    let run = world.ask("memory_patch", &patch, 6).await;
    let patched = world.carry_out("memory_patch", &patch, run).await.unwrap().value;
    assert_eq!((&patched["version"], &patched["diff"]), (&json!(2), &json!("@@ -1,2 +1,2 @@\n one\n-two\n+three\n")));
    let failure = world.preview("memory_patch", &patch).await.unwrap_err();
    assert_eq!(failure.code, memory::codes::MEMORY_CONFLICT, "the same patch no longer fits");
}

#[tokio::test]
async fn a_patch_says_what_changes_in_exactly_one_way() {
    let world = World::new().await;
    let kept = world.call("memory_remember", note("session/notes/a", "one")).await.unwrap().value;
    let mut patch = json!({ "path": "session/notes/a", "if_sha256": kept["sha256"], "evidence": "x" });
    assert_eq!(world.call("memory_patch", patch.clone()).await.unwrap_err().code, Code::InvalidArgument);
    patch["content"] = json!("two");
    patch["diff"] = json!("@@ -1 +1 @@\n-one\n+two\n");
    assert_eq!(world.call("memory_patch", patch.clone()).await.unwrap_err().code, Code::InvalidArgument);
    patch.as_object_mut().unwrap().remove("content");
    assert_eq!(world.call("memory_patch", patch).await.unwrap().value["version"], 2);
}

#[tokio::test]
async fn a_proposal_is_carried_out_by_approval_and_shown_in_both_histories() {
    let world = World::new().await;
    world.call("memory_remember", note("session/notes/lag", "Promote another replica.")).await.unwrap();
    let args = json!({ "path": "session/notes/lag", "to": "tenant/runbooks/lag", "reason": "it helped" });
    let run = world.ask("memory_propose_promotion", &args, 5).await;
    let adopted = world.carry_out("memory_propose_promotion", &args, run).await.unwrap().value;
    assert_eq!((&adopted["path"], &adopted["trust"]), (&json!("tenant/runbooks/lag"), &json!("approved")));
    assert!(matches!(world.probe("memory_propose_promotion", &args, run).await, ProbeResult::Done(Some(_))));
    for path in ["session/notes/lag", "tenant/runbooks/lag"] {
        let past = world.call("memory_history", json!({ "path": path })).await.unwrap().value;
        assert_eq!(past["promotions"][0]["run"], run.to_string(), "{path}");
    }
    let read = world.call("memory_read", json!({ "path": "tenant/runbooks/lag" })).await.unwrap().value;
    assert_eq!((&read["promotion"]["path"], &read["promotion"]["version"]), (&json!("session/notes/lag"), &json!(1)));
}

#[tokio::test]
async fn a_document_is_forgotten_and_a_version_redacted() {
    let world = World::new().await;
    let kept = world.call("memory_remember", note("session/notes/a", "one")).await.unwrap().value;
    let patch = json!({ "path": "session/notes/a", "if_sha256": kept["sha256"], "content": "two", "evidence": "x" });
    world.call("memory_patch", patch).await.unwrap();
    let half = json!({ "path": "session/notes/a", "reason": "x", "version": 1 });
    assert_eq!(world.call("memory_forget", half).await.unwrap_err().code, Code::InvalidArgument);
    let redact = json!({ "path": "session/notes/a", "reason": "too much", "version": 1, "redact": true });
    let left = world.call("memory_forget", redact).await.unwrap().value;
    assert_eq!((&left["redacted_versions"], &left["deleted"]), (&json!([1]), &json!(false)));
    let read = world.call("memory_read", json!({ "path": "session/notes/a", "version": 1 })).await.unwrap_err();
    assert_eq!((read.code, &read.details.unwrap()["by"]), (memory::codes::REDACTED, &json!("agent")));
    let gone = json!({ "path": "session/notes/a", "reason": "done" });
    assert_eq!(world.call("memory_forget", gone).await.unwrap().value["deleted"], true);
    assert_eq!(world.call("memory_search", json!({ "query": "two" })).await.unwrap().value["hits"], json!([]));

    let kept = note("user/notes/a", "one");
    let run = world.ask("memory_remember", &kept, 5).await;
    world.carry_out("memory_remember", &kept, run).await.unwrap();
    let all = json!({ "path": "user/notes/a", "reason": "private", "redact": true });
    let run = world.ask("memory_forget", &all, 6).await;
    assert_eq!(world.probe("memory_forget", &all, run).await, ProbeResult::NotDone);
    let left = world.carry_out("memory_forget", &all, run).await.unwrap().value;
    assert_eq!((&left["deleted"], &left["redacted_versions"]), (&json!(true), &json!([1])));
    let ProbeResult::Done(Some(proved)) = world.probe("memory_forget", &all, run).await else { panic!("not proved") };
    assert_eq!(serde_json::from_str::<Value>(&proved).unwrap(), left);
    assert_eq!(world.carry_out("memory_forget", &all, run).await.unwrap().value, left);
}
