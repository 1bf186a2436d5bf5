//! Which bytes of a chart were looked at last for a run, so that what is sent is what was compared with the approval.
//!
//! The last look before an execution and the execution itself happen in one process, one after the other. A tag that
//! moves between them cannot slip in: the digest is noted by the look and asked for by the execution.

use domain::{Code, Failure, RunId};
use std::collections::VecDeque;
use std::sync::{Arc, Mutex, PoisonError};

/// More runs than are carried out at once.
const MOST: usize = 1_024;

/// The digests of charts by run.
#[derive(Debug, Clone, Default)]
pub(super) struct ChartPins(Arc<Mutex<VecDeque<(RunId, String)>>>);

impl ChartPins {
    /// Notes what a look for this run saw.
    pub(super) fn note(&self, run: Option<RunId>, sha256: &str) {
        let Some(run) = run else { return };
        let mut pins = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        pins.retain(|(known, _)| *known != run);
        pins.push_back((run, sha256.to_owned()));
        if pins.len() > MOST {
            pins.pop_front();
        }
    }

    /// Wants the chart to be the one the last look saw.
    pub(super) fn check(&self, run: Option<RunId>, sha256: &str) -> Result<(), Failure> {
        let mut pins = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let Some(at) = pins.iter().position(|(known, _)| Some(*known) == run) else { return Ok(()) };
        match pins.remove(at) {
            Some((_, seen)) if seen != sha256 => {
                Err(Failure::new(Code::Stale, "the chart is another one than was shown; nothing was sent")
                    .next("call again, so that the new one is looked at"))
            }
            Some(_) | None => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_chart_that_moved_after_the_last_look_is_refused() {
        let (pins, run) = (ChartPins::default(), Some(RunId::from_random([1; 16])));
        pins.note(run, "a");
        assert_eq!(pins.check(run, "b").unwrap_err().code, Code::Stale);
        assert!(pins.check(run, "b").is_ok(), "a pin is asked for once");
        pins.note(run, "a");
        assert!(pins.check(run, "a").is_ok());
    }
}
