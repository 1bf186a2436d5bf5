//! `helm_install`: installs a chart as a new release.

use super::change::{ChangeMode, ReleaseOutput, ReleaseRequest};
use super::chart::{ChartText, VersionText};
use super::grammar::{ChartValues, HelmTimeout, LONGEST, ReleaseName};
use super::{HelmDeps, TOOLSET};
use catalog::{ProbeResult, Progress, Tool, ToolPreview, ToolSpec};
use domain::{Effect, Failure};
use policy::Permit;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use target::grammar::Label;

pub(super) struct Install {
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
    create_namespace: Option<bool>,
    wait: Option<bool>,
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
            how: ChangeMode::Install { create_namespace: self.create_namespace.unwrap_or(false) },
        }
    }
}

impl Tool for Install {
    const SPEC: ToolSpec = ToolSpec::new("helm_install", TOOLSET, Effect::Change)
        .says("Install a chart", "Install a chart as a new release.")
        .hint(
            "For agents that set up new services from charts; a chart may bring cluster-wide objects and hooks, which \
             approvers are shown, so keep the chart hosts few.",
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
