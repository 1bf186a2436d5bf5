//! What an error of redb means to us.

use crate::StoreError;
use crate::error::StoreOpenError;
use redb::{DatabaseError, Error, StorageError};
use std::io::ErrorKind;
use std::sync::Arc;

/// Many calls can share one cause, since they shared the transaction.
#[expect(clippy::wildcard_enum_match_arm, reason = "redb's own enum, and open")]
pub(super) fn fault(error: &Arc<Error>) -> StoreError {
    match error.as_ref() {
        Error::Corrupted(_) => StoreError::Corrupt { what: "the store's file" },
        Error::ValueTooLarge(_) => StoreError::Full,
        Error::Io(io) => match io.kind() {
            ErrorKind::StorageFull | ErrorKind::QuotaExceeded | ErrorKind::FileTooLarge => StoreError::Full,
            ErrorKind::ReadOnlyFilesystem | ErrorKind::PermissionDenied => StoreError::ReadOnly,
            _ => StoreError::unavailable(Arc::clone(error)),
        },
        _ => StoreError::unavailable(Arc::clone(error)),
    }
}

/// Why a file was not opened.
#[expect(clippy::wildcard_enum_match_arm, reason = "redb's own enum, and open")]
pub(super) fn refused(error: DatabaseError) -> StoreOpenError {
    match error {
        DatabaseError::DatabaseAlreadyOpen => StoreOpenError::Locked,
        DatabaseError::Storage(StorageError::Io(ref io)) if io.kind() != ErrorKind::InvalidData => {
            StoreOpenError::File(error.into())
        }
        _ => StoreOpenError::Damaged(error.into()),
    }
}
