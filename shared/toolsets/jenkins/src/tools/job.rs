//! `jenkins_job`: one job, from one of four sides.

use super::grammar::JobText;
use super::jobs::{JobState, JobType};
use super::pages;
use super::reply::{JenkinsReplyFields, ServerNote, seconds, when};
use super::{JenkinsDeps, TOOLSET};
use crate::client::{JenkinsJob, JobPath, ParameterDefinition, ParameterKind, PermittedServer, ScmSource};
use catalog::{Progress, Tool, ToolSpec};
use domain::{Code, Effect, Failure};
use policy::Permit;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use target::cursor::Cursor;
use target::grammar::Label;
use target::reply::page_of_rows;

/// How many builds are on a page.
const BUILDS: usize = 20;

pub(super) struct OneJob {
    pub(super) kit: JenkinsDeps,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
enum JobPart {
    Summary,
    Parameters,
    Scm,
    Builds,
}

#[derive(Debug, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct Args {
    job: JobText,
    show: Option<JobPart>,
    cursor: Option<Cursor>,
    server: Option<Label>,
}

#[derive(Debug, Default, Serialize, JsonSchema)]
pub(super) struct JobOutput {
    #[serde(flatten)]
    summary: Option<JobSummary>,
    #[serde(skip_serializing_if = "Option::is_none")]
    parameters: Option<Vec<ParameterRow>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    scm: Option<Vec<JobScm>>,
    /// `last_build`, where the configuration may not be read.
    #[serde(skip_serializing_if = "Option::is_none")]
    source: Option<&'static str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    builds: Option<Vec<BuildRow>>,
    #[serde(flatten)]
    common: JenkinsReplyFields,
}

#[derive(Debug, Serialize, JsonSchema)]
struct JobSummary {
    r#type: JobType,
    #[serde(skip_serializing_if = "Option::is_none")]
    status: Option<JobState>,
    buildable: bool,
    in_queue: bool,
    /// 0 to 100.
    #[serde(skip_serializing_if = "Option::is_none")]
    health: Option<u8>,
    last: LastBuilds,
    #[serde(skip_serializing_if = "Option::is_none")]
    next_build: Option<u32>,
}

#[derive(Debug, Serialize, JsonSchema)]
struct LastBuilds {
    #[serde(skip_serializing_if = "Option::is_none")]
    build: Option<u32>,
    #[serde(skip_serializing_if = "Option::is_none")]
    success: Option<u32>,
    #[serde(skip_serializing_if = "Option::is_none")]
    failure: Option<u32>,
}

#[derive(Debug, Serialize, JsonSchema)]
struct ParameterRow {
    name: String,
    r#type: &'static str,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    choices: Vec<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    default: Option<String>,
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    required: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    description: Option<String>,
}

#[derive(Debug, Serialize, JsonSchema)]
struct JobScm {
    r#type: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    url: Option<String>,
    branches: Vec<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    script_path: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    has_credentials: Option<bool>,
}

#[derive(Debug, Serialize, JsonSchema)]
struct BuildRow {
    number: u32,
    #[serde(skip_serializing_if = "Option::is_none")]
    result: Option<String>,
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    running: bool,
    started: String,
    duration_s: u64,
    #[serde(skip_serializing_if = "Option::is_none")]
    name: Option<String>,
}

/// Where older builds begin. New ones may have come in front of them meanwhile, so the number counts as well.
#[derive(Debug, Clone, Copy, Serialize, Deserialize)]
struct BuildsPageToken {
    from: usize,
    below: u32,
}

impl Tool for OneJob {
    const SPEC: ToolSpec = ToolSpec::new("jenkins_job", TOOLSET, Effect::Read)
        .says("Look at a Jenkins job", "One job (path a/b/c): summary, parameters, scm, or recent builds.")
        .hint(
            "For agents that start builds or ask how one is configured; give it wherever `jenkins_trigger` is given, \
             since it shows which parameters a job takes.",
        )
        .idempotent();
    type Args = Args;
    type Output = JobOutput;

    fn effect(_: &Args) -> Effect {
        Effect::Read
    }

