//! Memory: what was deleted, redacted, purged, and what replicas are told of it.

use crate::bench::{Bench, on_every_backend, principal, session_id, tenant};
use crate::documents::{ROOM, done, draft, entry, write};
use std::collections::BTreeSet;
use std::time::Duration;
use store::{
    Commit, Committed, DocOp, DocScope, Document, Draft, IndexName, IndexUpdate, RecordKey, RecordVersion, Removal,
    RemovalOutcome, ScopeLimits, Score, SideWrite, Store, StreamName, WriteOutcome, WritePrecondition,
};
use testkit::redis::RedisServer;

on_every_backend!(
    a_deleted_document_leaves_the_lists_and_its_versions_stay,
    deleting_needs_the_current_version,
    numbers_go_on_when_a_path_is_used_again,
    a_deleted_document_is_purged_and_forgotten_among_the_changes,
    what_was_deleted_is_purged_even_if_its_path_is_in_use_again,
    a_redacted_version_has_no_text_anywhere_and_the_document_goes_on,
    redacting_the_current_version_leaves_a_tombstone,
    redacting_everything_takes_the_tombstone_along,
    a_redaction_does_not_undo_an_end,
    a_redaction_does_not_disturb_a_writer,
    changes_are_told_once_and_in_order,
    documents_of_an_older_build_are_read_listed_deleted_and_redacted,
    what_changes_beside_a_record_changes_with_it_or_not_at_all,
    the_last_rank_is_above_all_others,
);

const SECRET: &str = "hunter2-hunter2";

fn removal() -> Removal {
    Removal {
        reason: "out of date".into(),
        keep: None,
        actor: principal("person"),
        actor_kind: "person".into(),
        session: None,
        tainted: false,
        run: None,
        approver: None,
    }
}

async fn delete(bench: &Bench, scope: &DocScope, path: &str, version: u64) -> RemovalOutcome {
    bench.acme().memory().delete(scope, path, version, &removal(), &entry()).await.unwrap()
}

async fn redact(bench: &Bench, scope: &DocScope, path: &str, version: Option<u64>) -> RemovalOutcome {
    bench.acme().memory().redact(scope, path, version, &removal(), &entry()).await.unwrap()
}

fn removed(removed: RemovalOutcome) -> (Document, Vec<u64>) {
    match removed {
        RemovalOutcome::Done { last, redacted } => (*last, redacted),
        other @ (RemovalOutcome::Conflict(_) | RemovalOutcome::Absent) => panic!("{other:?}"),
    }
}

async fn history(bench: &Bench, scope: &DocScope, path: &str) -> Vec<Document> {
    bench.acme().memory().history(scope, path, None, 100).await.unwrap()
}

async fn paths(bench: &Bench, scope: &DocScope, after: u64) -> Vec<String> {
    let changes = bench.acme().memory().changes(scope, after).await.unwrap();
    changes.into_iter().map(|change| change.path).collect()
}

async fn a_deleted_document_leaves_the_lists_and_its_versions_stay(bench: Bench) {
    let (memory, scope) = (bench.acme().memory(), DocScope::Tenant);
    write(&bench, &scope, "a", "one").await;
    let second = write(&bench, &scope, "a", "two").await;
    write(&bench, &scope, "b", "stays").await;

    let (tombstone, redacted) = removed(delete(&bench, &scope, "a", 2).await);

    assert_eq!((tombstone.version, tombstone.op, tombstone.deleted), (3, DocOp::Delete, true));
    assert_eq!((tombstone.evidence.as_str(), tombstone.provenance.actor.clone()), ("out of date", principal("person")));
    assert_eq!((tombstone.content.as_str(), redacted), ("", vec![]));
    assert_eq!(memory.get(&scope, "a").await.unwrap(), None);
    assert_eq!(memory.get_many(&scope, &["a".into()]).await.unwrap(), [None]);
    assert_eq!(memory.last(&scope, "a").await.unwrap(), Some(tombstone.clone()));
    assert_eq!(memory.heads(&scope, "").await.unwrap().len(), 1);
    let versions = history(&bench, &scope, "a").await;
    assert_eq!(versions.iter().map(|version| version.version).collect::<Vec<_>>(), [3, 2, 1]);
    assert_eq!((&versions[0], &versions[1]), (&tombstone, &second));
    assert_eq!(bench.acme().audit().page(None, 10).await.unwrap().len(), 4);
    let full = ScopeLimits { documents: 2, ..ROOM };
    done(memory.put(&scope, draft("c", "x"), WritePrecondition::Absent, &full, &entry()).await.unwrap());
}

