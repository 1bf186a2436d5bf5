//! Which tools a query is about.

use catalog::{Sheet, Source};
use domain::{Code, Failure, outcome};

/// Where tools are wanted from.
#[derive(Debug, Clone, PartialEq, Eq)]
enum Origin {
    /// This service.
    BuiltIn,
    /// External servers, or the one with this id.
    Server(Option<String>),
}

/// What the query narrows the list to.
#[derive(Debug, Default)]
pub(super) struct Asked {
    toolset: Option<String>,
    origin: Option<Origin>,
}

impl Asked {
    /// Reads `toolset` and `source`: the latter is `built_in`, `server`, or `server:` and an id.
    pub(super) fn read(toolset: Option<&str>, source: Option<&str>, toolsets: &[&str]) -> Result<Asked, Failure> {
        if let Some(wanted) = toolset.filter(|wanted| !toolsets.contains(wanted)) {
            let failure = Failure::new(Code::UnknownToolset, "the tenant has no such toolset");
            return Err(failure.did_you_mean(outcome::near(wanted, toolsets.iter().copied())));
        }
        let origin = match source.map(|text| text.split_once(':').unwrap_or((text, ""))) {
            None => None,
            Some(("built_in", "")) => Some(Origin::BuiltIn),
            Some(("server", "")) => Some(Origin::Server(None)),
            Some(("server", id)) => Some(Origin::Server(Some(id.to_owned()))),
            Some(_) => {
                let failure = Failure::new(Code::InvalidRequest, "there is no such source");
                return Err(failure.next("use built_in, server, or server:ID"));
            }
        };
        Ok(Asked { toolset: toolset.map(str::to_owned), origin })
    }

    /// Whether a tool is asked for.
    pub(super) fn covers(&self, sheet: &Sheet<'_>) -> bool {
        let from = match sheet.source {
            Source::BuiltIn => None,
            Source::Server { id, .. } => Some(id.as_str()),
        };
        self.names(sheet.toolset, from)
    }

    /// Whether tools of this toolset from here, or from the server of this id, are asked for.
    pub(super) fn names(&self, toolset: &str, from: Option<&str>) -> bool {
        let of_set = self.toolset.as_deref().is_none_or(|wanted| wanted == toolset);
        of_set
            && match (&self.origin, from) {
                (None, _) | (Some(Origin::BuiltIn), None) | (Some(Origin::Server(None)), Some(_)) => true,
                (Some(Origin::Server(Some(wanted))), Some(id)) => wanted == id,
                (Some(Origin::BuiltIn), Some(_)) | (Some(Origin::Server(_)), None) => false,
            }
    }

    /// Names the list for its cursors, so that those of another list do not fit.
    pub(super) fn key(&self) -> Vec<u8> {
        format!("catalog {:?} {:?}", self.toolset, self.origin).into_bytes()
    }
}
