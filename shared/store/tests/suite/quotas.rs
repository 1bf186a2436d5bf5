//! How much is stored for one caller and one tenant, and that reaching it stops nobody else.

use crate::bench::{Bench, LIVES, call, on_every_backend, opening, principal, session, session_id, tenant};
use crate::runs::{open, run};
use domain::run::{Answer, Run, RunEvent, Verdict};
use domain::{Code, Moment, RunId, Session};
use std::time::Duration;
use store::{
    AuditEntry, CallOpening, CloseFacts, Commit, Committed, IndexName, Phase, RecordKey, RunCasOutcome, SessionConfig,
    StoreError, StoreLimits, StoreQuota,
};

on_every_backend!(
    sessions_are_bounded_per_caller_and_per_tenant,
    sessions_that_are_over_make_room,
    the_bytes_of_runs_are_bounded_per_caller_and_per_tenant,
    a_tenant_that_has_reached_its_quota_is_refused_while_others_and_decisions_go_on,
    what_is_counted_is_what_was_written_and_forgotten,
);

fn entry() -> AuditEntry {
    AuditEntry::new(Phase::Transition)
}

fn owned(number: u8, owner: &str, at: Moment) -> Session {
    Session { owner: principal(owner), ..session(number, at) }
}

fn quota(error: StoreError) -> StoreQuota {
    assert_eq!(error.code(), Code::QuotaExceeded);
    match error {
        StoreError::QuotaReached(quota) => quota,
        other @ (StoreError::Unavailable { .. }
        | StoreError::Timeout
        | StoreError::Full
        | StoreError::ReadOnly
        | StoreError::Corrupt { .. }
        | StoreError::NotAuthentic { .. }) => panic!("{other:?}"),
    }
}

async fn sessions_are_bounded_per_caller_and_per_tenant(bench: Bench) {
    let limits = StoreLimits { sessions_per_caller: 2, sessions_per_tenant: 3, ..StoreLimits::default() };
    let bench = bench.limited(limits).await;
    let (sessions, now) = (bench.acme().sessions(), bench.store.now().await.unwrap());
    let open = async |number: u8, owner: &str| sessions.open(&owned(number, owner, now), LIVES, &entry()).await;
    open(1, "ana").await.unwrap();
    open(2, "ana").await.unwrap();
    assert_eq!(quota(open(3, "ana").await.unwrap_err()), StoreQuota::CallerSessions(2));
    assert_eq!(sessions.find(session_id(3), &principal("ana"), LIVES).await.unwrap(), None, "nothing is written");
    open(4, "bo").await.unwrap();
    assert_eq!(quota(open(5, "bo").await.unwrap_err()), StoreQuota::TenantSessions(3));
    let bolt = bench.store.of(&tenant("bolt")).sessions();
    bolt.open(&owned(6, "ana", now), LIVES, &entry()).await.unwrap();

    assert!(sessions.close(session_id(1), &principal("ana"), &entry()).await.unwrap().is_some());
    open(7, "ana").await.unwrap();
    assert!(sessions.find(session_id(2), &principal("ana"), LIVES).await.unwrap().is_some(), "the others go on");
}

async fn sessions_that_are_over_make_room(bench: Bench) {
    let bench = bench.limited(StoreLimits { sessions_per_caller: 2, ..StoreLimits::default() }).await;
    let (sessions, now) = (bench.acme().sessions(), bench.store.now().await.unwrap());
    let brief = SessionConfig { idle: Duration::from_millis(200), ..LIVES };
    let ana = principal("ana");
    sessions.open(&owned(1, "ana", now), brief, &entry()).await.unwrap();
    let used = sessions.open(&owned(2, "ana", now), brief, &entry()).await.unwrap();
    // The second lives on because it is used.
    sessions.find(used.session.id, &ana, LIVES).await.unwrap();
    bench.pass(now.plus(Duration::from_millis(250))).await;
    assert!(sessions.open(&owned(3, "ana", now), LIVES, &entry()).await.is_err(), "nobody has looked yet");

    assert_eq!(sessions.tidy(Some(&ana), LIVES, 100).await.unwrap(), 1);
    assert_eq!(sessions.tidy(Some(&ana), LIVES, 100).await.unwrap(), 0, "those in use are not looked at again at once");
    sessions.open(&owned(3, "ana", now), LIVES, &entry()).await.unwrap();
    assert!(sessions.open(&owned(4, "ana", now), LIVES, &entry()).await.is_err(), "those in use count");
    assert_eq!(sessions.tidy(None, LIVES, 100).await.unwrap(), 1);
}

