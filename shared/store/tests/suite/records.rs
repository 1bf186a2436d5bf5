//! The compare-and-set, and what is written beside the record.

use crate::bench::{Bench, on_every_backend, session_id, tenant};
use domain::Moment;
use std::time::Duration;
use store::{
    Commit, Committed, DocScope, IndexName, IndexUpdate, RecordKey, RecordVersion, Score, StreamId, StreamName,
};

on_every_backend!(
    a_record_is_made_once_and_then_moves_by_version,
    a_conflict_hands_back_what_is_there,
    a_late_change_is_judged_by_the_stores_clock_and_writes_nothing,
    a_refused_change_leaves_no_trace_beside_the_record,
    a_deleted_record_is_gone_and_can_be_made_anew,
    an_expired_record_is_not_there,
    a_write_without_expiry_keeps_what_would_have_expired,
    of_many_writers_of_one_version_exactly_one_wins,
    a_stream_is_read_forwards_and_backwards_in_pages,
    a_place_beyond_either_end_of_a_stream_is_no_error,
    an_index_is_walked_by_rank_and_a_member_stands_once,
    a_stream_that_is_to_be_forgotten_is_and_starts_anew,
    one_tenant_does_not_see_another,
    bytes_of_every_value_survive,
    every_call_is_one_round_trip,
);

fn key() -> RecordKey {
    RecordKey::session(session_id(1))
}

fn write(expect: u64, body: &str) -> Commit {
    Commit::write(key(), RecordVersion::new(expect), body.into())
}

async fn a_record_is_made_once_and_then_moves_by_version(bench: Bench) {
    let acme = bench.acme();
    assert_eq!(acme.get(&key()).await.unwrap(), None);
    assert!(matches!(acme.commit(write(0, "a")).await.unwrap(), Committed::Done(version, _) if version.number() == 1));
    assert!(matches!(acme.commit(write(1, "b")).await.unwrap(), Committed::Done(version, _) if version.number() == 2));
    let record = acme.get(&key()).await.unwrap().unwrap();
    assert_eq!((record.version.number(), record.body.as_slice()), (2, &b"b"[..]));
}

async fn a_conflict_hands_back_what_is_there(bench: Bench) {
    let acme = bench.acme();
    assert_eq!(acme.commit(write(3, "x")).await.unwrap(), Committed::Conflict(RecordVersion::NONE, vec![]));
    assert!(matches!(acme.commit(write(0, "a")).await.unwrap(), Committed::Done(..)));
    assert_eq!(acme.commit(write(0, "b")).await.unwrap(), Committed::Conflict(RecordVersion::new(1), b"a".to_vec()));
    assert_eq!(acme.commit(write(2, "b")).await.unwrap(), Committed::Conflict(RecordVersion::new(1), b"a".to_vec()));
}

async fn a_late_change_is_judged_by_the_stores_clock_and_writes_nothing(bench: Bench) {
    let acme = bench.acme();
    let now = bench.store.now().await.unwrap();
    let late = Commit { not_after: Some(Moment::from_millis(now.millis() - 1)), ..write(0, "late") };
    assert!(matches!(acme.commit(late).await.unwrap(), Committed::Late(at) if at >= now));
    assert_eq!(acme.get(&key()).await.unwrap(), None);
    let in_time = Commit { not_after: Some(now.plus(Duration::from_secs(60))), ..write(0, "in time") };
    assert!(matches!(acme.commit(in_time).await.unwrap(), Committed::Done(_, at) if at >= now));
}

async fn a_refused_change_leaves_no_trace_beside_the_record(bench: Bench) {
    let acme = bench.acme();
    let index = IndexName::documents(&DocScope::Tenant);
    let beside = |commit: Commit| Commit {
        append: vec![(StreamName::audit(), b"{}".to_vec())],
        index: vec![IndexUpdate { index: index.clone(), member: "m".into(), rank: Score::At(1) }],
        ..commit
    };
    assert!(matches!(acme.commit(beside(write(7, "a"))).await.unwrap(), Committed::Conflict(..)));
    let late = Commit { not_after: Some(Moment::from_millis(1)), ..write(0, "a") };
    assert!(matches!(acme.commit(beside(late)).await.unwrap(), Committed::Late(_)));
    assert_eq!(acme.read(&StreamName::audit(), None, 10).await.unwrap(), []);
    assert_eq!(acme.range(&index, 0, u64::MAX, 10).await.unwrap(), []);
    assert!(matches!(acme.commit(beside(write(0, "a"))).await.unwrap(), Committed::Done(..)));
    assert_eq!(acme.read(&StreamName::audit(), None, 10).await.unwrap().len(), 1);
    assert_eq!(acme.range(&index, 0, u64::MAX, 10).await.unwrap(), [("m".to_owned(), 1)]);
}

