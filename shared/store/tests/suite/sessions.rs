//! Sessions: whose they are, how long they live, and how two changes fold.

use crate::bench::{Bench, LIVES, call, on_every_backend, opening, principal, session, session_id, tenant};
use domain::{Level, Moment, Session, ToolsetName};
use std::time::Duration;
use store::{
    AuditEntry, CloseFacts, Commit, Committed, Phase, RecordKey, RecordVersion, SessionConfig, SessionUpdate,
    StreamName, Topic,
};

on_every_backend!(
    a_session_is_found_by_its_owner_in_one_round_trip,
    somebody_elses_session_reads_like_none,
    a_stranger_neither_prolongs_a_session_nor_keeps_its_owner_from_it,
    a_session_slides_while_it_is_used_and_ends_when_it_is_not,
    a_session_ends_with_its_longest_life_however_busy,
    two_changes_of_one_version_fold_into_both,
    a_change_to_a_session_that_is_over_is_told_so,
    only_its_owner_closes_a_session,
    the_last_to_take_a_stream_holds_it,
    an_unreadable_record_is_an_error_and_not_an_absence,
);

fn load(held: &Session, toolset: &str) -> Session {
    held.load(&[(ToolsetName::parse(toolset).unwrap(), Level::Read)]).unwrap()
}

fn entry() -> AuditEntry {
    AuditEntry::new(Phase::Transition)
}

async fn a_session_is_found_by_its_owner_in_one_round_trip(bench: Bench) {
    let sessions = bench.acme().sessions();
    let now = bench.store.now().await.unwrap();
    let opened = sessions.open(&session(1, now), LIVES, &AuditEntry::new(Phase::Transition)).await.unwrap();
    let before = bench.store.round_trips();
    let found = sessions.find(session_id(1), &principal("agent"), LIVES).await.unwrap();
    assert_eq!(found, Some(opened));
    assert_eq!(bench.store.round_trips() - before, 1);
    assert!(
        sessions.open(&session(1, now), LIVES, &AuditEntry::new(Phase::Transition)).await.is_err(),
        "an id is given once"
    );
}

async fn somebody_elses_session_reads_like_none(bench: Bench) {
    let now = bench.store.now().await.unwrap();
    bench.acme().sessions().open(&session(1, now), LIVES, &AuditEntry::new(Phase::Transition)).await.unwrap();
    let other_issuer = domain::Principal { issuer: "https://other.example".into(), ..principal("agent") };
    for stranger in [principal("other"), other_issuer] {
        assert_eq!(bench.acme().sessions().find(session_id(1), &stranger, LIVES).await.unwrap(), None);
    }
    let bolt = bench.store.of(&tenant("bolt")).sessions();
    assert_eq!(bolt.find(session_id(1), &principal("agent"), LIVES).await.unwrap(), None);
    assert_eq!(bench.acme().sessions().find(session_id(2), &principal("agent"), LIVES).await.unwrap(), None);
}

async fn a_stranger_neither_prolongs_a_session_nor_keeps_its_owner_from_it(bench: Bench) {
    let sessions = bench.acme().sessions();
    let opened_at = bench.store.now().await.unwrap();
    let short = SessionConfig { idle: Duration::from_millis(400), ..LIVES };
    for number in [1, 2] {
        sessions.open(&session(number, opened_at), short, &AuditEntry::new(Phase::Transition)).await.unwrap();
        assert_eq!(sessions.find(session_id(number), &principal("other"), LIVES).await.unwrap(), None);
    }
    let foreign = Session { owner: principal("other"), ..session(3, opened_at) };
    sessions.open(&foreign, short, &AuditEntry::new(Phase::Transition)).await.unwrap();
    let begun = bench.acme().begin(&opening(&call(1, Some(session_id(3))))).await.unwrap().opened().unwrap();
    assert_eq!(begun.session, None);
    bench.acme().audit().close_now(begun.receipt, &CloseFacts::default()).await.unwrap();
    assert!(sessions.find(session_id(2), &principal("agent"), LIVES).await.unwrap().is_some());
    let last_touch = bench.store.now().await.unwrap();
    bench.pass(last_touch.plus(Duration::from_millis(400))).await;
    assert_eq!(sessions.find(session_id(1), &principal("agent"), LIVES).await.unwrap(), None, "it was left alone");
    assert_eq!(sessions.find(session_id(3), &principal("other"), LIVES).await.unwrap(), None, "by a call as well");
    assert!(sessions.find(session_id(2), &principal("agent"), LIVES).await.unwrap().is_some(), "its owner used it");
}

async fn a_session_slides_while_it_is_used_and_ends_when_it_is_not(bench: Bench) {
    let sessions = bench.acme().sessions();
    let opened_at = bench.store.now().await.unwrap();
    let short = SessionConfig { idle: Duration::from_millis(400), ..LIVES };
    sessions.open(&session(1, opened_at), short, &AuditEntry::new(Phase::Transition)).await.unwrap();
    // A use with a long span moves the end; without it the session would be over at the second look.
    assert!(sessions.find(session_id(1), &principal("agent"), LIVES).await.unwrap().is_some());
    let later = bench.store.now().await.unwrap().plus(Duration::from_millis(400));
    bench.pass(later).await;
    let brief = SessionConfig { idle: Duration::from_millis(10), ..LIVES };
    let held = sessions.find(session_id(1), &principal("agent"), LIVES).await.unwrap().unwrap();
    let next = load(&held.session, "k8s");
    assert!(matches!(sessions.commit(&held, &next, brief, &entry(), None).await.unwrap(), SessionUpdate::Done(_)));
    let idle = bench.store.now().await.unwrap().plus(Duration::from_millis(10));
    bench.pass(idle).await;
    assert_eq!(sessions.find(session_id(1), &principal("agent"), LIVES).await.unwrap(), None);
}

