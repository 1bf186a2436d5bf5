//! `helm_template`: what a chart renders to, how that differs from the live release, or what is wrong with it.
//!
//! Rendered without the cluster's help on purpose: a chart's `lookup` sees nothing, so that a call which only reads cannot
//! pull Secrets through a template, and without the secrets among the release's values. What is rendered is masked like
//! anything a cluster returns.

use super::change::KeepValues;
use super::chart::{self, ChartPageToken, ChartText, VersionText};
use super::grammar::{ChartValues, ReleaseName};
use super::lines::ShownLines;
use super::objects::{self, differences, identity};
use super::release::{FullRevision, ReleaseRef, is_version};
use super::{HelmDeps, TOOLSET, fault};
use crate::client::charts::Archive;
use crate::client::{HelmExit, HelmResult, Invocation, Subcommand};
use catalog::{Progress, Tool, ToolSpec};
use domain::{Effect, Failure};
use kubernetes::client::KnownSecrets;
use kubernetes::k8s::at;
use kubernetes::k8s::diff_text::unified;
use kubernetes::k8s::reply::{ClusterNote, ClusterReplyFields};
use policy::Permit;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use target::cursor::Cursor;
use target::grammar::Label;
use target::reply::{ROOM, printable, size_of};

/// How many objects, hooks or files are named in an answer.
const NAMES: usize = 100;
/// How many findings are told, and how long each may be.
const FINDINGS: usize = 50;
const FINDING: usize = 400;

pub(super) struct TemplateTool {
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
    output: Option<TemplateFormat>,
    include_crds: Option<bool>,
    cursor: Option<Cursor>,
    cluster: Option<Label>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub(super) enum TemplateFormat {
    Manifest,
    Diff,
    Lint,
}

#[derive(Debug, Default, Serialize, JsonSchema)]
pub(super) struct TemplateOutput {
    version: String,
    /// The sha256 of the chart's archive.
    digest: String,
    /// The objects that were rendered.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    objects: Vec<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    text: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    diff: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    values_diff: Option<String>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    hooks: Vec<String>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    crds: Vec<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    findings: Option<Vec<TemplateFinding>>,
    /// Whether a template asks the cluster, or may; here it saw nothing.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    lookup_used: bool,
    #[serde(flatten)]
    common: ClusterReplyFields,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
pub(super) struct TemplateFinding {
    level: String,
    path: String,
    message: String,
}

impl Tool for TemplateTool {
    const SPEC: ToolSpec = ToolSpec::new("helm_template", TOOLSET, Effect::Read)
        .says("Render a chart", "Render a chart; output: manifest (default), diff against the live release, or lint.")
        .hint(
            "For agents that review or prepare upgrades without doing them; nothing in the cluster is looked up, so \
             charts that use `lookup` render otherwise than in an upgrade.",
        )
        .idempotent();
    type Args = Args;
    type Output = TemplateOutput;

    fn effect(_: &Args) -> Effect {
        Effect::Read
    }

    async fn run(&self, permit: &Permit, args: Args, _: &Progress) -> Result<TemplateOutput, Failure> {
        let mark: Option<ChartPageToken> = self.kit.cursors.resume(permit, &args, args.cursor.as_ref())?;
        self.kit.plain_values(args.values.as_ref())?;
        let cluster = at::cluster(&self.kit.clusters, permit, args.cluster.as_ref())?;
        let spot = ReleaseRef::of(&self.kit, cluster, args.namespace.as_ref(), &args.release)?;
        let archive =
            chart::archive(&self.kit.charts.of(permit), &args.chart, args.version.as_ref(), mark.as_ref()).await?;
        let named = (args.cluster.is_some(), args.namespace.is_some());
        let mut rendered = TemplateOutput {
            version: archive.version.clone(),
            digest: format!("sha256:{}", archive.sha256),
            lookup_used: archive.contents.may_look_up,
            common: ClusterNote::answer(&spot.cluster, Some(&spot.namespace), named),
            ..TemplateOutput::default()
        };
        let lines = match args.output.unwrap_or(TemplateFormat::Manifest) {
            TemplateFormat::Manifest => self.manifest(&spot, &archive, &args, &mut rendered).await?,
            TemplateFormat::Diff => self.diff(&spot, &archive, &args, &mut rendered).await?,
            TemplateFormat::Lint => {
                rendered.findings = Some(self.lint(&spot, &archive, &args, &mut rendered.common).await?);
                return Ok(rendered);
            }
        };
        let room = ROOM.saturating_sub(size_of(&rendered));
        let page = lines.page(mark.map_or(0, |mark| mark.l), room);
        if let Some(next) = page.next {
            let mark = ChartPageToken::at(&archive, next);
            rendered.common.next_cursor = Some(self.kit.cursors.seal(permit, &args, &mark)?);
            rendered.common.cut_lines(page.left, "go on with next_cursor");
        }
        match args.output {
            Some(TemplateFormat::Diff) => rendered.diff = Some(page.text),
            Some(TemplateFormat::Manifest | TemplateFormat::Lint) | None => rendered.text = Some(page.text),
        }
        Ok(rendered)
    }
}

impl TemplateTool {
    /// A call of helm about this chart with these values, without a cluster but for its version.
    async fn asked(&self, subcommand: Subcommand, spot: &ReleaseRef<'_>, args: &Args) -> Result<Invocation, Failure> {
        let version = spot.cluster.version().await?;
        let version = version["gitVersion"].as_str().filter(|text| is_version(text)).map(str::to_owned);
        let values = args.values.clone().unwrap_or_default().document();
        Ok(spot.ask(subcommand).maybe("--kube-version", version).values(values))
    }

