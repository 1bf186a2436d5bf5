//! The only ways in which a job moves. Each gives the next job or says why there is none; nothing here asks a clock.

use super::{Job, JobClaim, JobEnding, JobHolder, JobSpec, JobStanding};
use crate::{JobId, Moment};
use std::time::Duration;

/// Why a job does not move.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum JobRefusal {
    /// Somebody else has it, or nobody may have it any more.
    #[error("the job is not to be had")]
    Taken,
    /// The claim that was shown is not the one that holds the job.
    #[error("another claim holds the job")]
    Fenced,
    /// The lease was over before the start was reported.
    #[error("the lease of the claim is over")]
    LeaseOver,
    /// It has ended, and otherwise than is reported now.
    #[error("the job is over")]
    Over,
    /// Its submitter has taken it back.
    #[error("the job was cancelled")]
    Cancelled,
    /// A job that was not started has no such ending.
    #[error("the job was not started")]
    NotStarted,
    /// Pieces of output came out of order.
    #[error("a piece of output is missing")]
    OutputGap,
}

impl JobRefusal {
    /// The one spelling.
    pub const fn as_str(self) -> &'static str {
        match self {
            JobRefusal::Taken => "taken",
            JobRefusal::Fenced => "fenced",
            JobRefusal::LeaseOver => "lease_over",
            JobRefusal::Over => "over",
            JobRefusal::Cancelled => "cancelled",
            JobRefusal::NotStarted => "not_started",
            JobRefusal::OutputGap => "output_gap",
        }
    }
}

impl Job {
    /// A new job. It may be claimed for this long.
    pub fn new(id: JobId, owner: &str, spec: JobSpec, now: Moment, claimable: Duration) -> Job {
        Job {
            id,
            owner: owner.to_owned(),
            spec,
            submitted_at: now,
            claim_by: now.plus(claimable),
            claim: None,
            cancel: false,
            chunks: 0,
            kept_bytes: 0,
            dropped_bytes: 0,
            ending: None,
        }
    }

    /// Where it stands at this moment.
    pub fn standing(&self, now: Moment) -> JobStanding {
        match (&self.ending, &self.claim) {
            (Some(_), _) => JobStanding::Ended,
            (None, None) => JobStanding::Queued,
            (None, Some(JobClaim { started_at: None, until, .. })) if *until < now => JobStanding::Queued,
            (None, Some(JobClaim { started_at: None, .. })) => JobStanding::Claimed,
            (None, Some(JobClaim { until, .. })) if *until < now => JobStanding::Lost,
            (None, Some(_)) => JobStanding::Started,
        }
    }

    /// From when on it may be claimed, if ever again.
    pub fn claimable_from(&self) -> Option<Moment> {
        match (&self.ending, &self.claim) {
            (Some(_), _) => None,
            (None, None) => Some(self.submitted_at),
            (None, Some(claim)) if claim.started_at.is_none() => Some(claim.until.plus(Duration::from_millis(1))),
            (None, Some(_)) => None,
        }
    }

    /// A runner takes it for a while. Only if nobody has it, or whoever had it never reported a start and is overdue.
    pub fn claimed(&self, holder: &JobHolder, now: Moment, lease: Duration) -> Result<Job, JobRefusal> {
        if self.standing(now) != JobStanding::Queued || self.cancel || now > self.claim_by {
            return Err(JobRefusal::Taken);
        }
        let epoch = self.claim.as_ref().map_or(0, |claim| claim.epoch) + 1;
        let claim = JobClaim { holder: holder.clone(), epoch, until: now.plus(lease), started_at: None };
        Ok(Job { claim: Some(claim), ..self.clone() })
    }

    /// The runner is about to execute. From here on nobody else gets the job, so nobody needs its variables.
    pub fn started(&self, holder: &JobHolder, epoch: u64, now: Moment, lease: Duration) -> Result<Job, JobRefusal> {
        let claim = self.held(holder, epoch)?;
        if self.ending.is_some() {
            return Err(JobRefusal::Over);
        }
        if claim.started_at.is_some() {
            return Ok(self.clone());
        }
        if self.cancel {
            return Err(JobRefusal::Cancelled);
        }
        if claim.until < now {
            return Err(JobRefusal::LeaseOver);
        }
        let claim = JobClaim { started_at: Some(now), until: now.plus(lease), ..claim.clone() };
        let mut next = Job { claim: Some(claim), ..self.clone() };
        next.spec.env.values_mut().for_each(|variable| variable.value.clear());
        Ok(next)
    }

    /// The runner is still there.
    pub fn renewed(&self, holder: &JobHolder, epoch: u64, now: Moment, lease: Duration) -> Result<Job, JobRefusal> {
        let claim = self.held(holder, epoch)?;
        if self.ending.is_some() {
            return Err(JobRefusal::Over);
        }
        let claim = JobClaim { until: now.plus(lease), ..claim.clone() };
        Ok(Job { claim: Some(claim), ..self.clone() })
    }

    /// One more chunk of output, which is the `number`-th. Tells whether it is to be kept: one that was taken already is
    /// not, and of what is above the cap only the size is.
    pub fn with_output(&self, number: u64, bytes: u64, lost: u64) -> Result<(Job, bool), JobRefusal> {
        if number < self.chunks {
            return Ok((self.clone(), false));
        }
        if number > self.chunks {
            return Err(JobRefusal::OutputGap);
        }
        let mut next = self.clone();
        next.chunks += 1;
        next.dropped_bytes += lost;
        let fits = next.kept_bytes + bytes <= next.spec.output_bytes;
        match fits {
            true => next.kept_bytes += bytes,
            false => next.dropped_bytes += bytes,
        }
        Ok((next, fits))
    }

    /// The runner reports the ending. It may be late: as long as it holds the last claim, its word is the best there is.
    pub fn ended(&self, holder: &JobHolder, epoch: u64, ending: JobEnding) -> Result<Job, JobRefusal> {
        let claim = self.held(holder, epoch)?;
        if let Some(before) = &self.ending {
            return if *before == ending { Ok(self.clone()) } else { Err(JobRefusal::Over) };
        }
        let untouched = matches!(ending, JobEnding::Refused { .. } | JobEnding::NotBegun { .. });
        if claim.started_at.is_none() && !untouched {
            return Err(JobRefusal::NotStarted);
        }
        Ok(self.over(ending))
    }

    /// Its submitter wants it ended. What was not started is over at once; what was is asked to end.
    pub fn cancelled(&self, reason: &str) -> Job {
        let started = self.claim.as_ref().is_some_and(|claim| claim.started_at.is_some());
        match (&self.ending, started) {
            (Some(_), _) => self.clone(),
            (None, true) => Job { cancel: true, ..self.clone() },
            (None, false) => Job { cancel: true, ..self.over(JobEnding::NotBegun { reason: reason.to_owned() }) },
        }
    }

    fn over(&self, ending: JobEnding) -> Job {
        let mut next = Job { ending: Some(ending), ..self.clone() };
        next.spec.env.values_mut().for_each(|variable| variable.value.clear());
        next
    }

    fn held(&self, holder: &JobHolder, epoch: u64) -> Result<&JobClaim, JobRefusal> {
        let claim = self.claim.as_ref().filter(|claim| claim.epoch == epoch && claim.holder == *holder);
        claim.ok_or(JobRefusal::Fenced)
    }
}
