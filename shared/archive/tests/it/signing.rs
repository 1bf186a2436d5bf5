//! When checkpoints are made, and by whom.

use crate::world::{World, archive};
use archive::{Checkpoint, CheckpointChain, SignOutcome};
use serde_json::json;
use store::{Commit, Committed, RecordKey, RecordVersion, StreamName, TenantStore};

async fn checkpoints(shelf: &TenantStore) -> Vec<Checkpoint> {
    let stored = shelf.read(&StreamName::checkpoints(), None, 100).await.unwrap();
    stored.iter().map(|(_, line)| Checkpoint::read(std::str::from_utf8(line).unwrap()).unwrap()).collect()
}

#[tokio::test]
async fn a_checkpoint_is_made_at_once_then_after_enough_entries_and_never_for_nothing() {
    let world = World::with(tempfile::tempdir().unwrap(), &json!([])).await;
    assert_eq!(world.archive.sign(&world.shelf).await.unwrap(), SignOutcome::Nothing, "an empty audit log");
    world.write(1).await;
    world.sign().await;
    assert_eq!(world.archive.sign(&world.shelf).await.unwrap(), SignOutcome::Nothing);
    world.write(2).await;
    let SignOutcome::Waiting(wait) = world.archive.sign(&world.shelf).await.unwrap() else {
        panic!("two entries wait")
    };
    assert!(wait.as_secs() > 3_500 && wait.as_secs() <= 3_600, "an hour after the last one: {wait:?}");
    assert!(world.archive.status.checkpoint_age(world.shelf.store().now().await.unwrap()).as_secs() < 60);
    world.write(1).await;
    world.sign().await;

    let made = checkpoints(&world.shelf).await;
    let ranges: Vec<_> = made.iter().map(|one| (one.checkpoint, one.first, one.last)).collect();
    assert_eq!(ranges, [(1, 1, 1), (2, 2, 4)]);
    let mut chain = CheckpointChain::new(world.shelf.tenant(), &world.archive.keys.public, false);
    for checkpoint in made {
        chain.take(checkpoint).unwrap();
    }
}

#[tokio::test]
async fn of_many_replicas_one_makes_the_checkpoint() {
    let world = World::with(tempfile::tempdir().unwrap(), &json!([])).await;
    world.write(5).await;
    let replicas = [archive(&json!([])), archive(&json!([])), archive(&json!([]))];
    let [a, b, c] = &replicas;
    let (a, b, c) = tokio::join!(a.sign(&world.shelf), b.sign(&world.shelf), c.sign(&world.shelf));
    let signed = [a, b, c].into_iter().filter(|one| matches!(one, Ok(SignOutcome::Signed))).count();
    assert_eq!((signed, checkpoints(&world.shelf).await.len()), (1, 1));
}

#[tokio::test]
async fn an_audit_log_that_does_not_verify_is_not_signed() {
    let world = World::with(tempfile::tempdir().unwrap(), &json!([])).await;
    world.write(2).await;
    world.sign().await;
    world.write(3).await;
    // Somebody who can write to the store puts another seal there, under which no entries are.
    let seal = world.shelf.get(&RecordKey::seal()).await.unwrap().unwrap();
    let text = String::from_utf8(seal.body).unwrap();
    let at = text.rfind("sha256:").unwrap() + "sha256:".len();
    let bent = format!("{}{}{}", &text[..at], if &text[at..=at] == "0" { "1" } else { "0" }, &text[at + 1..]);
    let commit = Commit::write(RecordKey::seal(), RecordVersion::new(seal.version.number()), bent.into_bytes());
    assert!(matches!(world.shelf.commit(commit).await.unwrap(), Committed::Done(..)));
    let error = world.archive.sign(&world.shelf).await.unwrap_err();
    assert_eq!(error.to_string(), "entry 5 of the audit log is not as it was sealed");
    assert_eq!((world.archive.status.verify_failures(), checkpoints(&world.shelf).await.len()), (1, 1));
}
