//! The tenant's agents and workflows, as far as they give parameters of external servers.

use super::entry::MOST_PARAMS;
use super::{AGENT, ServersCheck, WORKFLOW};
use crate::server::{Overrides, TenantAgent, Workflow};
use std::sync::Arc;
use tenancy::values::or_nearest;
use tenancy::{YamlNode, shown};

/// How many agents, and how many workflows, one tenant may have.
const MOST: usize = 64;
/// How many servers one of them may speak of; no tenant uses more.
const MOST_SERVERS: usize = 32;

impl ServersCheck<'_, '_> {
    pub(super) fn agents(&mut self, node: &YamlNode) -> Vec<TenantAgent> {
        let mut agents: Vec<TenantAgent> = Vec::new();
        for item in self.reader.values.some(node, "`agents`", MOST) {
            let Some(fields) = self.reader.values.fields(item, "an agent", &AGENT, None) else { continue };
            let name = match fields.find("name") {
                Some(node) => self.reader.values.label(node, "`name`"),
                None => self.reader.values.missing(item, "name", "by which sessions choose it"),
            };
            let params = fields.find("params").map_or_else(Overrides::new, |node| self.overrides(node));
            let Some(name) = name else { continue };
            if agents.iter().any(|agent| agent.name == name) {
                self.reader.values.twice(item, &format!("the agent `{name}`"));
            } else {
                agents.push(TenantAgent { name, params });
            }
        }
        agents
    }

    pub(super) fn workflows(&mut self, node: &YamlNode, agents: &[TenantAgent]) -> Vec<Workflow> {
        let mut workflows: Vec<Workflow> = Vec::new();
        for item in self.reader.values.some(node, "`workflows`", MOST) {
            let Some(fields) = self.reader.values.fields(item, "a workflow", &WORKFLOW, None) else { continue };
            let name = match fields.find("name") {
                Some(node) => self.reader.values.label(node, "`name`"),
                None => self.reader.values.missing(item, "name", "by which sessions choose it"),
            };
            let agent = fields.find("agent").and_then(|node| self.agent(node, agents));
            let params = fields.find("params").map_or_else(Overrides::new, |node| self.overrides(node));
            let Some(name) = name else { continue };
            if workflows.iter().any(|workflow| workflow.name == name) {
                self.reader.values.twice(item, &format!("the workflow `{name}`"));
            } else {
                workflows.push(Workflow { name, agent, params });
            }
        }
        workflows
    }

    fn agent(&mut self, node: &YamlNode, agents: &[TenantAgent]) -> Option<String> {
        let text = self.reader.values.text(node, "`agent`")?;
        if agents.iter().any(|agent| agent.name == text) {
            return Some(text.to_owned());
        }
        let known: Vec<&str> = agents.iter().map(|agent| agent.name.as_str()).collect();
        let hint = or_nearest(text, &known, "the tenant's `agents`");
        self.reader.values.report.add(
            node.at,
            "unknown_agent",
            format!("there is no agent {}", shown(text)),
            Some(hint),
        );
        None
    }

    /// What is given for the parameters of several servers.
    fn overrides(&mut self, node: &YamlNode) -> Overrides {
        let mut overrides = Overrides::new();
        for (key, node) in self.reader.values.entries(node, "`params`", MOST_SERVERS) {
            if self.section.absent.contains(&key.text) {
                continue;
            }
            let Some(server) = self.section.servers.iter().find(|server| server.id == key.text) else {
                let known: Vec<&str> = self.section.servers.iter().map(|server| server.id.as_str()).collect();
                let hint = or_nearest(&key.text, &known, "the tenant's `servers`");
                let message = format!("the tenant uses no server {}", shown(&key.text));
                self.reader.values.report.add(key.at, "unknown_server", message, Some(hint));
                continue;
            };
            let server = Arc::clone(&server.server);
            let entries = self.reader.values.entries(node, &format!("the server `{}`", key.text), MOST_PARAMS);
            let given = self.give(entries.iter().map(|(key, node)| (key, node)), &server);
            let given = given.into_iter().filter_map(|(name, given)| Some((name, given?))).collect();
            overrides.insert(key.text.clone(), given);
        }
        overrides
    }
}
