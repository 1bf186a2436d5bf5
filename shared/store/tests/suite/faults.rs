//! What Redis does to us: restarts, pauses, wrong settings, no room. Each test has a server of its own.

use crate::bench::{call, config, opening, session_id, tenant};
use domain::{Code, RunId};
use std::time::Duration;
use store::{
    CloseFacts, Commit, Committed, Config, Confirm, HealthFinding, RecordKey, RecordVersion, Store, StoreEpoch,
    StoreError, Topic, WakeUp,
};
use testkit::redis::{RedisServer, SYNCED};

fn key() -> RecordKey {
    RecordKey::session(session_id(1))
}

fn write(expect: u64) -> Commit {
    Commit::write(key(), RecordVersion::new(expect), b"a".to_vec())
}

/// Settings with production's deadline: these tests are about it.
fn strict(server: &RedisServer) -> Config {
    Config { deadline: Duration::from_secs(1), ..config(server.url()) }
}

/// Asks until the store answers again; the test's own limit is the only one.
async fn until_well(store: &Store) {
    while store.now().await.is_err() {
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
}

#[tokio::test]
async fn a_server_that_is_away_at_the_start_is_met_when_it_comes() {
    let mut server = RedisServer::reserved();
    let store = Store::open(&strict(&server)).await.unwrap();
    let error = store.now().await.unwrap_err();
    assert!(matches!(error, StoreError::Unavailable { .. }));
    assert_eq!(error.code(), Code::StoreUnavailable);
    assert_eq!(store.health().await.reasons, [HealthFinding::StoreUnreachable]);
    server.restart();
    until_well(&store).await;
    assert!(store.health().await.ready());
    assert_eq!(store.backend(), "redis");
}

#[tokio::test]
async fn a_restart_keeps_the_records_and_the_script_is_sent_again() {
    let mut server = RedisServer::start_with(&SYNCED);
    let store = Store::open(&config(server.url())).await.unwrap();
    let acme = store.of(&tenant("acme"));
    assert!(matches!(acme.commit(write(0)).await.unwrap(), Committed::Done(..)));
    server.stop();
    assert!(acme.commit(write(1)).await.is_err());
    server.restart();
    until_well(&store).await;
    assert_eq!(acme.get(&key()).await.unwrap().unwrap().version, RecordVersion::new(1));
    assert_eq!(server.command(&["SCRIPT", "FLUSH"]), "+OK");
    assert!(matches!(acme.commit(write(1)).await.unwrap(), Committed::Done(version, _) if version.number() == 2));
}

#[tokio::test]
async fn a_paused_server_costs_no_call_more_than_its_deadline_and_is_well_again_after() {
    let server = RedisServer::start();
    let store = Store::open(&strict(&server)).await.unwrap();
    let acme = store.of(&tenant("acme"));
    assert!(matches!(acme.commit(write(0)).await.unwrap(), Committed::Done(..)));
    server.pause();
    let key = key();
    let calls = (0..20).map(|_| acme.get(&key));
    let ends = tokio::time::timeout(Duration::from_secs(5), futures_util::future::join_all(calls)).await.unwrap();
    assert!(
        ends.iter().all(|end| matches!(end, Err(StoreError::Timeout | StoreError::Unavailable { .. }))),
        "{ends:?}"
    );
    server.resume();
    until_well(&store).await;
    assert_eq!(acme.get(&key).await.unwrap().unwrap().version, RecordVersion::new(1));
}

#[tokio::test]
async fn wrong_settings_are_reported_and_only_warned_about_when_accepted() {
    let server = RedisServer::start_with(&["--appendonly", "no", "--maxmemory-policy", "allkeys-lru"]);
    let refused = Store::open(&strict(&server)).await.unwrap().health().await;
    assert_eq!(refused.reasons, [HealthFinding::StoreEvicts, HealthFinding::StoreNotPersistent]);
    let accepted = Store::open(&Config { accept_unsafe: true, ..strict(&server) }).await.unwrap().health().await;
    assert!(accepted.ready());
    assert_eq!(accepted.warnings, [HealthFinding::StoreEvicts, HealthFinding::StoreNotPersistent]);
}

#[tokio::test]
async fn a_full_server_is_told_apart_and_writes_nothing() {
    let server = RedisServer::start();
    let store = Store::open(&strict(&server)).await.unwrap();
    let acme = store.of(&tenant("acme"));
    assert!(matches!(acme.commit(write(0)).await.unwrap(), Committed::Done(..)));
    assert_eq!(server.command(&["CONFIG", "SET", "maxmemory", "1"]), "+OK");
    let error = acme.commit(write(1)).await.unwrap_err();
    assert_eq!(error.code(), Code::StoreFull);
    assert_eq!(acme.begin(&opening(&call(1, None))).await.unwrap_err().code(), Code::StoreFull);
    assert_eq!(store.open_receipts(), 0);
    let health = store.health().await;
    assert!(health.ready() && health.warnings == [HealthFinding::StoreFull], "{health:?}");
    assert_eq!(server.command(&["CONFIG", "SET", "maxmemory", "0"]), "+OK");
    assert_eq!(acme.get(&key()).await.unwrap().unwrap().version, RecordVersion::new(1));
}

#[tokio::test]
async fn a_replica_takes_no_changes_and_says_so() {
    let (primary, server) = (RedisServer::start(), RedisServer::start());
    let store = Store::open(&strict(&server)).await.unwrap();
    let port = primary.url().rsplit(':').next().unwrap().to_owned();
    assert_eq!(server.command(&["REPLICAOF", "127.0.0.1", &port]), "+OK");
    let acme = store.of(&tenant("acme"));
    // The first answer may still be that the new replica is busy copying.
    let error = loop {
        match acme.commit(write(0)).await.unwrap_err() {
            error @ StoreError::ReadOnly => break error,
            StoreError::Unavailable { .. } | StoreError::Timeout => until_well(&store).await,
            other @ (StoreError::Full
            | StoreError::QuotaReached(_)
            | StoreError::Corrupt { .. }
            | StoreError::NotAuthentic { .. }) => {
                panic!("{other:?}")
            }
        }
    };
    assert_eq!(error.code(), Code::StoreUnavailable);
    assert_eq!(server.command(&["REPLICAOF", "NO", "ONE"]), "+OK");
    // The store looks for the right node with a new connection, so the next call may still meet none.
    let committed = loop {
        if let Ok(committed) = acme.commit(write(0)).await {
            break committed;
        }
        until_well(&store).await;
    };
    assert!(matches!(committed, Committed::Done(..)));
}

#[tokio::test]
async fn a_watcher_is_told_to_look_again_after_a_restart_and_hears_again() {
    let mut server = RedisServer::start();
    let store = Store::open(&strict(&server)).await.unwrap();
    let acme = store.of(&tenant("acme"));
    let mut watch = acme.watch();
    assert_eq!(watch.next().await, WakeUp::Resync);
    server.restart();
    assert_eq!(watch.next().await, WakeUp::Resync);
    until_well(&store).await;
    acme.wake(&Topic::Catalog).await.unwrap();
    assert_eq!(watch.next().await, WakeUp::Topic(Topic::Catalog));
}

#[tokio::test]
async fn one_replica_hears_what_another_commits() {
    let server = RedisServer::start();
    let config = strict(&server);
    let (here, there) = (Store::open(&config).await.unwrap(), Store::open(&config).await.unwrap());
    let mut watch = here.of(&tenant("acme")).watch();
    assert_eq!(watch.next().await, WakeUp::Resync);
    let commit = Commit { wake: Some(Topic::Session(session_id(1))), ..write(0) };
    assert!(matches!(there.of(&tenant("acme")).commit(commit).await.unwrap(), Committed::Done(..)));
    assert_eq!(watch.next().await, WakeUp::Topic(Topic::Session(session_id(1))));
    assert_eq!(here.of(&tenant("acme")).get(&key()).await.unwrap().unwrap().version, RecordVersion::new(1));
    assert_ne!(here.replica(), there.replica());
}

#[tokio::test]
async fn closes_queued_while_the_server_is_away_are_written_when_it_is_back() {
    let mut server = RedisServer::start_with(&SYNCED);
    let config = strict(&server);
    let store = Store::open(&config).await.unwrap();
    let acme = store.of(&tenant("acme"));
    let begun = acme.begin(&opening(&call(1, None))).await.unwrap().opened().unwrap();
    server.stop();
    acme.audit().close(begun.receipt, &CloseFacts::default()).await.unwrap();
    server.restart();
    until_well(&store).await;
    store.close().await;
    let again = Store::open(&config).await.unwrap();
    let entries = again.of(&tenant("acme")).audit().page(None, 10).await.unwrap();
    assert_eq!(
        entries.iter().map(|noted| noted.entry["phase"].as_str().unwrap()).collect::<Vec<_>>(),
        ["open", "close"]
    );
}

/// Asks until this process knows of a change, and gives what it knows.
async fn changed(store: &Store, before: StoreEpoch) -> StoreEpoch {
    loop {
        drop(store.health().await);
        let now = store.lineages().now();
        if now != before {
            return now;
        }
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
}

#[tokio::test]
async fn s1_a_restart_is_another_server_over_the_same_records_for_everybody() {
    let mut server = RedisServer::start_with(&SYNCED);
    let config = strict(&server);
    let (here, there) = (Store::open(&config).await.unwrap(), Store::open(&config).await.unwrap());
    let before = here.lineages().now();
    assert_eq!(before, StoreEpoch { generation: 1, since: None });
    let written = here.now().await.unwrap();
    server.restart();
    let (mine, theirs) = (changed(&here, before).await, changed(&there, before).await);
    let newcomer = Store::open(&config).await.unwrap().lineages().now();
    assert_eq!((mine, mine.generation), (theirs, 1));
    assert_eq!(mine, newcomer, "who was not there judges alike");
    assert!(mine.doubts(written) && !mine.doubts(here.now().await.unwrap()));
    assert!(here.health().await.warnings.is_empty(), "nothing was lost");
}

#[tokio::test]
async fn s2_a_loss_is_noticed_by_whoever_remembers_and_told_for_a_while() {
    let server = RedisServer::start();
    let config = strict(&server);
    let (here, there) = (Store::open(&config).await.unwrap(), Store::open(&config).await.unwrap());
    let before = here.lineages().now();
    assert_eq!(server.command(&["FLUSHALL"]), "+OK");
    // Somebody who knows nothing comes first, and takes the store for a new one.
    let newcomer = Store::open(&config).await.unwrap();
    assert_eq!(newcomer.lineages().now().generation, 1);
    let (mine, theirs) = (changed(&here, before).await, changed(&there, before).await);
    assert_eq!((mine.generation, mine), (2, theirs));
    assert_eq!(changed(&newcomer, before).await, mine);
    for store in [&here, &there] {
        let health = store.health().await;
        assert!(health.ready() && health.warnings == [HealthFinding::StoreLost], "{health:?}");
    }
}

#[tokio::test]
async fn s3_more_confirmations_than_there_are_replicas_confirm_nothing() {
    let server = RedisServer::start();
    let wanting = Config { confirm_replicas: Confirm::Exactly(1), ..strict(&server) };
    let runs = Store::open(&wanting).await.unwrap().of(&tenant("acme")).runs();
    const WITHIN: Duration = Duration::from_millis(100);
    let id = RunId::from_random([1; 16]);
    let standing = runs.confirm(id, WITHIN).await.unwrap().expect("it is asked for");
    assert!(!standing.enough && standing.held.is_none());
    let follower = RedisServer::start();
    follower.follow(server.port());
    while !runs.confirm(id, WITHIN).await.unwrap().expect("it is asked for").enough {}

    let content = Config { confirm_replicas: Confirm::Exactly(0), ..strict(&server) };
    assert_eq!(
        Store::open(&content).await.unwrap().of(&tenant("acme")).runs().confirm(id, WITHIN).await.unwrap(),
        None
    );
}
