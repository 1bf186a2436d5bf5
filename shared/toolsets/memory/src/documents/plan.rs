//! A write, planned: everything is checked and made ready, and nothing has happened yet.
//!
//! A preview draws the plan, a run carries it out. Both are made from the arguments and from what stands there now, so
//! what a person judged and what is done cannot drift apart unnoticed.

use crate::documents::refusal::{conflict, no_store, over};
use crate::documents::scan::{self, DocumentField};
use crate::documents::{DocPath, DocumentAuthor, DocumentKind, DocumentScope, Documents, StoreRules, diff};
use domain::{Failure, RunId};
use std::time::Duration;
use store::{
    DocOp, DocScope, Document, Draft, PrefixLimit, PromotedFrom, ScopeLimits, Trust, WriteOutcome, WritePrecondition,
};

const DAY: u64 = 24 * 60 * 60;
/// Session documents are kept for as long as a session can live.
pub(in crate::documents) const SESSION_KEEP: Duration = Duration::from_secs(30 * DAY);
/// How many versions are looked through for the one that a run wrote.
const RUNS_BACK: usize = 20;

/// What a write came to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DocumentWriteResult {
    /// The document as it is now.
    pub document: Document,
    /// Whether there was none before.
    pub created: bool,
    /// Whether anything was written; saying the same again is no new version.
    pub changed: bool,
    /// What the writer should know.
    pub warnings: Vec<String>,
}

/// What is to be written, or that it stands there already.
pub(in crate::documents) enum PlannedWrite {
    Same(Box<Document>),
    New(Box<WritePlan>),
}

/// A write that can be carried out.
pub(in crate::documents) struct WritePlan {
    pub(in crate::documents) path: DocPath,
    pub(in crate::documents) scope: DocScope,
    pub(in crate::documents) draft: Draft,
    pub(in crate::documents) base: WritePrecondition,
    pub(in crate::documents) before: Option<Document>,
    pub(in crate::documents) limits: ScopeLimits,
    pub(in crate::documents) warnings: Vec<String>,
    /// Names in the evidence that the audit log does not know.
    pub(in crate::documents) unknown: Vec<String>,
}

/// What the parts of a version are made from.
pub(in crate::documents) struct VersionInput<'a> {
    pub(in crate::documents) path: &'a DocPath,
    pub(in crate::documents) kind: DocumentKind,
    pub(in crate::documents) title: String,
    pub(in crate::documents) tags: Vec<String>,
    pub(in crate::documents) content: String,
    pub(in crate::documents) evidence: &'a str,
    pub(in crate::documents) op: DocOp,
    pub(in crate::documents) source: Option<PromotedFrom>,
    /// Why, where that is shown to whoever decides.
    pub(in crate::documents) reason: Option<&'a str>,
}

impl Documents {
    /// Scans what is wanted, looks its evidence up and makes it ready to stand in place of `before`.
    pub(in crate::documents) async fn planned(
        &self,
        author: &DocumentAuthor,
        wanted: VersionInput<'_>,
        before: Option<Document>,
        rules: &StoreRules,
    ) -> Result<WritePlan, Failure> {
        let VersionInput { path, kind, title, tags, content, evidence, op, source, reason } = wanted;
        let reader = author.reader();
        let labels = tags.join("\n");
        let texts = [
            (DocumentField::Path, path.as_str()),
            (DocumentField::Tags, labels.as_str()),
            (DocumentField::Content, content.as_str()),
            (DocumentField::Title, title.as_str()),
            (DocumentField::Evidence, evidence),
            (DocumentField::Reason, reason.unwrap_or_default()),
        ];
        let scanned = scan::all(&texts, path.scope())?;
        let shelf = self.shelf(reader);
        let cited = shelf.references(reader.session(), reader.principal(), evidence).await.map_err(|e| no_store(&e))?;
        let mut warnings = scanned.warnings.clone();
        warnings
            .extend(cited.unknown.iter().map(|id| format!("evidence names {id}, which is not known to the audit log")));
        let draft = Draft {
            path: path.as_str().to_owned(),
            title,
            kind: kind.as_str().to_owned(),
            tags,
            trust: author.trust(),
            diff: diff::unified(before.as_ref().map_or("", |found| &found.content), &content, diff::KEPT),
            content,
            evidence: evidence.to_owned(),
            references: cited.known,
            op,
            suspect: scanned.suspect(),
            findings: scanned.findings.iter().map(ToString::to_string).collect(),
            source,
            actor: reader.principal().clone(),
            actor_kind: author.kind().as_str().to_owned(),
            session: reader.session(),
            tainted: author.tainted(),
            run: author.run(),
            approver: author.approver(),
        };
        Ok(WritePlan {
            path: path.clone(),
            scope: reader.scope(path.scope())?,
            draft,
            base: before.as_ref().map_or(WritePrecondition::Absent, |found| WritePrecondition::Version(found.version)),
            before,
            limits: self.limits(path, rules),
            warnings,
            unknown: cited.unknown,
        })
    }

