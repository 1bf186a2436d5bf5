//! Behind sentinels with two replicas: what was confirmed is there whichever of them is promoted, and what may be lost was
//! not confirmed.

use crate::bench::{config, tenant};
use crate::runs::{fold, open, run, said};
use crate::writers::until_served;
use domain::run::Verdict;
use futures_util::future::join_all;
use std::time::Duration;
use store::{Config, HealthFinding, RunStore, StandingRun, Store, VersionedRun};
use testkit::redis_topology::{ClusterSet, MASTER, SentinelSet};
use testkit::until;

const WITHIN: Duration = Duration::from_millis(100);

/// Settings with a deadline near production's, on a store that confirms by itself.
async fn opened(url: String) -> Store {
    Store::open(&Config { deadline: Duration::from_secs(2), ..config(url) }).await.unwrap()
}

fn runs(store: &Store) -> RunStore {
    store.of(&tenant("acme")).runs()
}

/// What the replicas say, as soon as they can be asked.
async fn standing(runs: &RunStore, held: &VersionedRun) -> StandingRun {
    loop {
        match runs.confirm(held.run.id, WITHIN).await {
            Ok(standing) => return standing.expect("there are replicas, so they are asked"),
            Err(_) => tokio::time::sleep(Duration::from_millis(20)).await,
        }
    }
}

/// Asks until enough replicas have it.
async fn until_confirmed(runs: &RunStore, held: &VersionedRun) {
    let found = until("enough replicas to have the run", async || match runs.confirm(held.run.id, WITHIN).await {
        Ok(Some(StandingRun { enough: true, held })) => held,
        Ok(_) | Err(_) => None,
    });
    assert_eq!(found.await.version, held.version);
}

/// A run that one person has approved, as the store took it.
async fn approved(store: &Store, held: &VersionedRun) -> VersionedRun {
    let now = store.now().await.unwrap();
    fold(&runs(store), held, &said("ana", Verdict::Approve, now), now).await
}

#[tokio::test(flavor = "multi_thread")]
async fn s3_a_decision_that_one_replica_lacks_does_not_count_and_that_one_may_be_promoted() {
    let mut set = SentinelSet::with_replicas(2);
    let store = opened(set.url()).await;
    let runs = runs(&store);
    let pending = open(&runs, &run(1, store.now().await.unwrap())).await;
    until_confirmed(&runs, &pending).await;

    // It hears nothing from here on; the sentinels would send it back, and take longer for that than this takes.
    assert_eq!(set.nodes[2].command(&["REPLICAOF", "127.0.0.1", "1"]), "+OK");
    let decided = approved(&store, &pending).await;
    let told = standing(&runs, &decided).await;
    set.nodes[1].stop();
    set.nodes[0].stop();
    set.until_leads(2);

    until_served(&store.of(&tenant("acme"))).await;
    let found = runs.find(decided.run.id).await.unwrap().0.expect("the run was confirmed before");
    assert_eq!(found.run.answers.len(), 0, "the one that was promoted never heard of the decision");
    assert_eq!(told, StandingRun { held: Some(decided), enough: false }, "so nobody may be told that it counts");
}

