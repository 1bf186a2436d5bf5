use super::*;
use domain::Principal;
use store::{AuditEntry, DocOp, Draft, Phase, ScopeLimits, Store, Trust, WritePrecondition};

async fn store() -> Store {
    let config = store::Config::at("memory:");
    Store::open(&config).await.unwrap()
}

fn user(name: &str) -> DocScope {
    DocScope::User(Principal::new("i", name))
}

async fn write(memory: &DocumentStore, scope: &DocScope, path: &str, content: &str) {
    let draft = Draft {
        path: path.into(),
        title: path.into(),
        kind: "note".into(),
        tags: vec![],
        trust: Trust::Draft,
        content: content.into(),
        evidence: String::new(),
        references: vec![],
        op: DocOp::Create,
        suspect: false,
        findings: vec![],
        diff: String::new(),
        source: None,
        actor: Principal::new("i", "s"),
        actor_kind: "agent".into(),
        session: None,
        tainted: false,
        run: None,
        approver: None,
    };
    let limits = ScopeLimits { documents: 10_000, bytes: u64::MAX, keep: None, part: None };
    let put = memory
        .put(scope, draft, WritePrecondition::Absent, &limits, &AuditEntry::new(Phase::Transition))
        .await
        .unwrap();
    assert!(matches!(put, store::WriteOutcome::Done(_)));
}

fn kept(indexes: &DocumentIndexes) -> Vec<IndexKey> {
    indexes.kept.lock().unwrap().keys().cloned().collect()
}

#[tokio::test]
async fn the_index_not_used_for_longest_goes_first_and_comes_back_when_it_is_wanted() {
    let (store, acme, other) = (store().await, Tenant::parse("acme").unwrap(), Tenant::parse("other").unwrap());
    let indexes = DocumentIndexes::bounded(IndexBounds { tenant: MIB, process: 3 * LEAST_BYTES });
    let fresh = async |tenant: &Tenant, name: &str| {
        indexes.fresh(tenant, &user(name), &store.of(tenant).memory()).await.unwrap().state().index.len()
    };
    for (tenant, name) in [(&acme, "a"), (&acme, "b"), (&other, "a"), (&acme, "c")] {
        write(&store.of(tenant).memory(), &user(name), "user/notes/x", "words").await;
    }
    assert_eq!((fresh(&acme, "a").await, fresh(&acme, "b").await, fresh(&other, "a").await), (1, 1, 1));
    fresh(&acme, "a").await;
    fresh(&acme, "c").await;
    let left = kept(&indexes);
    assert_eq!(left.len(), 3);
    assert!(!left.contains(&(acme.clone(), user("b"))), "it was not used for longest");
    assert_eq!(fresh(&acme, "b").await, 1);
}

#[tokio::test]
async fn a_scope_that_is_too_large_keeps_its_newest_documents_and_says_what_is_missing() {
    let (store, acme) = (store().await, Tenant::parse("acme").unwrap());
    let memory = store.of(&acme).memory();
    for n in 0..200 {
        let words: String = (0..50).map(|word| format!("w{n}x{word} ")).collect();
        write(&memory, &DocScope::Tenant, &format!("tenant/runbooks/n{n:03}"), &words).await;
    }
    let most = 256 * 1024;
    let indexes = DocumentIndexes::bounded(IndexBounds { tenant: most, process: 10 * most });
    let scoped = indexes.fresh(&acme, &DocScope::Tenant, &memory).await.unwrap();
    let state = scoped.state();
    let (inside, outside) = (state.index.len(), state.left_out.len());
    assert!(inside > 10 && outside > 10 && inside + outside == 200, "{inside} and {outside}");
    assert!(state.index.bytes() < most + most / 4);
    assert!(state.left_out.contains("tenant/runbooks/n000") && !state.left_out.contains("tenant/runbooks/n199"));
}

#[tokio::test]
async fn a_gap_in_the_store_leaves_the_index_where_it_was() {
    let (store, acme) = (store().await, Tenant::parse("acme").unwrap());
    let (memory, indexes) = (store.of(&acme).memory(), DocumentIndexes::default());
    write(&memory, &DocScope::Tenant, "tenant/runbooks/a", "words").await;
    indexes.fresh(&acme, &DocScope::Tenant, &memory).await.unwrap();
    store.close().await;
    assert!(
        indexes.fresh(&acme, &DocScope::Tenant, &memory).await.is_err(),
        "a search is never answered from memory alone"
    );
}
