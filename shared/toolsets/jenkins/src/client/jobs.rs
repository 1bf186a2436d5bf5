//! The jobs and folders under a folder, some levels deep.

use crate::client::path::JobPath;
use crate::client::request::{MissingSubject, ServerRequest, Verb};
use crate::client::server::PermittedServer;
use crate::codes;
use domain::outcome::near;
use domain::{Code, Failure};
use serde::Deserialize;
use std::ops::Range;

/// How many jobs of a nested folder are listed with it.
pub const NESTED: usize = 100;
/// How many names are looked through for one that was meant.
const NAMES: usize = 500;
/// The most levels of one listing.
const DEEPEST: u8 = 5;

/// What a job is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum JobKind {
    /// Holds jobs.
    Folder,
    /// Holds a job for each branch.
    Multibranch,
    /// Runs a script of stages.
    Pipeline,
    /// Runs steps somebody clicked together.
    Freestyle,
    /// Anything else a plugin brings.
    Other,
}

impl JobKind {
    pub(in crate::client) fn of(class: &str) -> JobKind {
        match class.rsplit('.').next().unwrap_or_default() {
            "Folder" | "OrganizationFolder" => JobKind::Folder,
            "WorkflowMultiBranchProject" => JobKind::Multibranch,
            "WorkflowJob" => JobKind::Pipeline,
            "FreeStyleProject" => JobKind::Freestyle,
            _ => JobKind::Other,
        }
    }
}

/// How the newest build that is over went, as the colour of the job's ball says.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum JobStatus {
    /// It succeeded.
    Success,
    /// It succeeded, but its tests did not.
    Unstable,
    /// It failed.
    Failure,
    /// Somebody stopped it.
    Aborted,
    /// There is none.
    NotBuilt,
    /// The job is switched off.
    Disabled,
}

impl JobStatus {
    /// Reads a colour; `_anime` behind it means that a build runs.
    pub(in crate::client) fn of(color: &str) -> (Option<JobStatus>, bool) {
        let (color, running) = color.strip_suffix("_anime").map_or((color, false), |color| (color, true));
        let status = match color {
            "blue" | "green" => Some(JobStatus::Success),
            "yellow" => Some(JobStatus::Unstable),
            "red" => Some(JobStatus::Failure),
            "aborted" => Some(JobStatus::Aborted),
            "notbuilt" | "grey" => Some(JobStatus::NotBuilt),
            "disabled" => Some(JobStatus::Disabled),
            _ => None,
        };
        (status, running)
    }
}

/// One job or folder of a listing.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ListedJob {
    /// Its path.
    pub job: String,
    /// What it is.
    pub kind: JobKind,
    /// How it is; folders have no status.
    pub status: Option<JobStatus>,
    /// Whether a build runs.
    pub running: bool,
    /// The number of its newest build.
    pub last_build: Option<u32>,
}

/// A part of a folder's jobs, each followed by what it holds itself.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct JobListing {
    /// The rows.
    pub rows: Vec<ListedJob>,
    /// How many direct children the part has; fewer than were asked for means that it was the last.
    pub direct: usize,
    /// Nested folders of which only the first [`NESTED`] are listed.
    pub cut: Vec<String>,
}

#[derive(Deserialize)]
struct JobFolder {
    jobs: Option<Vec<JobNode>>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct JobNode {
    #[serde(rename = "_class", default)]
    class: String,
    #[serde(default)]
    full_name: String,
    color: Option<String>,
    last_build: Option<BuildNumberBody>,
    jobs: Option<Vec<JobNode>>,
}

#[derive(Deserialize)]
pub(in crate::client) struct BuildNumberBody {
    pub(in crate::client) number: u32,
}

impl PermittedServer<'_> {
    /// A part of what is under a folder (or at the root), so many levels deep.
    pub async fn jobs(&self, folder: Option<&JobPath>, depth: u8, range: Range<usize>) -> Result<JobListing, Failure> {
        let tree = tree(depth.clamp(1, DEEPEST), &range);
        let found: JobFolder = match self.read_json(&listing(folder).tree(tree)).await {
            Err(failure) if failure.code == codes::JOB_NOT_FOUND => return Err(self.explained(failure, folder).await),
            other => other?,
        };
        let Some(nodes) = found.jobs else {
            let failure = Failure::new(Code::InvalidArgument, "that is a job and holds no other jobs");
            return Err(failure.next("look at it with jenkins_job, or name its folder"));
        };
        let mut listing = JobListing { rows: Vec::new(), direct: nodes.len(), cut: Vec::new() };
        nodes.into_iter().for_each(|node| flatten(node, &mut listing));
        Ok(listing)
    }

