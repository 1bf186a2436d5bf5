//! A job as its submitter follows it: output as it comes, and what becomes of it.
//!
//! A wake-up only says when to look again; a lost one costs one interval. A job that no runner has claimed in its time is
//! taken back here, by the same compare-and-set a runner would claim it by, so afterwards it is certain that nothing ran.

use crate::{JobChange, JobStore, StoreError, TenantWatch, Topic, VersionedJob, WakeUp};
use domain::job::{JobEnding, JobOutput, JobStanding};
use domain::{Job, JobId, Moment};
use std::time::Duration;
use tokio::time::{Instant, timeout_at};

/// How long nobody looks if no wake-up comes.
const LOOK_EVERY: Duration = Duration::from_secs(2);

/// What there is to tell of a job.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum JobNews {
    /// It stands elsewhere than before.
    Moved(JobStanding),
    /// It printed this.
    Printed(Vec<JobOutput>),
    /// It is over. Nothing follows.
    Over(JobEnding),
    /// Its runner began and was not heard of for longer than its lease. It may still report: whoever goes on following
    /// hears of it.
    Lost,
    /// There is no such job. Nothing follows.
    Absent,
}

/// Follows one job.
#[derive(Debug)]
pub struct JobFollower {
    jobs: JobStore,
    id: JobId,
    watch: TenantWatch,
    seen: u64,
    standing: JobStanding,
}

impl JobFollower {
    pub(crate) fn new(jobs: JobStore, id: JobId) -> JobFollower {
        let watch = jobs.0.watch();
        JobFollower { jobs, id, watch, seen: 0, standing: JobStanding::Queued }
    }

    /// Waits for the next piece of news. Safe to abandon and call again.
    pub async fn next(&mut self) -> Result<JobNews, StoreError> {
        loop {
            let (held, now) = self.jobs.find(self.id).await?;
            let Some(VersionedJob { job, .. }) = held else { return Ok(JobNews::Absent) };
            if let Some(news) = self.look(&job, now).await? {
                return Ok(news);
            }
            self.moved().await;
        }
    }

    async fn look(&mut self, job: &Job, now: Moment) -> Result<Option<JobNews>, StoreError> {
        while self.seen < job.chunks {
            let pieces = self.jobs.output(job, self.seen).await?;
            self.seen += pieces.len() as u64;
            let output: Vec<JobOutput> = pieces.into_iter().flat_map(|(_, output)| output).collect();
            if !output.is_empty() {
                return Ok(Some(JobNews::Printed(output)));
            }
        }
        if let Some(ending) = &job.ending {
            return Ok(Some(JobNews::Over(ending.clone())));
        }
        let standing = job.standing(now);
        if standing == JobStanding::Queued && now > job.claim_by {
            return match self.jobs.cancel(self.id, "no runner took it in time").await? {
                JobChange::Done(Job { ending: Some(ending), .. }) => Ok(Some(JobNews::Over(ending))),
                JobChange::Done(_) | JobChange::Refused(_) => Ok(None),
                JobChange::Absent => Ok(Some(JobNews::Absent)),
            };
        }
        if standing == self.standing {
            return Ok(None);
        }
        self.standing = standing;
        Ok(Some(match standing {
            JobStanding::Lost => JobNews::Lost,
            JobStanding::Queued | JobStanding::Claimed | JobStanding::Started | JobStanding::Ended => {
                JobNews::Moved(standing)
            }
        }))
    }

    /// Waits until the job may have moved.
    async fn moved(&mut self) {
        let until = Instant::now() + LOOK_EVERY;
        while let Ok(wake) = timeout_at(until, self.watch.next()).await {
            match wake {
                WakeUp::Topic(Topic::Job(id)) if id == self.id => return,
                WakeUp::Resync => return,
                WakeUp::Topic(_) => {}
            }
        }
    }
}
