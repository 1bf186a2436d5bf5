//! `jenkins_trigger`: starts a build.
//!
//! Starting is never repeated: two builds are not one. Where the job declares the tenant's run-id parameter, a lost answer
//! is settled by looking for it; Jenkins drops what a job does not declare, so elsewhere nobody can tell.

use super::grammar::JobText;
use super::parameters::{BuildSetting, Parameters, form};
use super::patience::FirstLooks;
use super::preview;
use super::reply::{JenkinsReplyFields, ServerNote};
use super::{JenkinsDeps, TOOLSET};
use crate::client::{JenkinsJob, JobKind, JobPath, JobStatus, ParameterDefinition, PermittedServer, QueueItem};
use catalog::{PreviewBuilder, ProbeResult, Progress, Tool, ToolPreview, ToolSpec};
use domain::{Code, Effect, Failure};
use policy::Permit;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::json;
use std::time::Duration;
use target::grammar::Label;
use target::shown_arguments::shown;
use tokio::time::{Instant, sleep};

const WAIT_S: u32 = 30;
const MOST_WAIT_S: u64 = 120;
/// What everything besides the waiting may take.
const MARGIN: Duration = Duration::from_secs(55);
/// How often the item is looked at, first and at most.
const FIRST_LOOK: Duration = Duration::from_millis(250);
const LONGEST_LOOK: Duration = Duration::from_secs(3);
/// How many of the newest builds an approver is shown.
const SHOWN: usize = 5;

pub(super) struct TriggerTool {
    pub(super) kit: JenkinsDeps,
    pub(super) patience: FirstLooks,
}

#[derive(Debug, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct Args {
    job: JobText,
    parameters: Option<Parameters>,
    #[schemars(range(min = 0, max = 120), extend("x-wire" = ["maximum"]))]
    wait_s: Option<u32>,
    server: Option<Label>,
}

#[derive(Debug, Serialize, JsonSchema)]
pub(super) struct TriggerOutput {
    #[serde(skip_serializing_if = "Option::is_none")]
    queue_id: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    build: Option<u32>,
    state: TriggerState,
    url: String,
    #[serde(flatten)]
    common: JenkinsReplyFields,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
enum TriggerState {
    Queued,
    Running,
    Cancelled,
}

impl Tool for TriggerTool {
    const SPEC: ToolSpec = ToolSpec::new("jenkins_trigger", TOOLSET, Effect::Change)
        .says("Start a Jenkins build", "Start a build; waits up to wait_s for its number.")
        .hint(
            "For agents that run pipelines as part of their work; declare the parameter `QM_RUN_ID` in such jobs, or \
             a start whose answer is lost can only be settled by a person.",
        )
        .deadline(Duration::from_secs(MOST_WAIT_S + 60));
    type Args = Args;
    type Output = TriggerOutput;

    fn effect(_: &Args) -> Effect {
        Effect::Change
    }

    async fn preview(&self, permit: &Permit, args: &Args) -> Result<Option<ToolPreview>, Failure> {
        let server = self.kit.server(permit, args.server.as_ref())?;
        let path = args.job.path()?;
        let (job, settings) = judged(&server, permit, args, &path).await?;
        let mut preview = preview::of(&server);
        preview.line(format!("start a build of {path}"));
        preview.fact(json!({ "job": path.as_str(), "parameters": definitions(&job.parameters) }));
        for setting in &settings {
            preview.line(told(setting));
            if let Some(hidden) = setting.hidden {
                preview.withhold(hidden, format!("value of password parameter {}", setting.name));
            }
        }
        history(&mut preview, &server, &path).await;
        if job.running {
            preview.line("a build of it runs now");
        }
        if job.in_queue {
            preview.line("a build of it waits in the queue already");
        }
        let declares = job.parameters.iter().any(|definition| definition.name == server.run_id_parameter());
        if !declares {
            let name = server.run_id_parameter();
            preview
                .line(format!("it declares no {name}: if the answer is lost, nobody can tell whether it was started"));
        }
        preview.arguments(shown(args, |shown| {
            if let Some(given) = &args.parameters {
                given.hide_passwords(&job.parameters, &mut shown["parameters"]);
            }
        }));
        Ok(Some(preview::drawn(preview, format!("start a build of {path}"))))
    }

    async fn probe(&self, permit: &Permit, args: &Args) -> ProbeResult {
        let (Some(run), Ok(path)) = (permit.run(), args.job.path()) else { return ProbeResult::Unknown };
        let looked = async {
            let server = self.kit.server(permit, args.server.as_ref())?;
            let job = server.job(&path).await?;
            let name = server.run_id_parameter().to_owned();
            if !job.parameters.iter().any(|definition| definition.name == name) {
                // Nothing marks what we started, and somebody else may have started the same.
                return Ok(None);
            }
            let item = server.item_with(&path, &name, &run.to_string()).await?;
            let builds = server.builds_with(&path, &name, &run.to_string()).await?;
            let (queue_id, build) = (item.map(|item| item.id), builds.first().copied());
            Ok::<_, Failure>(Some((queue_id, build, server.address(&path, build))))
        };
        match looked.await {
            Ok(Some((None, None, _))) if self.patience.is_over(run, self.kit.cursors.now()) => ProbeResult::NotDone,
            Ok(Some((None, None, _)) | None) | Err(_) => ProbeResult::Unknown,
            Ok(Some((queue_id, build, url))) => {
                let state = if build.is_some() { TriggerState::Running } else { TriggerState::Queued };
                let found = TriggerOutput { queue_id, build, state, url, common: JenkinsReplyFields::default() };
                ProbeResult::Done(serde_json::to_string(&found).ok())
            }
        }
    }

