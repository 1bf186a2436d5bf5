//! The helm tools: charts from real servers on this machine, and releases with the real helm binary.
//!
//! The modules are marked as tests one by one, so that their helpers may fail a test by `unwrap`.

#[cfg(test)]
mod charts;
#[cfg(test)]
mod releases;
