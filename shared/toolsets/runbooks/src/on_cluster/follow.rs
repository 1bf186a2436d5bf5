//! A Job while it is at work: what its containers write, and how they end.

use super::MadeJob;
use crate::outcome::KeptOutput;
use catalog::Progress;
use domain::Failure;
use domain::job::{JobEnding, JobStep, StepExit};
use kubernetes::client::{Cluster, Clusters, ListQuery, LogQuery, MaskDetail, ResourceRef, Wildcard};
use policy::Permit;
use serde_json::Value;
use std::time::Duration;
use tokio::time::Instant;

/// How long a look at the log waits for the Job to end.
const LOOK_EVERY: Duration = Duration::from_secs(3);
/// How long one request may take.
const REQUEST: Duration = Duration::from_secs(20);
/// How many lines are read from the end of a log.
const TAIL: u32 = 5_000;
/// The longest line that is passed on while a Job is at work.
const LINE_CHARS: usize = 300;

/// How the commands of one Job ended.
pub(super) enum StepsEnding {
    /// All with 0.
    Passed,
    /// One of them by itself, with another code.
    Exited {
        /// Which.
        step: JobStep,
        /// With what.
        code: i32,
    },
    /// Otherwise.
    Other(JobEnding),
}

impl StepsEnding {
    /// Where all of them had to end with 0.
    pub(super) fn into_ending(self) -> JobEnding {
        match self {
            StepsEnding::Passed => JobEnding::Succeeded,
            StepsEnding::Exited { step, code } => JobEnding::Failed { step, exit: StepExit::Code(code) },
            StepsEnding::Other(ending) => ending,
        }
    }
}

/// A Job that was made.
pub(super) struct FollowedJob<'a> {
    pub(super) clusters: &'a Clusters,
    pub(super) cluster: &'a str,
    pub(super) permit: &'a Permit,
    pub(super) made: &'a MadeJob,
}

