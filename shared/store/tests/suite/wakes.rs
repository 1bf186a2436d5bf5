//! Wake-ups: who hears what.

use crate::bench::{Bench, LIVES, on_every_backend, session_id, tenant};
use store::{Commit, Committed, RecordKey, RecordVersion, TenantWatch, Topic, WakeUp};

on_every_backend!(
    a_commit_wakes_whoever_watches_its_tenant,
    a_refused_commit_wakes_nobody,
    a_wake_up_can_be_sent_alone,
    another_tenant_hears_nothing,
    a_watch_begun_after_another_ended_hears_again,
    the_one_before_hears_that_its_stream_was_taken,
);

/// Waits until messages arrive.
async fn live(mut watch: TenantWatch) -> TenantWatch {
    assert_eq!(watch.next().await, WakeUp::Resync);
    watch
}

fn write(expect: u64, topic: Topic) -> Commit {
    let key = RecordKey::session(session_id(1));
    Commit { wake: Some(topic), ..Commit::write(key, RecordVersion::new(expect), vec![]) }
}

async fn a_commit_wakes_whoever_watches_its_tenant(bench: Bench) {
    let acme = bench.acme();
    let (mut one, mut two) = (live(acme.watch()).await, live(acme.watch()).await);
    assert!(matches!(acme.commit(write(0, Topic::Session(session_id(1)))).await.unwrap(), Committed::Done(..)));
    for watch in [&mut one, &mut two] {
        assert_eq!(watch.next().await, WakeUp::Topic(Topic::Session(session_id(1))));
    }
}

async fn a_refused_commit_wakes_nobody(bench: Bench) {
    let acme = bench.acme();
    let mut watch = live(acme.watch()).await;
    assert!(matches!(acme.commit(write(5, Topic::Session(session_id(1)))).await.unwrap(), Committed::Conflict(..)));
    acme.wake(&Topic::Catalog).await.unwrap();
    assert_eq!(watch.next().await, WakeUp::Topic(Topic::Catalog));
}

async fn a_wake_up_can_be_sent_alone(bench: Bench) {
    let acme = bench.acme();
    let mut watch = live(acme.watch()).await;
    let topics = [
        Topic::Cancel { session: session_id(1), request: "\"r:1\"".into() },
        Topic::StreamOwner { session: session_id(1), owner: "rep_1".into() },
        Topic::Document,
    ];
    for topic in topics {
        acme.wake(&topic).await.unwrap();
        assert_eq!(watch.next().await, WakeUp::Topic(topic));
    }
}

async fn another_tenant_hears_nothing(bench: Bench) {
    let (acme, bolt) = (bench.acme(), bench.store.of(&tenant("bolt")));
    let mut watch = live(bolt.watch()).await;
    let mut own = live(acme.watch()).await;
    acme.wake(&Topic::Catalog).await.unwrap();
    assert_eq!(own.next().await, WakeUp::Topic(Topic::Catalog));
    bolt.wake(&Topic::Document).await.unwrap();
    assert_eq!(watch.next().await, WakeUp::Topic(Topic::Document));
}

async fn a_watch_begun_after_another_ended_hears_again(bench: Bench) {
    let acme = bench.acme();
    for _ in 0..20 {
        let mut watch = live(acme.watch()).await;
        acme.wake(&Topic::Catalog).await.unwrap();
        assert_eq!(watch.next().await, WakeUp::Topic(Topic::Catalog));
    }
}

async fn the_one_before_hears_that_its_stream_was_taken(bench: Bench) {
    let acme = bench.acme();
    acme.sessions().take_stream(session_id(1), "first", LIVES).await.unwrap();
    let mut watch = live(acme.watch()).await;
    acme.sessions().take_stream(session_id(1), "second", LIVES).await.unwrap();
    let taken_by = |owner: &str| WakeUp::Topic(Topic::StreamOwner { session: session_id(1), owner: owner.to_owned() });
    // The nodes of a cluster pass wake-ups on to each other, so the one before may still be on its way.
    let mut heard = watch.next().await;
    if heard == taken_by("first") {
        heard = watch.next().await;
    }
    assert_eq!(heard, taken_by("second"));
}
