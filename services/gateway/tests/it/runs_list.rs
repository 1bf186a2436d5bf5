//! Who sees which runs, and that none is ever out of reach.

use crate::here::{World, in_process, told as line};
use crate::runs_desk::{acme, ask, asker, asking, await_run, id, refusal, reject};
use domain::run::RunState;
use domain::{Run, RunId};
use std::collections::BTreeSet;
use std::time::Duration;
use store::{AuditEntry, Phase, RunCasOutcome};
use testkit::{Actor, Plan};

async fn world() -> World {
    asking(Plan::embedded(), "deciders: 1").start(in_process()).await
}

#[tokio::test(flavor = "multi_thread")]
async fn every_run_of_a_busy_moment_is_on_some_page() {
    let world = world().await;
    let tenant = world.tenant("acme");
    let run = ask(&asker(&tenant.agent()).await, "page", "x").await;
    let runs = world.part(0).store.of(&acme()).runs();
    let seed = runs.find(id(&run)).await.unwrap().0.unwrap().run;
    let entry = AuditEntry::new(Phase::Transition);
    for number in 0..79_u8 {
        let run = Run { id: RunId::from_random([number; 16]), ..seed.clone() };
        assert!(matches!(runs.open(&run, None, u64::MAX, &entry).await.unwrap(), RunCasOutcome::Done(_)));
    }
    let ana = tenant.approver().rest();
    let (mut seen, mut next) = (BTreeSet::new(), String::new());
    loop {
        let page = ana.get(&format!("/v1/runs{next}")).await.json();
        seen.extend(page["runs"].as_array().unwrap().iter().map(|run| run["id"].as_str().unwrap().to_owned()));
        let cursor = &page["next_cursor"];
        if cursor.is_null() {
            break;
        }
        next = format!("?cursor={}", cursor.as_str().map_or_else(|| cursor.to_string(), str::to_owned));
    }
    assert_eq!(seen.len(), 80, "all were asked in the same millisecond");
}

