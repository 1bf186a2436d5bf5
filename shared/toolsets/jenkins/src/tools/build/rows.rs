//! What is shown of a build, row by row.

use super::began;
use crate::client::Build;
use schemars::JsonSchema;
use serde::Serialize;
use std::collections::BTreeMap;

/// How many parameters are told; no build of ours takes more.
const PARAMETERS: usize = 50;
/// How many files of one change are told.
const PATHS: usize = 30;
/// The longest value of a parameter, and the longest description, that is shown whole.
const MOST_TEXT: usize = 4 * 1024;

#[derive(Debug, Serialize, JsonSchema)]
pub(super) struct BuildSummary {
    #[serde(skip_serializing_if = "Option::is_none")]
    result: Option<String>,
    running: bool,
    started: String,
    duration_s: u64,
    #[serde(skip_serializing_if = "Option::is_none")]
    name: Option<String>,
    causes: Vec<String>,
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    parameters: BTreeMap<String, String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    agent: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    queue_id: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    description: Option<String>,
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    keep: bool,
}

impl BuildSummary {
    pub(super) fn of(build: Build, duration_s: u64) -> BuildSummary {
        let started = began(&build);
        let cut = |mut text: String| {
            target::reply::cut_text(&mut text, MOST_TEXT);
            text
        };
        BuildSummary {
            result: build.result,
            running: build.running,
            started,
            duration_s,
            name: Some(build.display_name).filter(|name| *name != format!("#{}", build.number)),
            causes: build.causes.into_iter().take(20).collect(),
            parameters: build
                .parameters
                .into_iter()
                .take(PARAMETERS)
                .map(|given| (given.name, cut(given.value)))
                .collect(),
            agent: build.agent,
            queue_id: build.queue_id,
            description: build.description.map(cut),
            keep: build.keep,
        }
    }
}

#[derive(Debug, Serialize, JsonSchema)]
pub(super) struct CommitRow {
    id: String,
    author: String,
    message: String,
    paths: Vec<String>,
}

impl From<crate::client::BuildCommit> for CommitRow {
    fn from(change: crate::client::BuildCommit) -> CommitRow {
        let many = change.paths.len();
        let mut paths: Vec<String> = change.paths.into_iter().take(PATHS).collect();
        if many > PATHS {
            paths.push(format!("… ({} more)", many - PATHS));
        }
        CommitRow { id: change.id, author: change.author, message: change.message, paths }
    }
}

#[derive(Debug, Serialize, JsonSchema)]
pub(super) struct RevisionRow {
    #[serde(skip_serializing_if = "Option::is_none")]
    url: Option<String>,
    revision: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    branch: Option<String>,
}

impl From<crate::client::ScmRevision> for RevisionRow {
    fn from(found: crate::client::ScmRevision) -> RevisionRow {
        RevisionRow { url: found.url, revision: found.revision, branch: found.branch }
    }
}

#[derive(Debug, Serialize, JsonSchema)]
pub(super) struct StageRow {
    id: String,
    name: String,
    status: String,
    duration_s: u64,
}

impl From<crate::client::PipelineStage> for StageRow {
    fn from(stage: crate::client::PipelineStage) -> StageRow {
        StageRow { id: stage.id, name: stage.name, status: stage.status, duration_s: stage.duration_ms / 1000 }
    }
}

#[derive(Debug, Serialize, JsonSchema)]
pub(super) struct FailedTestRow {
    name: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    error: Option<String>,
}

impl From<crate::client::FailedTest> for FailedTestRow {
    fn from(case: crate::client::FailedTest) -> FailedTestRow {
        FailedTestRow { name: case.name, error: case.error }
    }
}

#[derive(Debug, Serialize, JsonSchema)]
pub(super) struct ArtifactRow {
    path: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    size: Option<u64>,
}

impl From<crate::client::BuildArtifact> for ArtifactRow {
    fn from(artifact: crate::client::BuildArtifact) -> ArtifactRow {
        ArtifactRow { path: artifact.path, size: artifact.size }
    }
}
