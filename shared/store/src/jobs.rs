//! Jobs as records: what runners are to execute, who has it, what it printed and what became of it.
//!
//! A job, its place in the queue of its label, its output, the audit entry and the wake-up change in one commit. The queue
//! is an index of what may be claimed, ranked by from when on: a claim that was never followed by a start comes up again
//! by itself, and nobody walks over tenants that have nothing to do. Whether a lease is over is judged by whoever looks.
//!
//! Not here: how a job may move (see [`domain::job`]), who may move it (see the gateway), how it is executed (see `runner`).

use crate::commit::{Room, Score, SideWrite};
use crate::entry::{AuditEntry, CallVerdict};
use crate::guard::GuardedRead;
use crate::ops::Op;
use crate::{
    Commit, Committed, IndexName, IndexUpdate, JobFollower, RecordKey, RecordVersion, StoreError, StoredRecord,
    TenantStore, Topic,
};
use domain::job::{JobEnding, JobHolder, JobOutput, JobRefusal, JobSpec, RunnerLabel};
use domain::{Job, JobId, Moment, RunnerId};
use serde::{Deserialize, Serialize};
use std::time::Duration;
use telemetry::metrics;

/// How long a job is kept after its last change: long after its run was settled.
const KEEP: Duration = Duration::from_secs(7 * 24 * 60 * 60);
/// How many bytes a job may have, its output not counted.
const MOST_BYTES: usize = 256 * 1024;
/// So many runners of one label may be there at a time.
const MOST_RUNNERS: u64 = 500;
/// So many jobs of one label may wait at a time.
const MOST_WAITING: u64 = 1_000;
/// How many jobs of a label are looked at for one claim.
const LOOKS: usize = 16;
/// How many pieces of output are read in one round trip.
const AT_ONCE: usize = 64;
/// How often a change is folded again onto what others wrote meanwhile.
const TRIES: usize = 16;
const UNREADABLE: StoreError = StoreError::Corrupt { what: "a job" };
const BUSY: &str = "a job changes all the time";

/// A job as it was read, and the version that a change has to name.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct VersionedJob {
    /// The job.
    pub job: Job,
    version: RecordVersion,
}

/// How submitting a job ended.
#[derive(Debug, Clone, PartialEq, Eq)]
#[must_use = "only `New` submitted something"]
pub enum JobSubmission {
    /// It waits for a runner now.
    New(Job),
    /// It was submitted before; this is how it stands.
    Existing(Job),
    /// As many jobs of its label wait as may.
    TooMany,
    /// It has more bytes than a job may have.
    TooLarge,
}

/// How a runner's change of a job ended.
#[derive(Debug, Clone, PartialEq, Eq)]
#[must_use = "only `Done` wrote something"]
#[expect(clippy::large_enum_variant, reason = "it is looked at once and not kept")]
pub enum JobChange {
    /// This is the job now.
    Done(Job),
    /// It may not move like that.
    Refused(JobRefusal),
    /// There is no such job.
    Absent,
}

/// A piece of a job's output as a runner hands it in.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OutputPiece {
    /// Which piece of the job's output it is, from 0. One that is there already is passed over.
    pub number: u64,
    /// What was printed.
    pub output: Vec<JobOutput>,
    /// How many bytes the runner left out before it.
    pub dropped_bytes: u64,
}

/// A runner that was heard of lately.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct RunnerPresence {
    /// Which process.
    pub id: RunnerId,
    /// What it calls itself, such as the name of its host.
    pub name: String,
    /// The labels it serves.
    pub labels: Vec<RunnerLabel>,
    /// How many jobs it takes at a time.
    pub slots: u32,
}

#[derive(Serialize, Deserialize)]
struct JobRecord {
    v: u8,
    job: Job,
}

/// The next state of a job, and what is written beside it.
struct JobMove {
    job: Job,
    beside: Vec<SideWrite>,
    index: Vec<IndexUpdate>,
}

/// The jobs of one tenant.
#[derive(Debug, Clone)]
pub struct JobStore(pub(crate) TenantStore);

impl JobStore {
    pub(crate) fn new(shelf: TenantStore) -> JobStore {
        JobStore(shelf)
    }

