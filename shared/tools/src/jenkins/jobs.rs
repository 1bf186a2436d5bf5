//! `jenkins_jobs`: what is under a folder, page by page.

use super::grammar::{JobText, QueryText};
use super::pages::{self, items};
use super::reply::Common;
use super::{JenkinsKit, TOOLSET};
use crate::cursor::Cursor;
use crate::grammar::Label;
use crate::reply::{MOST_ROWS, ROOM, size_of};
use catalog::{Progress, Tool, ToolSpec};
use domain::{Effect, Failure};
use jenkins::{JobKind, JobPath, Listed, Server, Status};
use policy::Permit;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// How many direct children are asked for at a time; fewer where each brings its own along.
const PAGE: usize = 100;
const DEEP_PAGE: usize = 25;
/// How many pages a search goes through in one call.
const MOST_PAGES: usize = 10;

pub(super) struct Jobs {
    pub(super) kit: JenkinsKit,
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
pub(super) struct Found {
    jobs: Vec<Row>,
    #[serde(flatten)]
    common: Common,
}

#[derive(Debug, Serialize, JsonSchema)]
struct Row {
    job: String,
    r#type: Kind,
    #[serde(skip_serializing_if = "Option::is_none")]
    status: Option<State>,
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    running: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    last_build: Option<u32>,
}

/// What a job is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub(super) enum Kind {
    Folder,
    Multibranch,
    Pipeline,
    Freestyle,
    Other,
}

impl From<JobKind> for Kind {
    fn from(kind: JobKind) -> Kind {
        match kind {
            JobKind::Folder => Kind::Folder,
            JobKind::Multibranch => Kind::Multibranch,
            JobKind::Pipeline => Kind::Pipeline,
            JobKind::Freestyle => Kind::Freestyle,
            JobKind::Other => Kind::Other,
        }
    }
}

/// How a job is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub(super) enum State {
    Success,
    Unstable,
    Failure,
    Aborted,
    NotBuilt,
    Disabled,
}

impl From<Status> for State {
    fn from(status: Status) -> State {
        match status {
            Status::Success => State::Success,
            Status::Unstable => State::Unstable,
            Status::Failure => State::Failure,
            Status::Aborted => State::Aborted,
            Status::NotBuilt => State::NotBuilt,
            Status::Disabled => State::Disabled,
        }
    }
}

/// Where to go on: with which direct child, and behind how many of the rows that its page gives.
#[derive(Debug, Clone, Copy, Default, Serialize, Deserialize)]
struct Spot {
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
    type Output = Found;

    fn effect(_: &Args) -> Effect {
        Effect::Read
    }

    async fn run(&self, permit: &Permit, args: Args, _: &Progress) -> Result<Found, Failure> {
        let spot = match &args.cursor {
            Some(cursor) => self.kit.cursors.open(permit, &args, cursor)?,
            None => Spot::default(),
        };
        let server = self.kit.server(permit, args.server.as_ref())?;
        let mut common = Common::of(&server, args.server.is_some());
        let (jobs, next) = gathered(&server, &args, spot, &mut common).await?;
        if let Some(next) = next {
            pages::goes_on(&mut common, (&self.kit.cursors, permit), &args, &next, items(0))?;
            common.hint = Some("go on with cursor, or narrow with folder or query".to_owned());
        }
        Ok(Found { jobs, common })
    }
}

/// The rows from a spot on, as far as they fit; and where the next page begins.
async fn gathered(
    server: &Server<'_>,
    args: &Args,
    mut spot: Spot,
    common: &mut Common,
) -> Result<(Vec<Row>, Option<Spot>), Failure> {
    let folder: Option<JobPath> = args.folder.as_ref().map(JobText::path).transpose()?;
    let depth = args.depth.unwrap_or(1);
    let page = if depth == 1 { PAGE } else { DEEP_PAGE };
    let query = args.query.as_ref().map(|query| query.as_str().to_lowercase());
    let wanted = |listed: &Listed| query.as_ref().is_none_or(|query| listed.job.to_lowercase().contains(query));
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
            let row = Row::from(listed);
            let size = size_of(&row) + 1;
            if kept.len() == MOST_ROWS || used + size > ROOM {
                return Ok((kept, Some(Spot { child: spot.child, rows: n })));
            }
            used += size;
            kept.push(row);
        }
        if listing.direct < page {
            return Ok((kept, None));
        }
        spot = Spot { child: spot.child + page, rows: 0 };
        if kept.len() == MOST_ROWS {
            break;
        }
    }
    Ok((kept, Some(spot)))
}

impl From<Listed> for Row {
    fn from(listed: Listed) -> Row {
        Row {
            job: listed.job,
            r#type: listed.kind.into(),
            status: listed.status.map(State::from),
            running: listed.running,
            last_build: listed.last_build,
        }
    }
}
