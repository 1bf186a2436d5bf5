//! `jenkins_stop`: stops a build, or takes an item out of the queue.

use super::build::{began, pipeline};
use super::grammar::JobText;
use super::patience::FirstLooks;
use super::preview;
use super::reply::{JenkinsReplyFields, ServerNote, seconds};
use super::{JenkinsDeps, TOOLSET};
use crate::client::{Build, BuildSelector, JobPath, PermittedServer, QueueItem, StopSignal};
use crate::codes;
use catalog::{PreviewBuilder, ProbeResult, Progress, Tool, ToolPreview, ToolSpec};
use domain::{Code, Effect, Failure};
use policy::Permit;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::json;
use std::time::Duration;
use target::grammar::Label;
use tokio::time::{Instant, sleep};

/// How long a stopped build is looked at, and how often.
const FOLLOWED: Duration = Duration::from_secs(10);
const LOOK: Duration = Duration::from_millis(500);

pub(super) struct Stop {
    pub(super) kit: JenkinsDeps,
    pub(super) patience: FirstLooks,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
enum StopMode {
    Stop,
    Term,
    Kill,
}

#[derive(Debug, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct Args {
    job: Option<JobText>,
    #[schemars(range(min = 1))]
    build: Option<u32>,
    #[schemars(range(min = 1))]
    queue_id: Option<u64>,
    mode: Option<StopMode>,
    server: Option<Label>,
}

#[derive(Debug, Serialize, JsonSchema)]
pub(super) struct StopOutput {
    stopped: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    result: Option<String>,
    running: bool,
    #[serde(flatten)]
    common: JenkinsReplyFields,
}

/// What is to be stopped.
enum StopTarget {
    Build(JobPath, u32, StopSignal),
    Item(u64),
}

impl Args {
    fn what(&self) -> Result<StopTarget, Failure> {
        match (&self.job, self.build, self.queue_id) {
            (Some(job), Some(number), None) => {
                let how = match self.mode {
                    Some(StopMode::Stop) | None => StopSignal::Stop,
                    Some(StopMode::Term) => StopSignal::Term,
                    Some(StopMode::Kill) => StopSignal::Kill,
                };
                Ok(StopTarget::Build(job.path()?, number, how))
            }
            (None, None, Some(id)) if matches!(self.mode, None | Some(StopMode::Stop)) => Ok(StopTarget::Item(id)),
            (None, None, Some(_)) => {
                Err(Failure::new(Code::InvalidArgument, "an item of the queue is only ever cancelled")
                    .next("leave mode out"))
            }
            (_, _, _) => Err(Failure::new(Code::InvalidArgument, "give either job and build, or queue_id")
                .next("name one build, or one item of the queue")),
        }
    }
}

impl Tool for Stop {
    const SPEC: ToolSpec = ToolSpec::new("jenkins_stop", TOOLSET, Effect::Disrupt)
        .says(
            "Stop a Jenkins build",
            "Stop a build, or cancel a queue item. term and kill are harder stops for pipelines.",
        )
        .hint(
            "For agents that watch over runaway builds; a hard stop skips clean-up stages, so locks and rented \
             machines may stay behind.",
        )
        .idempotent()
        .deadline(Duration::from_secs(60));
    type Args = Args;
    type Output = StopOutput;

    /// What has not begun loses nothing.
    fn effect(args: &Args) -> Effect {
        match (&args.job, args.build, args.queue_id) {
            (None, None, Some(_)) => Effect::Change,
            (_, _, _) => Effect::Disrupt,
        }
    }

    async fn preview(&self, permit: &Permit, args: &Args) -> Result<Option<ToolPreview>, Failure> {
        let what = args.what()?;
        let server = self.kit.server(permit, args.server.as_ref())?;
        let mut preview = preview::of(&server);
        let summary = match what {
            StopTarget::Build(job, number, how) => {
                let build = running(&server, &job, number, how).await?;
                let verb = match how {
                    StopSignal::Stop => "stop",
                    StopSignal::Term => "terminate",
                    StopSignal::Kill => "kill",
                };
                self.tell_build(&mut preview, &server, (&job, &build), how).await;
                format!("{verb} build {number} of {job}")
            }
            StopTarget::Item(id) => {
                let item = waiting(&server, id).await?;
                preview.fact(json!({ "item": id, "job": item.job }));
                preview.line(format!("cancel item {id} of the queue: a build of {}", item.job));
                if let Some(by) = &item.by {
                    preview.line(format!("asked for by {by}"));
                }
                format!("cancel item {id} of the queue, a build of {}", item.job)
            }
        };
        Ok(Some(preview::drawn(preview, summary)))
    }

    async fn probe(&self, permit: &Permit, args: &Args) -> ProbeResult {
        let looked = async {
            let server = self.kit.server(permit, args.server.as_ref())?;
            match args.what()? {
                StopTarget::Build(job, number, _) => {
                    let build = server.build(&job, BuildSelector::Number(number)).await?;
                    Ok((!build.running).then(|| StopOutput::of(build, JenkinsReplyFields::default())))
                }
                StopTarget::Item(id) => {
                    let item = server.item(id).await?;
                    Ok::<_, Failure>(item.cancelled.then(|| StopOutput::cancelled(JenkinsReplyFields::default())))
                }
            }
        };
        match (looked.await, permit.run()) {
            (Ok(Some(stopped)), _) => ProbeResult::Done(serde_json::to_string(&stopped).ok()),
            (Ok(None), Some(run)) if self.patience.is_over(run, self.kit.cursors.now()) => ProbeResult::NotDone,
            (Ok(None) | Err(_), _) => ProbeResult::Unknown,
        }
    }

