//! What a session kept, once the session is closed: gone with it, unless people still review something taken from it.

use crate::here::{World, embedded, redis};
use crate::runs_desk::{acme, approve, ended, pending, reject, show};
use domain::SessionId;
use serde_json::json;
use store::DocScope;
use testkit::Legacy;

const NOTE: &str = "session/notes/cart";
const TARGET: &str = "tenant/runbooks/cart";

async fn keeper(world: &World) -> Legacy {
    let client = world.tenant("acme").agent().legacy().await;
    client.load("memory:write").await;
    let note =
        json!({ "path": NOTE, "type": "runbook", "content": "# Cart\nDrain it first.", "evidence": "done twice" });
    client.call("memory_remember", note).await.ok();
    client
}

async fn propose(client: &Legacy) -> String {
    let arguments = json!({ "path": NOTE, "to": TARGET, "reason": "others need it" });
    pending(&client.call("memory_propose_promotion", arguments).await)
}

async fn close(world: &World, client: &Legacy) {
    let agent = world.tenant("acme").agent();
    let closed = agent.rest().delete(&format!("/v1/sessions/{}", client.session())).await;
    assert_eq!(closed.status, 204, "{}", closed.text());
}

async fn is_kept(world: &World, client: &Legacy) -> bool {
    let scope = DocScope::Session(SessionId::parse(client.session()).unwrap());
    world.part(0).store.of(&acme()).memory().get(&scope, NOTE).await.unwrap().is_some()
}

async fn documents_end_with_their_session_unless_people_review_them(world: World) {
    let ana = world.tenant("acme").approver();
    let plain = keeper(&world).await;
    close(&world, &plain).await;
    assert!(!is_kept(&world, &plain).await, "nobody waits for it");

    let decided = keeper(&world).await;
    let refused = propose(&decided).await;
    reject(&ana, &refused, "we have one").await;
    close(&world, &decided).await;
    assert!(!is_kept(&world, &decided).await, "nobody waits for it any more");

    let proposing = keeper(&world).await;
    let run = propose(&proposing).await;
    let told = show(&ana, &run).await;
    assert_eq!((&told["reviewed"], &told["on_reject"]), (&json!(true), &json!("continue")));
    close(&world, &proposing).await;
    assert!(is_kept(&world, &proposing).await, "a person still decides about it");
    approve(&ana, &run).await;
    let end = ended(&ana, &run).await;
    assert_eq!(end["state"], "succeeded", "{end}");
    let adopted = world.part(0).store.of(&acme()).memory().get(&DocScope::Tenant, TARGET).await.unwrap().unwrap();
    assert_eq!(adopted.content, "# Cart\nDrain it first.");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_closed_session_keeps_what_is_under_review_on_redis() {
    documents_end_with_their_session_unless_people_review_them(redis(1).await).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_closed_session_keeps_what_is_under_review_embedded() {
    documents_end_with_their_session_unless_people_review_them(embedded().await).await;
}
