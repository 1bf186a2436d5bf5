//! Sealed secrets: set, set again, forgotten, and what a copy of them notices.

use crate::bench::*;
use store::{
    AuditEntry, MOST_SECRETS, Phase, SealedSecret, SecretForgotten, SecretPut, SecretStore, Topic, WakeUp,
    WritePrecondition,
};

on_every_backend!(
    a_secret_is_kept_with_who_set_it_and_when,
    what_changed_is_told_by_its_mark,
    a_name_that_was_forgotten_and_set_again_is_another_version_with_another_mark,
    a_change_counts_only_on_what_it_was_made_for,
    no_more_than_so_many_are_kept,
    sealing_anew_leaves_who_set_it_and_loses_against_a_change,
    every_change_is_in_the_audit_log_and_wakes_whoever_watches,
);

fn entry() -> AuditEntry {
    AuditEntry::new(Phase::Admin)
}

async fn set(secrets: &SecretStore, name: &str, sealed: &[u8]) -> SealedSecret {
    match secrets.put(name, sealed.to_vec(), &principal("ada"), None, &entry()).await.unwrap() {
        SecretPut::Done(secret) => secret,
        other @ (SecretPut::Conflict(_) | SecretPut::TooMany) => panic!("{other:?}"),
    }
}

async fn get(secrets: &SecretStore, name: &str) -> Option<SealedSecret> {
    secrets.get_many(&[name.to_owned()]).await.unwrap().pop().unwrap().unwrap()
}

async fn a_secret_is_kept_with_who_set_it_and_when(bench: Bench) {
    let secrets = bench.acme().secrets();
    let before = bench.store.now().await.unwrap();
    // Line breaks and bytes that are no text are kept as they are.
    let first = set(&secrets, "pull", b"\n\xff\x00\n").await;

    assert_eq!((first.version, first.by.subject.as_str()), (1, "ada"));
    assert!(first.at >= before);
    assert_eq!(get(&secrets, "pull").await, Some(first));
    assert_eq!(get(&secrets, "none").await, None);
    assert_eq!(get(&bench.store.of(&tenant("globex")).secrets(), "pull").await, None, "another tenant has its own");
    assert_eq!(format!("{:?}", get(&secrets, "pull").await.unwrap()), "SealedSecret(pull, version 1, 4 bytes)");
}

async fn what_changed_is_told_by_its_mark(bench: Bench) {
    let secrets = bench.acme().secrets();
    assert!(secrets.marks().await.unwrap().is_empty());
    for name in ["a", "b"] {
        set(&secrets, name, b"1").await;
    }
    let before = secrets.marks().await.unwrap();
    set(&secrets, "a", b"2").await;
    let after = secrets.marks().await.unwrap();

    assert!(after["a"] > before["a"] && after["a"] > after["b"]);
    assert_eq!(after["b"], before["b"]);
}

async fn a_name_that_was_forgotten_and_set_again_is_another_version_with_another_mark(bench: Bench) {
    let secrets = bench.acme().secrets();
    let mut seen = std::collections::BTreeSet::new();
    for version in [1, 3, 5, 7] {
        assert_eq!(set(&secrets, "a", b"x").await.version, version);
        assert!(seen.insert(secrets.marks().await.unwrap()["a"]), "a mark does not come back");
        assert_eq!(secrets.forget("a", None, &entry()).await.unwrap(), SecretForgotten::Done(version + 1));
        assert!(secrets.marks().await.unwrap().is_empty());
        assert_eq!(get(&secrets, "a").await, None);
    }
    assert_eq!(secrets.forget("a", None, &entry()).await.unwrap(), SecretForgotten::Absent);
}

