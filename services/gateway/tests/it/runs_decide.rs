//! Decisions: one wins, every loser learns who won, and what was decided is what happens or nothing does.

use crate::here::{in_process, redis, told as line};
use crate::runs_desk::{
    PENDING, acme, approve, ask, asker, asking, audit_log, await_run, ended, id, moves, note, pending, refusal, reject,
    rules, say, show, versions,
};
use crate::runs_yard::{House, RAZE, SET, Yard, pass, run_id, told};
use domain::run::{Answer, RunEvent, RunState, Verdict};
use domain::{Code, SessionMode};
use serde_json::{Value, json};
use std::time::Duration;
use store::{DocScope, ScopeLimits, Trust, WriteOutcome, WritePrecondition};
use testkit::{Plan, until};

#[tokio::test(flavor = "multi_thread")]
async fn d1_of_two_approvers_one_wins_and_the_other_learns_who() {
    let world = asking(Plan::redis(2), "deciders: 1").start(in_process()).await;
    let tenant = world.tenant("acme");
    let client = asker(&tenant.agent()).await;
    let (ana, bo) = (tenant.approver().on(0), tenant.approver().named("bo").on(1));
    for round in 0..20 {
        let name = format!("d1-{round}");
        let run = ask(&client, &name, "x").await;
        let (a, b) = tokio::join!(say(&ana, &run, "approve", json!({})), say(&bo, &run, "approve", json!({})));

        let ((won, winner), (lost, _)) =
            if a.status == 200 { ((&a, "ana"), (&b, "bo")) } else { ((&b, "bo"), (&a, "ana")) };
        assert_eq!((won.status, refusal(lost)), (200, (409, "already_decided".into())));
        let error = &lost.json()["error"];
        let at = won.json()["decisions"][0]["at"].as_str().unwrap().to_owned();
        assert_eq!(error["message"], format!("approved by {winner} at {at}"));
        assert_eq!(error["details"]["by"], winner);
        let run_now = ended(&ana, &run).await;
        assert_eq!((&run_now["state"], run_now["decisions"].as_array().unwrap().len()), (&json!("succeeded"), 1));
        assert_eq!(versions(&world, &name).await, 1);
        let approvals = moves(&world, &run).await.iter().filter(|step| *step == "pending_approval>approved").count();
        assert_eq!(approvals, 1, "one decision, one entry");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn d2_when_yes_races_no_the_store_decides_and_no_means_nothing_happened() {
    let world = asking(Plan::redis(2), "deciders: 1").start(in_process()).await;
    let tenant = world.tenant("acme");
    let client = asker(&tenant.agent()).await;
    let (ana, bo) = (tenant.approver().on(0), tenant.approver().named("bo").on(1));
    let mut won = [0, 0];
    for round in 0..200 {
        let name = format!("d2-{round}");
        let run = ask(&client, &name, "x").await;
        // Whoever clicks first is not always the same one.
        let (yes, no) = if round % 2 == 0 {
            tokio::join!(say(&ana, &run, "approve", json!({})), say(&bo, &run, "reject", json!({})))
        } else {
            let (no, yes) = tokio::join!(say(&bo, &run, "reject", json!({})), say(&ana, &run, "approve", json!({})));
            (yes, no)
        };
        let (state, loser, winner, effects) =
            if yes.status == 200 { ("succeeded", &no, "ana", 1) } else { ("rejected", &yes, "bo", 0) };
        assert_eq!(refusal(loser), (409, "already_decided".to_owned()), "{} {}", line(&yes), line(&no));
        assert_eq!(loser.json()["error"]["details"]["by"], winner);
        assert_eq!(ended(&ana, &run).await["state"], state);
        assert_eq!(versions(&world, &name).await, effects);
        won[effects] += 1;
    }
    assert!(won[0] > 0 && won[1] > 0, "both win now and then, or this is no race: {won:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn d3_the_same_person_saying_the_same_twice_is_one_decision() {
    let world = asking(Plan::redis(2), "deciders: 1").start(in_process()).await;
    let tenant = world.tenant("acme");
    let client = asker(&tenant.agent()).await;
    let ana = tenant.approver();
    for verdict in ["approve", "reject"] {
        let run = ask(&client, &format!("d3-{verdict}"), "x").await;
        let first = say(&ana, &run, verdict, json!({ "reason": "once" })).await;
        let second = say(&ana.on(1), &run, verdict, json!({ "reason": "twice" })).await;
        assert_eq!((first.status, second.status), (200, 200));
        assert_eq!(first.json()["decisions"], second.json()["decisions"], "the first one counts");
        ended(&ana, &run).await;
        let third = say(&ana, &run, verdict, json!({})).await;
        assert_eq!((third.status, &third.json()["decisions"]), (200, &first.json()["decisions"]));
        let steps = moves(&world, &run).await;
        assert_eq!(steps.iter().filter(|step| step.starts_with("pending_approval>")).count(), 1, "{steps:?}");
        assert_eq!(versions(&world, &format!("d3-{verdict}")).await, usize::from(verdict == "approve"));
    }
    // A double click is two requests at once.
    for round in 0..10 {
        let run = ask(&client, &format!("d3-{round}"), "x").await;
        let at_b = ana.on(1);
        let (a, b) = tokio::join!(say(&ana, &run, "approve", json!({})), say(&at_b, &run, "approve", json!({})));
        assert_eq!((a.status, b.status), (200, 200), "{} {}", line(&a), line(&b));
        ended(&ana, &run).await;
        assert_eq!(versions(&world, &format!("d3-{round}")).await, 1);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn d4_a_quorum_of_two_wants_two_people() {
    let world = asking(Plan::redis(1), "deciders: 2").start(in_process()).await;
    let tenant = world.tenant("acme");
    let client = asker(&tenant.agent()).await;
    let ana = tenant.approver();
    let run = ask(&client, "d4", "x").await;

    assert_eq!(approve(&ana, &run).await["state"], PENDING);
    // Another token of the same person is the same person.
    let again = approve(&ana.for_only(Duration::from_secs(600)), &run).await;
    assert_eq!((&again["state"], again["decisions"].as_array().unwrap().len()), (&json!(PENDING), 1));
    assert_eq!(versions(&world, "d4").await, 0);

    approve(&ana.named("bo"), &run).await;
    assert_eq!(ended(&ana, &run).await["state"], "succeeded");
    assert_eq!(versions(&world, "d4").await, 1);

    // One no is enough, also of somebody who had said yes.
    let run = ask(&client, "d4-no", "x").await;
    approve(&ana, &run).await;
    assert_eq!(reject(&ana, &run, "on second thoughts").await["state"], "rejected");
    assert_eq!(refusal(&say(&ana.named("bo"), &run, "approve", json!({})).await), (409, "already_decided".into()));
    assert_eq!(versions(&world, "d4-no").await, 0);
}

#[tokio::test(flavor = "multi_thread")]
async fn d4_many_who_sign_at_once_are_all_counted() {
    let world = asking(Plan::redis(2), "deciders: 3").start(in_process()).await;
    let tenant = world.tenant("acme");
    let client = asker(&tenant.agent()).await;
    for round in 0..10 {
        let name = format!("d4-{round}");
        let run = ask(&client, &name, "x").await;
        let people: Vec<_> = (0..3).map(|n| tenant.approver().named(&format!("p{n}")).on(n % 2)).collect();
        let said = futures_util::future::join_all(people.iter().map(|who| say(who, &run, "approve", json!({})))).await;
        assert!(said.iter().all(|answer| answer.status == 200), "{said:?}");
        let run = ended(&people[0], &run).await;
        assert_eq!((&run["state"], run["decisions"].as_array().unwrap().len()), (&json!("succeeded"), 3));
        assert_eq!(versions(&world, &name).await, 1);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn d4_a_last_signature_that_comes_too_late_is_told_why() {
    let world = asking(Plan::redis(1), "deciders: 2, expires: 1s").start(in_process()).await;
    let tenant = world.tenant("acme");
    let client = asker(&tenant.agent()).await;
    let (ana, bo) = (tenant.approver(), tenant.approver().named("bo"));

    let run = ask(&client, "withdrawn", "x").await;
    approve(&ana, &run).await;
    assert_eq!(say(&tenant.agent(), &run, "cancel", json!({})).await.status, 200);
    let late = say(&bo, &run, "approve", json!({})).await;
    assert_eq!(refusal(&late), (409, "not_possible".into()), "nobody had decided it: {}", line(&late));
    assert_eq!(late.json()["error"]["details"]["state"], "cancelled");

    let run = ask(&client, "overdue", "x").await;
    approve(&ana, &run).await;
    assert_eq!(ended(&ana, &run).await["state"], "expired");
    let late = say(&bo, &run, "approve", json!({})).await;
    assert_eq!(refusal(&late), (410, "expired".into()), "nobody had decided it: {}", line(&late));
    assert_eq!((versions(&world, "withdrawn").await, versions(&world, "overdue").await), (0, 0));
}

#[tokio::test(flavor = "multi_thread")]
async fn d5_nobody_decides_what_they_asked_for() {
    let world = asking(Plan::redis(1), "deciders: 1").start(in_process()).await;
    let tenant = world.tenant("acme");
    let client = asker(&tenant.agent()).await;
    let run = ask(&client, "d5", "x").await;
    // One human with two tokens: one that asks, one that decides, both of one subject.
    let same = tenant.approver().named("agent");
    for verdict in ["approve", "reject"] {
        assert_eq!(refusal(&say(&same, &run, verdict, json!({})).await), (403, "own_request".into()), "{verdict}");
    }
    assert_eq!(refusal(&say(&tenant.agent(), &run, "approve", json!({})).await), (403, "insufficient_scope".into()));
    let seen = show(&tenant.approver(), &run).await;
    assert_eq!((&seen["state"], &seen["decisions"]), (&json!(PENDING), &json!([])));
    approve(&tenant.approver(), &run).await;
    assert_eq!(ended(&same, &run).await["state"], "succeeded");
}

#[tokio::test(flavor = "multi_thread")]
async fn d6_a_decision_around_the_expiry_counts_or_is_late_and_never_both() {
    let world = asking(Plan::redis(1), "expires: 2s, most_waiting: 100").start(in_process()).await;
    let store = &world.part(0).store;
    let tenant = world.tenant("acme");
    let client = asker(&tenant.agent()).await;
    let ana = tenant.approver();
    // From well before the instant to well after it, most of them close by.
    let offsets: [i64; 14] = [-600, -40, -20, -10, -6, -4, -3, -2, -1, 0, 1, 5, 20, 100];
    let mut runs = Vec::new();
    for (n, offset) in offsets.into_iter().enumerate() {
        runs.push((ask(&client, &format!("d6-{n}"), "x").await, offset, n));
    }
    let decide = async |(run, offset, n): (String, i64, usize)| {
        let expires = store.of(&acme()).runs().find(id(&run)).await.unwrap().0.unwrap().run.asked.expires_at;
        let instant = domain::Moment::from_millis(expires.millis().saturating_add_signed(offset - 1));
        pass(store, instant).await;
        (say(&ana, &run, "approve", json!({})).await, run, offset, n)
    };
    let decided = futures_util::future::join_all(runs.into_iter().map(decide)).await;
    for (answer, run, offset, n) in decided {
        let state = ended(&ana, &run).await["state"].clone();
        let effects = versions(&world, &format!("d6-{n}")).await;
        match answer.status {
            200 => assert_eq!((state, effects), (json!("succeeded"), 1), "{offset} ms"),
            410 => assert_eq!((state, effects), (json!("expired"), 0), "{offset} ms"),
            status => panic!("neither in time nor late at {offset} ms: {status} {}", answer.text()),
        }
        assert!(offset < 0 || answer.status == 410, "at the instant it is over: {offset} ms");
        assert!(offset > -600 || answer.status == 200, "there was time");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn d6_the_first_reader_after_the_time_sees_it_expired() {
    let slow = |plan: Plan| plan.tenant("acme", &rules("expires: 1s")).setting("QM_APPROVALS__SWEEP_EVERY", "1h");
    let world = slow(Plan::redis(1)).start(in_process()).await;
    let tenant = world.tenant("acme");
    let client = asker(&tenant.agent()).await;
    let run = ask(&client, "d6", "x").await;
    let store = &world.part(0).store;
    let expires = store.of(&acme()).runs().find(id(&run)).await.unwrap().0.unwrap().run.asked.expires_at;
    pass(store, expires).await;
    assert_eq!(show(&tenant.approver(), &run).await["state"], "expired", "no sweep has come by");
}

#[tokio::test(flavor = "multi_thread")]
async fn d6_the_record_outlives_the_longest_time_a_person_may_have() {
    let mut world = asking(Plan::redis(1), "expires: 30d").start(in_process()).await;
    let client = asker(&world.tenant("acme").agent()).await;
    let run = ask(&client, "d6", "x").await;
    let kept = world.redis().command(&["PTTL", &format!("world:{{acme}}:run:{run}")]);
    let kept: u64 = kept.trim_start_matches(':').parse().unwrap();
    let day = 24 * 3600 * 1000;
    assert!(kept > 31 * day, "kept for {kept} ms, so that `expired` could be seen by nobody");
}

#[tokio::test(flavor = "multi_thread")]
async fn d7_a_yes_that_nobody_acted_on_in_time_is_void() {
    let world = redis(2).await;
    let (a, b) = (world.part(0), world.part(1));
    let yard = Yard::new();
    let run = yard.ask(&a.executor, SET, 1).await;
    let now = a.store.now().await.unwrap();
    let long_ago = domain::Moment::from_millis(now.millis() - 600_000);
    let by = crate::runs_yard::principal("ana");
    let answer = Answer { by, verdict: Verdict::Approve, reason: None, at: long_ago, span: None };
    yard.force(&a.store, run, &RunEvent::Answered(answer), long_ago).await;

    yard.sweep(&b.executor).await;

    let ended = yard.settled(&a.executor, run).await;
    assert_eq!((ended.state, ended.claim), (RunState::Expired, None));
    assert_eq!(yard.call(&a.executor, SET, json!({ "n": 1 })).await.unwrap_err().code, Code::Expired);
    assert_ne!(yard.ask(&a.executor, SET, 1).await, run, "a new run is needed");
    assert_eq!(yard.target.all_effects(), 0);
}

#[tokio::test(flavor = "multi_thread")]
async fn d8_a_rule_that_was_tightened_since_refuses_and_nothing_is_sent() {
    let tightened = [
        ("policy:\n  deny: [memory_remember]", "stale"),
        ("policy:\n  deny: ['memory_remember:tenant']", "policy_denied"),
        ("mode: read", "policy_denied"),
    ];
    for (more, code) in tightened {
        let world = asking(Plan::embedded(), "deciders: 1").start(in_process()).await;
        let tenant = world.tenant("acme");
        let client = asker(&tenant.agent()).await;
        let run = ask(&client, "d8", "x").await;
        world.configure("acme", more);
        // The change is there when a call of the same kind is no longer asked about.
        until("the new rule", async || {
            let outcome = client.call("memory_remember", note("d8-other", "y")).await;
            (outcome.code() != "ok").then_some(())
        })
        .await;

        approve(&tenant.approver(), &run).await;

        let told = ended(&tenant.approver(), &run).await;
        let outcome = &told["outcome"];
        assert_eq!(
            (&told["state"], &outcome["code"], &outcome["attempted"]),
            (&json!("failed"), &json!(code), &json!(false))
        );
        assert_eq!(versions(&world, "d8").await, 0, "{more}");
        assert_eq!(await_run(&client, &run).await.code(), code);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn d8_a_replica_with_another_schema_does_not_execute_what_was_approved_for_this_one() {
    let world = redis(2).await;
    let (old, new) = (world.part(0), world.part(1));
    let yard = Yard::new();
    let newer = yard.under(&House { newer: true, ..House::default() });
    let run = yard.ask(&old.executor, RAZE, 1).await;

    newer.approve(&new.executor, run).await;

    let ended = yard.settled(&old.executor, run).await;
    let ending = ended.ending.unwrap();
    assert_eq!((ended.state, ending.code.as_deref(), ending.attempted), (RunState::Failed, Some("stale"), false));
    assert!(ending.message.contains("schema"), "it says what changed: {}", ending.message);
    assert_eq!(yard.target.all_effects(), 0);
    let again = newer.call(&new.executor, RAZE, json!({ "n": 1 })).await;
    assert_ne!(run_id(&told(&again)), run, "another schema is another digest");
}

#[tokio::test(flavor = "multi_thread")]
async fn d8_a_tenant_that_became_read_only_executes_nothing() {
    let world = redis(1).await;
    let here = world.part(0);
    let yard = Yard::new();
    let run = yard.ask(&here.executor, RAZE, 0).await;
    yard.under(&House { mode: SessionMode::Read, ..House::default() }).approve(&here.executor, run).await;
    let ending = yard.settled(&here.executor, run).await.ending.unwrap();
    assert_eq!((ending.code.as_deref(), ending.attempted), (Some("policy_denied"), false));
    assert_eq!(yard.target.all_effects(), 0);
}

#[tokio::test(flavor = "multi_thread")]
async fn d9_a_document_that_changed_since_the_preview_voids_the_yes() {
    let world = asking(Plan::embedded(), "deciders: 1").start(in_process()).await;
    let tenant = world.tenant("acme");
    let client = asker(&tenant.agent()).await;
    let run = ask(&client, "d9", "mine").await;
    let draft = store::Draft {
        path: crate::runs_desk::path("d9"),
        title: "theirs".into(),
        kind: "note".into(),
        tags: Vec::new(),
        trust: Trust::Authored,
        content: "theirs".into(),
        evidence: "theirs".into(),
        references: Vec::new(),
        op: store::DocOp::Create,
        suspect: false,
        findings: Vec::new(),
        diff: String::new(),
        source: None,
        actor: crate::runs_yard::principal("zoe"),
        actor_kind: "person".into(),
        session: None,
        tainted: false,
        run: None,
        approver: None,
    };
    let memory = world.part(0).store.of(&acme()).memory();
    let entry = store::AuditEntry::new(store::Phase::Transition);
    let limits = ScopeLimits { documents: 10, bytes: 1_000, keep: None, part: None };
    let put = memory.put(&DocScope::Tenant, draft, WritePrecondition::Absent, &limits, &entry).await.unwrap();
    assert!(matches!(put, WriteOutcome::Done(_)));

    approve(&tenant.approver(), &run).await;

    let told = ended(&tenant.approver(), &run).await;
    assert_eq!((&told["state"], &told["outcome"]["code"]), (&json!("failed"), &json!("stale")));
    assert_eq!(told["outcome"]["attempted"], false);
    let message = told["outcome"]["message"].as_str().unwrap();
    assert!(message.contains("exists already"), "it says what is in the way now: {message}");
    let refused = await_run(&client, &run).await;
    assert_eq!(refused.refusal()["code"], "stale");
    assert_eq!(memory.get(&DocScope::Tenant, &crate::runs_desk::path("d9")).await.unwrap().unwrap().content, "theirs");
}

#[tokio::test(flavor = "multi_thread")]
async fn d9_a_target_that_moved_is_drawn_again_and_must_show_the_same() {
    let world = redis(1).await;
    let here = world.part(0);
    let yard = Yard::new();
    let run = yard.ask(&here.executor, RAZE, 1).await;
    yard.target.moved_by_somebody_else();
    yard.approve(&here.executor, run).await;
    let ending = yard.settled(&here.executor, run).await.ending.unwrap();
    assert_eq!((ending.code.as_deref(), ending.attempted), (Some("stale"), false));

    let run = yard.ask(&here.executor, RAZE, 2).await;
    yard.target.goes_blind();
    yard.approve(&here.executor, run).await;
    let ending = yard.settled(&here.executor, run).await.ending.unwrap();
    assert_eq!((ending.code.as_deref(), ending.attempted), (Some("stale"), false), "not seen is not the same");
    assert_eq!(yard.target.all_effects(), 0);
}

#[tokio::test(flavor = "multi_thread")]
async fn d10_a_tenant_that_was_switched_off_is_not_acted_for_and_what_waited_is_taken_back() {
    let world = asking(Plan::embedded(), "deciders: 1").start(in_process()).await;
    let tenant = world.tenant("acme");
    let client = asker(&tenant.agent()).await;
    let run = ask(&client, "d10", "x").await;
    world.remove_tenant("acme");
    let ana = tenant.approver();
    until("the tenant to be gone", async || {
        let seen = ana.rest().get(&format!("/v1/runs/{run}")).await;
        (seen.status == 403).then_some(())
    })
    .await;

    let refused = say(&ana, &run, "approve", json!({})).await;
    assert_eq!(refusal(&refused), (403, "forbidden_tenant".into()));
    let runs = world.part(0).store.of(&acme()).runs();
    until("what waited to be taken back", async || {
        let run = runs.find(id(&run)).await.unwrap().0.unwrap().run;
        (run.state == RunState::Cancelled).then_some(())
    })
    .await;
    assert_eq!(moves(&world, &run).await.last().unwrap(), "pending_approval>cancelled");
    // A yes that was given before, and not acted on, is not acted on either.
    let cancelled = runs.find(id(&run)).await.unwrap().0.unwrap().run;
    let waiting =
        domain::Run { id: domain::RunId::from_random([7; 16]), state: RunState::PendingApproval, ..cancelled };
    let entry = store::AuditEntry::new(store::Phase::Transition);
    let opened = runs.open(&waiting, None, u64::MAX, &entry).await.unwrap();
    let store::RunCasOutcome::Done(held) = opened else { panic!("it should be there: {opened:?}") };
    let run = waiting.id.to_string();
    let at = world.part(0).store.now().await.unwrap();
    let by = crate::runs_yard::principal("ana");
    let next = held
        .run
        .apply(&RunEvent::Answered(Answer { by, verdict: Verdict::Approve, reason: None, at, span: None }), at)
        .unwrap();
    assert!(matches!(runs.commit(&held, &next, None, &entry).await.unwrap(), store::RunCasOutcome::Done(_)));
    // Another tenant's run is carried out meanwhile, so sweeps have come by.
    let other = world.tenant("other");
    let theirs = ask(&asker(&other.agent()).await, "d10", "x").await;
    approve(&other.approver(), &theirs).await;
    assert_eq!(ended(&other.approver(), &theirs).await["state"], "succeeded");
    assert_eq!(versions(&world, "d10").await, 0);
    assert_eq!(runs.find(id(&run)).await.unwrap().0.unwrap().run.state, RunState::Approved);
}

#[tokio::test(flavor = "multi_thread")]
async fn d12_a_yes_is_taken_without_the_tool_and_waits_for_it_until_its_time_is_over() {
    let world = redis(2).await;
    let (bare, whole) = (world.part(0), world.part(1));
    let mut brief = House::default();
    brief.approvals.execute_within = Duration::from_secs(1);
    let yard = Yard::new();
    let toolless = yard.under(&House { bare: true, ..House::default() });
    let run = yard.ask(&whole.executor, RAZE, 1).await;

    toolless.approve(&bare.executor, run).await;
    for _ in 0..3 {
        toolless.sweep(&bare.executor).await;
    }
    let waits = yard.run(&whole.store, run).await;
    assert_eq!((waits.state, waits.claim, yard.target.all_effects()), (RunState::Approved, None, 0));
    yard.sweep(&whole.executor).await;
    assert_eq!(yard.settled(&bare.executor, run).await.state, RunState::Succeeded);
    assert_eq!(yard.target.effects(run), 1);

    let yard = Yard::of(&brief);
    let toolless = yard.under(&House { bare: true, ..brief });
    let run = yard.ask(&whole.executor, RAZE, 2).await;
    toolless.approve(&bare.executor, run).await;
    until("the yes to be void", async || {
        toolless.sweep(&bare.executor).await;
        (yard.run(&whole.store, run).await.state == RunState::Expired).then_some(())
    })
    .await;
    yard.sweep(&whole.executor).await;
    assert_eq!((yard.run(&whole.store, run).await.state, yard.target.all_effects()), (RunState::Expired, 0));
}

#[tokio::test(flavor = "multi_thread")]
async fn d13_a_lost_connection_while_a_run_executes_changes_nothing() {
    let world = redis(2).await;
    let (a, b) = (world.part(0), world.part(1));
    let yard = Yard::new();
    yard.target.holds();
    let hold = Some(Duration::from_secs(20));
    let run = yard.ask(&a.executor, RAZE, 1).await;
    yard.approve(&b.executor, run).await;
    yard.target.reached(1).await;
    // The agent asks again, waits for the end, and goes away while the target still works on it.
    let seen = std::sync::Arc::new(tokio::sync::Notify::new());
    let heard = std::sync::Arc::clone(&seen);
    let waiting = yard.call_with(&a.executor, RAZE, json!({ "n": 1 }), |request| {
        request.hold = hold;
        request.progress = catalog::Progress::to(move |_, _, _| heard.notify_one());
    });
    tokio::select! {
        outcome = waiting => panic!("it should wait: {outcome:?}"),
        () = seen.notified() => {}
    }
    yard.target.lets_go();

    assert_eq!(yard.settled(&b.executor, run).await.state, RunState::Succeeded);
    let next = told(&yard.call(&a.executor, RAZE, json!({ "n": 1 })).await);
    assert_eq!((&next["run"]["replayed"], &next["result"]), (&json!(true), &json!({ "set": 1 })));
    assert_eq!((run_id(&next), yard.target.effects(run)), (run, 1), "the next message executes nothing again");
    let steps = yard.moves(&a.store, run).await;
    assert_eq!(steps.iter().filter(|to| *to == "succeeded").count(), 2, "ended once, delivered once: {steps:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn d14_decisions_are_per_run() {
    let world = asking(Plan::redis(2), "deciders: 1").start(in_process()).await;
    let tenant = world.tenant("acme");
    let client = asker(&tenant.agent()).await;
    let (first, second) = (ask(&client, "d14-a", "x").await, ask(&client, "d14-b", "x").await);
    assert_ne!(first, second);
    let ana = tenant.approver().on(1);
    approve(&ana, &second).await;
    assert_eq!(ended(&ana, &second).await["state"], "succeeded");
    assert_eq!(show(&ana, &first).await["state"], PENDING);
    assert_eq!((versions(&world, "d14-a").await, versions(&world, "d14-b").await), (0, 1));
    reject(&ana, &first, "not that one").await;
    assert_eq!(await_run(&client, &second).await.ok()["run"]["state"], "succeeded", "no decision is lost");
    assert_eq!(versions(&world, "d14-a").await, 0);
}

#[tokio::test(flavor = "multi_thread")]
async fn d15_a_reused_call_id_asks_again() {
    let world = asking(Plan::embedded(), "deciders: 1").start(in_process()).await;
    let tenant = world.tenant("acme");
    let client = asker(&tenant.agent()).await;
    let call = async |arguments: Value| {
        let params = json!({ "name": "memory_remember", "arguments": arguments });
        testkit::Outcome::of(client.send(&client.prepare_as(json!(7), "tools/call", params)).await)
    };
    let first = pending(&call(note("d15", "harmless")).await);
    approve(&tenant.approver(), &first).await;
    assert_eq!(await_run(&client, &first).await.ok()["run"]["state"], "succeeded");

    let second = pending(&call(note("d15-other", "harmful")).await);
    assert_ne!(first, second);
    let third = pending(&call(note("d15", "harmless")).await);
    assert!(third != first && third != second, "even the same words are a new question once they were answered");
    assert_eq!((versions(&world, "d15").await, versions(&world, "d15-other").await), (1, 0));
}

#[tokio::test(flavor = "multi_thread")]
async fn d16_a_decision_about_an_unknown_or_foreign_run_starts_nothing() {
    let world = asking(Plan::embedded(), "deciders: 1").start(in_process()).await;
    let tenant = world.tenant("acme");
    let run = ask(&asker(&tenant.agent()).await, "d16", "x").await;
    let (ana, stranger) = (tenant.approver(), world.tenant("other").approver());
    for what in ["approve", "reject", "cancel", "resolve", "clear"] {
        let body = if what == "resolve" { json!({ "outcome": "succeeded" }) } else { json!({}) };
        let unknown = say(&ana, "run_0000000000000000000000", what, body.clone()).await;
        assert_eq!(refusal(&unknown), (404, "not_found".into()), "{what}");
        for odd in ["run_0", "ses_0000000000000000000000", "..", "%2e%2e", "run_000000000000000000000%00"] {
            assert_eq!(say(&ana, odd, what, body.clone()).await.status, 404, "{what} {odd}");
        }
        assert_eq!(line(&say(&stranger, &run, what, body).await), line(&unknown), "{what}");
    }
    assert_eq!(show(&ana, &run).await["state"], PENDING);
    assert_eq!(audit_log(&world, &run).await.len(), 1, "nothing was written about it");
    assert_eq!(versions(&world, "d16").await, 0);
}

/// Yes against no on two replicas, two thousand times; whoever is asked first is not always the same one.
#[tokio::test(flavor = "multi_thread")]
async fn d2_two_thousand_races_of_yes_against_no_have_one_winner_and_no_effect_without_a_yes() {
    const ROUNDS: usize = 2_000;
    const AT_ONCE: usize = 16;
    let world = redis(2).await;
    let yard = Yard::new();
    let seed = yard.ask(&world.part(0).executor, RAZE, 1).await;
    let seed = yard.run(&world.part(0).store, seed).await;
    let race = async |round: usize| {
        let run = yard.one_more(&world.part(0).store, &seed, round).await;
        let (one, other) = (&world.part(round % 2).executor, &world.part((round + 1) % 2).executor);
        let (yes, no) = tokio::join!(
            yard.answer(one, "ana", run, Verdict::Approve),
            yard.answer(other, "bo", run, Verdict::Reject)
        );
        assert_ne!(yes.is_ok(), no.is_ok(), "round {round}: {yes:?} {no:?}");
        let (winner, effects, state) =
            if yes.is_ok() { ("ana", 1, RunState::Succeeded) } else { ("bo", 0, RunState::Rejected) };
        let refused = if yes.is_ok() { no } else { yes }.unwrap_err();
        assert_eq!((refused.code, &refused.details.unwrap()["by"]), (Code::AlreadyDecided, &json!(winner)));
        assert_eq!(yard.settled(&world.part(0).executor, run).await.state, state);
        assert_eq!(yard.target.effects(run), effects);
        effects
    };
    let mut approved = 0;
    for first in (0..ROUNDS).step_by(AT_ONCE) {
        approved += futures_util::future::join_all((first..first + AT_ONCE).map(&race)).await.iter().sum::<usize>();
    }
    assert_eq!(yard.target.all_effects(), approved);
    assert!(approved > 0 && approved < ROUNDS, "both win now and then: {approved}");
}

#[tokio::test(flavor = "multi_thread")]
async fn d11_the_yes_of_somebody_who_may_no_longer_decide_stands_with_the_claims_it_was_given_with() {
    let world = asking(Plan::redis(2), "deciders: 2").start(in_process()).await;
    let tenant = world.tenant("acme");
    let client = asker(&tenant.agent()).await;
    let run = ask(&client, "d11", "x").await;
    let ana = tenant.approver();
    assert_eq!(approve(&ana, &run).await["state"], PENDING);

    // Ana is no longer an approver: whatever token she gets from now on lacks the scope.
    let removed = ana.scoped("audit:read");
    let other = ask(&client, "d11-other", "x").await;
    assert_eq!(refusal(&say(&removed, &other, "approve", json!({})).await), (403, "insufficient_scope".into()));
    assert_eq!(refusal(&say(&removed, &run, "reject", json!({})).await), (403, "insufficient_scope".into()));

    approve(&tenant.approver().named("bo").on(1), &run).await;
    assert_eq!(ended(&ana, &run).await["state"], "succeeded");
    assert_eq!(versions(&world, "d11").await, 1);
    let entries = audit_log(&world, &run).await;
    let hers = entries.iter().find(|entry| entry["actor"]["sub"] == "ana").expect("her decision is in the audit log");
    assert!(hers["actor"]["scopes"].to_string().contains("runs:decide"), "{hers}");
    assert_eq!(hers["decision"]["verdict"], "approve");
}

/// Eight people on two replicas decide two thousand runs, every one of them at the same time.
#[tokio::test(flavor = "multi_thread")]
async fn i3_eight_deciders_on_two_thousand_runs_make_one_decision_each() {
    const RUNS: usize = 2_000;
    const AT_ONCE: usize = 16;
    let world = redis(2).await;
    let yard = Yard::new();
    let seed = yard.ask(&world.part(0).executor, RAZE, 1).await;
    let seed = yard.run(&world.part(0).store, seed).await;
    let decide = async |number: usize| {
        let run = yard.one_more(&world.part(0).store, &seed, number).await;
        let people = (0..8).map(|n| {
            let verdict = if (n + number).is_multiple_of(2) { Verdict::Approve } else { Verdict::Reject };
            let yard = &yard;
            let executor = &world.part(n % 2).executor;
            async move { (n, yard.answer(executor, &format!("p{n}"), run, verdict).await) }
        });
        let said = futures_util::future::join_all(people).await;
        let (won, lost): (Vec<_>, Vec<_>) = said.into_iter().partition(|(_, answer)| answer.is_ok());
        assert_eq!((won.len(), lost.len()), (1, 7), "run {number}");
        let winner = format!("p{}", won[0].0);
        for (_, refused) in lost {
            let refused = refused.unwrap_err();
            assert_eq!(refused.code, Code::AlreadyDecided);
            assert_eq!(refused.details.unwrap()["by"], winner);
        }
        let ended = yard.settled(&world.part(0).executor, run).await;
        let yes = ended.answers[0].verdict == Verdict::Approve;
        assert_eq!((ended.answers.len(), ended.answers[0].by.subject.as_str()), (1, winner.as_str()));
        assert_eq!(ended.state, if yes { RunState::Succeeded } else { RunState::Rejected });
        assert_eq!(yard.target.effects(run), usize::from(yes));
        usize::from(yes)
    };
    let mut approved = 0;
    for first in (0..RUNS).step_by(AT_ONCE) {
        let some = futures_util::future::join_all((first..first + AT_ONCE).map(&decide)).await;
        approved += some.into_iter().sum::<usize>();
    }
    assert_eq!(yard.target.all_effects(), approved);
    assert!(approved > 0 && approved < RUNS, "both verdicts win now and then: {approved}");
}
