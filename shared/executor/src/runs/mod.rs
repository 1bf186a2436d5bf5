//! Runs: calls that wait for a person, and what became of them.
//!
//! Reading order: `ask` (a gated call becomes a run), `answer` (a person decides), `carry_out` (a claimed run is
//! executed), `ready` (what is looked at just before), `standing` (how firmly the store holds all that), `sweep`
//! (whatever is due is looked at, whoever left it), [`notice`] (who else is told), `wait` (how somebody learns of it),
//! `deliver` (the agent is handed it), [`report`] (what each reader is shown of it).
//!
//! A run is a record that moves only through [`domain::Run::apply`], folded by one compare-and-set (`run_record`).
//! Whoever waits reads the record; a wake-up only says when to look again, so a lost one costs a tick.

mod answer;
pub(crate) mod ask;
mod carry_out;
mod deliver;
#[cfg(test)]
pub(crate) mod example;
mod ready;
pub mod report;
mod standing;
mod sweep;
mod wait;

pub use crate::notice;
pub use answer::{RunDecision, may_decide};
pub use wait::{RunWait, WaitUntil};
