//! The tools that write objects, against a simulated cluster at the HTTP border: real client, real permits, real schemas,
//! and effects counted where they land.

mod apply;
mod bounds;
mod delete;
mod hostile;
mod patch;
mod scale;
pub(crate) mod world;
