//! Memory: documents, their versions, their quota, and whose they are.

use crate::bench::{Bench, on_every_backend, principal, session_id, tenant};
use std::time::Duration;
use store::{
    AuditEntry, DocOp, DocScope, Document, Draft, Phase, PrefixLimit, PromotedFrom, QuotaExceeded, Reference,
    ScopeLimits, Trust, WriteOutcome, WritePrecondition,
};

on_every_backend!(
    a_document_is_kept_with_its_provenance_and_its_versions,
    everything_a_draft_says_is_read_back,
    overwriting_needs_the_current_version,
    of_a_hundred_writers_of_one_version_exactly_one_wins,
    documents_are_listed_by_path_and_prefix,
    several_documents_are_read_in_one_round_trip_in_the_order_asked_for,
    history_is_paged_by_number,
    a_scope_sees_only_its_own,
    the_quota_counts_documents_and_bytes,
    a_part_of_a_scope_has_a_quota_of_its_own,
    what_a_session_kept_can_be_removed_at_once,
    many_documents_are_listed_in_few_round_trips,
);

pub(crate) const ROOM: ScopeLimits = ScopeLimits { documents: 100, bytes: 1 << 20, keep: None, part: None };

pub(crate) fn draft(path: &str, content: &str) -> Draft {
    Draft {
        path: path.into(),
        title: "A title".into(),
        kind: "note".into(),
        tags: vec!["shop".into()],
        trust: Trust::Draft,
        content: content.into(),
        evidence: "call_1".into(),
        references: vec![],
        op: DocOp::Create,
        suspect: false,
        findings: vec![],
        diff: String::new(),
        source: None,
        actor: principal("agent"),
        actor_kind: "agent".into(),
        session: Some(session_id(1)),
        tainted: true,
        run: None,
        approver: None,
    }
}

pub(crate) fn entry() -> AuditEntry {
    AuditEntry::new(Phase::Transition)
}

async fn put(
    bench: &Bench,
    scope: &DocScope,
    draft: Draft,
    base: WritePrecondition,
    limits: &ScopeLimits,
) -> WriteOutcome {
    bench.acme().memory().put(scope, draft, base, limits, &entry()).await.unwrap()
}

/// Writes a document whatever stands there.
pub(crate) async fn write(bench: &Bench, scope: &DocScope, path: &str, content: &str) -> Document {
    let there = bench.acme().memory().get(scope, path).await.unwrap();
    let base = there.map_or(WritePrecondition::Absent, |there| WritePrecondition::Version(there.version));
    done(put(bench, scope, draft(path, content), base, &ROOM).await)
}

pub(crate) fn done(put: WriteOutcome) -> Document {
    match put {
        WriteOutcome::Done(document) => document,
        other @ (WriteOutcome::Conflict(_) | WriteOutcome::TooMany(_) | WriteOutcome::TooLarge(_)) => {
            panic!("{other:?}")
        }
    }
}

async fn a_document_is_kept_with_its_provenance_and_its_versions(bench: Bench) {
    let memory = bench.acme().memory();
    let first = write(&bench, &DocScope::Tenant, "notes/a", "one").await;
    let second = write(&bench, &DocScope::Tenant, "notes/a", "two").await;
    assert_eq!((first.version, second.version), (1, 2));
    assert_eq!(first.sha256, "7692c3ad3540bb803c020b3aee66cd8887123234ea0c6e7143c0add73ff431ed");
    assert_eq!((second.provenance.session, second.provenance.tainted), (Some(session_id(1)), true));
    assert_eq!(second.provenance.at, second.updated_at);
    assert_eq!(memory.get(&DocScope::Tenant, "notes/a").await.unwrap(), Some(second.clone()));
    assert_eq!(memory.last(&DocScope::Tenant, "notes/a").await.unwrap(), Some(second.clone()));
    assert_eq!(memory.history(&DocScope::Tenant, "notes/a", None, 10).await.unwrap(), [second, first]);
    assert_eq!(bench.acme().audit().page(None, 10).await.unwrap().len(), 2);
}

