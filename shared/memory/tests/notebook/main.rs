//! The notebook on an embedded store: who may keep what where, and who finds it again.

#![expect(clippy::unwrap_used, reason = "helpers of a test fail by panicking")]

mod forgetting;
mod promoting;
mod searching;
mod world;
mod writing;
