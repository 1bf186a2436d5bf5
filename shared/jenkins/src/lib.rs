//! Narrow Jenkins handles that need a permit.
//!
//! Reading order: [`config`] (what a tenant's server is), [`servers`] (all of them, by tenant), [`server`] (one of them,
//! for one permit), [`path`] (how things there are named), [`jobs`], [`job`], [`scm`], [`build`], [`reports`], [`log`], [`queue`],
//! [`who`] (looking), [`mod@write`] (changing), [`mask`] (what is never shown), `fault` (a refusal as a failure).
//!
//! # The face
//! ```text
//! Servers::default()                                 one per process
//!   .replace(&tenant, Vec<ServerConfig>)             swapped whole; what stays as it was keeps its connections
//!   .names_of(&tenant) -> Vec<String>                for the catalog: one server or several
//!   .of(&permit, Option<&str>) -> Server<'_>         the tenant comes from the permit and from nowhere else
//!
//! Server<'_>                                         reads; 30 s from its making unless `.within(duration)`
//!   .name() .user() .simulated() .run_id_parameter() .address(&job, number) .time_left()
//!   .jobs(folder, depth, range) -> Listing           .job(&path) -> Job            .builds(&path, range) -> Vec<Row>
//!   .scm(&path) -> Scm                               .build(&path, &which) -> Build
//!   .changes(..) .stages(..) .tests(..) .artifacts(..) .artifact(..) .script(..)
//!   .log_size(..) -> LogSize  .log_part(..) -> LogPart  .stage_log(..) -> StageLog
//!   .queue() -> Vec<Item>     .item(id) -> Item      .who() -> Who
//!   .write() -> Result<Writer, Failure>              only for a permit of Change or Disrupt that may act
//!
//! Writer<'_>                                         each request goes out once
//!   .trigger(&path, Option<&form>) -> u64  .stop(&path, number, How)  .cancel(id)
//!   .rebuild(&path, number)  .replay(&path, number, script)  .describe(..)  .toggle_keep(..)
//! ```
//! Everything that looks or writes is async and answers `Result<_, domain::Failure>`; everything shown is masked.
//!
//! Not here: what a tool makes of it, what an approver is shown, the schemas of arguments.

pub mod build;
pub mod config;
mod credential;
mod fault;
mod html;
pub mod job;
pub mod jobs;
mod line;
pub mod log;
pub mod mask;
pub mod path;
pub mod queue;
pub mod reports;
mod request;
pub mod scm;
pub mod server;
pub mod servers;
pub mod who;
pub mod write;
mod xml;

pub use build::{Build, Given};
pub use config::{BadServer, KeptSecret, SecretSource, SecretText, ServerConfig};
pub use job::{Definition, Job, ParameterKind, Row};
pub use jobs::{JobKind, Listed, Listing, Status};
pub use log::{LogPart, LogSize, StageLog};
pub use path::{ArtifactPath, JobPath, Which};
pub use queue::Item;
pub use reports::{Artifact, Case, Change, Stage, Tests};
pub use scm::{Revision, Scm, ScmSource};
pub use server::Server;
pub use servers::Servers;
pub use who::{Agent, Who};
pub use write::{How, Writer};
