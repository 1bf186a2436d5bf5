//! The Jenkins toolset: looking at jobs and builds, starting and stopping them, through the remote API.
//!
//! Reading order: the small values a call is made of (`grammar`, `parameters`), what every answer has in common
//! (`reply`, `pages`), what an approver is shown of a change (`preview`), how a lost answer is settled (`patience`).
//! Then one file for each tool.
//!
//! Not here: requests, credentials, crumbs and masking (see `jenkins`), and who may call what (see `policy`).

mod grammar;
mod pages;
mod parameters;
mod patience;
mod preview;
mod reply;

mod build;
mod job;
mod jobs;
mod log;
mod queue;
mod whoami;

mod replay;
mod stop;
mod trigger;
mod update_build;

use crate::client::{JenkinsServers, PermittedServer};
use catalog::validate::BadSchema;
use catalog::{CatalogEntry, CompiledTools, TargetNames, Tool};
use domain::Failure;
use patience::FirstLooks;
use policy::Permit;
use std::sync::Arc;
use target::cursor::Cursors;
use target::grammar::Label;

/// The name of the toolset.
pub const TOOLSET: &str = "jenkins";
/// The argument that is listed only where there is a choice.
const SERVER: &str = "server";

/// What its tools reach.
#[derive(Debug, Clone)]
pub struct JenkinsDeps {
    /// All servers; a tool gets those of its permit's tenant.
    pub servers: JenkinsServers,
    /// Where long results go on, and the clock.
    pub cursors: Cursors,
}

impl JenkinsDeps {
    /// The server a call means.
    fn server<'p>(&self, permit: &'p Permit, name: Option<&Label>) -> Result<PermittedServer<'p>, Failure> {
        self.servers.of(permit, name.map(Label::as_str))
    }
}

/// Its tools, read list first. With one server the argument that names it is not listed; it is understood either way.
pub fn list(
    kit: &JenkinsDeps,
    shapes: &CompiledTools,
    many_servers: bool,
) -> Result<Vec<Arc<CatalogEntry>>, BadSchema> {
    let listed = JenkinsToolList { shapes, servers: &kit.servers, many_servers };
    let (kit, patience) = (|| kit.clone(), FirstLooks::default);
    Ok(vec![
        listed.entry(jobs::Jobs { kit: kit() })?,
        listed.entry(job::OneJob { kit: kit() })?,
        listed.entry(build::OneBuild { kit: kit() })?,
        listed.entry(log::Log { kit: kit() })?,
        listed.entry(queue::QueueTool { kit: kit() })?,
        listed.entry(whoami::Whoami { kit: kit() })?,
        listed.entry(trigger::TriggerTool { kit: kit(), patience: patience() })?,
        listed.entry(stop::Stop { kit: kit(), patience: patience() })?,
        listed.entry(replay::Replay { kit: kit() })?,
        listed.entry(update_build::UpdateBuild { kit: kit(), patience: patience() })?,
    ])
}

/// How the tools are listed for one tenant.
struct JenkinsToolList<'a> {
    shapes: &'a CompiledTools,
    servers: &'a JenkinsServers,
    many_servers: bool,
}

impl JenkinsToolList<'_> {
    fn entry<T: Tool>(&self, tool: T) -> Result<Arc<CatalogEntry>, BadSchema> {
        let entry =
            if self.many_servers { self.shapes.entry(tool)? } else { self.shapes.entry_without(tool, SERVER)? };
        let servers = self.servers.clone();
        let name = move |named: Option<&str>| servers.meant(named).map(|name| format!("jenkins/{name}"));
        Ok(Arc::new(entry.aimed_at(TargetNames { argument: SERVER, name: Arc::new(name) })))
    }
}

#[cfg(test)]
mod tests;
