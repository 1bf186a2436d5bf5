//! What people do with a tenant's external servers, whichever door they come in by: the REST API and the console call these
//! and nothing else.
//!
//! Agents are offered only accepted definitions. Accepting names the digest of what was on the screen, so a definition that
//! changed in between is returned again instead of being accepted.

use crate::app::Gateway;
use crate::http::caller::{AuthedRequest, administers};
use domain::{Code, Failure};
use external::{PinState, ServerStanding, ToolStanding};
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::json;

/// How many tools one request may accept by name; more than a server may offer.
const MOST_TOOLS: usize = 256;

/// Every server, and where each of its tools stands.
pub(crate) async fn list(gateway: &Gateway, authed: &AuthedRequest) -> Result<Vec<ServerStanding>, Failure> {
    administers(authed)?;
    let mut servers = gateway.upstreams.standing(&authed.caller.tenant).await?;
    // Definitions are for whoever looks at one server; all of them together could be megabytes.
    for tool in servers.iter_mut().flat_map(|server| &mut server.tools) {
        (tool.definition, tool.difference) = (None, None);
        tool.accepted.iter_mut().for_each(|accepted| accepted.definition = None);
    }
    Ok(servers)
}

/// One server, with the definitions that wait and what changed in them.
pub(crate) async fn show(gateway: &Gateway, authed: &AuthedRequest, id: &str) -> Result<ServerStanding, Failure> {
    administers(authed)?;
    standing(gateway, authed, id).await
}

/// The server is asked for its list now.
pub(crate) async fn refresh(gateway: &Gateway, authed: &AuthedRequest, id: &str) -> Result<ServerStanding, Failure> {
    administers(authed)?;
    gateway.upstreams.relist(&authed.caller.tenant, id).await?;
    standing(gateway, authed, id).await
}

/// What a person accepts: single tools, or a whole list; each by the digest of what was shown.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct AcceptRequest {
    #[serde(default)]
    pub(crate) tools: Vec<SeenTool>,
    #[serde(default)]
    pub(crate) all: bool,
    #[serde(default)]
    pub(crate) list_digest: Option<String>,
}

/// One tool as it was seen: its name here or the server's own, and the digest of its definition.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct SeenTool {
    pub(crate) name: String,
    pub(crate) digest: String,
}

/// Accepts what was named, and tells which tools those are.
pub(crate) async fn accept(
    gateway: &Gateway,
    authed: &AuthedRequest,
    id: &str,
    accepting: &AcceptRequest,
) -> Result<Vec<String>, Failure> {
    administers(authed)?;
    match (accepting.tools.as_slice(), accepting.all, &accepting.list_digest) {
        ([], true, Some(digest)) => whole(gateway, authed, id, digest).await,
        (seen @ [_, ..], false, None) if seen.len() <= MOST_TOOLS => each(gateway, authed, id, seen).await,
        _ => {
            let message = "accepting names tools with their digests, or all of a list with its digest";
            let next = r#"send {"tools":[{"name":…,"digest":…}]} or {"all":true,"list_digest":…}"#;
            Err(Failure::new(Code::InvalidRequest, message).next(next))
        }
    }
}

/// Accepts everything that waits, if the list is still the one that was seen.
async fn whole(gateway: &Gateway, authed: &AuthedRequest, id: &str, digest: &str) -> Result<Vec<String>, Failure> {
    match gateway.upstreams.accept(&authed.caller.tenant, id, None, Some(digest), &authed.caller).await {
        Ok(accepted) => Ok(accepted.tools),
        Err(failure) if failure.code == Code::Conflict => {
            let server = standing(gateway, authed, id).await?;
            Err(moved(&server, |tool| waits(tool.pin), &[]))
        }
        Err(failure) => Err(failure),
    }
}

/// Accepts these tools. All are compared before the first is accepted; one that changes at that very moment is reported
/// together with those that are accepted by then.
async fn each(gateway: &Gateway, authed: &AuthedRequest, id: &str, seen: &[SeenTool]) -> Result<Vec<String>, Failure> {
    let changed = |tool: &ToolStanding| {
        seen.iter().any(|seen| is_called(tool, &seen.name) && tool.digest.as_deref() != Some(seen.digest.as_str()))
    };
    let server = standing(gateway, authed, id).await?;
    if let Some(unknown) = seen.iter().find(|seen| !server.tools.iter().any(|tool| is_called(tool, &seen.name))) {
        let near = server.tools.iter().map(|tool| tool.upstream_name.as_str());
        let failure = Failure::new(Code::NotFound, "the server has no such tool");
        return Err(failure.did_you_mean(domain::outcome::near(&unknown.name, near)));
    }
    if server.tools.iter().any(changed) {
        return Err(moved(&server, changed, &[]));
    }
    let mut accepted = Vec::new();
    for SeenTool { name, digest } in seen {
        match gateway.upstreams.accept(&authed.caller.tenant, id, Some(name), Some(digest), &authed.caller).await {
            Ok(now) => accepted.extend(now.tools),
            Err(failure) if failure.code == Code::Conflict => {
                return Err(moved(&standing(gateway, authed, id).await?, changed, &accepted));
            }
            Err(failure) if accepted.is_empty() => return Err(failure),
            Err(failure) => return Err(failure.details(json!({ "accepted": accepted }))),
        }
    }
    Ok(accepted)
}

/// The refusal of an acceptance that names an old definition: the current one.
fn moved(server: &ServerStanding, which: impl Fn(&ToolStanding) -> bool, accepted: &[String]) -> Failure {
    let tools: Vec<&ToolStanding> = server.tools.iter().filter(|tool| which(tool)).collect();
    Failure::new(Code::ToolChanged, "the server shows something else now than what was seen")
        .next("look at the difference, and accept its digest if it is right")
        .details(json!({ "list_digest": server.digest, "tools": tools, "accepted": accepted }))
}

/// Whether a person can accept it.
pub(crate) const fn waits(pin: PinState) -> bool {
    match pin {
        PinState::New | PinState::Changed => true,
        PinState::Accepted | PinState::Removed | PinState::Refused | PinState::NotAllowed => false,
    }
}

fn is_called(tool: &ToolStanding, name: &str) -> bool {
    tool.name.as_deref() == Some(name) || tool.upstream_name == name
}

async fn standing(gateway: &Gateway, authed: &AuthedRequest, id: &str) -> Result<ServerStanding, Failure> {
    let servers = gateway.upstreams.standing(&authed.caller.tenant).await?;
    let near = domain::outcome::near(id, servers.iter().map(|server| server.id.as_str()));
    servers.into_iter().find(|server| server.id == id).ok_or_else(|| {
        Failure::new(target::codes::SERVER_UNKNOWN, "the tenant has no external server of that name").did_you_mean(near)
    })
}
