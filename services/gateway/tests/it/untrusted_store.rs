//! Somebody writes into the store behind the service's back, on Redis and in the file. Nothing is done by what they wrote.

use crate::here::{FIXED, FIXED_VIRTUAL, World, in_process};
use crate::runs_desk::{acme, refusal};
use crate::runs_yard::{RAZE, SET, Yard, principal, run_id, told};
use domain::run::{Answer, RunEvent, RunState, Verdict};
use domain::{Code, Moment, RunId, Tenant};
use serde_json::{Value, json};
use store::{
    AuditEntry, Commit, Committed, IndexName, IndexUpdate, Phase, RecordKey, RecordVersion, RunCasOutcome, Score,
    Store, StoreError, StoredRecord, VersionedRun,
};
use testkit::{Actor, Plan, until};

const CONFIG: &str = "/v1/tenant/config";
/// Texts that take one tool away each, so that they can be told apart.
const QUIET: &str = "tenant: acme\nmode: write\ndefault_toolsets: [memory]\npolicy: { deny: [memory_history] }\n";
const BLIND: &str = "tenant: acme\nmode: write\ndefault_toolsets: [memory]\npolicy: { deny: [memory_search] }\n";

/// Makes a test on Redis and one in the file of each function.
macro_rules! on_both_stores {
    ($($name:ident),+ $(,)?) => {
        mod redis {
            $(
                #[tokio::test(flavor = "multi_thread")]
                async fn $name() {
                    super::$name(super::plan(testkit::Plan::redis(1)).start(crate::here::in_process()).await).await;
                }
            )+
        }
        mod file {
            $(
                #[tokio::test(flavor = "multi_thread")]
                async fn $name() {
                    super::$name(super::plan(testkit::Plan::file()).start(crate::here::in_process()).await).await;
                }
            )+
        }
    };
}

on_both_stores!(
    a_forged_approval_is_never_executed,
    a_record_that_was_moved_or_bent_is_never_executed,
    a_configuration_that_was_forged_is_not_in_force,
    a_version_that_was_forged_cannot_be_brought_back,
    a_session_that_was_forged_is_none,
    arguments_are_nowhere_in_the_store_and_go_with_the_run,
    records_follow_the_key_of_the_service,
);

fn plan(plan: Plan) -> Plan {
    plan.setting("QM_APPROVALS__SWEEP_EVERY", "1h")
}

/// Does something to the store with no key of the service: beside it on Redis, while it is away in the file.
async fn behind(world: &mut World, work: impl AsyncFnOnce(&Store)) {
    let config = world.part(0).settings.store.clone();
    let file = world.part(0).store.backend() == "redb";
    if file {
        world.stop(0).await;
    }
    let store = Store::open(&config).await.unwrap();
    until("the store to answer", async || store.now().await.ok()).await;
    work(&store).await;
    store.close().await;
    if file {
        world.begin(0).await;
    }
}

/// What stands under a key, as whoever can read the store sees it.
async fn bytes(store: &Store, tenant: &Tenant, key: &RecordKey) -> StoredRecord {
    store.of(tenant).get(key).await.unwrap().expect("the record should be there")
}

/// Writes over whatever stands under a key, and says that somebody has to look at it if it is a run.
async fn write(store: &Store, tenant: &Tenant, key: &RecordKey, body: Vec<u8>, run: Option<RunId>) {
    let shelf = store.of(tenant);
    let expect = shelf.get(key).await.unwrap().map_or(RecordVersion::NONE, |record| record.version);
    let due = |run: RunId| IndexUpdate { index: IndexName::due(), member: run.to_string(), rank: Score::At(1) };
    let commit = Commit { index: run.map(due).into_iter().collect(), ..Commit::write(key.clone(), expect, body) };
    assert!(matches!(shelf.commit(commit).await.unwrap(), Committed::Done(..)));
}

