//! `memory_search`: finds documents by words, in every scope the caller can read.
//!
//! The documents of a scope are few and bounded by quota, so they are ranked as they are read; an index of its own comes
//! with larger tenants.

use super::path::Scope;
use super::rank::{self, Hit};
use super::shape::{Kind, Origin, trust};
use super::{TOOLSET, memory, no_store, scope};
use catalog::{Progress, Tool, ToolSpec};
use domain::{Effect, Failure};
use policy::Permit;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use store::{Document, Store};

const SHOWN: usize = 6;

pub(super) struct Search {
    pub(super) store: Store,
}

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct Args {
    #[schemars(length(min = 1, max = 512))]
    query: String,
    #[schemars(extend("x-wire" = "plain"))]
    scope: Option<Scope>,
    #[serde(rename = "type")]
    #[schemars(extend("x-wire" = "plain"))]
    kind: Option<Kind>,
    #[schemars(range(min = 1, max = 20))]
    limit: Option<u8>,
}

#[derive(Debug, Serialize, JsonSchema)]
pub(super) struct Found {
    hits: Vec<Line>,
    /// How many documents were looked through.
    searched: usize,
    untrusted: bool,
}

#[derive(Debug, Serialize, JsonSchema)]
pub(super) struct Line {
    path: String,
    title: String,
    #[serde(rename = "type")]
    kind: String,
    trust: &'static str,
    score: f64,
    excerpt: String,
    version: u64,
    sha256: String,
    updated_at: String,
    provenance: Origin,
}

impl Tool for Search {
    const SPEC: ToolSpec = ToolSpec::new("memory_search", TOOLSET, Effect::Read)
        .says("Search memory", "Search notes and runbooks.")
        .idempotent()
        .closed_world();
    type Args = Args;
    type Output = Found;

    fn effect(_: &Args) -> Effect {
        Effect::Read
    }

    fn about(args: &Args) -> Option<String> {
        args.scope.map(|scope| scope.as_str().to_owned())
    }

    async fn run(&self, permit: &Permit, args: Args, _: &Progress) -> Result<Found, Failure> {
        let memory = memory(&self.store, permit);
        let mut documents: Vec<Document> = Vec::new();
        for whose in Scope::ALL.into_iter().filter(|s| args.scope.is_none_or(|wanted| wanted == *s)) {
            let key = match scope(permit, whose) {
                Ok(key) => key,
                // Asked for by name it is an error; among all three it only has nothing to add.
                Err(failure) if args.scope.is_some() => return Err(failure),
                Err(_) => continue,
            };
            documents.extend(memory.all(&key, whose.as_str()).await.map_err(|e| no_store(&e))?);
        }
        if let Some(kind) = args.kind {
            documents.retain(|document| document.kind == kind.as_str());
        }
        let now = self.store.now().await.map_err(|e| no_store(&e))?;
        let limit = args.limit.map_or(SHOWN, usize::from);
        let hits = rank::best(&documents, &args.query, now, limit);
        Ok(Found { hits: hits.into_iter().map(line).collect(), searched: documents.len(), untrusted: true })
    }
}

fn line(hit: Hit<'_>) -> Line {
    let d = hit.document;
    Line {
        path: d.path.clone(),
        title: d.title.clone(),
        kind: d.kind.clone(),
        trust: trust(d.trust),
        score: (hit.score * 1000.0).round() / 1000.0,
        excerpt: hit.excerpt,
        version: d.version,
        sha256: d.sha256.clone(),
        updated_at: d.updated_at.to_string(),
        provenance: Origin::of(d),
    }
}
