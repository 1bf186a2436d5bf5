//! Which tenants have something due, for the whole service: so that nobody has to look at those where nothing is.
//!
//! One index of the service holds a line for every tenant with runs that are not over, ranked by when somebody has to look
//! at them, and a line for every tenant whose audit log a replica is still at work on, ranked by when others take it over.
//! A second index holds the replicas that are there. Both stand beside the tenants, in another Redis slot than any of
//! them, so no line can move in one step with a tenant's own records. A line is therefore only a hint; the tenant's own
//! index `due` is the truth. Two orders keep hints from being lost:
//!
//! - Whoever changes a run writes the hint beside the commit, and once more behind it.
//! - Whoever raises or takes out a hint reads the tenant's own index once more behind that, and lowers it again if need be.
//!
//! A hint only ever lowers a rank, so of a change and a look at the same moment the earlier time stays. What is lost all the
//! same, because a process died between two steps, is found by the walk over all tenants (see the gateway).
//!
//! Not here: what is done for a tenant that is due, and which replica does it (see the gateway).

use crate::ops::{Op, StreamWalk, millis};
use crate::runs::{self, FULL};
use crate::seal::seal_of;
use crate::{IndexName, Store, StoreError, StreamName, TenantStore};
use domain::{Moment, Tenant};
use std::time::Duration;
use tracing::Instrument;

/// How long after a change at the earliest a hint that was written beside it is followed: a commit is over by then.
const SETTLED: Duration = Duration::from_secs(3);
/// How long a replica that is gone stays in the index of those that are there.
const FORGOTTEN: Duration = Duration::from_secs(60);
/// As many replicas as are looked at.
const MOST_REPLICAS: usize = 1_000;

/// What is due in a tenant.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Duty {
    /// To look at its runs.
    Runs(Tenant),
    /// To seal, sign and export its audit log, which this replica is at work on.
    Audit(Tenant, String),
}

impl Duty {
    /// Whose it is.
    pub fn tenant(&self) -> &Tenant {
        match self {
            Duty::Runs(tenant) | Duty::Audit(tenant, _) => tenant,
        }
    }

    fn to_text(&self) -> String {
        match self {
            Duty::Runs(tenant) => format!("r:{tenant}"),
            Duty::Audit(tenant, replica) => format!("a:{tenant}:{replica}"),
        }
    }

    /// Reads the text back. A newer replica may know duties that this one does not: that is `None`.
    fn parse(text: &str) -> Option<Duty> {
        let (kind, rest) = text.split_once(':')?;
        match kind {
            "r" => Tenant::parse(rest).ok().map(Duty::Runs),
            "a" => {
                let (tenant, replica) = rest.split_once(':')?;
                Some(Duty::Audit(Tenant::parse(tenant).ok()?, replica.to_owned()))
            }
            _ => None,
        }
    }
}

/// What one look found.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DutyRoster {
    /// The store's time.
    pub now: Moment,
    /// The replicas that are there, this one included.
    pub replicas: Vec<String>,
    /// What is due by now, the longest overdue first.
    pub due: Vec<Duty>,
}

/// What is due in the whole service.
#[derive(Debug, Clone)]
pub struct DutyStore(Store);

impl DutyStore {
    pub(crate) fn new(store: Store) -> DutyStore {
        DutyStore(store)
    }

    /// Looks what is due and who is there, in one round trip; at most so many duties. `last` is what the look before said
    /// of the time, and how long ago: by it this replica says that it is there for that much longer.
    pub async fn look(
        &self,
        last: Option<Moment>,
        present_for: Duration,
        limit: usize,
    ) -> Result<DutyRoster, StoreError> {
        let (work, there) = (self.work(), self.there());
        let range = |index: &str, limit| Op::Range { index: index.to_owned(), from: 0, to: FULL, limit };
        let mut ops = vec![Op::Now, range(&work, limit)];
        // A file has one process; nobody else would read who is there.
        let shared = self.0.backend() == "redis";
        if shared {
            let own = last.map(|now| (self.0.replica().to_owned(), now.plus(present_for).millis()));
            ops.extend(own.map(|own| Op::Place { index: there.clone(), members: vec![own], lower: false }));
            ops.push(range(&there, MOST_REPLICAS));
        }
        let mut answers = self.0.run_apart(&ops).await?;
        let (now, members) = (answers.now()?, answers.members()?);
        let mut replicas = Vec::new();
        if shared {
            if last.is_some() {
                answers.done()?;
            }
            let mut gone = Vec::new();
            for (replica, until) in answers.members()? {
                let until = Moment::from_millis(until);
                if until > now {
                    replicas.push(replica);
                } else if now.since(until) > FORGOTTEN {
                    gone.push(replica);
                }
            }
            if !gone.is_empty() {
                self.0.run_apart(&[Op::TakeOut { index: there, members: gone }]).await?;
            }
        }
        if !replicas.iter().any(|replica| replica == self.0.replica()) {
            replicas.push(self.0.replica().to_owned());
        }
        let due = members.iter().take_while(|(_, at)| *at <= now.millis());
        Ok(DutyRoster { now, replicas, due: due.filter_map(|(text, _)| Duty::parse(text)).collect() })
    }

    /// Every tenant that has runs which are not over, as far as the hints say.
    pub async fn tenants_with_runs(&self) -> Result<Vec<Tenant>, StoreError> {
        let all = Op::Range { index: self.work(), from: 0, to: FULL, limit: usize::MAX };
        let members = self.0.run_apart(&[all]).await?.members()?;
        let tenant = |(text, _): &(String, u64)| match Duty::parse(text)? {
            Duty::Runs(tenant) => Some(tenant),
            Duty::Audit(..) => None,
        };
        Ok(members.iter().filter_map(tenant).collect())
    }