    /// Submits a job under an id that is derived from what it is for, so that a second time changes nothing. A runner may
    /// claim it for `claimable`; afterwards it is never begun.
    pub async fn submit(
        &self,
        id: JobId,
        owner: &str,
        spec: JobSpec,
        claimable: Duration,
    ) -> Result<JobSubmission, StoreError> {
        let now = self.0.store().now().await?;
        let label = spec.label.clone();
        let job = Job::new(id, owner, spec, now, claimable);
        if to_bytes(&job)?.len() > MOST_BYTES {
            return Ok(JobSubmission::TooLarge);
        }
        let waiting = IndexName::claimable_jobs(&label);
        let commit = Commit {
            wake: Some(Topic::Jobs(label)),
            rooms: vec![Room::Members(waiting, MOST_WAITING)],
            held_to_quota: true,
            ..self.writing(&job, RecordVersion::NONE)?
        };
        match self.0.commit(commit).await? {
            Committed::Done(..) => {
                metrics::JOBS.add(["submitted"], 1);
                Ok(JobSubmission::New(job))
            }
            Committed::Conflict(version, body) => {
                Ok(JobSubmission::Existing(read(StoredRecord { version, body })?.job))
            }
            Committed::Late(_) => Err(UNREADABLE),
            Committed::NoRoom(_) => Ok(JobSubmission::TooMany),
        }
    }

    /// Reads a job, and the store's time with it.
    pub async fn find(&self, id: JobId) -> Result<(Option<VersionedJob>, Moment), StoreError> {
        let key = RecordKey::job(id);
        let reading = self.0.reading(&key);
        let mut answers = self.0.run(&[Op::Get { key: self.0.space.record(&key) }, Op::Now]).await?;
        let (record, now) = (answers.record()?, answers.now()?);
        Ok((reading.open(record)?.map(read).transpose()?, now))
    }

    /// Follows a job from its submitter's side: its output as it comes, and what becomes of it.
    pub fn follow(&self, id: JobId) -> JobFollower {
        JobFollower::new(self.clone(), id)
    }

    /// The submitter wants the job ended. What was not started is over at once; what was is asked to end.
    pub async fn cancel(&self, id: JobId, reason: &str) -> Result<JobChange, StoreError> {
        self.change(id, None, |job, _| Ok(job.cancelled(reason))).await
    }

    /// Pieces of output from this number on, each with its own. Pieces above the job's cap were not kept.
    pub async fn output(&self, job: &Job, from: u64) -> Result<Vec<(u64, Vec<JobOutput>)>, StoreError> {
        let numbers: Vec<u64> = (from..job.chunks).take(AT_ONCE).collect();
        let keys: Vec<RecordKey> = numbers.iter().map(|number| RecordKey::job_output(job.id, *number)).collect();
        let ops: Vec<Op> = keys.iter().map(|key| Op::Get { key: self.0.space.record(key) }).collect();
        let readings: Vec<GuardedRead> = keys.iter().map(|key| self.0.reading(key)).collect();
        let mut answers = self.0.run(&ops).await?;
        let mut pieces = Vec::with_capacity(numbers.len());
        for (number, reading) in numbers.into_iter().zip(readings) {
            let piece = match reading.open(answers.record()?)? {
                Some(record) => serde_json::from_slice(&record.body).map_err(|_| UNREADABLE)?,
                None => Vec::new(),
            };
            pieces.push((number, piece));
        }
        Ok(pieces)
    }

    /// Notes that a runner is there for as long as this. `false`: as many runners of one of its labels are there as may.
    pub async fn announce(&self, runner: &RunnerPresence, lasts: Duration) -> Result<bool, StoreError> {
        let body = serde_json::to_vec(runner).map_err(|_| UNREADABLE)?;
        let now = self.0.store().now().await?;
        let (mut index, mut rooms) = (Vec::new(), Vec::new());
        for label in &runner.labels {
            let of_label = IndexName::runners(label);
            // Those who went without a word leave the index with the next one who comes.
            for (member, _) in self.0.range(&of_label, 0, now.millis(), LOOKS).await? {
                index.push(IndexUpdate { index: of_label.clone(), member, rank: Score::OutUpTo(now.millis()) });
            }
            index.push(there(label, runner.id, now.plus(lasts)));
            rooms.push(Room::Members(of_label, MOST_RUNNERS));
        }
        let mut expect = RecordVersion::NONE;
        for _ in 0..TRIES {
            let (index, rooms) =
                (index.clone(), if expect == RecordVersion::NONE { rooms.clone() } else { Vec::new() });
            let commit = Commit::write(RecordKey::runner(runner.id), expect, body.clone());
            match self.0.commit(Commit { expires: Some(lasts), index, rooms, ..commit }).await? {
                Committed::Conflict(version, _) => expect = version,
                Committed::Done(..) | Committed::Late(_) => return Ok(true),
                Committed::NoRoom(_) => return Ok(false),
            }
        }
        Err(StoreError::unavailable(BUSY))
    }

