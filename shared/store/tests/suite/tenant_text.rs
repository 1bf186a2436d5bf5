//! The configuration that was set over HTTP: versions, races, and what rides in the same commit.

use crate::bench::{Bench, on_every_backend, principal, tenant};
use store::{AuditEntry, Phase, Store, TenantStore, TenantText, TextChange, Topic, WakeUp, WritePrecondition};

on_every_backend!(
    a_text_stands_until_another_takes_its_place,
    a_change_is_made_for_what_stands,
    of_two_who_change_the_same_one_wins,
    numbers_go_on_after_a_removal,
    the_last_fifty_versions_are_kept,
    a_change_is_in_the_audit_log_and_wakes_in_the_same_step,
    a_refused_change_leaves_no_trace,
    a_text_has_a_largest_size,
    one_tenants_texts_are_no_others,
    what_is_no_text_of_ours_is_an_error,
);

fn entry() -> AuditEntry {
    AuditEntry::new(Phase::Admin)
}

async fn put(shelf: &TenantStore, base: WritePrecondition, text: &str) -> TextChange {
    let note = Some(format!("about {text}"));
    shelf.tenant_text().put(base, text.into(), note, &principal("ana"), &entry()).await.unwrap()
}

async fn remove(shelf: &TenantStore, version: u64) -> TextChange {
    shelf.tenant_text().remove(version, None, &principal("ben"), &entry()).await.unwrap()
}

fn done(change: TextChange) -> TenantText {
    match change {
        TextChange::Done(text) => text,
        other @ (TextChange::Conflict(_) | TextChange::TooLarge) => panic!("{other:?}"),
    }
}

async fn numbers(shelf: &TenantStore, before: Option<u64>, limit: usize) -> Vec<u64> {
    let versions = shelf.tenant_text().history(before, limit).await.unwrap();
    versions.into_iter().map(|version| version.version).collect()
}

async fn targets(shelf: &TenantStore) -> Vec<String> {
    let entries = shelf.audit().page(None, 1_000).await.unwrap();
    entries.iter().map(|noted| noted.entry["target"].as_str().unwrap_or_default().to_owned()).collect()
}

async fn a_text_stands_until_another_takes_its_place(bench: Bench) {
    let acme = bench.acme();
    assert_eq!(acme.tenant_text().current().await.unwrap(), None);
    assert_eq!(numbers(&acme, None, 10).await, [] as [u64; 0]);

    let first = done(put(&acme, WritePrecondition::Absent, "tenant: acme\n").await);
    assert_eq!((first.version, first.text.as_deref()), (1, Some("tenant: acme\n")));
    assert_eq!((first.by.clone(), first.note.as_deref()), (principal("ana"), Some("about tenant: acme\n")));
    assert!(first.at <= bench.store.now().await.unwrap());
    assert_eq!(acme.tenant_text().current().await.unwrap(), Some(first.clone()));

    let second = done(put(&acme, WritePrecondition::Version(1), "two: \"é\\n\"\n\t'").await);
    assert_eq!(acme.tenant_text().current().await.unwrap(), Some(second.clone()));
    assert_eq!(acme.tenant_text().history(None, 10).await.unwrap(), [second.clone(), first.clone()]);
    assert_eq!(acme.tenant_text().version(1).await.unwrap(), Some(first));
    assert_eq!(acme.tenant_text().version(2).await.unwrap(), Some(second));
    for unknown in [0, 3, u64::MAX] {
        assert_eq!(acme.tenant_text().version(unknown).await.unwrap(), None);
    }
}

async fn a_change_is_made_for_what_stands(bench: Bench) {
    let acme = bench.acme();
    assert_eq!(put(&acme, WritePrecondition::Version(1), "x").await, TextChange::Conflict(None));
    assert_eq!(remove(&acme, 1).await, TextChange::Conflict(None));
    let first = done(put(&acme, WritePrecondition::Absent, "one").await);
    for base in [WritePrecondition::Absent, WritePrecondition::Version(0), WritePrecondition::Version(2)] {
        assert_eq!(put(&acme, base, "x").await, TextChange::Conflict(Some(first.clone())), "{base:?}");
    }
    assert_eq!(remove(&acme, 2).await, TextChange::Conflict(Some(first)));
    assert_eq!(numbers(&acme, None, 10).await, [1]);
}

async fn of_two_who_change_the_same_one_wins(bench: Bench) {
    let acme = bench.acme();
    done(put(&acme, WritePrecondition::Absent, "one").await);
    let writers = (0..8).map(|_| put(&acme, WritePrecondition::Version(1), "two"));
    let mut won = 0;
    for change in futures_util::future::join_all(writers).await {
        match change {
            TextChange::Done(_) => won += 1,
            TextChange::Conflict(found) => assert_eq!(found.unwrap().version, 2),
            TextChange::TooLarge => panic!("it is small"),
        }
    }
    assert_eq!(won, 1);
    assert_eq!(numbers(&acme, None, 10).await, [2, 1]);
}

async fn numbers_go_on_after_a_removal(bench: Bench) {
    let acme = bench.acme();
    done(put(&acme, WritePrecondition::Absent, "one").await);
    let removed = done(remove(&acme, 1).await);
    assert_eq!((removed.version, removed.text.as_deref(), removed.by.clone()), (2, None, principal("ben")));
    assert_eq!(acme.tenant_text().current().await.unwrap(), Some(removed.clone()));
    assert_eq!(remove(&acme, 2).await, TextChange::Conflict(Some(removed.clone())), "there is nothing to remove");
    assert_eq!(put(&acme, WritePrecondition::Version(2), "x").await, TextChange::Conflict(Some(removed)));
    assert_eq!(done(put(&acme, WritePrecondition::Absent, "three").await).version, 3);
    assert_eq!(numbers(&acme, None, 10).await, [3, 2, 1]);
}

