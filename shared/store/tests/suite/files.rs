//! What only the embedded store has: a file, its lock, and a start that may be refused.

use crate::bench::{Bench, config, session_id, tenant};
use store::{Commit, Committed, Config, RecordKey, RecordVersion, Store, StoreOpenError};

fn write(expect: u64) -> Commit {
    Commit::write(RecordKey::session(session_id(1)), RecordVersion::new(expect), b"a".to_vec())
}

#[tokio::test]
async fn a_file_that_is_open_is_locked_and_free_after_closing() {
    let bench = Bench::file().await;
    assert!(matches!(Store::open(&bench.config).await, Err(StoreOpenError::Locked)));
    assert!(matches!(bench.acme().commit(write(0)).await.unwrap(), Committed::Done(..)));
    let before = bench.store.now().await.unwrap();
    bench.store.close().await;

    let again = Store::open(&bench.config).await.unwrap();
    let record = again.of(&tenant("acme")).get(&RecordKey::session(session_id(1))).await.unwrap().unwrap();
    assert_eq!(record.version, RecordVersion::new(1));
    assert!(again.now().await.unwrap() >= before);
    assert!(bench.store.now().await.is_err(), "the closed handle answers nothing");
    assert!(!bench.store.health().await.ready());
}

#[tokio::test]
async fn a_file_that_is_no_store_is_refused_and_left_as_it_is() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("qm.redb");
    let junk = vec![7_u8; 8192];
    std::fs::write(&path, &junk).unwrap();
    let opened = Store::open(&config(format!("file:{}", path.display()))).await;
    assert!(matches!(opened, Err(StoreOpenError::Damaged(_))), "{opened:?}");
    assert_eq!(std::fs::read(&path).unwrap(), junk);
}

#[tokio::test]
async fn a_store_that_was_cut_short_or_overwritten_is_refused() {
    for damage in [|bytes: &mut Vec<u8>| bytes.truncate(bytes.len() / 2), |bytes: &mut Vec<u8>| bytes[..4096].fill(0)] {
        let bench = Bench::file().await;
        assert!(matches!(bench.acme().commit(write(0)).await.unwrap(), Committed::Done(..)));
        bench.store.close().await;
        let path = bench.config.url.strip_prefix("file:").unwrap();
        let mut bytes = std::fs::read(path).unwrap();
        damage(&mut bytes);
        std::fs::write(path, &bytes).unwrap();
        let opened = Store::open(&bench.config).await;
        assert!(matches!(opened, Err(StoreOpenError::Damaged(_))), "{opened:?}");
    }
}

#[tokio::test]
async fn a_folder_that_is_not_there_is_named_as_such() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("missing").join("qm.redb");
    let opened = Store::open(&config(format!("file:{}", path.display()))).await;
    assert!(matches!(opened, Err(StoreOpenError::File(_))), "{opened:?}");
}

#[tokio::test]
async fn an_address_of_no_known_kind_is_refused() {
    for url in ["", "sqlite:x", "memory:x"] {
        assert!(matches!(Store::open(&config(url.into())).await, Err(StoreOpenError::Address)), "{url}");
    }
    let bad = Store::open(&config("redis://".into())).await;
    assert!(matches!(bad, Err(StoreOpenError::RedisAddress(_))), "{bad:?}");
    let bent = Config { prefix: "a:{b}".into(), ..config("memory:".into()) };
    assert!(matches!(Store::open(&bent).await, Err(StoreOpenError::Prefix)));
}

#[tokio::test]
async fn an_embedded_store_is_well_and_says_what_it_is() {
    let bench = Bench::memory().await;
    assert!(bench.store.health().await.ready());
    assert_eq!(bench.store.backend(), "redb");
}

#[tokio::test]
async fn s2_garbled_pages_are_refused_at_the_start_unless_they_hold_nothing() {
    let bench = Bench::file().await;
    let (acme, body) = (bench.acme(), |number: u8| vec![number; 2_000]);
    let record = |number: u8| RecordKey::session(session_id(number));
    for number in 1..=200 {
        let written = acme.commit(Commit::write(record(number), RecordVersion::NONE, body(number))).await.unwrap();
        assert!(matches!(written, Committed::Done(..)));
    }
    bench.store.close().await;
    let path = bench.config.url.strip_prefix("file:").unwrap();
    let whole = std::fs::read(path).unwrap();
    const STRIDE: usize = 16 * 4096;
    let mut refused = 0;
    for from in (4096..whole.len()).step_by(STRIDE) {
        let mut garbled = whole.clone();
        garbled[from..(from + STRIDE).min(whole.len())].fill(0xA5);
        std::fs::write(path, &garbled).unwrap();
        let store = match Store::open(&bench.config).await {
            Ok(store) => store,
            Err(StoreOpenError::Damaged(_)) => {
                refused += 1;
                continue;
            }
            Err(other) => panic!("{other:?}"),
        };
        for number in 1..=200 {
            let found = store.of(&tenant("acme")).get(&record(number)).await.unwrap();
            assert_eq!(found.unwrap().body, body(number), "garbled from {from}");
        }
        store.close().await;
    }
    assert!(refused >= 200 * 2_000 / STRIDE, "only {refused} were noticed");
}
