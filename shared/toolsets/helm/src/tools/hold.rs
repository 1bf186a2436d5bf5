//! One run at a time works on a release, whichever replica it is on. Who comes second is told at once who is first.

use super::HelmDeps;
use super::release::{ReleaseRef, RevisionSummary};
use domain::{Code, Failure, RunId};
use policy::Permit;
use serde_json::json;
use std::pin::Pin;
use std::time::Duration;
use store::{Lock, LockResult, LockStore, RecordKey, StoreError};

/// How long a hold lasts that nobody renews, and how often it is renewed.
const LASTS: Duration = Duration::from_secs(30);
const RENEW_EVERY: Duration = Duration::from_secs(10);

/// Does the work while the release is this run's.
pub(super) async fn holding<T>(
    kit: &HelmDeps,
    permit: &Permit,
    spot: &ReleaseRef<'_>,
    work: impl Future<Output = Result<T, Failure>>,
) -> Result<T, Failure> {
    let run = permit.run().ok_or_else(|| Failure::new(Code::PolicyDenied, "a release is changed by a run"))?;
    let (holds, key) = (kit.store.of(permit.tenant()).holds(), key(spot));
    let hold = match holds.take(&key, run, LASTS).await.map_err(|error| unavailable(&error))? {
        LockResult::Mine(hold) => hold,
        LockResult::Busy(other) => return Err(busy(other)),
    };
    // On the heap: every tool's future holds this one, and futures are moved about.
    let (done, hold) = renewing(&holds, hold, Box::pin(work)).await;
    // One that cannot be given back runs out by itself.
    if let Err(error) = holds.free(hold).await {
        tracing::warn!(%error, "the hold of a release was not given back");
    }
    done
}

/// Renews the hold until the work is done. What helm has begun is not stopped because a hold was lost.
async fn renewing<T>(holds: &LockStore, mut hold: Lock, mut work: Pin<Box<impl Future<Output = T>>>) -> (T, Lock) {
    loop {
        tokio::select! {
            done = &mut work => return (done, hold),
            () = tokio::time::sleep(RENEW_EVERY) => match holds.renew(&mut hold, LASTS).await {
                Ok(true) => {}
                Ok(false) => tracing::warn!("the hold of a release was lost while helm is at work"),
                Err(error) => tracing::warn!(%error, "the hold of a release was not renewed"),
            },
        }
    }
}

/// Refuses if another run works on the release.
pub(super) async fn free(kit: &HelmDeps, permit: &Permit, spot: &ReleaseRef<'_>) -> Result<(), Failure> {
    match holder(kit, permit, spot).await? {
        Some(other) if Some(other) != permit.run() => Err(busy(other)),
        Some(_) | None => Ok(()),
    }
}

/// The revisions of a release that may be changed now, the newest apart.
pub(super) async fn changeable(
    kit: &HelmDeps,
    permit: &Permit,
    spot: &ReleaseRef<'_>,
) -> Result<(Vec<RevisionSummary>, RevisionSummary), Failure> {
    let (past, newest) = spot.history().await?;
    // First: a revision that a run of ours is making is pending, and not abandoned.
    free(kit, permit, spot).await?;
    spot.unlocked(&newest)?;
    Ok((past, newest))
}

/// The run that works on the release.
pub(super) async fn holder(kit: &HelmDeps, permit: &Permit, spot: &ReleaseRef<'_>) -> Result<Option<RunId>, Failure> {
    kit.store.of(permit.tenant()).holds().holder(&key(spot)).await.map_err(|error| unavailable(&error))
}

fn key(spot: &ReleaseRef<'_>) -> RecordKey {
    RecordKey::release(spot.cluster.name(), &spot.namespace, &spot.name)
}

fn busy(run: RunId) -> Failure {
    Failure::new(crate::codes::RELEASE_BUSY, format!("run {run} is at work on this release"))
        .next(format!("wait for it with await_run {run}, then look at the release and call again"))
        .details(json!({ "run": run.to_string() }))
        .retry_after_ms(10_000)
}

fn unavailable(error: &StoreError) -> Failure {
    tracing::warn!(%error, "the hold of a release cannot be looked at");
    Failure::new(error.code(), "the store does not answer; nothing was sent").next("try later")
}
