//! Reading: one document, the documents under a path, the stores there are.

use crate::codes;
use crate::documents::refusal::{no_store, not_found, redacted};
use crate::documents::{DocPath, DocumentReader, DocumentScope, Documents, Prefix, StoreRules};
use domain::Failure;
use store::{Document, DocumentHead};

/// A page of a list.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DocumentPage {
    /// The documents, by path.
    pub items: Vec<DocumentHead>,
    /// The path after which the next page begins.
    pub next: Option<String>,
    /// How many documents lie behind this page.
    pub omitted: usize,
}

/// One store as its readers see it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StoreFacts {
    /// Its scope.
    pub scope: DocumentScope,
    /// Its path.
    pub path: String,
    /// How many documents it holds.
    pub documents: usize,
    /// What holds in it.
    pub rules: StoreRules,
}

impl Documents {
    /// A document, or one of its versions. The versions of a deleted one can still be read by number, for a while.
    pub async fn read(
        &self,
        reader: &DocumentReader,
        path: &DocPath,
        version: Option<u64>,
    ) -> Result<Document, Failure> {
        let (memory, scope) = (self.memory(reader), reader.scope(path.scope())?);
        let found = match version {
            Some(number) => memory.version(&scope, path.as_str(), number).await,
            None => memory.last(&scope, path.as_str()).await,
        };
        match (found.map_err(|e| no_store(&e))?, version) {
            (Some(found), _) if found.redacted.is_some() => Err(redacted(&found)),
            (Some(found), _) if !found.deleted => Ok(found),
            (Some(found), Some(number)) => {
                let message = format!("version {number} of {} is where it was deleted", found.path);
                Err(Failure::new(codes::DOC_NOT_FOUND, message)
                    .next("read an earlier version; memory_history lists them"))
            }
            (None, Some(number)) if memory.last(&scope, path.as_str()).await.map_err(|e| no_store(&e))?.is_some() => {
                Err(Failure::new(codes::DOC_NOT_FOUND, format!("{path} has no version {number}"))
                    .next("memory_history lists its versions"))
            }
            (Some(_) | None, _) => Err(not_found(&memory, &scope, path).await),
        }
    }

    /// The documents under a path, by path, beginning behind `after`.
    pub async fn list(
        &self,
        reader: &DocumentReader,
        under: &Prefix,
        after: Option<&str>,
        limit: usize,
    ) -> Result<DocumentPage, Failure> {
        self.stores().know(under)?;
        let scope = reader.scope(under.scope())?;
        let heads = self.memory(reader).heads(&scope, under.as_str()).await.map_err(|e| no_store(&e))?;
        let behind =
            |head: &DocumentHead| under.holds(&head.path) && after.is_none_or(|after| head.path.as_str() > after);
        let mut items: Vec<DocumentHead> = heads.into_iter().filter(behind).collect();
        let omitted = items.len().saturating_sub(limit);
        items.truncate(limit);
        let next = items.last().filter(|_| omitted > 0).map(|head| head.path.clone());
        Ok(DocumentPage { items, next, omitted })
    }

    /// The stores a reader has, and how many documents each holds. Without a session there are none of a session.
    pub async fn shelves(&self, reader: &DocumentReader) -> Result<Vec<StoreFacts>, Failure> {
        let (memory, stores) = (self.memory(reader), self.stores());
        let mut lines = Vec::new();
        for scope in DocumentScope::ALL {
            let Ok(key) = reader.scope(scope) else { continue };
            let heads = memory.heads(&key, scope.as_str()).await.map_err(|e| no_store(&e))?;
            for (_, name, rules) in stores.iter().filter(|(whose, _, _)| *whose == scope) {
                let path = format!("{}/{name}", scope.as_str());
                let inside =
                    |head: &&DocumentHead| head.path.strip_prefix(&path).is_some_and(|rest| rest.starts_with('/'));
                let documents = heads.iter().filter(inside).count();
                lines.push(StoreFacts { scope, path, documents, rules: rules.clone() });
            }
        }
        Ok(lines)
    }
}