async fn everything_a_draft_says_is_read_back(bench: Bench) {
    let at = bench.store.now().await.unwrap();
    let reference = Reference { id: "call_1".into(), tool: "k8s_get".into(), at, outcome: "ok".into() };
    let source = PromotedFrom { path: "session/notes/a".into(), version: 3, sha256: "ab".into() };
    let full = Draft {
        references: vec![reference.clone()],
        op: DocOp::Promote,
        suspect: true,
        findings: vec!["line 2: role markup".into()],
        diff: "+one".into(),
        source: Some(source.clone()),
        approver: Some(principal("person")),
        ..draft("a", "one")
    };
    done(put(&bench, &DocScope::Tenant, full, WritePrecondition::Absent, &ROOM).await);
    let read = bench.acme().memory().get(&DocScope::Tenant, "a").await.unwrap().unwrap();
    assert_eq!((read.references, read.op, read.suspect), (vec![reference], DocOp::Promote, true));
    assert_eq!((read.findings, read.diff.as_str()), (vec!["line 2: role markup".to_owned()], "+one"));
    assert_eq!((read.source, read.provenance.approver), (Some(source), Some(principal("person"))));
    assert!(!read.deleted && read.redacted.is_none());
}

async fn overwriting_needs_the_current_version(bench: Bench) {
    let scope = DocScope::Tenant;
    assert_eq!(
        put(&bench, &scope, draft("a", "x"), WritePrecondition::Version(1), &ROOM).await,
        WriteOutcome::Conflict(None)
    );
    let there = write(&bench, &scope, "a", "one").await;
    for wrong in [WritePrecondition::Absent, WritePrecondition::Version(0), WritePrecondition::Version(2)] {
        assert_eq!(
            put(&bench, &scope, draft("a", "x"), wrong, &ROOM).await,
            WriteOutcome::Conflict(Some(there.clone()))
        );
    }
    assert_eq!(bench.acme().memory().history(&scope, "a", None, 10).await.unwrap().len(), 1);
}

async fn of_a_hundred_writers_of_one_version_exactly_one_wins(bench: Bench) {
    let scope = DocScope::Tenant;
    let base = WritePrecondition::Version(write(&bench, &scope, "a", "one").await.version);
    let writers = (0..100).map(|writer| put(&bench, &scope, draft("a", &format!("by {writer}")), base, &ROOM));
    let ends = futures_util::future::join_all(writers).await;
    let won: Vec<&Document> = ends
        .iter()
        .filter_map(|end| if let WriteOutcome::Done(document) = end { Some(document) } else { None })
        .collect();
    assert_eq!(won.len(), 1);
    let told = ends.iter().filter(|end| **end == WriteOutcome::Conflict(Some(won[0].clone())));
    assert_eq!(told.count(), 99, "the others are told what is there now");
    assert_eq!(bench.acme().memory().history(&scope, "a", None, 10).await.unwrap().len(), 2);
}

async fn documents_are_listed_by_path_and_prefix(bench: Bench) {
    let memory = bench.acme().memory();
    for path in ["notes/b", "notes/a", "runbooks/a"] {
        write(&bench, &DocScope::Tenant, path, path).await;
    }
    let paths = |prefix: &'static str| {
        let memory = memory.clone();
        async move {
            let heads = memory.heads(&DocScope::Tenant, prefix).await.unwrap();
            heads.into_iter().map(|head| head.path).collect::<Vec<_>>()
        }
    };
    assert_eq!(paths("").await, ["notes/a", "notes/b", "runbooks/a"]);
    assert_eq!(paths("notes/").await, ["notes/a", "notes/b"]);
    assert!(paths("none").await.is_empty());

    let changed = write(&bench, &DocScope::Tenant, "notes/a", "longer than before").await;
    let head = memory.heads(&DocScope::Tenant, "notes/a").await.unwrap().remove(0);
    assert_eq!((head.version, head.sha256, head.bytes), (2, changed.sha256, 18));
    assert_eq!((head.tags, head.trust, head.updated_at), (changed.tags, changed.trust, changed.updated_at));
}

