//! The memory toolset in session scope, through every door, and who never sees what is kept there.

use crate::here::{embedded, redis};
use serde_json::{Value, json};
use testkit::{Legacy, Outcome};

const PATH: &str = "session/notes/db";

fn note(content: &str) -> Value {
    json!({ "path": PATH, "type": "note", "content": content, "evidence": "seen in the logs", "tags": ["db"] })
}

#[tokio::test(flavor = "multi_thread")]
async fn a_note_is_kept_read_listed_found_and_has_a_history() {
    let world = redis(1).await;
    let client = world.tenant("acme").agent().legacy().await;
    client.load("memory:write").await;

    let kept = client.call("memory_remember", note("# Failover\nThe replica lags by ten seconds.")).await;
    assert_eq!(
        (&kept.ok()["created"], &kept.ok()["version"], &kept.ok()["trust"]),
        (&json!(true), &json!(1), &json!("draft"))
    );
    let sha = kept.ok()["sha256"].as_str().unwrap().to_owned();

    let read = client.call("memory_read", json!({ "path": PATH })).await;
    let read = read.ok();
    assert_eq!(read["content"], "# Failover\nThe replica lags by ten seconds.");
    assert_eq!((&read["title"], &read["untrusted"], &read["sha256"]), (&json!("Failover"), &json!(true), &json!(sha)));
    assert_eq!(
        (&read["provenance"]["actor"], &read["provenance"]["session"]),
        (&json!("agent"), &json!(client.session()))
    );

    let listed = client.call("memory_list", json!({ "path": "session/notes" })).await;
    assert_eq!(listed.ok()["items"][0]["path"], PATH);
    let found = client.call("memory_search", json!({ "query": "replica lag" })).await;
    assert_eq!((&found.ok()["hits"][0]["path"], &found.ok()["searched"]), (&json!(PATH), &json!(1)));

    let mut second = note("The replica lags by a minute.");
    second["if_sha256"] = json!(sha);
    assert_eq!(client.call("memory_remember", second).await.ok()["version"], 2);
    let history = client.call("memory_history", json!({ "path": PATH })).await;
    let versions: Vec<&Value> = history.ok()["versions"].as_array().unwrap().iter().map(|v| &v["version"]).collect();
    assert_eq!(versions, [&json!(2), &json!(1)]);
    let old = client.call("memory_read", json!({ "path": PATH, "version": 1 })).await;
    assert_eq!(old.ok()["sha256"], json!(sha));
}

#[tokio::test(flavor = "multi_thread")]
async fn the_modern_era_and_rest_keep_notes_in_the_same_place() {
    let world = embedded().await;
    let agent = world.tenant("acme").agent();
    let modern = agent.modern().loaded("memory:write").await;
    modern.call("memory_remember", note("by handle")).await.ok();

    let rest = agent.rest().call(modern.handle(), "memory_read", json!({ "path": PATH })).await;
    assert_eq!(rest.json()["result"]["content"], "by handle");
    let legacy = agent.legacy().await.named(modern.handle());
    assert_eq!(legacy.call("memory_read", json!({ "path": PATH })).await.ok()["content"], "by handle");
    assert_eq!(modern.call("memory_search", json!({ "query": "handle" })).await.ok()["searched"], 1);
    assert_eq!(modern.call("memory_list", json!({ "path": "session" })).await.ok()["items"][0]["path"], PATH);
    assert!(modern.call("memory_history", json!({ "path": PATH })).await.ok()["versions"].is_array());
}

/// Nothing of the note can be had by this client, in any way there is.
async fn sees_nothing(client: &Legacy) {
    let read = client.call("memory_read", json!({ "path": PATH })).await;
    assert_eq!(read.refusal()["code"], "doc_not_found");
    assert_eq!(read.refusal()["did_you_mean"], Value::Null);
    assert_eq!(client.call("memory_history", json!({ "path": PATH })).await.refusal()["code"], "doc_not_found");
    assert_eq!(client.call("memory_list", json!({ "path": "session" })).await.ok()["items"], json!([]));
    let found = client.call("memory_search", json!({ "query": "canary" })).await;
    assert_eq!((&found.ok()["hits"], &found.ok()["searched"]), (&json!([]), &json!(0)));
}

#[tokio::test(flavor = "multi_thread")]
async fn memory_scopes_do_not_leak() {
    let world = redis(2).await;
    let agent = world.tenant("acme").agent();
    let owner = agent.legacy().await;
    owner.load("memory:write").await;
    owner.call("memory_remember", note("the canary sings")).await.ok();

    sees_nothing(&agent.on(1).legacy().await).await;
    sees_nothing(&agent.named("bob").legacy().await).await;
    sees_nothing(&world.tenant("other").agent().on(1).legacy().await).await;

    // Whoever keeps something else at the same path disturbs nobody.
    let bob = agent.named("bob").legacy().await;
    bob.load("memory:write").await;
    assert_eq!(bob.call("memory_remember", note("of another session")).await.ok()["created"], true);
    assert_eq!(owner.on(1).call("memory_read", json!({ "path": PATH })).await.ok()["content"], "the canary sings");
}

