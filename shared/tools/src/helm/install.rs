//! `helm_install`: installs a chart as a new release.

use super::change::{Changed, How, Wish};
use super::chart::{ChartText, VersionText};
use super::grammar::{LONGEST, Patience, ReleaseName, Values};
use super::{HelmKit, TOOLSET};
use crate::grammar::Label;
use catalog::{Drawn, Probe, Progress, Tool, ToolSpec};
use domain::{Effect, Failure};
use policy::Permit;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

pub(super) struct Install {
    pub(super) kit: HelmKit,
}

#[derive(Debug, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct Args {
    release: ReleaseName,
    chart: ChartText,
    version: Option<VersionText>,
    namespace: Option<Label>,
    values: Option<Values>,
    create_namespace: Option<bool>,
    wait: Option<bool>,
    #[schemars(range(min = 10, max = 900), extend("x-wire" = ["maximum"]))]
    timeout_s: Option<u32>,
    dry_run: Option<bool>,
    cluster: Option<Label>,
}

impl Args {
    fn wish(&self) -> Wish<'_> {
        Wish {
            release: &self.release,
            chart: &self.chart,
            version: self.version.as_ref(),
            namespace: self.namespace.as_ref(),
            cluster: self.cluster.as_ref(),
            values: self.values.as_ref(),
            wait: self.wait.unwrap_or(true),
            patience: Patience::of(self.timeout_s),
            how: How::Install { create_namespace: self.create_namespace.unwrap_or(false) },
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
    type Output = Changed;

    fn effect(args: &Args) -> Effect {
        if args.dry_run == Some(true) { Effect::Read } else { Effect::Change }
    }

    fn about(args: &Args) -> Option<String> {
        Some(args.chart.as_str().to_owned())
    }

    fn taints(changed: &Changed) -> bool {
        changed.speaks()
    }

    async fn preview(&self, permit: &Permit, args: &Args) -> Result<Option<Drawn>, Failure> {
        args.wish().preview(&self.kit, permit, args).await
    }

    async fn probe(&self, permit: &Permit, args: &Args) -> Probe {
        args.wish().probe(&self.kit, permit).await.unwrap_or(Probe::Unknown)
    }

    async fn run(&self, permit: &Permit, args: Args, _: &Progress) -> Result<Changed, Failure> {
        Box::pin(args.wish().run(&self.kit, permit, args.dry_run == Some(true))).await
    }
}
