//! What leaves the store, and when.

use crate::exporting::judge;
use crate::world::{World, archive};
use archive::{ArchiveReader, Expectations, ExportOutcome};
use serde_json::json;
use std::time::Duration;
use store::{StreamName, TenantStore};

const AT_ONCE: Duration = Duration::ZERO;
const DAY: Duration = Duration::from_secs(24 * 60 * 60);

async fn count(shelf: &TenantStore) -> usize {
    shelf.audit_log(None, 1_000).await.unwrap().entries.len()
}

#[tokio::test]
async fn only_what_is_old_signed_and_with_every_sink_leaves_the_store() {
    let world = World::with_folder().await;
    let trim = async |keep: Duration| world.archive.trim(&world.shelf, keep).await.unwrap();
    world.write(4).await;
    assert_eq!(trim(AT_ONCE).await, 0, "it is not signed");
    world.sign().await;
    assert_eq!(trim(AT_ONCE).await, 0, "the folder does not have it");
    world.export().await;
    assert_eq!(trim(DAY).await, 0, "it is not old");
    let before = world.shelf.usage().await.unwrap();
    assert_eq!((trim(AT_ONCE).await, count(&world.shelf).await), (4, 0));
    assert!(world.shelf.usage().await.unwrap() < before, "the tenant's bytes go down");
    assert_eq!(world.shelf.read(&StreamName::links(), None, 10).await.unwrap(), []);
    assert_eq!(trim(AT_ONCE).await, 0);

    world.write(3).await;
    world.sign().await;
    world.write(1).await;
    world.export().await;
    assert_eq!((trim(AT_ONCE).await, count(&world.shelf).await), (3, 1), "the last one has no checkpoint");
    assert_eq!(world.shelf.verify().await.unwrap().sealed, 1, "what is left verifies from the checkpoint on");
    assert_eq!(judge(&world, &world.exported(), &[]).unwrap().entries, 8, "and the folder has all of it");
}

#[tokio::test]
async fn without_sinks_a_checkpoint_is_enough() {
    let world = World::with(tempfile::tempdir().unwrap(), &json!([])).await;
    world.write(3).await;
    assert_eq!(world.archive.trim(&world.shelf, AT_ONCE).await.unwrap(), 0);
    world.sign().await;
    assert_eq!(world.archive.trim(&world.shelf, AT_ONCE).await.unwrap(), 3);
    world.write(2).await;
    assert_eq!(world.shelf.verify().await.unwrap().sealed, 2);
}

#[tokio::test]
async fn a_sink_that_is_new_gets_what_is_still_in_the_store() {
    let world = World::with(tempfile::tempdir().unwrap(), &json!([])).await;
    world.write(3).await;
    world.sign().await;
    assert_eq!(world.archive.trim(&world.shelf, AT_ONCE).await.unwrap(), 3);
    world.write(2).await;
    let sink = json!({ "name": "new", "kind": "folder", "path": world.folder.path().join("out"), "every": "1ms" });
    let with_sink = archive(&json!([sink]));
    tokio::time::sleep(Duration::from_millis(2)).await;
    assert_eq!(with_sink.export(0, &world.shelf).await.unwrap(), ExportOutcome::Sent);
    assert_eq!(with_sink.export(0, &world.shelf).await.unwrap(), ExportOutcome::Nothing);
    let mut reader = ArchiveReader::default();
    world.exported().iter().flatten().for_each(|line| reader.line(line).unwrap());
    let expected = Expectations { keys: Some(&with_sink.keys.public), known: &[], whole: true };
    let verified = reader.finish(expected).unwrap().unwrap();
    assert_eq!(
        (verified.after, verified.entries, verified.signed),
        (3, 2, 3),
        "the checkpoint vouches for the beginning"
    );
}
