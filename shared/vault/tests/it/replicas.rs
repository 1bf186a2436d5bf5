//! What is set on one replica, seen by another.

use crate::bench::*;
use std::time::Duration;
use store::{Store, Topic, WakeUp};
use vault::{Environment, Missing, Vault};

async fn other(bench: &Bench) -> Vault {
    let store = Store::open(&bench.config).await.unwrap();
    Vault::new(store, sealer(1, &[]), bench.folder.path().join("secrets"), Environment::default())
}

#[tokio::test]
async fn what_is_set_on_one_replica_is_read_on_another_after_its_refresh() {
    let bench = Bench::redis().await;
    let (one, two) = (&bench.vault, other(&bench).await);
    bench.mount("acme", "pull", "from a file");
    for vault in [one, &two] {
        vault.refresh(&acme()).await.unwrap();
    }
    let store = Store::open(&bench.config).await.unwrap();
    let mut watch = store.of(&acme()).watch();
    assert_eq!(watch.next().await, WakeUp::Resync);

    set(one, "pull", "first").await;
    let woken = tokio::time::timeout(Duration::from_secs(30), watch.next()).await.unwrap();
    assert_eq!(woken, WakeUp::Topic(Topic::Secrets));
    assert_eq!(read(&two, "pull").as_deref(), Ok("from a file"), "it was not asked yet");
    assert!(two.refresh(&acme()).await.unwrap());
    assert_eq!(read(&two, "pull").as_deref(), Ok("first"));
    assert!(!two.refresh(&acme()).await.unwrap(), "nothing has changed");

    set(&two, "pull", "second").await;
    set(&two, "push", "other").await;
    assert!(one.refresh(&acme()).await.unwrap());
    assert_eq!((read(one, "pull").as_deref(), read(one, "push").as_deref()), (Ok("second"), Ok("other")));

    one.forget(&acme(), "push", &ada(), None).await.unwrap();
    assert!(two.refresh(&acme()).await.unwrap());
    assert_eq!(read(&two, "push"), unknown("push"));
}

#[tokio::test]
async fn a_secret_that_is_forgotten_and_set_again_is_noticed_however_fast() {
    let bench = Bench::redis().await;
    let (one, two) = (&bench.vault, other(&bench).await);
    for number in 0..50 {
        set(one, "pull", &format!("value {number}")).await;
        two.refresh(&acme()).await.unwrap();
        one.forget(&acme(), "pull", &ada(), None).await.unwrap();
        set(one, "pull", &format!("again {number}")).await;
        two.refresh(&acme()).await.unwrap();
        assert_eq!(read(&two, "pull"), Ok(format!("again {number}")));
        one.forget(&acme(), "pull", &ada(), None).await.unwrap();
    }
}

#[tokio::test]
async fn setting_from_two_replicas_at_once_leaves_one_value_on_both() {
    let bench = Bench::redis().await;
    let (one, two) = (&bench.vault, other(&bench).await);
    for round in 0..20 {
        let (mine, theirs) = (format!("one {round}"), format!("two {round}"));
        tokio::join!(set(one, "pull", &mine), set(&two, "pull", &theirs));
        let acme = acme();
        let (seen, also) = tokio::join!(one.refresh(&acme), two.refresh(&acme));
        seen.unwrap();
        also.unwrap();
        assert_eq!(read(one, "pull"), read(&two, "pull"));
    }
}

#[tokio::test]
async fn a_record_of_a_later_build_hides_no_other_and_lets_nothing_below_it_through() {
    let bench = Bench::redis().await;
    bench.mount("acme", "strange", "from a file");
    set(&bench.vault, "strange", "value").await;
    set(&bench.vault, "plain", "value").await;
    let key = store::RecordKey::tenant_secret("strange");
    let acmes = bench.store.of(&acme());
    let commit = store::Commit::write(key, store::RecordVersion::new(1), b"{\"v\":9}\nblob".to_vec());
    assert!(matches!(acmes.commit(commit).await.unwrap(), store::Committed::Done(..)));

    let fresh = other(&bench).await;
    fresh.refresh(&acme()).await.unwrap();
    assert_eq!(read(&fresh, "plain").as_deref(), Ok("value"));
    assert_eq!(read(&fresh, "strange"), Err(Missing::Sealed { name: "strange".into() }));
}
