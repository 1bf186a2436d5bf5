//! `memory_forget`: deletes a document, or removes the text of its versions for good.

use super::args::PathText;
use super::{MemoryKit, TOOLSET, drawn, effect};
use ::memory::{Author, DocPath, Forgotten, Gone};
use catalog::{Drawn, Probe, Progress, Tool, ToolSpec};
use domain::{Code, Effect, Failure};
use policy::Permit;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

pub(super) struct Forget(pub(super) MemoryKit);

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
pub(super) struct Left {
    path: String,
    deleted: bool,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    redacted_versions: Vec<u64>,
}

impl Args {
    fn forget(&self) -> Result<::memory::Forget, Failure> {
        let extent = match (self.redact.unwrap_or(false), self.version) {
            (false, None) => Gone::Deleted,
            (true, None) => Gone::Everything,
            (true, Some(version)) => Gone::Version(version),
            (false, Some(_)) => {
                return Err(Failure::new(Code::InvalidArgument, "a single version can be redacted, not deleted")
                    .next("add redact=true, or leave version out"));
            }
        };
        Ok(::memory::Forget { path: self.path.clone(), reason: self.reason.clone(), extent, if_sha256: None })
    }
}

impl Tool for Forget {
    const SPEC: ToolSpec = ToolSpec::new("memory_forget", TOOLSET, Effect::Disrupt)
        .says("Forget a document", "Delete a document, or redact one version's text for good.")
        .hint(
            "For agents that tidy notes on request; redaction cannot be taken back, so leave it to people where \
             documents are evidence.",
        )
        .idempotent()
        .closed_world();
    type Args = Args;
    type Output = Left;

    fn effect(args: &Args) -> Effect {
        effect(&args.path, Effect::Disrupt)
    }

    fn about(args: &Args) -> Option<String> {
        Some(args.path.scope().as_str().to_owned())
    }

    async fn preview(&self, permit: &Permit, args: &Args) -> Result<Option<Drawn>, Failure> {
        self.0.notebook.sketch_forget(&Author::of(permit), &args.forget()?).await.map(|sketch| Some(drawn(sketch)))
    }

    async fn probe(&self, permit: &Permit, args: &Args) -> Probe {
        let Ok(forget) = args.forget() else { return Probe::NotDone };
        match self.0.notebook.forgotten(&Author::of(permit), &forget).await {
            Ok(Some(done)) => Probe::Done(serde_json::to_string(&left(done)).ok()),
            Ok(None) => Probe::NotDone,
            Err(_) => Probe::Unknown,
        }
    }

    async fn run(&self, permit: &Permit, args: Args, _: &Progress) -> Result<Left, Failure> {
        self.0.notebook.forget(&Author::of(permit), &args.forget()?).await.map(left)
    }
}

fn left(done: Forgotten) -> Left {
    Left { path: done.path, deleted: done.deleted, redacted_versions: done.redacted }
}
