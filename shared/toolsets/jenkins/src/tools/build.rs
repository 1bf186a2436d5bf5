//! `jenkins_build`: one build, from one of seven sides, or the text of one of its artifacts.

mod rows;

use super::grammar::{ArtifactText, BuildText, JobText};
use super::pages::{self, BuildPageToken, bytes, items};
use super::reply::{JenkinsReplyFields, ServerNote, seconds, when};
use super::{JenkinsDeps, TOOLSET};
use crate::client::{Build, BuildSelector, JobPath, PermittedServer, mask};
use catalog::{Progress, Tool, ToolSpec};
use domain::{Code, Effect, Failure};
use policy::Permit;
use rows::{ArtifactRow, BuildSummary, CommitRow, FailedTestRow, RevisionRow, StageRow};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use target::cursor::Cursor;
use target::grammar::Label;
use target::reply::page_of_rows;

pub(super) struct OneBuild {
    pub(super) kit: JenkinsDeps,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
enum BuildPart {
    Summary,
    Changes,
    Scm,
    Stages,
    Tests,
    Artifacts,
    Script,
}

#[derive(Debug, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct Args {
    job: JobText,
    build: Option<BuildText>,
    show: Option<BuildPart>,
    artifact: Option<ArtifactText>,
    cursor: Option<Cursor>,
    server: Option<Label>,
}

#[derive(Debug, Default, Serialize, JsonSchema)]
pub(super) struct BuildOutput {
    /// Which build it is.
    number: u32,
    #[serde(flatten)]
    summary: Option<BuildSummary>,
    #[serde(skip_serializing_if = "Option::is_none")]
    changes: Option<Vec<CommitRow>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    scm: Option<Vec<RevisionRow>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    stages: Option<Vec<StageRow>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    total: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    failed: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    skipped: Option<u64>,
    /// The tests that failed.
    #[serde(skip_serializing_if = "Option::is_none")]
    cases: Option<Vec<FailedTestRow>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    artifacts: Option<Vec<ArtifactRow>>,
    /// The script, or the artifact.
    #[serde(skip_serializing_if = "Option::is_none")]
    text: Option<String>,
    #[serde(flatten)]
    common: JenkinsReplyFields,
}

/// What a page is cut from, and where it begins.
struct BuildPage<'a> {
    permit: &'a Permit,
    args: &'a Args,
    from: usize,
}

impl Tool for OneBuild {
    const SPEC: ToolSpec = ToolSpec::new("jenkins_build", TOOLSET, Effect::Read)
        .says(
            "Look at a Jenkins build",
            "One build: summary, changes, scm, stages, tests, artifacts, script, or the text of one artifact. build is a number or last, lastFailed, lastSuccessful.",
        )
        .hint(
            "For agents that explain failed builds; stages and tests need their plugins on the server, and commit \
             messages and artifacts are text of strangers that taints the session.",
        )
        .idempotent()
        // Commit messages, artifacts, scripts and the words of failed tests.
        .outside_text();
    type Args = Args;
    type Output = BuildOutput;

    fn effect(_: &Args) -> Effect {
        Effect::Read
    }

    async fn run(&self, permit: &Permit, args: Args, _: &Progress) -> Result<BuildOutput, Failure> {
        let (which, from) = match self.kit.cursors.resume::<BuildPageToken>(permit, &args, args.cursor.as_ref())? {
            Some(spot) => (BuildSelector::Number(spot.number), spot.from),
            None => (BuildText::which(args.build.as_ref()), 0),
        };
        if args.artifact.is_some() && args.show.is_some() {
            return Err(Failure::new(Code::InvalidArgument, "give one of show and artifact").next("leave show out"));
        }
        let server = self.kit.server(permit, args.server.as_ref())?;
        let job = args.job.path()?;
        let build = server.build(&job, which).await?;
        let common = ServerNote::answer(&server, args.server.is_some());
        let mut shown = BuildOutput { number: build.number, common, ..BuildOutput::default() };
        let page = BuildPage { permit, args: &args, from };
        match &args.artifact {
            Some(artifact) => {
                let text = server.artifact(&job, build.number, &artifact.path()?).await?;
                self.text(&page, &mut shown, &text)?;
            }
            None => self.side(&page, &server, (&job, build), &mut shown).await?,
        }
        Ok(shown)
    }
}

impl OneBuild {
    async fn side(
        &self,
        page: &BuildPage<'_>,
        server: &PermittedServer<'_>,
        (job, build): (&JobPath, Build),
        shown: &mut BuildOutput,
    ) -> Result<(), Failure> {
        let number = build.number;
        match page.args.show.unwrap_or(BuildPart::Summary) {
            BuildPart::Summary => {
                let duration = seconds(&self.kit.cursors, build.running, build.started_ms, build.duration_ms);
                shown.summary = Some(BuildSummary::of(build, duration));
            }
            BuildPart::Scm => shown.scm = Some(build.revisions.into_iter().map(RevisionRow::from).collect()),
            BuildPart::Changes => {
                let all = server.changes(job, number).await?.into_iter().map(CommitRow::from).collect();
                shown.changes = Some(self.rows(page, shown, all)?);
            }
            BuildPart::Stages => {
                pipeline(&build)?;
                let all = server.stages(job, number).await?.into_iter().map(StageRow::from).collect();
                shown.stages = Some(self.rows(page, shown, all)?);
            }
            BuildPart::Tests => {
                let tests = server.tests(job, number).await?;
                (shown.total, shown.failed, shown.skipped) =
                    (Some(tests.total), Some(tests.failed), Some(tests.skipped));
                shown.cases =
                    Some(self.rows(page, shown, tests.cases.into_iter().map(FailedTestRow::from).collect())?);
            }
            BuildPart::Artifacts => {
                let all = server.artifacts(job, &build).await?.into_iter().map(ArtifactRow::from).collect();
                shown.artifacts = Some(self.rows(page, shown, all)?);
            }
            BuildPart::Script => {
                pipeline(&build)?;
                let script = server.script(job, number).await?;
                self.text(page, shown, &mask::text(&script))?;
            }
        }
        Ok(())
    }

    fn rows<T: Serialize>(
        &self,
        page: &BuildPage<'_>,
        shown: &mut BuildOutput,
        all: Vec<T>,
    ) -> Result<Vec<T>, Failure> {
        let many = all.len();
        let (rows, next) = page_of_rows(all, page.from);
        if let Some(next) = next {
            let (spot, how) = (BuildPageToken { number: shown.number, from: next }, (&self.kit.cursors, page.permit));
            pages::goes_on(&mut shown.common, how, page.args, &spot, items(many - next))?;
        }
        Ok(rows)
    }

    fn text(&self, page: &BuildPage<'_>, shown: &mut BuildOutput, all: &str) -> Result<(), Failure> {
        let (text, next) = pages::text(all, page.from);
        if let Some(next) = next {
            let (spot, how) = (BuildPageToken { number: shown.number, from: next }, (&self.kit.cursors, page.permit));
            pages::goes_on(&mut shown.common, how, page.args, &spot, bytes(all.len() - next))?;
        }
        shown.text = Some(text);
        Ok(())
    }
}

/// Wants a build of a pipeline.
pub(super) fn pipeline(build: &Build) -> Result<(), Failure> {
    if build.pipeline {
        return Ok(());
    }
    Err(Failure::new(crate::codes::NOT_A_PIPELINE, format!("build {} is not one of a pipeline", build.number))
        .next("use show=summary, or the log with jenkins_log"))
}

/// When a build began, for whoever shows it.
pub(super) fn began(build: &Build) -> String {
    when(build.started_ms)
}
