//! Generated histories of changes: every backend answers like a plain map.
//!
//! Time and the places of stream entries are the store's own, so they are left out of the comparison.

use crate::bench::{Bench, session_id, tenant};
use domain::Moment;
use proptest::prelude::*;
use proptest::test_runner::{Config, TestRunner};
use std::collections::BTreeMap;
use store::{
    Commit, Committed, DocScope, IndexName, IndexUpdate, RecordKey, RecordVersion, SideWrite, StreamName, TenantStore,
};

/// One change, small enough that histories often meet.
#[derive(Debug, Clone)]
struct Change {
    record: u8,
    expect: u64,
    body: Option<Vec<u8>>,
    late: bool,
    append: Vec<(u8, Vec<u8>)>,
    index: Vec<(u8, u8, Option<u64>)>,
    beside: Vec<(u8, Aside)>,
}

/// What happens to a record that has no version of its own.
#[derive(Debug, Clone)]
enum Aside {
    Write(Vec<u8>),
    Replace(Vec<u8>),
    Forget,
}

fn change() -> impl Strategy<Value = Change> {
    let bytes = || prop::collection::vec(any::<u8>(), 0..6);
    let aside = prop_oneof![bytes().prop_map(Aside::Write), bytes().prop_map(Aside::Replace), Just(Aside::Forget)];
    (
        0..3_u8,
        0..4_u64,
        prop::option::weighted(0.8, bytes()),
        prop::bool::weighted(0.1),
        prop::collection::vec((0..2_u8, bytes()), 0..3),
        prop::collection::vec((0..2_u8, 0..3_u8, prop::option::weighted(0.7, 0..4_u64)), 0..4),
        prop::collection::vec((0..2_u8, aside), 0..3),
    )
        .prop_map(|(record, expect, body, late, append, index, beside)| Change {
            record,
            expect,
            body,
            late,
            append,
            index,
            beside,
        })
}

/// What a change gave, without the time.
#[derive(Debug, PartialEq)]
enum End {
    Done(u64),
    Conflict(u64, Vec<u8>),
    Late,
}

/// Everything that can be seen from outside.
#[derive(Debug, PartialEq, Default)]
struct Seen {
    records: Vec<Option<(u64, Vec<u8>)>>,
    streams: Vec<Vec<Vec<u8>>>,
    indexes: Vec<Vec<(String, u64)>>,
    aside: Vec<Option<Vec<u8>>>,
}

#[derive(Default)]
struct Model {
    records: BTreeMap<u8, (u64, Vec<u8>)>,
    streams: BTreeMap<u8, Vec<Vec<u8>>>,
    indexes: BTreeMap<u8, BTreeMap<String, u64>>,
    aside: BTreeMap<u8, Vec<u8>>,
}

impl Model {
    fn apply(&mut self, change: &Change) -> End {
        let (version, body) = self.records.get(&change.record).cloned().unwrap_or_default();
        if version != change.expect {
            return End::Conflict(version, body);
        }
        if change.late {
            return End::Late;
        }
        let result = match &change.body {
            Some(body) => {
                self.records.insert(change.record, (version + 1, body.clone()));
                version + 1
            }
            None => {
                self.records.remove(&change.record);
                0
            }
        };
        for (stream, body) in &change.append {
            self.streams.entry(*stream).or_default().push(body.clone());
        }
        for (index, member, rank) in &change.index {
            let members = self.indexes.entry(*index).or_default();
            match rank {
                Some(rank) => members.insert(member.to_string(), *rank),
                None => members.remove(&member.to_string()),
            };
        }
        for (number, aside) in &change.beside {
            match aside {
                Aside::Write(body) => drop(self.aside.insert(*number, body.clone())),
                Aside::Replace(body) => self.aside.get_mut(number).into_iter().for_each(|old| old.clone_from(body)),
                Aside::Forget => drop(self.aside.remove(number)),
            }
        }
        End::Done(result)
    }

