//! `helm_show`: what a chart says of itself: its default values, its description, its README, its CRDs.
//!
//! Read out of the archive that was fetched, without helm and without unpacking it.

use super::chart::{self, ChartPageToken, ChartText, VersionText};
use super::lines::ShownLines;
use super::{HelmDeps, TOOLSET};
use crate::client::charts::{Archive, ChartContents};
use catalog::{Progress, Tool, ToolSpec};
use domain::{Effect, Failure};
use policy::Permit;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use target::cursor::Cursor;
use target::reply::{ROOM, ReplyFields, thin};

pub(super) struct ChartShow {
    pub(super) kit: HelmDeps,
}

#[derive(Debug, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct Args {
    chart: ChartText,
    version: Option<VersionText>,
    show: Option<ChartPart>,
    cursor: Option<Cursor>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub(super) enum ChartPart {
    Values,
    Chart,
    Readme,
    Crds,
}

#[derive(Debug, Serialize, JsonSchema)]
pub(super) struct ChartShowOutput {
    chart: String,
    version: String,
    /// The sha256 of the archive.
    digest: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    text: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    metadata: Option<Value>,
    #[serde(flatten)]
    common: ReplyFields<()>,
}

impl Tool for ChartShow {
    const SPEC: ToolSpec = ToolSpec::new("helm_show", TOOLSET, Effect::Read)
        .says("Show a chart", "Chart defaults and docs. chart is repo/name or oci://host/path.")
        .hint(
            "For agents that must know a chart's settings before they install it; its text comes from whoever \
             publishes the chart, so it taints the session.",
        )
        .idempotent()
        .outside_text();
    type Args = Args;
    type Output = ChartShowOutput;

    fn effect(_: &Args) -> Effect {
        Effect::Read
    }

    async fn run(&self, permit: &Permit, args: Args, _: &Progress) -> Result<ChartShowOutput, Failure> {
        let spot: Option<ChartPageToken> = self.kit.cursors.resume(permit, &args, args.cursor.as_ref())?;
        let archive =
            chart::archive(&self.kit.charts.of(permit), &args.chart, args.version.as_ref(), spot.as_ref()).await?;
        let mut shown = ChartShowOutput {
            chart: args.chart.to_string(),
            version: archive.version.clone(),
            digest: format!("sha256:{}", archive.sha256),
            text: None,
            metadata: None,
            common: ReplyFields { untrusted: true, ..ReplyFields::default() },
        };
        let Some(text) = text(&archive.contents, args.show.unwrap_or(ChartPart::Values)) else {
            shown.metadata = Some(metadata(&archive, &mut shown.common));
            return Ok(shown);
        };
        let page = ShownLines::of(&text).page(spot.map_or(0, |spot| spot.l), ROOM);
        if let Some(next) = page.next {
            let spot = ChartPageToken::at(&archive, next);
            shown.common.next_cursor = Some(self.kit.cursors.seal(permit, &args, &spot)?);
            shown.common.cut_lines(page.left, "go on with next_cursor");
        }
        if text.is_empty() {
            shown.common.hint = Some("the chart has nothing of that kind".to_owned());
        }
        shown.text = Some(page.text);
        Ok(shown)
    }
}

/// The part that is text; none for the metadata.
fn text(contents: &ChartContents, part: ChartPart) -> Option<String> {
    match part {
        ChartPart::Values => Some(contents.values.clone().unwrap_or_default()),
        ChartPart::Readme => Some(contents.readme.clone().unwrap_or_default()),
        ChartPart::Crds => {
            let file = |(name, text): &(String, String)| format!("---\n# {name}\n{}\n", text.trim_end());
            Some(contents.crds.iter().map(file).collect())
        }
        ChartPart::Chart => None,
    }
}

fn metadata(archive: &Archive, common: &mut ReplyFields<()>) -> Value {
    let mut metadata = archive.contents.metadata.clone();
    masked(&mut metadata);
    let bytes = thin(&mut metadata, ROOM);
    common.cut_bytes(bytes, "the rest is not shown");
    metadata
}

/// Without what reads like a secret or what a terminal would act on.
fn masked(value: &mut Value) {
    match value {
        Value::String(text) => {
            *text = redact::redact(text).chars().filter(|c| *c == '\n' || !c.is_control()).collect();
        }
        Value::Array(items) => items.iter_mut().for_each(masked),
        Value::Object(fields) => fields.values_mut().for_each(masked),
        Value::Null | Value::Bool(_) | Value::Number(_) => {}
    }
}
