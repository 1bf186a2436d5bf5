//! Who we are on a server, what it is, and who works for it.

use crate::fault::header;
use crate::line::{MOST_BYTES, Take};
use crate::mask;
use crate::request::{Absent, Request};
use crate::server::Server;
use domain::{Code, Failure};
use serde::Deserialize;

/// Who we are on a server, and what it is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Who {
    /// The user the server takes us for.
    pub user: String,
    /// Whether it does not know us at all.
    pub anonymous: bool,
    /// The groups it puts us in.
    pub authorities: Vec<String>,
    /// Its version.
    pub version: Option<String>,
    /// Who works for it; `None` if we may not see them.
    pub agents: Option<Vec<Agent>>,
}

/// One that builds run on.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Agent {
    /// Its name.
    pub name: String,
    /// Whether it can be reached.
    pub online: bool,
    /// How many builds it runs at once.
    pub executors: u32,
    /// How many it runs now.
    pub busy: usize,
}

#[derive(Deserialize)]
struct Me {
    id: Option<String>,
}

#[derive(Deserialize)]
struct Identity {
    #[serde(default)]
    name: String,
    #[serde(default)]
    anonymous: bool,
    #[serde(default)]
    authorities: Vec<String>,
}

#[derive(Deserialize)]
struct Computers {
    #[serde(default)]
    computer: Vec<Computer>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Computer {
    #[serde(default)]
    display_name: String,
    #[serde(default)]
    offline: bool,
    #[serde(default)]
    num_executors: u32,
    #[serde(default)]
    executors: Vec<Executor>,
}

#[derive(Deserialize)]
struct Executor {
    #[serde(default)]
    idle: bool,
}

impl Server<'_> {
    /// Who we are there.
    pub async fn who(&self) -> Result<Who, Failure> {
        let request = Request::get("/whoAmI/api/json", "/whoAmI/api/json", Absent::Server);
        let answer = self.read(&request.tree("name,anonymous,authorities"), Take::Whole(MOST_BYTES)).await?;
        let version = header(&answer, "x-jenkins").map(mask::line);
        let identity: Identity = serde_json::from_slice(&answer.body).map_err(|_| crate::fault::not_jenkins())?;
        let me = Request::get("/me/api/json", "/me/api/json", Absent::Server).tree("id");
        let user = match self.read_json::<Me>(&me).await {
            Ok(me) => me.id.unwrap_or(identity.name),
            // Whoever is nobody has no page of its own.
            Err(failure) if matches!(failure.code, Code::Forbidden | Code::TargetUnreachable) => identity.name,
            Err(failure) => return Err(failure),
        };
        Ok(Who {
            user: mask::line(&user),
            anonymous: identity.anonymous,
            authorities: identity.authorities.iter().map(|authority| mask::line(authority)).collect(),
            version,
            agents: self.agents().await?,
        })
    }

    async fn agents(&self) -> Result<Option<Vec<Agent>>, Failure> {
        let request = Request::get("/computer/api/json", "/computer/api/json", Absent::Server);
        let tree = "computer[displayName,offline,numExecutors,executors[idle]]";
        match self.read_json::<Computers>(&request.tree(tree)).await {
            Ok(found) => Ok(Some(found.computer.into_iter().map(Agent::from).collect())),
            Err(failure) if failure.code == Code::Forbidden => Ok(None),
            Err(failure) => Err(failure),
        }
    }
}

impl From<Computer> for Agent {
    fn from(computer: Computer) -> Agent {
        Agent {
            name: mask::line(&computer.display_name),
            online: !computer.offline,
            executors: computer.num_executors,
            busy: computer.executors.iter().filter(|executor| !executor.idle).count(),
        }
    }
}
