//! The past of a document: its versions, and what became of proposals to adopt it.

use crate::documents::refusal::{no_store, not_found};
use crate::documents::{DocPath, DocumentReader, DocumentScope, Documents};
use domain::run::{RunState, Verdict};
use domain::{Failure, Run, RunId};
use serde::Deserialize;
use store::{Document, StoreError};

/// The tool whose runs are proposals.
pub const PROMOTION_TOOL: &str = "memory_propose_promotion";
/// How many runs are read at once, and how many of all tools are looked through at most.
const RUNS_AT_ONCE: usize = 100;
const RUNS_LOOKED_AT: usize = 500;
/// How many proposals are told.
const TOLD: usize = 20;

/// The past of a document.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DocumentHistory {
    /// Its versions, newest first, the end of a deleted one among them.
    pub versions: Vec<Document>,
    /// The number below which the next page begins.
    pub next: Option<u64>,
    /// Proposals to adopt it, or to adopt something in its place, newest first.
    pub promotions: Vec<Promotion>,
}

/// A proposal, and what became of it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Promotion {
    /// From where.
    pub from: String,
    /// To where.
    pub to: String,
    /// Where it stands.
    pub state: RunState,
    /// The run that holds it.
    pub run: RunId,
    /// Why not: what a person said, or why it could not be done.
    pub reason: Option<String>,
}

/// As much of a proposal's arguments as names documents.
#[derive(Deserialize)]
struct ProposalArguments {
    path: String,
    to: String,
}

impl Documents {
    /// Versions before number `before`, and proposals.
    pub async fn history(
        &self,
        reader: &DocumentReader,
        path: &DocPath,
        before: Option<u64>,
        limit: usize,
    ) -> Result<DocumentHistory, Failure> {
        let (memory, scope) = (self.memory(reader), reader.scope(path.scope())?);
        let versions = memory.history(&scope, path.as_str(), before, limit).await.map_err(|e| no_store(&e))?;
        if versions.is_empty() && before.is_none() {
            return Err(not_found(&memory, &scope, path).await);
        }
        let next = versions.last().map(|oldest| oldest.version).filter(|oldest| *oldest > 1 && versions.len() == limit);
        // They stand beside the newest versions alone; a second page would only repeat them.
        let promotions = match before {
            None => self.promotions(reader, path).await.map_err(|e| no_store(&e))?,
            Some(_) => Vec::new(),
        };
        Ok(DocumentHistory { versions, next, promotions })
    }

    async fn promotions(&self, reader: &DocumentReader, path: &DocPath) -> Result<Vec<Promotion>, StoreError> {
        let runs = self.shelf(reader).runs();
        let mut promotions = Vec::new();
        let ids = runs.ids(None, None, RUNS_LOOKED_AT).await?;
        for some in ids.chunks(RUNS_AT_ONCE) {
            // Whole records are large; only those of proposals are read.
            let briefs = runs.briefs(some).await?;
            let proposals = briefs.iter().filter(|run| run.tool.as_str() == PROMOTION_TOOL).map(|run| run.id).collect();
            promotions.extend(runs.read(proposals).await?.iter().filter_map(|run| promotion(run, reader, path)));
            if promotions.len() >= TOLD {
                break;
            }
        }
        promotions.truncate(TOLD);
        Ok(promotions)
    }
}

/// A run as a proposal about this document, if it is one and the reader may know of it.
fn promotion(run: &Run, reader: &DocumentReader, path: &DocPath) -> Option<Promotion> {
    if run.asked.tool.as_str() != PROMOTION_TOOL {
        return None;
    }
    // Once a run is over only what people were shown of its arguments is left.
    let arguments = run.asked.preview.arguments.as_ref().unwrap_or(&run.asked.arguments);
    let ProposalArguments { path: from, to } = serde_json::from_str(arguments).ok()?;
    // The same path means another document in another's scope.
    let own = match path.scope() {
        DocumentScope::Session => run.asked.session == reader.session() && run.asked.requester == *reader.principal(),
        DocumentScope::User => run.asked.requester == *reader.principal(),
        DocumentScope::Tenant => true,
    };
    if !own || (path.as_str() != from && path.as_str() != to) {
        return None;
    }
    let said = run.decision().filter(|answer| answer.verdict == Verdict::Reject).map(|answer| answer.reason.clone());
    let failed = run.ending.as_ref().filter(|ending| ending.code.is_some()).map(|ending| ending.message.clone());
    Some(Promotion { from, to, state: run.state, run: run.id, reason: said.flatten().or(failed) })
}
