//! The gateway: the HTTP server and the `quartermaster` binary. Wires everything, decides nothing.
//!
//! Reading order: [`cli`] (the one command tree), [`settings`], [`app`] (builds each part), [`protocol`] (what is answered,
//! whichever transport asks), [`routes`], [`openapi`], then [`http`] handler by handler, [`console`] and [`stdio`]. [`tenants`], [`duties`], [`sealing`],
//! [`readiness`], `authenticity`, `switches`, [`usage`] and [`webhooks`] work in the background. `leaving` is how the
//! listeners of [`server`] end.

pub mod app;
mod archiving;
mod audit_desk;
mod authenticity;
pub mod cli;
pub mod clock;
pub mod commands;
mod config_desk;
pub mod console;
pub mod duties;
mod explain;
pub mod fixture;
pub mod http;
pub mod in_flight;
mod leaving;
mod measure;
mod memory_desk;
pub mod network;
pub mod openapi;
pub mod protocol;
pub mod reach;
pub mod readiness;
pub mod routes;
mod run_desk;
pub mod sealing;
mod secret_desk;
pub mod server;
mod server_desk;
mod session_desk;
pub mod settings;
pub mod stdio;
mod switch_desk;
mod switches;
pub mod tenants;
pub mod toolsets;
pub mod usage;
pub mod webhooks;