/// Puts a record back exactly as it was, its version included.
async fn put_back(store: &Store, tenant: &Tenant, key: &RecordKey, record: &StoredRecord, run: Option<RunId>) {
    let now = bytes(store, tenant, key).await.version;
    let gone = store.of(tenant).commit(Commit::delete(key.clone(), now)).await.unwrap();
    assert!(matches!(gone, Committed::Done(..)));
    for _ in 1..record.version.number() {
        write(store, tenant, key, b"filler".to_vec(), None).await;
    }
    write(store, tenant, key, record.body.clone(), run).await;
    assert_eq!(bytes(store, tenant, key).await, *record);
}

/// A yes of somebody who was never asked, written in clear as earlier releases did.
async fn approve_in_clear(store: &Store, yard: &Yard, pending: VersionedRun) {
    let at = store.now().await.unwrap();
    let answer = Answer { by: principal("mallory"), verdict: Verdict::Approve, reason: None, at, span: None };
    let next = pending.run.apply(&RunEvent::Answered(answer), at).unwrap();
    assert_eq!(next.state, RunState::Approved);
    let entry = AuditEntry::new(Phase::Transition);
    let written = store.of(&yard.tenant).runs().commit(&pending, &next, None, &entry).await.unwrap();
    assert!(matches!(written, RunCasOutcome::Done(_)));
}

async fn warnings(world: &World) -> Vec<Value> {
    world.get(0, "/readyz").await.json()["warnings"].as_array().cloned().unwrap_or_default()
}

/// Waits until the tenant's audit log speaks of a record.
async fn noted(world: &World, tenant: &Tenant, key: &str) -> Value {
    until(&format!("the audit log to name {key}"), async || {
        let audit_log = world.part(0).store.of(tenant).audit().page_back(None, 100).await.unwrap();
        let about = |entry: &Value| entry["target"].as_str().is_some_and(|target| target.contains(key));
        audit_log.into_iter().map(|noted| noted.entry).find(|entry| entry["phase"] == "denied" && about(entry))
    })
    .await
}

async fn a_forged_approval_is_never_executed(mut world: World) {
    let yard = Yard::new();
    // One that may be repeated, which is what a sweep is quickest to carry out, and one that may not.
    for tool in [SET, RAZE] {
        let run = yard.ask(&world.part(0).executor, tool, 1).await;
        let (pending, _) = world.part(0).store.of(&yard.tenant).runs().find(run).await.unwrap();
        behind(&mut world, async |store| approve_in_clear(store, &yard, pending.unwrap()).await).await;
        let here = world.part(0);
        for _ in 0..3 {
            yard.sweep(&here.executor).await;
        }
        assert_eq!(yard.target.all_effects(), 0, "{tool}");
        let ended = yard.run(&here.store, run).await;
        assert_eq!(ended.state, RunState::Expired, "{ended:?}");
        assert_eq!(ended.ending.unwrap().code.as_deref(), Some("record_not_authentic"));
        // The agent is told so, and whoever still wants it asks anew.
        let refused = yard.call(&here.executor, tool, json!({ "n": 1 })).await.unwrap_err();
        assert_eq!(refused.code, Code::RecordNotAuthentic);
        let again = told(&yard.call(&here.executor, tool, json!({ "n": 1 })).await);
        assert_eq!(again["run"]["state"], "pending_approval", "{again}");
        assert_ne!(run_id(&again), run);
        noted(&world, &yard.tenant, &run.to_string()).await;
    }
    assert_eq!(yard.target.all_effects(), 0);
}

