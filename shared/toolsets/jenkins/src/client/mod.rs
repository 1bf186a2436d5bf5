//! Narrow Jenkins handles that need a permit.
//!
//! Reading order: [`config`] (what a tenant's server is), [`servers`] (all of them, by tenant), [`server`] (one of them,
//! for one permit), [`path`] (how things there are named), [`jobs`], [`job`], [`scm`], [`build`], [`reports`], [`log`], [`queue`],
//! [`who`] (looking), [`mod@write`] (changing), [`mask`] (what is never shown), `fault` (a refusal as a failure).
//!
//! # The face
//! ```text
//! JenkinsServers::build(&tenant, configs, before)    those of one tenant; what stays as it was keeps its connections
//!   .names() -> Vec<&str>                            in the order of the configuration
//!   .of(&permit, Option<&str>) -> Server<'_>         refuses a permit of another tenant
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
mod connection;
mod credential;
mod fault;
#[cfg(feature = "fuzz")]
pub mod fuzz;
mod health;
mod html;
pub mod job;
pub mod jobs;
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

pub use build::{Build, GivenParameter};
pub use config::{BadServer, JenkinsServerConfig, KeptSecret, SecretSource, SecretText};
pub use job::{BuildListItem, JenkinsJob, ParameterDefinition, ParameterKind};
pub use jobs::{JobKind, JobListing, JobStatus, ListedJob};
pub use log::{LogPart, LogSize, StageLog};
pub use path::{ArtifactPath, BuildSelector, JobPath};
pub use queue::QueueItem;
pub use reports::{BuildArtifact, BuildCommit, FailedTest, PipelineStage, Tests};
pub use scm::{Scm, ScmRevision, ScmSource};
pub use server::PermittedServer;
pub use servers::JenkinsServers;
pub use who::{BuildAgent, JenkinsUser};
pub use write::{JenkinsWriter, StopSignal};