async fn a_session_ends_with_its_longest_life_however_busy(bench: Bench) {
    let sessions = bench.acme().sessions();
    let long_ago = Moment::from_millis(bench.store.now().await.unwrap().millis() - 1_000_000);
    let held = sessions.open(&session(1, long_ago), LIVES, &AuditEntry::new(Phase::Transition)).await.unwrap();
    let short = SessionConfig { longest: Duration::from_millis(999_000), ..LIVES };
    assert_eq!(sessions.find(session_id(1), &principal("agent"), short).await.unwrap(), None);
    let next = load(&held.session, "k8s");
    assert_eq!(sessions.commit(&held, &next, short, &entry(), None).await.unwrap(), SessionUpdate::Gone);
    assert!(sessions.find(session_id(1), &principal("agent"), LIVES).await.unwrap().is_some());
}

async fn two_changes_of_one_version_fold_into_both(bench: Bench) {
    let (acme, sessions) = (bench.acme(), bench.acme().sessions());
    let now = bench.store.now().await.unwrap();
    let held = sessions.open(&session(1, now), LIVES, &AuditEntry::new(Phase::Transition)).await.unwrap();
    let before = bench.store.round_trips();
    let wake = Some(Topic::Session(session_id(1)));
    let first = sessions.commit(&held, &load(&held.session, "k8s"), LIVES, &entry(), wake.clone()).await.unwrap();
    assert!(matches!(first, SessionUpdate::Done(ref held) if held.version == RecordVersion::new(2)));
    assert_eq!(bench.store.round_trips() - before, 1);
    let second = sessions.commit(&held, &load(&held.session, "helm"), LIVES, &entry(), wake.clone()).await.unwrap();
    let SessionUpdate::Conflict(newer) = second else { panic!("the second should conflict") };
    let third = sessions.commit(&newer, &load(&newer.session, "helm"), LIVES, &entry(), wake).await.unwrap();
    let SessionUpdate::Done(held) = third else { panic!("the fold should be written") };
    let names: Vec<&str> = held.session.loaded.iter().map(|(name, _)| name.as_str()).collect();
    assert_eq!(names, ["helm", "k8s"]);
    assert_eq!(
        acme.read(&StreamName::audit(), None, 10).await.unwrap().len(),
        3,
        "an entry per change, none per conflict"
    );
}

async fn a_change_to_a_session_that_is_over_is_told_so(bench: Bench) {
    let sessions = bench.acme().sessions();
    let now = bench.store.now().await.unwrap();
    let held = sessions.open(&session(1, now), LIVES, &AuditEntry::new(Phase::Transition)).await.unwrap();
    assert!(
        sessions
            .close(session_id(1), &principal("agent"), &AuditEntry::new(Phase::Transition))
            .await
            .unwrap()
            .is_some()
    );
    let next = load(&held.session, "k8s");
    assert_eq!(sessions.commit(&held, &next, LIVES, &entry(), None).await.unwrap(), SessionUpdate::Gone);
}

async fn only_its_owner_closes_a_session(bench: Bench) {
    let sessions = bench.acme().sessions();
    let now = bench.store.now().await.unwrap();
    sessions.open(&session(1, now), LIVES, &AuditEntry::new(Phase::Transition)).await.unwrap();
    assert!(
        sessions
            .close(session_id(1), &principal("other"), &AuditEntry::new(Phase::Transition))
            .await
            .unwrap()
            .is_none()
    );
    assert!(sessions.find(session_id(1), &principal("agent"), LIVES).await.unwrap().is_some());
    assert!(
        sessions
            .close(session_id(1), &principal("agent"), &AuditEntry::new(Phase::Transition))
            .await
            .unwrap()
            .is_some()
    );
    assert!(
        sessions
            .close(session_id(1), &principal("agent"), &AuditEntry::new(Phase::Transition))
            .await
            .unwrap()
            .is_none()
    );
}

async fn the_last_to_take_a_stream_holds_it(bench: Bench) {
    let sessions = bench.acme().sessions();
    assert_eq!(sessions.stream_owner(session_id(1)).await.unwrap(), None);
    sessions.take_stream(session_id(1), "first", LIVES).await.unwrap();
    sessions.take_stream(session_id(1), "second", LIVES).await.unwrap();
    assert_eq!(sessions.stream_owner(session_id(1)).await.unwrap().as_deref(), Some("second"));
}

async fn an_unreadable_record_is_an_error_and_not_an_absence(bench: Bench) {
    let acme = bench.acme();
    let junk = Commit::write(RecordKey::session(session_id(1)), RecordVersion::NONE, b"junk".to_vec());
    assert!(matches!(acme.commit(junk).await.unwrap(), Committed::Done(..)));
    let found = acme.sessions().find(session_id(1), &principal("agent"), LIVES).await;
    assert_eq!(found.unwrap_err().code(), domain::Code::Internal);
}
