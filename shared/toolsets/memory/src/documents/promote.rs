//! Promotion: a document is adopted into another store, as a new version there, because a person said so.
//!
//! The source stays as it is. What is adopted is scanned again by the rules of the target, and source and target must be
//! the very versions that were shown to whoever decided.

use crate::codes;
use crate::documents::plan::{DocumentWriteResult, VersionInput, WritePlan};
use crate::documents::refusal::no_store;
use crate::documents::{DocPath, DocumentAuthor, DocumentKind, DocumentScope, Documents};
use domain::{Code, Failure};
use store::{DocOp, Document, PromotedFrom};

/// A document that is to be adopted.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PromotionRequest {
    /// Which.
    pub path: DocPath,
    /// Where it is to stand as well.
    pub to: DocPath,
    /// Why.
    pub reason: String,
    /// How its proposer knows; `None`: as its writer did.
    pub evidence: Option<String>,
}

impl Documents {
    /// Adopts a document.
    pub async fn promote(
        &self,
        author: &DocumentAuthor,
        promote: &PromotionRequest,
    ) -> Result<DocumentWriteResult, Failure> {
        if let Some(done) = self.carried(author, &promote.to).await? {
            return Ok(DocumentWriteResult::already(done));
        }
        let (plan, source) = self.plan_promote(author, promote).await?;
        self.still_approved(author, &fingerprint(&plan, &source)).await?;
        self.carry_out(author, plan).await
    }

    pub(in crate::documents) async fn plan_promote(
        &self,
        author: &DocumentAuthor,
        promote: &PromotionRequest,
    ) -> Result<(WritePlan, Document), Failure> {
        let PromotionRequest { path, to, reason, evidence } = promote;
        let stores = self.stores();
        check(path, to)?;
        let rules = stores.of(to)?;
        if !rules.promotable {
            let store = format!("{}/{}", to.scope().as_str(), to.store());
            return Err(Failure::new(codes::READ_ONLY_STORE, format!("nothing can be proposed for {store}"))
                .next("choose another store; memory_list shows which are promotable"));
        }
        let source = self.read(author.reader(), path, None).await?;
        let kind = DocumentKind::parse(&source.kind).unwrap_or(DocumentKind::Note);
        rules.takes(to, kind)?;
        let scope = author.reader().scope(to.scope())?;
        let target = self.memory(author.reader()).get(&scope, to.as_str()).await.map_err(|e| no_store(&e))?;
        if target.as_ref().is_some_and(|target| target.content == source.content && target.kind == source.kind) {
            return Err(
                Failure::new(codes::DOC_EXISTS, format!("{to} says the same already")).next("nothing is left to do")
            );
        }
        let link = PromotedFrom { path: source.path.clone(), version: source.version, sha256: source.sha256.clone() };
        let wanted = VersionInput {
            path: to,
            kind,
            title: source.title.clone(),
            tags: source.tags.clone(),
            content: source.content.clone(),
            evidence: evidence.as_deref().unwrap_or(&source.evidence),
            op: DocOp::Promote,
            source: Some(link),
            reason: Some(reason),
        };
        let mut plan = self.planned(author, wanted, target, rules).await?;
        // Whoever read something from outside wrote this; adopting it does not make that undone.
        plan.draft.tainted |= source.provenance.tainted;
        Ok((plan, source))
    }
}

fn check(path: &DocPath, to: &DocPath) -> Result<(), Failure> {
    let wrong = match to.scope() {
        DocumentScope::Session => Some("documents are adopted into user or tenant scope"),
        DocumentScope::User | DocumentScope::Tenant if path == to => Some("source and target are the same document"),
        DocumentScope::User | DocumentScope::Tenant => None,
    };
    match wrong {
        Some(why) => Err(Failure::new(Code::InvalidArgument, why).next("name another target in `to`")),
        None => Ok(()),
    }
}

/// What must still be so when it is carried out: both documents, to the version.
pub(in crate::documents) fn fingerprint(plan: &WritePlan, source: &Document) -> String {
    let target = plan.before.as_ref().map_or("absent", |found| found.sha256.as_str());
    format!("{}@{} -> {}@{target}", source.path, source.sha256, plan.path)
}