    /// Notes that a runner has gone.
    pub async fn depart(&self, runner: RunnerId, labels: &[RunnerLabel]) -> Result<(), StoreError> {
        let key = RecordKey::runner(runner);
        let Some(record) = self.0.get(&key).await? else { return Ok(()) };
        let gone =
            |label| IndexUpdate { index: IndexName::runners(label), member: runner.to_string(), rank: Score::Out };
        let commit = Commit { index: labels.iter().map(gone).collect(), ..Commit::delete(key, record.version) };
        match self.0.commit(commit).await? {
            // Whoever wrote it again is there after all.
            Committed::Done(..) | Committed::Conflict(..) | Committed::Late(_) | Committed::NoRoom(_) => Ok(()),
        }
    }

    /// Whether a runner of this label was heard of lately.
    pub async fn has_runner(&self, label: &RunnerLabel) -> Result<bool, StoreError> {
        let now = self.0.store().now().await?;
        Ok(!self.0.range(&IndexName::runners(label), now.millis(), u64::MAX >> 11, 1).await?.is_empty())
    }

    /// Takes the job that has waited longest for one of these labels. `None`: there is none.
    pub async fn claim(
        &self,
        labels: &[RunnerLabel],
        holder: &JobHolder,
        lease: Duration,
        entry: &AuditEntry,
    ) -> Result<Option<Job>, StoreError> {
        for label in labels {
            let now = self.0.store().now().await?;
            let waiting = self.0.range(&IndexName::claimable_jobs(label), 0, now.millis(), LOOKS).await?;
            for (member, _) in waiting {
                let Ok(id) = JobId::parse(&member) else { continue };
                let claimed = self.change(id, Some(entry), |job, now| job.claimed(holder, now, lease)).await?;
                match claimed {
                    JobChange::Done(job) => {
                        metrics::JOB_WAIT.observe([], now.since(job.submitted_at).as_secs_f64());
                        return Ok(Some(job));
                    }
                    // Somebody was quicker, or its time is over and its submitter takes it back.
                    JobChange::Refused(_) | JobChange::Absent => {}
                }
            }
        }
        Ok(None)
    }

    /// The runner is about to execute the job: the last step before the first process.
    pub async fn start(
        &self,
        id: JobId,
        holder: &JobHolder,
        epoch: u64,
        lease: Duration,
        entry: &AuditEntry,
    ) -> Result<JobChange, StoreError> {
        self.change(id, Some(entry), |job, now| job.started(holder, epoch, now, lease)).await
    }

    /// The runner is still there, perhaps with more output.
    pub async fn renew(
        &self,
        id: JobId,
        holder: &JobHolder,
        epoch: u64,
        lease: Duration,
        piece: Option<&OutputPiece>,
    ) -> Result<JobChange, StoreError> {
        let body = piece.map(|piece| serde_json::to_vec(&piece.output)).transpose().map_err(|_| UNREADABLE)?;
        let renewed = |job: &Job, now: Moment| {
            let mut next = job.renewed(holder, epoch, now, lease)?;
            let mut beside = Vec::new();
            // A runner whose slots are all taken asks for no job, and is there all the same.
            let index = vec![there(&next.spec.label, holder.runner, now.plus(lease * 2))];
            if let (Some(piece), Some(body)) = (piece, &body) {
                let (with_output, kept) = next.with_output(piece.number, size(&piece.output), piece.dropped_bytes)?;
                next = with_output;
                if kept {
                    beside.push(SideWrite::Write(RecordKey::job_output(id, piece.number), body.clone(), Some(KEEP)));
                }
            }
            Ok(JobMove { job: next, beside, index })
        };
        self.fold(id, None, renewed).await
    }

    /// The runner reports what became of the job.
    pub async fn end(
        &self,
        id: JobId,
        holder: &JobHolder,
        epoch: u64,
        ending: &JobEnding,
        entry: &AuditEntry,
    ) -> Result<JobChange, StoreError> {
        self.change(id, Some(entry), |job, _| job.ended(holder, epoch, ending.clone())).await
    }