async fn several_documents_are_read_in_one_round_trip_in_the_order_asked_for(bench: Bench) {
    let memory = bench.acme().memory();
    for path in ["a", "b"] {
        write(&bench, &DocScope::Tenant, path, path).await;
    }
    let before = bench.store.round_trips();
    let asked = ["b".to_owned(), "none".to_owned(), "a".to_owned()];
    let found = memory.get_many(&DocScope::Tenant, &asked).await.unwrap();
    assert_eq!(bench.store.round_trips() - before, 1);
    let contents: Vec<Option<String>> = found.into_iter().map(|found| found.map(|found| found.content)).collect();
    assert_eq!(contents, [Some("b".to_owned()), None, Some("a".to_owned())]);
    assert!(memory.get_many(&DocScope::Tenant, &[]).await.unwrap().is_empty());
}

async fn history_is_paged_by_number(bench: Bench) {
    let (memory, scope) = (bench.acme().memory(), DocScope::Tenant);
    for number in 1..=7 {
        write(&bench, &scope, "a", &format!("text {number}")).await;
    }
    let page = |before, limit| {
        let (memory, scope) = (memory.clone(), scope.clone());
        async move {
            let page = memory.history(&scope, "a", before, limit).await.unwrap();
            assert!(page.iter().all(|version| version.content == format!("text {}", version.version)));
            page.into_iter().map(|version| version.version).collect::<Vec<_>>()
        }
    };
    assert_eq!(page(None, 3).await, [7, 6, 5]);
    assert_eq!(page(Some(5), 3).await, [4, 3, 2]);
    assert_eq!(page(Some(2), 3).await, [1]);
    assert_eq!(page(Some(1), 3).await, Vec::<u64>::new());
    assert_eq!(page(Some(99), 1).await, [7]);
    assert_eq!(page(None, 0).await, Vec::<u64>::new());
    for number in [1, 4, 7] {
        let content = memory.version(&scope, "a", number).await.unwrap().map(|version| version.content);
        assert_eq!(content, Some(format!("text {number}")));
    }
    assert_eq!(memory.version(&scope, "a", 8).await.unwrap(), None);
    assert_eq!(memory.version(&scope, "none", 1).await.unwrap(), None);
}

async fn a_scope_sees_only_its_own(bench: Bench) {
    let memory = bench.acme().memory();
    let own = DocScope::Session(session_id(1));
    write(&bench, &own, "a", "x").await;
    write(&bench, &own, "a", "y").await;
    let others = [
        DocScope::Session(session_id(2)),
        DocScope::User(principal("agent")),
        DocScope::User(principal("other")),
        DocScope::Tenant,
    ];
    for other in others {
        assert_eq!(memory.get(&other, "a").await.unwrap(), None);
        assert_eq!(memory.get_many(&other, &["a".into()]).await.unwrap(), [None]);
        assert_eq!(memory.heads(&other, "").await.unwrap(), []);
        assert_eq!(memory.history(&other, "a", None, 10).await.unwrap(), []);
        assert_eq!(memory.version(&other, "a", 1).await.unwrap(), None);
        assert_eq!(memory.changes(&other, 0).await.unwrap(), []);
    }
    let bolt = bench.store.of(&tenant("bolt")).memory();
    assert_eq!(bolt.get(&own, "a").await.unwrap(), None);
    assert_eq!(bolt.version(&own, "a", 1).await.unwrap(), None);
    assert_eq!(bolt.changes(&own, 0).await.unwrap(), []);
}

