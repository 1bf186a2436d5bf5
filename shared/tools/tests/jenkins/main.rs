//! The Jenkins tools against a simulated server at the HTTP border: real client, real permits, real schemas, every request
//! recorded, and effects counted where they land.

#![expect(clippy::unwrap_used, reason = "helpers of a test fail by panicking")]

#[path = "../bench/mod.rs"]
mod bench;
mod faults;
mod hostile;
mod log;
mod read;
mod replay;
mod requests;
mod secrets;
mod servers;
mod stop;
mod trigger;
mod update;
mod world;
