//! What new sessions of a principal begin with: the taint of an earlier one, and rejections that ended the step of one.
//!
//! An agent opens sessions as it likes, so what a session has read and was refused would be shaken off by opening the
//! next. One index per principal holds both, newest first: the word `taint`, and the runs that were rejected. A session
//! is bound by what was marked in the time before it was opened; a call without a session, by what was marked before it.
//! When a person clears a run, it leaves the index, and every session that began with it goes on.

use crate::commit::{IndexUpdate, Score};
use crate::keys::IndexName;
use crate::ops::Op;
use crate::runs::{FULL, STEP_ENDED, asked_at, newest_first};
use crate::shelf::TenantStore;
use domain::run::Run;
use domain::{Moment, Principal, RunId};
use std::time::Duration;

/// The member that stands for text from outside.
const TAINT: &str = "taint";
/// The newest so many are looked at; nobody has that many rejections in the time that counts.
const LOOKED_AT: usize = 64;

/// What a session begins with.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct CarriedOver {
    /// Whether an earlier session had read text from outside.
    pub tainted: bool,
    /// The rejected run that ended the step of an earlier session and was not cleared since.
    pub stopped_by: Option<RunId>,
}

impl CarriedOver {
    /// What counts for somebody who began at this moment: whatever was marked at most `span` before.
    pub(crate) fn at(members: &[(String, u64)], began: Moment, span: Duration) -> CarriedOver {
        let counts = |rank: u64| {
            let marked = asked_at(rank);
            marked <= began && began.since(marked) < span
        };
        let mut carried = CarriedOver::default();
        for (member, _) in members.iter().filter(|(_, rank)| counts(*rank)) {
            if member == TAINT {
                carried.tainted = true;
            } else if carried.stopped_by.is_none() {
                carried.stopped_by = RunId::parse(member).ok();
            }
        }
        carried
    }
}

/// Reads what is marked for a principal.
pub(crate) fn look(shelf: &TenantStore, owner: &Principal) -> Op {
    Op::Range { index: shelf.space.index(&IndexName::carried_over(owner)), from: 0, to: FULL, limit: LOOKED_AT }
}

/// Marks that a session of this principal was handed text from outside.
pub(crate) fn taint(owner: &Principal, at: Moment) -> IndexUpdate {
    mark(owner, TAINT.to_owned(), Score::At(newest_first(at)))
}

/// Marks that this rejected run ended the step of a session.
pub(crate) fn stop(run: &Run) -> IndexUpdate {
    mark(&run.asked.requester, run.id.to_string(), Score::At(newest_first(run.changed_at)))
}

/// Takes the marks away that a person lifts by clearing this run.
pub(crate) fn lift(run: &Run) -> [IndexUpdate; 2] {
    let owner = &run.asked.requester;
    [mark(owner, run.id.to_string(), Score::Out), mark(owner, TAINT.to_owned(), Score::Out)]
}

fn mark(owner: &Principal, member: String, rank: Score) -> IndexUpdate {
    // Kept as long as a session that began with it may live.
    IndexUpdate { index: IndexName::carried_over(owner).forgotten_after(Some(STEP_ENDED)), member, rank }
}

#[cfg(test)]
mod tests {
    use super::*;

    const HOUR: Duration = Duration::from_secs(3600);

    #[test]
    fn what_was_marked_in_the_time_before_counts_and_nothing_else() {
        let run = |n: u8| RunId::from_random([n; 16]);
        let marked = |at: u64| newest_first(Moment::from_secs(at));
        let members = [
            (run(2).to_string(), marked(20_000)),
            (TAINT.to_owned(), marked(12_000)),
            (run(1).to_string(), marked(10_000)),
        ];
        let at = |began: u64| CarriedOver::at(&members, Moment::from_secs(began), HOUR);
        let stopped = |n: u8, tainted: bool| CarriedOver { tainted, stopped_by: Some(run(n)) };
        assert_eq!(at(9_999), CarriedOver::default(), "what began before is not bound");
        assert_eq!(at(10_000), stopped(1, false));
        assert_eq!(at(13_599), stopped(1, true));
        assert_eq!(at(13_600), CarriedOver { tainted: true, stopped_by: None });
        assert_eq!(at(15_600), CarriedOver::default());
        assert_eq!(at(20_000), stopped(2, false));
        assert_eq!(CarriedOver::at(&members, Moment::from_secs(20_000), Duration::ZERO), CarriedOver::default());
    }
}
