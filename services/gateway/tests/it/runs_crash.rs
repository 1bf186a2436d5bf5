//! What the living make of what the dead left: a run is carried out once, or its outcome is honestly unknown.
//!
//! A dead owner is a record: what it would have written last, under a name nobody has. Real ones are killed in
//! `runs_matrix` and `runs_killed`.

use crate::here::{in_process, redis};
use crate::runs_desk::{acme, approve, ask, asker, asking, await_run, ended, id, note, path, pending, show, versions};
use crate::runs_yard::{BRIEF, HEAR, House, RAZE, Reply, SET, Yard, principal, run_id, told};
use domain::run::{Answer, Ending, RunEvent, RunState, Verdict};
use domain::{Code, Moment, SessionMode, Tenant};
use serde_json::json;
use std::time::Duration;
use store::{
    AuditEntry, DocOp, DocScope, Draft, Phase, RunCasOutcome, ScopeLimits, Store, Trust, WriteOutcome,
    WritePrecondition,
};
use testkit::{Plan, until};

#[tokio::test(flavor = "multi_thread")]
async fn r1_a_yes_whose_replica_died_is_claimed_by_another() {
    for tool in [SET, RAZE] {
        let world = redis(2).await;
        let (a, b) = (world.part(0), world.part(1));
        let yard = Yard::new();
        let run = yard.ask(&a.executor, tool, 1).await;
        yard.approved_by_the_dead(&a.store, run).await;

        // Both look at once, as replicas do.
        tokio::join!(yard.sweep(&a.executor), yard.sweep(&b.executor));

        let ended = yard.settled(&a.executor, run).await;
        assert_eq!((ended.state, ended.claim.unwrap().epoch), (RunState::Succeeded, 1));
        yard.sweep(&a.executor).await;
        yard.sweep(&b.executor).await;
        assert_eq!(yard.target.effects(run), 1, "{tool}");
        assert_eq!(yard.target.all_effects(), 1, "nothing without a run");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn r2_a_silent_owner_of_an_idempotent_run_is_relieved() {
    let world = redis(2).await;
    let (a, b) = (world.part(0), world.part(1));
    let yard = Yard::new();
    let run = yard.ask(&a.executor, SET, 1).await;
    yard.claimed_by_the_dead(&a.store, run).await;

    tokio::join!(yard.sweep(&a.executor), yard.sweep(&b.executor));

    let ended = yard.settled(&a.executor, run).await;
    let claim = ended.claim.unwrap();
    assert_eq!((ended.state, claim.epoch, yard.target.effects(run)), (RunState::Succeeded, 2, 1));
    assert!([a.store.replica(), b.store.replica()].contains(&claim.owner.as_str()));
}

#[tokio::test(flavor = "multi_thread")]
async fn r2_a_lease_that_still_runs_is_left_alone() {
    let world = redis(1).await;
    let (here, yard) = (world.part(0), Yard::new());
    for tool in [SET, RAZE] {
        let run = yard.ask(&here.executor, tool, 1).await;
        yard.approved_by_the_dead(&here.store, run).await;
        let now = here.store.now().await.unwrap();
        let lease_until = now.plus(Duration::from_secs(60));
        yard.force(&here.store, run, &RunEvent::Claimed { owner: "rep_slow".into(), lease_until, span: None }, now)
            .await;
        yard.sweep(&here.executor).await;
        let seen = yard.run(&here.store, run).await;
        assert_eq!((seen.state, seen.claim.unwrap().owner.as_str()), (RunState::Executing, "rep_slow"));
    }
    assert_eq!(yard.target.all_effects(), 0);
}

#[tokio::test(flavor = "multi_thread")]
async fn r2_what_is_not_idempotent_is_never_sent_again() {
    let world = redis(2).await;
    let (a, b) = (world.part(0), world.part(1));
    let yard = Yard::new();
    let run = yard.ask(&a.executor, RAZE, 1).await;
    yard.claimed_by_the_dead(&a.store, run).await;

    tokio::join!(yard.sweep(&a.executor), yard.sweep(&b.executor));
    yard.sweep(&a.executor).await;

    let seen = yard.run(&a.store, run).await;
    assert_eq!(
        (seen.state, seen.claim.unwrap().epoch),
        (RunState::OutcomeUnknown, 1),
        "no proof leaves it to a person"
    );
    assert_eq!(seen.ending.unwrap().basis, "the replica that carried it out fell silent");
    assert_eq!(yard.target.all_effects(), 0);
    let told = yard.call(&a.executor, RAZE, json!({ "n": 1 })).await.unwrap_err();
    assert_eq!(told.code, Code::OutcomeUnknown);
    assert!(told.next.unwrap().contains("do not call again"));
    assert_eq!(told.details.unwrap()["run"]["id"], run.to_string(), "the same call is not a new run");
}

#[tokio::test(flavor = "multi_thread")]
async fn r2_proof_that_nothing_began_lets_the_agent_ask_anew() {
    let world = redis(1).await;
    let (here, yard) = (world.part(0), Yard::new());
    yard.target.absence_proves();
    let run = yard.ask(&here.executor, RAZE, 1).await;
    yard.claimed_by_the_dead(&here.store, run).await;
    yard.sweep(&here.executor).await;
    let seen = yard.run(&here.store, run).await;
    let ending = seen.ending.unwrap();
    assert_eq!((seen.state, ending.attempted), (RunState::ReconciledFailed, false));
    assert_eq!(ending.basis, "a probe of the target");
    yard.call(&here.executor, RAZE, json!({ "n": 1 })).await.unwrap_err();
    assert_ne!(yard.ask(&here.executor, RAZE, 1).await, run);
}

#[tokio::test(flavor = "multi_thread")]
async fn r3_a_target_that_does_not_answer_in_time_leaves_the_outcome_unknown_and_a_late_answer_settles_it() {
    let world = redis(1).await;
    let (here, yard) = (world.part(0), Yard::new());
    yard.target.holds();
    let run = yard.ask(&here.executor, BRIEF, 1).await;
    yard.approve(&here.executor, run).await;
    yard.target.reached(1).await;
    let seen = yard.settled(&here.executor, run).await;
    assert_eq!((seen.state, seen.ending.unwrap().code.as_deref()), (RunState::OutcomeUnknown, Some("deadline")));

    yard.target.lets_go();

    until("the late report", async || {
        (yard.run(&here.store, run).await.state != RunState::OutcomeUnknown).then_some(())
    })
    .await;
    let seen = yard.run(&here.store, run).await;
    assert_eq!((seen.state, yard.target.effects(run)), (RunState::ReconciledSucceeded, 1));
    assert!(seen.ending.unwrap().basis.contains("late report"));
}

#[tokio::test(flavor = "multi_thread")]
async fn r3_a_probe_does_not_settle_what_is_still_being_sent() {
    let world = redis(2).await;
    let (here, elsewhere) = (world.part(0), world.part(1));
    let yard = Yard::new();
    yard.target.absence_proves();
    yard.target.holds();
    let run = yard.ask(&here.executor, BRIEF, 1).await;
    yard.approve(&here.executor, run).await;
    yard.target.reached(1).await;
    assert_eq!(yard.settled(&here.executor, run).await.state, RunState::OutcomeUnknown);

    yard.sweep(&elsewhere.executor).await;
    yard.target.lets_go();

    until("the effect", async || (yard.target.effects(run) > 0).then_some(())).await;
    until("the run to be settled", async || yard.run(&here.store, run).await.state.is_final().then_some(())).await;
    let seen = yard.run(&here.store, run).await;
    assert_eq!(
        seen.state,
        RunState::ReconciledSucceeded,
        "it happened, and the run says that it did not: {:?}",
        seen.ending
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn r3_an_answer_that_proves_nothing_is_never_called_a_failure() {
    for reply in [Reply::Lost, Reply::Panic] {
        let world = redis(1).await;
        let (here, yard) = (world.part(0), Yard::new());
        yard.target.replies(reply);
        let run = yard.ask(&here.executor, RAZE, 1).await;
        yard.approve(&here.executor, run).await;
        assert_eq!(yard.settled(&here.executor, run).await.state, RunState::OutcomeUnknown);
        yard.sweep(&here.executor).await;
        let seen = yard.run(&here.store, run).await;
        assert_eq!((seen.state, yard.target.effects(run)), (RunState::ReconciledSucceeded, 1), "the probe finds it");
        assert_eq!(seen.ending.unwrap().basis, "a probe of the target");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn r3_a_person_settles_what_no_probe_can() {
    for (outcome, state) in [(true, RunState::ReconciledSucceeded), (false, RunState::ReconciledFailed)] {
        let world = redis(1).await;
        let (here, yard) = (world.part(0), Yard::new());
        let run = yard.ask(&here.executor, RAZE, 1).await;
        yard.claimed_by_the_dead(&here.store, run).await;
        yard.sweep(&here.executor).await;
        for (who, scopes, code) in [
            ("agent", "runs:decide", Code::OwnRequest),
            ("zoe", "tools:write runs:decide", Code::InsufficientScope),
            ("zoe", "tools:read", Code::InsufficientScope),
        ] {
            let refused = here.executor.resolve(&yard.caller(who, scopes), run, outcome).await.unwrap_err();
            assert_eq!(refused.code, code, "{who} {scopes}");
        }
        let ana = yard.caller("ana", "runs:decide");
        let settled = here.executor.resolve(&ana, run, outcome).await.unwrap();
        let ending = settled.ending.unwrap();
        assert_eq!((settled.state, ending.basis.as_str()), (state, "settled by ana"));
        assert_eq!(ending.message, format!("a person says it was{} done", if outcome { "" } else { " not" }));
        assert_eq!(ending.code.is_none(), outcome, "what is known to be done carries no failure: {:?}", ending.code);
        let again = here.executor.resolve(&ana, run, !outcome).await.unwrap_err();
        assert_eq!(again.code, Code::NotPossible, "what is settled stays so");
        assert_eq!(yard.target.all_effects(), 0);
    }
}

/// Writes the document of a run as its dead owner did.
async fn written_by_the_dead(store: &Store, run: &str, name: &str, content: &str) {
    let draft = Draft {
        path: path(name),
        title: name.into(),
        kind: "note".into(),
        tags: Vec::new(),
        trust: Trust::Approved,
        content: content.into(),
        evidence: "seen in the logs".into(),
        references: Vec::new(),
        op: DocOp::Create,
        suspect: false,
        findings: Vec::new(),
        diff: String::new(),
        source: None,
        actor: principal("agent"),
        actor_kind: "agent".into(),
        session: None,
        tainted: false,
        run: Some(id(run)),
        approver: None,
    };
    let limits = ScopeLimits { documents: 100, bytes: 1_000_000, keep: None, part: None };
    let entry = AuditEntry::new(Phase::Transition);
    let put = store
        .of(&acme())
        .memory()
        .put(&DocScope::Tenant, draft, WritePrecondition::Absent, &limits, &entry)
        .await
        .unwrap();
    assert!(matches!(put, WriteOutcome::Done(_)));
}

/// Moves a run of the tenant as somebody who is dead by now did.
async fn moved_by_the_dead(store: &Store, run: &str, events: &[RunEvent]) {
    let runs = store.of(&acme()).runs();
    for event in events {
        let (held, now) = runs.find(id(run)).await.unwrap();
        let held = held.unwrap();
        let next = held.run.apply(event, now).unwrap();
        let folded = runs.commit(&held, &next, None, &AuditEntry::new(Phase::Transition)).await.unwrap();
        assert!(matches!(folded, RunCasOutcome::Done(_)), "{folded:?}");
    }
}

fn yes() -> RunEvent {
    RunEvent::Answered(Answer {
        by: principal("ana"),
        verdict: Verdict::Approve,
        reason: None,
        at: Moment::from_millis(1),
        span: None,
    })
}

fn claim_that_is_over() -> RunEvent {
    RunEvent::Claimed { owner: "rep_dead".into(), lease_until: Moment::from_millis(1), span: None }
}

#[tokio::test(flavor = "multi_thread")]
async fn r4_a_probe_that_finds_the_runs_document_settles_it() {
    let plan = asking(Plan::redis(1), "deciders: 1").setting("QM_APPROVALS__SWEEP_EVERY", "1h");
    let world = plan.start(in_process()).await;
    let here = world.part(0);
    let tenant = world.tenant("acme");
    let client = asker(&tenant.agent()).await;
    let run = ask(&client, "r4", "x").await;
    let ending = Ending::failed(Code::StoreUnavailable, "no answer");
    let lost = RunEvent::Lost { by: None, ending };
    moved_by_the_dead(&here.store, &run, &[yes(), claim_that_is_over(), lost]).await;
    written_by_the_dead(&here.store, &run, "r4", "x").await;

    let snapshot = here.tenants.find(&acme()).unwrap();
    let next = Box::pin(here.executor.sweep(&snapshot, &acme())).await.unwrap();
    assert_eq!(next, None, "it is over, so nobody has to look again");

    let seen = ended(&tenant.approver(), &run).await;
    assert_eq!(
        (&seen["state"], &seen["outcome"]["basis"]),
        (&json!("reconciled_succeeded"), &json!("a probe of the target"))
    );
    assert_eq!(seen["outcome"]["result"]["version"], 1);
    assert_eq!(await_run(&client, &run).await.ok()["result"]["path"], path("r4"));
    assert_eq!(versions(&world, "r4").await, 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn r4_a_run_whose_effect_happened_before_the_takeover_has_not_failed() {
    let plan = asking(Plan::redis(1), "deciders: 1").setting("QM_APPROVALS__SWEEP_EVERY", "1h");
    let world = plan.start(in_process()).await;
    let here = world.part(0);
    let tenant = world.tenant("acme");
    let client = asker(&tenant.agent()).await;
    let run = ask(&client, "r4", "x").await;
    moved_by_the_dead(&here.store, &run, &[yes(), claim_that_is_over()]).await;
    written_by_the_dead(&here.store, &run, "r4", "x").await;

    let snapshot = here.tenants.find(&acme()).unwrap();
    Box::pin(here.executor.sweep(&snapshot, &acme())).await.unwrap();

    let seen = ended(&tenant.approver(), &run).await;
    assert_eq!(versions(&world, "r4").await, 1);
    let done = ["succeeded", "reconciled_succeeded"].iter().any(|state| seen["state"] == *state);
    assert!(done, "the document is there, and the agent is told: {} {}", seen["state"], seen["outcome"]);
    assert_eq!(seen["outcome"]["basis"], "a probe of the target");
}

#[tokio::test(flavor = "multi_thread")]
async fn r4_what_a_probe_finds_is_as_much_text_from_outside_as_an_answer() {
    let world = redis(1).await;
    let (here, yard) = (world.part(0), Yard::new());
    for (tool, n) in [(HEAR, 1), (RAZE, 2)] {
        let run = yard.ask(&here.executor, tool, n).await;
        yard.claimed_by_the_dead(&here.store, run).await;
        yard.target.happened(run);
        yard.sweep(&here.executor).await;
        let seen = yard.run(&here.store, run).await;
        let ending = seen.ending.unwrap();
        assert_eq!((seen.state, ending.tainting), (RunState::ReconciledSucceeded, tool == HEAR), "{tool}");
        assert_eq!(ending.basis, "a probe of the target");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn r4_whoever_takes_over_cannot_say_that_nothing_was_sent() {
    let world = redis(1).await;
    let (here, yard) = (world.part(0), Yard::new());
    let run = yard.ask(&here.executor, SET, 1).await;
    yard.claimed_by_the_dead(&here.store, run).await;
    yard.target.happened(run);
    // The effect itself moved the target, so the preview is another.
    yard.target.moved_by_somebody_else();
    yard.sweep(&here.executor).await;
    let seen = yard.settled(&here.executor, run).await;
    let ending = seen.ending.unwrap();
    assert!(ending.attempted, "the owner before had sent it: {:?} {ending:?}", seen.state);
    assert_ne!(seen.state, RunState::Failed);
}

/// What stops the one who takes over may be what the silent owner did, and proves nothing about it.
#[tokio::test(flavor = "multi_thread")]
async fn r4_whoever_takes_over_and_may_not_go_on_leaves_the_outcome_unknown() {
    let (world, usual) = (redis(1).await, House::default());
    let here = world.part(0);
    for (n, house) in [(1, usual.clone()), (2, House { mode: SessionMode::Read, ..usual })] {
        let yard = Yard::new();
        let run = yard.ask(&here.executor, SET, n).await;
        yard.claimed_by_the_dead(&here.store, run).await;
        yard.target.moved_by_somebody_else();
        yard.under(&house).sweep(&here.executor).await;
        let seen = yard.settled(&here.executor, run).await;
        let ending = seen.ending.unwrap();
        assert_eq!((seen.state, yard.target.all_effects()), (RunState::OutcomeUnknown, 0), "{ending:?}");
        assert_eq!((ending.code.as_deref(), ending.attempted), (Some("outcome_unknown"), true), "{ending:?}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn r5_an_outcome_that_was_stored_and_not_delivered_is_handed_to_the_repeated_call() {
    let world = redis(2).await;
    let (a, b) = (world.part(0), world.part(1));
    let yard = Yard::new();
    let run = yard.ask(&a.executor, RAZE, 1).await;
    yard.approve(&a.executor, run).await;
    assert_eq!(yard.settled(&b.executor, run).await.state, RunState::Succeeded);

    let again = told(&yard.call(&b.executor, RAZE, json!({ "n": 1 })).await);

    assert_eq!((&again["run"]["replayed"], &again["run"]["state"]), (&json!(true), &json!("succeeded")));
    assert_eq!((run_id(&again), &again["result"]), (run, &json!({ "set": 1 })));
    assert_eq!(yard.target.all_effects(), 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn r7_open_runs_and_outcomes_outlive_every_replica() {
    for (plan, replicas) in [(Plan::redis(2), 2), (Plan::file(), 1)] {
        let mut world = asking(plan, "deciders: 1").start(in_process()).await;
        let tenant = world.tenant("acme");
        let client = asker(&tenant.agent()).await;
        let (waits, done) = (ask(&client, "r7-waits", "x").await, ask(&client, "r7-done", "x").await);
        approve(&tenant.approver(), &done).await;
        let before = ended(&tenant.approver(), &done).await;
        let pending_before = show(&tenant.approver(), &waits).await;

        for replica in 0..replicas {
            world.stop(replica).await;
        }
        for replica in 0..replicas {
            world.begin(replica).await;
        }

        assert_eq!(show(&tenant.approver(), &done).await, before);
        assert_eq!(show(&tenant.approver(), &waits).await, pending_before);
        assert_eq!(
            pending(&client.call("memory_remember", note("r7-waits", "x")).await),
            waits,
            "and it is found again"
        );
        let handed = client.call("memory_remember", note("r7-done", "x")).await;
        assert_eq!((&handed.ok()["run"]["id"], &handed.ok()["run"]["replayed"]), (&json!(done), &json!(true)));
        approve(&tenant.approver(), &waits).await;
        assert_eq!(await_run(&client, &waits).await.ok()["run"]["state"], "succeeded");
        assert_eq!((versions(&world, "r7-waits").await, versions(&world, "r7-done").await), (1, 1));
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn runs_of_a_tenant_nobody_serves_stay_as_they_are() {
    let world = redis(1).await;
    let (here, yard) = (world.part(0), Yard::new());
    let run = yard.ask(&here.executor, RAZE, 1).await;
    yard.approved_by_the_dead(&here.store, run).await;
    let nobody = Tenant::parse("nobody").unwrap();
    Box::pin(here.executor.sweep(&yard.snapshot, &nobody)).await.unwrap();
    assert_eq!(yard.run(&here.store, run).await.state, RunState::Approved);
    assert_eq!(yard.target.all_effects(), 0);
}
