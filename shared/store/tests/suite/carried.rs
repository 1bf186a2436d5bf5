//! What new sessions of a principal begin with: an earlier taint, and rejections that ended a step.

use crate::bench::{Bench, LIVES, call, on_every_backend, opening, principal, session, session_id};
use crate::runs::{entry, fold, long_before, open, run, run_id, said};
use domain::Moment;
use domain::run::Verdict;
use std::time::Duration;
use store::{ApprovalLookup, CallOpening, CarriedOver, CloseFacts, RunCasOutcome, SessionConfig, SessionUpdate};

on_every_backend!(
    a_rejection_that_ends_the_step_binds_new_sessions_until_it_is_cleared,
    a_call_learns_what_its_session_began_with_in_its_one_round_trip,
    a_taint_binds_new_sessions_of_its_owner_until_a_person_clears_it,
);

async fn a_rejection_that_ends_the_step_binds_new_sessions_until_it_is_cleared(bench: Bench) {
    let (acme, runs) = (bench.acme(), bench.acme().runs());
    let now = bench.store.now().await.unwrap();
    let held = open(&runs, &run(1, now)).await;
    let rejected = fold(&runs, &held, &said("ana", Verdict::Reject, now), now).await;

    let owner = rejected.run.asked.requester.clone();
    let carried = async |who: &domain::Principal| acme.sessions().carried_over(who, LIVES).await.unwrap().0;
    assert_eq!(carried(&owner).await, CarriedOver { tainted: false, stopped_by: Some(run_id(1)) });
    assert_eq!(carried(&principal("somebody-else")).await, CarriedOver::default());
    let at = |moment: Moment| domain::Session { owner: owner.clone(), ..session(2, moment) };
    for (opened_at, stopped) in [
        (long_before(now), None),
        (now, Some(run_id(1))),
        (now.plus(LIVES.carry_over - Duration::from_millis(1)), Some(run_id(1))),
        (now.plus(LIVES.carry_over), None),
    ] {
        assert_eq!(runs.stopped_by(&at(opened_at), LIVES).await.unwrap(), stopped, "{opened_at}");
    }
    let off = SessionConfig { carry_over: Duration::ZERO, ..LIVES };
    assert_eq!(runs.stopped_by(&at(now), off).await.unwrap(), None);

    assert!(matches!(runs.clear(&rejected, &entry()).await.unwrap(), RunCasOutcome::Done(_)));
    assert_eq!(carried(&owner).await, CarriedOver::default());
    assert_eq!(runs.stopped_by(&at(now), LIVES).await.unwrap(), None);
}

async fn a_call_learns_what_its_session_began_with_in_its_one_round_trip(bench: Bench) {
    let (acme, runs) = (bench.acme(), bench.acme().runs());
    let now = bench.store.now().await.unwrap();
    let held = open(&runs, &run(1, now)).await;
    fold(&runs, &held, &said("ana", Verdict::Reject, now), now).await;
    for (number, opened_at) in [(2, now), (3, long_before(now))] {
        acme.sessions().open(&session(number, opened_at), LIVES, &entry()).await.unwrap();
    }
    let gated = Some(ApprovalLookup { digest: "d9", key: Some("k"), reviewed: false, most_waiting: 3 });
    for (id, stopped) in [(Some(session_id(2)), true), (Some(session_id(3)), false), (None, true)] {
        let call = call(9, id);
        let before = bench.store.round_trips();
        let begun = acme.begin(&CallOpening { gated, ..opening(&call) }).await.unwrap().opened().unwrap();
        assert_eq!(bench.store.round_trips() - before, 1);
        assert_eq!(begun.past.stopped_by.is_some(), stopped, "{id:?}");
        acme.audit().close_now(begun.receipt, &CloseFacts::default()).await.unwrap();
    }
}

async fn a_taint_binds_new_sessions_of_its_owner_until_a_person_clears_it(bench: Bench) {
    let (acme, runs) = (bench.acme(), bench.acme().runs());
    let now = bench.store.now().await.unwrap();
    let clean = acme.sessions().open(&session(1, now), LIVES, &entry()).await.unwrap();
    let owner = clean.session.owner.clone();
    let before = bench.store.round_trips();
    let SessionUpdate::Done(tainted) = acme.sessions().taint(&clean, LIVES, &entry(), now).await.unwrap() else {
        panic!("it should be written")
    };
    assert_eq!(bench.store.round_trips() - before, 1, "the session and its mark are one write");
    assert!(tainted.session.tainted);
    let carried = async |who: &domain::Principal| acme.sessions().carried_over(who, LIVES).await.unwrap().0;
    assert_eq!(carried(&owner).await, CarriedOver { tainted: true, stopped_by: None });
    assert_eq!(carried(&principal("somebody-else")).await, CarriedOver::default());
    let brief = SessionConfig { carry_over: Duration::from_millis(1), ..LIVES };
    bench.pass(now.plus(Duration::from_millis(1))).await;
    assert_eq!(acme.sessions().carried_over(&owner, brief).await.unwrap().0, CarriedOver::default());

    let held = open(&runs, &run(1, now)).await;
    assert!(matches!(runs.clear(&held, &entry()).await.unwrap(), RunCasOutcome::Done(_)));
    assert_eq!(carried(&owner).await, CarriedOver::default());
}
