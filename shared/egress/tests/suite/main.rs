//! What the clients do on the wire, against servers of the test's own.

mod fetch;
mod guarded;
mod streaming;
