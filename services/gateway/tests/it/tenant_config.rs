//! A tenant's configuration in the hands of its admin: set over HTTP, checked like a file, in force on every replica.

use crate::here::{DEFAULT, FIXED, FIXED_VIRTUAL, World, embedded, in_process, redis};
use crate::runs_desk::{acme, refusal};
use serde_json::{Value, json};
use store::{AuditEntry, Phase, TextChange, WritePrecondition};
use testkit::{Actor, Answer, Plan, until};

const CONFIG: &str = "/v1/tenant/config";
const HISTORY: &str = "/v1/tenant/config/history";
/// A text that takes one tool away, so that it can be told from the file.
const QUIET: &str = "tenant: acme\nmode: write\ndefault_toolsets: [memory]\npolicy: { deny: [memory_history] }\n";
/// One that takes another away.
const BLIND: &str = "tenant: acme\nmode: write\ndefault_toolsets: [memory]\npolicy: { deny: [memory_search] }\n";
const BAD: &str =
    "tenant: acme\nmode: admin\npolicy:\n  deny: [k8s_gte]\n  allow: [x]\nlimits: { calls_in_flight: 0 }\n";

fn admin(world: &World, tenant: &str) -> Actor {
    world.tenant(tenant).approver().named("paul").scoped("tenant:admin")
}

async fn get(who: &Actor, address: &str) -> Answer {
    who.send(&who.request("GET", address)).await
}

async fn shown(who: &Actor) -> Value {
    let answer = who.send(&who.request("GET", CONFIG).header("Accept", "application/json")).await;
    assert_eq!(answer.status, 200, "{}", answer.text());
    answer.json()
}

async fn tag(who: &Actor) -> String {
    get(who, CONFIG).await.header("etag").expect("a tag").to_owned()
}

async fn put_for(who: &Actor, text: &str, tag: &str) -> Answer {
    let request = who.request("PUT", CONFIG).header("Content-Type", "text/yaml").header("If-Match", tag.to_owned());
    who.send(&request.body(text.to_owned())).await
}

async fn put(who: &Actor, text: &str) -> Answer {
    let tag = tag(who).await;
    put_for(who, text, &tag).await
}

async fn remove(who: &Actor, tag: &str) -> Answer {
    who.send(&who.request("DELETE", CONFIG).header("If-Match", tag.to_owned())).await
}

async fn roll_back(who: &Actor, version: u64, tag: &str) -> Answer {
    let request = who.request("POST", "/v1/tenant/config/rollback").header("Content-Type", "application/json");
    who.send(&request.header("If-Match", tag.to_owned()).body(json!({ "version": version }).to_string())).await
}

async fn check(who: &Actor, text: &str) -> Answer {
    let request = who.request("POST", "/v1/tenant/config/check").header("Content-Type", "application/yaml");
    who.send(&request.body(text.to_owned())).await
}

fn version(answer: &Answer) -> u64 {
    assert_eq!(answer.status, 200, "{}", answer.text());
    answer.json()["version"].as_u64().expect("a version")
}

fn without(tool: &str) -> Vec<&'static str> {
    FIXED.into_iter().filter(|name| *name != tool).collect()
}

async fn listed(world: &World, replica: usize) -> Vec<String> {
    world.tenant("acme").agent().on(replica).modern().list().await
}

async fn targets(world: &World) -> Vec<(String, String, String)> {
    let audit_log = world.part(0).store.of(&acme()).audit().page(None, 1_000).await.unwrap();
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    let entries = audit_log.iter().map(|noted| &noted.entry).filter(|entry| entry["phase"] == "admin");
    entries.map(|entry| (text(&entry["target"]), text(&entry["actor"]["kind"]), text(&entry["actor"]["sub"]))).collect()
}

