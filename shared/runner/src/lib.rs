//! Executes jobs on this host.
//!
//! Reading order: `execute` runs the steps of one job in their order, `step` one process group within its bounds,
//! [`OutputLog`] takes what they print. [`AllowList`] is the owner's word on what may ever be executed here. `serve` takes
//! jobs from a service through [`JobClient`], one [`Lease`] at a time for each.
//!
//! Not here: who submits jobs and how they are kept (see `store`), what a runbook is (see `runbook`).

mod allow;
mod client;
mod execute;
mod failpoint;
mod host;
mod lease;
mod output;
mod serve;
mod step;
mod work;

pub use allow::{AllowList, BadPin, NamePattern};
pub use client::{ClaimedJob, ClientFault, JobClient};
pub use execute::{Execution, execute};
pub use host::Host;
pub use lease::Lease;
pub use output::OutputLog;
pub use serve::{RunnerOptions, RunnerStop, serve};
