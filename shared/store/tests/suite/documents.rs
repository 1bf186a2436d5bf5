//! Memory: documents, their versions, their quota, and whose they are.

use crate::bench::{Bench, on_every_backend, principal, session_id, tenant};
use std::time::Duration;
use store::{AuditEntry, DocScope, Document, Draft, Limits, Phase, Put, Trust, Version};

on_every_backend!(
    a_document_is_kept_with_its_provenance_and_its_versions,
    overwriting_needs_the_current_version,
    documents_are_listed_by_path_and_prefix,
    a_scope_sees_only_its_own,
    the_quota_counts_documents_and_bytes,
    what_a_session_kept_can_be_removed_at_once,
    many_documents_are_read_in_few_round_trips,
);

const ROOM: Limits = Limits { documents: 100, bytes: 1 << 20, keep: None };

fn draft(path: &str, content: &str) -> Draft {
    Draft {
        path: path.into(),
        title: "A title".into(),
        kind: "note".into(),
        tags: vec!["shop".into()],
        trust: Trust::Draft,
        content: content.into(),
        evidence: "call_1".into(),
        actor: principal("agent"),
        actor_kind: "agent".into(),
        session: Some(session_id(1)),
        tainted: true,
        run: None,
    }
}

async fn put(bench: &Bench, scope: &DocScope, draft: Draft, expect: u64, limits: Limits) -> Put {
    let entry = AuditEntry::new(Phase::Transition);
    bench.acme().memory().put(scope, draft, Version::new(expect), limits, &entry).await.unwrap()
}

fn done(put: Put) -> Document {
    match put {
        Put::Done(document) => document,
        other @ (Put::Conflict(_) | Put::TooMany | Put::TooLarge) => panic!("{other:?}"),
    }
}

async fn a_document_is_kept_with_its_provenance_and_its_versions(bench: Bench) {
    let memory = bench.acme().memory();
    let first = done(put(&bench, &DocScope::Tenant, draft("notes/a", "one"), 0, ROOM).await);
    let second = done(put(&bench, &DocScope::Tenant, draft("notes/a", "two"), 1, ROOM).await);
    assert_eq!((first.version, second.version), (1, 2));
    assert_eq!(first.sha256, "7692c3ad3540bb803c020b3aee66cd8887123234ea0c6e7143c0add73ff431ed");
    assert_eq!((second.provenance.session, second.provenance.tainted), (Some(session_id(1)), true));
    assert_eq!(second.provenance.at, second.updated_at);
    assert_eq!(memory.get(&DocScope::Tenant, "notes/a").await.unwrap(), Some(second.clone()));
    assert_eq!(memory.history(&DocScope::Tenant, "notes/a", 10).await.unwrap(), [second, first]);
    assert_eq!(bench.acme().audit().page(None, 10).await.unwrap().len(), 2);
}

async fn overwriting_needs_the_current_version(bench: Bench) {
    let scope = DocScope::Tenant;
    assert_eq!(put(&bench, &scope, draft("a", "x"), 1, ROOM).await, Put::Conflict(None));
    let there = done(put(&bench, &scope, draft("a", "one"), 0, ROOM).await);
    for wrong in [0, 2] {
        assert_eq!(put(&bench, &scope, draft("a", "x"), wrong, ROOM).await, Put::Conflict(Some(there.clone())));
    }
    assert_eq!(bench.acme().memory().history(&scope, "a", 10).await.unwrap().len(), 1);
}

async fn documents_are_listed_by_path_and_prefix(bench: Bench) {
    let memory = bench.acme().memory();
    for path in ["notes/b", "notes/a", "runbooks/a"] {
        done(put(&bench, &DocScope::Tenant, draft(path, path), 0, ROOM).await);
    }
    let paths = |prefix: &'static str| {
        let memory = memory.clone();
        async move {
            let heads = memory.list(&DocScope::Tenant, prefix).await.unwrap();
            heads.into_iter().map(|head| head.path).collect::<Vec<_>>()
        }
    };
    assert_eq!(paths("").await, ["notes/a", "notes/b", "runbooks/a"]);
    assert_eq!(paths("notes/").await, ["notes/a", "notes/b"]);
    assert!(paths("none").await.is_empty());
}

async fn a_scope_sees_only_its_own(bench: Bench) {
    let memory = bench.acme().memory();
    let own = DocScope::Session(session_id(1));
    done(put(&bench, &own, draft("a", "x"), 0, ROOM).await);
    let others = [
        DocScope::Session(session_id(2)),
        DocScope::User(principal("agent")),
        DocScope::User(principal("other")),
        DocScope::Tenant,
    ];
    for other in others {
        assert_eq!(memory.get(&other, "a").await.unwrap(), None);
        assert_eq!(memory.list(&other, "").await.unwrap(), []);
        assert_eq!(memory.history(&other, "a", 10).await.unwrap(), []);
    }
    let bolt = bench.store.of(&tenant("bolt")).memory();
    assert_eq!(bolt.get(&own, "a").await.unwrap(), None);
}

async fn the_quota_counts_documents_and_bytes(bench: Bench) {
    let scope = DocScope::Session(session_id(1));
    let tight = Limits { documents: 2, bytes: 10, keep: None };
    done(put(&bench, &scope, draft("a", "12345"), 0, tight).await);
    assert_eq!(put(&bench, &scope, draft("b", "123456"), 0, tight).await, Put::TooLarge);
    done(put(&bench, &scope, draft("b", "12345"), 0, tight).await);
    assert_eq!(put(&bench, &scope, draft("c", ""), 0, tight).await, Put::TooMany);
    done(put(&bench, &scope, draft("a", "1"), 1, tight).await);
    done(put(&bench, &scope, draft("b", "123456789"), 1, tight).await);
    assert_eq!(put(&bench, &scope, draft("a", "12"), 2, tight).await, Put::TooLarge);
}

async fn what_a_session_kept_can_be_removed_at_once(bench: Bench) {
    let memory = bench.acme().memory();
    let (gone, stays) = (DocScope::Session(session_id(1)), DocScope::Session(session_id(2)));
    let limits = Limits { keep: Some(Duration::from_secs(3600)), ..ROOM };
    for scope in [&gone, &stays] {
        done(put(&bench, scope, draft("a", "x"), 0, limits).await);
        done(put(&bench, scope, draft("b", "x"), 0, limits).await);
    }
    memory.remove_session(session_id(1)).await.unwrap();
    memory.remove_session(session_id(3)).await.unwrap();
    assert_eq!(memory.list(&gone, "").await.unwrap(), []);
    assert_eq!(memory.get(&gone, "a").await.unwrap(), None);
    assert_eq!(memory.history(&gone, "a", 10).await.unwrap(), []);
    assert_eq!(memory.list(&stays, "").await.unwrap().len(), 2);
    done(put(&bench, &gone, draft("a", "anew"), 0, Limits { documents: 1, ..limits }).await);
}

async fn many_documents_are_read_in_few_round_trips(bench: Bench) {
    for number in 0..100 {
        done(put(&bench, &DocScope::Tenant, draft(&format!("notes/{number:03}"), "x"), 0, ROOM).await);
    }
    let before = bench.store.round_trips();
    assert_eq!(bench.acme().memory().list(&DocScope::Tenant, "notes/").await.unwrap().len(), 100);
    assert_eq!(bench.store.round_trips() - before, 3);
}
