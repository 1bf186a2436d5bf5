//! `memory_forget`: deletes a document, or removes the text of its versions for good.

use super::args::PathText;
use super::{MemoryDeps, TOOLSET, effect};
use crate::documents::{DocPath, DocumentAuthor, ForgetDepth, Forgotten};
use catalog::{ProbeResult, Progress, Tool, ToolPreview, ToolSpec};
use domain::{Code, Effect, Failure};
use policy::Permit;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

pub(super) struct ForgetTool(pub(super) MemoryDeps);

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct Args {
    #[schemars(with = "PathText")]
    path: DocPath,
    #[schemars(length(min = 1, max = 500))]
    reason: String,
    redact: Option<bool>,
    #[schemars(range(min = 1))]
    version: Option<u64>,
}

#[derive(Debug, Serialize, JsonSchema)]
pub(super) struct ForgetOutput {
    path: String,
    deleted: bool,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    redacted_versions: Vec<u64>,
}

impl Args {
    fn forget(&self) -> Result<crate::documents::ForgetRequest, Failure> {
        let extent = match (self.redact.unwrap_or(false), self.version) {
            (false, None) => ForgetDepth::Deleted,
            (true, None) => ForgetDepth::Everything,
            (true, Some(version)) => ForgetDepth::Version(version),
            (false, Some(_)) => {
                return Err(Failure::new(Code::InvalidArgument, "a single version can be redacted, not deleted")
                    .next("add redact=true, or leave version out"));
            }
        };
        Ok(crate::documents::ForgetRequest {
            path: self.path.clone(),
            reason: self.reason.clone(),
            extent,
            if_sha256: None,
        })
    }
}

impl Tool for ForgetTool {
    const SPEC: ToolSpec = ToolSpec::new("memory_forget", TOOLSET, Effect::Disrupt)
        .says("Forget a document", "Delete a document, or redact one version's text for good.")
        .hint(
            "For agents that tidy notes on request; redaction cannot be taken back, so leave it to people where \
             documents are evidence.",
        )
        .idempotent()
        .closed_world();
    type Args = Args;
    type Output = ForgetOutput;

    fn effect(args: &Args) -> Effect {
        effect(&args.path, Effect::Disrupt)
    }

    fn about(args: &Args) -> Option<String> {
        Some(args.path.scope().as_str().to_owned())
    }

    async fn preview(&self, permit: &Permit, args: &Args) -> Result<Option<ToolPreview>, Failure> {
        self.0.notebook.sketch_forget(&DocumentAuthor::of(permit), &args.forget()?).await.map(Some)
    }

    async fn probe(&self, permit: &Permit, args: &Args) -> ProbeResult {
        let Ok(forget) = args.forget() else { return ProbeResult::NotDone };
        match self.0.notebook.forgotten(&DocumentAuthor::of(permit), &forget).await {
            Ok(Some(done)) => ProbeResult::Done(serde_json::to_string(&left(done)).ok()),
            Ok(None) => ProbeResult::NotDone,
            Err(_) => ProbeResult::Unknown,
        }
    }

    async fn run(&self, permit: &Permit, args: Args, _: &Progress) -> Result<ForgetOutput, Failure> {
        let (author, forget) = (DocumentAuthor::of(permit), args.forget()?);
        super::in_span("delete_memory", self.0.notebook.forget(&author, &forget)).await.map(left)
    }
}

fn left(done: Forgotten) -> ForgetOutput {
    ForgetOutput { path: done.path, deleted: done.deleted, redacted_versions: done.redacted }
}
