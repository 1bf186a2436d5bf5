//! A tenant's secrets in the hands of its admin: they go in, they count on every replica, and they never come out.

use crate::here::{World, embedded, in_process, redis};
use crate::runs_desk::{acme, refusal};
use serde_json::{Value, json};
use testkit::{Actor, Answer, Plan, until};

const SECRETS: &str = "/v1/tenant/secrets";
/// Nothing else in a test's world holds these letters.
const VALUE: &str = "kQ7-never-shown-\"quoted\"\nkey: value\n\té";

fn admin(world: &World, tenant: &str) -> Actor {
    world.tenant(tenant).approver().named("paul").scoped("tenant:admin")
}

fn at(name: &str) -> String {
    format!("{SECRETS}/{name}")
}

async fn put(who: &Actor, name: &str, value: &str) -> Answer {
    let request = who.request("PUT", &at(name)).header("Content-Type", "text/plain").body(value);
    who.send(&request).await
}

async fn remove(who: &Actor, name: &str) -> Answer {
    who.send(&who.request("DELETE", &at(name))).await
}

async fn listed(who: &Actor) -> Vec<Value> {
    let answer = who.send(&who.request("GET", SECRETS)).await;
    assert_eq!(answer.status, 200, "{}", answer.text());
    assert!(!answer.text().contains("never-shown"), "{}", answer.text());
    answer.json()["secrets"].as_array().unwrap().clone()
}

fn known(world: &World, replica: usize, name: &str) -> Option<String> {
    world.part(replica).vault.read(&acme(), name).ok().map(|value| value.expose().to_owned())
}

async fn audit_log(world: &World) -> Vec<Value> {
    let entries = world.part(0).store.of(&acme()).audit().page(None, 1_000).await.unwrap();
    entries.into_iter().map(|noted| noted.entry).filter(|entry| entry["phase"] == "admin").collect()
}

