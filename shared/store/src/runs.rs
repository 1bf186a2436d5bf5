//! Runs as records: each one a compare-and-set with its audit entry, its places in the indexes and its wake-up.
//!
//! Not here: what may happen to a run (see [`domain::run`]), and who makes it happen (see the executor).

use crate::carried::{self, CarriedOver};
use crate::commit::{Commit, Committed, IndexUpdate, RecordVersion, Room, Score};
use crate::duties;
use crate::entry::AuditEntry;
use crate::guard::GuardedRead;
use crate::ops::{HeldRecord, Op};
use crate::run_shape::{SCRUBBED, SCRUBBED_ARGUMENTS, from_bytes, opened, to_bytes, without_arguments};
use crate::{IndexName, RecordKey, SessionConfig, StoreError, StoreQuota, TenantStore, Topic, run_list};
use domain::run::{OnReject, Run, RunState};
use domain::{Moment, Principal, RunId, Session, SessionId};
use std::time::Duration;

/// How long a run is kept after its last change: long after everybody has read it.
pub(crate) const KEEP: Duration = Duration::from_secs(30 * 24 * 60 * 60);
/// How long a caller's own key, or the digest of a call, leads to the run it began.
const REMEMBERED: Duration = Duration::from_secs(25 * 60 * 60);
/// Ranks count down from here, so that the newest comes first. Below 2^53, which is where Redis loses count.
const NEWEST_FIRST: u64 = 1 << 52;
/// Every rank there is; above it Redis would lose count.
pub(crate) const FULL: u64 = u64::MAX >> 11;
/// How long a rejection holds a session's step: longer than any session lives.
pub(crate) const STEP_ENDED: Duration = Duration::from_secs(31 * 24 * 60 * 60);

/// A run as it was read, and the version that a change has to name.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct VersionedRun {
    /// The run.
    pub run: Run,
    /// Its version.
    pub version: RecordVersion,
}

/// How a change of a run ended.
#[derive(Debug, Clone, PartialEq, Eq)]
#[must_use = "only `Done` wrote something"]
pub enum RunCasOutcome {
    /// Written; this is the run now.
    Done(VersionedRun),
    /// Somebody was quicker; this is what to fold on.
    Conflict(VersionedRun),
    /// The store's clock says it is too late.
    Late(Moment),
    /// As many runs of the requester wait as may, so this one was not opened.
    TooManyWaiting,
    /// There is no such run any more.
    Gone,
}

/// A run as the store's server holds it, and whether enough of its replicas hold everything up to there.
#[derive(Debug, Clone, PartialEq, Eq)]
#[must_use = "what is not held by enough may be forgotten"]
pub struct StandingRun {
    /// The run; `None` if there is none (any more).
    pub held: Option<VersionedRun>,
    /// Whether a failover would keep it.
    pub enough: bool,
}

/// Runs that are not over, and when somebody has to look at each; [`NEVER_DUE`] if only a person can go on.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DueRuns {
    /// The store's time.
    pub now: Moment,
    /// The runs, those that are due soonest first.
    pub runs: Vec<(RunId, Moment)>,
}

impl DueRuns {
    /// Those that are due by now, the longest overdue first.
    pub fn by_now(&self) -> impl Iterator<Item = RunId> {
        self.runs.iter().take_while(|(_, at)| *at <= self.now).map(|(id, _)| *id)
    }
}

/// When a run is due that is not over and that nobody looks at again by themselves.
pub const NEVER_DUE: Moment = Moment::from_millis(FULL);

/// The runs of one tenant.
#[derive(Debug, Clone)]
pub struct RunStore(pub(crate) TenantStore);

impl RunStore {
    pub(crate) fn new(shelf: TenantStore) -> RunStore {
        RunStore(shelf)
    }

