//! Taking the beginning of a stream away, in the commit of the record that says so.

use crate::bench::{Bench, on_every_backend};
use store::{Commit, Committed, RecordKey, RecordVersion, SideWrite, StreamId, StreamName, TenantStore};

on_every_backend!(
    a_trimmed_stream_begins_behind_the_place_and_the_tenants_bytes_go_down,
    a_trim_whose_record_has_moved_takes_nothing_away,
);

/// Appends so many entries of ten bytes, and gives their places.
async fn append(acme: &TenantStore, count: u8) -> Vec<StreamId> {
    let stream = StreamName::checkpoints;
    for number in 0..count {
        let append = vec![(stream(), vec![number; 10])];
        let version = acme.get(&RecordKey::seal()).await.unwrap().map_or(RecordVersion::NONE, |record| record.version);
        let commit = Commit { append, ..Commit::write(RecordKey::seal(), version, vec![number]) };
        assert!(matches!(acme.commit(commit).await.unwrap(), Committed::Done(..)));
    }
    acme.read(&stream(), None, 100).await.unwrap().into_iter().map(|(id, _)| id).collect()
}

fn trim(expect: RecordVersion, through: StreamId) -> Commit {
    let beside = vec![SideWrite::Trim(StreamName::checkpoints(), through, 30)];
    Commit { beside, ..Commit::write(RecordKey::trimmed(), expect, b"{}".to_vec()) }
}

async fn a_trimmed_stream_begins_behind_the_place_and_the_tenants_bytes_go_down(bench: Bench) {
    let acme = bench.acme();
    let ids = append(&acme, 5).await;
    assert_eq!(acme.usage().await.unwrap(), 50);
    assert!(matches!(acme.commit(trim(RecordVersion::NONE, ids[2])).await.unwrap(), Committed::Done(..)));
    let left: Vec<StreamId> =
        acme.read(&StreamName::checkpoints(), None, 100).await.unwrap().into_iter().map(|(id, _)| id).collect();
    assert_eq!((left.as_slice(), acme.usage().await.unwrap()), (&ids[3..], 20));
    let more = append(&acme, 1).await;
    assert!(more.len() == 3 && more[2] > ids[4], "appending goes on behind what is left");
}

async fn a_trim_whose_record_has_moved_takes_nothing_away(bench: Bench) {
    let acme = bench.acme();
    let ids = append(&acme, 3).await;
    assert!(matches!(acme.commit(trim(RecordVersion::NONE, ids[0])).await.unwrap(), Committed::Done(..)));
    assert!(matches!(acme.commit(trim(RecordVersion::NONE, ids[2])).await.unwrap(), Committed::Conflict(..)));
    assert_eq!(acme.read(&StreamName::checkpoints(), None, 100).await.unwrap().len(), 2);
    assert_eq!(acme.usage().await.unwrap(), 0, "thirty bytes were said to go, and that once");
}
