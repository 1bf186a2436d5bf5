//! Reads the audit log from a running service, page by page, and turns it into the lines of an export.
//!
//! Checkpoints are read first, so everything they sign is there when the entries are read. Which lines are made of a page:
//! see [`ExportLines`].

use crate::audit_desk::export::ExportLines;
use crate::commands::api_client::{ApiClient, ApiRefusal, ApiRequest};
use crate::http::audit::checkpoints::CheckpointPage;
use crate::http::audit::{AuditPage, LONGEST_PAGE};
use anyhow::Context;
use archive::Checkpoint;
use std::collections::VecDeque;

/// Hands the lines of the whole audit log to `take`, a page at a time, unless the service refuses. Gives the newest
/// checkpoint that the service knew of before.
pub(super) async fn export(
    client: &ApiClient,
    mut take: impl FnMut(&str) -> anyhow::Result<()>,
) -> anyhow::Result<Result<Option<Checkpoint>, ApiRefusal>> {
    let (newest, checkpoints) = match checkpoints(client).await? {
        Ok(found) => found,
        Err(refusal) => return Ok(Err(refusal)),
    };
    let (mut cursor, mut lines) = (None::<String>, ExportLines::new(checkpoints));
    loop {
        let after = cursor.as_ref().map(|cursor| format!("&after={cursor}")).unwrap_or_default();
        let path = format!("/v1/audit?limit={LONGEST_PAGE}{after}");
        let page: AuditPage = match client.send(ApiRequest::get(&path)).await? {
            Ok(page) => page,
            Err(refusal) => return Ok(Err(refusal)),
        };
        cursor = page.next_cursor.clone();
        take(&lines.page(page)?)?;
        if cursor.is_none() {
            return Ok(Ok(newest));
        }
    }
}

type KnownCheckpoints = (Option<Checkpoint>, VecDeque<Checkpoint>);

async fn checkpoints(client: &ApiClient) -> anyhow::Result<Result<KnownCheckpoints, ApiRefusal>> {
    let (mut newest, mut found, mut after) = (None, VecDeque::new(), String::new());
    loop {
        let path = format!("/v1/audit/checkpoints?limit={LONGEST_PAGE}{after}");
        let page: CheckpointPage = match client.send(ApiRequest::get(&path)).await? {
            Ok(page) => page,
            Err(refusal) => return Ok(Err(refusal)),
        };
        if after.is_empty() {
            newest = page.newest;
        }
        for line in page.checkpoints {
            found.push_back(
                Checkpoint::read(line.get()).context("the service returned a checkpoint that cannot be read")?,
            );
        }
        match page.next_cursor {
            Some(next) => after = format!("&after={next}"),
            None => return Ok(Ok((newest, found))),
        }
    }
}