async fn deleting_needs_the_current_version(bench: Bench) {
    let scope = DocScope::Tenant;
    assert_eq!(delete(&bench, &scope, "a", 1).await, RemovalOutcome::Absent);
    write(&bench, &scope, "a", "one").await;
    let there = write(&bench, &scope, "a", "two").await;
    assert_eq!(delete(&bench, &scope, "a", 1).await, RemovalOutcome::Conflict(Box::new(there)));
    removed(delete(&bench, &scope, "a", 2).await);
    assert_eq!(delete(&bench, &scope, "a", 3).await, RemovalOutcome::Absent);
}

async fn numbers_go_on_when_a_path_is_used_again(bench: Bench) {
    let (memory, scope) = (bench.acme().memory(), DocScope::Tenant);
    write(&bench, &scope, "a", "one").await;
    removed(delete(&bench, &scope, "a", 1).await);
    let late = memory.put(&scope, draft("a", "late"), WritePrecondition::Version(1), &ROOM, &entry()).await.unwrap();
    assert_eq!(late, WriteOutcome::Conflict(None));
    let anew = write(&bench, &scope, "a", "three").await;
    assert_eq!((anew.version, anew.deleted), (3, false));
    let ops: Vec<bool> = history(&bench, &scope, "a").await.iter().map(|version| version.deleted).collect();
    assert_eq!(ops, [false, true, false]);
    assert_eq!(memory.heads(&scope, "").await.unwrap().len(), 1);
}

async fn a_deleted_document_is_purged_and_forgotten_among_the_changes(bench: Bench) {
    let (memory, scope) = (bench.acme().memory(), DocScope::Tenant);
    write(&bench, &scope, "a", "one").await;
    write(&bench, &scope, "a", "two").await;
    let brief = Removal { keep: Some(Duration::from_secs(1)), ..removal() };
    let (tombstone, _) = removed(memory.delete(&scope, "a", 2, &brief, &entry()).await.unwrap());
    bench.pass(tombstone.updated_at.plus(Duration::from_millis(1_100))).await;

    assert_eq!(memory.last(&scope, "a").await.unwrap(), None);
    assert_eq!(memory.version(&scope, "a", 1).await.unwrap(), None);
    assert_eq!(memory.version(&scope, "a", 2).await.unwrap(), None);
    let limits = ScopeLimits { keep: brief.keep, ..ROOM };
    done(memory.put(&scope, draft("b", "x"), WritePrecondition::Absent, &limits, &entry()).await.unwrap());
    assert_eq!(paths(&bench, &scope, 0).await, ["b"], "the next write clears up");
    assert_eq!(write(&bench, &scope, "a", "anew").await.version, 1);
}

async fn what_was_deleted_is_purged_even_if_its_path_is_in_use_again(bench: Bench) {
    let (memory, scope) = (bench.acme().memory(), DocScope::Tenant);
    write(&bench, &scope, "a", SECRET).await;
    let brief = Removal { keep: Some(Duration::from_millis(40)), ..removal() };
    let (tombstone, _) = removed(memory.delete(&scope, "a", 1, &brief, &entry()).await.unwrap());
    write(&bench, &scope, "a", "anew").await;
    bench.pass(tombstone.updated_at.plus(Duration::from_millis(60))).await;

    assert_eq!(memory.version(&scope, "a", 1).await.unwrap(), None);
    assert_eq!(memory.get(&scope, "a").await.unwrap().unwrap().content, "anew");
    assert!(history(&bench, &scope, "a").await.iter().all(|version| version.content != SECRET));
}

