//! `memory_history`: the versions of a document, newest first, and what became of proposals to adopt it.

use super::args::PathText;
use super::room::{fitting, shortened};
use super::shape::VersionOrigin;
use super::{MemoryDeps, STORED_TEXT, TOOLSET};
use crate::documents::{DocPath, DocumentReader, Promotion, op, trust};
use catalog::{Progress, Tool, ToolSpec};
use domain::{Effect, Failure};
use policy::Permit;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use store::Document;
use target::cursor::Cursor;
use target::reply::{ROOM, size_of};

/// Versions on one page.
const SHOWN: usize = 10;
/// What proposals may take of an answer.
const PROMOTIONS_ROOM: usize = 4 * 1024;

pub(super) struct HistoryTool(pub(super) MemoryDeps);

#[derive(Debug, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct Args {
    #[schemars(with = "PathText")]
    path: DocPath,
    cursor: Option<Cursor>,
}

#[derive(Debug, Serialize, JsonSchema)]
pub(super) struct MemoryHistoryOutput {
    path: String,
    versions: Vec<VersionRow>,
    promotions: Vec<Proposal>,
    #[serde(skip_serializing_if = "Option::is_none")]
    next_cursor: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    hint: Option<&'static str>,
    untrusted: bool,
}

#[derive(Debug, Serialize, JsonSchema)]
pub(super) struct VersionRow {
    version: u64,
    op: &'static str,
    sha256: String,
    trust: &'static str,
    title: String,
    bytes: usize,
    actor: String,
    at: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    run: Option<String>,
    evidence: String,
    diff: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    redacted: Option<ForgottenRow>,
    provenance: VersionOrigin,
}

/// Who took a text away.
#[derive(Debug, Serialize, JsonSchema)]
pub(super) struct ForgottenRow {
    by: String,
    at: String,
    reason: String,
}

#[derive(Debug, Serialize, JsonSchema)]
pub(super) struct Proposal {
    from: String,
    to: String,
    state: &'static str,
    run: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    reason: Option<String>,
}

impl Tool for HistoryTool {
    const SPEC: ToolSpec = ToolSpec::new("memory_history", TOOLSET, Effect::Read)
        .says("Versions of a document", "Versions of a document.")
        .hint(
            "For agents that review or restore documents; it shows who wrote each version, and texts that were \
             redacted stay redacted.",
        )
        .idempotent()
        .closed_world();
    const PREFACE: Option<&'static str> = Some(STORED_TEXT);
    type Args = Args;
    type Output = MemoryHistoryOutput;

    fn effect(_: &Args) -> Effect {
        Effect::Read
    }

    fn about(args: &Args) -> Option<String> {
        Some(args.path.scope().as_str().to_owned())
    }

    fn taints(versions: &MemoryHistoryOutput) -> bool {
        versions.versions.iter().any(|version| version.provenance.taints())
    }

    async fn run(&self, permit: &Permit, args: Args, _: &Progress) -> Result<MemoryHistoryOutput, Failure> {
        let MemoryDeps { notebook, cursors } = &self.0;
        let before = cursors.resume::<u64>(permit, &args, args.cursor.as_ref())?;
        let reader = DocumentReader::of(permit);
        let past = super::in_span("search_memory", notebook.history(&reader, &args.path, before, SHOWN)).await?;
        let mut promotions: Vec<Proposal> = past.promotions.into_iter().map(proposal).collect();
        promotions.truncate(fitting(&promotions, PROMOTIONS_ROOM));
        let (mut versions, mut next) = (past.versions.into_iter().map(line).collect::<Vec<_>>(), past.next);
        let room = ROOM - size_of(&promotions);
        let whole = size_of(&versions) <= room;
        for chars in [2_000, 600, 150] {
            if size_of(&versions) > room {
                versions.iter_mut().for_each(|line| line.shorten(chars));
            }
        }
        let fit = fitting(&versions, room).max(1);
        if fit < versions.len() {
            versions.truncate(fit);
            next = versions.last().map(|line| line.version);
        }
        let next_cursor = next.map(|next| cursors.seal(permit, &args, &next)).transpose()?;
        let hint = (!whole).then_some("long differences are cut; memory_read with version shows a text whole");
        Ok(MemoryHistoryOutput {
            path: args.path.as_str().to_owned(),
            versions,
            promotions,
            next_cursor,
            hint,
            untrusted: true,
        })
    }
}

impl VersionRow {
    fn shorten(&mut self, chars: usize) {
        shortened(&mut self.diff, chars);
        shortened(&mut self.evidence, chars);
    }
}

fn line(document: Document) -> VersionRow {
    let gone = |r: store::Redaction| ForgottenRow { by: r.by.subject, at: r.at.to_string(), reason: r.reason };
    VersionRow {
        provenance: VersionOrigin::of(&document),
        version: document.version,
        op: op(document.op),
        sha256: document.sha256,
        trust: trust(document.trust),
        title: document.title,
        bytes: document.content.len(),
        actor: document.provenance.actor.subject,
        at: document.updated_at.to_string(),
        run: document.provenance.run.map(|run| run.to_string()),
        evidence: document.evidence,
        diff: document.diff,
        redacted: document.redacted.map(gone),
    }
}

fn proposal(promotion: Promotion) -> Proposal {
    let Promotion { from, to, state, run, mut reason } = promotion;
    if let Some(reason) = &mut reason {
        shortened(reason, 500);
    }
    Proposal { from, to, state: state.as_str(), run: run.to_string(), reason }
}
