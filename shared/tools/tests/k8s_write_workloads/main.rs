//! The tools that steer workloads and reach into pods, against a simulated cluster at the HTTP border: real client, real
//! permits, real schemas, and effects counted where they land.

#![expect(clippy::unwrap_used, reason = "helpers of a test fail by panicking")]

#[path = "../bench/mod.rs"]
mod bench;
mod exec;
mod hostile;
mod node;
mod probe;
mod rollout;
mod run;
#[path = "../k8s_write_objects/world.rs"]
mod world;
