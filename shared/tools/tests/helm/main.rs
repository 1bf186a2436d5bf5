//! The helm tools with the real helm binary, on the sandbox or on a real control plane, through the catalog's own face.
//!
//! `QUARTERMASTER_TEST_HELM` names the binary (`deploy/testbed helm` prints it); without one these tests say so and end.
//! `QUARTERMASTER_TEST_KUBECONFIG` names the kubeconfig of a real cluster; without one it is the sandbox.

#![expect(clippy::unwrap_used, reason = "helpers of a test fail by panicking")]
#![expect(clippy::print_stderr, reason = "a test that was left out says so")]

#[path = "../helm_charts/archives.rs"]
mod archives;
#[path = "../bench/mod.rs"]
mod bench;
mod budget;
mod chart;
mod fences;
mod hostile;
mod locked;
mod secrets;
#[path = "../helm_charts/server.rs"]
#[expect(dead_code, reason = "what is recorded is looked at by the tests of charts")]
mod server;
mod story;
mod world;
