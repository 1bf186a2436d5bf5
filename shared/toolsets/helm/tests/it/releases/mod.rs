//! The helm tools with the real helm binary, on the sandbox or on a real control plane, through the catalog's own face.
//!
//! `QUARTERMASTER_TEST_HELM` names the binary (`deploy/testbed helm` prints it); without one these tests say so and end.
//! `QUARTERMASTER_TEST_KUBECONFIG` names the kubeconfig of a real cluster; without one it is the sandbox.

mod budget;
mod chart;
mod fences;
mod hostile;
mod locked;
mod lookups;
mod secrets;
mod story;
mod world;
