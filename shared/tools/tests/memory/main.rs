//! The memory tools through the catalog's own face, on an embedded store.

#![expect(clippy::unwrap_used, reason = "helpers of a test fail by panicking")]

mod faces;
mod reading;
mod world;
mod writing;
