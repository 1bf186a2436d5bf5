//! What can go wrong with the store, at opening and afterwards.

use crate::{RecordVersion, StoreQuota};
use domain::{Code, Failure};

/// The cause below an error of ours.
pub(crate) type SourceError = Box<dyn std::error::Error + Send + Sync>;

/// Why a call to the store gave no answer.
#[derive(Debug, thiserror::Error)]
pub enum StoreError {
    /// Not connected, starting, or closed.
    #[error("the store cannot be reached")]
    Unavailable {
        /// The cause below.
        #[source]
        source: SourceError,
    },
    /// No answer within the deadline. Whether a change was made is unknown.
    #[error("the store did not answer in time")]
    Timeout,
    /// No room for what was to be written.
    #[error("the store is full")]
    Full,
    /// The store answers but takes no changes.
    #[error("the store takes no changes")]
    ReadOnly,
    /// What is stored for this tenant or caller has reached its limit, so nothing was added.
    #[error("a limit of what is stored is reached")]
    QuotaReached(#[source] StoreQuota),
    /// What was read is not what we write.
    #[error("the store holds something unreadable: {what}")]
    Corrupt {
        /// What was not as it should be; never the content itself.
        what: &'static str,
    },
    /// What was read was not written by this service as it stands, so nothing is done by it.
    #[error("a record of the store is not authentic: {why}")]
    NotAuthentic {
        /// What is wrong with it.
        why: &'static str,
        /// The version under which it stands, for whoever writes over it.
        version: RecordVersion,
    },
}

impl StoreError {
    /// The stable name of this failure on the wire, in metrics and in the audit.
    pub fn code(&self) -> Code {
        match self {
            StoreError::Unavailable { .. } | StoreError::Timeout | StoreError::ReadOnly => Code::StoreUnavailable,
            StoreError::Full => Code::StoreFull,
            StoreError::QuotaReached(_) => StoreQuota::CODE,
            StoreError::Corrupt { .. } => Code::Internal,
            StoreError::NotAuthentic { .. } => Code::RecordNotAuthentic,
        }
    }

    /// Whether the store answers and takes no changes, so that nothing was written and what it holds can still be read.
    pub fn refuses_writes(&self) -> bool {
        match self {
            StoreError::Full | StoreError::ReadOnly => true,
            StoreError::Unavailable { .. }
            | StoreError::Timeout
            | StoreError::QuotaReached(_)
            | StoreError::Corrupt { .. }
            | StoreError::NotAuthentic { .. } => false,
        }
    }

    /// What a caller reads of it: that the store did not answer, and how the sentence ends.
    pub fn failure(&self, end: &str) -> Failure {
        if let StoreError::NotAuthentic { .. } = self {
            return Failure::new(self.code(), format!("this service did not write the record{end}"))
                .next("ask for it again; an operator finds the record in the audit log");
        }
        Failure::new(self.code(), format!("the state store did not answer{end}"))
            .next("try again shortly")
            .retry_after_ms(1_000)
    }

    /// The same failure once more, for another one who waits for the same answer.
    pub(crate) fn repeated(&self) -> StoreError {
        match self {
            StoreError::Unavailable { source } => StoreError::unavailable(source.to_string()),
            StoreError::Timeout => StoreError::Timeout,
            StoreError::Full => StoreError::Full,
            StoreError::ReadOnly => StoreError::ReadOnly,
            StoreError::QuotaReached(quota) => StoreError::QuotaReached(*quota),
            StoreError::Corrupt { what } => StoreError::Corrupt { what },
            StoreError::NotAuthentic { why, version } => StoreError::NotAuthentic { why, version: *version },
        }
    }

    pub(crate) fn unavailable(source: impl Into<SourceError>) -> StoreError {
        StoreError::Unavailable { source: source.into() }
    }
}

/// Why the store was not opened. A Redis that is away is no reason: it may come back.
#[derive(Debug, thiserror::Error)]
pub enum StoreOpenError {
    /// The address is of no known kind.
    #[error(
        "store.url must be redis://…, redis+sentinel://…, redis+cluster://…, file:PATH or memory:; rediss means TLS"
    )]
    Address,
    /// The settings of the topology do not fit together.
    #[error("{0}")]
    Topology(&'static str),
    /// A file of `store.tls_ca_file`, `tls_cert_file` or `tls_key_file` cannot be used.
    #[error("a certificate of the store's settings cannot be used")]
    TlsFile(#[source] SourceError),
    /// The Redis address does not parse.
    #[error("store.url is not a usable Redis address")]
    RedisAddress(#[source] SourceError),
    /// The prefix could bend a key.
    #[error("store.prefix must be 1 to 32 of a-z, 0-9, '_' and '-'")]
    Prefix,
    /// A deadline of nothing can never be met.
    #[error("store.deadline must be longer than nothing")]
    Deadline,
    /// Another process has the file.
    #[error("the store's file is locked by another process")]
    Locked,
    /// The file is no store, or a damaged one.
    #[error("the store's file is damaged or is not a store; move it away to begin anew")]
    Damaged(#[source] SourceError),
    /// The file can be neither opened nor made.
    #[error("the store's file cannot be opened")]
    File(#[source] SourceError),
    /// The system gave no randomness or no thread.
    #[error("the system refused what the store needs to start")]
    System(#[source] SourceError),
}
