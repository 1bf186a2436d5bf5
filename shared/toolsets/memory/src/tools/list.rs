//! `memory_list`: the documents under a path, or the stores there are.

use super::args::PrefixText;
use super::room::fitting;
use super::shape::DocumentRow;
use super::{MemoryDeps, STORED_TEXT, TOOLSET};
use crate::documents::{DocumentKind, DocumentReader, Prefix, StoreFacts as Kept};
use catalog::{Progress, Tool, ToolSpec};
use domain::{Effect, Failure};
use policy::Permit;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use target::cursor::Cursor;
use target::reply::ROOM;

/// Lines in one answer.
const MOST: usize = 100;

pub(super) struct MemoryListTool(pub(super) MemoryDeps);

#[derive(Debug, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct Args {
    #[schemars(with = "Option<PrefixText>")]
    path: Option<Prefix>,
    cursor: Option<Cursor>,
}

#[derive(Debug, Default, Serialize, JsonSchema)]
pub(super) struct MemoryListOutput {
    #[serde(skip_serializing_if = "Option::is_none")]
    items: Option<Vec<DocumentRow>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    stores: Option<Vec<StoreRow>>,
    /// Documents behind this page.
    #[serde(skip_serializing_if = "Option::is_none")]
    omitted: Option<usize>,
    #[serde(skip_serializing_if = "Option::is_none")]
    next_cursor: Option<String>,
    untrusted: bool,
}

#[derive(Debug, Serialize, JsonSchema)]
pub(super) struct StoreRow {
    path: String,
    documents: usize,
    /// Who may write there.
    writable: &'static str,
    promotable: bool,
    /// The types it takes; all, if none are named.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    types: Vec<&'static str>,
}

impl Tool for MemoryListTool {
    const SPEC: ToolSpec = ToolSpec::new("memory_list", TOOLSET, Effect::Read)
        .says("List documents", "List documents under a path.")
        .hint(
            "For agents that keep their notes in order or look through one folder; agents that only ask questions are \
             served by the search alone.",
        )
        .idempotent()
        .closed_world();
    const PREFACE: Option<&'static str> = Some(STORED_TEXT);
    type Args = Args;
    type Output = MemoryListOutput;

    fn effect(_: &Args) -> Effect {
        Effect::Read
    }

    fn about(args: &Args) -> Option<String> {
        args.path.as_ref().map(|path| path.scope().as_str().to_owned())
    }

    fn taints(listed: &MemoryListOutput) -> bool {
        listed.items.iter().flatten().any(|line| line.suspect)
    }

    async fn run(&self, permit: &Permit, args: Args, _: &Progress) -> Result<MemoryListOutput, Failure> {
        let (MemoryDeps { notebook, cursors }, reader) = (&self.0, DocumentReader::of(permit));
        let Some(path) = &args.path else {
            let stores =
                super::in_span("search_memory", notebook.shelves(&reader)).await?.into_iter().map(store).collect();
            return Ok(MemoryListOutput { stores: Some(stores), untrusted: true, ..MemoryListOutput::default() });
        };
        let after = cursors.resume::<String>(permit, &args, args.cursor.as_ref())?;
        let page = super::in_span("search_memory", notebook.list(&reader, path, after.as_deref(), MOST)).await?;
        let mut items: Vec<DocumentRow> = page.items.into_iter().map(DocumentRow::of).collect();
        let fit = fitting(&items, ROOM);
        let omitted = page.omitted + items.len() - fit;
        items.truncate(fit);
        let last = items.last().filter(|_| omitted > 0).map(|line| line.path.clone());
        let next_cursor = last.map(|last| cursors.seal(permit, &args, &last)).transpose()?;
        let omitted = Some(omitted).filter(|left| *left > 0);
        Ok(MemoryListOutput { items: Some(items), stores: None, omitted, next_cursor, untrusted: true })
    }
}

fn store(kept: Kept) -> StoreRow {
    StoreRow {
        path: kept.path,
        documents: kept.documents,
        writable: kept.rules.writable.as_str(),
        promotable: kept.rules.promotable,
        types: kept.rules.kinds.iter().map(|kind: &DocumentKind| kind.as_str()).collect(),
    }
}
