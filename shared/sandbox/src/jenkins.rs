//! A simulated Jenkins: what `dev` builds on without a CI server, and what tests use at the HTTP border.
//!
//! It speaks the documented remote API of a current Jenkins with the usual Pipeline, Git and JUnit plugins, on a
//! loopback port. Nothing is compiled or checked out: a build follows the [`BuildScript`] of its job, by the clock.
//! There is no background work: whatever should have happened meanwhile happens when somebody looks, in its order.
//! So a test moves time with [`SimulatedJenkins::advance`] and never waits for it.
//!
//! In reading order: `server` and `access` (HTTP, who may), `route` (what a path means), `tree` and `exports`
//! (what is read), `writes` and `replay` (what is changed), `world` and `queue` (state in time), `job`, `plan`,
//! `build` (what there is), `seed`.
//!
//! Not here: views, users other than one, plugins' own pages, the command line, XML other than `config.xml`.

mod access;
mod build;
mod config;
mod exports;
mod fault;
mod gzip;
mod job;
mod log;
mod page;
mod people;
mod pipeline;
mod plan;
mod queue;
mod record;
mod replay;
mod reports;
mod route;
mod seed;
mod server;
mod tree;
mod world;
mod writes;

pub use self::access::Permission;
pub use self::fault::{JenkinsFault, JenkinsHarm};
pub use self::job::{JobParameter, SimulatedJob};
pub use self::plan::{BuildResult, BuildScript, CaseResult, StopResistance};
pub use self::record::RecordedRequest;
pub use self::seed::JenkinsSeed;
pub use self::server::SimulatedJenkins;
