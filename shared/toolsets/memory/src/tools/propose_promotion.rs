//! `memory_propose_promotion`: asks people to adopt a document into another store.
//!
//! The proposal is a run like any other, only that nobody is in a hurry: the call answers at once, people take their
//! time, and a no comes with a reason that the document's history shows. Running it is what approval brings about.

use super::args::PathText;
use super::{MemoryDeps, TOOLSET};
use crate::documents::{DocPath, DocumentAuthor, PromotionRequest, trust};
use crate::section::MemoryConfig;
use catalog::{ProbeResult, Progress, Tool, ToolPreview, ToolSpec};
use domain::{Effect, Failure};
use policy::Permit;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use store::Document;

pub(super) struct ProposePromotion(pub(super) MemoryDeps);

#[derive(Debug, Deserialize, Serialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct Args {
    #[schemars(with = "PathText")]
    path: DocPath,
    #[schemars(with = "PathText")]
    to: DocPath,
    #[schemars(length(min = 1, max = 500))]
    reason: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = 2_000))]
    evidence: Option<String>,
}

impl Args {
    fn promote(&self) -> PromotionRequest {
        let Args { path, to, reason, evidence } = self;
        PromotionRequest { path: path.clone(), to: to.clone(), reason: reason.clone(), evidence: evidence.clone() }
    }
}

#[derive(Debug, Serialize, JsonSchema)]
pub(super) struct PromotionOutput {
    path: String,
    version: u64,
    sha256: String,
    trust: &'static str,
}

impl Tool for ProposePromotion {
    const SPEC: ToolSpec = ToolSpec::new(crate::documents::PROMOTION_TOOL, TOOLSET, Effect::Change)
        .says("Propose a document", "Ask people to adopt a document into another store.")
        .hint(
            "For agents whose lessons should reach the whole tenant; people review at their own pace and may reject \
             it with a reason, so the agent must not wait for it.",
        )
        .idempotent()
        .closed_world()
        .reviewed(MemoryConfig::USUAL_REVIEW);
    type Args = Args;
    type Output = PromotionOutput;

    fn effect(_: &Args) -> Effect {
        Effect::Change
    }

    fn about(args: &Args) -> Option<String> {
        Some(args.to.scope().as_str().to_owned())
    }

    async fn preview(&self, permit: &Permit, args: &Args) -> Result<Option<ToolPreview>, Failure> {
        let preview = self.0.notebook.sketch_promote(&DocumentAuthor::of(permit), &args.promote()).await?;
        // The history of a document shows a proposal after it is over, and by then only this is left of it.
        let arguments = serde_json::to_string(args).ok();
        Ok(Some(ToolPreview { arguments, ..preview }))
    }

    async fn probe(&self, permit: &Permit, args: &Args) -> ProbeResult {
        match self.0.notebook.carried(&DocumentAuthor::of(permit), &args.to).await {
            Ok(Some(found)) => ProbeResult::Done(serde_json::to_string(&adopted(found)).ok()),
            Ok(None) => ProbeResult::NotDone,
            Err(_) => ProbeResult::Unknown,
        }
    }

    async fn run(&self, permit: &Permit, args: Args, _: &Progress) -> Result<PromotionOutput, Failure> {
        let (author, promote) = (DocumentAuthor::of(permit), args.promote());
        let written = super::in_span("upsert_memory", self.0.notebook.promote(&author, &promote)).await?;
        Ok(adopted(written.document))
    }
}

fn adopted(document: Document) -> PromotionOutput {
    let Document { path, version, sha256, .. } = document;
    PromotionOutput { path, version, sha256, trust: trust(document.trust) }
}
