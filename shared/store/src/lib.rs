//! The state store: records, streams, indexes, counters and wake-ups, on Redis or embedded.
//!
//! Reading order: [`Store`] and [`Shelf`] are the way in, [`Commit`] is the one way to change a record, `keys` writes
//! every key. Above them stand the nouns: [`Sessions`], [`Audit`] with [`Shelf::begin`], [`Memory`]. Over the ledger
//! stand [`Chain`], [`Shelf::seal`] and [`Walker`]. Below everything stand `ops`, the small steps a round trip is made
//! of, and the two backends `redis` and `embedded`.
//!
//! Not here: what may happen to a session or a run (see `domain`), who may do it (see `policy`).

mod audit;
mod audit_queue;
mod begin;
mod chain;
mod commit;
mod config;
mod document;
mod duration;
mod embedded;
mod entry;
mod error;
mod failpoint;
mod health;
mod holds;
mod hub;
mod keys;
mod ledger;
mod lineage;
mod memory;
mod ops;
mod random;
mod redis;
mod references;
mod runs;
mod seal;
mod secrets;
mod servers;
mod session_shape;
mod sessions;
mod shelf;
mod store;
mod tenant_text;
mod topic;
mod walker;

pub use crate::duration::deserialize as span;
pub use audit::{Audit, Noted, Receipt};
pub use begin::{Begun, Gated, Opening, Past};
pub use chain::{Chain, Link, NotALink};
pub use commit::{Beside, Commit, Committed, Placing, Rank, Record, Version};
pub use config::{Config, Confirm};
pub use document::{DocOp, DocScope, Document, Draft, Head, Provenance, Redaction, Reference, Removal, Source, Trust};
pub use entry::{Actor, ActorKind, AuditEntry, CloseFacts, Phase, RunMove, Verdict};
pub use error::{OpenError, StoreError};
pub use health::{Finding, Health};
pub use holds::{Hold, Holds, Taken};
pub use hub::{Wake, Watch};
pub use keys::{Index, RecordKey, Stream};
pub use ledger::{LedgerEntry, LedgerPage, Place, VerifyError};
pub use lineage::{Lineage, Lineages};
pub use memory::{Base, Change, Limits, Memory, Part, Put, Removed, Room};
pub use ops::StreamId;
pub use random::random_bits;
pub use references::Cited;
pub use runs::{FoldedRun, HeldRun, Runs, StandingRun};
pub use seal::Sealed;
pub use secrets::{MOST_SECRETS, SealedSecret, SecretForgotten, SecretPut, Secrets};
pub use servers::{FetchLease, Fetched, HeldListing, Listing, Pin, Pinned, Pins, Servers, Trouble};
pub use sessions::{Folded, Held, SessionConfig, Sessions};
pub use shelf::Shelf;
pub use store::Store;
pub use tenant_text::{TenantText, TenantTexts, TextChange};
pub use topic::Topic;
pub use walker::{ChainBreak, Flaw, Verified, Walker};
