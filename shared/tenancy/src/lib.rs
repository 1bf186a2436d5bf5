//! Tenant configuration: text in, checked configuration or every problem with its line and column out.
//!
//! Reading order: [`config`] (what a tenant may say), [`server`] and [`template`] (external servers), [`problem`] (how a
//! mistake is told), [`check`] (one text), [`book`] (a folder of files), [`curated`] (the operator's servers),
//! [`resolve`] (what a session gets of a server's parameters), [`trace`](mod@trace) (where rules stand), [`schema`] (the
//! same rules for editors). Beneath them `yaml` turns text into a tree that knows where each value stands, within fixed
//! budgets.
//!
//! Not here: network, clocks, watching for changes, and what a rule means for a call (see [`policy`]).

pub mod book;
pub mod check;
pub mod config;
pub mod curated;
pub mod problem;
pub mod resolve;
pub mod schema;
pub mod server;
pub mod template;
pub mod trace;
mod yaml;

pub use book::{Book, Page, read_file};
pub use check::{Known, OwnServer, Reachable, parse};
pub use config::{
    Approval, Cluster, ClusterSource, Impersonate, JenkinsServer, JenkinsSource, Limits, Memory, MemoryStore,
    Repository, SessionWrites, TenantConfig, Writers,
};
pub use curated::{Curated, CuratedSources, is_server_file};
pub use problem::Problem;
pub use resolve::{Resolved, ResolvedAuth, ResolvedReach};
pub use schema::json_schema;
pub use server::{
    Accept, Agent, Auth, Given, Overrides, Param, Scheme, Server, ServerLimits, ServerReach, ServerUse, TenantParam,
    Vouch, Workflow, server_toolset, tool_prefix,
};
pub use template::Template;
pub use trace::{RuleAt, RuleKind, trace};