/// Whether the secret is nowhere in what can be read of a document.
async fn is_clean(bench: &Bench, scope: &DocScope, path: &str) -> bool {
    let told = format!("{:?}{:?}", history(bench, scope, path).await, bench.acme().memory().heads(scope, "").await);
    !told.contains(SECRET)
}

async fn write_secret(bench: &Bench, scope: &DocScope) {
    let memory = bench.acme().memory();
    let secret = Draft {
        title: format!("about {SECRET}"),
        tags: vec![SECRET.into()],
        evidence: SECRET.into(),
        diff: format!("+{SECRET}"),
        ..draft("a", SECRET)
    };
    let base = memory
        .get(scope, "a")
        .await
        .unwrap()
        .map_or(WritePrecondition::Absent, |there| WritePrecondition::Version(there.version));
    done(memory.put(scope, secret, base, &ROOM, &entry()).await.unwrap());
}

async fn a_redacted_version_has_no_text_anywhere_and_the_document_goes_on(bench: Bench) {
    let (memory, scope) = (bench.acme().memory(), DocScope::Tenant);
    write(&bench, &scope, "a", "one").await;
    write_secret(&bench, &scope).await;
    let after = Draft { diff: format!("-{SECRET}\n+three"), ..draft("a", "three") };
    let third = done(memory.put(&scope, after, WritePrecondition::Version(2), &ROOM, &entry()).await.unwrap());
    write(&bench, &scope, "a", "four").await;
    assert!(!is_clean(&bench, &scope, "a").await);

    let (last, redacted) = removed(redact(&bench, &scope, "a", Some(2)).await);

    assert_eq!((last.version, last.content.as_str(), redacted), (4, "four", vec![2]));
    assert!(is_clean(&bench, &scope, "a").await);
    let second = memory.version(&scope, "a", 2).await.unwrap().unwrap();
    let redaction = second.redacted.unwrap();
    assert_eq!((redaction.by, redaction.reason.as_str()), (principal("person"), "out of date"));
    assert_eq!((second.sha256.as_str(), second.provenance.actor), ("", principal("agent")));
    let kept = memory.version(&scope, "a", 3).await.unwrap().unwrap();
    assert_eq!((kept.content, kept.sha256, kept.diff), (third.content, third.sha256, String::new()));
    assert_eq!(memory.version(&scope, "a", 1).await.unwrap().unwrap().content, "one");
    assert_eq!(write(&bench, &scope, "a", "five").await.version, 5, "a redaction is no version");
    assert_eq!(redact(&bench, &scope, "a", Some(9)).await, RemovalOutcome::Absent);
    assert_eq!(redact(&bench, &scope, "none", None).await, RemovalOutcome::Absent);
}

async fn redacting_the_current_version_leaves_a_tombstone(bench: Bench) {
    let (memory, scope) = (bench.acme().memory(), DocScope::Tenant);
    write(&bench, &scope, "a", "one").await;
    write_secret(&bench, &scope).await;

    let (last, redacted) = removed(redact(&bench, &scope, "a", Some(2)).await);

    assert_eq!((last.version, last.op, last.deleted, redacted), (3, DocOp::Redact, true, vec![2]));
    assert_eq!(last.redacted.map(|redaction| redaction.reason).as_deref(), Some("out of date"));
    assert!(is_clean(&bench, &scope, "a").await);
    assert_eq!(memory.get(&scope, "a").await.unwrap(), None);
    assert!(memory.heads(&scope, "").await.unwrap().is_empty());
    assert_eq!(memory.version(&scope, "a", 1).await.unwrap().unwrap().content, "one");
    assert_eq!(write(&bench, &scope, "a", "anew").await.version, 4);
}

