//! Documents and the tools on them, on an embedded store.
//!
//! The modules are marked as tests one by one, so that their helpers may fail a test by `unwrap`.

#[cfg(test)]
mod notebook;
#[cfg(test)]
mod tools;
