//! World, actors and doubles at the HTTP border; for tests only.

pub mod redis;
