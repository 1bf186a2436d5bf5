//! Real servers of others, chosen from an operator's catalog: listed, loaded on demand and called, in both client eras.
//!
//! `QUARTERMASTER_TEST_UPSTREAMS` names the folder that `deploy/testbed upstreams` prints.

use crate::here::{World, in_process};
use crate::runs_desk::{approve, ended, pending, reject};
use crate::upstream_yard::{Shelf, admin, brought, drawn, ours, settled, using};
use serde_json::{Value, json};
use std::ffi::OsString;
use std::path::PathBuf;
use testkit::{Legacy, Plan};

fn named(variable: &str) -> Option<PathBuf> {
    std::env::var_os(variable).filter(|name| *name != OsString::new()).map(PathBuf::from)
}

/// The folder of the servers. Without one the test is left out, loudly; the ring `upstreams` always has one.
fn bed() -> Option<PathBuf> {
    let found = named("QUARTERMASTER_TEST_UPSTREAMS");
    if found.is_none() {
        eprintln!("SKIPPED: QUARTERMASTER_TEST_UPSTREAMS names no servers; see `deploy/testbed upstreams`");
    }
    found
}

/// One server, and what is known about it.
struct Case {
    server: &'static str,
    /// What the operator vouches for.
    vouch: &'static str,
    /// In which era it is spoken to.
    era: &'static str,
    /// A tool that only reads, its arguments, and what its result holds.
    read: (&'static str, Value, &'static str),
    /// A tool that does more.
    change: (&'static str, Value),
}

/// The shop over the older transport.
fn stall() -> Case {
    Case {
        server: "stall",
        vouch: "transport: sse\ntrust_annotations: true",
        era: "legacy",
        read: ("count", json!({ "item": "pear" }), "3"),
        change: ("restock", json!({ "item": "kiwi", "more": 2 })),
    }
}

/// A world whose tenant uses the server, and nothing of it before somebody asks.
async fn open(case: &Case, bed: &std::path::Path) -> (Shelf, World) {
    let url = std::fs::read_to_string(bed.join("url").join(case.server)).unwrap();
    let shelf = Shelf::new().at(case.server, url.trim(), case.vouch);
    let plan = shelf.under(Plan::embedded()).tenant("acme", &using(&[case.server], ""));
    (shelf, plan.start(in_process()).await)
}

/// Lists, loads and reads in both client eras, and gives a session that may ask for changes.
async fn reads(case: &Case, world: &World) -> Legacy {
    let acme = world.tenant("acme");
    let told = settled(&admin(&acme.agent()), case.server).await;
    assert_eq!((&told["era"], &told["trouble"]), (&json!(case.era), &Value::Null), "{told:#}");

    let (tool, arguments, wanted) = &case.read;
    let (reading, changing) = (ours(case.server, tool), ours(case.server, case.change.0));
    let fresh = acme.agent().legacy().await;
    assert!(!fresh.list().await.contains(&reading), "nothing is issued before it is asked for");

    let reader = drawn(&acme.reader(), case.server).await;
    let listed = reader.list().await;
    assert!(listed.contains(&reading) && !listed.contains(&changing), "a reader gets what only reads: {listed:?}");
    let outcome = reader.call(&reading, arguments.clone()).await;
    assert!(brought(&outcome).contains(wanted), "{outcome:?}");

    let modern = acme.agent().modern().loaded(&format!("mcp_{}", case.server)).await;
    let outcome = modern.call(&reading, arguments.clone()).await;
    assert!(brought(&outcome).contains(wanted), "{outcome:?}");

    drawn(&acme.agent(), &format!("{}:write", case.server)).await
}

/// Asks for the change, has it signed, and gives what it told.
async fn changes(case: &Case, world: &World, client: &Legacy) -> Value {
    let ana = world.tenant("acme").approver();
    let (tool, arguments) = &case.change;
    let run = pending(&client.call(&ours(case.server, tool), arguments.clone()).await);
    approve(&ana, &run).await;
    let told = ended(&ana, &run).await;
    assert_eq!(told["state"], "succeeded", "{told:#}");
    let outcome = client.call("await_run", json!({ "run_id": run, "wait_ms": 0 })).await;
    outcome.ok()["result"].clone()
}

#[tokio::test(flavor = "multi_thread")]
async fn the_reference_server_of_the_legacy_era() {
    let Some(bed) = bed() else { return };
    let case = Case {
        server: "everything",
        vouch: "effects: { echo: read, get-sum: read }",
        era: "legacy",
        read: ("get-sum", json!({ "a": 20, "b": 22 }), "42"),
        change: ("toggle-simulated-logging", json!({})),
    };
    let (_shelf, world) = open(&case, &bed).await;
    let client = reads(&case, &world).await;
    // It says of this tool that it only reads, and nobody vouches for that.
    let run = pending(&client.call(&ours("everything", "get-tiny-image"), json!({})).await);
    reject(&world.tenant("acme").approver(), &run, "nobody needs a picture").await;
    let told = changes(&case, &world, &client).await;
    assert!(told.to_string().contains("logging"), "{told}");
}

#[tokio::test(flavor = "multi_thread")]
async fn the_same_server_on_a_pipe_where_the_operator_says_so() {
    let Some(bed) = bed() else { return };
    let words = std::fs::read_to_string(bed.join("stdio/everything")).unwrap();
    let words: Vec<&str> = words.lines().collect();
    let (command, args) = (json!(words[0]), json!(words[1..]));
    let shelf = Shelf::new().entry("pipe", &format!("command: {command}\nargs: {args}\neffects: {{ echo: read }}"));
    let world = shelf.under(Plan::embedded()).tenant("acme", &using(&["pipe"], "")).start(in_process()).await;
    let reader = drawn(&world.tenant("acme").reader(), "pipe").await;
    let outcome = reader.call(&ours("pipe", "echo"), json!({ "message": "through a pipe" })).await;
    assert!(brought(&outcome).contains("through a pipe"), "{outcome:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn fastmcp_which_speaks_both_eras() {
    let Some(bed) = bed() else { return };
    let case = Case {
        server: "shop",
        vouch: "trust_annotations: true",
        era: "modern",
        read: ("count", json!({ "item": "pear" }), "3"),
        change: ("restock", json!({ "item": "kiwi", "more": 2 })),
    };
    let (_shelf, world) = open(&case, &bed).await;
    let client = reads(&case, &world).await;
    let kiwis = async || {
        let outcome = client.call(&ours("shop", "count"), json!({ "item": "kiwi" })).await;
        outcome.ok()["result"].as_u64().unwrap_or_else(|| panic!("{outcome:?}"))
    };
    let before = kiwis().await;
    changes(&case, &world, &client).await;
    assert_eq!(kiwis().await, before + 2, "counted where it happened: once");

    let failed = client.call(&ours("shop", "broken"), json!({})).await;
    let told = failed.refusal();
    assert_eq!(told["code"], "upstream_error", "{failed:?}");
    assert!(told["message"].as_str().unwrap().contains("the till is jammed"), "{failed:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn fastmcp_over_the_older_transport() {
    let Some(bed) = bed() else { return };
    let case = stall();
    let (_shelf, world) = open(&case, &bed).await;
    let client = reads(&case, &world).await;
    let kiwis = async || {
        let outcome = client.call(&ours("stall", "count"), json!({ "item": "kiwi" })).await;
        outcome.ok()["result"].as_u64().unwrap_or_else(|| panic!("{outcome:?}"))
    };
    let before = kiwis().await;
    changes(&case, &world, &client).await;
    assert_eq!(kiwis().await, before + 2, "counted where it happened: once");
    let failed = client.call(&ours("stall", "broken"), json!({})).await;
    assert_eq!(failed.refusal()["code"], "upstream_error", "{failed:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn the_reference_server_over_the_older_transport() {
    let Some(bed) = bed() else { return };
    let case = Case {
        server: "older",
        vouch: "transport: sse\neffects: { echo: read, get-sum: read }",
        era: "legacy",
        read: ("get-sum", json!({ "a": 20, "b": 22 }), "42"),
        change: ("toggle-simulated-logging", json!({})),
    };
    let (_shelf, world) = open(&case, &bed).await;
    let client = reads(&case, &world).await;
    let told = changes(&case, &world, &client).await;
    assert!(told.to_string().contains("logging"), "{told}");
}

#[tokio::test(flavor = "multi_thread")]
async fn kubernetes_mcp_server_which_answers_the_probe_and_speaks_the_legacy_era() {
    let Some(bed) = bed() else { return };
    let case = Case {
        server: "kubernetes",
        vouch: "effects: { configuration_view: read }",
        era: "legacy",
        read: ("configuration_view", json!({}), "contexts"),
        change: ("pods_delete", json!({ "name": "nobody", "namespace": "default" })),
    };
    let (_shelf, world) = open(&case, &bed).await;
    let client = reads(&case, &world).await;
    let ana = world.tenant("acme").approver();
    let (tool, arguments) = &case.change;
    let run = pending(&client.call(&ours("kubernetes", tool), arguments.clone()).await);
    let told = crate::runs_desk::show(&ana, &run).await;
    assert_eq!(told["effect"], "disrupt", "its word that it destroys is taken at once: {told:#}");
    reject(&ana, &run, "not today").await;
    assert_eq!(ended(&ana, &run).await["state"], "rejected");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_server_of_the_modern_era_alone() {
    let Some(bed) = bed() else { return };
    let case = Case {
        server: "weather",
        vouch: "effects: { fahrenheit: read }",
        era: "modern",
        read: ("fahrenheit", json!({ "celsius": 100 }), "212"),
        change: ("alarm", json!({ "place": "harbour" })),
    };
    let (_shelf, world) = open(&case, &bed).await;
    let client = reads(&case, &world).await;
    let (first, second) = (changes(&case, &world, &client).await, changes(&case, &world, &client).await);
    let alarms = |told: &Value| told["alarms"].as_u64().unwrap_or_else(|| panic!("{told}"));
    assert_eq!(alarms(&second), alarms(&first) + 1, "each signature sounded one alarm");
}
