//! The sections `servers`, `agents` and `workflows` of a tenant's file.
//!
//! They are one toolset's, because agents and workflows say nothing here but what they give for parameters of servers.
//! `params` is the tenant's own (see `tenancy`): other toolsets refer to it as well.

mod access;
mod agents;
mod bounds;
mod credentials;
pub(crate) mod entry;
mod rules;
mod schema;
mod servers;
mod web;

pub use rules::{ALLOWED_IF_APPROVED, ALLOWLIST, SERVER};

use crate::curated::ServerCatalog;
use crate::server::{ServerUse, TenantAgent, Workflow, server_toolset, tool_prefix};
use entry::EntryReader;
use schema::ExternalFile;
use std::collections::BTreeSet;
use tenancy::{Place, Section, SectionReader, ToolFamily, YamlNode};

/// The key of the servers. The section is read as a [`ServersSection`].
pub const SERVERS: &str = "servers";
/// The key of the agents. The section is read as a `Vec<TenantAgent>`.
pub const AGENTS: &str = "agents";
/// The key of the workflows. The section is read as a `Vec<Workflow>`.
pub const WORKFLOWS: &str = "workflows";
/// The keys of a server from the operator's catalog.
const USE: [&str; 5] = ["use", "id", "params", "access", "accept"];
/// The keys of a server of the tenant's own.
const OWN: [&str; 10] =
    ["name", "id", "description", "url", "transport", "auth", "headers", "params", "access", "accept"];
/// The keys of a parameter of a server of the tenant's own.
const OWN_PARAM: [&str; 4] = ["description", "default", "secret", "value"];
/// The keys under `access`.
const ACCESS: [&str; 1] = ["allowlist"];
/// The keys of a tool in an allowlist that says more than a name.
const ALLOWED: [&str; 2] = ["name", "require_approval"];
/// The keys of an agent.
const AGENT: [&str; 2] = ["name", "params"];
/// The keys of a workflow.
const WORKFLOW: [&str; 3] = ["name", "agent", "params"];

/// The external servers a tenant uses.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct ServersSection {
    /// The servers.
    pub servers: Vec<ServerUse>,
    /// Names of servers that are there with a mistake, so that a mistake is told once.
    absent: BTreeSet<String>,
}

/// The sections, checked against the operator's catalog as it is now.
pub fn sections(catalog: &ServerCatalog) -> Vec<Section> {
    let catalog = catalog.clone();
    let read = move |reader: &mut SectionReader<'_>, node: &YamlNode| servers(reader, node, &catalog);
    vec![
        Section::new::<ExternalFile, _>(SERVERS, Place::Root, read)
            .after("toolsets")
            .with_rules(rules::rules)
            .bounded(bounds::exceeding)
            .with_secret_uses(bounds::secret_uses),
        // They only say what parameters of servers are given. The secrets among them are uses of the servers.
        Section::new::<ExternalFile, _>(AGENTS, Place::Root, agents)
            .after(SERVERS)
            .bounded(|_: Option<&Vec<TenantAgent>>, _| Vec::new()),
        Section::new::<ExternalFile, _>(WORKFLOWS, Place::Root, workflows)
            .after(AGENTS)
            .bounded(|_: Option<&Vec<Workflow>>, _| Vec::new()),
    ]
}

fn servers(reader: &mut SectionReader<'_>, node: &YamlNode, catalog: &ServerCatalog) -> Option<ServersSection> {
    let mut check = ServersCheck { reader, catalog, section: ServersSection::default() };
    check.section.servers = check.servers(node);
    let section = check.section;
    for id in section.servers.iter().map(|server| &server.id).chain(&section.absent) {
        reader.add_tools(ToolFamily { toolset: server_toolset(id), prefix: tool_prefix(id) });
    }
    Some(section).filter(|section| !section.servers.is_empty() || !section.absent.is_empty())
}

fn agents(reader: &mut SectionReader<'_>, node: &YamlNode) -> Option<Vec<TenantAgent>> {
    let section = reader.earlier(SERVERS, node).unwrap_or_default();
    let catalog = &ServerCatalog::none();
    Some(ServersCheck { reader, catalog, section }.agents(node))
}

fn workflows(reader: &mut SectionReader<'_>, node: &YamlNode) -> Option<Vec<Workflow>> {
    let section = reader.earlier(SERVERS, node).unwrap_or_default();
    let agents: Vec<TenantAgent> = reader.earlier(AGENTS, node).unwrap_or_default();
    let catalog = &ServerCatalog::none();
    Some(ServersCheck { reader, catalog, section }.workflows(node, &agents))
}

/// Reads servers and what refers to them.
struct ServersCheck<'a, 'r> {
    reader: &'a mut SectionReader<'r>,
    catalog: &'a ServerCatalog,
    section: ServersSection,
}

impl<'r> ServersCheck<'_, 'r> {
    fn entry(&mut self) -> EntryReader<'_, 'r> {
        EntryReader { values: &mut self.reader.values }
    }
}

#[cfg(test)]
mod tests;
