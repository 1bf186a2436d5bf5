//! Forgetting: a document is deleted, or the text of its versions is removed for good.
//!
//! A deleted document leaves lists and search; its versions can be read for a while. A redacted text is gone at once and
//! everywhere; who removed it, when and why stays.

use crate::documents::plan::keep;
use crate::documents::refusal::{conflict, no_store, not_found};
use crate::documents::scan::{self, DocumentField};
use crate::documents::{DocPath, DocumentAuthor, Documents};
use domain::Failure;
use store::{DocScope, Document, Removal, RemovalOutcome};

/// Versions that are looked through at once.
const AT_ONCE: usize = 32;

/// What is to be forgotten.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ForgetRequest {
    /// Which document.
    pub path: DocPath,
    /// Why.
    pub reason: String,
    /// How thoroughly.
    pub extent: ForgetDepth,
    /// The digest the document must still have, if whoever asks knows one.
    pub if_sha256: Option<String>,
}

/// How thoroughly something is forgotten.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ForgetDepth {
    /// It is deleted; its versions stay for a while.
    Deleted,
    /// The text of one version is removed for good.
    Version(u64),
    /// The text of every version is removed for good.
    Everything,
}

/// What was forgotten.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Forgotten {
    /// Which document.
    pub path: String,
    /// Whether there is no document at the path any more.
    pub deleted: bool,
    /// The versions that have no text any more.
    pub redacted: Vec<u64>,
}

impl Documents {
    /// Forgets. The same again changes nothing.
    pub async fn forget(&self, author: &DocumentAuthor, forget: &ForgetRequest) -> Result<Forgotten, Failure> {
        if author.run().is_some()
            && let Some(done) = self.forgotten(author, forget).await?
        {
            return Ok(done);
        }
        let (scope, last) = self.plan_forget(author, forget).await?;
        let path = &forget.path;
        let already = Forgotten { path: path.as_str().to_owned(), deleted: true, redacted: Vec::new() };
        if forget.extent == ForgetDepth::Deleted && last.deleted {
            return Ok(already);
        }
        author.must_act(path.scope())?;
        self.still_approved(author, &fingerprint(forget, &last)).await?;
        let (memory, entry) = (self.memory(author.reader()), author.entry(path));
        let removal = removal(author, forget);
        if forget.if_sha256.as_ref().is_some_and(|sha| *sha != last.sha256) {
            return Err(conflict(&memory, &scope, Some(&last), forget.if_sha256.as_deref().unwrap_or_default()).await);
        }
        match forget.extent {
            ForgetDepth::Deleted => {}
            ForgetDepth::Version(number) => self.scrub_runs(author, path, &scope, Some(number)).await?,
            ForgetDepth::Everything => self.scrub_runs(author, path, &scope, None).await?,
        }
        let removed = match forget.extent {
            ForgetDepth::Deleted => memory.delete(&scope, path.as_str(), last.version, &removal, &entry).await,
            ForgetDepth::Version(number) => memory.redact(&scope, path.as_str(), Some(number), &removal, &entry).await,
            ForgetDepth::Everything => memory.redact(&scope, path.as_str(), None, &removal, &entry).await,
        };
        match removed.map_err(|e| no_store(&e))? {
            RemovalOutcome::Done { last, redacted } => Ok(Forgotten { deleted: last.deleted, redacted, ..already }),
            RemovalOutcome::Conflict(found) => Err(conflict(&memory, &scope, Some(&found), &last.sha256).await),
            RemovalOutcome::Absent if forget.extent == ForgetDepth::Deleted => Ok(already),
            RemovalOutcome::Absent => Err(no_version(path)),
        }
    }

