//! A rejection that ended a step binds the sessions that its requester opens next, until a person clears it.

use crate::here::{World, in_process};
use crate::runs_desk::{ask, asker, note, pending, refusal, reject, say};
use serde_json::json;
use testkit::{Legacy, Plan};

async fn failing(plan: Plan) -> World {
    let gate = "policy:\n  require_approval:\n  - { name: 'memory_remember:tenant', on_reject: fail }";
    plan.tenant("acme", gate).setting("QM_APPROVALS__SWEEP_EVERY", "50ms").start(in_process()).await
}

async fn is_refused(client: &Legacy, name: &str) -> bool {
    let outcome = client.call("memory_remember", note(name, "x")).await;
    outcome.code() == "policy_denied"
}

#[tokio::test(flavor = "multi_thread")]
async fn a_new_session_does_not_shake_a_rejection_off() {
    let world = failing(Plan::redis(2)).await;
    let tenant = world.tenant("acme");
    let (agent, ana) = (tenant.agent(), tenant.approver());
    let before = asker(&agent).await;
    let client = asker(&agent).await;
    let run = ask(&client, "no", "x").await;
    reject(&ana, &run, "stop that").await;

    let next = asker(&agent.on(1)).await;
    assert!(is_refused(&next, "no").await && is_refused(&next, "other").await);
    assert_eq!(next.call("memory_list", json!({ "path": "tenant" })).await.code(), "ok", "reading goes on");
    let opened = agent.rest().post("/v1/sessions", &json!({ "mode": "write" })).await;
    assert_eq!((opened.status, &opened.json()["stopped_by"]), (201, &json!(run)), "it says so when it is opened");
    let shown = agent.rest().get(&format!("/v1/sessions/{}", next.session())).await.json();
    assert_eq!(shown["stopped_by"], run);
    assert!(!is_refused(&asker(&agent.named("somebody-else")).await, "theirs").await, "nobody else is bound");
    assert!(!is_refused(&before, "before").await, "a session that was open goes on");

    assert_eq!(refusal(&say(&ana.named("agent"), &run, "clear", json!({})).await), (403, "own_request".into()));
    assert!(is_refused(&next, "other").await);
    assert_eq!(say(&ana, &run, "clear", json!({})).await.status, 200);
    for unblocked in [&client, &next, &asker(&agent).await] {
        assert!(!is_refused(unblocked, "after").await);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_call_without_a_session_does_not_get_around_a_rejection() {
    let world = failing(Plan::embedded()).await;
    let tenant = world.tenant("acme");
    let run = ask(&asker(&tenant.agent()).await, "no", "x").await;
    reject(&tenant.approver(), &run, "stop that").await;
    let call = json!({
        "jsonrpc": "2.0", "id": 1, "method": "tools/call",
        "params": { "name": "memory_remember", "arguments": note("around", "x") },
    });
    let agent = tenant.agent();
    let address = "/mcp/x/memory:write";
    let refused = agent.send(&agent.post(address, &call)).await.json();
    assert_eq!(refused["result"]["_meta"]["quartermaster/error"]["code"], "policy_denied", "{refused}");
    assert_eq!(say(&tenant.approver(), &run, "clear", json!({})).await.status, 200);
    let asked = agent.send(&agent.post(address, &call)).await.json();
    assert_eq!(asked["result"]["structuredContent"]["run"]["state"], "pending_approval", "{asked}");
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_carried_over_ends_by_itself_and_can_be_switched_off() {
    let world = failing(Plan::embedded().setting("QM_SESSIONS__CARRY_OVER", "0s")).await;
    let tenant = world.tenant("acme");
    let run = ask(&asker(&tenant.agent()).await, "no", "x").await;
    reject(&tenant.approver(), &run, "no").await;
    let next = asker(&tenant.agent()).await;
    pending(&next.call("memory_remember", note("next", "x")).await);
}
