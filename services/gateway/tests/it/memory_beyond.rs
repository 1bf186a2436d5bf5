//! Memory beyond one session: replicas that know the same, writers that race, proposals that people decide, and
//! strangers who learn nothing.

use crate::here::{World, in_process};
use crate::runs_desk::{approve, await_run, ended, pending, reject, show};
use serde_json::{Value, json};
use testkit::{Actor, Legacy, Plan};

async fn world(plan: Plan) -> World {
    let rules = "limits: { calls_per_minute: 1000000, calls_in_flight: 1000 }";
    plan.tenant("acme", rules).setting("QM_APPROVALS__SWEEP_EVERY", "50ms").start(in_process()).await
}

async fn writer(actor: &Actor) -> Legacy {
    let client = actor.legacy().await;
    client.load("memory:write").await;
    client
}

fn document(path: &str, kind: &str, content: &str) -> Value {
    json!({ "path": path, "type": kind, "content": content, "evidence": "seen at work" })
}

/// Keeps a document where a person must agree, and has one agree.
async fn keep(world: &World, client: &Legacy, path: &str, content: &str) -> String {
    let run = pending(&client.call("memory_remember", document(path, "runbook", content)).await);
    approve(&world.tenant("acme").approver(), &run).await;
    let done = await_run(client, &run).await;
    done.ok()["result"]["sha256"].as_str().unwrap_or_else(|| panic!("{done:?}")).to_owned()
}