    async fn run(&self, permit: &Permit, args: Args, _: &Progress) -> Result<JobOutput, Failure> {
        let spot: Option<BuildsPageToken> = self.kit.cursors.resume(permit, &args, args.cursor.as_ref())?;
        let server = self.kit.server(permit, args.server.as_ref())?;
        let job = args.job.path()?;
        let mut shown =
            JobOutput { common: ServerNote::answer(&server, args.server.is_some()), ..JobOutput::default() };
        match args.show.unwrap_or(JobPart::Summary) {
            JobPart::Summary => shown.summary = Some(server.job(&job).await?.into()),
            JobPart::Parameters => {
                let declared = server.job(&job).await?.parameters;
                let run_id = server.run_id_parameter();
                let others = declared.into_iter().filter(|definition| definition.name != run_id);
                let (rows, next) = page_of_rows(others.map(ParameterRow::from).collect(), 0);
                if next.is_some() {
                    shown.common.cut(pages::items(0), "look at the job in Jenkins for the rest");
                }
                shown.parameters = Some(rows);
            }
            JobPart::Scm => {
                let scm = server.scm(&job).await?;
                shown.source = scm.from_last_build.then_some("last_build");
                shown.scm = Some(scm.sources.into_iter().map(JobScm::from).collect());
            }
            JobPart::Builds => self.builds(permit, &server, (&args, &job), spot, &mut shown).await?,
        }
        Ok(shown)
    }
}

impl OneJob {
    async fn builds(
        &self,
        permit: &Permit,
        server: &PermittedServer<'_>,
        (args, job): (&Args, &JobPath),
        spot: Option<BuildsPageToken>,
        shown: &mut JobOutput,
    ) -> Result<(), Failure> {
        let BuildsPageToken { from, below } = spot.unwrap_or(BuildsPageToken { from: 0, below: u32::MAX });
        let found = server.builds(job, from..from + BUILDS).await?;
        if found.is_empty() && from == 0 {
            let kind = server.job(job).await?.kind;
            if matches!(kind, crate::client::JobKind::Folder | crate::client::JobKind::Multibranch) {
                return Err(Failure::new(Code::InvalidArgument, "that is a folder and has no builds")
                    .next("list what is in it with jenkins_jobs"));
            }
        }
        let full = found.len() == BUILDS;
        let oldest = found.last().map_or(below, |row| row.number);
        let rows = found.into_iter().filter(|row| row.number < below).map(|row| BuildRow {
            number: row.number,
            result: row.result,
            running: row.running,
            started: when(row.started_ms),
            duration_s: seconds(&self.kit.cursors, row.running, row.started_ms, row.duration_ms),
            name: row.name,
        });
        shown.builds = Some(rows.collect());
        if full {
            let spot = BuildsPageToken { from: from + BUILDS, below: oldest };
            shown.common.next_cursor = Some(self.kit.cursors.seal(permit, args, &spot)?);
        }
        Ok(())
    }
}

impl From<JenkinsJob> for JobSummary {
    fn from(job: JenkinsJob) -> JobSummary {
        JobSummary {
            r#type: job.kind.into(),
            status: job.status.map(JobState::from),
            buildable: job.buildable,
            in_queue: job.in_queue,
            health: job.health,
            last: LastBuilds { build: job.last, success: job.last_success, failure: job.last_failure },
            next_build: job.next_build,
        }
    }
}

impl From<ParameterDefinition> for ParameterRow {
    fn from(definition: ParameterDefinition) -> ParameterRow {
        let kind = match definition.kind {
            ParameterKind::String => "string",
            ParameterKind::Text => "text",
            ParameterKind::Boolean => "boolean",
            ParameterKind::Choice => "choice",
            ParameterKind::Password => "password",
            ParameterKind::File => "file",
            ParameterKind::Run => "run",
            ParameterKind::Credentials => "credentials",
            ParameterKind::Other => "other",
        };
        ParameterRow {
            name: definition.name,
            r#type: kind,
            choices: definition.choices,
            default: definition.default,
            required: definition.required,
            description: definition.description,
        }
    }
}

impl From<ScmSource> for JobScm {
    fn from(source: ScmSource) -> JobScm {
        JobScm {
            r#type: source.kind,
            url: source.url,
            branches: source.branches,
            script_path: source.script_path,
            has_credentials: source.has_credentials,
        }
    }
}
