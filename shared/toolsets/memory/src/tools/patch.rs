//! `memory_patch`: changes a document that is still the one the agent has read.

use super::args::PathText;
use super::room::shortened;
use super::shape::VersionOrigin;
use super::{MemoryDeps, STORED_TEXT, TOOLSET, effect};
use crate::documents::{DocPath, DocumentAuthor, Edit, PatchChange, trust};
use catalog::{ProbeResult, Progress, Tool, ToolPreview, ToolSpec};
use domain::{Code, Effect, Failure};
use policy::Permit;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use store::Document;

/// Characters of the difference that is told.
const TOLD: usize = 4_000;

pub(super) struct MemoryPatch(pub(super) MemoryDeps);

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct Args {
    #[schemars(with = "PathText")]
    path: DocPath,
    #[schemars(length(equal = 64), regex(pattern = r"^[0-9a-f]{64}$"))]
    if_sha256: String,
    #[schemars(length(min = 1, max = 20))]
    edits: Option<Vec<EditArgs>>,
    #[schemars(length(min = 1, max = 65_536))]
    diff: Option<String>,
    #[schemars(length(min = 1, max = 100_000))]
    content: Option<String>,
    #[schemars(length(min = 1, max = 2_000))]
    evidence: String,
}

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct EditArgs {
    #[serde(default)]
    #[schemars(length(max = 100_000))]
    find: String,
    #[serde(default)]
    #[schemars(length(max = 100_000))]
    replace: String,
}

#[derive(Debug, Serialize, JsonSchema)]
pub(super) struct MemoryPatchOutput {
    path: String,
    version: u64,
    sha256: String,
    diff: String,
    trust: &'static str,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    warnings: Vec<String>,
    untrusted: bool,
    #[serde(skip)]
    taints: bool,
}

impl Args {
    /// What changes; exactly one way of saying it.
    fn patch(&self) -> Result<crate::documents::DocumentPatch, Failure> {
        let edit = |edit: &EditArgs| Edit { find: edit.find.clone(), replace: edit.replace.clone() };
        let change = match (&self.edits, &self.diff, &self.content) {
            (Some(edits), None, None) => PatchChange::Edits(edits.iter().map(edit).collect()),
            (None, Some(diff), None) => PatchChange::Diff(diff.clone()),
            (None, None, Some(content)) => PatchChange::Content(content.clone()),
            (_, _, _) => {
                return Err(Failure::new(Code::InvalidArgument, "give exactly one of edits, diff and content")
                    .next("use edits for small changes, content to replace everything"));
            }
        };
        let (path, if_sha256, evidence) = (self.path.clone(), self.if_sha256.clone(), self.evidence.clone());
        Ok(crate::documents::DocumentPatch { path, if_sha256, evidence, change })
    }
}

impl Tool for MemoryPatch {
    const SPEC: ToolSpec = ToolSpec::new("memory_patch", TOOLSET, Effect::Change)
        .says("Change a document", "Edit a document: edits replace exact text, or diff is a unified diff.")
        .hint(
            "For agents that maintain runbooks; it changes only the text they have seen, and documents of the tenant \
             wait for a person like any other change.",
        )
        .idempotent()
        .closed_world();
    const PREFACE: Option<&'static str> = Some(STORED_TEXT);
    type Args = Args;
    type Output = MemoryPatchOutput;

    fn effect(args: &Args) -> Effect {
        effect(&args.path, Effect::Change)
    }

    fn about(args: &Args) -> Option<String> {
        Some(args.path.scope().as_str().to_owned())
    }

    fn taints(patched: &MemoryPatchOutput) -> bool {
        patched.taints
    }

    async fn preview(&self, permit: &Permit, args: &Args) -> Result<Option<ToolPreview>, Failure> {
        self.0.notebook.sketch_patch(&DocumentAuthor::of(permit), &args.patch()?).await.map(Some)
    }

    async fn probe(&self, permit: &Permit, args: &Args) -> ProbeResult {
        match self.0.notebook.carried(&DocumentAuthor::of(permit), &args.path).await {
            Ok(Some(found)) => ProbeResult::Done(serde_json::to_string(&patched(found)).ok()),
            Ok(None) => ProbeResult::NotDone,
            Err(_) => ProbeResult::Unknown,
        }
    }

    async fn run(&self, permit: &Permit, args: Args, _: &Progress) -> Result<MemoryPatchOutput, Failure> {
        let (author, patch) = (DocumentAuthor::of(permit), args.patch()?);
        let written = super::in_span("update_memory", self.0.notebook.patch(&author, &patch)).await?;
        let mut done = MemoryPatchOutput { warnings: written.warnings, ..patched(written.document) };
        if !written.changed {
            // What was there already changed nothing, whatever the version before it did.
            done.diff.clear();
        }
        Ok(done)
    }
}

fn patched(document: Document) -> MemoryPatchOutput {
    let taints = VersionOrigin::of(&document).taints();
    let Document { path, version, sha256, mut diff, .. } = document;
    shortened(&mut diff, TOLD);
    MemoryPatchOutput {
        path,
        version,
        sha256,
        diff,
        trust: trust(document.trust),
        warnings: Vec::new(),
        untrusted: true,
        taints,
    }
}
