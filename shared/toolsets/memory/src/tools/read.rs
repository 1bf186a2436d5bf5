//! `memory_read`: one document, or one of its versions; a long text in pages.
//!
//! A page names the version it is of, and versions do not change: what is put together from pages is one text.

use super::args::PathText;
use super::room::page_end;
use super::shape::{EvidenceRef, VersionOrigin};
use super::{MemoryDeps, STORED_TEXT, TOOLSET};
use crate::documents::{DocPath, DocumentReader, trust};
use catalog::{Progress, Tool, ToolSpec};
use domain::{Effect, Failure};
use policy::Permit;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use store::Document;
use target::cursor::Cursor;

pub(super) struct Read(pub(super) MemoryDeps);

#[derive(Debug, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct Args {
    #[schemars(with = "PathText")]
    path: DocPath,
    #[schemars(range(min = 1))]
    version: Option<u64>,
    cursor: Option<Cursor>,
}

/// Where the next page begins.
#[derive(Debug, Serialize, Deserialize)]
struct ReadPageToken {
    version: u64,
    at: usize,
}

#[derive(Debug, Serialize, JsonSchema)]
pub(super) struct ReadOutput {
    path: String,
    title: String,
    #[serde(rename = "type")]
    kind: String,
    tags: Vec<String>,
    trust: &'static str,
    version: u64,
    sha256: String,
    content: String,
    provenance: VersionOrigin,
    evidence: Vec<EvidenceRow>,
    /// What it was adopted from.
    #[serde(skip_serializing_if = "Option::is_none")]
    promotion: Option<CopiedFrom>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    findings: Vec<String>,
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    truncated: bool,
    /// Bytes of content behind this page.
    #[serde(skip_serializing_if = "Option::is_none")]
    omitted_bytes: Option<usize>,
    #[serde(skip_serializing_if = "Option::is_none")]
    next_cursor: Option<String>,
    untrusted: bool,
}

/// How the writer knows.
#[derive(Debug, Serialize, JsonSchema)]
pub(super) struct EvidenceRow {
    text: String,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    references: Vec<EvidenceRef>,
}

/// A version of another document.
#[derive(Debug, Serialize, JsonSchema)]
pub(super) struct CopiedFrom {
    path: String,
    version: u64,
    sha256: String,
}

impl Tool for Read {
    const SPEC: ToolSpec = ToolSpec::new("memory_read", TOOLSET, Effect::Read)
        .says("Read a document", "Read a document by path (scope/store/name).")
        .hint(
            "Goes together with `memory_search`, which shows only excerpts; without it runbooks cannot be followed to \
             their end.",
        )
        .idempotent()
        .closed_world();
    const PREFACE: Option<&'static str> = Some(STORED_TEXT);
    type Args = Args;
    type Output = ReadOutput;

    fn effect(_: &Args) -> Effect {
        Effect::Read
    }

    fn about(args: &Args) -> Option<String> {
        Some(args.path.scope().as_str().to_owned())
    }

    fn taints(text: &ReadOutput) -> bool {
        text.provenance.taints()
    }

    async fn run(&self, permit: &Permit, args: Args, _: &Progress) -> Result<ReadOutput, Failure> {
        let MemoryDeps { notebook, cursors } = &self.0;
        let spot = cursors.resume::<ReadPageToken>(permit, &args, args.cursor.as_ref())?;
        let version = spot.as_ref().map(|spot| spot.version).or(args.version);
        let reader = DocumentReader::of(permit);
        let document = super::in_span("search_memory", notebook.read(&reader, &args.path, version)).await?;
        let from = spot.map_or(0, |spot| spot.at);
        if !document.content.is_char_boundary(from) {
            return Err(Failure::new(target::codes::CURSOR_MISMATCH, "the cursor is not of this text")
                .next("call again without cursor"));
        }
        let end = page_end(&document.content, from);
        let next = (end < document.content.len()).then_some(ReadPageToken { version: document.version, at: end });
        let next_cursor = next.map(|spot| cursors.seal(permit, &args, &spot)).transpose()?;
        Ok(page(document, from, end, next_cursor))
    }
}

fn page(document: Document, from: usize, end: usize, next_cursor: Option<String>) -> ReadOutput {
    let left = document.content.len() - end;
    ReadOutput {
        provenance: VersionOrigin::of(&document),
        evidence: vec![EvidenceRow { references: EvidenceRef::of(&document), text: document.evidence }],
        promotion: document.source.map(|s| CopiedFrom { path: s.path, version: s.version, sha256: s.sha256 }),
        path: document.path,
        title: document.title,
        kind: document.kind,
        tags: document.tags,
        trust: trust(document.trust),
        version: document.version,
        sha256: document.sha256,
        content: document.content[from..end].to_owned(),
        findings: document.findings,
        truncated: left > 0,
        omitted_bytes: Some(left).filter(|left| *left > 0),
        next_cursor,
        untrusted: true,
    }
}
