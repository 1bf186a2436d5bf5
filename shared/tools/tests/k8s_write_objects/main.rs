//! The tools that write objects, against a simulated cluster at the HTTP border: real client, real permits, real schemas,
//! and effects counted where they land.

#![expect(clippy::unwrap_used, reason = "helpers of a test fail by panicking")]

mod apply;
#[path = "../bench/mod.rs"]
mod bench;
mod delete;
mod hostile;
mod patch;
mod scale;
mod world;