async fn a_text_is_set_shown_and_removed(world: World) {
    let paul = admin(&world, "acme");
    let file = get(&paul, CONFIG).await;
    assert_eq!((file.status, file.header("x-quartermaster-source")), (200, Some("file")));
    assert_eq!(file.header("content-type"), Some("text/yaml; charset=utf-8"));
    assert!(file.text().starts_with("tenant: acme\n"), "{}", file.text());
    let of_file = file.header("etag").unwrap().to_owned();
    assert_eq!(of_file.len(), 66, "the digest of the file's text, in quotes");

    let set = put_for(&paul, QUIET, &of_file).await;
    assert_eq!((version(&set), set.header("etag")), (1, Some("\"1\"")));
    let told = set.json();
    assert_eq!((&told["source"], &told["in_force"], &told["set_by"]), (&json!("http"), &json!(true), &json!("paul")));
    assert_eq!(listed(&world, 0).await, without("memory_history"), "it holds before the answer is there");

    let now = get(&paul, CONFIG).await;
    assert_eq!((now.text(), now.header("x-quartermaster-source")), (QUIET.to_owned(), Some("http")));
    let now = shown(&paul).await;
    assert_eq!((&now["version"], &now["text"], &now["etag"]), (&json!(1), &json!(QUIET), &json!("1")));
    assert_eq!((&now["in_force"], &now["locked"]), (&json!(true), &json!(false)));
    assert_eq!(now["set_at"], told["set_at"]);

    assert_eq!(version(&put(&paul, BLIND).await), 2);
    assert_eq!(listed(&world, 0).await, without("memory_search"));
    let removed = remove(&paul, "\"2\"").await;
    assert_eq!((version(&removed), removed.header("etag")), (3, Some(of_file.as_str())));
    assert_eq!((&removed.json()["source"], &removed.json()["in_force"]), (&json!("file"), &json!(true)));
    assert_eq!(listed(&world, 0).await, FIXED);
    assert_eq!(shown(&paul).await["source"], "file");
    assert_eq!(refusal(&remove(&paul, &of_file).await), (404, "not_found".into()), "there is nothing to remove");
    assert_eq!(version(&put_for(&paul, QUIET, &of_file).await), 4, "numbers go on");

    let of_paul = |target: &str| (target.to_owned(), "person".to_owned(), "paul".to_owned());
    assert_eq!(targets(&world).await, ["config/1", "config/2", "config/3", "config/4"].map(of_paul));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_text_is_set_shown_and_removed_on_redis() {
    a_text_is_set_shown_and_removed(redis(1).await).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_text_is_set_shown_and_removed_embedded() {
    a_text_is_set_shown_and_removed(embedded().await).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_bad_text_is_refused_whole_with_every_mistake() {
    let world = embedded().await;
    let paul = admin(&world, "acme");
    let refused = put(&paul, BAD).await;
    assert_eq!(refusal(&refused), (422, "config_invalid".into()), "{}", refused.text());
    let problems = refused.json()["error"]["details"]["problems"].clone();
    let places: Vec<String> = problems.as_array().unwrap().iter().map(place).collect();
    assert_eq!(
        places,
        ["config:2:7 bad_value", "config:4:10 matches_no_tool", "config:5:3 unknown_key", "config:6:28 out_of_range"]
    );
    assert!(problems[1]["hint"].as_str().unwrap().contains("k8s_get"), "{problems}");
    let checked = check(&paul, BAD).await.json();
    assert_eq!((&checked["valid"], &checked["problems"]), (&json!(false), &problems), "checking says the same");
    assert_eq!(check(&paul, QUIET).await.json()["valid"], true);

    assert_eq!(shown(&paul).await["source"], "file");
    assert_eq!(get(&paul, HISTORY).await.json()["versions"], json!([]));
    assert_eq!(listed(&world, 0).await, FIXED, "nothing of it holds");
    assert_eq!(targets(&world).await, []);
}

fn place(problem: &Value) -> String {
    let text = |key: &str| problem[key].as_str().unwrap_or_default().to_owned();
    format!("{}:{}:{} {}", text("file"), problem["line"], problem["column"], text("code"))
}

#[tokio::test(flavor = "multi_thread")]
async fn a_text_speaks_of_its_own_tenant_and_takes_what_its_file_gives() {
    let world = embedded().await;
    let paul = admin(&world, "acme");
    let refused = async |text: &str| -> Vec<String> {
        let answer = put(&paul, text).await;
        assert_eq!(refusal(&answer), (422, "config_invalid".into()), "{}", answer.text());
        answer.json()["error"]["details"]["problems"].as_array().unwrap().iter().map(place).collect()
    };
    assert_eq!(refused("tenant: other\n").await, ["config:1:1 foreign_tenant"]);
    assert_eq!(
        refused("mode: admin\ntenant: other\n").await,
        ["config:2:1 foreign_tenant", "config:1:7 bad_value"],
        "all mistakes at once"
    );
    let account = "tenant: acme\nclusters:\n- name: here\n  in_cluster: true\n";
    assert_eq!(refused(account).await, ["config:4:15 operator_only"]);
    let more = "tenant: acme\nlimits:\n  calls_per_minute: 601\n";
    assert_eq!(refused(more).await, ["config:3:21 operator_only"]);
    assert_eq!(shown(&admin(&world, "other")).await["source"], "file", "nobody else was touched");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_change_names_what_it_replaces_and_one_of_two_wins() {
    let world = redis(2).await;
    let (paul, ruth) = (admin(&world, "acme").on(0), admin(&world, "acme").named("ruth").on(1));
    let of_file = tag(&paul).await;
    for bad in ["*", "1", "W/\"1\"", "\"1\", \"2\""] {
        assert_eq!(refusal(&put_for(&paul, QUIET, bad).await), (400, "invalid_request".into()), "{bad}");
    }
    let nameless = paul.request("PUT", CONFIG).header("Content-Type", "text/yaml").body(QUIET);
    assert_eq!(refusal(&paul.send(&nameless).await), (400, "invalid_request".into()), "nobody said what to replace");
    let late = put_for(&paul, QUIET, "\"7\"").await;
    assert_eq!(refusal(&late), (412, "config_conflict".into()));
    assert_eq!(json!(of_file.trim_matches('"')), late.json()["error"]["details"]["etag"]);

    let mut current = of_file;
    for round in 1..=10_u64 {
        let (one, two) = tokio::join!(put_for(&paul, QUIET, &current), put_for(&ruth, BLIND, &current));
        let (won, lost) = if one.status == 200 { (one, two) } else { (two, one) };
        assert_eq!(version(&won), round);
        assert_eq!(refusal(&lost), (412, "config_conflict".into()), "{}", lost.text());
        assert_eq!(lost.json()["error"]["details"]["etag"], json!(round.to_string()));
        current = won.header("etag").unwrap().to_owned();
    }
    let (one, two) = tokio::join!(remove(&paul, &current), put_for(&ruth, BLIND, &current));
    assert_eq!([one.status, two.status].iter().filter(|status| **status == 200).count(), 1);
    assert_eq!(targets(&world).await.len(), 11, "whoever lost is not in the audit log");
}

#[tokio::test(flavor = "multi_thread")]
async fn earlier_versions_are_listed_shown_and_brought_back() {
    let world = embedded().await;
    let paul = admin(&world, "acme");
    for text in [QUIET, BLIND].into_iter().cycle().take(23) {
        version(&put(&paul, text).await);
    }
    version(&remove(&paul, "\"23\"").await);
    let page = get(&paul, HISTORY).await.json();
    let numbers: Vec<u64> =
        page["versions"].as_array().unwrap().iter().map(|v| v["version"].as_u64().unwrap()).collect();
    assert_eq!(numbers, (5..=24).rev().collect::<Vec<u64>>());
    let newest = &page["versions"][0];
    assert_eq!((&newest["removed"], &newest["sha256"], &newest["bytes"]), (&json!(true), &Value::Null, &json!(0)));
    assert_eq!(page["versions"][1]["set_by"], "paul");
    assert!(page["versions"][1].get("text").is_none(), "a list has no texts");
    let rest = get(&paul, &format!("{HISTORY}?before={}", page["next_before"])).await.json();
    assert_eq!((rest["versions"].as_array().unwrap().len(), &rest["next_before"]), (4, &Value::Null));

    let second = get(&paul, &format!("{HISTORY}/2")).await.json();
    assert_eq!((&second["text"], &second["bytes"]), (&json!(BLIND), &json!(BLIND.len())));
    for unknown in ["0", "25", "-1", "x", "18446744073709551616"] {
        assert_eq!(refusal(&get(&paul, &format!("{HISTORY}/{unknown}")).await), (404, "not_found".into()), "{unknown}");
    }

    let file = tag(&paul).await;
    assert_eq!(refusal(&roll_back(&paul, 2, "\"1\"").await), (412, "config_conflict".into()));
    assert_eq!(refusal(&roll_back(&paul, 24, &file).await), (404, "not_found".into()), "a removal has no text");
    assert_eq!(refusal(&roll_back(&paul, 99, &file).await), (404, "not_found".into()));
    let back = roll_back(&paul, 2, &file).await;
    assert_eq!((version(&back), &back.json()["note"]), (25, &json!("as version 2")));
    assert_eq!(shown(&paul).await["text"], BLIND);
    assert_eq!(listed(&world, 0).await, without("memory_search"));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_version_that_is_not_good_any_more_is_not_brought_back() {
    let world = embedded().await;
    let paul = admin(&world, "acme");
    let texts = world.part(0).store.of(&acme()).tenant_text();
    set_behind_our_back(&world, WritePrecondition::Absent, "tenant: acme\nmode: whatever\n").await;
    let at = texts.current().await.unwrap().unwrap();
    until("it to be noticed", async || shown(&paul).await.get("problems").is_some().then_some(())).await;
    version(&put_for(&paul, QUIET, &format!("\"{}\"", at.version)).await);
    let refused = roll_back(&paul, at.version, "\"2\"").await;
    assert_eq!(refusal(&refused), (422, "config_invalid".into()), "{}", refused.text());
    assert_eq!(shown(&paul).await["text"], QUIET);
}

/// Writes a text as a build with other rules would have.
async fn set_behind_our_back(world: &World, base: WritePrecondition, text: &str) {
    let by = domain::Principal::new("https://login.example.com", "ruth");
    let texts = world.part(0).store.of(&acme()).tenant_text();
    let put = texts.put(base, text.to_owned(), None, &by, &AuditEntry::new(Phase::Admin)).await.unwrap();
    assert!(matches!(put, TextChange::Done(_)), "{put:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn only_people_who_administer_the_tenant_come_here() {
    let world = embedded().await;
    let paul = admin(&world, "acme");
    version(&put(&paul, QUIET).await);
    for scope in
        ["tools:read tools:write", "runs:decide audit:read", "tenant:admin tools:read", "tenant:admin tools:write"]
    {
        let other = paul.scoped(scope);
        let no = (403, "insufficient_scope".to_owned());
        for address in [CONFIG, HISTORY, "/v1/tenant/config/history/1"] {
            assert_eq!(refusal(&get(&other, address).await), no, "{scope} {address}");
        }
        assert_eq!(refusal(&put_for(&other, BLIND, "\"1\"").await), no, "{scope}");
        assert_eq!(refusal(&remove(&other, "\"1\"").await), no, "{scope}");
        assert_eq!(refusal(&roll_back(&other, 1, "\"1\"").await), no, "{scope}");
        assert_eq!(refusal(&check(&other, BLIND).await), no, "{scope}");
    }
    let stranger = admin(&world, "other");
    let theirs = get(&stranger, "/v1/tenant/config/history/1").await;
    let never = get(&stranger, "/v1/tenant/config/history/2").await;
    assert_eq!(theirs.anonymous(), never.anonymous(), "what is another's never was");
    assert_eq!(get(&stranger, HISTORY).await.json()["versions"], json!([]));
    assert_eq!(refusal(&put_for(&stranger, "tenant: other\n", "\"1\"").await), (412, "config_conflict".into()));
    assert!(get(&stranger, CONFIG).await.text().starts_with("tenant: other\n"));
    assert_eq!(shown(&paul).await["version"], 1, "nobody changed anything");
}

#[tokio::test(flavor = "multi_thread")]
async fn bodies_and_queries_have_their_form() {
    let world = embedded().await;
    let paul = admin(&world, "acme");
    let tag = tag(&paul).await;
    let send = async |kind: &str, query: &str, body: Vec<u8>| {
        let request = paul.request("PUT", &format!("{CONFIG}{query}")).header("Content-Type", kind.to_owned());
        refusal(&paul.send(&request.header("If-Match", tag.clone()).body(body)).await)
    };
    for kind in ["application/json", "text/plain", "application/x-www-form-urlencoded"] {
        assert_eq!(send(kind, "", QUIET.into()).await, (400, "invalid_request".into()), "{kind}");
    }
    assert_eq!(send("text/yaml", "", b"tenant: \xff".to_vec()).await, (400, "invalid_request".into()));
    assert_eq!(send("text/yaml", "?tenant=other", QUIET.into()).await, (400, "invalid_request".into()));
    let long = format!("?note={}", "x".repeat(501));
    assert_eq!(send("text/yaml", &long, QUIET.into()).await, (400, "invalid_request".into()));
    let large = format!("{QUIET}# {}\n", "x".repeat(256 * 1024));
    assert_eq!(send("text/yaml", "", large.into()).await, (413, "too_large".into()));
    let body = json!({ "version": 1, "tenant": "other" }).to_string();
    let rollback = paul.request("POST", "/v1/tenant/config/rollback").header("Content-Type", "application/json");
    let refused = paul.send(&rollback.header("If-Match", tag.clone()).body(body)).await;
    assert_eq!(refusal(&refused), (400, "invalid_request".into()), "who one is stands in the token alone");
    assert_eq!(shown(&paul).await["source"], "file");

    let note = paul.request("PUT", &format!("{CONFIG}?note=quiet%20hours")).header("Content-Type", "application/yaml");
    let set = paul.send(&note.header("If-Match", tag.clone()).body(QUIET)).await;
    assert_eq!((version(&set), &set.json()["note"]), (1, &json!("quiet hours")));
}

/// Files are looked at once an hour, so whatever happens sooner was heard from the store.
fn listening(plan: Plan) -> Plan {
    plan.setting("QM_TENANTS__RELOAD_EVERY", "1h")
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_set_on_one_replica_holds_on_all_and_is_announced() {
    let world = listening(Plan::redis(2)).start(in_process()).await;
    let paul = admin(&world, "acme").on(0);
    let agent = world.tenant("acme").agent().on(1);
    let session = agent.legacy().await;
    let mut stream = session.open_stream().await;
    assert_eq!(session.list().await, DEFAULT);

    version(&put(&paul, QUIET).await);

    assert_eq!(stream.notice().await, "notifications/tools/list_changed");
    assert_eq!(listed(&world, 1).await, without("memory_history"));
    let called = session.call("memory_history", json!({ "path": "tenant/runbooks/a" })).await;
    assert_eq!(called.code(), "unknown_tool", "also for sessions that were there before");
    let on_b = shown(&paul.on(1)).await;
    assert_eq!((&on_b["version"], &on_b["in_force"]), (&json!(1), &json!(true)));

    let tag = tag(&paul.on(1)).await;
    version(&remove(&paul.on(1), &tag).await);
    until("the file to hold on the first", async || (listed(&world, 0).await == FIXED).then_some(())).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn whoever_lists_meanwhile_sees_one_version_or_the_other() {
    let world = listening(Plan::redis(2)).start(in_process()).await;
    let paul = admin(&world, "acme").on(0);
    let (quiet, blind) = (without("memory_history"), without("memory_search"));
    version(&put(&paul, QUIET).await);
    until("the first", async || (listed(&world, 1).await == quiet).then_some(())).await;
    let writing = async {
        for text in [BLIND, QUIET].into_iter().cycle().take(20) {
            version(&put(&paul, text).await);
        }
    };
    let reading = async {
        loop {
            let seen = listed(&world, 1).await;
            assert!(seen == quiet || seen == blind, "half of something: {seen:?}");
        }
    };
    tokio::select! {
        () = writing => {}
        () = reading => {}
    }
    until("the last", async || (shown(&paul.on(1)).await["in_force"] == true).then_some(())).await;
    assert_eq!(listed(&world, 1).await, quiet);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_restart_changes_nothing() {
    let mut world = Plan::file().start(in_process()).await;
    version(&put(&admin(&world, "acme"), QUIET).await);
    world.stop(0).await;
    world.begin(0).await;
    assert_eq!(listed(&world, 0).await, without("memory_history"), "from the first answer on");
    let now = shown(&admin(&world, "acme")).await;
    assert_eq!((&now["version"], &now["text"], &now["in_force"]), (&json!(1), &json!(QUIET), &json!(true)));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_text_that_is_good_no_more_keeps_what_was_and_after_a_restart_nothing_acts() {
    let mut world = Plan::file().start(in_process()).await;
    let warnings = async |world: &World| world.get(0, "/readyz").await.json()["warnings"].clone();
    version(&put(&admin(&world, "acme"), QUIET).await);
    set_behind_our_back(&world, WritePrecondition::Version(1), BAD).await;
    until("the warning", async || (warnings(&world).await == json!(["stored_config_invalid"])).then_some(())).await;
    assert_eq!(listed(&world, 0).await, without("memory_history"), "the last good one holds");
    let now = shown(&admin(&world, "acme")).await;
    assert_eq!((&now["version"], &now["in_force"]), (&json!(2), &json!(false)));
    assert_eq!(now["problems"].as_array().unwrap().len(), 4, "{now}");

    world.stop(0).await;
    world.begin(0).await;
    let paul = admin(&world, "acme");
    assert_eq!(listed(&world, 0).await, FIXED_VIRTUAL, "the file does not come back by itself");
    let called = world.tenant("acme").agent().modern().call("memory_list", json!({})).await;
    assert_eq!(called.code(), "unknown_tool");
    assert_eq!(world.get(0, "/health").await.status, 200, "other tenants are served");
    assert_eq!(world.tenant("other").agent().modern().list().await, FIXED);
    until("the warning", async || (warnings(&world).await == json!(["stored_config_invalid"])).then_some(())).await;

    assert_eq!(version(&put_for(&paul, BLIND, "\"2\"").await), 3, "its admin can mend it");
    assert_eq!(listed(&world, 0).await, without("memory_search"));
    until("the warning to go", async || (warnings(&world).await == json!([])).then_some(())).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn the_operator_may_lock_it_and_then_files_hold() {
    let mut world = Plan::redis(2).start(in_process()).await;
    let paul = admin(&world, "acme");
    version(&put(&paul, QUIET).await);
    world.stop(0).await;
    world.stop(1).await;
    world.set("QM_TENANTS__OVER_HTTP", "false");
    world.begin(0).await;
    world.begin(1).await;
    assert_eq!(listed(&world, 0).await, FIXED, "the file holds");
    let now = shown(&paul).await;
    assert_eq!((&now["source"], &now["locked"], &now["in_force"]), (&json!("file"), &json!(true), &json!(true)));
    let locked = (409, "config_locked".to_owned());
    let tag = tag(&paul).await;
    assert_eq!(refusal(&put_for(&paul, QUIET, &tag).await), locked);
    assert_eq!(refusal(&remove(&paul, "\"1\"").await), locked);
    assert_eq!(refusal(&roll_back(&paul, 1, &tag).await), locked);
    assert_eq!(check(&paul, QUIET).await.json()["valid"], true, "reading and checking stay");
    assert_eq!(get(&paul, HISTORY).await.json()["versions"].as_array().unwrap().len(), 1);
    assert_eq!(get(&paul, "/v1/tenant/config/history/1").await.json()["text"], QUIET);
    assert_eq!(targets(&world).await.len(), 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_file_that_changes_meanwhile_waits_until_the_text_is_removed() {
    let world = embedded().await;
    let paul = admin(&world, "acme");
    let both = QUIET.replace("memory_history", "memory_history, memory_read");
    version(&put(&paul, &both).await);
    let without_both =
        || without("memory_history").into_iter().filter(|name| *name != "memory_read").collect::<Vec<_>>();
    world.configure("acme", "policy: { deny: [memory_read] }");
    let tenants = &world.part(0).tenants;
    until("the file to be read", async || tenants.file_of(&acme()).filter(|page| page.text.contains("memory_read")))
        .await;
    assert_eq!(listed(&world, 0).await, without_both());
    version(&remove(&paul, "\"1\"").await);
    assert_eq!(listed(&world, 0).await, without("memory_read"));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_file_that_is_narrowed_ends_what_a_text_still_takes() {
    let world = embedded().await;
    let paul = admin(&world, "acme");
    version(&put(&paul, QUIET).await);
    assert_eq!(listed(&world, 0).await, without("memory_history"));
    world.configure("acme", "policy: { deny: [memory_read] }");
    until("the text to end", async || (listed(&world, 0).await == FIXED_VIRTUAL).then_some(())).await;
    let now = shown(&paul).await;
    assert_eq!(now["in_force"], false, "{now:#}");
    let problem = &now["problems"][0];
    assert_eq!(problem["code"], "operator_only", "{now:#}");
    assert!(problem["message"].as_str().unwrap().contains("memory_read"), "{now:#}");
    version(&put(&paul, &QUIET.replace("memory_history", "memory_history, memory_read")).await);
    assert!(listed(&world, 0).await.contains(&"memory_search".to_owned()), "a text that fits is served again");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_text_goes_with_its_tenants_file_and_comes_back_with_it() {
    let world = embedded().await;
    let paul = admin(&world, "acme");
    version(&put(&paul, QUIET).await);
    world.remove_tenant("acme");
    until("the tenant to be gone", async || (get(&paul, CONFIG).await.status == 403).then_some(())).await;
    world.configure("acme", "");
    until("the tenant to be back", async || (get(&paul, CONFIG).await.status == 200).then_some(())).await;
    assert_eq!(listed(&world, 0).await, without("memory_history"));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_store_that_is_away_keeps_what_was_and_hides_nothing() {
    let mut world = Plan::redis(1).setting("QM_STORE__DEADLINE", "1s").start(in_process()).await;
    let paul = admin(&world, "acme");
    version(&put(&paul, QUIET).await);
    world.redis().pause();
    assert_eq!(listed(&world, 0).await, without("memory_history"));
    assert_eq!(refusal(&get(&paul, CONFIG).await), (503, "store_unavailable".into()));
    assert_eq!(refusal(&put_for(&paul, BLIND, "\"1\"").await), (503, "store_unavailable".into()));
    world.redis().resume();
    until("the store", async || (get(&paul, CONFIG).await.status == 200).then_some(())).await;
    // Whether the write that nobody confirmed was made is the store's to say; what it says holds.
    let expected = if shown(&paul).await["text"] == QUIET { "memory_history" } else { "memory_search" };
    until("what it says", async || (listed(&world, 0).await == without(expected)).then_some(())).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn before_the_store_has_spoken_nobody_is_let_in() {
    let mut world = Plan::redis(1).setting("QM_STORE__DEADLINE", "1s").start(in_process()).await;
    let agent = world.tenant("acme").agent();
    version(&put(&admin(&world, "acme"), QUIET).await);
    world.stop(0).await;
    world.redis().pause();
    world.begin(0).await;
    let answer = agent.rest().post("/v1/sessions", &json!({})).await;
    assert_eq!((refusal(&answer), answer.header("retry-after")), ((503, "store_unavailable".into()), Some("1")));
    let list = agent.plain("tools/list", json!({})).await;
    assert_eq!(list.error()["data"]["code"], "store_unavailable", "the file's list is not what holds");
    assert_eq!(world.get(0, "/health").await.status, 503);
    world.redis().resume();
    until("the world to be well", async || (world.get(0, "/health").await.status == 200).then_some(())).await;
    assert_eq!(listed(&world, 0).await, without("memory_history"), "never the file's in between");
}
