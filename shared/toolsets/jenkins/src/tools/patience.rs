//! How long one looks before saying that something did not happen.
//!
//! A request whose answer was lost may still be on its way through the server. The first look at a run is certainly
//! later than the request; so what is still absent a minute after the first look is not coming. First looks are
//! remembered in this process only: another one begins anew, which takes longer and says nothing wrong.

use domain::{Moment, RunId};
use std::collections::HashMap;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

/// How long after the first look an absence counts.
const LONG: Duration = Duration::from_secs(60);
/// How many first looks are remembered, and for how long.
const MOST: usize = 1_000;
const KEPT: Duration = Duration::from_secs(3_600);

/// The first looks at runs that are not settled.
#[derive(Debug, Default)]
pub(super) struct FirstLooks(Mutex<HashMap<RunId, Moment>>);

impl FirstLooks {
    /// Whether what this run should have done has been absent for long. The first call begins the wait.
    pub(super) fn is_over(&self, run: RunId, now: Moment) -> bool {
        let mut first = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(at) = first.get(&run) {
            return now.since(*at) >= LONG;
        }
        first.retain(|_, at| now.since(*at) < KEPT);
        if first.len() < MOST {
            first.insert(run, now);
        }
        false
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_absence_counts_a_minute_after_the_first_look() {
        let (patience, run, other) = (FirstLooks::default(), RunId::from_random([1; 16]), RunId::from_random([2; 16]));
        let at = |secs: u64| Moment::from_secs(1_000 + secs);
        assert!(!patience.is_over(run, at(0)));
        assert!(!patience.is_over(run, at(59)));
        assert!(!patience.is_over(other, at(59)));
        assert!(patience.is_over(run, at(60)));
        assert!(!patience.is_over(other, at(60)));
    }

    #[test]
    fn what_is_remembered_is_bounded() {
        let patience = FirstLooks::default();
        let run = |n: u32| RunId::from_random(std::array::from_fn(|at| n.to_be_bytes()[at % 4]));
        for n in 0..2_000 {
            patience.is_over(run(n), Moment::from_secs(1_000));
        }
        assert_eq!(patience.0.lock().unwrap().len(), MOST);
        assert!(
            !patience.is_over(run(1_999), Moment::from_secs(2_000)),
            "what is not remembered is never settled by it"
        );
    }
}
