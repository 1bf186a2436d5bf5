//! MCP on standard input and output: one JSON-RPC message a line, and nothing else on standard output.
//!
//! Reading order: [`lines`] (bounded lines in, one writer out), [`connection`] (the loop that both ways share), [`local`]
//! (the tools of this process), [`bridge`] (those of a hosted service), [`project`] (where `quartermaster.yaml` stands),
//! [`command_tools`] (the commands of this binary as tools).
//!
//! Not here: what is answered (see [`protocol`](crate::protocol)), and how a folder is prepared (see `commands`).

pub mod bridge;
pub mod command_tools;
pub mod connection;
pub mod lines;
pub mod local;
pub mod project;

pub use project::Project;
