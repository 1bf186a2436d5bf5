//! The tools about charts, against real servers on this machine: real requests, real archives, real permits, real schemas.

#![expect(clippy::unwrap_used, reason = "helpers of a test fail by panicking")]
#![expect(clippy::print_stdout, reason = "a test without its binary says that it was skipped")]

mod archives;
mod hostile;
mod oci;
mod repo;
mod search;
mod server;
mod show;
mod template;
mod world;
