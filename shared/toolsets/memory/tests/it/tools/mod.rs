//! The memory tools through the catalog's own face, on an embedded store.

mod faces;
mod reading;
mod world;
mod writing;
