//! Our own search: the notebook that the tools use, on a store in a file.

use super::corpus::{Corpus, Page};
use super::{SHOWN, ShownDocument};
use anyhow::{Context, anyhow, bail};
use domain::{Caller, Moment, Principal, Scopes, Tenant};
use memory::documents::{DocumentQuery, DocumentReader, Documents};
use std::time::Duration;
use store::{
    AuditEntry, DocOp, DocScope, DocumentStore, Draft, Phase, ScopeLimits, Store, Trust, WriteOutcome,
    WritePrecondition,
};
use tempfile::TempDir;

/// How many documents are written at once.
const AT_ONCE: usize = 64;

/// A store with the documents, and the notebook that finds them.
pub(super) struct OurSearch {
    notebook: Documents,
    reader: DocumentReader,
    _folder: TempDir,
}

impl OurSearch {
    /// Keeps all pages in a store's file.
    pub(super) async fn of(corpus: &Corpus) -> anyhow::Result<OurSearch> {
        let folder = tempfile::tempdir().context("no temporary folder for a store")?;
        let config = store::Config::at(&format!("file:{}", folder.path().join("store").display()));
        let store = Store::open(&config).await.context("the store does not open")?;
        let tenant = Tenant::parse("acme").context("a tenant's name")?;
        let memory = store.of(&tenant).memory();
        for some in corpus.pages.chunks(AT_ONCE) {
            for put in futures_util::future::join_all(some.iter().map(|page| keep(&memory, page))).await {
                put?;
            }
        }
        let (scopes, expires_at) = (Scopes::parse("tools:read"), Moment::from_secs(u64::from(u32::MAX)));
        let reader = DocumentReader::person(&Caller {
            tenant,
            principal: writer(),
            scopes,
            expires_at,
            token: None,
            labels: Vec::new(),
        });
        Ok(OurSearch { notebook: Documents::new(store), reader, _folder: folder })
    }

    /// All that `memory_search` does: both scopes that the reader has are looked at.
    pub(super) async fn search(&mut self, question: &str) -> anyhow::Result<Vec<ShownDocument>> {
        let query = DocumentQuery { text: question.to_owned(), scope: None, kind: None, limit: SHOWN };
        let found = self.notebook.search(&self.reader, &query).await.map_err(|failure| anyhow!("{failure:?}"))?;
        if !found.warnings.is_empty() {
            bail!("the search is not whole: {:?}", found.warnings);
        }
        Ok(found.hits.into_iter().map(|hit| ShownDocument { path: hit.document.path, text: hit.excerpt }).collect())
    }
}

fn writer() -> Principal {
    Principal::new("https://login.example", "loadtests")
}

async fn keep(memory: &DocumentStore, page: &Page) -> anyhow::Result<()> {
    let limits = ScopeLimits { documents: 10_000, bytes: 1 << 30, keep: None, part: None };
    let draft = Draft {
        path: page.path.clone(),
        title: page.title.clone(),
        kind: page.kind.into(),
        tags: page.tags.clone(),
        trust: Trust::Approved,
        content: page.content.clone(),
        evidence: "made up".into(),
        references: Vec::new(),
        op: DocOp::Create,
        suspect: false,
        findings: Vec::new(),
        diff: String::new(),
        source: None,
        actor: writer(),
        actor_kind: "service".into(),
        session: None,
        tainted: false,
        run: None,
        approver: None,
    };
    let entry = AuditEntry::new(Phase::Transition);
    match memory.put(&DocScope::Tenant, draft, WritePrecondition::Absent, &limits, &entry).await? {
        WriteOutcome::Done(_) => Ok(()),
        other @ (WriteOutcome::Conflict(_) | WriteOutcome::TooMany(_) | WriteOutcome::TooLarge(_)) => {
            bail!("{} was not kept: {other:?}", page.path)
        }
    }
}
