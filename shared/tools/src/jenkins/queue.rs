//! `jenkins_queue`: what waits, or what became of one item.

use super::pages::{self, items};
use super::reply::{Common, when};
use super::{JenkinsKit, TOOLSET};
use crate::grammar::Label;
use catalog::{Progress, Tool, ToolSpec};
use domain::{Effect, Failure};
use policy::Permit;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

pub(super) struct Queue {
    pub(super) kit: JenkinsKit,
}

#[derive(Debug, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct Args {
    #[schemars(range(min = 1))]
    id: Option<u64>,
    server: Option<Label>,
}

#[derive(Debug, Serialize, JsonSchema)]
pub(super) struct Found {
    #[serde(skip_serializing_if = "Option::is_none")]
    items: Option<Vec<Row>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    item: Option<Row>,
    #[serde(flatten)]
    common: Common,
}

#[derive(Debug, Serialize, JsonSchema)]
struct Row {
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

impl Tool for Queue {
    const SPEC: ToolSpec = ToolSpec::new("jenkins_queue", TOOLSET, Effect::Read)
        .says("Look at the Jenkins queue", "Waiting items, or one by id with its build number once started.")
        .hint(
            "For agents that start builds or ask why nothing moves; the wait is often for a free build agent, which \
             `jenkins_whoami` tells.",
        )
        .idempotent();
    type Args = Args;
    type Output = Found;

    fn effect(_: &Args) -> Effect {
        Effect::Read
    }

    async fn run(&self, permit: &Permit, args: Args, _: &Progress) -> Result<Found, Failure> {
        let server = self.kit.server(permit, args.server.as_ref())?;
        let mut common = Common::of(&server, args.server.is_some());
        if let Some(id) = args.id {
            let item = Some(server.item(id).await?.into());
            return Ok(Found { items: None, item, common });
        }
        let all: Vec<Row> = server.queue().await?.into_iter().map(Row::from).collect();
        let many = all.len();
        let (rows, next) = pages::rows(all, 0);
        if let Some(next) = next {
            common.cut(items(many - next), "ask for one item by id");
        }
        Ok(Found { items: Some(rows), item: None, common })
    }
}

impl From<jenkins::Item> for Row {
    fn from(item: jenkins::Item) -> Row {
        Row {
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