    fn limits(&self, path: &DocPath, rules: &StoreRules) -> ScopeLimits {
        let quota = self.stores().quota(path.scope());
        ScopeLimits {
            documents: quota.documents,
            bytes: quota.bytes,
            keep: keep(path.scope()),
            part: rules.quota.map(|part| PrefixLimit {
                prefix: format!("{}/{}/", path.scope().as_str(), path.store()),
                documents: part.documents,
                bytes: part.bytes,
            }),
        }
    }

    /// Carries a plan out: one compare-and-set.
    pub(in crate::documents) async fn carry_out(
        &self,
        author: &DocumentAuthor,
        plan: WritePlan,
    ) -> Result<DocumentWriteResult, Failure> {
        let WritePlan { path, scope, draft, base, before, limits, warnings, .. } = plan;
        author.must_act(path.scope())?;
        let memory = self.memory(author.reader());
        let put = memory.put(&scope, draft, base, &limits, &author.entry(&path)).await.map_err(|e| no_store(&e))?;
        match put {
            WriteOutcome::Done(document) => {
                Ok(DocumentWriteResult { document, created: before.is_none(), changed: true, warnings })
            }
            WriteOutcome::Conflict(found) => {
                let began = before.map(|found| found.sha256).unwrap_or_default();
                Err(conflict(&memory, &scope, found.as_ref(), &began).await)
            }
            WriteOutcome::TooMany(room) => Err(over("documents", room, &path)),
            WriteOutcome::TooLarge(room) => Err(over("bytes", room, &path)),
        }
    }

    /// The version of a document that this author's run has written already, if it has: a run that is sent again after
    /// a crash has its effect once.
    pub async fn carried(&self, author: &DocumentAuthor, path: &DocPath) -> Result<Option<Document>, Failure> {
        let Some(run) = author.run() else { return Ok(None) };
        let scope = author.reader().scope(path.scope())?;
        let versions = self.memory(author.reader()).history(&scope, path.as_str(), None, RUNS_BACK).await;
        let is_its = |version: &Document| version.provenance.run == Some(run);
        Ok(versions.map_err(|e| no_store(&e))?.into_iter().find(is_its))
    }

    /// What this author's run was approved for, as its preview wrote it down.
    async fn approved_for(&self, author: &DocumentAuthor, run: RunId) -> Result<Option<String>, Failure> {
        let (held, _) = self.shelf(author.reader()).runs().find(run).await.map_err(|e| no_store(&e))?;
        Ok(held.map(|held| held.run.asked.preview.fingerprint))
    }

    /// Wants what would be done now to be what was approved. The gate looks too; this closes the gap behind it, where
    /// the arguments alone do not name the version that was judged.
    pub(in crate::documents) async fn still_approved(
        &self,
        author: &DocumentAuthor,
        fingerprint: &str,
    ) -> Result<(), Failure> {
        let Some(run) = author.run() else { return Ok(()) };
        match self.approved_for(author, run).await? {
            Some(approved) if approved == fingerprint => Ok(()),
            Some(_) | None => Err(crate::documents::refusal::stale()),
        }
    }
}

/// How long a scope keeps its documents.
pub(in crate::documents) const fn keep(scope: DocumentScope) -> Option<Duration> {
    match scope {
        DocumentScope::Session => Some(SESSION_KEEP),
        DocumentScope::User | DocumentScope::Tenant => None,
    }
}

impl DocumentWriteResult {
    /// The version that is there already.
    pub(in crate::documents) fn already(document: Document) -> DocumentWriteResult {
        let created = document.version == 1;
        DocumentWriteResult { document, created, changed: false, warnings: Vec::new() }
    }
}

/// The one spelling of an operation.
pub const fn op(op: DocOp) -> &'static str {
    match op {
        DocOp::Create => "create",
        DocOp::Replace => "replace",
        DocOp::Patch => "patch",
        DocOp::Promote => "promote",
        DocOp::Delete => "delete",
        DocOp::Redact => "redact",
    }
}

/// The trust before and after, for whoever decides.
pub(in crate::documents) fn trust_moves(before: Option<&Document>, then: Trust) -> String {
    let before = before.map_or("none", |found| crate::documents::trust(found.trust));
    format!("{before} -> {}", crate::documents::trust(then))
}