async fn a_record_that_was_moved_or_bent_is_never_executed(mut world: World) {
    let yard = Yard::new();
    let (here, other) = (world.part(0), Tenant::parse("other").unwrap());
    let honest = yard.ask(&here.executor, RAZE, 1).await;
    let (moved, bent) = (yard.ask(&here.executor, RAZE, 2).await, yard.ask(&here.executor, RAZE, 3).await);
    yard.approved_by_the_dead(&here.store, honest).await;
    yard.approved_by_the_dead(&here.store, bent).await;
    let (tenant, whose) = (yard.tenant.clone(), other.clone());
    behind(&mut world, async |store| {
        let approved = bytes(store, &tenant, &RecordKey::run(honest)).await.body;
        write(store, &tenant, &RecordKey::run(moved), approved.clone(), Some(moved)).await;
        write(store, &whose, &RecordKey::run(honest), approved, Some(honest)).await;
        let mut touched = bytes(store, &tenant, &RecordKey::run(bent)).await.body;
        let last = touched.len() - 1;
        touched[last] ^= 1;
        write(store, &tenant, &RecordKey::run(bent), touched, Some(bent)).await;
    })
    .await;
    let here = world.part(0);
    for _ in 0..2 {
        yard.sweep(&here.executor).await;
        here.executor.sweep(&yard.snapshot, &other).await.ok();
    }
    assert_eq!(yard.settled(&here.executor, honest).await.state, RunState::Succeeded);
    assert_eq!((yard.target.effects(honest), yard.target.all_effects()), (1, 1), "what a person approved, and once");
    for (tenant, run) in [(&yard.tenant, moved), (&yard.tenant, bent), (&other, honest)] {
        let read = here.store.of(tenant).runs().find(run).await;
        assert!(matches!(read, Err(StoreError::NotAuthentic { .. })), "{read:?}");
        noted(&world, tenant, &run.to_string()).await;
    }
    let listed = here.store.of(&yard.tenant).runs().page(None, 10).await.unwrap();
    assert_eq!(listed.iter().map(|run| run.id).collect::<Vec<_>>(), [honest], "the others hide nothing");
    let waiting = yard.ask(&here.executor, RAZE, 4).await;
    assert!(!here.executor.cancel_waiting(&yard.tenant).await.unwrap(), "and hold up nobody");
    assert_eq!(yard.run(&here.store, waiting).await.state, RunState::Cancelled);
    until("readiness to warn", async || warnings(&world).await.contains(&json!("records_not_authentic")).then_some(()))
        .await;
    let again = yard.ask(&here.executor, RAZE, 2).await;
    assert_ne!(again, moved, "whoever asks again is not answered by what somebody else wrote");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_run_that_was_executed_cannot_be_put_back() {
    let mut world = plan(Plan::redis(1)).start(in_process()).await;
    let yard = Yard::new();
    let run = yard.ask(&world.part(0).executor, SET, 1).await;
    yard.approved_by_the_dead(&world.part(0).store, run).await;
    let (tenant, key) = (yard.tenant.clone(), RecordKey::run(run));
    let mut approved = None;
    behind(&mut world, async |store| approved = Some(bytes(store, &tenant, &key).await)).await;
    yard.sweep(&world.part(0).executor).await;
    assert_eq!(yard.settled(&world.part(0).executor, run).await.state, RunState::Succeeded);
    let approved = approved.unwrap();
    behind(&mut world, async |store| put_back(store, &tenant, &key, &approved, Some(run)).await).await;
    let here = world.part(0);
    for _ in 0..2 {
        yard.sweep(&here.executor).await;
    }
    assert_eq!(yard.target.all_effects(), 1, "an old yes is used up");
    let read = here.store.of(&yard.tenant).runs().find(run).await;
    assert!(matches!(read, Err(StoreError::NotAuthentic { .. })), "{read:?}");
}

fn admin(world: &World) -> Actor {
    world.tenant("acme").approver().named("paul").scoped("tenant:admin")
}

async fn set(who: &Actor, text: &str) {
    let tag = who.send(&who.request("GET", CONFIG)).await.header("etag").expect("a tag").to_owned();
    let request = who.request("PUT", CONFIG).header("Content-Type", "text/yaml").header("If-Match", tag);
    let answer = who.send(&request.body(text.to_owned())).await;
    assert_eq!(answer.status, 200, "{}", answer.text());
}

async fn listed(world: &World) -> Vec<String> {
    world.tenant("acme").agent().modern().list().await
}

fn without(tool: &str) -> Vec<&'static str> {
    FIXED.into_iter().filter(|name| *name != tool).collect()
}