async fn a_deleted_record_is_gone_and_can_be_made_anew(bench: Bench) {
    let acme = bench.acme();
    assert!(matches!(acme.commit(write(0, "a")).await.unwrap(), Committed::Done(..)));
    assert!(matches!(
        acme.commit(Commit::delete(key(), RecordVersion::new(9))).await.unwrap(),
        Committed::Conflict(..)
    ));
    let deleted = acme.commit(Commit::delete(key(), RecordVersion::new(1))).await.unwrap();
    assert!(matches!(deleted, Committed::Done(RecordVersion::NONE, _)));
    assert_eq!(acme.get(&key()).await.unwrap(), None);
    assert!(matches!(acme.commit(write(0, "b")).await.unwrap(), Committed::Done(version, _) if version.number() == 1));
}

async fn an_expired_record_is_not_there(bench: Bench) {
    let acme = bench.acme();
    let brief = Commit { expires: Some(Duration::from_millis(20)), ..write(0, "a") };
    let Committed::Done(_, at) = acme.commit(brief).await.unwrap() else { panic!("it should be written") };
    bench.pass(at.plus(Duration::from_millis(20))).await;
    assert_eq!(acme.get(&key()).await.unwrap(), None);
    assert_eq!(acme.commit(write(1, "b")).await.unwrap(), Committed::Conflict(RecordVersion::NONE, vec![]));
    assert!(matches!(acme.commit(write(0, "b")).await.unwrap(), Committed::Done(version, _) if version.number() == 1));
}

async fn a_write_without_expiry_keeps_what_would_have_expired(bench: Bench) {
    let acme = bench.acme();
    let brief = Commit { expires: Some(Duration::from_millis(1_000)), ..write(0, "a") };
    let Committed::Done(_, at) = acme.commit(brief).await.unwrap() else { panic!("it should be written") };
    assert!(matches!(acme.commit(write(1, "b")).await.unwrap(), Committed::Done(..)));
    bench.pass(at.plus(Duration::from_millis(1_000))).await;
    assert_eq!(acme.get(&key()).await.unwrap().unwrap().body, b"b");
}

async fn of_many_writers_of_one_version_exactly_one_wins(bench: Bench) {
    let acme = bench.acme();
    for round in 0..5 {
        let writers = (0..16).map(|writer| {
            let acme = acme.clone();
            async move { acme.commit(write(round, &writer.to_string())).await.unwrap() }
        });
        let ends = futures_util::future::join_all(writers).await;
        let winners = ends.iter().filter(|end| matches!(end, Committed::Done(..))).count();
        assert_eq!(winners, 1, "{ends:?}");
    }
}

async fn a_stream_is_read_forwards_and_backwards_in_pages(bench: Bench) {
    let acme = bench.acme();
    let entry = |number: u8| (StreamName::audit(), vec![number]);
    let commit = Commit { append: (0..5).map(entry).collect(), ..write(0, "a") };
    assert!(matches!(acme.commit(commit).await.unwrap(), Committed::Done(..)));
    let bodies = |entries: &[(StreamId, Vec<u8>)]| entries.iter().map(|(_, body)| body[0]).collect::<Vec<_>>();

    let first = acme.read(&StreamName::audit(), None, 2).await.unwrap();
    assert_eq!(bodies(&first), [0, 1]);
    let rest = acme.read(&StreamName::audit(), Some(first[1].0), 10).await.unwrap();
    assert_eq!(bodies(&rest), [2, 3, 4]);
    let newest = acme.read_back(&StreamName::audit(), None, 2).await.unwrap();
    assert_eq!(bodies(&newest), [4, 3]);
    assert_eq!(bodies(&acme.read_back(&StreamName::audit(), Some(newest[1].0), 10).await.unwrap()), [2, 1, 0]);
    assert_eq!(acme.read(&StreamName::audit(), Some(rest[2].0), 10).await.unwrap(), []);
    assert_eq!(acme.read(&StreamName::audit(), None, 0).await.unwrap(), []);
}

async fn a_place_beyond_either_end_of_a_stream_is_no_error(bench: Bench) {
    let acme = bench.acme();
    let commit = Commit { append: vec![(StreamName::audit(), vec![1])], ..write(0, "a") };
    assert!(matches!(acme.commit(commit).await.unwrap(), Committed::Done(..)));
    let place = |text: &str| StreamId::parse(text);
    for (text, behind, before) in [
        ("0-0", 1, 0),
        ("0-1", 1, 0),
        ("18446744073709551615-18446744073709551614", 0, 1),
        ("18446744073709551615-18446744073709551615", 0, 1),
    ] {
        assert_eq!(acme.read(&StreamName::audit(), place(text), 9).await.unwrap().len(), behind, "{text}");
        assert_eq!(acme.read_back(&StreamName::audit(), place(text), 9).await.unwrap().len(), before, "{text}");
    }
}

