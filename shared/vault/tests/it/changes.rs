//! Setting and forgetting, and what the audit log says of it.

use crate::bench::*;
use domain::Code;
use store::WritePrecondition;

on_every_store!(
    a_value_is_read_back_as_it_was_set,
    a_change_counts_only_on_the_version_it_names,
    what_cannot_be_a_secret_is_refused_and_changes_nothing,
    every_change_is_in_the_audit_log_without_its_value,
    the_store_holds_nothing_readable,
);

async fn a_value_is_read_back_as_it_was_set(bench: Bench) {
    bench.vault.refresh(&acme()).await.unwrap();
    let most = "x".repeat(vault::MOST_BYTES);
    for value in ["plain", "key: value\n\"quoted\"\n\n", "\u{0}\u{1b}[2J é 😀", " blanks \n", &most] {
        set(&bench.vault, "odd", value).await;
        assert_eq!(read(&bench.vault, "odd").as_deref(), Ok(value));
    }
}

async fn a_change_counts_only_on_the_version_it_names(bench: Bench) {
    let vault = &bench.vault;
    vault.refresh(&acme()).await.unwrap();
    let set = async |value, base| vault.set(&acme(), "pull", text(value), &ada(), Some(base)).await;
    assert_eq!(set("early", WritePrecondition::Version(1)).await.unwrap_err().code, Code::ConfigConflict);
    assert_eq!(set("first", WritePrecondition::Absent).await.unwrap().version, 1);
    assert_eq!(set("again", WritePrecondition::Absent).await.unwrap_err().code, Code::ConfigConflict);
    assert_eq!(set("second", WritePrecondition::Version(1)).await.unwrap().version, 2);
    assert_eq!(set("late", WritePrecondition::Version(1)).await.unwrap_err().code, Code::ConfigConflict);
    assert_eq!(read(vault, "pull").as_deref(), Ok("second"));

    assert_eq!(vault.forget(&acme(), "pull", &ada(), Some(1)).await.unwrap_err().code, Code::ConfigConflict);
    vault.forget(&acme(), "pull", &ada(), Some(2)).await.unwrap();
    assert_eq!(vault.forget(&acme(), "pull", &ada(), None).await.unwrap_err().code, Code::NotFound);
    assert_eq!(read(vault, "pull"), unknown("pull"));
    assert!(set("third", WritePrecondition::Absent).await.unwrap().version > 2);
}

async fn what_cannot_be_a_secret_is_refused_and_changes_nothing(bench: Bench) {
    let vault = &bench.vault;
    let set = async |name: &str, value: &str| vault.set(&acme(), name, text(value), &ada(), None).await.map(drop);
    for bad in ["", "..", "a/b", "a b", "a\nb", &"x".repeat(254)] {
        let failure = set(bad, "canary-value").await.unwrap_err();
        assert_eq!(failure.code, Code::InvalidArgument, "{bad:?}");
        assert!(!format!("{failure:?}").contains("canary"));
        assert_eq!(vault.forget(&acme(), bad, &ada(), None).await.unwrap_err().code, Code::InvalidArgument);
    }
    assert_eq!(set("pull", "").await.unwrap_err().code, Code::InvalidArgument);
    let failure = set("pull", &"x".repeat(vault::MOST_BYTES + 1)).await.unwrap_err();
    assert_eq!(failure.code, Code::TooLarge);
    assert!(vault.list(&acme()).await.unwrap().is_empty());
    assert!(bench.store.of(&acme()).audit().page(None, 10).await.unwrap().is_empty());

    for number in 0..store::MOST_SECRETS {
        set(&format!("s{number}"), "value").await.unwrap();
    }
    assert_eq!(set("more", "value").await.unwrap_err().code, Code::QuotaExceeded);
    set("s7", "another").await.unwrap();
}

async fn every_change_is_in_the_audit_log_without_its_value(bench: Bench) {
    set(&bench.vault, "pull", "canary-value").await;
    bench.vault.forget(&acme(), "pull", &ada(), None).await.unwrap();

    let noted = bench.store.of(&acme()).audit().page(None, 10).await.unwrap();
    let told: Vec<_> = noted.iter().map(|noted| (&noted.entry["target"], &noted.entry["effect"])).collect();
    assert_eq!(told, [(&"secret/pull".into(), &"change".into()), (&"secret/pull".into(), &"disrupt".into())]);
    for noted in &noted {
        assert_eq!(noted.entry["phase"], "admin");
        assert_eq!(noted.entry["actor"]["kind"], "person");
        assert!(noted.entry["actor"].to_string().contains("ada"));
    }
    assert!(!format!("{noted:?}").contains("canary"));
}

async fn the_store_holds_nothing_readable(bench: Bench) {
    set(&bench.vault, "pull", "canary-value").await;
    let found = bench.store.of(&acme()).secrets().get_many(&["pull".to_owned()]).await.unwrap().remove(0);
    let sealed = found.unwrap().unwrap().sealed;
    assert!(!sealed.windows(6).any(|part| part == b"canary"));
    let record = bench.store.of(&acme()).get(&store::RecordKey::tenant_secret("pull")).await.unwrap().unwrap();
    assert!(!record.body.windows(6).any(|part| part == b"canary"));
}
