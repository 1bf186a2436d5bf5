//! The toolset `jenkins`: jobs and builds looked at, started and stopped, through the remote API.
//!
//! Reading order: [`client`] (narrow handles that need a permit; all that touches a server), [`tools`] (the tools, one
//! file each), [`section`] (what a tenant says about its servers).
//!
//! Not here: who may call what (see `policy`).

pub mod client;
pub mod codes;
pub mod section;
pub mod tools;
mod toolset;

pub use toolset::{JenkinsConfig, JenkinsToolset, SimulateServer, SimulatedServer, TenantJenkins};