async fn an_index_is_walked_by_rank_and_a_member_stands_once(bench: Bench) {
    let acme = bench.acme();
    let index = IndexName::documents(&DocScope::Tenant);
    let place = |member: &str, rank: Option<u64>| IndexUpdate {
        index: index.clone(),
        member: member.into(),
        rank: rank.into(),
    };
    let placings = vec![place("b", Some(5)), place("a", Some(5)), place("c", Some(1)), place("d", Some(9))];
    assert!(matches!(acme.commit(Commit { index: placings, ..write(0, "a") }).await.unwrap(), Committed::Done(..)));
    let moved = vec![place("c", Some(7)), place("d", None), place("never there", None)];
    assert!(matches!(acme.commit(Commit { index: moved, ..write(1, "a") }).await.unwrap(), Committed::Done(..)));

    let all = [("a".to_owned(), 5), ("b".to_owned(), 5), ("c".to_owned(), 7)];
    assert_eq!(acme.range(&index, 0, u64::MAX, 10).await.unwrap(), all);
    assert_eq!(acme.range(&index, 0, u64::MAX, 1).await.unwrap(), all[..1]);
    assert_eq!(acme.range(&index, 6, 7, 10).await.unwrap(), all[2..]);
    assert_eq!(acme.range(&index, 8, u64::MAX, 10).await.unwrap(), []);
}

async fn a_stream_that_is_to_be_forgotten_is_and_starts_anew(bench: Bench) {
    let acme = bench.acme();
    let stream = StreamName::versions(&DocScope::Tenant, "a").forgotten_after(Some(Duration::from_millis(20)));
    let commit = |expect, body: &str| Commit { append: vec![(stream.clone(), body.into())], ..write(expect, "x") };
    let Committed::Done(_, at) = acme.commit(commit(0, "old")).await.unwrap() else { panic!("it should be written") };
    bench.pass(at.plus(Duration::from_millis(20))).await;
    assert_eq!(acme.read(&stream, None, 10).await.unwrap(), []);
    let kept = StreamName::versions(&DocScope::Tenant, "a");
    let commit = Commit { append: vec![(kept.clone(), b"new".to_vec())], ..write(1, "x") };
    assert!(matches!(acme.commit(commit).await.unwrap(), Committed::Done(..)));
    assert_eq!(acme.read(&kept, None, 10).await.unwrap().len(), 1);
}

async fn one_tenant_does_not_see_another(bench: Bench) {
    let (acme, bolt) = (bench.acme(), bench.store.of(&tenant("bolt")));
    let commit = Commit { append: vec![(StreamName::audit(), b"{}".to_vec())], ..write(0, "a") };
    assert!(matches!(acme.commit(commit).await.unwrap(), Committed::Done(..)));
    assert_eq!(bolt.get(&key()).await.unwrap(), None);
    assert_eq!(bolt.read(&StreamName::audit(), None, 10).await.unwrap(), []);
    assert!(matches!(bolt.commit(write(0, "b")).await.unwrap(), Committed::Done(..)));
    assert_eq!(acme.get(&key()).await.unwrap().unwrap().body, b"a");
}

async fn bytes_of_every_value_survive(bench: Bench) {
    let acme = bench.acme();
    let bytes: Vec<u8> = (0..=255).collect();
    let commit = Commit {
        append: vec![(StreamName::audit(), bytes.clone())],
        ..Commit::write(key(), RecordVersion::NONE, bytes.clone())
    };
    assert!(matches!(acme.commit(commit).await.unwrap(), Committed::Done(..)));
    assert_eq!(acme.get(&key()).await.unwrap().unwrap().body, bytes);
    assert_eq!(acme.read(&StreamName::audit(), None, 1).await.unwrap()[0].1, bytes);
    assert_eq!(acme.commit(write(0, "")).await.unwrap(), Committed::Conflict(RecordVersion::new(1), bytes));
    assert!(matches!(acme.commit(write(1, "")).await.unwrap(), Committed::Done(..)));
    assert_eq!(acme.get(&key()).await.unwrap().unwrap().body, b"");
}

async fn every_call_is_one_round_trip(bench: Bench) {
    let acme = bench.acme();
    let before = bench.store.round_trips();
    assert!(matches!(acme.commit(write(0, "a")).await.unwrap(), Committed::Done(..)));
    acme.get(&key()).await.unwrap();
    bench.store.now().await.unwrap();
    assert_eq!(bench.store.round_trips() - before, 3);
}
