//! Jobs as records: what runners are to execute, who has it, what it printed and what became of it.
//!
//! A job, its place in the queue of its label, its output, the audit entry and the wake-up change in one commit. The queue
//! is an index of what may be claimed, ranked by from when on: a claim that was never followed by a start comes up again
//! by itself, and nobody walks over tenants that have nothing to do. Whether a lease is over is judged by whoever looks.
//!
//! Not here: how a job may move (see [`domain::job`]), who may move it (see the gateway), how it is executed (see `runner`).

use crate::commit::{Room, Score, SideWrite};
use crate::entry::AuditEntry;
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

/// How long a job is kept after its last change: long after its run was settled.
const KEEP: Duration = Duration::from_secs(7 * 24 * 60 * 60);
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
#[must_use = "`TooMany` submitted nothing"]
pub enum JobSubmission {
    /// It waits for a runner now.
    New(Job),
    /// It was submitted before; this is how it stands.
    Existing(Job),
    /// As many jobs of its label wait as may.
    TooMany,
}

/// How a runner's change of a job ended.
#[derive(Debug, Clone, PartialEq, Eq)]
#[must_use = "only `Done` wrote something"]
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
        let waiting = IndexName::claimable_jobs(&label);
        let commit = Commit {
            wake: Some(Topic::Jobs(label)),
            rooms: vec![Room::Members(waiting, MOST_WAITING)],
            held_to_quota: true,
            ..self.writing(&job, RecordVersion::NONE)?
        };
        match self.0.commit(commit).await? {
            Committed::Done(..) => Ok(JobSubmission::New(job)),
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

    /// Notes that a runner is there for as long as this.
    pub async fn announce(&self, runner: &RunnerPresence, lasts: Duration) -> Result<(), StoreError> {
        let body = serde_json::to_vec(runner).map_err(|_| UNREADABLE)?;
        let now = self.0.store().now().await?;
        let mut expect = RecordVersion::NONE;
        for _ in 0..TRIES {
            let index = runner.labels.iter().map(|label| IndexUpdate {
                index: IndexName::runners(label).forgotten_after(Some(KEEP)),
                member: runner.id.to_string(),
                rank: Score::At(now.plus(lasts).millis()),
            });
            let index = index.collect();
            let commit = Commit::write(RecordKey::runner(runner.id), expect, body.clone());
            match self.0.commit(Commit { expires: Some(lasts), index, ..commit }).await? {
                Committed::Conflict(version, _) => expect = version,
                Committed::Done(..) | Committed::Late(_) | Committed::NoRoom(_) => return Ok(()),
            }
        }
        Err(StoreError::unavailable(BUSY))
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
                    JobChange::Done(job) => return Ok(Some(job)),
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
            if let (Some(piece), Some(body)) = (piece, &body) {
                let (with_output, kept) = next.with_output(piece.number, size(&piece.output), piece.dropped_bytes)?;
                next = with_output;
                if kept {
                    beside.push(SideWrite::Write(RecordKey::job_output(id, piece.number), body.clone(), Some(KEEP)));
                }
            }
            Ok((next, beside))
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
        self.fold(id, entry, |job, now| Ok((next(job, now)?, Vec::new()))).await
    }

    /// Folds one move onto the job until it is written. The move is judged by the store's time at reading, and the
    /// compare-and-set sees to it that the job is still the one that was judged.
    async fn fold(
        &self,
        id: JobId,
        entry: Option<&AuditEntry>,
        next: impl Fn(&Job, Moment) -> Result<(Job, Vec<SideWrite>), JobRefusal>,
    ) -> Result<JobChange, StoreError> {
        for _ in 0..TRIES {
            let (Some(held), now) = self.find(id).await? else { return Ok(JobChange::Absent) };
            let (job, beside) = match next(&held.job, now) {
                Ok((job, _)) if job == held.job => return Ok(JobChange::Done(job)),
                Ok(next) => next,
                Err(refusal) => return Ok(JobChange::Refused(refusal)),
            };
            let mut commit = Commit { wake: Some(Topic::Job(id)), beside, ..self.writing(&job, held.version)? };
            if let Some(entry) = entry {
                commit.append.push(self.0.audit().write_out(entry)?);
            }
            match self.0.commit(commit).await? {
                Committed::Done(..) => return Ok(JobChange::Done(job)),
                Committed::Conflict(..) => {}
                Committed::Late(_) | Committed::NoRoom(_) => return Err(UNREADABLE),
            }
        }
        Err(StoreError::unavailable(BUSY))
    }

    fn writing(&self, job: &Job, expect: RecordVersion) -> Result<Commit, StoreError> {
        let body = serde_json::to_vec(&JobRecord { v: 1, job: job.clone() }).map_err(|_| UNREADABLE)?;
        let place = IndexUpdate {
            index: IndexName::claimable_jobs(&job.spec.label),
            member: job.id.to_string(),
            rank: job.claimable_from().map(Moment::millis).into(),
        };
        Ok(Commit { expires: Some(KEEP), index: vec![place], ..Commit::write(RecordKey::job(job.id), expect, body) })
    }
}

fn read(record: StoredRecord) -> Result<VersionedJob, StoreError> {
    match serde_json::from_slice(&record.body) {
        Ok(JobRecord { v: 1, job }) => Ok(VersionedJob { job, version: record.version }),
        Ok(_) | Err(_) => Err(UNREADABLE),
    }
}

fn size(output: &[JobOutput]) -> u64 {
    output.iter().map(|piece| piece.text.len() as u64).sum()
}
