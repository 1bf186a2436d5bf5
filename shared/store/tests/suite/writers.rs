//! Writers that go on while something happens to the store, and what became of what they wrote.

use crate::bench::{call, opening, session_id};
use domain::CallId;
use futures_util::future::{join, join_all};
use std::collections::HashMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;
use store::{Commit, Committed, RecordKey, RecordVersion, Store, StreamName, TenantStore};

/// How much must be taken again after the fault.
const AFTER: usize = 30;

/// What one writer was told.
#[derive(Default)]
pub(crate) struct Told {
    /// The commits that were acknowledged.
    commits: Vec<u64>,
    /// The audit entries that were acknowledged, by their calls.
    opened: Vec<String>,
    /// How many calls failed.
    pub(crate) failed: usize,
}

/// What stands in the store afterwards, against what was told.
#[derive(Debug, PartialEq, Eq, Default)]
pub(crate) struct Balance {
    /// Acknowledged, and not there.
    pub(crate) missing: usize,
    /// There more than once.
    pub(crate) twice: usize,
}

fn key() -> RecordKey {
    RecordKey::session(session_id(9))
}

fn stream() -> StreamName {
    StreamName::checkpoints()
}

/// Writes until told to stop, and then until the store has taken some more.
async fn write(shelf: TenantStore, stop: &AtomicBool) -> Told {
    let (mut told, mut number, mut expect, mut after) = (Told::default(), 0_u64, 0, 0);
    while !stop.load(Ordering::Relaxed) || after < AFTER {
        let body = number.to_be_bytes().to_vec();
        let record = Commit::write(key(), RecordVersion::new(expect), body.clone());
        match shelf.commit(Commit { append: vec![(stream(), body)], ..record }).await {
            Ok(Committed::Done(version, _)) => {
                told.commits.push(number);
                (expect, number) = (version.number(), number + 1);
                after += usize::from(stop.load(Ordering::Relaxed));
            }
            // What got no answer did happen; or the store has forgotten something.
            Ok(Committed::Conflict(version, _)) => (expect, number) = (version.number(), number + 1),
            Ok(other @ (Committed::Late(_) | Committed::NoRoom(_))) => panic!("{other:?}"),
            Err(_) => {
                told.failed += 1;
                tokio::time::sleep(Duration::from_millis(5)).await;
            }
        }
        let id = CallId::from_random((u128::from(number) << 64 | u128::from(told.failed as u64)).to_be_bytes());
        // With a session that nobody has opened: the batch has a step beside the entry, which a slot that moves sends elsewhere.
        let mut made = call(1, Some(session_id(8)));
        made.id = id;
        match shelf.begin(&opening(&made)).await {
            Ok(_) => told.opened.push(id.to_string()),
            Err(_) => told.failed += 1,
        }
    }
    told
}

/// Has all of them write while the fault happens. Gives back what the fault was done to, and what each was told.
pub(crate) async fn under_writes<S: Send + 'static>(
    shelves: Vec<TenantStore>,
    set: S,
    fault: impl FnOnce(&mut S) + Send + 'static,
) -> (S, Vec<Told>) {
    let stop = AtomicBool::new(false);
    let happens = async {
        let happened = tokio::task::spawn_blocking(move || {
            let mut set = set;
            std::thread::sleep(Duration::from_millis(300));
            fault(&mut set);
            set
        });
        let set = happened.await.unwrap();
        stop.store(true, Ordering::Relaxed);
        set
    };
    join(happens, join_all(shelves.into_iter().map(|shelf| write(shelf, &stop)))).await
}

/// Compares what stands there with what was told.
pub(crate) async fn balance(shelf: &TenantStore, told: &Told) -> Balance {
    let (mut commits, mut opened): (HashMap<u64, usize>, HashMap<String, usize>) = Default::default();
    for (_, body) in shelf.read(&stream(), None, 1_000_000).await.unwrap() {
        *commits.entry(u64::from_be_bytes(body.try_into().unwrap())).or_default() += 1;
    }
    for entry in shelf.audit().page(None, 1_000_000).await.unwrap() {
        *opened.entry(entry.entry["call"].as_str().unwrap().to_owned()).or_default() += 1;
    }
    assert!(told.commits.len() > AFTER && told.opened.len() > AFTER, "they wrote hardly anything");
    let missing = told.commits.iter().filter(|number| !commits.contains_key(number)).count()
        + told.opened.iter().filter(|call| !opened.contains_key(*call)).count();
    let twice = commits.values().chain(opened.values()).filter(|times| **times > 1).count();
    Balance { missing, twice }
}

/// Asks until the store answers a tenant again.
pub(crate) async fn until_served(shelf: &TenantStore) {
    while shelf.get(&key()).await.is_err() {
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
}

/// Looks until the store is known to be another one.
pub(crate) async fn until_told(store: &Store, before: store::StoreEpoch) -> store::StoreEpoch {
    loop {
        drop(store.health().await);
        let now = store.lineages().now();
        if now != before {
            return now;
        }
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
}
