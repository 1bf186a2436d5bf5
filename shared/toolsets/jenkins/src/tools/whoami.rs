//! `jenkins_whoami`: who we are on a server, what it is and who works for it.

use super::reply::{JenkinsReplyFields, ServerNote};
use super::{JenkinsDeps, TOOLSET};
use catalog::{Progress, Tool, ToolSpec};
use domain::{Effect, Failure};
use policy::Permit;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use target::grammar::Label;
use target::reply::page_of_rows;

/// How many groups are told.
const GROUPS: usize = 50;

pub(super) struct Whoami {
    pub(super) kit: JenkinsDeps,
}

#[derive(Debug, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct Args {
    server: Option<Label>,
}

#[derive(Debug, Serialize, JsonSchema)]
pub(super) struct WhoamiOutput {
    user: String,
    anonymous: bool,
    authorities: Vec<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    version: Option<String>,
    agents: Vec<AgentRow>,
    #[serde(flatten)]
    common: JenkinsReplyFields,
}

#[derive(Debug, Serialize, JsonSchema)]
struct AgentRow {
    name: String,
    online: bool,
    executors: u32,
    busy: usize,
}

impl Tool for Whoami {
    const SPEC: ToolSpec = ToolSpec::new("jenkins_whoami", TOOLSET, Effect::Read)
        .says("Look at the Jenkins server", "The identity used, server version and agents.")
        .hint(
            "For agents that should know what the configured user may do before they try; it also shows which build \
             agents are down, and names machines while doing so.",
        )
        .idempotent();
    type Args = Args;
    type Output = WhoamiOutput;

    fn effect(_: &Args) -> Effect {
        Effect::Read
    }

    async fn run(&self, permit: &Permit, args: Args, _: &Progress) -> Result<WhoamiOutput, Failure> {
        let server = self.kit.server(permit, args.server.as_ref())?;
        let mut common = ServerNote::answer(&server, args.server.is_some());
        let who = server.who().await?;
        if who.anonymous {
            common
                .warnings
                .push("the server does not know the tenant's user; ask an admin to renew the token".to_owned());
        }
        if who.agents.is_none() {
            common.warnings.push("the tenant's user may not see the agents".to_owned());
        }
        let agents: Vec<AgentRow> = who.agents.unwrap_or_default().into_iter().map(AgentRow::from).collect();
        let many = agents.len();
        let (agents, next) = page_of_rows(agents, 0);
        if let Some(next) = next {
            common.cut_items(many - next, "look at the rest in Jenkins");
        }
        let authorities = who.authorities.into_iter().take(GROUPS).collect();
        Ok(WhoamiOutput { user: who.user, anonymous: who.anonymous, authorities, version: who.version, agents, common })
    }
}

impl From<crate::client::BuildAgent> for AgentRow {
    fn from(agent: crate::client::BuildAgent) -> AgentRow {
        AgentRow { name: agent.name, online: agent.online, executors: agent.executors, busy: agent.busy }
    }
}
