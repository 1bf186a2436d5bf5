//! External MCP servers as tools, trusted with nothing.
//!
//! Reading order: [`server`] (what an operator and a tenant say about a server), [`curated`] (the operator's servers),
//! [`section`] (the tenant's), [`resolve`] (what a session gets of a server's parameters), [`config`] (what is told of a
//! server), `naming`, `definition` and `offer` (what a server lists, checked and bounded), `pins` and `effect` (what of it
//! is offered, and as what), `tool` (one call), `answer` (what came back), `member` (one server of one tenant in memory),
//! [`upstreams`] (all of them, kept up to date), [`standing`] (what an administrator sees). `link` is all that touches the
//! network or a process.
//!
//! Not here: who may call what (see `policy`), where a tenant's configuration comes from (see `tenancy`).

mod answer;
pub mod codes;
pub mod config;
pub mod curated;
mod definition;
mod difference;
mod effect;
mod link;
mod member;
mod naming;
mod offer;
mod pins;
mod places;
pub mod resolve;
pub mod section;
pub mod server;
pub mod standing;
mod tool;
mod toolset;
pub mod upstreams;
mod visible;

pub use config::{Accept, ExternalServerConfig, ScrubberOf, ServerLimits, TargetOf, TrustedEffects, UpstreamsConfig};
pub use curated::{CuratedSources, ServerCatalog, is_server_file};
#[cfg(feature = "fuzz")]
pub use link::fuzz;
pub use link::{ClientCredentials, LinkTarget, TargetReach};
pub use pins::PinState;
pub use resolve::{ResolvedAuth, ResolvedAuthWay, ResolvedReach, ResolvedServer, TenantServers};
pub use server::{
    ClientAuthMethod, HttpTransport, ServerEntry, ServerUse, TenantAgent, Workflow, server_toolset, tool_prefix,
};
pub use standing::{ListState, ServerStanding, ToolStanding};
pub use toolset::{ExternalToolset, TenantExternal};
pub use upstreams::{AcceptedTools, Upstreams};
