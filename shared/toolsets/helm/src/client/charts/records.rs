//! The repositories a tenant added by `helm_repo`: one record, changed by compare-and-set.

use super::ChartRepository;
use domain::{Code, Failure};
use store::{Commit, Committed, RecordKey, RecordVersion, StoreError, StoredRecord, TenantStore};

/// How often a change is tried against others of the same moment.
const TRIES: usize = 5;

/// Those that were added, in their order.
pub(in crate::client) async fn read(shelf: &TenantStore) -> Result<Vec<ChartRepository>, Failure> {
    match shelf.get(&RecordKey::chart_repositories()).await {
        // Charts come from where the record says, so one that somebody else wrote says nothing.
        Err(error @ StoreError::NotAuthentic { .. }) => Err(forged(&error)),
        record => Ok(listed(record)?.1),
    }
}

/// Changes the list. Nothing is written where `change` leaves it as it is.
pub(in crate::client) async fn change(
    shelf: &TenantStore,
    change: impl Fn(&mut Vec<ChartRepository>) -> Result<(), Failure>,
) -> Result<(), Failure> {
    for _ in 0..TRIES {
        let (version, before) = match shelf.get(&RecordKey::chart_repositories()).await {
            // Whoever adds one writes over what somebody else wrote.
            Err(StoreError::NotAuthentic { version, .. }) => (version, Vec::new()),
            record => listed(record)?,
        };
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

fn listed(read: Result<Option<StoredRecord>, StoreError>) -> Result<(RecordVersion, Vec<ChartRepository>), Failure> {
    match read.map_err(|error| no_store(&error))? {
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

fn forged(error: &StoreError) -> Failure {
    Failure::new(error.code(), "the record of the added repositories was not written by this service; it is not used")
        .next("tell the operator, who finds the record in the audit log; adding a repository writes over it")
}

fn unreadable() -> Failure {
    Failure::new(Code::Internal, "the record of the added repositories cannot be read")
}

#[cfg(test)]
mod tests {
    use super::*;
    use domain::Tenant;
    use std::sync::Arc;
    use store::Store;

    fn repository(host: &str) -> ChartRepository {
        ChartRepository { name: "stable".to_owned(), url: format!("https://{host}/charts"), credential: None }
    }

    fn add(list: &mut Vec<ChartRepository>) -> Result<(), Failure> {
        list.push(repository("good.example"));
        Ok(())
    }

    #[tokio::test]
    async fn repositories_that_were_forged_are_not_used() {
        let folder = tempfile::tempdir().unwrap();
        let config = store::Config::at(&format!("file:{}", folder.path().join("state.redb").display()));
        let acme = Tenant::parse("acme").unwrap();
        let cipher = || Arc::new(vault::RecordSealer::new(&[7; 32], &[]).unwrap());
        let service = Store::open_sealed(&config, cipher()).await.unwrap();
        change(&service.of(&acme), add).await.unwrap();
        assert_eq!(read(&service.of(&acme)).await.unwrap(), [repository("good.example")]);
        service.close().await;

        let intruder = Store::open(&config).await.unwrap();
        let (shelf, key) = (intruder.of(&acme), RecordKey::chart_repositories());
        let version = shelf.get(&key).await.unwrap().unwrap().version;
        let forged = serde_json::to_vec(&[repository("evil.example")]).unwrap();
        assert!(matches!(shelf.commit(Commit::write(key, version, forged)).await.unwrap(), Committed::Done(..)));
        intruder.close().await;

        let service = Store::open_sealed(&config, cipher()).await.unwrap();
        assert_eq!(read(&service.of(&acme)).await.unwrap_err().code, Code::RecordNotAuthentic);
        change(&service.of(&acme), add).await.unwrap();
        assert_eq!(read(&service.of(&acme)).await.unwrap(), [repository("good.example")], "nothing of it was kept");
        service.close().await;
    }
}
