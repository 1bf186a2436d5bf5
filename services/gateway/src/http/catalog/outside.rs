//! Where tools of external servers stand between the server and the tenant.
//!
//! What is in the catalog was accepted; the standing also knows what waits. Only people who administer the tenant are
//! told of the latter, since its words are a stranger's and nobody has let them in yet.

use super::asked::CatalogFilter;
use crate::app::Gateway;
use crate::http::caller::{AuthedRequest, administers};
use crate::http::servers::waits;
use catalog::{ToolSheet, ToolSource};
use domain::{Effect, Failure};
use external::{PinState, ServerStanding, ToolStanding};
use serde::Serialize;

/// The standing of the tenant's servers, as far as whoever asks may know it.
pub(super) enum ServerStandings {
    /// For a person: all of it.
    All(Vec<ServerStanding>),
    /// For whoever uses tools: that what is in the catalog was accepted. Nothing is read, and no server waited for.
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
    /// Reads what this caller may know.
    pub(super) async fn look(gateway: &Gateway, known: &AuthedRequest) -> Result<ServerStandings, Failure> {
        match administers(known) {
            Ok(()) => gateway.upstreams.standing(&known.caller.tenant).await.map(ServerStandings::All),
            Err(_) => Ok(ServerStandings::Offered),
        }
    }

    /// Toolsets of servers, also of those of which nothing is accepted yet.
    pub(super) fn toolsets(&self) -> impl Iterator<Item = &str> {
        self.servers().iter().map(|server| server.toolset.as_str())
    }

    /// Where a tool of the catalog stands; nothing is said of those that are built in.
    pub(super) fn pin_of(&self, sheet: &ToolSheet<'_>) -> Option<PinState> {
        let ToolSource::Server { id, .. } = sheet.source else { return None };
        let ServerStandings::All(servers) = self else { return Some(PinState::Accepted) };
        let server = servers.iter().find(|server| server.id == *id)?;
        server.tools.iter().find(|tool| tool.name.as_deref() == Some(sheet.name)).map(|tool| tool.pin)
    }

    /// What waits to be accepted; `None` for whoever may not be told.
    pub(super) fn waiting(&self, asked: &CatalogFilter) -> Option<Vec<UnacceptedTool<'_>>> {
        let ServerStandings::All(servers) = self else { return None };
        let meant = servers.iter().filter(|server| asked.names(&server.toolset, Some(&server.id)));
        let tools = meant.flat_map(|server| server.tools.iter().map(move |tool| (server, tool)));
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
