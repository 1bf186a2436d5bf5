//! The state store: records, streams, indexes, counters and wake-ups, on Redis or embedded.
//!
//! Reading order: [`Store`] and [`TenantStore`] are the way in, [`Commit`] is the one way to change a record, `keys` writes
//! every key. Above them stand the nouns: [`SessionStore`], [`AuditStore`] with [`TenantStore::begin`], [`DocumentStore`]. Over the audit log
//! stand [`Chain`], [`TenantStore::seal`] and [`Walker`]. `guard` seals what something is done by and refuses what it did not
//! seal. Below everything stand `ops`, the small steps a round trip is made
//! of, and the two backends `redis` and `embedded`.
//!
//! Not here: what may happen to a session or a run (see `domain`), who may do it (see `policy`).

mod audit;
mod audit_log;
mod audit_writer;
mod begin;
mod browsers;
mod carried;
mod chain;
mod commit;
mod config;
mod contents;
mod document;
mod duration;
mod duties;
mod embedded;
mod entry;
mod error;
mod failpoint;
mod guard;
mod health;
mod holds;
mod hub;
mod job_follower;
mod jobs;
mod keys;
mod lineage;
mod measure;
mod memory;
mod moved;
mod ops;
mod place;
mod put_off;
mod quota;
mod random;
mod redis;
mod references;
mod run_list;
mod run_shape;
mod runs;
mod seal;
mod secrets;
mod servers;
mod session_shape;
mod sessions;
mod shelf;
mod store;
mod switches;
mod tenant_text;
mod topic;
mod trim;
mod unrecorded;
mod usage;
mod waiting;
mod walker;

pub use crate::duration::deserialize as span;
pub use audit::{AuditStore, OpenAuditEntry, RecordedEntry};
pub use audit_log::{AuditLogPage, AuditLogPageBack, AuditLogPosition, LinkedEntry, VerifyError};
pub use begin::{ApprovalLookup, CallBeginning, CallOpening, CallRate, CallStart, PriorRuns};
pub use browsers::{BrowserSession, BrowserStore, BrowserTimes, SignInMethod};
pub use carried::CarriedOver;
pub use chain::{Chain, ChainLink, EntryLink, KeptLink, NotALink};
pub use commit::{Commit, Committed, IndexUpdate, RecordVersion, Room, Score, SideWrite, StoredRecord};
pub use config::{Config, Confirm, SentinelTls};
pub use contents::{EntryContents, OpenedContents};
pub use document::{
    DocOp, DocScope, Document, DocumentHead, Draft, PromotedFrom, Provenance, Redaction, Reference, Removal, Trust,
};
pub use duties::{Duty, DutyRoster, DutyStore, TenantAtRest};
pub use entry::{
    Actor, ActorKind, AuditEntry, CallVerdict, CloseFacts, Phase, RulePlace, RunApproval, RunMove, UnrecordedReads,
};
pub use error::{StoreError, StoreOpenError};
pub use guard::{OpenedBody, RecordCipher, RecordPlace, UnauthenticRecord};
pub use health::{HealthFinding, HealthReport};
pub use holds::{Lock, LockResult, LockStore};
pub use hub::{TenantWatch, WakeUp};
pub use job_follower::{JobFollower, JobNews};
pub use jobs::{JobChange, JobStore, JobSubmission, OutputPiece, RunnerPresence, VersionedJob};
pub use keys::{IndexName, RecordKey, StreamName};
pub use lineage::{StoreEpoch, StoreEpochs};
pub use memory::{
    DocumentStore, PathChange, PrefixLimit, QuotaExceeded, RemovalOutcome, ScopeLimits, WriteOutcome, WritePrecondition,
};
pub use ops::StreamId;
pub use place::EntryPlace;
pub use put_off::{PutOffStore, RunPutOff};
pub use quota::{StoreLimits, StoreQuota};
pub use random::random_bits;
pub use references::EvidenceCitation;
pub use run_list::RunBrief;
pub use runs::{DueRuns, NEVER_DUE, RunCasOutcome, RunStore, StandingRun, VersionedRun};
pub use seal::SealedBatch;
pub use secrets::{MOST_SECRETS, SealedSecret, SecretForgotten, SecretPut, SecretStore};
pub use servers::{
    AcceptedPins, FetchFailure, FetchLease, FetchedList, ListFacts, Pin, PinOutcome, ServerStore, VersionedListing,
};
pub use sessions::{SessionConfig, SessionPage, SessionStore, SessionUpdate, VersionedSession};
pub use shelf::TenantStore;
pub use store::Store;
pub use switches::{MOST_OF_OPERATOR, MOST_OF_TENANT, SwitchChange, SwitchStore, SwitchesInForce};
pub use tenant_text::{TenantText, TenantTexts, TextChange};
pub use topic::Topic;
pub use trim::Trim;
pub use unrecorded::UnrecordedStart;
pub use usage::{UsageBatch, UsageDate, UsageStore};
pub use waiting::{WaitingPage, WaitingPlace};
pub use walker::{AuditLogFlaw, ChainBreak, VerifiedAuditLog, Walker};