    /// Writes a new run. If it is there already, that one is handed back as [`RunCasOutcome::Conflict`]; if its requester has
    /// `most` runs waiting already, nothing is written: [`RunCasOutcome::TooManyWaiting`].
    pub async fn open(
        &self,
        run: &Run,
        key: Option<&str>,
        most: u64,
        entry: &AuditEntry,
    ) -> Result<RunCasOutcome, StoreError> {
        let mut index = places(run);
        let newest = newest_first(run.asked.asked_at);
        let member = run.id.to_string();
        let remembered = |index: IndexName| IndexUpdate {
            index: index.forgotten_after(Some(REMEMBERED)),
            member: member.clone(),
            rank: Score::At(newest),
        };
        index.extend(run_list::listed(run));
        index.push(remembered(IndexName::same_digest(&run.asked.digest)));
        if let Some(key) = key {
            index.push(remembered(IndexName::same_key(&run.asked.requester, key)));
        }
        self.write(RunChange { opens: Some(most), ..RunChange::of(RecordVersion::NONE, run, index) }, entry).await
    }

    /// Reads a run, and the store's time with it.
    pub async fn find(&self, id: RunId) -> Result<(Option<VersionedRun>, Moment), StoreError> {
        let (reading, key) = (self.0.reading(&RecordKey::run(id)), self.0.space.record(&RecordKey::run(id)));
        let mut answers = self.0.run(&[Op::Get { key }, Op::Now]).await?;
        let (record, now) = (answers.record()?, answers.now()?);
        Ok((opened(&reading, id, record)?, now))
    }

    /// Writes the next state of a run; `not_after` is judged by the store's own clock.
    pub async fn commit(
        &self,
        held: &VersionedRun,
        next: &Run,
        not_after: Option<Moment>,
        entry: &AuditEntry,
    ) -> Result<RunCasOutcome, StoreError> {
        let mut index = places(next);
        if next.state != held.run.state {
            // In the same step as the rejection, so that no replica can die between the two.
            index.extend(ends_step(next));
        }
        self.write(RunChange { not_after, ..RunChange::of(held.version, next, index) }, entry).await
    }

    /// Asks how firmly a run stands, with everything that was written before; others may take that long to catch up.
    /// `None`: nobody but the store itself has to hold it, and nobody was asked.
    pub async fn confirm(&self, id: RunId, within: Duration) -> Result<Option<StandingRun>, StoreError> {
        let (reading, key) = (self.0.reading(&RecordKey::run(id)), self.0.space.record(&RecordKey::run(id)));
        let Some(HeldRecord { record, enough }) = self.0.store().confirm(&key, &self.0.space.ack(), within).await?
        else {
            return Ok(None);
        };
        Ok(Some(StandingRun { held: opened(&reading, id, record)?, enough }))
    }

    /// Writes a run that the store has forgotten, or holds as it was before; `found` is what it holds instead.
    pub async fn write_back(
        &self,
        run: &Run,
        found: Option<&VersionedRun>,
        entry: &AuditEntry,
    ) -> Result<RunCasOutcome, StoreError> {
        let (newest, member) = (newest_first(run.asked.asked_at), run.id.to_string());
        let mut index = places(run);
        let digest = IndexName::same_digest(&run.asked.digest).forgotten_after(Some(REMEMBERED));
        index.extend(run_list::listed(run));
        index.push(IndexUpdate { index: digest, member, rank: Score::At(newest) });
        let expect = found.map_or(RecordVersion::NONE, |found| found.version);
        self.write(RunChange::of(expect, run, index), entry).await
    }

    /// The rejected run that ended a session's step, or that of an earlier session it carries over, and was not cleared
    /// since.
    pub async fn stopped_by(&self, session: &Session, lives: SessionConfig) -> Result<Option<RunId>, StoreError> {
        let index = self.0.space.index(&IndexName::stopped(session.id));
        let own = Op::Range { index, from: 0, to: FULL, limit: 1 };
        let mut answers = self.0.run(&[own, carried::look(&self.0, &session.owner)]).await?;
        let (own, marks) = (answers.members()?, answers.members()?);
        let carried = CarriedOver::at(&marks, session.opened_at, lives.carry_over);
        Ok(first(&own).or(carried.stopped_by))
    }

