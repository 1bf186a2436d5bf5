//! The sandbox at its HTTP border: the simulated cluster and the simulated Jenkins.

#![expect(clippy::unwrap_used, reason = "helpers of a test fail by panicking")]

mod api;
mod jenkins;