    /// Adds near names to the failure about a job that is not there: from the nearest folder that is.
    pub(in crate::client) async fn explained(&self, failure: Failure, job: Option<&JobPath>) -> Failure {
        let Some(mut missing) = job.cloned() else { return failure };
        loop {
            let parent = missing.parent();
            match self.names(parent.as_ref()).await {
                Ok(names) => {
                    let wanted = missing.as_str();
                    // A folder that is spelled right but lacks the job is told by its last segment as well.
                    let meant = near(wanted, names.iter().map(String::as_str));
                    let next = match meant.is_empty() {
                        true => "list what is there with jenkins_jobs",
                        false => "use did_you_mean, or list with jenkins_jobs",
                    };
                    return failure.next(next).did_you_mean(meant);
                }
                Err(absent) if absent.code == codes::JOB_NOT_FOUND => match parent {
                    Some(parent) => missing = parent,
                    None => return failure,
                },
                Err(_) => return failure,
            }
        }
    }

    async fn names(&self, folder: Option<&JobPath>) -> Result<Vec<String>, Failure> {
        let found: JobFolder = self.read_json(&listing(folder).tree(format!("jobs[fullName]{{0,{NAMES}}}"))).await?;
        Ok(found.jobs.unwrap_or_default().into_iter().map(|node| node.full_name).collect())
    }
}

fn listing(folder: Option<&JobPath>) -> ServerRequest {
    match folder {
        Some(folder) => ServerRequest::job(Verb::Get, folder, "/api/json", "/job/{job}/api/json"),
        None => ServerRequest::get("/api/json", "/api/json", MissingSubject::Server),
    }
}

fn tree(depth: u8, range: &Range<usize>) -> String {
    let mut tree = String::new();
    for level in (0..depth).rev() {
        let (from, to) = if level == 0 { (range.start, range.end) } else { (0, NESTED) };
        let inner = if tree.is_empty() { String::new() } else { format!(",{tree}") };
        tree = format!("jobs[fullName,_class,color,lastBuild[number]{inner}]{{{from},{to}}}");
    }
    tree
}

fn flatten(node: JobNode, listing: &mut JobListing) {
    let (status, running) = JobStatus::of(node.color.as_deref().unwrap_or_default());
    let nested = node.jobs.unwrap_or_default();
    if nested.len() >= NESTED {
        listing.cut.push(node.full_name.clone());
    }
    listing.rows.push(ListedJob {
        job: node.full_name,
        kind: JobKind::of(&node.class),
        status,
        running,
        last_build: node.last_build.map(|build| build.number),
    });
    nested.into_iter().for_each(|node| flatten(node, listing));
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_tree_asks_for_so_many_levels_and_no_more() {
        assert_eq!(tree(1, &(0..100)), "jobs[fullName,_class,color,lastBuild[number]]{0,100}");
        assert_eq!(
            tree(2, &(20..40)),
            "jobs[fullName,_class,color,lastBuild[number],jobs[fullName,_class,color,lastBuild[number]]{0,100}]{20,40}"
        );
    }

    #[test]
    fn a_colour_is_a_status_and_whether_a_build_runs() {
        assert_eq!(JobStatus::of("blue_anime"), (Some(JobStatus::Success), true));
        assert_eq!(JobStatus::of("notbuilt"), (Some(JobStatus::NotBuilt), false));
        assert_eq!(JobStatus::of(""), (None, false));
        assert_eq!(JobKind::of("org.jenkinsci.plugins.workflow.job.WorkflowJob"), JobKind::Pipeline);
        assert_eq!(JobKind::of("jenkins.branch.OrganizationFolder"), JobKind::Folder);
        assert_eq!(JobKind::of("hudson.maven.MavenModuleSet"), JobKind::Other);
    }
}