    /// Says when these are due, whatever was said before.
    pub async fn set(&self, duties: &[Duty], at: Moment) -> Result<(), StoreError> {
        self.place(duties, at, false).await
    }

    /// Says that these are due no later than that.
    pub async fn hint(&self, duties: &[Duty], at: Moment) -> Result<(), StoreError> {
        self.place(duties, at, true).await
    }

    /// Takes duties out that are done.
    pub async fn remove(&self, duties: &[Duty]) -> Result<(), StoreError> {
        if duties.is_empty() {
            return Ok(());
        }
        let members = duties.iter().map(Duty::to_text).collect();
        self.0.run_apart(&[Op::TakeOut { index: self.work(), members }]).await.map(drop)
    }

    /// Says that this replica leaves, so that others need not wait for it.
    pub async fn leave(&self) -> Result<(), StoreError> {
        if self.0.backend() != "redis" {
            return Ok(());
        }
        let own = vec![self.0.replica().to_owned()];
        self.0.run_apart(&[Op::TakeOut { index: self.there(), members: own }]).await.map(drop)
    }

    async fn place(&self, duties: &[Duty], at: Moment, lower: bool) -> Result<(), StoreError> {
        if duties.is_empty() {
            return Ok(());
        }
        let members = duties.iter().map(|duty| (duty.to_text(), at.millis().min(FULL))).collect();
        self.0.run_apart(&[Op::Place { index: self.work(), members, lower }]).await.map(drop)
    }

    fn work(&self) -> String {
        self.shelf().space.index(&IndexName::duties())
    }

    fn there(&self) -> String {
        self.shelf().space.index(&IndexName::replicas())
    }

    fn shelf(&self) -> TenantStore {
        self.0.of(&Tenant::of_service())
    }
}

/// What one look at a tenant that nobody uses found.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct TenantAtRest {
    /// When somebody has to look at its runs next, if any is not over.
    pub next_run: Option<Moment>,
    /// Whether its audit log has entries that are not sealed.
    pub unsealed: bool,
    /// When the oldest entry was written that is in its audit log.
    pub oldest_entry: Option<Moment>,
    /// Whether runs or sessions are listed that may be over and forgotten.
    pub untidy: bool,
}

impl TenantStore {
    /// Looks whether anything of the tenant waits for somebody, in one round trip of six small reads.
    pub async fn at_rest(&self, now: Moment) -> Result<TenantAtRest, StoreError> {
        let index = |index: IndexName| self.space.index(&index);
        let audit = || self.space.stream(&StreamName::audit());
        let forgotten = Moment::from_millis(now.millis().saturating_sub(millis(runs::KEEP)));
        let ops = [
            Op::Range { index: index(IndexName::due()), from: 0, to: FULL, limit: 1 },
            self.read_seal(),
            Op::Read { stream: audit(), walk: StreamWalk::Before(None), limit: 1 },
            Op::Read { stream: audit(), walk: StreamWalk::After(None), limit: 1 },
            Op::Range { index: index(IndexName::sessions()), from: 0, to: now.millis(), limit: 1 },
            Op::RangeBack { index: index(IndexName::runs()), from: runs::newest_first(forgotten), limit: 1 },
        ];
        let mut answers = self.store().run_apart(&ops).await?;
        let (due, seal, newest) = (answers.members()?, answers.record()?, answers.entries()?);
        let (oldest, sessions, old_runs) = (answers.entries()?, answers.members()?, answers.members()?);
        let sealed = seal.as_ref().map(seal_of).transpose()?.map(|seal| seal.entry.item);
        Ok(TenantAtRest {
            next_run: due.first().map(|(_, at)| Moment::from_millis(*at)),
            unsealed: newest.first().map(|(id, _)| *id) > sealed,
            oldest_entry: oldest.first().map(|(id, _)| id.at),
            untidy: !sessions.is_empty() || !old_runs.is_empty(),
        })
    }
}

/// The hint that is written beside a change of a run, which is next due then. Whatever becomes of the hint, the change
/// is what counts.
pub(crate) async fn hint_beside(store: &Store, tenant: &Tenant, due: Option<Moment>, changed_at: Moment) {
    let Some(due) = due.filter(|due| due.millis() < FULL) else { return };
    let at = due.max(changed_at.plus(SETTLED));
    tell_lost(store.duties().hint(&[Duty::Runs(tenant.clone())], at).instrument(tracing::Span::none()).await);
}

/// The hint that is written behind a change of a run, in the background: look at once.
pub(crate) fn hint_behind(store: &Store, tenant: &Tenant) {
    let (duties, duty) = (store.duties(), [Duty::Runs(tenant.clone())]);
    let work = async move { tell_lost(duties.hint(&duty, Moment::from_millis(0)).await) };
    store.spawn(work.instrument(tracing::Span::none()));
}

fn tell_lost(hinted: Result<(), StoreError>) {
    if let Err(error) = hinted {
        tracing::debug!(%error, "a hint that runs are due was not written; the walk over all tenants finds them");
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_duty_reads_back_as_itself() {
        let acme = Tenant::parse("acme").unwrap();
        for duty in [Duty::Runs(acme.clone()), Duty::Audit(acme, "rep_1".into())] {
            assert_eq!(Duty::parse(&duty.to_text()), Some(duty));
        }
        for text in ["", "r", "r:", "x:acme", "a:acme", "a:", "r:a b"] {
            assert_eq!(Duty::parse(text), None, "{text}");
        }
    }
}