fn large(number: u8, requester: &str, bytes: usize, at: Moment) -> Run {
    let mut run = run(number, at);
    run.asked.requester = principal(requester);
    run.asked.digest = format!("d{number}");
    run.asked.arguments = format!(r#"{{"text":"{}"}}"#, "x".repeat(bytes));
    run
}

async fn the_bytes_of_runs_are_bounded_per_caller_and_per_tenant(bench: Bench) {
    let limits = StoreLimits { run_bytes_per_caller: 30_000, run_bytes_per_tenant: 40_000, ..StoreLimits::default() };
    let bench = bench.limited(limits).await;
    let (runs, now) = (bench.acme().runs(), bench.store.now().await.unwrap());
    let held = open(&runs, &large(1, "ana", 20_000, now)).await;
    let refused = runs.open(&large(2, "ana", 20_000, now), None, 9, &entry()).await.unwrap_err();
    assert_eq!(quota(refused), StoreQuota::CallerRuns(30_000));
    let refused = runs.open(&large(3, "bo", 25_000, now), None, 9, &entry()).await.unwrap_err();
    assert_eq!(quota(refused), StoreQuota::TenantRuns(40_000));
    open(&runs, &large(4, "bo", 10_000, now)).await;
    assert_eq!(runs.ids(None, None, 9).await.unwrap().len(), 2, "what was refused left nothing behind");

    // What was begun can be decided, however much that adds.
    let said =
        Answer { by: principal("po"), verdict: Verdict::Reject, reason: Some("y".repeat(20_000)), at: now, span: None };
    let next = held.run.apply(&RunEvent::Answered(said), now).unwrap();
    assert!(matches!(runs.commit(&held, &next, None, &entry()).await.unwrap(), RunCasOutcome::Done(_)));
    let bolt = bench.store.of(&tenant("bolt")).runs();
    open(&bolt, &large(5, "ana", 20_000, now)).await;
}

async fn a_tenant_that_has_reached_its_quota_is_refused_while_others_and_decisions_go_on(bench: Bench) {
    let bench = bench.limited(StoreLimits { bytes_per_tenant: 8_000, ..StoreLimits::default() }).await;
    let (acme, bolt) = (bench.acme(), bench.store.of(&tenant("bolt")));
    let now = bench.store.now().await.unwrap();
    let held = open(&acme.runs(), &large(1, "ana", 1_000, now)).await;
    let refused = loop {
        match acme.begin(&opening(&call(1, None))).await {
            Ok(begun) => {
                let receipt = begun.opened().unwrap().receipt;
                acme.audit().close_now(receipt, &CloseFacts::default()).await.unwrap();
            }
            Err(error) => break error,
        }
    };
    assert_eq!(quota(refused), StoreQuota::TenantBytes(8_000));
    assert!((8_000..10_000).contains(&acme.usage().await.unwrap()));
    let full = StoreQuota::TenantBytes(8_000);
    let session = acme.sessions().open(&owned(1, "ana", now), LIVES, &entry()).await;
    assert_eq!(quota(session.unwrap_err()), full);
    let run = acme.runs().open(&large(2, "ana", 10, now), None, 9, &entry()).await;
    assert_eq!(quota(run.unwrap_err()), full);

    let said = Answer { by: principal("po"), verdict: Verdict::Approve, reason: None, at: now, span: None };
    let next = held.run.apply(&RunEvent::Answered(said), now).unwrap();
    assert!(matches!(acme.runs().commit(&held, &next, None, &entry()).await.unwrap(), RunCasOutcome::Done(_)));
    assert!(!acme.audit().page(None, 10).await.unwrap().is_empty() && acme.seal(100).await.unwrap().count > 0);
    let waits = call(2, None);
    let begun = acme.begin(&CallOpening { held_to_quota: false, ..opening(&waits) }).await.unwrap().opened().unwrap();
    acme.audit().close_now(begun.receipt, &CloseFacts::default()).await.unwrap();
    let begun = bolt.begin(&opening(&call(3, None))).await.unwrap().opened().unwrap();
    bolt.audit().close_now(begun.receipt, &CloseFacts::default()).await.unwrap();
}

async fn what_is_counted_is_what_was_written_and_forgotten(bench: Bench) {
    let (acme, runs) = (bench.acme(), bench.acme().runs());
    let now = bench.store.now().await.unwrap();
    let long_ago = Moment::from_millis(now.millis() - 40 * 24 * 60 * 60 * 1000);
    let held = open(&runs, &large(1, "ana", 5_000, long_ago)).await;
    let body = acme.get(&RecordKey::run(held.run.id)).await.unwrap().unwrap().body.len() as u64;
    let entries: u64 = log_bytes(&acme).await;
    assert_eq!(acme.usage().await.unwrap(), body + entries);

    let grown = Run { changed_at: long_ago.plus(Duration::from_secs(1)), ..held.run.clone() };
    let RunCasOutcome::Done(held) = runs.commit(&held, &grown, None, &entry()).await.unwrap() else { panic!() };
    let body = acme.get(&RecordKey::run(held.run.id)).await.unwrap().unwrap().body.len() as u64;
    assert_eq!(acme.usage().await.unwrap(), body + log_bytes(&acme).await);

    let gone = Commit::delete(RecordKey::run(held.run.id), held.version);
    assert!(matches!(acme.commit(gone).await.unwrap(), Committed::Done(..)));
    assert_eq!((runs.tidy(9).await.unwrap(), runs.tidy(9).await.unwrap()), (1, 0));
    assert_eq!(acme.usage().await.unwrap(), log_bytes(&acme).await, "a run that is gone counts for nothing");
    let left = async |index: IndexName| acme.range(&index, 0, u64::MAX >> 11, 9).await.unwrap();
    for index in
        [IndexName::run_sizes(), IndexName::run_sizes_of(&principal("ana")), IndexName::runs_of(&principal("ana"))]
    {
        assert_eq!(left(index).await, []);
    }
    assert_eq!(acme.get(&RecordKey::run_brief(RunId::from_random([1; 16]))).await.unwrap(), None);
}

/// How many bytes stand in the audit log.
async fn log_bytes(tenant: &store::TenantStore) -> u64 {
    let entries = tenant.read(&store::StreamName::audit(), None, 1_000).await.unwrap();
    entries.iter().map(|(_, body)| body.len() as u64).sum()
}
