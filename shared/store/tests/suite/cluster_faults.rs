//! What a cluster does to us: failovers, slots that move, shards that are away. Each test has a cluster of its own.

use crate::bench::{call, config, opening, session_id, tenant};
use crate::writers::{Balance, balance, under_writes, until_served, until_told};
use domain::{Code, RunId};
use std::time::Duration;
use store::{
    Commit, Committed, Config, HealthFinding, RecordKey, RecordVersion, Store, StoreError, TenantStore, Topic, WakeUp,
};
use testkit::redis::RedisServer;
use testkit::redis_topology::ClusterSet;

/// Settings with a deadline near production's: these tests are about it.
fn strict(set: &ClusterSet) -> Config {
    Config { deadline: Duration::from_secs(2), ..config(set.url()) }
}

/// A tenant of each shard, by the place of its primary.
fn one_of_each(set: &ClusterSet) -> Vec<String> {
    let of = |shard: usize| {
        let mut names = (0..).map(|number| format!("t{number}"));
        names.find(|name| set.primary_of(&format!("{{{name}}}")) == shard).unwrap()
    };
    (0..3).map(of).collect()
}

fn shelves(store: &Store, names: &[String]) -> Vec<TenantStore> {
    names.iter().map(|name| store.of(&tenant(name))).collect()
}

fn key() -> RecordKey {
    RecordKey::session(session_id(1))
}

#[tokio::test]
async fn s1_a_planned_failover_of_a_shard_loses_nothing_acknowledged_and_repeats_nothing() {
    let set = ClusterSet::replicated();
    let store = Store::open(&strict(&set)).await.unwrap();
    let shelves = shelves(&store, &one_of_each(&set));
    let before = store.lineages().now();
    let (set, told) = under_writes(shelves.clone(), set, |set| {
        let replica = set.replica_of(0);
        assert_eq!(set.nodes[replica].command(&["CLUSTER", "FAILOVER"]), "+OK");
        set.until_leads(replica);
    })
    .await;
    for (shelf, told) in shelves.iter().zip(&told) {
        assert_eq!(balance(shelf, told).await, Balance::default());
    }
    let now = until_told(&store, before).await;
    assert!(now.generation == before.generation && now.since > before.since, "{now:?}");
    let newcomer = Store::open(&Config { ..strict(&set) }).await.unwrap();
    assert!(newcomer.health().await.ready());
}

#[tokio::test]
async fn s1_a_killed_primary_is_replaced_and_what_it_took_along_is_told() {
    let set = ClusterSet::replicated();
    let config = strict(&set);
    let store = Store::open(&config).await.unwrap();
    let shelves = shelves(&store, &one_of_each(&set));
    let before = store.lineages().now();
    let (_set, told) = under_writes(shelves.clone(), set, |set| {
        set.nodes[1].stop();
        set.until_leads(set.replica_of(1));
    })
    .await;
    let now = until_told(&store, before).await;
    assert!(now.since > before.since, "what was acknowledged before may be forgotten, so it is told: {now:?}");
    for (shard, (shelf, told)) in shelves.iter().zip(&told).enumerate() {
        let Balance { missing, twice } = balance(shelf, told).await;
        assert_eq!(twice, 0);
        assert!(missing == 0 || shard == 1, "shard {shard} had no failover and lost {missing}");
        assert!(told.failed == 0 || shard == 1, "shard {shard} had no failover and failed {} times", told.failed);
    }
    let newcomer = Store::open(&config).await.unwrap();
    assert_eq!(newcomer.lineages().now(), now, "who was not there judges alike");
}

#[tokio::test]
async fn s1_a_slot_that_moves_loses_nothing_acknowledged_and_repeats_nothing() {
    let set = ClusterSet::bare();
    let store = Store::open(&strict(&set)).await.unwrap();
    let names = one_of_each(&set);
    let (shelves, moved) = (shelves(&store, &names), format!("{{{}}}", names[0]));
    let (set, told) = under_writes(shelves.clone(), set, move |set| {
        let slot = set.slot(&moved);
        set.begin_move(&slot, 0, 2);
        // One by one, so that for a while some keys are here and others there.
        while set.move_keys(&slot, 0, 2, 1) > 0 {
            std::thread::sleep(Duration::from_millis(100));
        }
        set.end_move(&slot, 2);
    })
    .await;
    for (shelf, told) in shelves.iter().zip(&told) {
        assert_eq!(balance(shelf, told).await, Balance::default());
    }
    assert_eq!(told[1].failed + told[2].failed, 0, "only the tenant that moves may have to wait");
    let keys = set.nodes[2].keys();
    assert!(keys.iter().any(|key| key.contains(&format!("{{{}}}", names[0]))), "it did move: {keys:?}");
}

#[tokio::test]
async fn a_node_that_has_forgotten_its_scripts_is_told_them_again() {
    let set = ClusterSet::bare();
    let store = Store::open(&strict(&set)).await.unwrap();
    for (number, shelf) in shelves(&store, &one_of_each(&set)).iter().enumerate() {
        for expect in 0..2 {
            assert_eq!(set.nodes[number].command(&["SCRIPT", "FLUSH"]), "+OK");
            let commit = Commit::write(key(), RecordVersion::new(expect), b"a".to_vec());
            assert!(matches!(shelf.commit(commit).await.unwrap(), Committed::Done(..)));
            assert_eq!(set.nodes[number].command(&["SCRIPT", "FLUSH"]), "+OK");
            shelf.begin(&opening(&call(expect as u8, None))).await.unwrap().opened().unwrap();
        }
        assert_eq!(shelf.audit().page(None, 10).await.unwrap().len(), 2);
    }
}