/// A configuration as earlier releases wrote it.
fn in_clear(version: u64, text: &str) -> Vec<u8> {
    let by = principal("mallory");
    let by = json!({ "issuer": by.issuer, "subject": by.subject });
    let at = serde_json::to_value(Moment::from_secs(1_800_000_000)).unwrap();
    json!({ "v": 1, "cfg": { "version": version, "text": text, "note": null, "by": by, "at": at } }).to_string().into()
}

async fn a_configuration_that_was_forged_is_not_in_force(mut world: World) {
    let restarts = world.part(0).store.backend() == "redb";
    set(&admin(&world), QUIET).await;
    assert_eq!(listed(&world).await, without("memory_history"));
    let key = RecordKey::tenant_text();
    let mut first = None;
    behind(&mut world, async |store| first = Some(bytes(store, &acme(), &key).await)).await;
    set(&admin(&world), BLIND).await;
    let first = first.unwrap();
    // In clear; as another version of itself; from another place; and, as long as somebody remembers, put back whole.
    for forgery in 0..4 {
        behind(&mut world, async |store| match forgery {
            0 => write(store, &acme(), &key, in_clear(9, QUIET), None).await,
            1 => write(store, &acme(), &key, first.body.clone(), None).await,
            2 => {
                let elsewhere = bytes(store, &acme(), &RecordKey::tenant_text_version(1)).await.body;
                write(store, &acme(), &key, elsewhere, None).await;
            }
            _ if restarts => write(store, &acme(), &key, b"junk".to_vec(), None).await,
            _ => put_back(store, &acme(), &key, &first, None).await,
        })
        .await;
        world.part(0).tenants.refresh(&acme()).await.unwrap();
        let stays = if restarts { FIXED_VIRTUAL.to_vec() } else { without("memory_search") };
        assert_eq!(listed(&world).await, stays, "forgery {forgery}");
        until("readiness to warn", async || {
            let warned = warnings(&world).await;
            (warned.contains(&json!("stored_config_invalid")) && warned.contains(&json!("records_not_authentic")))
                .then_some(())
        })
        .await;
        if !restarts || forgery == 0 {
            noted(&world, &acme(), "record cfg ").await;
        }
    }
    // Whoever administers the tenant writes over it.
    set(&admin(&world), QUIET).await;
    assert_eq!(listed(&world).await, without("memory_history"));
}

async fn a_version_that_was_forged_cannot_be_brought_back(mut world: World) {
    set(&admin(&world), QUIET).await;
    set(&admin(&world), BLIND).await;
    let key = RecordKey::tenant_text_version(1);
    let open = "tenant: acme\nmode: write\n";
    behind(&mut world, async |store| write(store, &acme(), &key, in_clear(1, open), None).await).await;
    let paul = admin(&world);
    let request = paul.request("POST", "/v1/tenant/config/rollback").header("Content-Type", "application/json");
    let refused = paul.send(&request.header("If-Match", "\"2\"").body(json!({ "version": 1 }).to_string())).await;
    assert_eq!(refusal(&refused), (409, "record_not_authentic".into()));
    assert_eq!(listed(&world).await, without("memory_search"));
    let history = paul.send(&paul.request("GET", "/v1/tenant/config/history")).await;
    assert_eq!(history.json()["versions"].as_array().map(Vec::len), Some(1), "{}", history.text());
}

async fn a_session_that_was_forged_is_none(mut world: World) {
    let agent = world.tenant("acme").agent().rest();
    let (one, other) = (agent.open("write").await, agent.open("write").await);
    let key = |id: &str| RecordKey::session(domain::SessionId::parse(id).unwrap());
    behind(&mut world, async |store| {
        let clean = bytes(store, &acme(), &key(&one)).await.body;
        write(store, &acme(), &key(&other), clean, None).await;
    })
    .await;
    let agent = world.tenant("acme").agent().rest();
    assert_eq!(agent.call(&one, "memory_list", json!({})).await.status, 200);
    let refused = agent.call(&other, "memory_list", json!({})).await;
    assert_eq!(refusal(&refused), (404, "session_not_found".into()));
}