    /// Lets the session whose step a run ended go on, and those that began with it; new sessions of its requester begin
    /// clean.
    pub async fn clear(&self, held: &VersionedRun, entry: &AuditEntry) -> Result<RunCasOutcome, StoreError> {
        let member = || held.run.id.to_string();
        let step = |session| IndexUpdate { index: IndexName::stopped(session), member: member(), rank: Score::Out };
        let mut index = Vec::from(carried::lift(&held.run));
        index.extend(held.run.asked.session.map(step));
        self.write(RunChange::of(held.version, &held.run, index), entry).await
    }

    /// Runs that are not over, those that somebody has to look at soonest first; in one round trip.
    pub async fn due(&self, limit: usize) -> Result<DueRuns, StoreError> {
        let due = Op::Range { index: self.0.space.index(&IndexName::due()), from: 0, to: FULL, limit };
        let mut answers = self.0.run(&[due, Op::Now]).await?;
        let (members, now) = (answers.members()?, answers.now()?);
        let at = |(id, rank): &(String, u64)| Some((RunId::parse(id).ok()?, Moment::from_millis(*rank)));
        Ok(DueRuns { now, runs: members.iter().filter_map(at).collect() })
    }

    /// Takes a run that is over, or whose record is not authentic, out of what somebody has to look at.
    pub async fn set_aside(&self, id: RunId) -> Result<(), StoreError> {
        let index = self.0.space.index(&IndexName::due());
        self.0.run(&[Op::TakeOut { index, members: vec![id.to_string()] }]).await.map(drop)
    }

    /// Runs that are not over yet, whenever they are due.
    pub async fn open_ones(&self, limit: usize) -> Result<Vec<RunId>, StoreError> {
        let members = self.0.range(&IndexName::due(), 0, FULL, limit).await?;
        Ok(members.iter().filter_map(|(id, _)| RunId::parse(id).ok()).collect())
    }

    /// Whether a session asked for something that people are still reviewing.
    pub async fn is_under_review(&self, session: SessionId, owner: &Principal) -> Result<bool, StoreError> {
        let members = self.0.range(&IndexName::waiting(owner, true), 0, FULL, usize::MAX).await?;
        let ids: Vec<RunId> = members.iter().filter_map(|(id, _)| RunId::parse(id).ok()).collect();
        Ok(self.read(ids).await?.iter().any(|run| run.asked.session == Some(session)))
    }

    /// Takes everything that was written by hand out of a run that is over: arguments, preview and result. Who asked for
    /// which tool, who decided and how it ended stays, and so does the digest of what was asked.
    pub async fn scrub(&self, id: RunId, entry: &AuditEntry) -> Result<(), StoreError> {
        loop {
            let Some(held) = self.find(id).await?.0.filter(|held| held.run.state.is_final()) else { return Ok(()) };
            let mut next = held.run.clone();
            next.asked.arguments = SCRUBBED_ARGUMENTS.to_owned();
            next.asked.kept_object = None;
            next.asked.preview.text = SCRUBBED.to_owned();
            next.asked.preview.warnings.clear();
            next.asked.preview.arguments = None;
            next.asked.preview.hidden.clear();
            if let Some(ending) = &mut next.ending {
                ending.result = None;
            }
            if next == held.run {
                return Ok(());
            }
            match self.commit(&held, &next, None, entry).await? {
                RunCasOutcome::Done(_) | RunCasOutcome::Gone => return Ok(()),
                RunCasOutcome::Conflict(_) | RunCasOutcome::Late(_) | RunCasOutcome::TooManyWaiting => {}
            }
        }
    }

    /// Lets a caller's own key lead to a run that was there before the key was.
    pub async fn remember(
        &self,
        held: &VersionedRun,
        key: &str,
        entry: &AuditEntry,
    ) -> Result<RunCasOutcome, StoreError> {
        let index = IndexName::same_key(&held.run.asked.requester, key).forgotten_after(Some(REMEMBERED));
        let rank = Score::At(newest_first(held.run.asked.asked_at));
        let index = vec![IndexUpdate { index, member: held.run.id.to_string(), rank }];
        self.write(RunChange::of(held.version, &held.run, index), entry).await
    }