async fn the_quota_counts_documents_and_bytes(bench: Bench) {
    let scope = DocScope::Session(session_id(1));
    let tight = ScopeLimits { documents: 2, bytes: 10, ..ROOM };
    done(put(&bench, &scope, draft("a", "12345"), WritePrecondition::Absent, &tight).await);
    assert_eq!(
        put(&bench, &scope, draft("b", "123456"), WritePrecondition::Absent, &tight).await,
        WriteOutcome::TooLarge(QuotaExceeded::Scope)
    );
    done(put(&bench, &scope, draft("b", "12345"), WritePrecondition::Absent, &tight).await);
    assert_eq!(
        put(&bench, &scope, draft("c", ""), WritePrecondition::Absent, &tight).await,
        WriteOutcome::TooMany(QuotaExceeded::Scope)
    );
    done(put(&bench, &scope, draft("a", "1"), WritePrecondition::Version(1), &tight).await);
    done(put(&bench, &scope, draft("b", "123456789"), WritePrecondition::Version(1), &tight).await);
    assert_eq!(
        put(&bench, &scope, draft("a", "12"), WritePrecondition::Version(2), &tight).await,
        WriteOutcome::TooLarge(QuotaExceeded::Scope)
    );
}

async fn a_part_of_a_scope_has_a_quota_of_its_own(bench: Bench) {
    let scope = DocScope::Tenant;
    let part = PrefixLimit { prefix: "notes/".into(), documents: 2, bytes: 10 };
    let limits = ScopeLimits { part: Some(part), ..ROOM };
    done(
        put(&bench, &scope, draft("runbooks/long", "far more than ten bytes"), WritePrecondition::Absent, &limits)
            .await,
    );
    done(put(&bench, &scope, draft("notes/a", "12345"), WritePrecondition::Absent, &limits).await);
    assert_eq!(
        put(&bench, &scope, draft("notes/b", "123456"), WritePrecondition::Absent, &limits).await,
        WriteOutcome::TooLarge(QuotaExceeded::Part)
    );
    done(put(&bench, &scope, draft("notes/b", "12345"), WritePrecondition::Absent, &limits).await);
    assert_eq!(
        put(&bench, &scope, draft("notes/c", ""), WritePrecondition::Absent, &limits).await,
        WriteOutcome::TooMany(QuotaExceeded::Part)
    );
    done(put(&bench, &scope, draft("runbooks/more", "x"), WritePrecondition::Absent, &limits).await);
}

async fn what_a_session_kept_can_be_removed_at_once(bench: Bench) {
    let memory = bench.acme().memory();
    let (gone, stays) = (DocScope::Session(session_id(1)), DocScope::Session(session_id(2)));
    let limits = ScopeLimits { keep: Some(Duration::from_secs(3600)), ..ROOM };
    for scope in [&gone, &stays] {
        done(put(&bench, scope, draft("a", "x"), WritePrecondition::Absent, &limits).await);
        done(put(&bench, scope, draft("a", "y"), WritePrecondition::Version(1), &limits).await);
        done(put(&bench, scope, draft("b", "x"), WritePrecondition::Absent, &limits).await);
    }
    memory.remove_session(session_id(1)).await.unwrap();
    memory.remove_session(session_id(3)).await.unwrap();
    assert_eq!(memory.heads(&gone, "").await.unwrap(), []);
    assert_eq!(memory.get(&gone, "a").await.unwrap(), None);
    assert_eq!(memory.history(&gone, "a", None, 10).await.unwrap(), []);
    assert_eq!(memory.version(&gone, "a", 1).await.unwrap(), None);
    assert_eq!(memory.changes(&gone, 0).await.unwrap(), []);
    assert_eq!(memory.heads(&stays, "").await.unwrap().len(), 2);
    done(
        put(&bench, &gone, draft("a", "anew"), WritePrecondition::Absent, &ScopeLimits { documents: 1, ..limits })
            .await,
    );
}

async fn many_documents_are_listed_in_few_round_trips(bench: Bench) {
    for number in 0..100 {
        write(&bench, &DocScope::Tenant, &format!("notes/{number:03}"), "x").await;
    }
    let before = bench.store.round_trips();
    assert_eq!(bench.acme().memory().heads(&DocScope::Tenant, "notes/").await.unwrap().len(), 100);
    assert_eq!(bench.store.round_trips() - before, 2);
}
