//! Who we are on a server, what it is, and who works for it.

use crate::client::connection::{BodyLimit, MOST_BYTES};
use crate::client::fault::header;
use crate::client::mask;
use crate::client::request::{MissingSubject, ServerRequest};
use crate::client::server::PermittedServer;
use domain::Failure;
use serde::Deserialize;

/// Who we are on a server, and what it is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct JenkinsUser {
    /// The user the server takes us for.
    pub user: String,
    /// Whether it does not know us at all.
    pub anonymous: bool,
    /// The groups it puts us in.
    pub authorities: Vec<String>,
    /// Its version.
    pub version: Option<String>,
    /// Who works for it; `None` if we may not see them.
    pub agents: Option<Vec<BuildAgent>>,
}

/// One that builds run on.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BuildAgent {
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
struct MeBody {
    id: Option<String>,
}

#[derive(Deserialize)]
struct IdentityBody {
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
    executors: Vec<ExecutorBody>,
}

#[derive(Deserialize)]
struct ExecutorBody {
    #[serde(default)]
    idle: bool,
}

impl PermittedServer<'_> {
    /// Who we are there.
    pub async fn who(&self) -> Result<JenkinsUser, Failure> {
        let request = ServerRequest::get("/whoAmI/api/json", "/whoAmI/api/json", MissingSubject::Server);
        let answer = self.read(&request.tree("name,anonymous,authorities"), BodyLimit::Whole(MOST_BYTES)).await?;
        let version = header(&answer, "x-jenkins").map(mask::line);
        let identity: IdentityBody =
            serde_json::from_slice(&answer.body).map_err(|_| crate::client::fault::not_jenkins())?;
        let me = ServerRequest::get("/me/api/json", "/me/api/json", MissingSubject::Server).tree("id");
        let user = match self.read_json::<MeBody>(&me).await {
            Ok(me) => me.id.unwrap_or(identity.name),
            // Whoever is nobody has no page of its own.
            Err(failure) if matches!(failure.code, target::codes::FORBIDDEN | target::codes::TARGET_UNREACHABLE) => {
                identity.name
            }
            Err(failure) => return Err(failure),
        };
        Ok(JenkinsUser {
            user: mask::line(&user),
            anonymous: identity.anonymous,
            authorities: identity.authorities.iter().map(|authority| mask::line(authority)).collect(),
            version,
            agents: self.agents().await?,
        })
    }

    async fn agents(&self) -> Result<Option<Vec<BuildAgent>>, Failure> {
        let request = ServerRequest::get("/computer/api/json", "/computer/api/json", MissingSubject::Server);
        let tree = "computer[displayName,offline,numExecutors,executors[idle]]";
        match self.read_json::<Computers>(&request.tree(tree)).await {
            Ok(found) => Ok(Some(found.computer.into_iter().map(BuildAgent::from).collect())),
            Err(failure) if failure.code == target::codes::FORBIDDEN => Ok(None),
            Err(failure) => Err(failure),
        }
    }
}

impl From<Computer> for BuildAgent {
    fn from(computer: Computer) -> BuildAgent {
        BuildAgent {
            name: mask::line(&computer.display_name),
            online: !computer.offline,
            executors: computer.num_executors,
            busy: computer.executors.iter().filter(|executor| !executor.idle).count(),
        }
    }
}
