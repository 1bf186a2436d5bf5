//! Executes the commands of one job on this host.
//!
//! Reading order: [`execute`] runs the steps of a job in their order; `step` runs one process group within its bounds.
//!
//! Not here: who submits jobs and how they are kept (see `store`), what a runbook is (see `runbook`).

mod execute;
mod host;
mod output;
mod step;

pub use execute::{Execution, execute};
pub use host::Host;
pub use output::OutputLog;