async fn redacting_everything_takes_the_tombstone_along(bench: Bench) {
    let scope = DocScope::Tenant;
    write_secret(&bench, &scope).await;
    write_secret(&bench, &scope).await;
    removed(delete(&bench, &scope, "a", 2).await);
    assert!(!is_clean(&bench, &scope, "a").await);

    let (last, redacted) = removed(redact(&bench, &scope, "a", None).await);

    assert_eq!((last.version, last.op, redacted), (3, DocOp::Delete, vec![1, 2, 3]));
    assert!(is_clean(&bench, &scope, "a").await);
    assert!(history(&bench, &scope, "a").await.iter().all(|version| version.redacted.is_some()));
    let (_, again) = removed(redact(&bench, &scope, "a", Some(1)).await);
    assert_eq!(again, [1], "saying it twice changes nothing");
}

async fn a_redaction_does_not_undo_an_end(bench: Bench) {
    let (memory, scope) = (bench.acme().memory(), DocScope::Tenant);
    write(&bench, &scope, "a", "one").await;
    write(&bench, &scope, "a", "two").await;
    let brief = Removal { keep: Some(Duration::from_secs(1)), ..removal() };
    let (tombstone, _) = removed(memory.delete(&scope, "a", 2, &brief, &entry()).await.unwrap());
    let (_, redacted) = removed(redact(&bench, &scope, "a", Some(1)).await);
    assert_eq!(redacted, [1]);
    bench.pass(tombstone.updated_at.plus(Duration::from_millis(1_050))).await;
    assert_eq!(memory.version(&scope, "a", 1).await.unwrap(), None);
    assert_eq!(memory.version(&scope, "a", 2).await.unwrap(), None);
}

async fn a_redaction_does_not_disturb_a_writer(bench: Bench) {
    let scope = DocScope::Tenant;
    write(&bench, &scope, "a", "one").await;
    for version in 2..12 {
        let before = write(&bench, &scope, "a", "text").await;
        assert_eq!(before.version, version * 2 - 2);
        let memory = bench.acme().memory();
        let (limits, entry) = (ROOM, entry());
        let writing =
            memory.put(&scope, draft("a", "next"), WritePrecondition::Version(before.version), &limits, &entry);
        let (written, taken) = futures_util::future::join(writing, redact(&bench, &scope, "a", Some(1))).await;
        assert_eq!(done(written.unwrap()).version, version * 2 - 1);
        removed(taken);
    }
    let versions = history(&bench, &scope, "a").await;
    assert_eq!(versions.len(), 21);
    assert!(versions.iter().all(|version| version.redacted.is_some() == (version.version == 1)));
}

async fn changes_are_told_once_and_in_order(bench: Bench) {
    let (memory, scope) = (bench.acme().memory(), DocScope::User(principal("agent")));
    assert_eq!(memory.changes(&scope, 0).await.unwrap(), []);
    for path in ["a", "b", "c"] {
        write(&bench, &scope, path, path).await;
    }
    let all = memory.changes(&scope, 0).await.unwrap();
    assert_eq!(paths(&bench, &scope, 0).await, ["a", "b", "c"]);
    let mark = all[2].mark;
    assert_eq!(memory.changes(&scope, mark).await.unwrap(), [], "nothing is told twice");

    write(&bench, &scope, "b", "again").await;
    removed(delete(&bench, &scope, "a", 1).await);
    assert_eq!(paths(&bench, &scope, mark).await, ["b", "a"]);
    removed(redact(&bench, &scope, "c", Some(1)).await);
    assert_eq!(paths(&bench, &scope, 0).await, ["b", "a", "c"]);

    let mark = memory.changes(&scope, 0).await.unwrap()[2].mark;
    let names: Vec<String> = (0..40).map(|number| format!("many/{number}")).collect();
    futures_util::future::join_all(names.iter().map(|path| write(&bench, &scope, path, "x"))).await;
    let told = memory.changes(&scope, mark).await.unwrap();
    assert_eq!(told.len(), 40);
    assert_eq!(told.iter().map(|change| change.mark).collect::<BTreeSet<_>>().len(), 40, "no two share a mark");
    let before = bench.store.round_trips();
    assert_eq!(memory.changes(&scope, told[39].mark).await.unwrap(), []);
    assert_eq!(bench.store.round_trips() - before, 1);
}

