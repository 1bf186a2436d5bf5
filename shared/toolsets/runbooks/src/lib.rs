//! The toolset `runbooks`: a tenant's own commands as tools with typed arguments.
//!
//! Reading order: [`declaration`] (what a tenant declares), [`section`] (its part of a tenant's file), [`local`] (the
//! same in files of a project), [`names`] (what the tools are called), [`arguments`] and [`overlay`] (what a call gives), [`resolved`] (the
//! commands that come of it), [`preview`] (what an approver is shown), [`outcome`] (what became of it), [`on_runner`] and
//! [`on_cluster`] (the two places where commands run), [`tool`] (all of it as one tool).
//!
//! Not here: templates and rules of values (see the crate `runbook`), jobs and who may take them (see `store`), executing
//! anything on a host (see `runner`), who may call what (see `policy`).

pub mod arguments;
pub mod codes;
pub mod declaration;
pub mod local;
pub mod names;
pub mod on_cluster;
pub mod on_runner;
pub mod outcome;
pub mod overlay;
pub mod preview;
pub mod program_text;
pub mod resolved;
pub mod section;
pub mod tool;
mod toolset;

pub use declaration::{ClusterPlace, Runbook, RunbookPlace};
pub use local::{LocalRunbooks, MANIFEST};
pub use toolset::{RunbooksToolset, TenantRunbooks};
