//! `jenkins_update_build`: sets what a build is called, what is said about it, and whether it is kept.

use super::grammar::{DescriptionText, JobText, NameText};
use super::patience::FirstLooks;
use super::preview;
use super::reply::{JenkinsReplyFields, ServerNote};
use super::{JenkinsDeps, TOOLSET};
use crate::client::{Build, BuildSelector, mask};
use catalog::{ProbeResult, Progress, Tool, ToolPreview, ToolSpec};
use domain::{Code, Effect, Failure};
use policy::Permit;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::json;
use std::time::Duration;
use target::grammar::Label;

pub(super) struct UpdateBuild {
    pub(super) kit: JenkinsDeps,
    pub(super) patience: FirstLooks,
}

#[derive(Debug, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct Args {
    job: JobText,
    #[schemars(range(min = 1))]
    build: u32,
    display_name: Option<NameText>,
    description: Option<DescriptionText>,
    keep: Option<bool>,
    server: Option<Label>,
}

#[derive(Debug, Serialize, JsonSchema)]
pub(super) struct UpdateBuildOutput {
    number: u32,
    display_name: String,
    description: String,
    keep: bool,
    #[serde(flatten)]
    common: JenkinsReplyFields,
}

impl Args {
    fn check(&self) -> Result<(), Failure> {
        if self.display_name.is_none() && self.description.is_none() && self.keep.is_none() {
            return Err(Failure::new(Code::InvalidArgument, "there is nothing to set")
                .next("give at least one of display_name, description and keep"));
        }
        Ok(())
    }

    /// Whether the build says what was asked for.
    fn are_met(&self, build: &Build) -> bool {
        let number = format!("#{}", build.number);
        let name = |name: &NameText| match name.as_str().trim() {
            "" => build.display_name == number,
            name => build.display_name == mask::line(name),
        };
        let said = build.description.as_deref().unwrap_or_default();
        self.display_name.as_ref().is_none_or(name)
            && self.description.as_ref().is_none_or(|text| said == mask::text(text.as_str()))
            && self.keep.is_none_or(|keep| build.keep == keep)
    }
}

impl Tool for UpdateBuild {
    const SPEC: ToolSpec = ToolSpec::new("jenkins_update_build", TOOLSET, Effect::Change)
        .says("Label a Jenkins build", "Set a build's name, description or keep-forever flag.")
        .hint(
            "For agents that leave notes on builds for people; builds that are kept for ever fill the server's disk, \
             and nothing here deletes them.",
        )
        .idempotent()
        .deadline(Duration::from_secs(75));
    type Args = Args;
    type Output = UpdateBuildOutput;

    fn effect(_: &Args) -> Effect {
        Effect::Change
    }

    async fn preview(&self, permit: &Permit, args: &Args) -> Result<Option<ToolPreview>, Failure> {
        args.check()?;
        let server = self.kit.server(permit, args.server.as_ref())?;
        let job = args.job.path()?;
        let build = server.build(&job, BuildSelector::Number(args.build)).await?;
        let mut preview = preview::of(&server);
        preview.fact(json!({ "job": job.as_str(), "build": build.number, "began": build.started_ms }));
        preview.line(format!("label build {} of {job}", build.number));
        if let Some(name) = &args.display_name {
            preview.line(format!("name: {:?} → {:?}", build.display_name, name.as_str()));
        }
        if let Some(text) = &args.description {
            let before = build.description.as_deref().unwrap_or_default();
            preview.line(format!("description: {before:?}"));
            preview.line(format!("           → {:?}", text.as_str()));
        }
        if let Some(keep) = args.keep {
            preview.line(format!("kept for ever: {} → {keep}", build.keep));
        }
        if args.keep == Some(false) && build.keep {
            preview.warn("A build that is not kept can be deleted by Jenkins itself.");
        }
        Ok(Some(preview::drawn(preview, format!("label build {} of {job}", build.number))))
    }

    async fn probe(&self, permit: &Permit, args: &Args) -> ProbeResult {
        let looked = async {
            let server = self.kit.server(permit, args.server.as_ref())?;
            server.build(&args.job.path()?, BuildSelector::Number(args.build)).await
        };
        match (looked.await, permit.run()) {
            (Ok(build), _) if args.are_met(&build) => ProbeResult::Done(
                serde_json::to_string(&UpdateBuildOutput::of(build, JenkinsReplyFields::default())).ok(),
            ),
            (Ok(_), Some(run)) if self.patience.is_over(run, self.kit.cursors.now()) => ProbeResult::NotDone,
            (Ok(_) | Err(_), _) => ProbeResult::Unknown,
        }
    }

    async fn run(&self, permit: &Permit, args: Args, _: &Progress) -> Result<UpdateBuildOutput, Failure> {
        args.check()?;
        let server = self.kit.server(permit, args.server.as_ref())?.within(Duration::from_secs(70));
        let writer = server.write()?;
        let job = args.job.path()?;
        let before = server.build(&job, BuildSelector::Number(args.build)).await?;
        let (name, text) = (args.display_name.as_ref(), args.description.as_ref());
        if name.is_some() || text.is_some() {
            writer.describe(&job, before.number, name.map(NameText::as_str), text.map(DescriptionText::as_str)).await?;
        }
        // There is no way to say which way it should stand, only to turn it round.
        if args.keep.is_some_and(|keep| keep != before.keep) {
            writer.toggle_keep(&job, before.number).await?;
        }
        let after = server.build(&job, BuildSelector::Number(before.number)).await;
        // It was sent; a look that fails does not take that back.
        let after = after.map_err(|failure| Failure { code: Code::OutcomeUnknown, ..failure })?;
        let mut common = ServerNote::answer(&server, args.server.is_some());
        if !args.are_met(&after) {
            common.warnings.push("the server answered well, but the build does not say what was sent".to_owned());
        }
        Ok(UpdateBuildOutput::of(after, common))
    }
}

impl UpdateBuildOutput {
    fn of(build: Build, common: JenkinsReplyFields) -> UpdateBuildOutput {
        UpdateBuildOutput {
            number: build.number,
            display_name: build.display_name,
            description: build.description.unwrap_or_default(),
            keep: build.keep,
            common,
        }
    }
}