    async fn run(&self, permit: &Permit, args: Args, _: &Progress) -> Result<StopOutput, Failure> {
        let what = args.what()?;
        let server = self.kit.server(permit, args.server.as_ref())?.within(Duration::from_secs(55));
        let writer = server.write()?;
        let mut common = ServerNote::answer(&server, args.server.is_some());
        match what {
            StopTarget::Build(job, number, how) => {
                running(&server, &job, number, how).await?;
                writer.stop(&job, number, how).await?;
                let build = followed(&server, &job, number).await?;
                if build.running {
                    let harder = if build.pipeline { "; term and kill stop it harder" } else { "" };
                    common.hint = Some(format!("it was told to stop and still runs; look again{harder}"));
                }
                Ok(StopOutput::of(build, common))
            }
            StopTarget::Item(id) => {
                waiting(&server, id).await?;
                writer.cancel(id).await?;
                // It was sent; a look that fails does not take that back.
                let after = server.item(id).await.map_err(|failure| Failure { code: Code::OutcomeUnknown, ..failure });
                match after?.build {
                    None => Ok(StopOutput::cancelled(common)),
                    Some(build) => {
                        common.hint = Some(format!("it became build {build} before it could be cancelled"));
                        Ok(StopOutput { stopped: false, result: None, running: true, common })
                    }
                }
            }
        }
    }
}

impl Stop {
    async fn tell_build(
        &self,
        preview: &mut PreviewBuilder,
        server: &PermittedServer<'_>,
        (job, build): (&JobPath, &Build),
        how: StopSignal,
    ) {
        preview.fact(json!({ "job": job.as_str(), "build": build.number, "began": build.started_ms }));
        preview.line(format!("build {} of {job}, begun {}", build.number, began(build)));
        let so_far = seconds(&self.kit.cursors, true, build.started_ms, 0);
        preview.line(format!("it has run for {so_far} s; {}", build.causes.join("; ")));
        if build.pipeline
            && let Ok(stages) = server.stages(job, build.number).await
        {
            let now: Vec<String> =
                stages.into_iter().filter(|stage| stage.status == "IN_PROGRESS").map(|stage| stage.name).collect();
            if !now.is_empty() {
                preview.line(format!("in progress: {}", now.join(", ")));
            }
        }
        match how {
            StopSignal::Stop => {}
            StopSignal::Term => preview.warn("Steps in progress are not waited for."),
            StopSignal::Kill => preview.warn("No cleanup steps are run."),
        }
    }
}

impl StopOutput {
    fn of(build: Build, common: JenkinsReplyFields) -> StopOutput {
        StopOutput { stopped: !build.running, result: build.result, running: build.running, common }
    }

    fn cancelled(common: JenkinsReplyFields) -> StopOutput {
        StopOutput { stopped: true, result: None, running: false, common }
    }
}

/// The build, if it runs and can be stopped this way.
async fn running(server: &PermittedServer<'_>, job: &JobPath, number: u32, how: StopSignal) -> Result<Build, Failure> {
    let build = server.build(job, BuildSelector::Number(number)).await?;
    if !build.running {
        let result = build.result.as_deref().unwrap_or("unknown");
        return Err(Failure::new(
            target::codes::ALREADY_FINISHED,
            format!("build {number} of {job} is over: {result}"),
        )
        .next("nothing is left to stop"));
    }
    match how {
        StopSignal::Stop => {}
        StopSignal::Term | StopSignal::Kill => pipeline(&build).map_err(|failure| failure.next("use mode=stop"))?,
    }
    Ok(build)
}

/// The item, if it still waits.
async fn waiting(server: &PermittedServer<'_>, id: u64) -> Result<QueueItem, Failure> {
    let item = server.item(id).await?;
    match item.build {
        Some(build) => {
            Err(Failure::new(codes::QUEUE_ITEM_GONE, format!("item {id} has become build {build} of {}", item.job))
                .next(format!("stop that: jenkins_stop job={} build={build}", item.job)))
        }
        None if item.cancelled => Err(Failure::new(codes::QUEUE_ITEM_GONE, format!("item {id} was cancelled already"))
            .next("nothing is left to cancel")),
        None => Ok(item),
    }
}

/// The build once it no longer runs, or after a while.
async fn followed(server: &PermittedServer<'_>, job: &JobPath, number: u32) -> Result<Build, Failure> {
    let until = Instant::now() + FOLLOWED;
    loop {
        let build = server.build(job, BuildSelector::Number(number)).await;
        // It was stopped; a look that fails does not take that back.
        let build = build.map_err(|failure| Failure { code: Code::OutcomeUnknown, ..failure })?;
        if !build.running || Instant::now() + LOOK > until {
            return Ok(build);
        }
        sleep(LOOK).await;
    }
}
