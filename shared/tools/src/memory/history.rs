//! `memory_history`: the versions of a document, newest first.

use super::path::DocPath;
use super::shape::{Origin, trust};
use super::{TOOLSET, memory, no_store, scope};
use catalog::{Progress, Tool, ToolSpec};
use domain::{Code, Effect, Failure};
use policy::Permit;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use store::{Document, Store};

/// Versions in one answer; older ones are read by number with `memory_read`.
const SHOWN: usize = 10;

pub(super) struct History {
    pub(super) store: Store,
}

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct Args {
    path: DocPath,
}

#[derive(Debug, Serialize, JsonSchema)]
pub(super) struct Versions {
    path: String,
    versions: Vec<Line>,
    /// Older versions that are not shown.
    omitted: u64,
    untrusted: bool,
}

#[derive(Debug, Serialize, JsonSchema)]
pub(super) struct Line {
    version: u64,
    sha256: String,
    trust: &'static str,
    title: String,
    bytes: usize,
    evidence: String,
    provenance: Origin,
}

impl Line {
    fn of(document: Document) -> Line {
        Line {
            provenance: Origin::of(&document),
            version: document.version,
            sha256: document.sha256,
            trust: trust(document.trust),
            title: document.title,
            bytes: document.content.len(),
            evidence: document.evidence,
        }
    }
}

impl Tool for History {
    const SPEC: ToolSpec = ToolSpec::new("memory_history", TOOLSET, Effect::Read)
        .says("Versions of a document", "Versions of a document.")
        .idempotent()
        .closed_world();
    type Args = Args;
    type Output = Versions;

    fn effect(_: &Args) -> Effect {
        Effect::Read
    }

    fn about(args: &Args) -> Option<String> {
        Some(args.path.scope().as_str().to_owned())
    }

    async fn run(&self, permit: &Permit, args: Args, _: &Progress) -> Result<Versions, Failure> {
        let (memory, whose) = (memory(&self.store, permit), scope(permit, args.path.scope())?);
        let path = args.path.as_str();
        let versions = memory.history(&whose, path, SHOWN).await.map_err(|e| no_store(&e))?;
        match versions.last() {
            Some(oldest) => Ok(Versions {
                path: path.to_owned(),
                omitted: oldest.version.saturating_sub(1),
                versions: versions.into_iter().map(Line::of).collect(),
                untrusted: true,
            }),
            None => Err(Failure::new(Code::DocNotFound, format!("there is no such document at {path}"))
                .next("list with memory_list, or search with memory_search")),
        }
    }
}
