//! Kill switches: set by people, in force on every replica, and not to be had around.

use crate::here::{World, embedded, in_process};
use crate::k8s_yard::{Draft, config_map, manifest};
use crate::runs_desk::{acme, approve, ask, asker, asking, ended, note, refusal, show, versions};
use crate::upstream_yard::{Shelf, drawn, ours, using};
use domain::{Moment, Tenant};
use sandbox::Seed;
use serde_json::{Value, json};
use store::{Commit, Committed, RecordKey, RecordVersion, Store};
use testkit::actor::Mint;
use testkit::upstream::{Era, McpServer};
use testkit::{Actor, Answer, Plan, until};

const SWITCHES: &str = "/v1/switches";
const REASON: &str = "the-disks-are-full";

fn admin(world: &World, tenant: &str) -> Actor {
    world.tenant(tenant).approver().named("paul").scoped("tenant:admin")
}

fn operator(world: &World) -> Actor {
    world.tenant("acme").approver().named("olga").scoped("operator:switch")
}

async fn set(who: &Actor, on: &str, mode: &str, more: Value) -> Answer {
    let mut body = json!({ "on": on, "mode": mode, "reason": REASON });
    body.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
    who.rest().post(SWITCHES, &body).await
}

/// Sets a switch, wants to be heard, and gives its id.
async fn switched(who: &Actor, on: &str, mode: &str, more: Value) -> String {
    let answer = set(who, on, mode, more).await;
    assert_eq!(answer.status, 200, "{}", answer.text());
    answer.json()["id"].as_str().unwrap().to_owned()
}

async fn lift(who: &Actor, id: &str) -> Answer {
    who.rest().delete(&format!("{SWITCHES}/{id}")).await
}

async fn listed(who: &Actor) -> Vec<Value> {
    let answer = who.rest().get(SWITCHES).await;
    assert_eq!(answer.status, 200, "{}", answer.text());
    answer.json()["switches"].as_array().unwrap().clone()
}

/// What an agent is answered that only reads: `ok`, or a code.
async fn read(agent: &Actor) -> String {
    let session = agent.rest().open("read").await;
    let answer = agent.rest().call(&session, "memory_list", json!({})).await;
    if answer.status == 200 { "ok".to_owned() } else { refusal(&answer).1 }
}

