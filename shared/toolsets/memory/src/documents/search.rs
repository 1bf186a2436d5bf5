//! Search: the best documents for a query, over every scope the reader has.

use crate::documents::refusal::no_store;
use crate::documents::{DocumentKind, DocumentReader, DocumentScope, Documents};
use domain::Failure;
use std::collections::HashMap;
use store::{DocScope, Document};

/// Characters of an excerpt.
const EXCERPT: usize = 400;

/// What is searched for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DocumentQuery {
    /// The words.
    pub text: String,
    /// In this scope alone; `None` for all the reader has.
    pub scope: Option<DocumentScope>,
    /// Of this type alone.
    pub kind: Option<DocumentKind>,
    /// At most so many.
    pub limit: usize,
}

/// What was found.
#[derive(Debug, Clone, PartialEq)]
pub struct SearchResults {
    /// The documents, best first.
    pub hits: Vec<DocumentHit>,
    /// How many documents were looked through.
    pub searched: usize,
    /// What the reader should know about the search itself.
    pub warnings: Vec<String>,
}

/// One document that was found.
#[derive(Debug, Clone, PartialEq)]
pub struct DocumentHit {
    /// The document, as it is now.
    pub document: Document,
    /// How well it fits, from zero to one.
    pub score: f64,
    /// The part of its text that fits best.
    pub excerpt: String,
}

impl Documents {
    /// Searches.
    pub async fn search(&self, reader: &DocumentReader, query: &DocumentQuery) -> Result<SearchResults, Failure> {
        let mut scopes = Vec::new();
        for scope in DocumentScope::ALL.into_iter().filter(|scope| query.scope.is_none_or(|wanted| wanted == *scope)) {
            match reader.scope(scope) {
                Ok(key) => scopes.push((scope, key)),
                // Asked for by name it is an error; among all three it only has nothing to add.
                Err(failure) if query.scope.is_some() => return Err(failure),
                Err(_) => {}
            }
        }
        let memory = self.memory(reader);
        let freshen = scopes.iter().map(|(_, key)| self.indexes().fresh(reader.tenant(), key, &memory));
        let indexes = futures_util::future::try_join_all(freshen).await.map_err(|e| no_store(&e))?;

        let (ranked, searched, warnings) = {
            let states: Vec<_> = indexes.iter().map(|index| index.state()).collect();
            let fits = |facts: &recall::RankFacts| query.kind.is_none_or(|kind| facts.kind == kind.as_str());
            let each: Vec<&recall::TextIndex> = states.iter().map(|state| &state.index).collect();
            let ranked = recall::search(&each, &query.text, fits, self.now().millis(), query.limit);
            let behind = scopes.iter().zip(&states).filter(|(_, state)| !state.left_out.is_empty());
            let warnings = behind.map(|((scope, _), state)| incomplete(*scope, state.left_out.len())).collect();
            (ranked, each.iter().map(|index| index.len()).sum(), warnings)
        };

        let mut documents = HashMap::new();
        for (at, (_, key)) in scopes.iter().enumerate() {
            let paths: Vec<String> = ranked.iter().filter(|hit| hit.index == at).map(|hit| hit.path.clone()).collect();
            let (found, gone) = self.fetch(reader, key, paths).await?;
            documents.extend(found.into_iter().map(|document| ((at, document.path.clone()), document)));
            if let (false, Some(index)) = (gone.is_empty(), indexes.get(at)) {
                index.drop_gone(&gone);
            }
        }
        let hits = ranked.into_iter().filter_map(|hit| {
            let document = documents.remove(&(hit.index, hit.path))?;
            let excerpt = recall::excerpt(&document.content, &query.text, EXCERPT);
            Some(DocumentHit { document, score: hit.score, excerpt })
        });
        Ok(SearchResults { hits: hits.collect(), searched, warnings })
    }

    /// The documents of these paths as they are now, and the paths where there is none any more.
    async fn fetch(
        &self,
        reader: &DocumentReader,
        key: &DocScope,
        paths: Vec<String>,
    ) -> Result<(Vec<Document>, Vec<String>), Failure> {
        if paths.is_empty() {
            return Ok((Vec::new(), Vec::new()));
        }
        let documents = self.memory(reader).get_many(key, &paths).await.map_err(|e| no_store(&e))?;
        let gone =
            paths.into_iter().zip(&documents).filter(|(_, found)| found.is_none()).map(|(path, _)| path).collect();
        Ok((documents.into_iter().flatten().collect(), gone))
    }
}

fn incomplete(scope: DocumentScope, left_out: usize) -> String {
    format!("the index of {}/ is full: {left_out} older documents were not looked through", scope.as_str())
}
