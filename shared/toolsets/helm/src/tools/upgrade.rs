//! `helm_upgrade`: brings a release to another chart, version or values.

use super::change::{ChangeMode, KeepValues, ReleaseOutput, ReleaseRequest};
use super::chart::{ChartText, VersionText};
use super::grammar::{ChartValues, HelmTimeout, LONGEST, ReleaseName};
use super::{HelmDeps, TOOLSET};
use catalog::{ProbeResult, Progress, Tool, ToolPreview, ToolSpec};
use domain::{Effect, Failure};
use policy::Permit;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use target::grammar::Label;

pub(super) struct Upgrade {
    pub(super) kit: HelmDeps,
}

#[derive(Debug, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct Args {
    release: ReleaseName,
    chart: ChartText,
    version: Option<VersionText>,
    namespace: Option<Label>,
    values: Option<ChartValues>,
    keep_values: Option<KeepValues>,
    install: Option<bool>,
    wait: Option<bool>,
    rollback_on_failure: Option<bool>,
    #[schemars(range(min = 10, max = 900), extend("x-wire" = ["maximum"]))]
    timeout_s: Option<u32>,
    dry_run: Option<bool>,
    cluster: Option<Label>,
}

impl Args {
    fn wish(&self) -> ReleaseRequest<'_> {
        ReleaseRequest {
            release: &self.release,
            chart: &self.chart,
            version: self.version.as_ref(),
            namespace: self.namespace.as_ref(),
            cluster: self.cluster.as_ref(),
            values: self.values.as_ref(),
            wait: self.wait.unwrap_or(true),
            patience: HelmTimeout::of(self.timeout_s),
            how: ChangeMode::Upgrade {
                keep: self.keep_values.unwrap_or_default(),
                install: self.install.unwrap_or(false),
                rollback: self.rollback_on_failure.unwrap_or(false),
            },
        }
    }
}

impl Tool for Upgrade {
    const SPEC: ToolSpec = ToolSpec::new("helm_upgrade", TOOLSET, Effect::Change)
        .says(
            "Upgrade a release",
            "Upgrade a release. keep_values: reset to chart defaults, or reuse the release's values under the given ones.",
        )
        .hint(
            "For agents that roll out versions or settings; give it together with `helm_template`, so that they see \
             the difference before they ask a person for it.",
        )
        .deadline(LONGEST);
    type Args = Args;
    type Output = ReleaseOutput;

    fn effect(args: &Args) -> Effect {
        if args.dry_run == Some(true) { Effect::Read } else { Effect::Change }
    }

    fn about(args: &Args) -> Option<String> {
        Some(args.chart.as_str().to_owned())
    }

    fn taints(changed: &ReleaseOutput) -> bool {
        changed.speaks()
    }

    async fn preview(&self, permit: &Permit, args: &Args) -> Result<Option<ToolPreview>, Failure> {
        args.wish().preview(&self.kit, permit).await
    }

    async fn probe(&self, permit: &Permit, args: &Args) -> ProbeResult {
        args.wish().probe(&self.kit, permit).await.unwrap_or(ProbeResult::Unknown)
    }

    async fn run(&self, permit: &Permit, args: Args, _: &Progress) -> Result<ReleaseOutput, Failure> {
        Box::pin(args.wish().run(&self.kit, permit, args.dry_run == Some(true))).await
    }
}
