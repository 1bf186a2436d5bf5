//! The simulated Jenkins at its HTTP border, asked by plain requests.

#![expect(clippy::unwrap_used, reason = "helpers of a test fail by panicking")]

mod access;
mod builds;
mod changes;
mod faults;
mod queue;
mod reads;
mod real;
mod support;
