//! How the tests of runs speak: an agent that asks for what reaches beyond its session, and people who decide.
//!
//! The target is the tenant's memory. A document has one version per effect, so effects are counted where they land.

use crate::here::World;
use domain::{RunId, Tenant};
use serde_json::{Value, json};
use store::DocScope;
use testkit::{Actor, Answer, Legacy, Outcome, Plan, until};

/// The state of a run that nobody has decided.
pub(crate) const PENDING: &str = "pending_approval";
/// How long anybody waits for the end of a run.
const LONG: u64 = 20_000;

/// A plan whose tenant may be asked as often as a test likes, with these words about approvals.
pub(crate) fn asking(plan: Plan, approval: &str) -> Plan {
    plan.tenant("acme", &rules(approval)).setting("QM_APPROVALS__SWEEP_EVERY", "50ms")
}

/// The tenant's file of such a plan.
pub(crate) fn rules(approval: &str) -> String {
    format!("policy:\n  approval: {{ {approval} }}\nlimits: {{ calls_per_minute: 1000000 }}")
}

/// A document of the whole tenant.
pub(crate) fn note(name: &str, content: &str) -> Value {
    json!({ "path": path(name), "type": "note", "content": content, "evidence": "seen in the logs" })
}

/// Where it stands.
pub(crate) fn path(name: &str) -> String {
    format!("tenant/runbooks/{name}")
}

/// An agent that has loaded what it needs to ask.
pub(crate) async fn asker(agent: &Actor) -> Legacy {
    let client = agent.legacy().await;
    client.load("memory:write").await;
    client
}

/// Asks for a document and gives the run that now waits.
pub(crate) async fn ask(client: &Legacy, name: &str, content: &str) -> String {
    pending(&client.call("memory_remember", note(name, content)).await)
}

/// The run in an answer that says that it waits.
pub(crate) fn pending(outcome: &Outcome) -> String {
    let run = &outcome.ok()["run"];
    assert_eq!(run["state"], PENDING, "{outcome:?}");
    run["id"].as_str().expect("a run has an id").to_owned()
}

/// Says `approve`, `reject`, or anything else there is to say about a run.
pub(crate) async fn say(who: &Actor, run: &str, what: &str, body: Value) -> Answer {
    who.rest().post(&format!("/v1/runs/{run}/{what}"), &body).await
}

/// Says yes, and wants to be heard.
pub(crate) async fn approve(who: &Actor, run: &str) -> Value {
    let answer = say(who, run, "approve", json!({})).await;
    assert_eq!(answer.status, 200, "{}", answer.text());
    answer.json()
}

/// Says no, and wants to be heard.
pub(crate) async fn reject(who: &Actor, run: &str, reason: &str) -> Value {
    let answer = say(who, run, "reject", json!({ "reason": reason })).await;
    assert_eq!(answer.status, 200, "{}", answer.text());
    answer.json()
}

/// The run as this actor sees it.
pub(crate) async fn show(who: &Actor, run: &str) -> Value {
    let answer = who.rest().get(&format!("/v1/runs/{run}")).await;
    assert_eq!(answer.status, 200, "{}", answer.text());
    answer.json()
}

/// Waits for the end of a run.
pub(crate) async fn ended(who: &Actor, run: &str) -> Value {
    let open = [PENDING, "approved", "executing"];
    let mut told = show(who, run).await;
    // A wait ends whenever the run moves, and it moves a few times at most.
    for _ in 0..open.len() {
        if !open.iter().any(|state| told["state"] == *state) {
            return told;
        }
        let answer = who.rest().get(&format!("/v1/runs/{run}?wait_ms={LONG}")).await;
        assert_eq!(answer.status, 200, "{}", answer.text());
        told = answer.json();
    }
    assert!(!open.iter().any(|state| told["state"] == *state), "it should have ended: {told}");
    told
}

/// What the agent learns of a run.
pub(crate) async fn await_run(client: &Legacy, run: &str) -> Outcome {
    client.call("await_run", json!({ "run_id": run, "wait_ms": LONG })).await
}

/// The error of an answer: status and code.
pub(crate) fn refusal(answer: &Answer) -> (u16, String) {
    let code = answer.json()["error"]["code"].as_str().unwrap_or_default().to_owned();
    (answer.status, code)
}

/// How often a document of the tenant was written.
pub(crate) async fn versions(world: &World, name: &str) -> usize {
    let memory = world.part(0).store.of(&acme()).memory();
    // The test's runtime has a connection of its own, which may come back a moment after the replica's.
    let versions = until("the store to answer the test", async || {
        memory.history(&DocScope::Tenant, &path(name), None, 100).await.ok()
    });
    versions.await.len()
}

/// The tenant.
pub(crate) fn acme() -> Tenant {
    Tenant::parse("acme").unwrap()
}

/// Everything the audit log holds about a run, oldest first.
pub(crate) async fn audit_log(world: &World, run: &str) -> Vec<Value> {
    let entries = world.part(0).store.of(&acme()).audit().page(None, 100_000).await.unwrap();
    entries.into_iter().map(|noted| noted.entry).filter(|entry| entry["run"]["id"] == run).collect()
}

/// The moves of a run that the audit log holds, as `from>to`.
pub(crate) async fn moves(world: &World, run: &str) -> Vec<String> {
    let part = |entry: &Value, key: &str| entry["run"][key].as_str().unwrap_or("-").to_owned();
    let audit_log = audit_log(world, run).await;
    let moves = audit_log.iter().filter(|entry| entry["phase"] == "transition");
    moves.map(|entry| format!("{}>{}", part(entry, "from"), part(entry, "to"))).collect()
}

/// The id as the store knows it.
pub(crate) fn id(run: &str) -> RunId {
    RunId::parse(run).unwrap()
}
