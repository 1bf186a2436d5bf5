//! Somebody who can write into the store, and has no key, puts an old secret back or takes a new one away.

use crate::bench::*;
use std::sync::Arc;
use store::{Commit, Committed, IndexName, IndexUpdate, RecordKey, RecordVersion, Score, Store, StoredRecord};
use vault::{Environment, Missing, RecordSealer, Vault};

/// A vault as the service has it: on a store that seals.
async fn service(bench: &Bench) -> (Vault, Store) {
    let cipher = Arc::new(RecordSealer::new(&[1; 32], &[]).unwrap());
    let store = Store::open_sealed(&bench.config, cipher).await.unwrap();
    let vault = Vault::new(store.clone(), sealer(1, &[]), bench.folder.path().join("secrets"), Environment::default());
    (vault, store)
}

fn key() -> RecordKey {
    RecordKey::tenant_secret("pull")
}

async fn stands(store: &Store) -> Option<StoredRecord> {
    store.of(&acme()).get(&key()).await.unwrap()
}

/// Writes a record and moves its mark, so that every replica looks at it.
async fn write(store: &Store, body: Vec<u8>) {
    let expect = stands(store).await.map_or(RecordVersion::NONE, |record| record.version);
    let index = IndexName::tenant_secret_changes();
    let moved = vec![IndexUpdate { index, member: "pull".into(), rank: Score::Last }];
    let commit = Commit { index: moved, ..Commit::write(key(), expect, body) };
    assert!(matches!(store.of(&acme()).commit(commit).await.unwrap(), Committed::Done(..)));
}

async fn delete(store: &Store) {
    let version = stands(store).await.unwrap().version;
    let index = IndexName::tenant_secret_changes();
    let moved = vec![IndexUpdate { index, member: "pull".into(), rank: Score::Out }];
    let commit = Commit { index: moved, ..Commit::delete(key(), version) };
    assert!(matches!(store.of(&acme()).commit(commit).await.unwrap(), Committed::Done(..)));
}

async fn put_back(store: &Store, record: &StoredRecord) {
    // The mark stays in the index, so that the next one is above it and every replica looks again.
    let version = stands(store).await.unwrap().version;
    let gone = store.of(&acme()).commit(Commit::delete(key(), version)).await.unwrap();
    assert!(matches!(gone, Committed::Done(..)));
    for _ in 1..record.version.number() {
        write(store, b"filler".to_vec()).await;
    }
    write(store, record.body.clone()).await;
    assert_eq!(stands(store).await.as_ref(), Some(record));
}

#[tokio::test]
async fn an_old_secret_cannot_be_put_back() {
    let bench = Bench::redis().await;
    bench.mount("acme", "pull", "from a file");
    let (vault, store) = service(&bench).await;
    vault.refresh(&acme()).await.unwrap();
    set(&vault, "pull", "old").await;
    let old = stands(&bench.store).await.unwrap();
    set(&vault, "pull", "new").await;
    vault.refresh(&acme()).await.unwrap();
    let new = stands(&bench.store).await.unwrap();

    put_back(&bench.store, &old).await;
    vault.refresh(&acme()).await.unwrap();
    assert_eq!(read(&vault, "pull").as_deref(), Ok("new"), "what this process has seen holds");
    assert_eq!(store.unauthentic(), 1, "and it is told");

    // Under another number it opens for nobody, whatever they remember.
    write(&bench.store, old.body.clone()).await;
    write(&bench.store, old.body.clone()).await;
    vault.refresh(&acme()).await.unwrap();
    assert_eq!(read(&vault, "pull").as_deref(), Ok("new"));
    let (stranger, _) = service(&bench).await;
    stranger.refresh(&acme()).await.unwrap();
    assert_eq!(read(&stranger, "pull"), Err(Missing::Sealed { name: "pull".into() }), "not even the file beneath");

    delete(&bench.store).await;
    vault.refresh(&acme()).await.unwrap();
    assert_eq!(read(&vault, "pull").as_deref(), Ok("new"), "nobody has forgotten it");

    set(&vault, "pull", "newest").await;
    vault.refresh(&acme()).await.unwrap();
    assert_eq!((read(&vault, "pull").as_deref(), store.unauthentic()), (Ok("newest"), 0), "it can be set again");
    assert_ne!(stands(&bench.store).await.unwrap().body, new.body);
    vault.forget(&acme(), "pull", &ada(), None).await.unwrap();
    vault.refresh(&acme()).await.unwrap();
    assert_eq!(read(&vault, "pull").as_deref(), Ok("from a file"), "and forgotten");
}

#[tokio::test]
async fn what_one_replica_forgets_another_forgets() {
    let bench = Bench::redis().await;
    let ((one, _), (two, store)) = (service(&bench).await, service(&bench).await);
    for vault in [&one, &two] {
        vault.refresh(&acme()).await.unwrap();
    }
    set(&one, "pull", "value").await;
    two.refresh(&acme()).await.unwrap();
    one.forget(&acme(), "pull", &ada(), None).await.unwrap();
    two.refresh(&acme()).await.unwrap();
    assert_eq!((read(&two, "pull"), store.unauthentic()), (unknown("pull"), 0));
}