async fn a_change_counts_only_on_what_it_was_made_for(bench: Bench) {
    let secrets = bench.acme().secrets();
    let put = async |base| secrets.put("a", b"new".to_vec(), &principal("ada"), Some(base), &entry()).await.unwrap();
    assert_eq!(put(WritePrecondition::Version(1)).await, SecretPut::Conflict(None));
    assert!(matches!(put(WritePrecondition::Absent).await, SecretPut::Done(_)));
    assert_eq!(put(WritePrecondition::Absent).await, SecretPut::Conflict(Some(1)));
    assert!(matches!(put(WritePrecondition::Version(1)).await, SecretPut::Done(_)));

    assert_eq!(secrets.forget("a", Some(1), &entry()).await.unwrap(), SecretForgotten::Conflict(2));
    assert_eq!(secrets.forget("a", Some(2), &entry()).await.unwrap(), SecretForgotten::Done(3));
    assert_eq!(put(WritePrecondition::Version(2)).await, SecretPut::Conflict(None));
    assert!(matches!(put(WritePrecondition::Absent).await, SecretPut::Done(_)));
}

async fn no_more_than_so_many_are_kept(bench: Bench) {
    let secrets = bench.acme().secrets();
    for number in 0..MOST_SECRETS {
        set(&secrets, &format!("s{number}"), b"x").await;
    }
    let more = async || secrets.put("more", b"x".to_vec(), &principal("ada"), None, &entry()).await.unwrap();
    assert_eq!(more().await, SecretPut::TooMany);
    // One that is there may still be changed, and one that goes makes room.
    set(&secrets, "s0", b"y").await;
    assert_eq!(secrets.forget("s1", None, &entry()).await.unwrap(), SecretForgotten::Done(2));
    assert!(matches!(more().await, SecretPut::Done(_)));
    assert_eq!(more().await, SecretPut::Done(get(&secrets, "more").await.unwrap()));

    let names: Vec<String> = secrets.marks().await.unwrap().into_keys().collect();
    assert_eq!(names.len() as u64, MOST_SECRETS);
    assert!(secrets.get_many(&names).await.unwrap().iter().all(|found| matches!(found, Ok(Some(_)))));
}

async fn sealing_anew_leaves_who_set_it_and_loses_against_a_change(bench: Bench) {
    let secrets = bench.acme().secrets();
    let first = set(&secrets, "a", b"old key").await;
    let mark = secrets.marks().await.unwrap()["a"];
    let told = secrets.reseal(&first, b"new key".to_vec(), &entry()).await.unwrap();

    let anew = get(&secrets, "a").await.unwrap();
    assert_eq!(told.as_ref(), Some(&anew));
    assert_eq!((anew.version, &anew.by, anew.at, &*anew.sealed), (2, &first.by, first.at, &b"new key"[..]));
    assert!(secrets.marks().await.unwrap()["a"] > mark);
    assert_eq!(secrets.reseal(&first, b"late".to_vec(), &entry()).await.unwrap(), None);
    assert_eq!(get(&secrets, "a").await, Some(anew));
}

async fn every_change_is_in_the_audit_log_and_wakes_whoever_watches(bench: Bench) {
    let acme = bench.acme();
    let mut watch = acme.watch();
    assert_eq!(watch.next().await, WakeUp::Resync);
    set(&acme.secrets(), "pull", b"sealed-canary").await;
    assert_eq!(watch.next().await, WakeUp::Topic(Topic::Secrets));
    assert_eq!(acme.secrets().forget("pull", None, &entry()).await.unwrap(), SecretForgotten::Done(2));
    assert_eq!(watch.next().await, WakeUp::Topic(Topic::Secrets));
    assert_eq!(acme.secrets().forget("pull", None, &entry()).await.unwrap(), SecretForgotten::Absent);

    let noted = acme.audit().page(None, 10).await.unwrap();
    let targets: Vec<&str> = noted.iter().map(|noted| noted.entry["target"].as_str().unwrap()).collect();
    assert_eq!(targets, ["secret/pull", "secret/pull"]);
    assert!(noted.iter().all(|noted| noted.entry["phase"] == "admin"));
    assert!(!format!("{noted:?}").contains("canary"));
}
