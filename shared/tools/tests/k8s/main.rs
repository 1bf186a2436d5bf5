//! The Kubernetes tools against a simulated cluster at the HTTP border: real client, real permits, real schemas.

#![expect(clippy::unwrap_used, reason = "helpers of a test fail by panicking")]

mod discover;
mod get;
mod large;
mod logs;
mod others;
mod secrets;
mod world;
