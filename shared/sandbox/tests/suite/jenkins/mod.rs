//! The simulated Jenkins at its HTTP border, asked by plain requests.

mod access;
mod builds;
mod changes;
mod faults;
mod queue;
mod reads;
mod real;
mod support;
