//! The ledger as a running service gives it: page after page, turned into the lines of an export.
//!
//! The first page says how far the ledger is sealed. What is sealed while the pages are read is left out, so that the
//! export is the ledger of one moment, with some unsealed entries at its end.

use super::lines::{self, ExportEntry, ExportHead};
use crate::commands::say;
use crate::http::audit::{AuditItem, AuditPage, LONGEST_PAGE};
use anyhow::Context;
use serde_json::Value;
use store::ChainLink;

/// Where the ledger is asked for, and with which token.
pub(super) struct AuditService {
    pub(super) url: String,
    pub(super) token: String,
}

impl AuditService {
    /// Hands the lines of the whole ledger to `take`, a page at a time. `false` if the service said no.
    pub(super) async fn export(&self, mut take: impl FnMut(&str) -> anyhow::Result<()>) -> anyhow::Result<bool> {
        let (mut cursor, mut seal) = (None::<String>, None);
        loop {
            let Some(page) = self.page(cursor.as_deref()).await? else { return Ok(false) };
            let mut out = String::new();
            if cursor.is_none() {
                seal = page.seal;
                lines::write(&mut out, &ExportHead::new(page.tenant, seal))?;
            }
            stretch(&mut out, page.entries, page.loose, seal)?;
            take(&out)?;
            cursor = page.next_cursor;
            if cursor.is_none() {
                return Ok(true);
            }
        }
    }

    async fn page(&self, after: Option<&str>) -> anyhow::Result<Option<AuditPage>> {
        let after = after.map(|after| format!("&after={after}")).unwrap_or_default();
        let url = format!("{}/v1/audit?limit={LONGEST_PAGE}{after}", self.url);
        let client = egress::operator_client(&egress::Config::default())?;
        let request = egress::FetchRequest { method: "GET", url: &url, bearer: &self.token, body: None };
        let (status, bytes) = egress::ask(&client, request).await.context("the service did not answer")?;
        if status == 200 {
            return Ok(Some(serde_json::from_slice(&bytes).context("the answer is not a page of an audit log")?));
        }
        let told: Value = serde_json::from_slice(&bytes).unwrap_or(Value::Null);
        let text = |key: &str| told["error"][key].as_str().unwrap_or_default().to_owned();
        say(&format!("the service answered with status {status}: {} {}\n", text("code"), text("message")));
        Ok(None)
    }
}

/// Entries and links in the order of their places, each link behind its entry.
fn stretch(
    out: &mut String,
    entries: Vec<AuditItem>,
    loose: Vec<ChainLink>,
    seal: Option<ChainLink>,
) -> anyhow::Result<()> {
    let sealed = |link: &ChainLink| seal.is_some_and(|seal| link.seq <= seal.seq);
    let mut loose = loose.into_iter().filter(sealed).peekable();
    for AuditItem { id, entry, link, .. } in entries {
        let here = store::StreamId::parse(&id).context("the service named an entry's place in an unknown way")?;
        while let Some(early) = loose.next_if(|link| link.entry < here) {
            lines::write(out, &early)?;
        }
        lines::write(out, &ExportEntry { id, entry })?;
        link.filter(sealed).map_or(Ok(()), |link| lines::write(out, &link))?;
    }
    Ok(loose.try_for_each(|link| lines::write(out, &link))?)
}
