//! What every kind of target has in common, whichever toolset reaches it.
//!
//! Reading order: [`grammar`] (checked texts for arguments), [`grep`] (a search expression), [`cursor`] (where a long
//! result goes on), [`reply`] (what every answer has, and how it is kept within its bounds), [`written`] (text of
//! programs as it may be shown), [`shown_arguments`] (arguments as people are shown them), [`Targets`] (which target a call means),
//! [`Breaker`] and [`TargetSlots`] (how hard one target is pressed), [`connection`] (both, around one request),
//! [`connection_loads`] (for gauges), [`codes`] (what several toolsets raise).
//!
//! One [`Breaker`] and one set of [`TargetSlots`] belong to one target of one tenant, so that a target that is down or slow
//! costs nobody else anything.
//!
//! Not here: what is sent to a target (see the toolsets), and who may call what (see `policy`).

mod breaker;
pub mod codes;
pub mod connection;
pub mod cursor;
pub mod grammar;
pub mod grep;
mod load;
pub mod reply;
pub mod shown_arguments;
mod slots;
mod targets;
pub mod written;

pub use breaker::{Breaker, BreakerAttempt};
pub use connection::{BusyRetries, Connection, NoAnswer, NoAnswerWords};
pub use cursor::{CursorClock, Cursors};
pub use load::{ConnectionLoad, connection_loads};
pub use slots::{TargetSlot, TargetSlots, TooManyRequests};
pub use targets::{NameTaken, NamedTarget, TargetWords, Targets};