    /// Moves when a run is looked at next, without changing it.
    pub async fn look_again(
        &self,
        held: &VersionedRun,
        at: Option<Moment>,
        entry: &AuditEntry,
    ) -> Result<RunCasOutcome, StoreError> {
        let member = held.run.id.to_string();
        let index = vec![IndexUpdate { index: IndexName::due(), member, rank: at.map(Moment::millis).into() }];
        self.write(RunChange { look_at: at, ..RunChange::of(held.version, &held.run, index) }, entry).await
    }

    /// Runs, newest first, beginning with those asked at `from`.
    pub async fn page(&self, from: Option<Moment>, limit: usize) -> Result<Vec<Run>, StoreError> {
        let from = from.map_or(0, newest_first);
        let members = self.0.range(&IndexName::runs(), from, FULL, limit).await?;
        self.read(members.iter().filter_map(|(id, _)| RunId::parse(id).ok()).collect()).await
    }

    /// Those of these runs that are there, in one round trip.
    pub async fn read(&self, ids: Vec<RunId>) -> Result<Vec<Run>, StoreError> {
        let get = |id: &RunId| Op::Get { key: self.0.space.record(&RecordKey::run(*id)) };
        let ops: Vec<Op> = ids.iter().map(get).collect();
        if ops.is_empty() {
            return Ok(Vec::new());
        }
        let readings: Vec<GuardedRead> = ids.iter().map(|id| self.0.reading(&RecordKey::run(*id))).collect();
        let mut answers = self.0.run(&ops).await?;
        let mut runs = Vec::with_capacity(ids.len());
        for (id, reading) in ids.into_iter().zip(readings) {
            match opened(&reading, id, answers.record()?) {
                Ok(Some(held)) => runs.push(held.run),
                // A run may have ended its keeping since the index was read. One that is not authentic is told of
                // elsewhere, and must not hide the others.
                Ok(None) | Err(StoreError::NotAuthentic { .. }) => {}
                Err(error) => return Err(error),
            }
        }
        Ok(runs)
    }

    async fn write(&self, change: RunChange<'_>, entry: &AuditEntry) -> Result<RunCasOutcome, StoreError> {
        let RunChange { expect, run, mut index, not_after, opens, look_at } = change;
        let run = &without_arguments(run);
        let (body, sizes) = (to_bytes(run)?, run_list::sizes(run));
        let bytes = body.len() as u64;
        // What a run holds may grow: only what is new is held to limits, so that everything that was begun can end.
        let limits = *self.0.store().limits();
        let mosts = [limits.run_bytes_per_caller, limits.run_bytes_per_tenant];
        let sum = |(index, most): (&IndexName, u64)| Room::Sum { index: index.clone(), added: bytes, most };
        let rooms = opens.map_or_else(Vec::new, |most| {
            [Room::Members(queue(run), most)].into_iter().chain(sizes.iter().zip(mosts).map(sum)).collect()
        });
        let (member, rank) = (run.id.to_string(), Score::At(bytes));
        index.extend(sizes.map(|index| IndexUpdate { index, member: member.clone(), rank }));
        // Always past the time a person may take, so that `expired` can be seen.
        let kept = KEEP + run.asked.expires_at.since(run.changed_at);
        let commit = Commit {
            expires: Some(kept),
            not_after,
            beside: vec![run_list::beside(run, kept)?],
            append: vec![self.0.audit().write_out(entry)?],
            index,
            wake: Some(Topic::Run(run.id)),
            held_to_quota: opens.is_some(),
            rooms,
            ..Commit::write(RecordKey::run(run.id), expect, body)
        };
        let (store, tenant) = (self.0.store(), self.0.tenant());
        // The hint is sent first: whoever is killed with the commit on its way has sent the hint as well.
        let hint = duties::hint_beside(store, tenant, look_at.or(run.due()), run.changed_at);
        let ((), committed) = tokio::join!(biased; hint, self.0.commit(commit));
        match committed? {
            Committed::Done(version, _) => {
                duties::hint_behind(store, tenant);
                Ok(RunCasOutcome::Done(VersionedRun { run: Run::clone(run), version }))
            }
            Committed::NoRoom(Some(0)) => Ok(RunCasOutcome::TooManyWaiting),
            Committed::NoRoom(Some(1)) => Err(StoreError::QuotaReached(StoreQuota::CallerRuns(mosts[0]))),
            Committed::NoRoom(Some(_)) => Err(StoreError::QuotaReached(StoreQuota::TenantRuns(mosts[1]))),
            Committed::NoRoom(None) => Err(StoreError::QuotaReached(StoreQuota::TenantBytes(limits.bytes_per_tenant))),
            Committed::Late(now) => Ok(RunCasOutcome::Late(now)),
            Committed::Conflict(RecordVersion::NONE, _) => Ok(RunCasOutcome::Gone),
            Committed::Conflict(version, body) => {
                Ok(RunCasOutcome::Conflict(VersionedRun { run: from_bytes(run.id, &body)?, version }))
            }
        }
    }
}