#[tokio::test(flavor = "multi_thread")]
async fn notes_end_with_their_session() {
    let mut world = redis(1).await;
    let client = world.tenant("acme").agent().legacy().await;
    client.load("memory:write").await;
    client.call("memory_remember", note("x")).await.ok();
    assert!(world.redis().keys().iter().any(|key| key.contains(":mem")));
    client.delete().await;
    let left: Vec<String> = world.redis().keys().into_iter().filter(|key| key.contains(":mem")).collect();
    assert_eq!(left, Vec::<String>::new());
}

#[tokio::test(flavor = "multi_thread")]
async fn overwriting_wants_the_digest_of_what_is_there() {
    let world = embedded().await;
    let client = world.tenant("acme").agent().legacy().await;
    client.load("memory:write").await;
    let keep = |content: &str, sha: Option<&str>| {
        let mut note = note(content);
        if let Some(sha) = sha {
            note["if_sha256"] = json!(sha);
        }
        let client = client.clone();
        async move { client.call("memory_remember", note).await }
    };
    let wrong = "0".repeat(64);
    assert_eq!(keep("one", Some(&wrong)).await.refusal()["code"], "memory_conflict", "there is nothing to overwrite");
    let first = keep("one", None).await.ok()["sha256"].as_str().unwrap().to_owned();
    let exists = keep("two", None).await;
    assert_eq!(exists.refusal()["code"], "doc_exists");
    assert_eq!(exists.refusal()["details"], json!({ "sha256": first, "version": 1 }));
    assert_eq!(keep("two", Some(&wrong)).await.refusal()["code"], "memory_conflict");
    assert_eq!(keep("one", None).await.ok()["created"], false, "saying the same again changes nothing");
    assert_eq!(keep("two", Some(&first)).await.ok()["version"], 2);
    assert_eq!(keep("three", Some(&first)).await.refusal()["code"], "memory_conflict", "a digest is good once");
}

#[tokio::test(flavor = "multi_thread")]
async fn secrets_are_refused_and_not_echoed() {
    let world = embedded().await;
    let client = world.tenant("acme").agent().legacy().await;
    client.load("memory:write").await;
    let secret = "AKIAIOSFODNN7EXAMPLE";
    for (field, text) in
        [("content", format!("key {secret}")), ("evidence", format!("it says {secret}")), ("title", secret.to_owned())]
    {
        let mut note = note("fine");
        note[field] = json!(text);
        let outcome = client.call("memory_remember", note).await;
        assert_eq!(outcome.refusal()["code"], "secret_found", "{field}");
        assert!(!outcome.answer.text().contains(secret), "{field}");
    }
    assert_eq!(client.call("memory_list", json!({ "path": "session" })).await.ok()["items"], json!([]));
}

#[tokio::test(flavor = "multi_thread")]
async fn what_reaches_beyond_the_session_waits_for_a_person_and_writes_nothing() {
    let world = embedded().await;
    let client = world.tenant("acme").agent().legacy().await;
    client.load("memory:write").await;
    for path in ["user/notes/a", "tenant/runbooks/a"] {
        let mut note = note("x");
        note["path"] = json!(path);
        let asked = client.call("memory_remember", note).await;
        assert_eq!(asked.ok()["run"]["state"], "pending_approval", "{path}");
        let read = client.call("memory_read", json!({ "path": path })).await;
        assert_eq!(read.refusal()["code"], "doc_not_found", "nothing was written to {path}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_store_that_does_not_exist_is_told_with_the_nearest() {
    let world = embedded().await;
    let client = world.tenant("acme").agent().legacy().await;
    client.load("memory:write").await;
    let mut unknown = note("x");
    unknown["path"] = json!("session/note/a");
    let refused = client.call("memory_remember", unknown).await;
    let refusal = refused.refusal();
    assert_eq!((&refusal["code"], &refusal["did_you_mean"]), (&json!("unknown_store"), &json!(["session/notes"])));
}

#[tokio::test(flavor = "multi_thread")]
async fn session_documents_want_a_session() {
    let world = embedded().await;
    let agent = world.tenant("acme").agent();
    let at = agent.modern().at("/mcp/x/memory:write");
    let outcomes: [Outcome; 4] = [
        at.call("memory_remember", note("x")).await,
        at.call("memory_read", json!({ "path": PATH })).await,
        at.call("memory_history", json!({ "path": PATH })).await,
        at.call("memory_search", json!({ "query": "x", "scope": "session" })).await,
    ];
    for outcome in outcomes {
        assert_eq!(outcome.refusal()["code"], "session_required");
        let next = outcome.refusal()["next"].as_str().unwrap();
        assert!(next.contains("load_toolset"), "{next}");
    }
    assert_eq!(at.call("memory_search", json!({ "query": "x" })).await.ok()["hits"], json!([]));
}
