//! Writing a document whole, and changing it.

use crate::documents::plan::{DocumentWriteResult, PlannedWrite, VersionInput};
use crate::documents::refusal::{conflict, exists, no_store, not_found};
use crate::documents::text::{heading, normalise};
use crate::documents::{DocPath, DocumentAuthor, DocumentKind, Documents, PatchChange};
use domain::{Code, Failure};
use store::{DocOp, Document};

/// A document to be kept.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Write {
    /// Where.
    pub path: DocPath,
    /// What it is.
    pub kind: DocumentKind,
    /// What it is called; `None`: its first heading, or its name.
    pub title: Option<String>,
    /// Its text.
    pub content: String,
    /// How its writer knows.
    pub evidence: String,
    /// Labels.
    pub tags: Vec<String>,
    /// The digest of what it takes the place of; `None`: there must be nothing.
    pub if_sha256: Option<String>,
}

/// A change of a document.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DocumentPatch {
    /// Which.
    pub path: DocPath,
    /// The digest of what is changed.
    pub if_sha256: String,
    /// How its writer knows.
    pub evidence: String,
    /// What changes.
    pub change: PatchChange,
}

impl Documents {
    /// Keeps a document. The same again is no new version.
    pub async fn write(&self, author: &DocumentAuthor, write: &Write) -> Result<DocumentWriteResult, Failure> {
        if let Some(done) = self.carried(author, &write.path).await? {
            return Ok(DocumentWriteResult::already(done));
        }
        match self.plan_write(author, write).await? {
            PlannedWrite::Same(found) => {
                Ok(DocumentWriteResult { created: false, ..DocumentWriteResult::already(*found) })
            }
            PlannedWrite::New(plan) => self.carry_out(author, *plan).await,
        }
    }

    /// Changes a document.
    pub async fn patch(&self, author: &DocumentAuthor, patch: &DocumentPatch) -> Result<DocumentWriteResult, Failure> {
        if let Some(done) = self.carried(author, &patch.path).await? {
            return Ok(DocumentWriteResult::already(done));
        }
        match self.plan_patch(author, patch).await? {
            PlannedWrite::Same(found) => {
                Ok(DocumentWriteResult { created: false, ..DocumentWriteResult::already(*found) })
            }
            PlannedWrite::New(plan) => self.carry_out(author, *plan).await,
        }
    }

    pub(in crate::documents) async fn plan_write(
        &self,
        author: &DocumentAuthor,
        write: &Write,
    ) -> Result<PlannedWrite, Failure> {
        let Write { path, kind, tags, evidence, .. } = write;
        let stores = self.stores();
        let rules = stores.of(path)?;
        author.may_write(rules, path)?;
        rules.takes(path, *kind)?;
        let content = normalise(&write.content);
        if content.is_empty() {
            return Err(Failure::new(Code::InvalidArgument, "the content is blank").next("give a text to keep"));
        }
        let title = write.title.as_deref().map(one_line).or_else(|| heading(&content));
        let title = title.filter(|title| !title.is_empty()).unwrap_or_else(|| path.name().to_owned());
        let (memory, scope) = (self.memory(author.reader()), author.reader().scope(path.scope())?);
        let current = memory.get(&scope, path.as_str()).await.map_err(|e| no_store(&e))?;
        let same = |found: &Document| {
            (&found.content, found.kind.as_str(), &found.title, &found.tags) == (&content, kind.as_str(), &title, tags)
        };
        match (&current, &write.if_sha256) {
            (Some(found), _) if same(found) => return Ok(PlannedWrite::Same(Box::new(found.clone()))),
            (Some(found), Some(sha)) if found.sha256 == *sha => {}
            (Some(found), None) => return Err(exists(found)),
            (found, Some(sha)) => return Err(conflict(&memory, &scope, found.as_ref(), sha).await),
            (None, None) => {}
        }
        let op = if current.is_some() { DocOp::Replace } else { DocOp::Create };
        let tags = tags.clone();
        let wanted = VersionInput { path, kind: *kind, title, tags, content, evidence, op, source: None, reason: None };
        Ok(PlannedWrite::New(Box::new(self.planned(author, wanted, current, rules).await?)))
    }

    pub(in crate::documents) async fn plan_patch(
        &self,
        author: &DocumentAuthor,
        patch: &DocumentPatch,
    ) -> Result<PlannedWrite, Failure> {
        let DocumentPatch { path, if_sha256, evidence, change } = patch;
        let stores = self.stores();
        let rules = stores.of(path)?;
        author.may_write(rules, path)?;
        let (memory, scope) = (self.memory(author.reader()), author.reader().scope(path.scope())?);
        let Some(current) = memory.get(&scope, path.as_str()).await.map_err(|e| no_store(&e))? else {
            return Err(not_found(&memory, &scope, path).await);
        };
        if current.sha256 != *if_sha256 {
            return Err(conflict(&memory, &scope, Some(&current), if_sha256).await);
        }
        let content = change.apply(&current.content)?;
        if content == current.content {
            return Ok(PlannedWrite::Same(Box::new(current)));
        }
        if content.is_empty() {
            return Err(Failure::new(Code::InvalidArgument, "nothing would be left of the document")
                .next("delete it with memory_forget instead"));
        }
        let op = match change {
            PatchChange::Content(_) => DocOp::Replace,
            PatchChange::Edits(_) | PatchChange::Diff(_) => DocOp::Patch,
        };
        // A title that was taken from the text follows it.
        let own = Some(&current.title) == heading(&current.content).as_ref() || current.title == path.name();
        let title = heading(&content).filter(|_| own).unwrap_or_else(|| current.title.clone());
        let (kind, tags) = (DocumentKind::parse(&current.kind).unwrap_or(DocumentKind::Note), current.tags.clone());
        let wanted = VersionInput { path, kind, title, tags, content, evidence, op, source: None, reason: None };
        Ok(PlannedWrite::New(Box::new(self.planned(author, wanted, Some(current), rules).await?)))
    }
}

/// A title is one line, in the one form of texts.
fn one_line(title: &str) -> String {
    normalise(title).split_whitespace().collect::<Vec<_>>().join(" ")
}