/// Everything that was written to where the state lies.
fn written(world: &mut World) -> Vec<u8> {
    match world.part(0).settings.store.url.strip_prefix("file:").map(str::to_owned) {
        Some(file) => std::fs::read(file).unwrap(),
        None => world.redis().written(),
    }
}

fn holds(bytes: &[u8], text: &str) -> bool {
    bytes.windows(text.len()).any(|part| part == text.as_bytes())
}

async fn arguments_are_nowhere_in_the_store_and_go_with_the_run(mut world: World) {
    const CANARY: &str = "canary-argument-5f1c";
    let yard = Yard::new();
    let here = world.part(0);
    let asked = yard.call(&here.executor, RAZE, json!({ "n": 1, "why": CANARY })).await;
    let run = run_id(&told(&asked));
    let pending = yard.run(&here.store, run).await;
    let shown = executor::runs::report::to_person(&pending);
    assert_eq!(shown["arguments"]["why"], CANARY, "people see what they decide");
    assert!(shown["preview"]["text"].as_str().unwrap().contains(CANARY));
    let bytes = written(&mut world);
    assert!(holds(&bytes, &run.to_string()), "the right place is searched");
    assert!(!holds(&bytes, CANARY), "while it waits");

    let here = world.part(0);
    yard.answer(&here.executor, "ana", run, Verdict::Reject).await.unwrap();
    let over = yard.run(&here.store, run).await;
    assert_eq!((over.state, &over.asked.digest), (RunState::Rejected, &pending.asked.digest));
    assert!(!format!("{over:?}").contains(CANARY), "{over:?}");
    let asked = yard.call(&here.executor, SET, json!({ "n": 2, "why": CANARY })).await;
    let run = run_id(&told(&asked));
    yard.approve(&here.executor, run).await;
    let over = yard.settled(&here.executor, run).await;
    assert_eq!((over.state, yard.target.effects(run)), (RunState::Succeeded, 1));
    assert!(!format!("{over:?}").contains(CANARY), "{over:?}");
    assert!(!holds(&written(&mut world), CANARY), "and afterwards");
}

async fn records_follow_the_key_of_the_service(mut world: World) {
    set(&admin(&world), QUIET).await;
    let yard = Yard::new();
    let run = yard.ask(&world.part(0).executor, RAZE, 1).await;
    let folder = world.settings_file().parent().unwrap().to_owned();
    std::fs::rename(folder.join("service.key"), folder.join("older.key")).unwrap();
    std::fs::write(folder.join("service.key"), [8; 32]).unwrap();
    world.set("QM_CALLS__OLDER_KEY_FILES", &format!("[\"{}\"]", folder.join("older.key").display()));
    world.stop(0).await;
    world.begin(0).await;
    assert_eq!(listed(&world).await, without("memory_history"));
    let here = world.part(0);
    yard.approve(&here.executor, run).await;
    assert_eq!(yard.settled(&here.executor, run).await.state, RunState::Succeeded, "asked for under the older key");
    let anew = |entry: &Value| entry["target"] == "record cfg: sealed anew";
    until("the configuration to be sealed anew", async || {
        let audit_log = here.store.of(&acme()).audit().page_back(None, 100).await.unwrap();
        audit_log.iter().any(|noted| anew(&noted.entry)).then_some(())
    })
    .await;
    world.set("QM_CALLS__OLDER_KEY_FILES", "[]");
    world.stop(0).await;
    world.begin(0).await;
    assert_eq!(listed(&world).await, without("memory_history"), "without the older key");
    assert_eq!(yard.run(&world.part(0).store, run).await.state, RunState::Succeeded);
}
