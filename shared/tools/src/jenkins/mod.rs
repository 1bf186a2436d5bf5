//! The Jenkins toolset: looking at jobs and builds, starting and stopping them, through the remote API.
//!
//! Reading order: the small values a call is made of (`grammar`, `parameters`), what every answer has in common
//! (`reply`, `pages`), what an approver is shown of a change (`sheet`), how a lost answer is settled (`patience`).
//! Then one file for each tool.
//!
//! Not here: requests, credentials, crumbs and masking (see `jenkins`), and who may call what (see `policy`).

mod grammar;
mod pages;
mod parameters;
mod patience;
mod reply;
mod sheet;

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

use crate::cursor::Cursors;
use crate::grammar::Label;
use catalog::validate::BadSchema;
use catalog::{Entry, Tool};
use domain::Failure;
use jenkins::{Server, Servers};
use patience::Patience;
use policy::Permit;
use std::sync::Arc;

/// The name of the toolset.
pub const TOOLSET: &str = "jenkins";
/// The argument that is listed only where there is a choice.
const SERVER: &str = "server";

/// What its tools reach.
#[derive(Debug, Clone)]
pub struct JenkinsKit {
    /// All servers; a tool gets those of its permit's tenant.
    pub servers: Servers,
    /// Where long results go on, and the clock.
    pub cursors: Cursors,
}

impl JenkinsKit {
    /// The server a call means.
    fn server<'p>(&self, permit: &'p Permit, name: Option<&Label>) -> Result<Server<'p>, Failure> {
        self.servers.of(permit, name.map(Label::as_str))
    }
}

/// Its tools, read list first. With one server the argument that names it is not listed; it is understood either way.
pub fn list(kit: &JenkinsKit, many_servers: bool) -> Result<Vec<Arc<Entry>>, BadSchema> {
    let (kit, patience) = (|| kit.clone(), Patience::default);
    Ok(vec![
        entry(jobs::Jobs { kit: kit() }, many_servers)?,
        entry(job::OneJob { kit: kit() }, many_servers)?,
        entry(build::OneBuild { kit: kit() }, many_servers)?,
        entry(log::Log { kit: kit() }, many_servers)?,
        entry(queue::Queue { kit: kit() }, many_servers)?,
        entry(whoami::Whoami { kit: kit() }, many_servers)?,
        entry(trigger::Trigger { kit: kit(), patience: patience() }, many_servers)?,
        entry(stop::Stop { kit: kit(), patience: patience() }, many_servers)?,
        entry(replay::Replay { kit: kit() }, many_servers)?,
        entry(update_build::UpdateBuild { kit: kit(), patience: patience() }, many_servers)?,
    ])
}

fn entry<T: Tool>(tool: T, many_servers: bool) -> Result<Arc<Entry>, BadSchema> {
    let whole = Entry::of(tool)?;
    Ok(Arc::new(if many_servers { whole } else { whole.without_argument(SERVER) }))
}

#[cfg(test)]
mod tests;