#[tokio::test(flavor = "multi_thread")]
async fn what_waits_is_found_behind_a_thousand_that_do_not() {
    let world = world().await;
    let tenant = world.tenant("acme");
    let run = ask(&asker(&tenant.agent()).await, "behind", "x").await;
    let runs = world.part(0).store.of(&acme()).runs();
    let mut seed = runs.find(id(&run)).await.unwrap().0.unwrap().run;
    seed.state = RunState::Cancelled;
    let entry = AuditEntry::new(Phase::Transition);
    let opening = (0..1_000_u64).map(|number| {
        let mut newer = seed.clone();
        let mut bits = [5; 16];
        bits[..8].copy_from_slice(&number.to_be_bytes());
        newer.id = RunId::from_random(bits);
        newer.asked.asked_at = seed.asked.asked_at.plus(Duration::from_millis(1 + number));
        let (runs, entry) = (&runs, &entry);
        async move { assert!(matches!(runs.open(&newer, None, u64::MAX, entry).await.unwrap(), RunCasOutcome::Done(_))) }
    });
    futures_util::future::join_all(opening).await;
    let page = tenant.approver().rest().get("/v1/runs?state=pending_approval").await;
    let told = page.json();
    let found = told["runs"].as_array().unwrap().iter().any(|listed| listed["id"] == run.as_str());
    assert!(found || !told["next_cursor"].is_null(), "shown, or a way to go on: {}", line(&page));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_cursor_tells_nothing_of_a_run_that_its_reader_may_not_see() {
    let world = world().await;
    let tenant = world.tenant("acme");
    let his = ask(&asker(&tenant.agent().named("bob")).await, "his", "x").await;
    let runs = world.part(0).store.of(&acme()).runs();
    let seed = runs.find(id(&his)).await.unwrap().0.unwrap().run;
    let entry = AuditEntry::new(Phase::Transition);
    let opening = (0..1_000_u64).map(|number| {
        let mut bits = [9; 16];
        bits[..8].copy_from_slice(&number.to_be_bytes());
        let newer = Run { id: RunId::from_random(bits), ..seed.clone() };
        let (runs, entry) = (&runs, &entry);
        async move { assert!(matches!(runs.open(&newer, None, u64::MAX, entry).await.unwrap(), RunCasOutcome::Done(_))) }
    });
    futures_util::future::join_all(opening).await;

    let alice = tenant.agent().named("alice").rest();
    let page = alice.get("/v1/runs").await.json();
    assert_eq!(page, serde_json::json!({ "runs": [], "next_cursor": null }), "not even that there are runs of others");
    // The last run that was looked at may be one that is not shown.
    let bob = tenant.agent().named("bob").rest();
    let page = bob.get("/v1/runs?state=succeeded").await.json();
    let cursor = page["next_cursor"].as_str().expect("more than a thousand were looked at").to_owned();
    assert_eq!(page["runs"], serde_json::json!([]));
    let bytes: Vec<u8> =
        (0..cursor.len() / 2).filter_map(|at| u8::from_str_radix(&cursor[2 * at..2 * at + 2], 16).ok()).collect();
    for text in [cursor.clone(), String::from_utf8_lossy(&bytes).into_owned()] {
        assert!(!text.contains("run_"), "{text}");
        assert!(!text.contains(&seed.asked.asked_at.millis().to_string()), "{text}");
    }
    assert_eq!(bob.get(&format!("/v1/runs?cursor={cursor}")).await.status, 200);
    // What another was given, or somebody made up, leads nowhere.
    let made_up = format!("{}-{his}", seed.asked.asked_at.millis());
    for (who, cursor) in [("alice", cursor.as_str()), ("bob", made_up.as_str())] {
        let answer = tenant.agent().named(who).rest().get(&format!("/v1/runs?cursor={cursor}")).await;
        assert_eq!(refusal(&answer), (400, "bad_cursor".into()), "{who}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_token_that_calls_tools_sees_its_own_runs_whatever_else_it_may() {
    let world = world().await;
    let tenant = world.tenant("acme");
    let hers = ask(&asker(&tenant.agent().named("alice")).await, "hers", "x").await;
    let his = ask(&asker(&tenant.agent().named("bob")).await, "his", "x").await;
    for scope in ["tools:read runs:decide", "tools:write audit:read", "tools:read runs:decide audit:read tenant:admin"]
    {
        let bob = tenant.agent().named("bob").scoped(scope).rest();
        let page = bob.get("/v1/runs").await.json();
        let listed: Vec<&str> = page["runs"].as_array().unwrap().iter().filter_map(|run| run["id"].as_str()).collect();
        assert_eq!(listed, [his.as_str()], "{scope}");
        assert_eq!(bob.get(&format!("/v1/runs/{hers}")).await.status, 404, "{scope}");
        assert_eq!(bob.get(&format!("/v1/runs/{his}")).await.status, 200, "{scope}");
        assert_eq!(bob.get("/v1/audit").await.status, 403, "{scope}: the audit log tells of everybody's");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn an_agent_lists_its_own_runs_and_an_approver_all_of_the_tenants() {
    let world = world().await;
    let tenant = world.tenant("acme");
    let (alice, bob) = (tenant.agent().named("alice"), tenant.agent().named("bob"));
    let hers = ask(&asker(&alice).await, "hers", "x").await;
    let client = asker(&bob).await;
    let his = ask(&client, "his", "x").await;
    reject(&tenant.approver(), &his, "no").await;
    let list = async |who: &Actor, query: &str| -> Vec<String> {
        let told = who.rest().get(&format!("/v1/runs{query}")).await.json();
        told["runs"].as_array().unwrap().iter().map(|run| run["id"].as_str().unwrap().to_owned()).collect()
    };
    assert_eq!(list(&alice, "").await, [hers.as_str()]);
    assert_eq!(list(&tenant.approver(), "").await, [his.as_str(), hers.as_str()], "newest first");
    assert_eq!(list(&tenant.approver(), "?state=rejected").await, [his.as_str()]);
    assert_eq!(list(&tenant.approver(), "?tool=memory_read").await, Vec::<String>::new());
    assert_eq!(list(&tenant.approver(), &format!("?session={}", client.session())).await, [his.as_str()]);
    assert_eq!(list(&world.tenant("other").approver(), "").await, Vec::<String>::new());
    let odd = tenant.approver().rest().get("/v1/runs?state=done").await;
    assert_eq!(odd.status, 400);
    assert_eq!(await_run(&client, &his).await.ok()["run"]["state"], "rejected");
}