async fn a_secret_goes_in_and_never_comes_out(world: World) {
    let paul = admin(&world, "acme");
    assert_eq!(listed(&paul).await, [] as [Value; 0]);
    let set = put(&paul, "ci-token", VALUE).await;
    assert_eq!((set.status, set.header("etag")), (200, Some("\"1\"")), "{}", set.text());
    assert!(!set.text().contains("never-shown"), "{}", set.text());
    assert_eq!(set.header("cache-control"), Some("private, no-cache"));
    assert_eq!(known(&world, 0, "ci-token").as_deref(), Some(VALUE), "byte for byte, and at once");

    let line = listed(&paul).await.remove(0);
    assert_eq!((&line["name"], &line["source"], &line["version"]), (&json!("ci-token"), &json!("store"), &json!(1)));
    assert_eq!((&line["set_by"], &line["standing"]), (&json!("paul"), &json!("current")));
    assert!(line["set_at"].is_string());

    assert_eq!(put(&paul, "ci-token", "another").await.header("etag"), Some("\"2\""));
    assert_eq!(known(&world, 0, "ci-token").as_deref(), Some("another"));
    let removed = remove(&paul, "ci-token").await;
    assert_eq!((removed.status, &removed.json()["removed"]), (200, &json!(true)), "{}", removed.text());
    assert_eq!(known(&world, 0, "ci-token"), None);
    assert_eq!(listed(&paul).await, [] as [Value; 0]);
    assert_eq!(refusal(&remove(&paul, "ci-token").await), (404, "not_found".into()));

    let entries = audit_log(&world).await;
    assert_eq!(entries.len(), 3, "{entries:?}");
    for entry in &entries {
        assert_eq!((&entry["actor"]["sub"], &entry["actor"]["kind"]), (&json!("paul"), &json!("person")));
        assert!(entry["target"].as_str().unwrap().contains("ci-token") && !entry.to_string().contains("never-shown"));
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_secret_goes_in_and_never_comes_out_on_redis() {
    let mut world = redis(1).await;
    put(&admin(&world, "acme"), "planted", VALUE).await;
    let held = world.redis().keys().iter().filter(|key| key.contains("sec")).count();
    assert!(held > 0, "it is in the store");
    remove(&admin(&world, "acme"), "planted").await;
    drop(world);
    a_secret_goes_in_and_never_comes_out(redis(1).await).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_secret_goes_in_and_never_comes_out_embedded() {
    a_secret_goes_in_and_never_comes_out(embedded().await).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_set_holds_instead_of_a_file_and_the_file_again_after_it() {
    let world = Plan::embedded().secret("acme", "ci", "of the file").start(in_process()).await;
    let paul = admin(&world, "acme");
    assert_eq!(known(&world, 0, "ci").as_deref(), Some("of the file"));
    assert_eq!(listed(&paul).await[0]["source"], "file");
    assert_eq!(refusal(&remove(&paul, "ci").await), (404, "not_found".into()), "the operator's is not ours to take");
    put(&paul, "ci", "set over HTTP").await;
    assert_eq!(known(&world, 0, "ci").as_deref(), Some("set over HTTP"));
    assert_eq!(listed(&paul).await[0]["sources"], json!(["store", "file"]));
    remove(&paul, "ci").await;
    assert_eq!(known(&world, 0, "ci").as_deref(), Some("of the file"));
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_set_on_one_replica_counts_on_all_and_after_a_restart() {
    let plan = Plan::redis(2).setting("QM_TENANTS__RELOAD_EVERY", "1h");
    let mut world = plan.start(in_process()).await;
    let paul = admin(&world, "acme").on(0);
    put(&paul, "ci", "one").await;
    until("the other to know", async || (known(&world, 1, "ci").as_deref() == Some("one")).then_some(())).await;
    put(&paul.on(1), "ci", "two").await;
    until("the first to know", async || (known(&world, 0, "ci").as_deref() == Some("two")).then_some(())).await;
    world.stop(0).await;
    world.begin(0).await;
    assert_eq!(known(&world, 0, "ci").as_deref(), Some("two"), "from the first moment on");
    remove(&paul.on(1), "ci").await;
    until("it to be gone", async || known(&world, 0, "ci").is_none().then_some(())).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_change_may_name_the_version_it_is_made_for() {
    let world = embedded().await;
    let paul = admin(&world, "acme");
    let send = async |method: &str, header: (&str, &str)| {
        let request = paul.request(method, &at("ci")).header("Content-Type", "text/plain").header(header.0, header.1);
        paul.send(&request.body("x")).await
    };
    let conflict = (412, "config_conflict".to_owned());
    assert_eq!(refusal(&send("PUT", ("If-Match", "\"1\"")).await), conflict);
    assert_eq!(send("PUT", ("If-None-Match", "*")).await.status, 200);
    assert_eq!(refusal(&send("PUT", ("If-None-Match", "*")).await), conflict);
    assert_eq!(send("PUT", ("If-Match", "\"1\"")).await.header("etag"), Some("\"2\""));
    assert_eq!(refusal(&send("DELETE", ("If-Match", "\"1\"")).await), conflict);
    assert_eq!(refusal(&send("DELETE", ("If-Match", "1")).await), (400, "invalid_request".into()));
    assert_eq!(send("DELETE", ("If-Match", "\"2\"")).await.status, 200);
}

#[tokio::test(flavor = "multi_thread")]
async fn names_and_values_have_their_form() {
    let world = embedded().await;
    let paul = admin(&world, "acme");
    for name in [".hidden", "a%2Fb", "%2e%2e", "a%20b", &"x".repeat(254)] {
        let refused = put(&paul, name, "x").await;
        assert!(matches!(refused.status, 400 | 404), "{name}: {}", refused.text());
    }
    assert_eq!(refusal(&put(&paul, "ci", "").await), (400, "invalid_argument".into()));
    assert_eq!(refusal(&put(&paul, "ci", &"x".repeat(64 * 1024 + 1)).await), (413, "too_large".into()));
    for kind in ["application/json", "application/x-www-form-urlencoded", "text/yaml"] {
        let request = paul.request("PUT", &at("ci")).header("Content-Type", kind).body("{}");
        assert_eq!(refusal(&paul.send(&request).await), (400, "invalid_request".into()), "{kind}");
    }
    let bytes = paul.request("PUT", &at("ci")).header("Content-Type", "application/octet-stream").body(b"\xff\xfe");
    assert_eq!(refusal(&paul.send(&bytes).await), (400, "invalid_request".into()));
    let read_back = paul.send(&paul.request("GET", &at("ci"))).await;
    assert_eq!(read_back.status, 404, "no path reads a secret");
    assert_eq!(listed(&paul).await, [] as [Value; 0]);
}

#[tokio::test(flavor = "multi_thread")]
async fn only_the_tenants_own_admin_sees_and_sets_them() {
    let world = embedded().await;
    let paul = admin(&world, "acme");
    put(&paul, "ci", VALUE).await;
    let no = (403, "insufficient_scope".to_owned());
    for scope in ["tools:read tools:write", "runs:decide audit:read", "tenant:admin tools:write"] {
        let other = paul.scoped(scope);
        assert_eq!(refusal(&other.send(&other.request("GET", SECRETS)).await), no, "{scope}");
        assert_eq!(refusal(&put(&other, "ci", "x").await), no, "{scope}");
        assert_eq!(refusal(&remove(&other, "ci").await), no, "{scope}");
    }
    let stranger = admin(&world, "other");
    assert_eq!(listed(&stranger).await, [] as [Value; 0]);
    let theirs = remove(&stranger, "ci").await;
    let never = remove(&stranger, "xx").await;
    assert_eq!(theirs.anonymous().1.replace("ci", "xx"), never.anonymous().1, "what is another's never was");
    put(&stranger, "ci", "of the other").await;
    assert_eq!(known(&world, 0, "ci").as_deref(), Some(VALUE));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_configuration_may_name_a_secret_that_is_to_come() {
    let world = embedded().await;
    let paul = admin(&world, "acme");
    let text = "tenant: acme\nclusters: [{ name: main, kubeconfig: { secret: kube } }]\n";
    let check = async || {
        let request = paul.request("POST", "/v1/tenant/config/check").header("Content-Type", "text/yaml").body(text);
        paul.send(&request).await.json()
    };
    let checked = check().await;
    assert_eq!((&checked["valid"], &checked["warnings"][0]["code"]), (&json!(true), &json!("secret_missing")));
    assert!(checked["warnings"][0]["message"].as_str().unwrap().contains("kube"), "{checked}");
    put(&paul, "kube", "not looked at here").await;
    assert_eq!(check().await["warnings"], json!([]));
}

#[tokio::test(flavor = "multi_thread")]
async fn where_files_hold_nothing_is_set() {
    let world = Plan::embedded().setting("QM_TENANTS__OVER_HTTP", "false").start(in_process()).await;
    let paul = admin(&world, "acme");
    assert_eq!(refusal(&put(&paul, "ci", "x").await), (409, "config_locked".into()));
    assert_eq!(refusal(&remove(&paul, "ci").await), (409, "config_locked".into()));
    assert_eq!(listed(&paul).await, [] as [Value; 0]);
    assert_eq!(audit_log(&world).await, [] as [Value; 0]);
}
