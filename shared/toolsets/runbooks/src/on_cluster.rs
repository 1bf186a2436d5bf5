//! A runbook in a cluster: Jobs that are named after the run, followed until they are over.
//!
//! `check` is a Job of its own, because what follows depends on its exit code and Kubernetes goes on after an init
//! container only if that is 0. `run` and `verify` are one Job: `run` is an init container there, and `verify` the
//! container after it. No shell and no program of ours is needed in the image.
//!
//! Creating is idempotent by name, so whoever carries a run out a second time finds the Jobs of the first time. A Job is
//! removed once the ending of its run is recorded (`tidy`), and by the cluster itself long after that. Where that may
//! have happened, nothing is created and the outcome is unknown.

mod follow;
mod spec;

use crate::declaration::ClusterPlace;
use crate::outcome::{self, KeptOutput, RunbookResult};
use crate::resolved::ResolvedCall;
use catalog::{PreviewBuilder, ProbeResult, Progress};
use domain::job::{JobEnding, JobStep};
use domain::{Code, Failure, Moment};
use follow::{FollowedJob, StepsEnding};
use kubernetes::client::{
    Cluster, Clusters, DeleteCascade, DeleteOptions, KindScope, MaskDetail, ResourceRef, Wildcard, marker,
};
use kubernetes::risks;
use policy::Permit;
use redact::KeptSecret;
use serde_json::Value;
use spec::PlannedJob;
use std::collections::BTreeMap;
use std::time::Duration;

/// The name a Job has in a preview, when there is no run yet.
const NO_RUN_YET: &str = "qm-preview";
/// What the looks before and after may take.
pub const MARGIN: Duration = Duration::from_secs(90);
/// How much longer than its commands may take a Job is waited for: the cluster ends it, and says so.
const PATIENCE: Duration = Duration::from_secs(40);
/// How long after an approval a Job is certain to be still there if it was ever made: less than the cluster keeps it.
const REMEMBERED: Duration = Duration::from_secs(spec::TTL_S - 60 * 60);

/// One call in one cluster.
pub struct ClusterCall<'a> {
    /// The tenant's clusters.
    pub clusters: &'a Clusters,
    /// Where the Jobs are made.
    pub place: &'a ClusterPlace,
    /// What they execute.
    pub call: &'a ResolvedCall,
    /// The tenant's secrets for it.
    pub secrets: &'a BTreeMap<String, KeptSecret>,
}

/// A Job that a run has made.
pub(crate) struct MadeJob {
    target: ResourceRef,
    uid: String,
    steps: Vec<JobStep>,
}

impl MadeJob {
    fn of(target: ResourceRef, planned: &PlannedJob, found: &Value) -> MadeJob {
        let uid = found["metadata"]["uid"].as_str().unwrap_or_default().to_owned();
        MadeJob { target, uid, steps: planned.steps() }
    }
}

/// What a preview adds for a cluster.
pub struct ClusterNotes {
    simulated: bool,
    warnings: Vec<String>,
}

impl ClusterNotes {
    /// Adds it.
    pub fn add_to(self, preview: &mut PreviewBuilder) {
        if self.simulated {
            preview.line("the cluster is simulated");
        }
        self.warnings.into_iter().for_each(|warning| preview.warn(warning));
    }
}

/// What the Jobs of a run are called.
fn name_of(permit: &Permit) -> String {
    let id = permit.run().map_or_else(|| permit.call().id.to_string(), |run| run.to_string());
    let letters = id.split_once('_').map_or(id.as_str(), |(_, letters)| letters);
    format!("qm-{}", letters.to_ascii_lowercase())
}

