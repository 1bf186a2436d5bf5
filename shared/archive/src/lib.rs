//! The audit log outside the store: signed checkpoints, export to sinks, trimming, and the proof of it all.
//!
//! Reading order: [`Checkpoint`] is what the service signs, [`SigningKey`] and [`PublicKeys`] are what it signs and others
//! verify with. [`Archive`] is the way in: `sign` makes checkpoints, `export` sends chunks of `lines` to a sink, `retention`
//! takes out of the store what both have done with. [`ArchiveReader`] verifies what came out. [`ArchiveStatus`] tells how
//! far all of it is behind, and [`Worklist`] keeps everybody from looking where nothing happened.
//!
//! Not here: entries, links and the seal (see `store`), who may read an audit log (see the gateway).

mod archive;
mod checkpoint;
mod config;
mod export;
mod keys;
mod lines;
mod range;
mod retention;
mod sign;
mod sink;
mod status;
mod verify;
mod worklist;

pub use archive::{Archive, ArchiveError};
pub use checkpoint::{Checkpoint, CheckpointBreak, CheckpointChain, CheckpointFlaw};
pub use config::{ArchiveConfig, SinkConfig, SinkContents, SinkKind};
pub use export::{ExportError, ExportOutcome};
pub use keys::{ArchiveKeys, ArchiveKeysError, BadKey, PublicKey, PublicKeys, SigningKey};
pub use lines::{ExportEntry, ExportHead, ExportLine, write_line};
pub use range::RangeError;
pub use sign::{SignOutcome, newest_checkpoint};
pub use sink::{Chunk, SinkError, SinkSetupError};
pub use status::ArchiveStatus;
pub use verify::{ArchiveFlaw, ArchiveReader, Expectations, VerifiedArchive};
pub use worklist::Worklist;
