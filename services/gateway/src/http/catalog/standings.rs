//! Where tools of external servers stand between the server and the tenant.
//!
//! The catalog has only accepted tools; the standing also has those that wait. Only administrators of the tenant see the
//! latter, since nobody has accepted their text yet.

use super::filter::CatalogFilter;
use crate::app::Gateway;
use crate::http::caller::{AuthedRequest, administers};
use crate::server_desk::waits;
use catalog::{ToolSheet, ToolSource};
use domain::{Effect, Failure};
use external::{PinState, ServerStanding, ToolStanding};
use serde::Serialize;

/// The standing of the tenant's servers, as far as the caller may see it.
pub(super) enum ServerStandings {
    /// For a person: all of it.
    All(Vec<ServerStanding>),
    /// For callers of tools: everything in the catalog was accepted. Nothing is read, and no server is asked.
    Offered,
}

/// A tool that nobody has accepted as it is.
#[derive(Debug, Serialize)]
pub(super) struct UnacceptedTool<'a> {
    server: &'a str,
    toolset: &'a str,
    tool: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    name: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    effect: Option<Effect>,
    pin: PinState,
    #[serde(skip_serializing_if = "Option::is_none")]
    digest: Option<&'a str>,
}

impl ServerStandings {
    /// Reads what this caller may see.
    pub(super) async fn read(gateway: &Gateway, authed: &AuthedRequest) -> Result<ServerStandings, Failure> {
        match administers(authed) {
            Ok(()) => gateway.upstreams.standing(&authed.caller.tenant).await.map(ServerStandings::All),
            Err(_) => Ok(ServerStandings::Offered),
        }
    }

    /// Toolsets of servers, also of those of which nothing is accepted yet.
    pub(super) fn toolsets(&self) -> impl Iterator<Item = &str> {
        self.servers().iter().map(|server| server.toolset.as_str())
    }

    /// The pin of a tool of the catalog; built-in tools have none.
    pub(super) fn pin_of(&self, sheet: &ToolSheet<'_>) -> Option<PinState> {
        let ToolSource::Server { id, .. } = sheet.source else { return None };
        let ServerStandings::All(servers) = self else { return Some(PinState::Accepted) };
        let server = servers.iter().find(|server| server.id == *id)?;
        server.tools.iter().find(|tool| tool.name.as_deref() == Some(sheet.name)).map(|tool| tool.pin)
    }

    /// The tools that wait to be accepted; `None` for callers who may not see them.
    pub(super) fn waiting(&self, filter: &CatalogFilter) -> Option<Vec<UnacceptedTool<'_>>> {
        let ServerStandings::All(servers) = self else { return None };
        let matching = servers.iter().filter(|server| filter.names(&server.toolset, Some(&server.id)));
        let tools = matching.flat_map(|server| server.tools.iter().map(move |tool| (server, tool)));
        Some(tools.filter(|(_, tool)| waits(tool.pin)).map(|(server, tool)| UnacceptedTool::of(server, tool)).collect())
    }

    fn servers(&self) -> &[ServerStanding] {
        match self {
            ServerStandings::All(servers) => servers,
            ServerStandings::Offered => &[],
        }
    }
}

impl<'a> UnacceptedTool<'a> {
    fn of(server: &'a ServerStanding, tool: &'a ToolStanding) -> UnacceptedTool<'a> {
        UnacceptedTool {
            server: &server.id,
            toolset: &server.toolset,
            tool: &tool.upstream_name,
            name: tool.name.as_deref(),
            effect: tool.effect,
            pin: tool.pin,
            digest: tool.digest.as_deref(),
        }
    }
}
