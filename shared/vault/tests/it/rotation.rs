//! Another key for the service.

use crate::bench::*;
use vault::{Missing, SealState};

on_every_store!(
    what_was_sealed_under_the_old_key_opens_until_it_is_sealed_anew,
    without_the_old_key_a_secret_is_told_of_and_not_replaced,
    sealing_anew_is_in_the_audit_log_and_done_once,
);

fn standings(list: &[vault::SecretFacts]) -> Vec<(&str, SealState)> {
    list.iter().map(|facts| (facts.name.as_str(), facts.kept.as_ref().unwrap().standing)).collect()
}

async fn what_was_sealed_under_the_old_key_opens_until_it_is_sealed_anew(bench: Bench) {
    for name in ["a", "b"] {
        set(&bench.vault, name, "value").await;
    }
    let rotated = bench.vault_with(sealer(2, &[1]), &[]);
    set(&rotated, "b", "newer").await;
    let list = rotated.list(&acme()).await.unwrap();
    assert_eq!(standings(&list), [("a", SealState::Older), ("b", SealState::Current)]);
    assert_eq!((read(&rotated, "a").as_deref(), read(&rotated, "b").as_deref()), (Ok("value"), Ok("newer")));

    assert_eq!(rotated.reseal(&acme()).await, Ok(1));

    let anew = rotated.list(&acme()).await.unwrap();
    assert_eq!(standings(&anew), [("a", SealState::Current), ("b", SealState::Current)]);
    let (was, is) = (list[0].kept.as_ref().unwrap(), anew[0].kept.as_ref().unwrap());
    assert_eq!((&was.by, was.at, was.version + 1), (&is.by, is.at, is.version), "who set it and when stays");
    // The old key can go.
    let later = bench.vault_with(sealer(2, &[]), &[]);
    later.refresh(&acme()).await.unwrap();
    assert_eq!((read(&later, "a").as_deref(), read(&later, "b").as_deref()), (Ok("value"), Ok("newer")));
}

async fn without_the_old_key_a_secret_is_told_of_and_not_replaced(bench: Bench) {
    bench.mount("acme", "a", "from a file");
    set(&bench.vault, "a", "value").await;
    let lost = bench.vault_with(sealer(2, &[]), &[]);

    assert_eq!(standings(&lost.list(&acme()).await.unwrap()), [("a", SealState::Unopenable)]);
    assert_eq!(read(&lost, "a"), Err(Missing::Sealed { name: "a".into() }), "the file below it does not count");
    assert_eq!(lost.reseal(&acme()).await, Ok(0));
    bench.vault.refresh(&acme()).await.unwrap();
    assert_eq!(read(&bench.vault, "a").as_deref(), Ok("value"));
    set(&lost, "a", "set again").await;
    assert_eq!(read(&lost, "a").as_deref(), Ok("set again"));
}

async fn sealing_anew_is_in_the_audit_log_and_done_once(bench: Bench) {
    set(&bench.vault, "a", "value").await;
    let (one, two) = (bench.vault_with(sealer(2, &[1]), &[]), bench.vault_with(sealer(2, &[1]), &[]));
    let acme = acme();
    let (first, second) = tokio::join!(one.reseal(&acme), two.reseal(&acme));
    assert_eq!(first.unwrap() + second.unwrap(), 1);

    let noted = bench.store.of(&acme).audit().page(None, 10).await.unwrap();
    let told: Vec<_> = noted.iter().map(|noted| (&noted.entry["target"], &noted.entry["actor"]["kind"])).collect();
    assert_eq!(told, [(&"secret/a".into(), &"person".into()), (&"secret/a".into(), &"service".into())]);
}
