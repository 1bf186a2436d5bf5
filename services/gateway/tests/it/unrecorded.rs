//! Calls while the store answers and takes no entries: what a tenant may have run, and what is told of it afterwards.

use crate::audit::Auditor;
use crate::here::{World, in_process};
use serde_json::{Value, json};
use testkit::{Plan, until};

const ALLOWS: &str = "audit: { unwritable: allow_reads }";

/// A store that takes no changes, and how it takes them again.
#[derive(Clone, Copy)]
struct Refusal {
    key: &'static str,
    on: &'static str,
    off: &'static str,
    code: &'static str,
}

const FULL: Refusal = Refusal { key: "maxmemory", on: "1", off: "0", code: "store_full" };
const ALONE: Refusal = Refusal { key: "min-replicas-to-write", on: "1", off: "0", code: "store_unavailable" };

impl Refusal {
    fn begin(self, world: &mut World) {
        assert_eq!(world.redis().command(&["CONFIG", "SET", self.key, self.on]), "+OK");
    }

    fn end(self, world: &mut World) {
        assert_eq!(world.redis().command(&["CONFIG", "SET", self.key, self.off]), "+OK");
    }
}

async fn noted(world: &World) -> Vec<Value> {
    let page = Auditor::of(world).get(world, "?limit=1000").await.json();
    let entries = page["entries"].as_array().unwrap();
    entries.iter().map(|item| item["entry"].clone()).filter(|entry| entry["phase"] == "unrecorded").collect()
}

async fn a_read_runs_where_the_tenant_allows_it_and_a_change_never_does(refusal: Refusal) {
    let plan = Plan::redis(1).tenant("acme", ALLOWS).tenant("strict", "");
    let mut world = plan.start(in_process()).await;
    let (acme, strict) = (world.tenant("acme").agent(), world.tenant("strict").agent());
    let session = acme.legacy().await;
    session.load("memory:write").await;
    let other = strict.legacy().await;
    let document =
        |n: u32| json!({ "path": format!("session/notes/n{n}"), "type": "note", "content": "a", "evidence": "b" });
    session.call("memory_remember", document(0)).await.ok();
    let receipts = world.part(0).store.open_receipts();

    refusal.begin(&mut world);
    assert_eq!(session.call("memory_list", json!({})).await.code(), "ok", "in a session");
    assert_eq!(acme.modern().call("memory_list", json!({})).await.code(), "ok", "without one");
    for refused in [other.call("memory_list", json!({})).await, strict.modern().call("memory_list", json!({})).await] {
        assert_eq!(refused.code(), refusal.code, "the default: {refused:?}");
    }
    let tenant = json!({ "path": "tenant/runbooks/a", "type": "note", "content": "a", "evidence": "b" });
    for (tool, arguments) in [
        ("memory_remember", document(1)),
        ("memory_remember", tenant),
        ("load_toolset", json!({ "toolset": "memory" })),
        ("search_tools", json!({ "query": "list" })),
    ] {
        assert_eq!(session.call(tool, arguments).await.code(), refusal.code, "{tool}");
    }
    let stranger = acme.modern().with_session("ses_AAAAAAAAAAAAAAAAAAAAAAAAAA").call("memory_list", json!({})).await;
    assert_ne!(stranger.code(), "ok", "a session that cannot be found is none: {stranger:?}");
    assert_eq!(world.part(0).store.open_receipts(), receipts, "no entry is open that was never written");

    refusal.end(&mut world);
    let entry = until("the reads to be noted", async || noted(&world).await.pop()).await;
    let unrecorded = &entry["unrecorded"];
    assert_eq!(unrecorded["reads"], 2, "{entry}");
    assert!(unrecorded["from"].as_str().unwrap() <= unrecorded["to"].as_str().unwrap(), "{entry}");
    assert_eq!(entry["actor"]["kind"], "service");
    let documents = session.call("memory_list", json!({ "path": "session/notes" })).await.ok().to_string();
    assert!(documents.contains("n0") && !documents.contains("n1"), "no change was made: {documents}");
    assert_eq!(noted(&world).await.len(), 1, "once");
    let verified = Auditor::of(&world).run(&["verify"]).await;
    assert_eq!(verified.code, 0, "{}", verified.out);
    let metrics = telemetry::metrics::text(telemetry::metrics::TextFormat::Prometheus);
    let counted = |line: &str| line.starts_with("quartermaster_audit_unrecorded_reads_total") && !line.ends_with(" 0");
    assert!(metrics.lines().any(counted), "{metrics}");
}

#[tokio::test(flavor = "multi_thread")]
async fn reads_run_unrecorded_on_a_full_store_where_the_tenant_allows_it() {
    a_read_runs_where_the_tenant_allows_it_and_a_change_never_does(FULL).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn reads_run_unrecorded_on_a_store_without_its_replicas_where_the_tenant_allows_it() {
    a_read_runs_where_the_tenant_allows_it_and_a_change_never_does(ALONE).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn no_read_runs_unrecorded_while_the_store_does_not_answer() {
    let mut world = Plan::redis(1).tenant("acme", ALLOWS).setting("QM_STORE__DEADLINE", "1s").start(in_process()).await;
    let agent = world.tenant("acme").agent();
    agent.modern().call("memory_list", json!({})).await.ok();
    world.redis().pause();
    let refused = agent.modern().call("memory_list", json!({})).await;
    assert_eq!(refused.code(), "store_unavailable", "nobody can tell which switches are set");
    world.redis().resume();
}

#[tokio::test(flavor = "multi_thread")]
async fn a_switch_stops_unrecorded_reads_and_one_that_cannot_be_read_does_too() {
    let mut world = Plan::redis(1).tenant("acme", ALLOWS).start(in_process()).await;
    let agent = world.tenant("acme").agent();
    agent.modern().call("memory_list", json!({})).await.ok();
    let switches = world.part(0).store.switches();
    let stop = domain::Switch {
        tenant: None,
        on: domain::SwitchSubject::Tenant,
        mode: domain::SwitchMode::Stop,
        reason: "a test".to_owned(),
        owner: domain::SwitchOwner::Operator,
        by: domain::Principal::new("i", "olga"),
        from: domain::Tenant::parse("acme").unwrap(),
        at: domain::Moment::from_secs(1),
        until: None,
    };
    let id = stop.id();
    assert_eq!(switches.set(stop, false).await.unwrap(), store::SwitchChange::Done);
    FULL.begin(&mut world);
    assert_eq!(agent.modern().call("memory_list", json!({})).await.code(), "switched_off");
    FULL.end(&mut world);
    assert_eq!(switches.lift(&id, false).await.unwrap(), store::SwitchChange::Done);
    FULL.begin(&mut world);
    assert_eq!(agent.modern().call("memory_list", json!({})).await.code(), "ok");
    // Somebody writes over the record, behind the back of the service.
    FULL.end(&mut world);
    let key = world.redis().keys().into_iter().find(|key| key.ends_with(":switches")).unwrap();
    world.redis().command(&["HSET", &key, "b", "nonsense"]);
    FULL.begin(&mut world);
    let refused = agent.modern().call("memory_list", json!({})).await;
    assert_ne!(refused.code(), "ok", "nobody can tell what is switched: {refused:?}");
}