async fn the_last_fifty_versions_are_kept(bench: Bench) {
    let acme = bench.acme();
    done(put(&acme, WritePrecondition::Absent, "v1").await);
    for number in 1..60 {
        done(put(&acme, WritePrecondition::Version(number), &format!("v{}", number + 1)).await);
    }
    let kept = numbers(&acme, None, 100).await;
    assert_eq!((kept.len(), kept[0], kept[49]), (50, 60, 11));
    assert_eq!(acme.tenant_text().version(10).await.unwrap(), None);
    assert_eq!(acme.tenant_text().version(11).await.unwrap().unwrap().text.as_deref(), Some("v11"));
    assert_eq!(numbers(&acme, None, 2).await, [60, 59]);
    assert_eq!(numbers(&acme, Some(59), 2).await, [58, 57]);
    assert_eq!(numbers(&acme, Some(12), 5).await, [11]);
    for before in [0, 1, 11] {
        assert_eq!(numbers(&acme, Some(before), 5).await, [] as [u64; 0], "{before}");
    }
}

async fn a_change_is_in_the_audit_log_and_wakes_in_the_same_step(bench: Bench) {
    let acme = bench.acme();
    let mut watch = acme.watch();
    assert_eq!(watch.next().await, WakeUp::Resync);
    done(put(&acme, WritePrecondition::Absent, "one").await);
    assert_eq!(watch.next().await, WakeUp::Topic(Topic::Config));
    done(remove(&acme, 1).await);
    assert_eq!(watch.next().await, WakeUp::Topic(Topic::Config));
    assert_eq!(targets(&acme).await, ["config/1", "config/2"]);
    let entries = acme.audit().page(None, 10).await.unwrap();
    assert!(entries.iter().all(|noted| noted.entry["phase"] == "admin"), "{entries:?}");
}

async fn a_refused_change_leaves_no_trace(bench: Bench) {
    let acme = bench.acme();
    let mut watch = acme.watch();
    assert_eq!(watch.next().await, WakeUp::Resync);
    assert_eq!(put(&acme, WritePrecondition::Version(7), "x").await, TextChange::Conflict(None));
    acme.wake(&Topic::Catalog).await.unwrap();
    assert_eq!(watch.next().await, WakeUp::Topic(Topic::Catalog));
    assert_eq!(targets(&acme).await, [] as [&str; 0]);
    assert_eq!(numbers(&acme, None, 10).await, [] as [u64; 0]);
}

async fn a_text_has_a_largest_size(bench: Bench) {
    let acme = bench.acme();
    let largest = "x".repeat(256 * 1024);
    assert_eq!(put(&acme, WritePrecondition::Absent, &format!("{largest}x")).await, TextChange::TooLarge);
    assert_eq!(acme.tenant_text().current().await.unwrap(), None);
    done(put(&acme, WritePrecondition::Absent, &largest).await);
    assert_eq!(acme.tenant_text().current().await.unwrap().unwrap().text, Some(largest));
}

async fn one_tenants_texts_are_no_others(bench: Bench) {
    let (acme, bolt) = (bench.acme(), bench.store.of(&tenant("bolt")));
    done(put(&acme, WritePrecondition::Absent, "of acme").await);
    assert_eq!(bolt.tenant_text().current().await.unwrap(), None);
    assert_eq!(bolt.tenant_text().version(1).await.unwrap(), None);
    assert_eq!(numbers(&bolt, None, 10).await, [] as [u64; 0]);
    assert_eq!(remove(&bolt, 1).await, TextChange::Conflict(None));
    assert_eq!(done(put(&bolt, WritePrecondition::Absent, "of bolt").await).version, 1);
    assert_eq!(acme.tenant_text().current().await.unwrap().unwrap().text.as_deref(), Some("of acme"));
}

async fn what_is_no_text_of_ours_is_an_error(bench: Bench) {
    let acme = bench.acme();
    for body in [&b"tenant: acme"[..], br#"{"v":2,"cfg":{}}"#, b"{}"] {
        let key = store::RecordKey::tenant_text();
        let version = acme.get(&key).await.unwrap().map_or(store::RecordVersion::NONE, |record| record.version);
        let written = acme.commit(store::Commit::write(key, version, body.to_vec())).await.unwrap();
        assert!(matches!(written, store::Committed::Done(..)));
        assert!(acme.tenant_text().current().await.is_err());
        let put =
            acme.tenant_text().put(WritePrecondition::Absent, "x".into(), None, &principal("ana"), &entry()).await;
        assert!(put.is_err(), "what cannot be read is not written over");
    }
}

#[tokio::test]
async fn a_text_outlives_the_process_that_set_it() {
    let Bench { store, config, .. } = &Bench::file().await;
    done(put(&store.of(&tenant("acme")), WritePrecondition::Absent, "one").await);
    store.close().await;
    let again = Store::open(config).await.unwrap();
    let stands = again.of(&tenant("acme")).tenant_text().current().await.unwrap().unwrap();
    assert_eq!((stands.version, stands.text.as_deref()), (1, Some("one")));
}