    async fn run(&self, permit: &Permit, args: Args, progress: &Progress) -> Result<TriggerOutput, Failure> {
        let wait = Duration::from_secs(args.wait_s.unwrap_or(WAIT_S).into());
        let server = self.kit.server(permit, args.server.as_ref())?.within(wait + MARGIN);
        let writer = server.write()?;
        let path = args.job.path()?;
        let (job, settings) = judged(&server, permit, &args, &path).await?;
        let waiting: Vec<u64> = server.queue().await?.into_iter().map(|item| item.id).collect();
        let form = (!job.parameters.is_empty()).then(|| form(settings));
        let id = writer.trigger(&path, form.as_deref()).await?;

        let mut common = ServerNote::answer(&server, args.server.is_some());
        if waiting.contains(&id) {
            common
                .warnings
                .push("an equal item waited in the queue already, and Jenkins joined this one to it".to_owned());
        }
        progress.report(0, None, Some("queued"));
        let item = followed(&server, &path, id, wait, &mut common).await;
        let build = item.as_ref().and_then(|item| item.build);
        let state = match (&item, build) {
            (Some(item), _) if item.cancelled => TriggerState::Cancelled,
            (_, Some(_)) => TriggerState::Running,
            (_, None) => TriggerState::Queued,
        };
        if state == TriggerState::Queued {
            let why = item.and_then(|item| item.why).unwrap_or_default();
            common.hint = Some(format!("look again with jenkins_queue id={id}. {why}").trim_end().to_owned());
        }
        Ok(TriggerOutput { queue_id: Some(id), build, state, url: server.address(&path, build), common })
    }
}

/// The job, if it can be built, and what its build would be given.
async fn judged(
    server: &PermittedServer<'_>,
    permit: &Permit,
    args: &Args,
    path: &JobPath,
) -> Result<(JenkinsJob, Vec<BuildSetting>), Failure> {
    let job = server.job(path).await?;
    match job.kind {
        JobKind::Folder | JobKind::Multibranch => {
            return Err(Failure::new(Code::InvalidArgument, format!("{path} is a folder and cannot be built"))
                .next("name a job in it; list them with jenkins_jobs"));
        }
        JobKind::Pipeline | JobKind::Freestyle | JobKind::Other => {}
    }
    if !job.buildable || job.status == Some(JobStatus::Disabled) {
        return Err(Failure::new(crate::codes::JOB_DISABLED, format!("{path} is switched off"))
            .next("ask its owners to enable it"));
    }
    let nothing = Parameters::default();
    let given = args.parameters.as_ref().unwrap_or(&nothing);
    let settings = given.settled(&job.parameters, server.run_id_parameter(), permit.run())?;
    Ok((job, settings))
}

/// Looks at the item until it has become a build or is gone, or the time is over. A look that fails says nothing: the
/// build was started.
async fn followed(
    server: &PermittedServer<'_>,
    path: &JobPath,
    id: u64,
    wait: Duration,
    common: &mut JenkinsReplyFields,
) -> Option<QueueItem> {
    let (until, mut pause, mut last) = (Instant::now() + wait, FIRST_LOOK, None);
    loop {
        match server.item(id).await {
            // The number came from an answer; what is not ours is not followed.
            Ok(item) if item.job != path.as_str() => {
                common.warnings.push("the server named an item of another job".to_owned());
                return None;
            }
            Ok(item) if item.cancelled || item.build.is_some() => return Some(item),
            Ok(item) => last = Some(item),
            Err(failure) => {
                common.warnings.push(format!("it was queued, but cannot be looked at: {}", failure.message));
                return last;
            }
        }
        if Instant::now() + pause > until {
            return last;
        }
        sleep(pause).await;
        pause = (pause * 2).min(LONGEST_LOOK);
    }
}

fn told(setting: &BuildSetting) -> String {
    let BuildSetting { name, shown, default, .. } = setting;
    match (setting.is_given(), default) {
        (true, Some(default)) if default != shown => format!("  {name}: {shown:?} (default {default:?})"),
        (true, _) => format!("  {name}: {shown:?}"),
        (false, _) => format!("  {name}: {shown:?} (default)"),
    }
}

/// How the newest builds went and which branch is built, where that can be seen.
async fn history(preview: &mut PreviewBuilder, server: &PermittedServer<'_>, path: &JobPath) {
    if let Ok(rows) = server.builds(path, 0..SHOWN).await
        && !rows.is_empty()
    {
        let told = rows.iter().map(|row| match &row.result {
            Some(result) if !row.running => format!("#{} {result}", row.number),
            Some(_) | None => format!("#{} running", row.number),
        });
        preview.line(format!("newest builds: {}", told.collect::<Vec<_>>().join(", ")));
    }
    if let Ok(scm) = server.scm(path).await {
        for source in scm.sources {
            let url = source.url.unwrap_or_default();
            preview.line(format!("builds {} of {url}", source.branches.join(", ")));
        }
    }
}

/// What a yes to the parameters rests on.
fn definitions(parameters: &[ParameterDefinition]) -> serde_json::Value {
    let one = |d: &ParameterDefinition| json!([d.name, format!("{:?}", d.kind), d.choices, d.default, d.required]);
    parameters.iter().map(one).collect()
}
