//! The repositories a tenant added by `helm_repo`: one record, changed by compare-and-set.

use super::ChartRepository;
use domain::{Code, Failure};
use store::{Commit, Committed, RecordKey, RecordVersion, StoreError, TenantStore};

/// How often a change is tried against others of the same moment.
const TRIES: usize = 5;

/// Those that were added, in their order.
pub(in crate::client) async fn read(shelf: &TenantStore) -> Result<Vec<ChartRepository>, Failure> {
    Ok(held(shelf).await?.1)
}

/// Changes the list. Nothing is written where `change` leaves it as it is.
pub(in crate::client) async fn change(
    shelf: &TenantStore,
    change: impl Fn(&mut Vec<ChartRepository>) -> Result<(), Failure>,
) -> Result<(), Failure> {
    for _ in 0..TRIES {
        let (version, before) = held(shelf).await?;
        let mut after = before.clone();
        change(&mut after)?;
        if after == before {
            return Ok(());
        }
        let body = serde_json::to_vec(&after).map_err(|_| unreadable())?;
        let commit = Commit::write(RecordKey::chart_repositories(), version, body);
        match shelf.commit(commit).await.map_err(|error| no_store(&error))? {
            Committed::Done(..) => return Ok(()),
            Committed::Conflict(..) | Committed::Late(_) | Committed::NoRoom(_) => {}
        }
    }
    Err(Failure::new(Code::Conflict, "the repositories are being changed by others").next("try again"))
}

async fn held(shelf: &TenantStore) -> Result<(RecordVersion, Vec<ChartRepository>), Failure> {
    match shelf.get(&RecordKey::chart_repositories()).await.map_err(|error| no_store(&error))? {
        None => Ok((RecordVersion::NONE, Vec::new())),
        Some(record) => {
            let list = serde_json::from_slice(&record.body).map_err(|_| unreadable())?;
            Ok((record.version, list))
        }
    }
}

fn no_store(error: &StoreError) -> Failure {
    tracing::warn!(error = error as &dyn std::error::Error, "the added repositories cannot be read or written");
    Failure::new(Code::StoreUnavailable, "the store does not answer; nothing was done").next("try again later")
}

fn unreadable() -> Failure {
    Failure::new(Code::Internal, "the record of the added repositories cannot be read")
}