    async fn change(
        &self,
        id: JobId,
        entry: Option<&AuditEntry>,
        next: impl Fn(&Job, Moment) -> Result<Job, JobRefusal>,
    ) -> Result<JobChange, StoreError> {
        let moved =
            |job: &Job, now: Moment| Ok(JobMove { job: next(job, now)?, beside: Vec::new(), index: Vec::new() });
        self.fold(id, entry, moved).await
    }

    /// Folds one move onto the job until it is written. The move is judged by the store's time at reading, and the
    /// compare-and-set sees to it that the job is still the one that was judged. The entry is completed with what it is
    /// about.
    async fn fold(
        &self,
        id: JobId,
        entry: Option<&AuditEntry>,
        next: impl Fn(&Job, Moment) -> Result<JobMove, JobRefusal>,
    ) -> Result<JobChange, StoreError> {
        for _ in 0..TRIES {
            let (Some(held), now) = self.find(id).await? else { return Ok(JobChange::Absent) };
            let JobMove { job, beside, index } = match next(&held.job, now) {
                Ok(moved) if moved.job == held.job && moved.index.is_empty() => return Ok(JobChange::Done(moved.job)),
                Ok(moved) => moved,
                Err(refusal) => return Ok(JobChange::Refused(refusal)),
            };
            let mut commit = Commit { wake: Some(Topic::Job(id)), beside, ..self.writing(&job, held.version)? };
            commit.index.extend(index);
            if let Some(entry) = entry {
                commit.append.push(self.0.audit().write_out(&about(&job, now, entry))?);
            }
            match self.0.commit(commit).await? {
                Committed::Done(..) => {
                    if state(&job, now) != state(&held.job, now) {
                        metrics::JOBS.add([state(&job, now)], 1);
                    }
                    return Ok(JobChange::Done(job));
                }
                Committed::Conflict(..) => {}
                Committed::Late(_) | Committed::NoRoom(_) => return Err(UNREADABLE),
            }
        }
        Err(StoreError::unavailable(BUSY))
    }

    fn writing(&self, job: &Job, expect: RecordVersion) -> Result<Commit, StoreError> {
        let place = IndexUpdate {
            index: IndexName::claimable_jobs(&job.spec.label),
            member: job.id.to_string(),
            rank: job.claimable_from().map(Moment::millis).into(),
        };
        let commit = Commit::write(RecordKey::job(job.id), expect, to_bytes(job)?);
        Ok(Commit { expires: Some(KEEP), index: vec![place], ..commit })
    }
}

fn to_bytes(job: &Job) -> Result<Vec<u8>, StoreError> {
    serde_json::to_vec(&JobRecord { v: 1, job: job.clone() }).map_err(|_| UNREADABLE)
}

fn read(record: StoredRecord) -> Result<VersionedJob, StoreError> {
    match serde_json::from_slice(&record.body) {
        Ok(JobRecord { v: 1, job }) => Ok(VersionedJob { job, version: record.version }),
        Ok(_) | Err(_) => Err(UNREADABLE),
    }
}

fn there(label: &RunnerLabel, runner: RunnerId, until: Moment) -> IndexUpdate {
    let index = IndexName::runners(label).forgotten_after(Some(KEEP));
    IndexUpdate { index, member: runner.to_string(), rank: Score::At(until.millis()) }
}

/// What a job's state is called in metrics and in the audit log: where it stands, or what became of it.
fn state(job: &Job, now: Moment) -> &'static str {
    job.ending.as_ref().map_or_else(|| job.standing(now).as_str(), JobEnding::as_str)
}

fn about(job: &Job, now: Moment, entry: &AuditEntry) -> AuditEntry {
    let epoch = job.claim.as_ref().map_or(0, |claim| claim.epoch);
    let basis = format!("{} for {} on {}, epoch {epoch}", job.spec.runbook, job.owner, job.spec.label);
    AuditEntry {
        target: Some(format!("job/{}", job.id)),
        decision: Some(CallVerdict { verdict: state(job, now), basis: Some(basis), rule: None, comment: None }),
        ..entry.clone()
    }
}

fn size(output: &[JobOutput]) -> u64 {
    output.iter().map(|piece| piece.text.len() as u64).sum()
}
