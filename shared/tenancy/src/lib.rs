//! Tenant configuration: text in, checked configuration or every problem with its line and column out.
//!
//! Reading order: [`config`] (what a tenant may say), [`problem`] (how a mistake is told), [`check`] (one text),
//! [`book`] (a folder of files), [`schema`] (the same rules for editors). Beneath them `yaml` turns text into a
//! tree that knows where each value stands, within fixed budgets.
//!
//! Not here: network, clocks, watching for changes, and what a rule means for a call (see [`policy`]).

pub mod book;
pub mod check;
pub mod config;
pub mod problem;
pub mod schema;
mod yaml;

pub use book::{Book, Page, read_file};
pub use check::{Known, parse};
pub use config::{
    Approval, Cluster, ClusterSource, Impersonate, JenkinsServer, JenkinsSource, Limits, Memory, MemoryStore,
    Repository, SessionWrites, TenantConfig, Writers,
};
pub use problem::Problem;
pub use schema::json_schema;
