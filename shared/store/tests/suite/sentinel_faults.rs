//! What happens behind sentinels: failovers, and sentinels that hang, are away or want a password.

use crate::bench::{config, session_id, tenant};
use crate::writers::{balance, under_writes, until_served, until_told};
use std::time::Duration;
use store::{Commit, Committed, Config, HealthFinding, RecordKey, RecordVersion, Store, Topic, WakeUp};
use testkit::redis_topology::{MASTER, SentinelSet};

/// Settings with a deadline near production's: these tests are about it.
fn strict(set: &SentinelSet) -> Config {
    Config { deadline: Duration::from_secs(2), ..config(set.url()) }
}

fn write(expect: u64) -> Commit {
    Commit::write(RecordKey::session(session_id(1)), RecordVersion::new(expect), b"a".to_vec())
}

#[tokio::test]
async fn s1_a_killed_primary_is_followed_by_the_one_the_sentinels_name_and_the_break_is_told() {
    let set = SentinelSet::start();
    let config = strict(&set);
    let store = Store::open(&config).await.unwrap();
    let acme = store.of(&tenant("acme"));
    let before = store.lineages().now();
    let (_set, told) = under_writes(vec![acme.clone()], set, |set| {
        set.nodes[0].stop();
        set.until_leads(1);
    })
    .await;
    let now = until_told(&store, before).await;
    assert!(now.since > before.since, "what was acknowledged before may be forgotten, so it is told: {now:?}");
    assert_eq!(balance(&acme, &told[0]).await.twice, 0);
    assert_eq!(Store::open(&config).await.unwrap().lineages().now(), now, "who was not there judges alike");
}

#[tokio::test]
async fn s1_a_failover_that_is_asked_for_is_followed_at_once_and_wake_ups_go_on() {
    let set = SentinelSet::start();
    let store = Store::open(&strict(&set)).await.unwrap();
    let acme = store.of(&tenant("acme"));
    let mut watch = acme.watch();
    assert_eq!(watch.next().await, WakeUp::Resync);
    let before = store.lineages().now();
    let (_set, told) = under_writes(vec![acme.clone()], set, |set| {
        assert_eq!(set.sentinels[1].command(&["SENTINEL", "FAILOVER", MASTER]), "+OK");
        set.until_leads(1);
    })
    .await;
    assert!(until_told(&store, before).await.since > before.since);
    assert_eq!(balance(&acme, &told[0]).await.twice, 0);
    // Whoever watches is told to look, because the node listened at is another one.
    while watch.next().await != WakeUp::Resync {}
    acme.wake(&Topic::Document).await.unwrap();
    while watch.next().await != WakeUp::Topic(Topic::Document) {}
}

#[tokio::test]
async fn a_sentinel_that_hangs_holds_nobody_up() {
    let set = SentinelSet::start();
    set.sentinels[0].pause();
    let store = Store::open(&strict(&set)).await.unwrap();
    let acme = store.of(&tenant("acme"));
    until_served(&acme).await;
    assert!(matches!(acme.commit(write(0)).await.unwrap(), Committed::Done(..)));
    set.sentinels[0].resume();
}

#[tokio::test]
async fn a_store_that_is_connected_needs_no_sentinels() {
    let mut set = SentinelSet::start();
    let store = Store::open(&strict(&set)).await.unwrap();
    let acme = store.of(&tenant("acme"));
    assert!(matches!(acme.commit(write(0)).await.unwrap(), Committed::Done(..)));
    set.sentinels.iter_mut().for_each(testkit::redis::RedisServer::stop);
    for expect in 1..20 {
        assert!(matches!(acme.commit(write(expect)).await.unwrap(), Committed::Done(..)));
    }
    let late = Store::open(&strict(&set)).await.unwrap();
    assert_eq!(late.health().await.reasons, [HealthFinding::StoreUnreachable], "but a new one finds nobody to ask");
    set.sentinels.iter_mut().for_each(testkit::redis::RedisServer::restart);
    until_served(&late.of(&tenant("acme"))).await;
}

#[tokio::test]
async fn sentinels_have_a_password_of_their_own() {
    let set = SentinelSet::start_with("requirepass s3cret\nsentinel sentinel-pass s3cret");
    let stranger = Store::open(&strict(&set)).await.unwrap();
    assert_eq!(stranger.health().await.reasons, [HealthFinding::StoreUnreachable]);
    let known = Store::open(&Config { sentinel_password: "s3cret".into(), ..strict(&set) }).await.unwrap();
    let health = known.health().await;
    assert!(health.ready(), "{health:?}");
    assert_eq!(health.warnings, [HealthFinding::StoreAcceptsWritesAlone]);
}

#[tokio::test]
async fn a_master_that_no_sentinel_knows_is_not_guessed() {
    let set = SentinelSet::start();
    let url = set.url().replace(MASTER, "other");
    let store = Store::open(&Config { deadline: Duration::from_secs(1), ..config(url) }).await.unwrap();
    assert_eq!(store.health().await.reasons, [HealthFinding::StoreUnreachable]);
}
