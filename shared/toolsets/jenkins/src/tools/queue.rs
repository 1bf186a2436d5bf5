//! `jenkins_queue`: what waits, or what became of one item.

use super::reply::{JenkinsReplyFields, ServerNote, when};
use super::{JenkinsDeps, TOOLSET};
use catalog::{Progress, Tool, ToolSpec};
use domain::{Effect, Failure};
use policy::Permit;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use target::grammar::Label;
use target::reply::page_of_rows;

pub(super) struct QueueTool {
    pub(super) kit: JenkinsDeps,
}

#[derive(Debug, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct Args {
    #[schemars(range(min = 1))]
    id: Option<u64>,
    server: Option<Label>,
}

#[derive(Debug, Serialize, JsonSchema)]
pub(super) struct QueueOutput {
    #[serde(skip_serializing_if = "Option::is_none")]
    items: Option<Vec<QueueRow>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    item: Option<QueueRow>,
    #[serde(flatten)]
    common: JenkinsReplyFields,
}

#[derive(Debug, Serialize, JsonSchema)]
struct QueueRow {
    id: u64,
    job: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    why: Option<String>,
    since: String,
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    stuck: bool,
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    cancelled: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    build: Option<u32>,
}

impl Tool for QueueTool {
    const SPEC: ToolSpec = ToolSpec::new("jenkins_queue", TOOLSET, Effect::Read)
        .says("Look at the Jenkins queue", "Waiting items, or one by id with its build number once started.")
        .hint(
            "For agents that start builds or ask why nothing moves; the wait is often for a free build agent, which \
             `jenkins_whoami` shows.",
        )
        .idempotent();
    type Args = Args;
    type Output = QueueOutput;

    fn effect(_: &Args) -> Effect {
        Effect::Read
    }

    async fn run(&self, permit: &Permit, args: Args, _: &Progress) -> Result<QueueOutput, Failure> {
        let server = self.kit.server(permit, args.server.as_ref())?;
        let mut common = ServerNote::answer(&server, args.server.is_some());
        if let Some(id) = args.id {
            let item = Some(server.item(id).await?.into());
            return Ok(QueueOutput { items: None, item, common });
        }
        let all: Vec<QueueRow> = server.queue().await?.into_iter().map(QueueRow::from).collect();
        let many = all.len();
        let (rows, next) = page_of_rows(all, 0);
        if let Some(next) = next {
            common.cut_items(many - next, "ask for one item by id");
        }
        Ok(QueueOutput { items: Some(rows), item: None, common })
    }
}

impl From<crate::client::QueueItem> for QueueRow {
    fn from(item: crate::client::QueueItem) -> QueueRow {
        QueueRow {
            id: item.id,
            job: item.job,
            why: item.why,
            since: when(item.since_ms),
            stuck: item.stuck,
            cancelled: item.cancelled,
            build: item.build,
        }
    }
}
