//! `memory_remember`: keeps a document.
//!
//! A write to session scope touches nobody outside the session, so it counts as a read and runs at once; user and tenant
//! scope are changes, and a person is asked.

use super::args::{KindName, PathText};
use super::{MemoryDeps, TOOLSET, effect};
use crate::documents::{DocPath, DocumentAuthor, DocumentKind, DocumentWriteResult, Write, trust};
use catalog::{ProbeResult, Progress, Tool, ToolPreview, ToolSpec};
use domain::{Effect, Failure};
use policy::Permit;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use store::Document;

pub(super) struct Remember(pub(super) MemoryDeps);

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct Args {
    #[schemars(with = "PathText")]
    path: DocPath,
    #[serde(rename = "type")]
    #[schemars(with = "KindName")]
    kind: DocumentKind,
    #[schemars(length(min = 1, max = 100_000))]
    content: String,
    #[schemars(length(min = 1, max = 2_000))]
    evidence: String,
    #[schemars(length(min = 1, max = 240))]
    title: Option<String>,
    #[schemars(length(max = 16), inner(length(max = 63), regex(pattern = r"^[a-z0-9]([-a-z0-9]*[a-z0-9])?$")))]
    tags: Option<Vec<String>>,
    #[schemars(length(equal = 64), regex(pattern = r"^[0-9a-f]{64}$"))]
    if_sha256: Option<String>,
}

impl Args {
    fn write(&self) -> Write {
        Write {
            path: self.path.clone(),
            kind: self.kind,
            title: self.title.clone(),
            content: self.content.clone(),
            evidence: self.evidence.clone(),
            tags: self.tags.clone().unwrap_or_default(),
            if_sha256: self.if_sha256.clone(),
        }
    }
}

#[derive(Debug, Serialize, JsonSchema)]
pub(super) struct RememberOutput {
    path: String,
    version: u64,
    sha256: String,
    trust: &'static str,
    created: bool,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    warnings: Vec<String>,
}

impl Tool for Remember {
    const SPEC: ToolSpec = ToolSpec::new("memory_remember", TOOLSET, Effect::Change)
        .says(
            "Keep a document",
            "Save a document at path (session/, user/ or tenant/). evidence: how you know. if_sha256 is required to overwrite.",
        )
        .hint(
            "For agents that should learn from their work; notes of the session are kept at once, and what others \
             will read waits for a person, so somebody must have time for reviews.",
        )
        .idempotent()
        .closed_world();
    type Args = Args;
    type Output = RememberOutput;

    fn effect(args: &Args) -> Effect {
        effect(&args.path, Effect::Change)
    }

    fn about(args: &Args) -> Option<String> {
        Some(args.path.scope().as_str().to_owned())
    }

    async fn preview(&self, permit: &Permit, args: &Args) -> Result<Option<ToolPreview>, Failure> {
        self.0.notebook.sketch_write(&DocumentAuthor::of(permit), &args.write()).await.map(Some)
    }

    async fn probe(&self, permit: &Permit, args: &Args) -> ProbeResult {
        match self.0.notebook.carried(&DocumentAuthor::of(permit), &args.path).await {
            Ok(Some(found)) => ProbeResult::Done(serde_json::to_string(&kept(found)).ok()),
            Ok(None) => ProbeResult::NotDone,
            Err(_) => ProbeResult::Unknown,
        }
    }

    async fn run(&self, permit: &Permit, args: Args, _: &Progress) -> Result<RememberOutput, Failure> {
        let (author, write) = (DocumentAuthor::of(permit), args.write());
        let operation = if write.if_sha256.is_some() { "update_memory" } else { "create_memory" };
        let DocumentWriteResult { document, created, warnings, .. } =
            super::in_span(operation, self.0.notebook.write(&author, &write)).await?;
        Ok(RememberOutput { created, warnings, ..kept(document) })
    }
}

fn kept(document: Document) -> RememberOutput {
    let Document { path, version, sha256, .. } = document;
    RememberOutput { path, version, sha256, trust: trust(document.trust), created: version == 1, warnings: Vec::new() }
}