fn paths(found: &Value) -> Vec<&str> {
    found["hits"].as_array().unwrap().iter().map(|hit| hit["path"].as_str().unwrap()).collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_remembered_on_one_replica_is_found_on_the_other_by_the_very_next_search() {
    let world = world(Plan::redis(2)).await;
    let on_a = writer(&world.tenant("acme").agent()).await;
    let on_b = on_a.on(1);
    // Both replicas have built their index before anything is written.
    for client in [&on_a, &on_b] {
        assert_eq!(client.call("memory_search", json!({ "query": "failover" })).await.ok()["searched"], 0);
    }
    for n in 0..20 {
        let (from, to) = if n % 2 == 0 { (&on_a, &on_b) } else { (&on_b, &on_a) };
        let path = format!("session/notes/n{n}");
        from.call("memory_remember", document(&path, "note", &format!("failover marker{n}"))).await.ok();
        let found = to.call("memory_search", json!({ "query": format!("marker{n}") })).await;
        assert_eq!(paths(found.ok()), [path.as_str()], "no waiting, no second try");
    }
    keep(&world, &on_a, "tenant/runbooks/db", "# Database\nPromote the replica.").await;
    let other = writer(&world.tenant("acme").agent().named("second").on(1)).await;
    let found = other.call("memory_search", json!({ "query": "promote replica" })).await;
    assert_eq!(paths(found.ok()), ["tenant/runbooks/db"], "another user, another session, another replica");
    let hit = &found.ok()["hits"][0];
    assert_eq!((&hit["trust"], &found.ok()["untrusted"]), (&json!("approved"), &json!(true)));
    assert_eq!(hit["provenance"]["approver"], "ana");

    on_b.call("memory_forget", json!({ "path": "session/notes/n0", "reason": "wrong" })).await.ok();
    let gone = on_a.call("memory_search", json!({ "query": "marker0" })).await;
    assert_eq!(paths(gone.ok()), Vec::<&str>::new(), "what is forgotten is forgotten everywhere");
}

#[tokio::test(flavor = "multi_thread")]
async fn of_a_hundred_patches_with_one_digest_one_wins_and_the_others_learn_what_is_there() {
    for (plan, replicas) in [(Plan::redis(2), 2), (Plan::embedded(), 1)] {
        let world = world(plan).await;
        let client = writer(&world.tenant("acme").agent()).await;
        let path = "session/notes/race";
        let kept = client.call("memory_remember", document(path, "note", "line one\nline two")).await;
        let sha = kept.ok()["sha256"].clone();
        let patches = (0..100).map(|n| {
            let client = client.on(n % replicas);
            let edits = json!([{ "find": "line two", "replace": format!("line two by {n}") }]);
            let patch = json!({ "path": path, "if_sha256": sha, "edits": edits, "evidence": "race" });
            async move { client.call("memory_patch", patch).await }
        });
        let outcomes = futures_util::future::join_all(patches).await;
        let now = client.call("memory_read", json!({ "path": path })).await;
        let now = now.ok();
        let (won, lost): (Vec<_>, Vec<_>) = outcomes.iter().partition(|outcome| outcome.code() == "ok");
        assert_eq!((won.len(), lost.len(), &now["version"]), (1, 99, &json!(2)));
        assert_eq!(won[0].ok()["sha256"], now["sha256"]);
        let winner = now["content"].as_str().unwrap().lines().last().unwrap();
        for outcome in lost {
            let told = outcome.refusal();
            assert_eq!(told["code"], "memory_conflict");
            assert_eq!(told["details"]["sha256"], now["sha256"], "{told}");
            assert!(told["details"].to_string().contains(winner), "the text that is there now is in sight: {told}");
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_proposal_is_decided_by_a_person_and_applied_as_a_version_of_its_own() {
    let world = world(Plan::redis(2)).await;
    let (agent, ana) = (world.tenant("acme").agent(), world.tenant("acme").approver());
    let client = writer(&agent).await;
    client.call("memory_remember", document("session/notes/fix", "runbook", "# Fix\nRestart the relay.")).await.ok();
    let propose =
        |reason: &str| json!({ "path": "session/notes/fix", "to": "tenant/runbooks/relay", "reason": reason });

    let first = pending(&client.call("memory_propose_promotion", propose("it worked twice")).await);
    let shown = show(&ana, &first).await;
    let text = shown["preview"]["text"].as_str().unwrap();
    assert!(text.contains("Restart the relay.") && text.contains("tenant/runbooks/relay"), "{text}");
    reject(&ana, &first, "say which relay").await;
    let told = await_run(&client, &first).await;
    assert!(format!("{told:?}").contains("say which relay"), "the agent can read why: {told:?}");
    let past = client.call("memory_history", json!({ "path": "session/notes/fix" })).await;
    let promotion = &past.ok()["promotions"][0];
    assert_eq!((&promotion["to"], &promotion["state"]), (&json!("tenant/runbooks/relay"), &json!("rejected")));
    assert_eq!(promotion["reason"], "say which relay");

    let second = pending(&client.call("memory_propose_promotion", propose("the eu relay")).await);
    approve(&ana, &second).await;
    assert_eq!(ended(&ana, &second).await["state"], "succeeded");
    let adopted = client.on(1).call("memory_read", json!({ "path": "tenant/runbooks/relay" })).await;
    let adopted = adopted.ok();
    assert_eq!((&adopted["trust"], &adopted["version"]), (&json!("approved"), &json!(1)));
    assert_eq!(adopted["content"], "# Fix\nRestart the relay.");
    let source = client.call("memory_read", json!({ "path": "session/notes/fix" })).await;
    assert_eq!((&source.ok()["trust"], &source.ok()["version"]), (&json!("draft"), &json!(1)), "the source stays");

    let same = client.call("memory_propose_promotion", propose("once more")).await;
    assert_eq!(same.refusal()["details"]["cause"], "doc_exists", "nobody is asked for what is there already");
    let mut elsewhere = propose("for the incident too");
    elsewhere["to"] = json!("tenant/incidents/relay");
    let third = pending(&client.call("memory_propose_promotion", elsewhere).await);
    let edits = json!([{ "find": "Restart", "replace": "Stop and start" }]);
    let sha = source.ok()["sha256"].clone();
    let patch = json!({ "path": "session/notes/fix", "if_sha256": sha, "edits": edits, "evidence": "clearer" });
    client.call("memory_patch", patch).await.ok();
    approve(&ana, &third).await;
    let stale = ended(&ana, &third).await;
    assert_eq!((&stale["state"], &stale["outcome"]["code"]), (&json!("failed"), &json!("stale")), "{stale}");
}

/// Every memory call there is, about one path, without what differs from call to call.
async fn replayed(client: &Legacy, path: &str) -> Vec<String> {
    let store = path.rsplit_once('/').unwrap().0;
    let sha = "0".repeat(64);
    let edits = json!([{ "find": "a", "replace": "b" }]);
    let calls = [
        ("memory_search", json!({ "query": "canary heron" })),
        ("memory_search", json!({ "query": "canary", "scope": path.split('/').next().unwrap() })),
        ("memory_read", json!({ "path": path })),
        ("memory_read", json!({ "path": path, "version": 1 })),
        ("memory_list", json!({})),
        ("memory_list", json!({ "path": store })),
        ("memory_history", json!({ "path": path })),
        ("memory_patch", json!({ "path": path, "if_sha256": sha, "edits": edits, "evidence": "x" })),
        ("memory_forget", json!({ "path": path, "reason": "x" })),
        ("memory_forget", json!({ "path": path, "reason": "x", "redact": true })),
        ("memory_propose_promotion", json!({ "path": path, "to": "tenant/runbooks/stolen", "reason": "x" })),
    ];
    let mut said = Vec::new();
    for (tool, arguments) in calls {
        let params = json!({ "name": tool, "arguments": arguments });
        let (status, body) = client.send(&client.prepare_as(json!(1), "tools/call", params)).await.anonymous();
        said.push(format!("{tool}: {status} {}", body.replace(path, "PATH")));
    }
    said
}

#[tokio::test(flavor = "multi_thread")]
async fn another_tenant_another_user_and_another_session_learn_nothing_by_any_call() {
    let world = world(Plan::redis(2)).await;
    let agent = world.tenant("acme").agent();
    let owner = writer(&agent).await;
    let text = "# Canary\nThe canary heron nests in canary-7Yq2vT.";
    owner.call("memory_remember", document("session/notes/secret-plan", "note", text)).await.ok();
    keep(&world, &owner, "user/notes/secret-plan", text).await;
    keep(&world, &owner, "tenant/runbooks/secret-plan", text).await;

    let (same_user, other_user) = (writer(&agent).await, writer(&agent.named("mallory").on(1)).await);
    let other_tenant = writer(&world.tenant("other").agent().on(1)).await;
    let strangers: [(&Legacy, &[&str]); 3] = [
        (&other_tenant, &["session/notes", "user/notes", "tenant/runbooks"]),
        (&other_user, &["session/notes", "user/notes"]),
        (&same_user, &["session/notes"]),
    ];
    for (stranger, stores) in strangers {
        for store in stores {
            let theirs = replayed(stranger, &format!("{store}/secret-plan")).await;
            let nobodys = replayed(stranger, &format!("{store}/no-such-plan")).await;
            for (told, random) in theirs.iter().zip(&nobodys) {
                assert_eq!(told, random, "{store}: what exists for others reads like what does not exist");
                let may_see_tenants = store != &"tenant/runbooks" && told.contains("tenant/runbooks/secret-plan");
                assert!(may_see_tenants || !told.contains("7Yq2vT"), "{told}");
            }
        }
    }
    for path in ["session/notes/secret-plan", "user/notes/secret-plan", "tenant/runbooks/secret-plan"] {
        let read = owner.call("memory_read", json!({ "path": path })).await;
        assert_eq!((&read.ok()["version"], &read.ok()["content"]), (&json!(1), &json!(text)), "nothing reached {path}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn session_scope_runs_at_once_and_what_others_can_read_waits() {
    let world = world(Plan::embedded()).await;
    let client = writer(&world.tenant("acme").agent()).await;
    let at_once = client.call("memory_remember", document("session/notes/a", "note", "x")).await;
    assert_eq!(at_once.ok()["created"], true);
    for path in ["user/notes/a", "tenant/runbooks/a"] {
        pending(&client.call("memory_remember", document(path, "note", "x")).await);
        let read = client.call("memory_read", json!({ "path": path })).await;
        assert_eq!(read.refusal()["code"], "doc_not_found", "nothing is written before somebody agrees");
    }
    let people_only = client.call("memory_remember", document("tenant/conventions/a", "convention", "x")).await;
    assert!(format!("{people_only:?}").contains("read_only_store"), "{people_only:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn what_was_kept_is_there_and_found_after_a_restart() {
    let mut world = world(Plan::file()).await;
    let client = writer(&world.tenant("acme").agent()).await;
    client.call("memory_remember", document("session/notes/a", "note", "the heron waits")).await.ok();
    keep(&world, &client, "tenant/runbooks/heron", "# Heron\nFeed it.").await;
    world.stop(0).await;
    world.begin(0).await;
    let client = writer(&world.tenant("acme").agent()).await.named(client.session());
    let found = client.call("memory_search", json!({ "query": "heron" })).await;
    let mut found = paths(found.ok());
    found.sort_unstable();
    assert_eq!(found, ["session/notes/a", "tenant/runbooks/heron"]);
    let past = client.call("memory_history", json!({ "path": "tenant/runbooks/heron" })).await;
    assert_eq!(past.ok()["versions"][0]["op"], "create");
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_redacted_is_gone_from_the_run_that_wrote_it_too() {
    for plan in [Plan::redis(1), Plan::embedded()] {
        let world = world(plan).await;
        let ana = world.tenant("acme").approver();
        let client = writer(&world.tenant("acme").agent()).await;
        let path = "tenant/runbooks/heron";
        let run =
            pending(&client.call("memory_remember", document(path, "runbook", "The heron is called Gerald.")).await);
        approve(&ana, &run).await;
        let before = ended(&ana, &run).await;
        assert!(before.to_string().contains("Gerald"), "an approver sees what was approved: {before}");

        let person = ana.named("olga").scoped("tenant:admin");
        let gone = person.rest().delete(&format!("/v1/memory/documents/{path}?redact=all&reason=a%20name")).await;
        assert_eq!(gone.status, 200, "{}", gone.text());
        let after = show(&ana, &run).await;
        assert!(!after.to_string().contains("Gerald"), "{after}");
        assert_eq!((&after["state"], &after["tool"]), (&json!("succeeded"), &json!("memory_remember")));
        assert_eq!(after["digest"], before["digest"], "what was asked can still be proven");
        let past = client.call("memory_history", json!({ "path": path })).await;
        assert!(!past.answer.text().contains("Gerald"), "{past:?}");
    }
}