/// What the audit log of a tenant says of switches: verdict and basis.
async fn audited(world: &World, tenant: &Tenant) -> Vec<(String, String)> {
    let entries = world.part(0).store.of(tenant).audit().page(None, 10_000).await.unwrap();
    let of_switch = |entry: &Value| entry["target"].as_str().is_some_and(|target| target.starts_with("switch/"));
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    entries
        .into_iter()
        .map(|noted| noted.entry)
        .filter(of_switch)
        .map(|entry| (text(&entry["decision"]["verdict"]), text(&entry["decision"]["basis"])))
        .collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_switch_set_on_one_replica_holds_on_the_other_and_after_a_restart() {
    let mut world = Plan::redis(2).start(in_process()).await;
    let (paul, agent) = (admin(&world, "acme"), world.tenant("acme").agent().on(1));
    assert_eq!(read(&agent).await, "ok");
    let id = switched(&paul, "toolset:memory", "stop", json!({})).await;
    assert_eq!(read(&agent.on(0)).await, "switched_off", "at once where it was set");
    until("the other replica to know", async || (read(&agent).await == "switched_off").then_some(())).await;
    world.stop(1).await;
    world.begin(1).await;
    assert_eq!(read(&agent).await, "switched_off", "from the first call on");
    assert_eq!(lift(&paul.on(1), &id).await.status, 200);
    until("the first replica to know", async || (read(&agent.on(0)).await == "ok").then_some(())).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_replica_that_hears_no_wake_up_looks_by_itself() {
    let world = Plan::redis(2).start(in_process()).await;
    // Written as the service writes it, and without a word to anybody.
    let (first, second) = (&world.part(0).store, &world.part(1).store);
    let switch = domain::Switch {
        tenant: Some(acme()),
        on: domain::SwitchSubject::Tenant,
        mode: domain::SwitchMode::Stop,
        reason: REASON.to_owned(),
        owner: domain::SwitchOwner::Operator,
        by: domain::Principal::new("i", "olga"),
        from: acme(),
        at: Mint::now(),
        until: None,
    };
    let body = serde_json::to_vec(&json!({ "v": 1, "switches": [switch] })).unwrap();
    let silent = Commit::write(RecordKey::switches(), RecordVersion::NONE, body);
    let written = first.of(&Tenant::of_service()).commit(silent).await.unwrap();
    assert!(matches!(written, Committed::Done(..)));
    until("the other to have looked", async || (!second.switches().all().is_empty()).then_some(())).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn read_only_refuses_what_would_only_wait_for_a_person_and_says_why() {
    let world = asking(Plan::embedded(), "expires: 1h").start(in_process()).await;
    let client = asker(&world.tenant("acme").agent()).await;
    let until_when = Moment::from_millis(Mint::now().millis() + 3_600_000).to_string();
    switched(&admin(&world, "acme"), "tool:memory_remember", "read-only", json!({ "until": until_when })).await;
    let refused = client.call("memory_remember", note("a", "text")).await;
    let told = refused.refusal();
    assert_eq!(told["code"], "switched_read_only", "{told}");
    let message = told["message"].as_str().unwrap();
    for part in ["tool:memory_remember", "an admin of the tenant", &until_when, REASON] {
        assert!(message.contains(part), "{message}");
    }
    assert!(!message.contains("paul"), "{message}");
    client.call("memory_list", json!({})).await.ok();
    let runs = world.tenant("acme").approver().rest().get("/v1/runs").await.json();
    assert_eq!(runs["runs"], json!([]), "nobody is asked");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_tenant_cannot_lift_what_the_operator_set_nor_switch_others() {
    let plan = Plan::embedded().tenant("acme", "").tenant("bolt", "");
    let world = plan.start(in_process()).await;
    let (paul, olga, bolt) = (admin(&world, "acme"), operator(&world), admin(&world, "bolt"));
    let agent_of_bolt = world.tenant("bolt").agent();
    let own = switched(&olga, "tenant", "stop", json!({ "tenant": "acme" })).await;
    assert_eq!(read(&world.tenant("acme").agent()).await, "switched_off");
    assert_eq!(read(&agent_of_bolt).await, "ok", "the other tenant goes on");
    assert_eq!(refusal(&lift(&paul, &own).await), (403, "insufficient_scope".into()));
    let seen = listed(&paul).await;
    assert_eq!((&seen[0]["by"], &seen[0]["set_by"]), (&json!("operator"), &Value::Null), "{seen:?}");
    assert_eq!(listed(&bolt).await, [] as [Value; 0]);
    assert_eq!(refusal(&lift(&bolt, &own).await), (404, "not_found".into()), "what is not seen is not there");
    for tenant in ["bolt", "*"] {
        let refused = set(&paul, "tenant", "stop", json!({ "tenant": tenant })).await;
        assert_eq!(refusal(&refused), (403, "insufficient_scope".into()), "{tenant}");
    }
    // What the tenant sets beside it stays when the operator's is lifted, and the operator leaves it alone.
    let beside = switched(&paul, "tenant", "read-only", json!({})).await;
    assert_eq!(refusal(&lift(&olga, &beside).await), (403, "insufficient_scope".into()));
    assert_eq!(lift(&olga, &own).await.status, 200);
    assert_eq!(read(&world.tenant("acme").agent()).await, "ok", "reads go on");
    let every = switched(&olga, "toolset:memory", "stop", json!({ "tenant": "*" })).await;
    assert_eq!(read(&agent_of_bolt).await, "switched_off");
    assert_eq!(lift(&olga, &every).await.status, 200);
    let verdicts: Vec<String> = audited(&world, &acme()).await.into_iter().map(|(verdict, _)| verdict).collect();
    assert_eq!(verdicts, ["set", "set", "lift", "set", "lift"]);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_switch_ends_by_itself_and_the_audit_log_says_so() {
    let world = Plan::redis(2).start(in_process()).await;
    let agent = world.tenant("acme").agent();
    switched(&admin(&world, "acme"), "tenant", "stop", json!({ "for": "1s" })).await;
    until("the end to pass", async || (read(&agent).await == "ok").then_some(())).await;
    let said = async || {
        let entries = audited(&world, &acme()).await;
        (entries.len() > 1).then_some(entries)
    };
    let entries = until("the audit log to say so", said).await;
    let verdicts: Vec<&str> = entries.iter().map(|(verdict, _)| verdict.as_str()).collect();
    assert_eq!(verdicts, ["set", "ended"], "one of the two replicas took it out");
    assert!(entries[0].1.starts_with("stop in acme, until 20"), "{entries:?}");
    assert_eq!(listed(&admin(&world, "acme")).await, [] as [Value; 0]);
}

#[tokio::test(flavor = "multi_thread")]
async fn an_approved_run_does_not_run_under_a_switch_and_is_not_lost() {
    let world = asking(Plan::embedded(), "expires: 1h").start(in_process()).await;
    let (paul, ana) = (admin(&world, "acme"), world.tenant("acme").approver());
    let run = ask(&asker(&world.tenant("acme").agent()).await, "a", "text").await;
    let id = switched(&paul, "toolset:memory", "read-only", json!({})).await;
    assert_eq!(approve(&ana, &run).await["state"], "approved", "people decide all the same");
    // Several sweeps pass it by.
    let sweeps = world.part(0).executor.clone();
    for _ in 0..3 {
        sweeps.sweep(&world.part(0).tenants.find(&acme()).unwrap(), &acme()).await.unwrap();
    }
    assert_eq!(show(&ana, &run).await["state"], "approved");
    assert_eq!(versions(&world, "a").await, 0);
    assert_eq!(lift(&paul, &id).await.status, 200);
    assert_eq!(ended(&ana, &run).await["state"], "succeeded");
    assert_eq!(versions(&world, "a").await, 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_forged_record_lets_only_reads_through_until_the_operator_writes_over_it() {
    let world = asking(Plan::redis(1), "expires: 1h").start(in_process()).await;
    let (paul, olga) = (admin(&world, "acme"), operator(&world));
    let client = asker(&world.tenant("acme").agent()).await;
    switched(&paul, "tool:memory_search", "stop", json!({})).await;
    let store = Store::open(&world.part(0).settings.store).await.unwrap();
    until("the store to answer", async || store.now().await.ok()).await;
    let shelf = store.of(&Tenant::of_service());
    let expect = shelf.get(&RecordKey::switches()).await.unwrap().map_or(RecordVersion::NONE, |record| record.version);
    let forged = Commit::write(RecordKey::switches(), expect, br#"{"v":1,"switches":[]}"#.to_vec());
    assert!(matches!(shelf.commit(forged).await.unwrap(), Committed::Done(..)));
    store.close().await;
    let warned = async || {
        let ready = world.get(0, "/readyz").await;
        ready.text().contains("switches_unreadable").then_some(ready.status)
    };
    assert_eq!(until("the forgery to be found", warned).await, 200);
    assert_eq!(client.call("memory_remember", note("a", "text")).await.code(), "switched_read_only");
    client.call("memory_list", json!({})).await.ok();
    let searched = client.call("memory_search", json!({ "query": "disks" })).await;
    assert_eq!(searched.code(), "switched_off", "what was known keeps holding");
    let refused = set(&paul, "tenant", "stop", json!({})).await;
    assert_eq!(refusal(&refused), (409, "record_not_authentic".into()));
    let id = switched(&olga, "tool:memory_history", "stop", json!({})).await;
    assert_eq!(lift(&olga, &id).await.status, 200);
    ask(&client, "a", "text").await;
    assert_eq!(listed(&paul).await.len(), 1, "and what the tenant had set is there again");
}

#[tokio::test(flavor = "multi_thread")]
async fn strangers_learn_that_something_is_switched_and_nothing_else() {
    let world = embedded().await;
    let paul = admin(&world, "acme");
    assert!(!world.get(0, "/readyz").await.text().contains("switches"));
    let id = switched(&paul, "tenant", "stop", json!({})).await;
    let ready = until("readiness to say so", async || {
        let ready = world.get(0, "/readyz").await;
        ready.text().contains("switches_set").then_some(ready)
    });
    let ready = ready.await;
    assert_eq!(ready.status, 200, "the process serves all the same");
    for secret in [REASON, "acme", "paul", &id] {
        assert!(!ready.text().contains(secret), "{}", ready.text());
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_switch_that_means_nothing_is_refused() {
    let world = embedded().await;
    let paul = admin(&world, "acme");
    for (on, mode, more) in [
        ("tenants", "stop", json!({})),
        ("target:prod", "stop", json!({})),
        ("tenant", "off", json!({})),
        ("tenant", "stop", json!({ "until": "2020-01-01T00:00:00Z" })),
        ("tenant", "stop", json!({ "until": "tomorrow" })),
        ("tenant", "stop", json!({ "for": "2 hours" })),
        ("tenant", "stop", json!({ "for": "1h", "until": "2099-01-01T00:00:00Z" })),
        ("tenant", "stop", json!({ "reason": "" })),
        ("tenant", "stop", json!({ "reason": "two\nlines" })),
        ("tenant", "stop", json!({ "reason": "a\u{1b}[2Jb\u{202e}" })),
        ("tenant", "stop", json!({ "reason": "x".repeat(301) })),
        ("tenant", "stop", json!({ "unknown": 1 })),
    ] {
        let answer = set(&paul, on, mode, more.clone()).await;
        assert_eq!(refusal(&answer), (400, "invalid_request".into()), "{on} {mode} {more}: {}", answer.text());
    }
    assert_eq!(refusal(&lift(&paul, "sw_0000000000000000").await), (404, "not_found".into()));
    assert_eq!(listed(&paul).await, [] as [Value; 0]);
    let answer = set(&paul, "toolset:helm", "stop", json!({})).await;
    assert_eq!(answer.json()["warnings"].as_array().map(Vec::len), Some(1), "{}", answer.text());
    assert_eq!(audited(&world, &acme()).await.len(), 1, "what was refused before it was tried is no entry");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_tenant_may_set_so_many_switches_and_the_operator_more() {
    let world = embedded().await;
    let (paul, olga) = (admin(&world, "acme"), operator(&world));
    for number in 0..store::MOST_OF_TENANT {
        switched(&paul, &format!("tool:t{number}"), "stop", json!({})).await;
    }
    assert_eq!(refusal(&set(&paul, "tenant", "stop", json!({})).await), (409, "quota_exceeded".into()));
    switched(&paul, "tool:t0", "read-only", json!({})).await;
    switched(&olga, "tenant", "stop", json!({})).await;
    let verdicts: Vec<String> = audited(&world, &acme()).await.into_iter().map(|(verdict, _)| verdict).collect();
    assert_eq!(verdicts[20..], ["set", "failed", "set", "set"]);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_stopped_target_is_not_asked_and_a_read_only_one_is_not_changed() {
    let yard = Draft::simulated(Seed::empty()).await.start().await;
    let (paul, sandbox) = (admin(&yard.world, "acme"), yard.sandbox());
    let apply = json!({ "manifest": manifest(&[config_map("settings", "hello")]) });
    switched(&paul, "target:cluster/other", "stop", json!({})).await;
    yard.read("k8s_get", json!({ "kind": "cm" })).await;

    let id = switched(&paul, "target:cluster/main", "stop", json!({})).await;
    let before = sandbox.requests().len();
    assert_eq!(yard.refused("k8s_get", json!({ "kind": "cm" })).await["code"], "switched_off");
    assert_eq!(yard.refused("k8s_apply", apply.clone()).await["code"], "switched_off");
    assert_eq!(sandbox.requests().len(), before, "the cluster was asked for nothing");

    assert_eq!(lift(&paul, &id).await.status, 200);
    switched(&paul, "target:cluster/main", "read-only", json!({})).await;
    yard.read("k8s_get", json!({ "kind": "cm" })).await;
    assert_eq!(yard.refused("k8s_apply", apply).await["code"], "switched_read_only");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_stopped_server_is_asked_for_nothing_not_even_its_list() {
    let wiki = McpServer::start(Era::Both).await;
    let shelf = Shelf::new().trusted("wiki", &wiki);
    let plan = shelf.under(Plan::embedded()).setting("QM_UPSTREAMS__PRIVATE", "true");
    let world = plan.tenant("acme", &using(&["wiki"], "")).start(in_process()).await;
    let (paul, client) = (admin(&world, "acme"), drawn(&world.tenant("acme").agent(), "wiki").await);
    let whoami = ours("wiki", "whoami");
    client.call(&whoami, json!({})).await.ok();
    let refresh = async || {
        let answer = paul.rest().post("/v1/tenant/servers/wiki/refresh", &json!({})).await;
        assert_eq!(answer.status, 200, "{}", answer.text());
    };

    let id = switched(&paul, "server:wiki", "stop", json!({})).await;
    let asked = || wiki.requests().iter().filter(|seen| seen.text().contains("\"tools/")).count();
    let (before, so_far) = (asked(), wiki.requests().len());
    assert_eq!(client.call(&whoami, json!({})).await.code(), "switched_off");
    refresh().await;
    assert_eq!(asked(), before, "neither a call nor its list");
    assert!(client.list().await.contains(&whoami), "what is kept of its list stays");

    assert_eq!(lift(&paul, &id).await.status, 200);
    client.call(&whoami, json!({})).await.ok();
    refresh().await;
    let listed = wiki.requests().into_iter().skip(so_far).any(|seen| seen.text().contains("tools/list"));
    assert!(listed, "it is asked again once the switch is lifted");
}
