//! External servers as a tenant meets them: a real store, a server at the HTTP border, and the entries in between.

#![expect(clippy::unwrap_used, reason = "a test that cannot be set up has failed")]

mod accepting;
mod calls;
#[path = "../../src/link/tests/double.rs"]
#[expect(dead_code, reason = "the double of the client's own tests; not every part of it is needed here")]
mod double;
mod listing;
mod pressure;
mod world;
