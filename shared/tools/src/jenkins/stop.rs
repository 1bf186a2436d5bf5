//! `jenkins_stop`: stops a build, or takes an item out of the queue.

use super::build::{began, pipeline};
use super::grammar::JobText;
use super::patience::Patience;
use super::reply::{Common, seconds};
use super::sheet::Sheet;
use super::{JenkinsKit, TOOLSET};
use crate::grammar::Label;
use catalog::{Drawn, Probe, Progress, Tool, ToolSpec};
use domain::{Code, Effect, Failure};
use jenkins::{Build, How, Item, JobPath, Server, Which};
use policy::Permit;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::json;
use std::time::Duration;
use tokio::time::{Instant, sleep};

/// How long a stopped build is looked at, and how often.
const FOLLOWED: Duration = Duration::from_secs(10);
const LOOK: Duration = Duration::from_millis(500);

pub(super) struct Stop {
    pub(super) kit: JenkinsKit,
    pub(super) patience: Patience,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
enum Mode {
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
    mode: Option<Mode>,
    server: Option<Label>,
}

#[derive(Debug, Serialize, JsonSchema)]
pub(super) struct Stopped {
    stopped: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    result: Option<String>,
    running: bool,
    #[serde(flatten)]
    common: Common,
}

/// What is to be stopped.
enum What {
    Build(JobPath, u32, How),
    Item(u64),
}

impl Args {
    fn what(&self) -> Result<What, Failure> {
        match (&self.job, self.build, self.queue_id) {
            (Some(job), Some(number), None) => {
                let how = match self.mode {
                    Some(Mode::Stop) | None => How::Stop,
                    Some(Mode::Term) => How::Term,
                    Some(Mode::Kill) => How::Kill,
                };
                Ok(What::Build(job.path()?, number, how))
            }
            (None, None, Some(id)) if matches!(self.mode, None | Some(Mode::Stop)) => Ok(What::Item(id)),
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
    type Output = Stopped;

    /// What has not begun loses nothing.
    fn effect(args: &Args) -> Effect {
        match (&args.job, args.build, args.queue_id) {
            (None, None, Some(_)) => Effect::Change,
            (_, _, _) => Effect::Disrupt,
        }
    }

    async fn preview(&self, permit: &Permit, args: &Args) -> Result<Option<Drawn>, Failure> {
        let what = args.what()?;
        let server = self.kit.server(permit, args.server.as_ref())?;
        let mut sheet = Sheet::of(&server);
        let summary = match what {
            What::Build(job, number, how) => {
                let build = running(&server, &job, number, how).await?;
                let verb = match how {
                    How::Stop => "stop",
                    How::Term => "terminate",
                    How::Kill => "kill",
                };
                self.tell_build(&mut sheet, &server, (&job, &build), how).await;
                format!("{verb} build {number} of {job}")
            }
            What::Item(id) => {
                let item = waiting(&server, id).await?;
                sheet.judge(json!({ "item": id, "job": item.job }));
                sheet.line(format!("cancel item {id} of the queue: a build of {}", item.job));
                if let Some(by) = &item.by {
                    sheet.line(format!("asked for by {by}"));
                }
                format!("cancel item {id} of the queue, a build of {}", item.job)
            }
        };
        Ok(Some(sheet.drawn(summary, None)))
    }

    async fn probe(&self, permit: &Permit, args: &Args) -> Probe {
        let looked = async {
            let server = self.kit.server(permit, args.server.as_ref())?;
            match args.what()? {
                What::Build(job, number, _) => {
                    let build = server.build(&job, Which::Number(number)).await?;
                    Ok((!build.running).then(|| Stopped::of(build, Common::default())))
                }
                What::Item(id) => {
                    let item = server.item(id).await?;
                    Ok::<_, Failure>(item.cancelled.then(|| Stopped::cancelled(Common::default())))
                }
            }
        };
        match (looked.await, permit.run()) {
            (Ok(Some(stopped)), _) => Probe::Done(serde_json::to_string(&stopped).ok()),
            (Ok(None), Some(run)) if self.patience.is_over(run, self.kit.cursors.now()) => Probe::NotDone,
            (Ok(None) | Err(_), _) => Probe::Unknown,
        }
    }

    async fn run(&self, permit: &Permit, args: Args, _: &Progress) -> Result<Stopped, Failure> {
        let what = args.what()?;
        let server = self.kit.server(permit, args.server.as_ref())?.within(Duration::from_secs(55));
        let writer = server.write()?;
        let mut common = Common::of(&server, args.server.is_some());
        match what {
            What::Build(job, number, how) => {
                running(&server, &job, number, how).await?;
                writer.stop(&job, number, how).await?;
                let build = followed(&server, &job, number).await?;
                if build.running {
                    let harder = if build.pipeline { "; term and kill stop it harder" } else { "" };
                    common.hint = Some(format!("it was told to stop and still runs; look again{harder}"));
                }
                Ok(Stopped::of(build, common))
            }
            What::Item(id) => {
                waiting(&server, id).await?;
                writer.cancel(id).await?;
                // It was sent; a look that fails does not take that back.
                let after = server.item(id).await.map_err(|failure| Failure { code: Code::OutcomeUnknown, ..failure });
                match after?.build {
                    None => Ok(Stopped::cancelled(common)),
                    Some(build) => {
                        common.hint = Some(format!("it became build {build} before it could be cancelled"));
                        Ok(Stopped { stopped: false, result: None, running: true, common })
                    }
                }
            }
        }
    }
}

impl Stop {
    async fn tell_build(&self, sheet: &mut Sheet, server: &Server<'_>, (job, build): (&JobPath, &Build), how: How) {
        sheet.judge(json!({ "job": job.as_str(), "build": build.number, "began": build.started_ms }));
        sheet.line(format!("build {} of {job}, begun {}", build.number, began(build)));
        let so_far = seconds(&self.kit.cursors, true, build.started_ms, 0);
        sheet.line(format!("it has run for {so_far} s; {}", build.causes.join("; ")));
        if build.pipeline
            && let Ok(stages) = server.stages(job, build.number).await
        {
            let now: Vec<String> =
                stages.into_iter().filter(|stage| stage.status == "IN_PROGRESS").map(|stage| stage.name).collect();
            if !now.is_empty() {
                sheet.line(format!("in progress: {}", now.join(", ")));
            }
        }
        match how {
            How::Stop => {}
            How::Term => sheet.warn("Steps in progress are not waited for."),
            How::Kill => sheet.warn("No cleanup steps are run."),
        }
    }
}

impl Stopped {
    fn of(build: Build, common: Common) -> Stopped {
        Stopped { stopped: !build.running, result: build.result, running: build.running, common }
    }

    fn cancelled(common: Common) -> Stopped {
        Stopped { stopped: true, result: None, running: false, common }
    }
}

/// The build, if it runs and can be stopped this way.
async fn running(server: &Server<'_>, job: &JobPath, number: u32, how: How) -> Result<Build, Failure> {
    let build = server.build(job, Which::Number(number)).await?;
    if !build.running {
        let result = build.result.as_deref().unwrap_or("unknown");
        return Err(Failure::new(Code::AlreadyFinished, format!("build {number} of {job} is over: {result}"))
            .next("nothing is left to stop"));
    }
    match how {
        How::Stop => {}
        How::Term | How::Kill => pipeline(&build).map_err(|failure| failure.next("use mode=stop"))?,
    }
    Ok(build)
}

/// The item, if it still waits.
async fn waiting(server: &Server<'_>, id: u64) -> Result<Item, Failure> {
    let item = server.item(id).await?;
    match item.build {
        Some(build) => {
            Err(Failure::new(Code::QueueItemGone, format!("item {id} has become build {build} of {}", item.job))
                .next(format!("stop that: jenkins_stop job={} build={build}", item.job)))
        }
        None if item.cancelled => Err(Failure::new(Code::QueueItemGone, format!("item {id} was cancelled already"))
            .next("nothing is left to cancel")),
        None => Ok(item),
    }
}

/// The build once it no longer runs, or after a while.
async fn followed(server: &Server<'_>, job: &JobPath, number: u32) -> Result<Build, Failure> {
    let until = Instant::now() + FOLLOWED;
    loop {
        let build = server.build(job, Which::Number(number)).await;
        // It was stopped; a look that fails does not take that back.
        let build = build.map_err(|failure| Failure { code: Code::OutcomeUnknown, ..failure })?;
        if !build.running || Instant::now() + LOOK > until {
            return Ok(build);
        }
        sleep(LOOK).await;
    }
}
