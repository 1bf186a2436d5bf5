//! Why a secret cannot be had.

use domain::{Code, Failure};

/// Why a secret cannot be had. Holds no part of one.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Missing {
    /// Nothing can be called that.
    #[error("a secret is named with 1 to 253 letters, digits, '-', '_' and '.', the first no dot")]
    NotAName,
    /// It is in none of the places.
    #[error("the tenant has no secret {name}")]
    Unknown {
        /// What was asked for.
        name: String,
    },
    /// The store has not been read yet, so it may hold the secret. What lies elsewhere under the name may be out of date.
    #[error("whether the tenant has a secret {name} is not known yet")]
    NotKnownYet {
        /// What was asked for.
        name: String,
    },
    /// The operator brought it, and does not let it be used here.
    #[error("the secret {name} is the operator's, and the tenant's file does not use it here")]
    NotGranted {
        /// What was asked for.
        name: String,
    },
    /// It is in the store but does not open: sealed under a key this service does not have, or damaged.
    #[error("the secret {name} cannot be opened")]
    Sealed {
        /// What was asked for.
        name: String,
    },
    /// Its file is there but cannot be read, is empty or too large, or is no text.
    #[error("the file of the secret {name} cannot be used")]
    File {
        /// What was asked for.
        name: String,
    },
}

impl Missing {
    /// The stable name of this failure on the wire, in metrics and in the audit.
    pub fn code(&self) -> Code {
        match self {
            Missing::NotAName
            | Missing::Unknown { .. }
            | Missing::NotGranted { .. }
            | Missing::Sealed { .. }
            | Missing::File { .. } => Code::UnknownCredential,
            Missing::NotKnownYet { .. } => Code::StoreUnavailable,
        }
    }

    fn next(&self) -> &'static str {
        match self {
            Missing::NotAName => "ask an admin of the tenant to correct the name in its configuration",
            Missing::Unknown { .. } => "ask an admin of the tenant to set it",
            Missing::NotGranted { .. } => {
                "ask an admin of the tenant to set a secret of its own, or the operator to grant it"
            }
            Missing::NotKnownYet { .. } => "try again in a few seconds",
            Missing::Sealed { .. } => "ask an admin of the tenant to set it again",
            Missing::File { .. } => "ask the operator to correct it",
        }
    }
}

impl From<Missing> for Failure {
    fn from(missing: Missing) -> Failure {
        Failure::new(missing.code(), missing.to_string()).next(missing.next())
    }
}