/// One change of one run.
struct RunChange<'a> {
    expect: RecordVersion,
    run: &'a Run,
    index: Vec<IndexUpdate>,
    not_after: Option<Moment>,
    /// How many runs may wait, if the change opens one more.
    opens: Option<u64>,
    /// When somebody has to look at it, if that is another time than the run itself says.
    look_at: Option<Moment>,
}

impl RunChange<'_> {
    fn of(expect: RecordVersion, run: &Run, index: Vec<IndexUpdate>) -> RunChange<'_> {
        RunChange { expect, run, index, not_after: None, opens: None, look_at: None }
    }
}

/// The places every change moves: when to look next, and whether it still waits for a person.
fn places(run: &Run) -> Vec<IndexUpdate> {
    let member = run.id.to_string();
    // What is reviewed stays until nothing more can come of it: whatever it was proposed from must last that long.
    let waits = match run.state {
        RunState::PendingApproval => true,
        RunState::Approved | RunState::Executing => run.asked.reviewed,
        RunState::Rejected
        | RunState::Expired
        | RunState::Cancelled
        | RunState::Succeeded
        | RunState::Failed
        | RunState::OutcomeUnknown
        | RunState::ReconciledSucceeded
        | RunState::ReconciledFailed => false,
    };
    let waits = waits.then(|| run.asked.asked_at.millis());
    let undecided = (run.state == RunState::PendingApproval).then_some(1);
    vec![
        IndexUpdate { index: IndexName::undecided(), member: member.clone(), rank: undecided.into() },
        IndexUpdate { index: IndexName::due(), member: member.clone(), rank: run.due().map(Moment::millis).into() },
        IndexUpdate { index: queue(run), member, rank: waits.into() },
    ]
}

/// Where a run is counted among those of its requester.
fn queue(run: &Run) -> IndexName {
    IndexName::waiting(&run.asked.requester, run.asked.reviewed)
}

/// A rejection that ends the step of the session that asked, and of those its requester opens next.
fn ends_step(run: &Run) -> Vec<IndexUpdate> {
    let Some(session) = run.asked.session else { return Vec::new() };
    if run.state != RunState::Rejected || run.asked.on_reject != OnReject::Fail {
        return Vec::new();
    }
    let step = IndexUpdate {
        index: IndexName::stopped(session).forgotten_after(Some(STEP_ENDED)),
        member: run.id.to_string(),
        rank: Score::At(run.changed_at.millis()),
    };
    vec![step, carried::stop(run)]
}

pub(crate) fn first(members: &[(String, u64)]) -> Option<RunId> {
    members.first().and_then(|(id, _)| RunId::parse(id).ok())
}

pub(crate) fn newest_first(at: Moment) -> u64 {
    NEWEST_FIRST.saturating_sub(at.millis())
}

/// The moment that has this rank.
pub(crate) fn asked_at(rank: u64) -> Moment {
    Moment::from_millis(NEWEST_FIRST.saturating_sub(rank))
}