impl ClusterCall<'_> {
    fn cluster<'p>(&self, permit: &'p Permit, time: Duration) -> Result<Cluster<'p>, Failure> {
        Ok(self.clusters.of(permit, Some(&self.place.cluster))?.within(time))
    }

    async fn scope(&self, cluster: &Cluster<'_>, kind: &str) -> Result<KindScope, Failure> {
        let kind = cluster.kind(kind).await?;
        cluster.place(&kind, Some(&self.place.namespace), Wildcard::Refused).await
    }

    /// The Job that checks, if the runbook has a check.
    fn check_job(&self, name: &str) -> Option<PlannedJob> {
        let words = self.call.resolved.check.clone()?;
        Some(PlannedJob::new(format!("{name}-check"), vec![(JobStep::Check, words)]))
    }

    /// The Job that does it, and verifies it where the runbook says how.
    fn run_job(&self, name: &str) -> PlannedJob {
        let resolved = &self.call.resolved;
        let verify = resolved.verify.clone().map(|words| (JobStep::Verify, words));
        let steps = std::iter::once((JobStep::Run, resolved.run.clone())).chain(verify).collect();
        PlannedJob::new(name.to_owned(), steps)
    }

    /// Lets the cluster judge what would be made, and tells what is special about it.
    pub async fn rehearse(&self, permit: &Permit) -> Result<ClusterNotes, Failure> {
        let cluster = self.cluster(permit, MARGIN)?;
        let scope = self.scope(&cluster, "batch/v1/Job").await?;
        let mut warnings = Vec::new();
        for job in self.check_job(NO_RUN_YET).into_iter().chain([self.run_job(NO_RUN_YET)]) {
            let made = cluster.write()?.create(&scope, job.body(self.call, &self.place.image)).await?;
            warnings.extend(risks::of_change(None, &made.object).into_iter().map(|risk| risk.detail));
        }
        if !self.place.image.contains('@') {
            warnings
                .push("the image is named without a digest: what runs is what its tag means at that time".to_owned());
        }
        Ok(ClusterNotes { simulated: cluster.simulated(), warnings })
    }

    /// Makes the Jobs, or finds them, and follows them until they are over.
    pub async fn run(&self, permit: &Permit, now: Moment, progress: &Progress) -> Result<RunbookResult, Failure> {
        let time = Duration::from_millis(self.call.runbook.text.timeout_ms);
        let (name, patience) = (name_of(permit), time + PATIENCE);
        let cluster = self.cluster(permit, patience * 2 + MARGIN)?;
        let scope = self.scope(&cluster, "batch/v1/Job").await?;
        let (mut output, job) = (KeptOutput::default(), self.run_job(&name));
        if self.find(&cluster, &scope, &job, permit).await?.is_none()
            && let Some(check) = self.check_job(&name)
        {
            let made = self.ensure(&cluster, &scope, &check, (permit, now)).await?;
            match self.followed(permit, &made, patience, progress, &mut output).await? {
                StepsEnding::Passed => return self.told(&JobEnding::AlreadyDone, &output),
                // That is what `check` says where there is something to do.
                StepsEnding::Exited { .. } => {}
                StepsEnding::Other(ending) => return self.told(&ending, &output),
            }
        }
        let made = self.ensure(&cluster, &scope, &job, (permit, now)).await?;
        let ended = self.followed(permit, &made, patience, progress, &mut output).await?;
        self.told(&ended.into_ending(), &output)
    }

    fn told(&self, ending: &JobEnding, output: &KeptOutput) -> Result<RunbookResult, Failure> {
        let runbook = &self.call.runbook;
        outcome::of_ending(runbook, runbook.place.words(), ending, output)
    }

    /// The Job, if this run has made it. Something of that name that another made is in the way.
    async fn find(
        &self,
        cluster: &Cluster<'_>,
        scope: &KindScope,
        job: &PlannedJob,
        permit: &Permit,
    ) -> Result<Option<MadeJob>, Failure> {
        let target = scope.object(&job.name)?;
        let Some(found) = cluster.find(&target, MaskDetail::Full).await? else { return Ok(None) };
        if permit.run().is_some_and(|run| marker::carries(&found, run)) && job.is(&found, self.call) {
            return Ok(Some(MadeJob::of(target, job, &found)));
        }
        let message = format!("there is a Job {} that this run did not make", job.name);
        Err(Failure::new(kubernetes::codes::ALREADY_EXISTS, message)
            .next("do not retry; look at it with k8s_get kind=Job"))
    }

    /// Makes a Job and its Secret, unless they are there. Another attempt of the same run may be faster; then it is that
    /// one's Job.
    async fn ensure(
        &self,
        cluster: &Cluster<'_>,
        scope: &KindScope,
        job: &PlannedJob,
        (permit, now): (&Permit, Moment),
    ) -> Result<MadeJob, Failure> {
        let made = match self.find(cluster, scope, job, permit).await? {
            Some(found) => found,
            None => {
                if permit.approval().is_none_or(|approval| now.since(approval.at) > REMEMBERED) {
                    let message =
                        "nothing proves that this was not made before and removed since; nothing was made now";
                    return Err(outcome::unknown(message));
                }
                // Nothing is made that could not be given its secrets.
                self.call.environment(self.secrets)?;
                match cluster.write()?.create(scope, job.body(self.call, &self.place.image)).await {
                    Ok(made) => MadeJob::of(scope.object(&job.name)?, job, &made.object),
                    Err(failure) if failure.code == kubernetes::codes::ALREADY_EXISTS => {
                        self.find(cluster, scope, job, permit).await?.ok_or(failure)?
                    }
                    Err(failure) => return Err(failure),
                }
            }
        };
        self.ensure_secret(cluster, job, &made, permit).await?;
        Ok(made)
    }

    /// Hands the tenant's secrets to a Job: in a Secret that it owns and that goes with it. Until it is there the pod
    /// waits; so whoever takes over after a crash in between makes it.
    async fn ensure_secret(
        &self,
        cluster: &Cluster<'_>,
        job: &PlannedJob,
        made: &MadeJob,
        permit: &Permit,
    ) -> Result<(), Failure> {
        let Some(body) = job.secret(self.call, self.secrets, &made.uid)? else { return Ok(()) };
        let scope = self.scope(cluster, "v1/Secret").await?;
        match cluster.write()?.create(&scope, body).await {
            Ok(_) => Ok(()),
            Err(failure) if failure.code == kubernetes::codes::ALREADY_EXISTS => {
                let found = cluster.find(&scope.object(&job.name)?, MaskDetail::Full).await?;
                let ours = found.is_some_and(|found| {
                    let owner = found["metadata"]["ownerReferences"][0]["uid"].as_str();
                    owner == Some(made.uid.as_str()) && permit.run().is_some_and(|run| marker::carries(&found, run))
                });
                if ours { Ok(()) } else { Err(failure) }
            }
            Err(failure) => Err(failure),
        }
    }

    async fn followed(
        &self,
        permit: &Permit,
        made: &MadeJob,
        patience: Duration,
        progress: &Progress,
        output: &mut KeptOutput,
    ) -> Result<StepsEnding, Failure> {
        let followed = FollowedJob { clusters: self.clusters, cluster: &self.place.cluster, permit, made };
        followed.to_the_end(patience, progress, output).await
    }

    /// What became of the Jobs of a run whose outcome is unknown. Looks once.
    pub async fn probe(&self, permit: &Permit) -> ProbeResult {
        match self.looked(permit).await {
            Ok(result) => ProbeResult::Done(serde_json::to_string(&result).ok()),
            Err(failure) if failure.code == crate::codes::RUNBOOK_FAILED => ProbeResult::Failed(failure),
            Err(_) => ProbeResult::Unknown,
        }
    }

    async fn looked(&self, permit: &Permit) -> Result<RunbookResult, Failure> {
        let (name, quiet) = (name_of(permit), Progress::default());
        let cluster = self.cluster(permit, MARGIN)?;
        let scope = self.scope(&cluster, "batch/v1/Job").await?;
        let mut output = KeptOutput::default();
        if let Some(made) = self.find(&cluster, &scope, &self.run_job(&name), permit).await? {
            let ended = self.followed(permit, &made, Duration::ZERO, &quiet, &mut output).await?;
            return self.told(&ended.into_ending(), &output);
        }
        if let Some(check) = self.check_job(&name)
            && let Some(made) = self.find(&cluster, &scope, &check, permit).await?
        {
            return match self.followed(permit, &made, Duration::ZERO, &quiet, &mut output).await? {
                StepsEnding::Passed => self.told(&JobEnding::AlreadyDone, &output),
                StepsEnding::Exited { .. } => Err(outcome::unknown("only its check has run")),
                StepsEnding::Other(ending) => self.told(&ending, &output),
            };
        }
        Err(outcome::unknown("there is no Job of it, and there may have been one"))
    }

    /// Removes the Jobs of a run whose ending is recorded; their pods and Secrets go with them.
    pub async fn tidy(&self, permit: &Permit) -> Result<(), Failure> {
        let name = name_of(permit);
        let cluster = self.cluster(permit, MARGIN)?;
        let scope = self.scope(&cluster, "batch/v1/Job").await?;
        for job in self.check_job(&name).into_iter().chain([self.run_job(&name)]) {
            let Some(made) = self.find(&cluster, &scope, &job, permit).await? else { continue };
            let how = DeleteOptions { uid: Some(made.uid), cascade: DeleteCascade::Background, grace_s: None };
            match cluster.write()?.delete(&made.target, &how).await {
                Ok(_) => {}
                Err(failure) if failure.code == Code::NotFound => {}
                Err(failure) => return Err(failure),
            }
        }
        Ok(())
    }
}