/// A document as builds before this one wrote it: a record, a stream of versions, and two indexes.
async fn write_old(bench: &Bench, scope: &DocScope, path: &str, version: u64, content: &str) {
    let body = serde_json::json!({ "v": 1, "doc": {
        "path": path, "title": "Old", "type": "note", "tags": [], "trust": "approved", "version": version,
        "sha256": "ab", "content": content, "evidence": "seen",
        "provenance": {
            "actor": { "issuer": "https://login.example", "subject": "agent" }, "kind": "agent",
            "session": session_id(1).to_string(), "at": 1_763_280_000_000_u64, "tainted": false,
        },
        "updated_at": 1_763_280_000_000_u64,
    }});
    let body = serde_json::to_vec(&body).unwrap();
    let place = |index, rank| IndexUpdate { index, member: path.to_owned(), rank: Score::At(rank) };
    let commit = Commit {
        append: vec![(StreamName::versions(scope, path), body.clone())],
        index: vec![
            place(IndexName::documents(scope), 1_763_280_000_000),
            place(IndexName::document_sizes(scope), content.len() as u64),
        ],
        ..Commit::write(RecordKey::document(scope, path), RecordVersion::new(version - 1), body)
    };
    assert!(matches!(bench.acme().commit(commit).await.unwrap(), Committed::Done(..)));
}

async fn documents_of_an_older_build_are_read_listed_deleted_and_redacted(bench: Bench) {
    let (memory, scope) = (bench.acme().memory(), DocScope::Tenant);
    for path in ["a", "b", "c"] {
        write_old(&bench, &scope, path, 1, SECRET).await;
        write_old(&bench, &scope, path, 2, "two").await;
    }
    let read = memory.get(&scope, "a").await.unwrap().unwrap();
    assert_eq!((read.version, read.op, read.content.as_str()), (2, DocOp::Replace, "two"));
    assert_eq!(memory.version(&scope, "a", 1).await.unwrap().unwrap().op, DocOp::Create);
    let numbers = async |path: &str| {
        history(&bench, &scope, path).await.into_iter().map(|version| version.version).collect::<Vec<_>>()
    };
    assert_eq!(numbers("a").await, [2, 1]);
    assert_eq!(memory.heads(&scope, "").await.unwrap().iter().map(|head| head.bytes).collect::<Vec<_>>(), [3, 3, 3]);
    assert_eq!(paths(&bench, &scope, 0).await.len(), 3, "whoever begins is told of them");

    assert_eq!(write(&bench, &scope, "a", "three").await.version, 3);
    assert_eq!(numbers("a").await, [3, 2, 1]);
    let (_, redacted) = removed(redact(&bench, &scope, "a", Some(1)).await);
    assert_eq!(redacted, [1]);
    assert_eq!(numbers("a").await, [3, 2, 1]);
    assert_eq!(memory.version(&scope, "a", 2).await.unwrap().unwrap().content, "two");
    removed(delete(&bench, &scope, "b", 2).await);
    assert_eq!(numbers("b").await, [3, 2, 1]);
    let (_, redacted) = removed(redact(&bench, &scope, "b", None).await);
    assert_eq!(redacted, [1, 2, 3]);
    let (_, redacted) = removed(redact(&bench, &scope, "c", None).await);
    assert_eq!(redacted, [1, 2]);
    for path in ["a", "b", "c"] {
        assert!(is_clean(&bench, &scope, path).await, "{path}");
        assert!(bench.acme().read(&StreamName::versions(&scope, path), None, 9).await.unwrap().is_empty());
    }
}