#[tokio::test]
async fn s3_what_is_confirmed_has_the_shards_own_replica() {
    let set = ClusterSet::replicated();
    let store = Store::open(&strict(&set)).await.unwrap();
    let shelves = shelves(&store, &one_of_each(&set));
    assert!(store.health().await.ready());
    let (id, within) = (RunId::from_random([1; 16]), Duration::from_millis(100));
    set.nodes[set.replica_of(1)].pause();
    let others = shelves[0].runs().confirm(id, within).await.unwrap().expect("it has a replica");
    assert!(others.enough, "the replica of another shard is none of its business");
    let own = shelves[1].runs().confirm(id, within).await.unwrap().expect("it has a replica");
    assert!(!own.enough, "its own replica has not got it");
    set.nodes[set.replica_of(1)].resume();
    while !shelves[1].runs().confirm(id, within).await.unwrap().expect("it has a replica").enough {}
}

#[tokio::test]
async fn a_shard_that_is_away_stops_its_own_tenants_and_nobody_else() {
    let mut set = ClusterSet::bare();
    let store = Store::open(&strict(&set)).await.unwrap();
    let shelves = shelves(&store, &one_of_each(&set));
    assert!(store.health().await.shards_down.is_empty());
    set.nodes[1].stop();
    let health = loop {
        let health = store.health().await;
        if !health.shards_down.is_empty() {
            break health;
        }
    };
    assert!(health.ready(), "{health:?}");
    assert_eq!(health.shards_down, ["5462-10923"]);
    assert!(health.warnings.contains(&HealthFinding::StoreShardUnreachable));
    for expect in 0..20 {
        let error = shelves[1].get(&key()).await.unwrap_err();
        assert!(matches!(error, StoreError::Unavailable { .. }) && error.code() == Code::StoreUnavailable, "{error:?}");
        for shelf in [&shelves[0], &shelves[2]] {
            let commit = Commit::write(key(), RecordVersion::new(expect), b"a".to_vec());
            assert!(matches!(shelf.commit(commit).await.unwrap(), Committed::Done(..)));
        }
        store.now().await.expect("some shard knows the time");
    }
    set.nodes[1].restart();
    until_served(&shelves[1]).await;
    while !store.health().await.shards_down.is_empty() {}
}

#[tokio::test]
async fn wake_ups_reach_every_process_whichever_node_it_listens_at_also_after_a_failover() {
    let set = ClusterSet::replicated();
    let config = strict(&set);
    let (here, there) = (Store::open(&config).await.unwrap(), Store::open(&config).await.unwrap());
    let name = one_of_each(&set)[2].clone();
    let mut watch = here.of(&tenant(&name)).watch();
    assert_eq!(watch.next().await, WakeUp::Resync);
    there.of(&tenant(&name)).wake(&Topic::Catalog).await.unwrap();
    assert_eq!(watch.next().await, WakeUp::Topic(Topic::Catalog));
    for shard in 0..3 {
        let replica = set.replica_of(shard);
        assert_eq!(set.nodes[replica].command(&["CLUSTER", "FAILOVER"]), "+OK");
        set.until_leads(replica);
    }
    // The node listened at leads no more, so another one is found, and whoever watches is told to look.
    assert_eq!(watch.next().await, WakeUp::Resync);
    until_served(&there.of(&tenant(&name))).await;
    loop {
        there.of(&tenant(&name)).wake(&Topic::Document).await.unwrap();
        let heard = tokio::time::timeout(Duration::from_millis(200), watch.next()).await;
        if heard == Ok(WakeUp::Topic(Topic::Document)) {
            break;
        }
    }
}

#[tokio::test]
async fn unsafe_settings_of_any_node_are_told() {
    let set = ClusterSet::bare();
    let store = Store::open(&strict(&set)).await.unwrap();
    let health = store.health().await;
    assert!(health.ready(), "{health:?}");
    assert_eq!(health.warnings, [HealthFinding::StoreAcceptsWritesAlone], "no shard needs a replica to take writes");
    assert_eq!(set.nodes[2].command(&["CONFIG", "SET", "cluster-require-full-coverage", "yes"]), "+OK");
    assert!(store.health().await.warnings.contains(&HealthFinding::StoreRequiresFullCoverage));
    assert_eq!(set.nodes[1].command(&["CONFIG", "SET", "maxmemory-policy", "allkeys-lru"]), "+OK");
    assert_eq!(store.health().await.reasons, [HealthFinding::StoreEvicts]);
}

#[tokio::test]
async fn an_address_of_the_wrong_kind_is_told_apart_from_a_store_that_is_away() {
    let (single, set) = (RedisServer::start(), ClusterSet::bare());
    let as_cluster = config(single.url().replace("redis://", "redis+cluster://"));
    let as_single = config(set.nodes[0].url());
    for config in [as_cluster, as_single] {
        let store = Store::open(&Config { deadline: Duration::from_secs(2), ..config }).await.unwrap();
        let reasons = store.health().await.reasons;
        assert!(reasons.contains(&HealthFinding::StoreWrongTopology), "{reasons:?}");
        assert!(store.of(&tenant("acme")).get(&key()).await.is_err());
    }
}
