//! Tenant configuration: text in, checked configuration or every problem with its line and column out.
//!
//! Reading order: [`config`] (what a tenant may say), [`server`] and [`template`] (external servers), [`problem`] (how a
//! mistake is told), [`check`] (one text), [`book`] (a folder of files), [`curated`] (the operator's servers),
//! [`resolve`] (what a session gets of a server's parameters), [`trace`](mod@trace) (where rules stand), [`schema`] (the
//! same rules for editors), [`section`] (the part of a file that one toolset owns). Beneath them `yaml` turns text into a tree that knows where each value stands, within fixed
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
pub mod section;
pub mod server;
pub mod template;
pub mod trace;
mod yaml;

pub use book::{ConfiguredTenant, TenantFiles, read_file};
pub use check::{AddressCheck, KnownNames, OwnServer, parse};
pub use config::{
    ApprovalConfig, ClusterEntry, ClusterSource, ImpersonateConfig, JenkinsServer, JenkinsSource, MemoryConfig,
    MemoryStore, RepositoryEntry, SessionWrites, TenantConfig, TenantLimits, Writers,
};
pub use curated::{CuratedSources, ServerCatalog, is_server_file};
pub use problem::Problem;
pub use resolve::{ResolvedAuth, ResolvedReach, ResolvedServer};
pub use schema::{json_schema, json_schema_with};
pub use section::{Section, SectionProblem};
pub use server::{
    Accept, Auth, Overrides, Param, ParameterValue, Scheme, ServerEntry, ServerLimits, ServerReach, ServerUse,
    TenantAgent, TenantParam, TrustedEffects, Workflow, server_toolset, tool_prefix,
};
pub use template::ParameterTemplate;
pub use trace::{RuleAt, RuleKind, trace};
