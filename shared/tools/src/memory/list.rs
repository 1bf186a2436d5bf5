//! `memory_list`: the documents under a path, or the stores there are.

use super::path::{STORES, Scope, stores, unknown_store};
use super::shape::Line;
use super::{TOOLSET, memory, no_store, scope};
use catalog::{Progress, Tool, ToolSpec};
use domain::{Effect, Failure};
use policy::Permit;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use store::Store;

/// Lines in one answer; what is left out is counted.
const MOST: usize = 100;

pub(super) struct List {
    pub(super) store: Store,
}

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct Args {
    #[schemars(length(max = 256), regex(pattern = r"^(session|user|tenant)(/[a-z0-9][a-z0-9._-]{0,63}){0,7}/?$"))]
    path: Option<String>,
}

#[derive(Debug, Serialize, JsonSchema)]
pub(super) struct Listed {
    #[serde(skip_serializing_if = "Option::is_none")]
    items: Option<Vec<Line>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    stores: Option<Vec<StoreLine>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    omitted: Option<usize>,
}

#[derive(Debug, Serialize, JsonSchema)]
pub(super) struct StoreLine {
    path: String,
    documents: usize,
}

impl Tool for List {
    const SPEC: ToolSpec = ToolSpec::new("memory_list", TOOLSET, Effect::Read)
        .says("List documents", "List documents under a path; without one, the stores.")
        .idempotent()
        .closed_world();
    type Args = Args;
    type Output = Listed;

    fn effect(_: &Args) -> Effect {
        Effect::Read
    }

    fn about(args: &Args) -> Option<String> {
        Some(args.path.as_deref()?.split('/').next()?.to_owned())
    }

    async fn run(&self, permit: &Permit, args: Args, _: &Progress) -> Result<Listed, Failure> {
        match args.path {
            Some(path) => self.under(permit, path.trim_end_matches('/')).await,
            None => self.stores(permit).await,
        }
    }
}

impl List {
    async fn under(&self, permit: &Permit, path: &str) -> Result<Listed, Failure> {
        let mut parts = path.split('/');
        let first = parts.next().unwrap_or_default();
        let Some(whose) = Scope::ALL.into_iter().find(|scope| scope.as_str() == first) else {
            return Err(unknown_store(path));
        };
        if let Some(store) = parts.next()
            && !stores().contains(&format!("{first}/{store}"))
        {
            return Err(unknown_store(&format!("{first}/{store}")));
        }
        let heads = memory(&self.store, permit).list(&scope(permit, whose)?, path).await.map_err(|e| no_store(&e))?;
        // A prefix ends where a part ends: `session/notes/a` does not list `session/notes/ab`.
        let inside = |full: &str| full.strip_prefix(path).is_some_and(|rest| rest.is_empty() || rest.starts_with('/'));
        let mut items: Vec<Line> = heads.into_iter().filter(|head| inside(&head.path)).map(Line::of).collect();
        let omitted = items.len().checked_sub(MOST).filter(|n| *n > 0);
        items.truncate(MOST);
        Ok(Listed { items: Some(items), stores: None, omitted })
    }

    async fn stores(&self, permit: &Permit) -> Result<Listed, Failure> {
        let memory = memory(&self.store, permit);
        let mut lines = Vec::new();
        for whose in Scope::ALL {
            // Without a session there simply are no session documents to show.
            let Ok(key) = scope(permit, whose) else { continue };
            let heads = memory.list(&key, whose.as_str()).await.map_err(|e| no_store(&e))?;
            for (_, name) in STORES.iter().filter(|(scope, _)| *scope == whose) {
                let path = format!("{}/{name}", whose.as_str());
                let prefix = format!("{path}/");
                let documents = heads.iter().filter(|head| head.path.starts_with(&prefix)).count();
                lines.push(StoreLine { path, documents });
            }
        }
        Ok(Listed { items: None, stores: Some(lines), omitted: None })
    }
}