#[tokio::test(flavor = "multi_thread")]
async fn s3_a_decision_that_counts_is_there_whichever_replica_is_promoted() {
    for promoted in [1, 2] {
        let mut set = SentinelSet::with_replicas(2);
        let store = opened(set.url()).await;
        let runs = runs(&store);
        let pending = open(&runs, &run(1, store.now().await.unwrap())).await;
        let decided = approved(&store, &pending).await;
        until_confirmed(&runs, &decided).await;

        set.nodes[3 - promoted].stop();
        set.nodes[0].stop();
        set.until_leads(promoted);

        until_served(&store.of(&tenant("acme"))).await;
        let found = runs.find(decided.run.id).await.unwrap().0;
        assert_eq!(found, Some(decided), "node {promoted} was promoted");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn s3_a_primary_without_its_replicas_confirms_nothing_not_even_to_who_has_never_seen_them() {
    let mut set = SentinelSet::with_replicas(2);
    let before = opened(set.url()).await;
    let pending = open(&runs(&before), &run(1, before.now().await.unwrap())).await;
    until_confirmed(&runs(&before), &pending).await;
    set.nodes[1].stop();
    set.nodes[2].stop();

    let late = Store::open(&Config { prefix: "late".to_owned(), ..config(set.url()) }).await.unwrap();
    let asked = open(&runs(&late), &run(1, late.now().await.unwrap())).await;
    for (store, held) in [(&before, &pending), (&late, &asked)] {
        assert!(!standing(&runs(store), held).await.enough);
        assert!(store.health().await.warnings.contains(&HealthFinding::StoreReplicasMissing));
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn s3_a_replica_that_left_for_good_is_waited_for_until_the_sentinels_are_told_to_forget_it() {
    let mut set = SentinelSet::with_replicas(2);
    let store = opened(set.url()).await;
    let runs = runs(&store);
    let pending = open(&runs, &run(1, store.now().await.unwrap())).await;
    until_confirmed(&runs, &pending).await;
    assert!(!store.health().await.warnings.contains(&HealthFinding::StoreReplicasMissing));

    // The old primary counts as a replica of the new one: it may come back with what it had, and be promoted.
    set.nodes[0].stop();
    until_served(&store.of(&tenant("acme"))).await;
    assert!(!standing(&runs, &pending).await.enough);
    assert!(store.health().await.warnings.contains(&HealthFinding::StoreReplicasMissing));

    set.until_settled(1);
    for sentinel in &set.sentinels {
        assert_eq!(sentinel.command(&["SENTINEL", "RESET", MASTER]), ":1");
    }
    until_confirmed(&runs, &pending).await;
}

#[tokio::test]
async fn many_who_ask_at_once_share_one_wait() {
    let set = SentinelSet::with_replicas(2);
    let store = opened(set.url()).await;
    let runs = runs(&store);
    let held = open(&runs, &run(1, store.now().await.unwrap())).await;
    until_confirmed(&runs, &held).await;
    let waits = || {
        let script = "return tonumber(redis.call('INFO','commandstats'):match('cmdstat_wait:calls=(%d+)'))";
        set.nodes[0].command(&["EVAL", script, "0"]).trim_start_matches(':').parse::<u64>().unwrap()
    };

    let before = waits();
    let all = join_all((0..200).map(|_| standing(&runs, &held))).await;
    assert!(all.iter().all(|standing| standing.enough && standing.held.as_ref() == Some(&held)));
    assert!(waits() - before <= 3, "{} for 200 who asked", waits() - before);
}

#[tokio::test]
async fn one_who_gives_up_does_not_take_the_answers_of_others_along() {
    let set = SentinelSet::with_replicas(2);
    let store = opened(set.url()).await;
    let runs = runs(&store);
    let held = open(&runs, &run(1, store.now().await.unwrap())).await;
    until_confirmed(&runs, &held).await;
    set.nodes[1].pause();
    // The first asks for all, and leaves before its answer is there.
    let first = tokio::time::timeout(WITHIN / 4, runs.confirm(held.run.id, WITHIN));
    let (first, second) = futures_util::future::join(first, standing(&runs, &held)).await;
    assert!(first.is_err() && !second.enough);
    set.nodes[1].resume();
    until_confirmed(&runs, &held).await;
}

#[tokio::test]
async fn a_shard_whose_replica_failed_confirms_nothing_even_to_who_has_never_seen_it() {
    let mut set = ClusterSet::replicated();
    for replica in 3..6 {
        set.nodes[replica].stop();
    }
    let store = opened(set.url()).await;
    let runs = runs(&store);
    let held = open(&runs, &run(1, store.now().await.unwrap())).await;
    assert!(!standing(&runs, &held).await.enough);
}