    async fn objects(&self, spot: &ReleaseRef<'_>, archive: &Archive, args: &Args) -> Result<Vec<Value>, Failure> {
        let asked = self.asked(Subcommand::Template, spot, args).await?;
        let asked = asked
            .switch_if(args.include_crds == Some(true), "--include-crds")
            .positional(&spot.name)
            .positional(archive.path.display());
        let finished = self.kit.helm.run(asked).await?;
        match finished.success() {
            true => objects::read(finished.text()?),
            false => Err(fault::of(&spot.cluster, &KnownSecrets::default(), &finished)),
        }
    }

    async fn manifest(
        &self,
        spot: &ReleaseRef<'_>,
        archive: &Archive,
        args: &Args,
        rendered: &mut TemplateOutput,
    ) -> Result<ShownLines, Failure> {
        let objects = self.objects(spot, archive, args).await?;
        let known = KnownSecrets::of(&spot.cluster, &objects);
        rendered.objects = names(objects.iter().map(identity), &mut rendered.common);
        Ok(ShownLines::masked(&objects::shown(&spot.cluster, &known, &objects)))
    }

    /// What an upgrade of the live release to this would change; for a release that is not there, what would be made.
    async fn diff(
        &self,
        spot: &ReleaseRef<'_>,
        archive: &Archive,
        args: &Args,
        rendered: &mut TemplateOutput,
    ) -> Result<ShownLines, Failure> {
        let there = spot.past().await?.last().is_some_and(|newest| newest.status != "uninstalled");
        if !there {
            let objects = self.objects(spot, archive, args).await?;
            let known = KnownSecrets::of(&spot.cluster, &objects);
            rendered.crds = names(archive.contents.crds.iter().map(|(path, _)| path.clone()), &mut rendered.common);
            rendered.common.hint = Some("there is no such release; this is what helm_install would make".to_owned());
            return Ok(told(&differences(&spot.cluster, &known, &[], &objects)));
        }
        let now = spot.standing(None).await?;
        let values = args.values.clone().unwrap_or_default();
        // What an upgrade does unless it is told otherwise.
        let (then, hint) = spot.upgraded(archive, &values, KeepValues::default(), &now).await?;
        rendered.common.hint = hint;
        let known = now.secrets(&spot.cluster)?.and(then.secrets(&spot.cluster)?);
        let values = |of: &FullRevision| spot.cluster.masked_values(Value::Object(of.config.clone()), &known);
        let pair = spot.cluster.compared(Some(&values(&now)), Some(&values(&then)));
        rendered.values_diff = unified(pair.now.as_ref(), pair.then.as_ref()).map(|text| short(&text));
        rendered.hooks = names(then.hooks.iter().map(super::release::Hook::line), &mut rendered.common);
        rendered.crds = names(archive.contents.crds.iter().map(|(path, _)| path.clone()), &mut rendered.common);
        Ok(told(&differences(&spot.cluster, &known, &now.objects()?, &then.objects()?)))
    }

    async fn lint(
        &self,
        spot: &ReleaseRef<'_>,
        archive: &Archive,
        args: &Args,
        common: &mut ClusterReplyFields,
    ) -> Result<Vec<TemplateFinding>, Failure> {
        let asked = self.asked(Subcommand::Lint, spot, args).await?.positional(archive.path.display());
        let finished = self.kit.helm.run(asked).await?;
        let shown = |text: &str| spot.cluster.masked_text(&hidden(text, archive), &KnownSecrets::default());
        let mut found = findings(&finished, shown);
        // A chart with errors ends helm with one, and so does a call that never looked at it.
        if found.is_empty() && finished.ended != HelmExit::Exited(0) {
            return Err(fault::of(&spot.cluster, &KnownSecrets::default(), &finished));
        }
        common.cut_items(found.len().saturating_sub(FINDINGS), "correct those first, then lint again");
        found.truncate(FINDINGS);
        Ok(found)
    }
}

/// Lines such as `[ERROR] templates/: …`.
fn findings(finished: &HelmResult, shown: impl Fn(&str) -> String) -> Vec<TemplateFinding> {
    let text = [finished.stdout.lossy(), finished.stderr.lossy()].concat();
    let finding = |line: &str| {
        let (level, rest) = line.trim_start().strip_prefix('[')?.split_once("] ")?;
        if !["INFO", "WARNING", "ERROR"].contains(&level) {
            return None;
        }
        let (path, message) = rest.split_once(": ").unwrap_or(("", rest));
        let cut = |text: &str| printable(&shown(text)).chars().take(FINDING).collect::<String>();
        Some(TemplateFinding { level: level.to_lowercase(), path: cut(path), message: cut(message) })
    };
    text.lines().filter_map(finding).collect()
}

/// Where the archive lies is nobody's business.
fn hidden(text: &str, archive: &Archive) -> String {
    text.replace(&archive.path.display().to_string(), &archive.name)
}

/// Differences one after the other.
fn told(found: &[objects::Difference]) -> ShownLines {
    let one = |difference: &objects::Difference| {
        format!("{} {}\n{}\n", difference.action, difference.object, difference.text)
    };
    ShownLines::masked(&found.iter().map(one).collect::<String>())
}

/// Names as far as an answer has room for them.
fn names(all: impl Iterator<Item = String>, common: &mut ClusterReplyFields) -> Vec<String> {
    let mut names: Vec<String> = all.collect();
    common.cut_items(names.len().saturating_sub(NAMES), "the text has them all");
    names.truncate(NAMES);
    names.iter_mut().for_each(|name| target::reply::cut_text(name, 80));
    names
}

/// The beginning of a masked text.
fn short(text: &str) -> String {
    ShownLines::masked(text).page(0, ROOM / 4).text
}