impl FollowedJob<'_> {
    fn handle(&self, time: Duration) -> Result<Cluster<'_>, Failure> {
        Ok(self.clusters.of(self.permit, Some(self.cluster))?.within(time))
    }

    /// Waits until it is over, for no longer than this; tells what its containers write meanwhile.
    pub(super) async fn to_the_end(
        &self,
        patience: Duration,
        progress: &Progress,
        output: &mut KeptOutput,
    ) -> Result<StepsEnding, Failure> {
        let until = Instant::now() + patience;
        let (mut told, mut last) = (0_u64, String::new());
        let mut texts = Vec::new();
        loop {
            let waited = self
                .handle(LOOK_EVERY)?
                .wait(&self.made.target, |job| job.is_none_or(|job| ending(job).is_some()))
                .await;
            let pod = self.pod().await.ok().flatten();
            if let Some(pod) = &pod {
                texts = self.texts(pod, texts).await;
                let line =
                    texts.iter().rev().find_map(|(_, text)| text.lines().rev().find(|line| !line.trim().is_empty()));
                let line = line.map_or_else(|| waiting(&pod.1).unwrap_or_default(), str::to_owned);
                if line != last {
                    told += 1;
                    let shown: String = domain::text::visible(&line).chars().take(LINE_CHARS).collect();
                    progress.report(told, None, Some(&shown));
                    last = line;
                }
            }
            let job = match waited {
                Ok(waited) if waited.met => waited.object,
                // Not over yet, or the cluster is away for a moment: the Job goes on without us.
                Ok(_) | Err(_) if Instant::now() < until => continue,
                Ok(_) => return Ok(unknown("it was not over in its time")),
                Err(failure) => return Ok(unknown(&format!("it could not be followed: {}", failure.message))),
            };
            texts.iter().for_each(|(step, text)| output.push(*step, text));
            let Some(job) = job else { return Ok(unknown("somebody removed its Job")) };
            return Ok(self.ended(&job, pod.as_ref().map(|(_, pod)| pod), output));
        }
    }

    /// The pod that the Job made last. Found by label and checked by owner, since anybody can label a pod alike.
    async fn pod(&self) -> Result<Option<(ResourceRef, Value)>, Failure> {
        let cluster = self.handle(REQUEST)?;
        let kind = cluster.kind("v1/Pod").await?;
        let scope = cluster.place(&kind, self.made.target.namespace(), Wildcard::Refused).await?;
        let query = ListQuery { labels: Some(format!("job-name={}", self.made.target.name())), ..ListQuery::default() };
        let pods = cluster.list(&scope, &query, MaskDetail::Clean).await?.items;
        let owned = |pod: &Value| {
            pod["metadata"]["ownerReferences"]
                .as_array()
                .into_iter()
                .flatten()
                .any(|owner| owner["uid"] == self.made.uid.as_str())
        };
        let made = |pod: &Value| pod["metadata"]["creationTimestamp"].as_str().map(str::to_owned);
        let Some(pod) = pods.into_iter().filter(owned).max_by_key(made) else { return Ok(None) };
        Ok(Some((scope.object(pod["metadata"]["name"].as_str().unwrap_or_default())?, pod)))
    }

    /// What each container has written. What cannot be read now stays as it was read before.
    async fn texts(
        &self,
        (target, pod): &(ResourceRef, Value),
        before: Vec<(JobStep, String)>,
    ) -> Vec<(JobStep, String)> {
        let mut texts = Vec::new();
        for step in &self.made.steps {
            let state = state(pod, *step);
            let begun = !state["running"].is_null() || !state["terminated"].is_null();
            let query = LogQuery { container: Some(step.as_str().to_owned()), tail: Some(TAIL), ..LogQuery::default() };
            let read = match self.handle(REQUEST) {
                Ok(cluster) if begun => cluster.logs(target, &query).await.ok(),
                Ok(_) | Err(_) => None,
            };
            let text = read.map(|log| log.lines.iter().map(|line| format!("{line}\n")).collect::<String>());
            let earlier = || before.iter().find(|(known, _)| known == step).map(|(_, text)| text.clone());
            if let Some(text) = text.or_else(earlier) {
                texts.push((*step, text));
            }
        }
        texts
    }

    fn ended(&self, job: &Value, pod: Option<&Value>, output: &mut KeptOutput) -> StepsEnding {
        let (passed, reason) = ending(job).unwrap_or((false, ""));
        if passed {
            return StepsEnding::Passed;
        }
        let exit = |step: &JobStep| {
            let end = pod.map(|pod| &state(pod, *step)["terminated"])?;
            let code = i32::try_from(end["exitCode"].as_i64()?).ok()?;
            (code != 0).then(|| (*step, code, end["reason"].as_str().unwrap_or_default().to_owned()))
        };
        let open = |step: &&JobStep| pod.is_none_or(|pod| state(pod, **step)["terminated"].is_null());
        let at_work = self.made.steps.iter().find(open).or(self.made.steps.last()).copied().unwrap_or(JobStep::Run);
        let failed = |step, exit| StepsEnding::Other(JobEnding::Failed { step, exit });
        match self.made.steps.iter().find_map(exit) {
            _ if reason == "DeadlineExceeded" => {
                if let Some(why) = pod.and_then(waiting) {
                    output.push(at_work, &format!("its container waits: {why}\n"));
                }
                failed(at_work, StepExit::TimedOut)
            }
            Some((step, _, reason)) if matches!(reason.as_str(), "StartError" | "ContainerCannotRun") => {
                failed(step, StepExit::NotStarted(reason))
            }
            Some((step, code, _)) => StepsEnding::Exited { step, code },
            None => unknown("its Job failed, and its pod is gone"),
        }
    }
}

fn unknown(reason: &str) -> StepsEnding {
    StepsEnding::Other(JobEnding::Unknown { reason: reason.to_owned() })
}

/// Whether a Job that is over has succeeded, and why it has not.
fn ending(job: &Value) -> Option<(bool, &str)> {
    let conditions = job["status"]["conditions"].as_array()?;
    let holds = |kind: &str| conditions.iter().find(|one| one["type"] == kind && one["status"] == "True");
    if holds("Complete").is_some() {
        return Some((true, ""));
    }
    holds("Failed").map(|failed| (false, failed["reason"].as_str().unwrap_or_default()))
}

/// The state of a container of a pod.
fn state(pod: &Value, step: JobStep) -> &Value {
    let lists = ["initContainerStatuses", "containerStatuses"];
    let mut all = lists.iter().flat_map(|list| pod["status"][list].as_array().into_iter().flatten());
    all.find(|status| status["name"] == step.as_str()).map_or(&Value::Null, |status| &status["state"])
}

/// What a container of the pod waits for.
fn waiting(pod: &Value) -> Option<String> {
    let lists = ["initContainerStatuses", "containerStatuses"];
    let mut all = lists.iter().flat_map(|list| pod["status"][list].as_array().into_iter().flatten());
    all.find_map(|status| status["state"]["waiting"]["reason"].as_str()).map(redact::message)
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn an_ending_is_read_from_the_conditions_that_hold() {
        let job = |kind: &str, status: &str| json!({ "status": { "conditions": [{ "type": kind, "status": status, "reason": "R" }] } });
        assert_eq!(ending(&job("Complete", "True")), Some((true, "")));
        assert_eq!(ending(&job("Failed", "True")), Some((false, "R")));
        assert_eq!(ending(&job("Complete", "False")), None);
        assert_eq!(ending(&json!({})), None);
    }
}
