//! Tenants' secrets: sealed in the store, in files, or in the operator's environment; never shown.
//!
//! Reading order: [`Sealer`] (what makes a value unreadable), [`Vault`] (where values come from, in which order, and how
//! they are set), [`RecordSealer`] (the same for records of the store), [`Environment`] and `files` (what the operator brings), [`Missing`] (why there is none).
//!
//! # The face
//! ```text
//! Vault::new(store, Sealer::new(&key, &older)?, files, Environment::of(std::env::vars()))     cheap to clone
//!   .refresh(&tenant)          what the store holds now; before the first one nothing can be read
//!   .read(&tenant, name)       from memory and files, at once
//!   .kept(&tenant, name)       the same, for clients that read a secret at each use
//!   .read_by_tenant(..) .kept_by_tenant(..)    only what was set over HTTP, nothing that the operator brought
//!   .set(..) .forget(..)       with an entry in the audit log, on all replicas
//!   .list(&tenant)             names and circumstances, never a value
//!   .scrubber(..) .scrubber_of_all(..)
//!   .reseal(&tenant)           brings everything under the current key
//! ```
//! A value leaves only as a [`redact::SecretText`], which does not print. In memory it stays sealed until it is used.
//!
//! Not here: who may set a secret (see the gateway), what a secret is good for (see the clients that ask for it).

mod change;
mod environment;
mod facts;
mod files;
mod missing;
mod name;
mod records;
mod scrubbers;
mod sealer;
mod vault;

pub use change::MOST_BYTES;
pub use environment::Environment;
pub use facts::{SealState, SecretFacts, SecretLocation, StoredSecretFacts};
pub use missing::Missing;
pub use name::is_secret_name;
pub use records::RecordSealer;
pub use sealer::{BadKey, OpenedSecret, SealError, Sealer};
pub use vault::Vault;
