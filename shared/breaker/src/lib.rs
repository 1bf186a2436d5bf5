//! How hard one target is pressed: when it is left alone, and how many requests to it may be under way.
//!
//! One [`Breaker`] and one set of [`Slots`] belong to one target of one tenant, so that a target that is down or slow
//! costs nobody else anything.
//!
//! Not here: what is sent, and which answers are tried again (see whoever sends).

mod breaker;
mod slots;

pub use breaker::{Breaker, Go};
pub use slots::{Crowded, Slot, Slots};