    /// Takes the text out of the runs by which these versions were written: a run keeps what it was asked for. This comes
    /// before the versions lose theirs, because they are the way to the runs.
    async fn scrub_runs(
        &self,
        author: &DocumentAuthor,
        path: &DocPath,
        scope: &DocScope,
        version: Option<u64>,
    ) -> Result<(), Failure> {
        let (memory, runs) = (self.memory(author.reader()), self.runs(author.reader()));
        let mut before = None;
        loop {
            let page = memory.history(scope, path.as_str(), before, AT_ONCE).await.map_err(|e| no_store(&e))?;
            let wanted = page.iter().filter(|found| version.is_none_or(|number| number == found.version));
            for run in wanted.filter_map(|found| found.provenance.run) {
                runs.scrub(run, &author.entry(path)).await.map_err(|e| no_store(&e))?;
            }
            match page.last() {
                Some(oldest) if page.len() == AT_ONCE => before = Some(oldest.version),
                Some(_) | None => return Ok(()),
            }
        }
    }

    /// What this author's run has forgotten already, if it has.
    pub async fn forgotten(
        &self,
        author: &DocumentAuthor,
        forget: &ForgetRequest,
    ) -> Result<Option<Forgotten>, Failure> {
        let path = &forget.path;
        let done = |deleted, redacted| Some(Forgotten { path: path.as_str().to_owned(), deleted, redacted });
        match forget.extent {
            ForgetDepth::Deleted | ForgetDepth::Everything => {
                let buried = self.carried(author, path).await?.filter(|last| last.deleted);
                Ok(buried.and_then(|last| {
                    let all = (1..last.version).collect();
                    done(true, if forget.extent == ForgetDepth::Everything { all } else { Vec::new() })
                }))
            }
            // An earlier version is redacted where it lies, so it names no run; that its text is gone is what was wanted.
            ForgetDepth::Version(number) => {
                let (memory, scope) = (self.memory(author.reader()), author.reader().scope(path.scope())?);
                let found = memory.version(&scope, path.as_str(), number).await.map_err(|e| no_store(&e))?;
                let last = memory.last(&scope, path.as_str()).await.map_err(|e| no_store(&e))?;
                let gone = found.is_some_and(|version| version.redacted.is_some());
                Ok(done(last.is_some_and(|last| last.deleted), vec![number]).filter(|_| gone))
            }
        }
    }

    /// What stands at the path, if this author may remove it for that reason.
    pub(in crate::documents) async fn plan_forget(
        &self,
        author: &DocumentAuthor,
        forget: &ForgetRequest,
    ) -> Result<(DocScope, Document), Failure> {
        let path = &forget.path;
        let stores = self.stores();
        author.may_write(stores.of(path)?, path)?;
        scan::scan(DocumentField::Reason, &forget.reason, path.scope())?;
        let (memory, scope) = (self.memory(author.reader()), author.reader().scope(path.scope())?);
        let Some(last) = memory.last(&scope, path.as_str()).await.map_err(|e| no_store(&e))? else {
            return Err(not_found(&memory, &scope, path).await);
        };
        if let ForgetDepth::Version(number) = forget.extent
            && memory.version(&scope, path.as_str(), number).await.map_err(|e| no_store(&e))?.is_none()
        {
            return Err(no_version(path));
        }
        Ok((scope, last))
    }
}

fn no_version(path: &DocPath) -> Failure {
    Failure::new(crate::codes::DOC_NOT_FOUND, format!("{path} has no such version"))
        .next("memory_history lists its versions")
}

/// What must still be so when it is carried out.
pub(in crate::documents) fn fingerprint(forget: &ForgetRequest, last: &Document) -> String {
    let extent = match forget.extent {
        ForgetDepth::Deleted => "delete".to_owned(),
        ForgetDepth::Version(number) => format!("redact {number}"),
        ForgetDepth::Everything => "redact all".to_owned(),
    };
    format!("{} {} {} {extent}", forget.path, last.version, last.sha256)
}

fn removal(author: &DocumentAuthor, forget: &ForgetRequest) -> Removal {
    let reader = author.reader();
    Removal {
        reason: forget.reason.clone(),
        keep: keep(forget.path.scope()),
        actor: reader.principal().clone(),
        actor_kind: author.kind().as_str().to_owned(),
        session: reader.session(),
        tainted: author.tainted(),
        run: author.run(),
        approver: author.approver(),
    }
}
