//! `memory_read`: one document, whole, marked as data with its origin.

use super::path::DocPath;
use super::shape::{Origin, trust};
use super::{TOOLSET, memory, no_store, scope};
use catalog::{Progress, Tool, ToolSpec};
use domain::outcome::near;
use domain::{Code, Effect, Failure};
use policy::Permit;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use store::Store;

/// How many versions back are looked through for one that is asked for by number.
const BACK: usize = 1_000;

pub(super) struct Read {
    pub(super) store: Store,
}

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct Args {
    path: DocPath,
    #[schemars(range(min = 1))]
    version: Option<u64>,
}

#[derive(Debug, Serialize, JsonSchema)]
pub(super) struct Found {
    path: String,
    title: String,
    #[serde(rename = "type")]
    kind: String,
    tags: Vec<String>,
    trust: &'static str,
    version: u64,
    sha256: String,
    content: String,
    evidence: String,
    provenance: Origin,
    untrusted: bool,
}

impl Tool for Read {
    const SPEC: ToolSpec = ToolSpec::new("memory_read", TOOLSET, Effect::Read)
        .says("Read a document", "Read a document by path (scope/store/name).")
        .idempotent()
        .closed_world();
    type Args = Args;
    type Output = Found;

    fn effect(_: &Args) -> Effect {
        Effect::Read
    }

    fn about(args: &Args) -> Option<String> {
        Some(args.path.scope().as_str().to_owned())
    }

    async fn run(&self, permit: &Permit, args: Args, _: &Progress) -> Result<Found, Failure> {
        let (memory, whose) = (memory(&self.store, permit), scope(permit, args.path.scope())?);
        let path = args.path.as_str();
        let current = memory.get(&whose, path).await.map_err(|e| no_store(&e))?;
        let document = match (current, args.version) {
            (Some(document), None) => Some(document),
            (Some(document), Some(version)) if document.version == version => Some(document),
            (Some(_), Some(version)) => {
                let history = memory.history(&whose, path, BACK).await.map_err(|e| no_store(&e))?;
                history.into_iter().find(|document| document.version == version)
            }
            (None, _) => None,
        };
        match document {
            Some(d) => Ok(Found {
                provenance: Origin::of(&d),
                path: d.path,
                title: d.title,
                kind: d.kind,
                tags: d.tags,
                trust: trust(d.trust),
                version: d.version,
                sha256: d.sha256,
                content: d.content,
                evidence: d.evidence,
                untrusted: true,
            }),
            None => {
                let known = memory.list(&whose, args.path.scope().as_str()).await.map_err(|e| no_store(&e))?;
                Err(Failure::new(Code::DocNotFound, format!("there is no such document at {path}"))
                    .next("list with memory_list, or search with memory_search")
                    .did_you_mean(near(path, known.iter().map(|head| head.path.as_str()))))
            }
        }
    }
}
