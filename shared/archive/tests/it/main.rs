//! The archive as a whole: a store, signed and exported to real sinks, and then meddled with.
//!
//! The modules are marked as tests one by one, so that their helpers may fail a test by `unwrap`.

#[cfg(test)]
mod exporting;
#[cfg(test)]
mod retention;
#[cfg(test)]
mod signing;
#[cfg(test)]
mod tampering;
#[cfg(test)]
mod world;
