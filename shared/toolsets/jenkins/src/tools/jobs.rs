//! `jenkins_jobs`: what is under a folder, page by page.

use super::grammar::{JobText, QueryText};
use super::pages::{self, items};
use super::reply::{JenkinsReplyFields, ServerNote};
use super::{JenkinsDeps, TOOLSET};
use crate::client::{JobKind, JobPath, JobStatus, ListedJob, PermittedServer};
use catalog::{Progress, Tool, ToolSpec};
use domain::{Effect, Failure};
use policy::Permit;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use target::cursor::Cursor;
use target::grammar::Label;
use target::reply::{MOST_ROWS, ROOM, size_of};

/// How many direct children are asked for at a time; fewer where each brings its own along.
const PAGE: usize = 100;
const DEEP_PAGE: usize = 25;
/// How many pages a search goes through in one call.
const MOST_PAGES: usize = 10;

pub(super) struct Jobs {
    pub(super) kit: JenkinsDeps,
}

#[derive(Debug, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct Args {
    folder: Option<JobText>,
    query: Option<QueryText>,
    #[schemars(range(min = 1, max = 5), extend("x-wire" = ["maximum"]))]
    depth: Option<u8>,
    cursor: Option<Cursor>,
    server: Option<Label>,
}

#[derive(Debug, Serialize, JsonSchema)]
pub(super) struct JobsOutput {
    jobs: Vec<JobRow>,
    #[serde(flatten)]
    common: JenkinsReplyFields,
}

#[derive(Debug, Serialize, JsonSchema)]
struct JobRow {
    job: String,
    r#type: JobType,
    #[serde(skip_serializing_if = "Option::is_none")]
    status: Option<JobState>,
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    running: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    last_build: Option<u32>,
}

/// What a job is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub(super) enum JobType {
    Folder,
    Multibranch,
    Pipeline,
    Freestyle,
    Other,
}

impl From<JobKind> for JobType {
    fn from(kind: JobKind) -> JobType {
        match kind {
            JobKind::Folder => JobType::Folder,
            JobKind::Multibranch => JobType::Multibranch,
            JobKind::Pipeline => JobType::Pipeline,
            JobKind::Freestyle => JobType::Freestyle,
            JobKind::Other => JobType::Other,
        }
    }
}

/// How a job is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub(super) enum JobState {
    Success,
    Unstable,
    Failure,
    Aborted,
    NotBuilt,
    Disabled,
}

impl From<JobStatus> for JobState {
    fn from(status: JobStatus) -> JobState {
        match status {
            JobStatus::Success => JobState::Success,
            JobStatus::Unstable => JobState::Unstable,
            JobStatus::Failure => JobState::Failure,
            JobStatus::Aborted => JobState::Aborted,
            JobStatus::NotBuilt => JobState::NotBuilt,
            JobStatus::Disabled => JobState::Disabled,
        }
    }
}

/// Where to go on: with which direct child, and behind how many of the rows that its page gives.
#[derive(Debug, Clone, Copy, Default, Serialize, Deserialize)]
struct JobsPageToken {
    child: usize,
    rows: usize,
}

impl Tool for Jobs {
    const SPEC: ToolSpec = ToolSpec::new("jenkins_jobs", TOOLSET, Effect::Read)
        .says("List Jenkins jobs", "List jobs and folders under folder.")
        .hint(
            "The way in for agents that work with builds; what is listed depends on the rights of the user in the \
             tenant's configuration.",
        )
        .idempotent();
    type Args = Args;
    type Output = JobsOutput;

    fn effect(_: &Args) -> Effect {
        Effect::Read
    }

    async fn run(&self, permit: &Permit, args: Args, _: &Progress) -> Result<JobsOutput, Failure> {
        let spot: JobsPageToken = self.kit.cursors.resume(permit, &args, args.cursor.as_ref())?.unwrap_or_default();
        let server = self.kit.server(permit, args.server.as_ref())?;
        let mut common = ServerNote::answer(&server, args.server.is_some());
        let (jobs, next) = gathered(&server, &args, spot, &mut common).await?;
        if let Some(next) = next {
            pages::goes_on(&mut common, (&self.kit.cursors, permit), &args, &next, items(0))?;
            common.hint = Some("go on with cursor, or narrow with folder or query".to_owned());
        }
        Ok(JobsOutput { jobs, common })
    }
}

/// The rows from a spot on, as far as they fit; and where the next page begins.
async fn gathered(
    server: &PermittedServer<'_>,
    args: &Args,
    mut spot: JobsPageToken,
    common: &mut JenkinsReplyFields,
) -> Result<(Vec<JobRow>, Option<JobsPageToken>), Failure> {
    let folder: Option<JobPath> = args.folder.as_ref().map(JobText::path).transpose()?;
    let depth = args.depth.unwrap_or(1);
    let page = if depth == 1 { PAGE } else { DEEP_PAGE };
    let query = args.query.as_ref().map(|query| query.as_str().to_lowercase());
    let wanted = |listed: &ListedJob| query.as_ref().is_none_or(|query| listed.job.to_lowercase().contains(query));
    let (mut kept, mut used) = (Vec::new(), 0);
    for _ in 0..MOST_PAGES {
        let listing = server.jobs(folder.as_ref(), depth, spot.child..spot.child + page).await?;
        for folder in &listing.cut {
            let warning = format!("{folder} has more than is listed with it; name it as folder");
            if !common.warnings.contains(&warning) && common.warnings.len() < 10 {
                common.warnings.push(warning);
            }
        }
        for (n, listed) in listing.rows.into_iter().enumerate().skip(spot.rows).filter(|(_, listed)| wanted(listed)) {
            let row = JobRow::from(listed);
            let size = size_of(&row) + 1;
            if kept.len() == MOST_ROWS || used + size > ROOM {
                return Ok((kept, Some(JobsPageToken { child: spot.child, rows: n })));
            }
            used += size;
            kept.push(row);
        }
        if listing.direct < page {
            return Ok((kept, None));
        }
        spot = JobsPageToken { child: spot.child + page, rows: 0 };
        if kept.len() == MOST_ROWS {
            break;
        }
    }
    Ok((kept, Some(spot)))
}

impl From<ListedJob> for JobRow {
    fn from(listed: ListedJob) -> JobRow {
        JobRow {
            job: listed.job,
            r#type: listed.kind.into(),
            status: listed.status.map(JobState::from),
            running: listed.running,
            last_build: listed.last_build,
        }
    }
}