async fn what_changes_beside_a_record_changes_with_it_or_not_at_all(bench: Bench) {
    let (acme, scope) = (bench.acme(), DocScope::Tenant);
    let key = |number| RecordKey::document_version(&scope, "a", number);
    let body = async |number| acme.get(&key(number)).await.unwrap().map(|record| record.body);
    let commit = |expect, beside| Commit {
        beside,
        ..Commit::write(RecordKey::document(&scope, "a"), RecordVersion::new(expect), b"x".to_vec())
    };
    let written = vec![
        SideWrite::Write(key(1), b"one".to_vec(), None),
        SideWrite::Write(key(2), b"two".to_vec(), None),
        SideWrite::Write(key(3), b"three".to_vec(), None),
    ];
    assert!(matches!(acme.commit(commit(7, written.clone())).await.unwrap(), Committed::Conflict(..)));
    assert_eq!(body(1).await, None);
    assert!(matches!(acme.commit(commit(0, written)).await.unwrap(), Committed::Done(..)));
    assert_eq!(body(1).await, Some(b"one".to_vec()));

    let span = Duration::from_millis(30);
    let changed = vec![
        SideWrite::Replace(key(1), b"changed".to_vec()),
        SideWrite::Replace(key(4), b"not there".to_vec()),
        SideWrite::End(key(2), span),
        SideWrite::End(key(2), Duration::from_secs(60)),
        SideWrite::End(key(4), span),
        SideWrite::Forget(key(3)),
    ];
    let Committed::Done(_, at) = acme.commit(commit(1, changed)).await.unwrap() else { panic!("it should be written") };
    assert_eq!((body(1).await, body(3).await, body(4).await), (Some(b"changed".to_vec()), None, None));
    bench.pass(at.plus(span)).await;
    assert_eq!((body(1).await, body(2).await), (Some(b"changed".to_vec()), None), "an end only comes nearer");
}

async fn the_last_rank_is_above_all_others(bench: Bench) {
    let (acme, index) = (bench.acme(), IndexName::document_changes(&DocScope::Tenant));
    let place = async |version, member: &str, rank| {
        let index = vec![IndexUpdate { index: index.clone(), member: member.into(), rank }];
        let key = RecordKey::session(session_id(1));
        let commit = Commit { index, ..Commit::write(key, RecordVersion::new(version), vec![]) };
        let Committed::Done(_, at) = acme.commit(commit).await.unwrap() else { panic!("it should be written") };
        at.millis()
    };
    let now = place(0, "a", Score::Last).await;
    assert_eq!(acme.range(&index, 0, u64::MAX, 9).await.unwrap(), [("a".to_owned(), now)]);
    let ahead = now + 1_000_000;
    place(1, "b", Score::At(ahead)).await;
    place(2, "a", Score::Last).await;
    place(3, "c", Score::Last).await;
    let ranks = [("b".to_owned(), ahead), ("a".to_owned(), ahead + 1), ("c".to_owned(), ahead + 2)];
    assert_eq!(acme.range(&index, 0, u64::MAX, 9).await.unwrap(), ranks);
    place(4, "a", Score::OutUpTo(ahead)).await;
    place(5, "b", Score::OutUpTo(ahead)).await;
    place(6, "none", Score::OutUpTo(ahead)).await;
    assert_eq!(acme.range(&index, 0, u64::MAX, 9).await.unwrap(), ranks[1..]);
}

#[tokio::test]
async fn what_one_replica_writes_is_among_the_changes_of_another_at_once() {
    let server = RedisServer::start();
    let config = crate::bench::config(server.url());
    let (one, other) = (Store::open(&config).await.unwrap(), Store::open(&config).await.unwrap());
    let (one, other) = (one.of(&tenant("acme")).memory(), other.of(&tenant("acme")).memory());
    let scope = DocScope::Tenant;
    let mut mark = 0;
    for number in 0..50 {
        let path = format!("notes/{number}");
        let (here, there) = if number % 2 == 0 { (&one, &other) } else { (&other, &one) };
        done(here.put(&scope, draft(&path, "x"), WritePrecondition::Absent, &ROOM, &entry()).await.unwrap());
        let told = there.changes(&scope, mark).await.unwrap();
        assert_eq!(told.iter().map(|change| &change.path).collect::<Vec<_>>(), [&path]);
        mark = told[0].mark;
        assert!(there.get(&scope, &path).await.unwrap().is_some());
    }
}
