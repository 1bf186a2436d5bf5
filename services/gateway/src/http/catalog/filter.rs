//! Which tools a query is about.

use catalog::{ToolSheet, ToolSource};
use domain::{Code, Failure, outcome};

/// Where tools come from.
#[derive(Debug, Clone, PartialEq, Eq)]
enum ToolOriginFilter {
    /// This service.
    BuiltIn,
    /// External servers, or the one with this id.
    Server(Option<String>),
}

/// What the query narrows the list to.
#[derive(Debug, Default)]
pub(super) struct CatalogFilter {
    toolset: Option<String>,
    origin: Option<ToolOriginFilter>,
}

impl CatalogFilter {
    /// Reads `toolset` and `source`: the latter is `built_in`, `server`, or `server:` and an id.
    pub(super) fn read(
        toolset: Option<&str>,
        source: Option<&str>,
        toolsets: &[&str],
    ) -> Result<CatalogFilter, Failure> {
        if let Some(unknown) = toolset.filter(|name| !toolsets.contains(name)) {
            let failure = Failure::new(Code::UnknownToolset, "the tenant has no such toolset");
            return Err(failure.did_you_mean(outcome::near(unknown, toolsets.iter().copied())));
        }
        let origin = match source.map(|text| text.split_once(':').unwrap_or((text, ""))) {
            None => None,
            Some(("built_in", "")) => Some(ToolOriginFilter::BuiltIn),
            Some(("server", "")) => Some(ToolOriginFilter::Server(None)),
            Some(("server", id)) => Some(ToolOriginFilter::Server(Some(id.to_owned()))),
            Some(_) => {
                let failure = Failure::new(Code::InvalidRequest, "there is no such source");
                return Err(failure.next("use built_in, server, or server:ID"));
            }
        };
        Ok(CatalogFilter { toolset: toolset.map(str::to_owned), origin })
    }

    /// Whether a tool passes the filter.
    pub(super) fn covers(&self, sheet: &ToolSheet<'_>) -> bool {
        let from = match sheet.source {
            ToolSource::BuiltIn => None,
            ToolSource::Server { id, .. } => Some(id.as_str()),
        };
        self.names(sheet.toolset, from)
    }

    /// Whether tools of this toolset, built in or from the server with this id, pass the filter.
    pub(super) fn names(&self, toolset: &str, from: Option<&str>) -> bool {
        let of_set = self.toolset.as_deref().is_none_or(|name| name == toolset);
        of_set
            && match (&self.origin, from) {
                (None, _)
                | (Some(ToolOriginFilter::BuiltIn), None)
                | (Some(ToolOriginFilter::Server(None)), Some(_)) => true,
                (Some(ToolOriginFilter::Server(Some(server))), Some(id)) => server == id,
                (Some(ToolOriginFilter::BuiltIn), Some(_)) | (Some(ToolOriginFilter::Server(_)), None) => false,
            }
    }

    /// Names the list for its cursors, so that those of another list do not fit.
    pub(super) fn key(&self) -> Vec<u8> {
        format!("catalog {:?} {:?}", self.toolset, self.origin).into_bytes()
    }
}
