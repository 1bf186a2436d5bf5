//! Where tools of external servers stand between the server and the tenant.
//!
//! What is in the catalog was accepted; the standing also knows what waits. Only people who administer the tenant are
//! told of the latter, since its words are a stranger's and nobody has let them in yet.

use super::asked::Asked;
use crate::app::Gateway;
use crate::http::caller::{Known, administers};
use crate::http::servers::waits;
use catalog::{Sheet, Source};
use domain::{Effect, Failure};
use serde::Serialize;
use upstream::{PinState, ServerStanding, ToolStanding};

/// The standing of the tenant's servers, as far as whoever asks may know it.
pub(super) enum Outside {
    /// For a person: all of it.
    All(Vec<ServerStanding>),
    /// For whoever uses tools: that what is in the catalog was accepted. Nothing is read, and no server waited for.
    Offered,
}

/// A tool that nobody has accepted as it is.
#[derive(Debug, Serialize)]
pub(super) struct Waiting<'a> {
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

impl Outside {
    /// Reads what this caller may know.
    pub(super) async fn look(gateway: &Gateway, known: &Known) -> Result<Outside, Failure> {
        match administers(known) {
            Ok(()) => gateway.upstreams.standing(&known.caller.tenant).await.map(Outside::All),
            Err(_) => Ok(Outside::Offered),
        }
    }

    /// Toolsets of servers, also of those of which nothing is accepted yet.
    pub(super) fn toolsets(&self) -> impl Iterator<Item = &str> {
        self.servers().iter().map(|server| server.toolset.as_str())
    }

    /// Where a tool of the catalog stands; nothing is said of those that are built in.
    pub(super) fn pin_of(&self, sheet: &Sheet<'_>) -> Option<PinState> {
        let Source::Server { id, .. } = sheet.source else { return None };
        let Outside::All(servers) = self else { return Some(PinState::Accepted) };
        let server = servers.iter().find(|server| server.id == *id)?;
        server.tools.iter().find(|tool| tool.name.as_deref() == Some(sheet.name)).map(|tool| tool.pin)
    }

    /// What waits to be accepted; `None` for whoever may not be told.
    pub(super) fn waiting(&self, asked: &Asked) -> Option<Vec<Waiting<'_>>> {
        let Outside::All(servers) = self else { return None };
        let meant = servers.iter().filter(|server| asked.names(&server.toolset, Some(&server.id)));
        let tools = meant.flat_map(|server| server.tools.iter().map(move |tool| (server, tool)));
        Some(tools.filter(|(_, tool)| waits(tool.pin)).map(|(server, tool)| Waiting::of(server, tool)).collect())
    }

    fn servers(&self) -> &[ServerStanding] {
        match self {
            Outside::All(servers) => servers,
            Outside::Offered => &[],
        }
    }
}

impl<'a> Waiting<'a> {
    fn of(server: &'a ServerStanding, tool: &'a ToolStanding) -> Waiting<'a> {
        Waiting {
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
