//! The doors: HTTP in, the executor's answer out. A handler translates and delegates; it decides nothing.

pub mod address;
pub(crate) mod admission;
pub mod audit;
pub mod body;
pub mod caller;
pub mod catalog;
pub mod catch;
pub mod guard;
pub mod health;
pub mod mcp;
pub mod memory;
pub mod metadata;
pub mod metrics;
pub mod refusal_log;
pub mod reply;
pub mod runner;
pub mod runs;
pub mod schemas;
pub mod secrets;
pub mod servers;
pub mod sessions;
pub mod switches;
pub mod tenant;
pub mod tokenless;
pub mod trace;
pub mod usage;
