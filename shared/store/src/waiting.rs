//! Runs that wait for a person, those that expire soonest first: what an inbox shows, for the price of one page.
//!
//! They are read from the index of what is due, where a waiting run stands at its expiry. How many there are is a sum
//! beside an index, so ten thousand cost what ten do.

use crate::ops::Op;
use crate::runs::{FULL, RunStore};
use crate::{IndexName, NEVER_DUE, RunBrief, StoreError};
use domain::run::RunState;
use domain::{Moment, RunId};

/// How much more than a page is read at once, because some of what is due does not wait for a person.
const BESIDES: usize = 32;
/// How many runs of an unknown outcome are shown.
const UNSETTLED: usize = 20;

/// Behind which run a page begins.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct WaitingPlace {
    /// When that run expires.
    pub expires_at: Moment,
    /// That run.
    pub id: RunId,
}

/// One page of what waits for a person.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct WaitingPage {
    /// The store's time.
    pub now: Moment,
    /// How many runs wait in all.
    pub waiting: u64,
    /// Those on this page, the soonest to expire first.
    pub runs: Vec<RunBrief>,
    /// Runs whose outcome only a person can settle; on the first page alone.
    pub unsettled: Vec<RunBrief>,
    /// Where the next page begins.
    pub next: Option<WaitingPlace>,
}

impl RunStore {
    /// How many runs wait for a person, and the store's time.
    pub async fn waiting_count(&self) -> Result<(u64, Moment), StoreError> {
        let mut answers = self.0.run(&[self.count(), Op::Now]).await?;
        Ok((answers.count()?, answers.now()?))
    }

    /// One page of the runs that wait for a person, without those that are to be left out.
    pub async fn waiting(
        &self,
        after: Option<WaitingPlace>,
        limit: usize,
        without: &[RunId],
    ) -> Result<WaitingPage, StoreError> {
        let read = limit + BESIDES + without.len();
        let index = self.0.space.index(&IndexName::due());
        let never = NEVER_DUE.millis();
        let from = after.map_or(0, |place| place.expires_at.millis());
        let due = Op::Range { index: index.clone(), from, to: never - 1, limit: read };
        let unsettled = Op::Range { index, from: never, to: FULL, limit: UNSETTLED };
        let mut answers = self.0.run(&[due, unsettled, self.count(), Op::Now]).await?;
        let (due, unsettled) = (answers.members()?, answers.members()?);
        let (waiting, now) = (answers.count()?, answers.now()?);
        let whole = due.len() == read;
        let ids = |members: &[(String, u64)]| -> Vec<RunId> {
            members.iter().filter_map(|(id, _)| RunId::parse(id).ok()).collect()
        };
        // Members of one rank come in the order of their names, so what stands up to the last run was shown.
        let behind = |(id, rank): &(String, u64)| {
            after.is_none_or(|place| {
                *rank > from || RunId::parse(id).is_ok_and(|id| id.to_string() > place.id.to_string())
            })
        };
        let due: Vec<(String, u64)> = due.into_iter().filter(behind).collect();
        // Both kinds in one round trip; on later pages only what waits.
        let unsettled = if after.is_none() { ids(&unsettled) } else { Vec::new() };
        let mut wanted = ids(&due);
        wanted.retain(|id| !without.contains(id));
        wanted.extend_from_slice(&unsettled);
        let mut runs = self.briefs(&wanted).await?;
        let is_unsettled = |run: &mut RunBrief| run.state == RunState::OutcomeUnknown && unsettled.contains(&run.id);
        let settle: Vec<RunBrief> = runs.extract_if(.., is_unsettled).collect();
        let last_read = due.last().and_then(|(id, rank)| {
            Some(WaitingPlace { expires_at: Moment::from_millis(*rank), id: RunId::parse(id).ok()? })
        });
        runs.retain(|run| run.state == RunState::PendingApproval && run.expires_at > now);
        let next = match runs.get(limit) {
            Some(_) => runs.get(limit - 1).map(|run| WaitingPlace { expires_at: run.expires_at, id: run.id }),
            None => last_read.filter(|_| whole),
        };
        runs.truncate(limit);
        Ok(WaitingPage { now, waiting, runs, unsettled: settle, next })
    }

    fn count(&self) -> Op {
        Op::Total { key: self.0.space.sum(&IndexName::undecided()) }
    }
}
