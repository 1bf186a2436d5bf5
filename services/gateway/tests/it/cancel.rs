//! What ends a call before its end: a vanished client in the modern era, a message in the legacy one, and nothing else.

use crate::here::{embedded, redis};
use crate::stock::{self, Hold, TENANT};
use serde_json::{Value, json};
use std::future::Future;
use testkit::{Answer, Legacy, Request, until};

fn held(client: &Legacy, id: Value) -> Request {
    client.prepare_as(id, "tools/call", json!({ "name": "hold", "arguments": {} }))
}

/// Sends a call, waits until it is inside the tool, and goes away.
async fn vanish(sending: impl Future<Output = Answer>, hold: &Hold) {
    tokio::select! {
        answer = sending => panic!("it should wait: {}", answer.text()),
        () = hold.entered(1) => {}
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn t1_a_legacy_call_goes_on_without_its_client() {
    let world = embedded().await;
    let hold = stock::install(&world, 1);
    let client = world.tenant(TENANT).agent().legacy().await;

    let request = held(&client, json!(1));
    vanish(client.send(&request), &hold).await;
    assert_eq!(client.call("quick", json!({})).await.ok()["done"], true);
    hold.release(1);

    hold.finished().await;
    assert_eq!(hold.taken_down(), 0);
}

#[tokio::test(flavor = "multi_thread")]
async fn t2_a_modern_call_ends_with_its_client() {
    let world = embedded().await;
    let hold = stock::install(&world, 1);
    let agent = world.tenant(TENANT).agent();
    let client = agent.modern();
    vanish(client.send(&client.prepare("tools/call", json!({ "name": "hold", "arguments": {} }))), &hold).await;
    hold.dropped().await;

    let rest = agent.rest();
    let session = rest.open("read").await;
    let sending = rest.call(&session, "hold", json!({}));
    vanish(sending, &hold).await;
    hold.dropped().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_cancelled_legacy_call_ends_and_gets_no_answer() {
    let world = embedded().await;
    let hold = stock::install(&world, 1);
    let client = world.tenant(TENANT).agent().legacy().await;
    let request = held(&client, json!("c1"));
    let (answer, ()) = tokio::join!(client.send(&request), async {
        hold.entered(1).await;
        let told = client.notify("notifications/cancelled", json!({ "requestId": "c1", "reason": "enough" })).await;
        assert_eq!(told.status, 202);
    });
    hold.dropped().await;
    assert_eq!((answer.status, answer.text().as_str()), (202, ""));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_call_is_cancelled_from_any_replica() {
    let world = redis(2).await;
    let hold = stock::install(&world, 2);
    let client = world.tenant(TENANT).agent().legacy().await;
    let request = held(&client, json!(5));
    let (answer, ()) = tokio::join!(client.send(&request), async {
        hold.entered(1).await;
        // A wake-up may be lost, and a young call does not listen yet: whoever means it says it again.
        until("the call to be cancelled", async || {
            client.on(1).notify("notifications/cancelled", json!({ "requestId": 5 })).await;
            (hold.taken_down() > 0).then_some(())
        })
        .await;
    });
    assert_eq!((answer.status, answer.text().as_str()), (202, ""));
}

#[tokio::test(flavor = "multi_thread")]
async fn cve_2026_25536_equal_ids_do_not_cross() {
    let world = embedded().await;
    let hold = stock::install(&world, 1);
    let agent = world.tenant(TENANT).agent();
    let (mine, theirs) = (agent.legacy().await, agent.named("bob").legacy().await);
    let (my_call, their_call) = (held(&mine, json!(7)), held(&theirs, json!(7)));
    let (mine_ended, theirs_ended, ()) = tokio::join!(mine.send(&my_call), theirs.send(&their_call), async {
        hold.entered(2).await;
        mine.notify("notifications/cancelled", json!({ "requestId": 7 })).await;
        hold.dropped().await;
        hold.release(1);
    });
    assert_eq!((mine_ended.status, mine_ended.text().as_str()), (202, ""));
    assert_eq!(theirs_ended.json()["result"]["structuredContent"]["done"], true);
}

#[tokio::test(flavor = "multi_thread")]
async fn pa14_nobody_cancels_what_is_not_theirs() {
    let world = embedded().await;
    let hold = stock::install(&world, 1);
    let agent = world.tenant(TENANT).agent();
    let client = agent.legacy().await;
    let request = held(&client, json!(7));
    let (answer, ()) = tokio::join!(client.send(&request), async {
        hold.entered(1).await;
        let cancel = || ("notifications/cancelled", json!({ "requestId": 7 }));
        for other in [client.spoken_by(&agent.named("mallory")), client.named("ses_0000000000000000000000")] {
            let (method, params) = cancel();
            assert_eq!(other.notify(method, params).await.status, 202);
        }
        let wrong_type = client.notify("notifications/cancelled", json!({ "requestId": "7" })).await;
        assert_eq!(wrong_type.status, 202);
        hold.release(1);
    });
    assert_eq!(answer.json()["result"]["structuredContent"]["done"], true);
    assert_eq!(hold.taken_down(), 0);
}

#[tokio::test(flavor = "multi_thread")]
async fn in_the_modern_era_the_message_cancels_nothing() {
    let world = embedded().await;
    let hold = stock::install(&world, 1);
    let agent = world.tenant(TENANT).agent();
    let client = agent.modern();
    let (outcome, ()) = tokio::join!(client.call("hold", json!({})), async {
        hold.entered(1).await;
        let body = json!({ "jsonrpc": "2.0", "method": "notifications/cancelled", "params": { "requestId": "m1" } });
        let told = agent.send(&agent.post("/mcp", &body).header("MCP-Protocol-Version", "2026-07-28")).await;
        assert_eq!(told.status, 202);
        hold.release(1);
    });
    assert_eq!(outcome.ok()["done"], true);
}