    fn seen(&self) -> Seen {
        let ranked = |members: BTreeMap<String, u64>| {
            let mut members: Vec<(String, u64)> = members.into_iter().collect();
            members.sort_by_key(|(member, rank)| (*rank, member.clone()));
            members
        };
        Seen {
            records: (0..3).map(|record| self.records.get(&record).cloned()).collect(),
            streams: (0..2).map(|stream| self.streams.get(&stream).cloned().unwrap_or_default()).collect(),
            indexes: (0..2).map(|index| ranked(self.indexes.get(&index).cloned().unwrap_or_default())).collect(),
            aside: (0..2).map(|number| self.aside.get(&number).cloned()).collect(),
        }
    }
}

fn record(number: u8) -> RecordKey {
    RecordKey::session(session_id(number))
}

fn aside(number: u8) -> RecordKey {
    RecordKey::document_version(&DocScope::Tenant, "a", number.into())
}

fn stream(number: u8) -> StreamName {
    StreamName::versions(&DocScope::Tenant, &number.to_string())
}

fn index(number: u8) -> IndexName {
    IndexName::documents(&DocScope::Session(session_id(number)))
}

async fn apply(shelf: &TenantStore, change: &Change) -> End {
    let placing = |(number, member, rank): &(u8, u8, Option<u64>)| IndexUpdate {
        index: index(*number),
        member: member.to_string(),
        rank: (*rank).into(),
    };
    let beside = |(number, change): &(u8, Aside)| match change {
        Aside::Write(body) => SideWrite::Write(aside(*number), body.clone(), None),
        Aside::Replace(body) => SideWrite::Replace(aside(*number), body.clone()),
        Aside::Forget => SideWrite::Forget(aside(*number)),
    };
    let commit = Commit {
        body: change.body.clone(),
        not_after: change.late.then_some(Moment::from_millis(1)),
        append: change.append.iter().map(|(number, body)| (stream(*number), body.clone())).collect(),
        index: change.index.iter().map(placing).collect(),
        beside: change.beside.iter().map(beside).collect(),
        ..Commit::delete(record(change.record), RecordVersion::new(change.expect))
    };
    match shelf.commit(commit).await.unwrap() {
        Committed::Done(version, _) => End::Done(version.number()),
        Committed::Conflict(version, body) => End::Conflict(version.number(), body),
        Committed::Late(_) | Committed::NoRoom(_) => End::Late,
    }
}

async fn seen(shelf: &TenantStore) -> Seen {
    let mut seen = Seen::default();
    for number in 0..3 {
        let found = shelf.get(&record(number)).await.unwrap();
        seen.records.push(found.map(|record| (record.version.number(), record.body)));
    }
    for number in 0..2 {
        let entries = shelf.read(&stream(number), None, 1_000).await.unwrap();
        seen.streams.push(entries.into_iter().map(|(_, body)| body).collect());
        seen.indexes.push(shelf.range(&index(number), 0, u64::MAX, 1_000).await.unwrap());
        seen.aside.push(shelf.get(&aside(number)).await.unwrap().map(|record| record.body));
    }
    seen
}

/// Runs many histories, each as a tenant of its own, so that one store serves them all.
fn histories_agree(make: impl Future<Output = Bench>) {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    let bench = runtime.block_on(make);
    let next = std::sync::atomic::AtomicU64::new(0);
    let mut runner = TestRunner::new(Config { cases: 64, failure_persistence: None, ..Config::default() });
    let outcome = runner.run(&prop::collection::vec(change(), 0..24), |history| {
        let number = next.fetch_add(1, std::sync::atomic::Ordering::Relaxed);
        let shelf = bench.store.of(&tenant(&format!("t{number}")));
        runtime.block_on(async {
            let mut model = Model::default();
            for change in &history {
                prop_assert_eq!(apply(&shelf, change).await, model.apply(change));
            }
            prop_assert_eq!(seen(&shelf).await, model.seen());
            Ok(())
        })
    });
    outcome.unwrap_or_else(|failure| panic!("{failure}"));
}

#[test]
fn memory_answers_like_a_plain_map() {
    histories_agree(Bench::memory());
}

#[test]
fn a_file_answers_like_a_plain_map() {
    histories_agree(Bench::file());
}

#[test]
fn redis_answers_like_a_plain_map() {
    histories_agree(Bench::redis());
}

#[test]
fn redis_behind_sentinels_answers_like_a_plain_map() {
    histories_agree(Bench::sentinel());
}

#[test]
fn a_cluster_answers_like_a_plain_map() {
    histories_agree(Bench::cluster());
}
