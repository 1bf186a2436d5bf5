//! `/console/memory`: what agents propose to keep, and what they keep. What is done is done by `memory_desk`, as for the
//! REST API; a form carries the digest of the text that was shown.

use super::form;
use super::inbox;
use super::oidc::encode;
use super::person::ConsolePerson;
use super::reply::{self, ConsoleAnswer, DrawnPage};
use crate::app::Gateway;
use crate::memory_desk::{self, DocumentRemoval};
use crate::run_desk;
use actix_web::http::StatusCode;
use actix_web::web::{Data, Path, Payload, Query};
use actix_web::{HttpRequest, HttpResponse};
use console::memory::{self as page, DocumentPageView, DocumentRow, DocumentVersionRow, MemoryView};
use console::parts::{Notice, NoticeKind, RunRow};
use console::{BASE, Screen};
use domain::{Code, Failure, Moment};
use serde::Deserialize;
use serde_json::Value;

/// How many waiting runs are looked through for proposals of documents.
const LOOKED_AT: usize = 200;
/// What the tools begin with that keep and change documents.
const MEMORY_TOOLS: &str = "memory_";

#[derive(Debug, Deserialize)]
pub(super) struct MemoryQuery {
    #[serde(default)]
    prefix: String,
    cursor: Option<String>,
    #[serde(default)]
    forgotten: String,
}

/// `GET /console/memory?prefix=&cursor=`.
pub(super) async fn list(person: ConsolePerson, query: Query<MemoryQuery>, gateway: Data<Gateway>) -> HttpResponse {
    reply::screen(&gateway, &person, "console_memory", async {
        let prefix = Some(query.prefix.trim()).filter(|prefix| !prefix.is_empty());
        let (documents, notice) =
            match memory_desk::list(&gateway, &person.authed, prefix, query.cursor.as_deref()).await {
                Ok(page) => (Some(page), None),
                Err(failure)
                    if prefix.is_some() && !failure.code.retryable() && failure.code != Code::InsufficientScope =>
                {
                    (None, Some(Notice { next: failure.next, ..Notice::new(NoticeKind::Bad, failure.message) }))
                }
                Err(failure) => return Err(failure),
            };
        let gone = Some("The document is forgotten.").filter(|_| !query.forgotten.is_empty());
        let notice = notice.or_else(|| gone.map(|text| Notice::new(NoticeKind::Good, text)));
        let next = documents.as_ref().and_then(|page| page.next_cursor.as_deref());
        let view = MemoryView {
            waiting: waiting(&gateway, &person).await?,
            next: next.map(|at| format!("{BASE}/memory?prefix={}&cursor={}", encode(&query.prefix), encode(at))),
            prefix: query.prefix.clone(),
            documents: documents
                .into_iter()
                .flat_map(|page| page.documents)
                .map(|document| DocumentRow {
                    updated_at: Moment::parse(&document.updated_at).unwrap_or(person.now),
                    path: document.path,
                    title: document.title,
                    kind: document.kind,
                    trust: document.trust,
                })
                .collect(),
            notice,
            now: person.now,
        };
        Ok(DrawnPage::ok(Screen::Memory, "Memory", false, page::list(&view)).into())
    })
    .await
}

/// Runs that wait and would keep or change a document, for whoever may see all runs.
async fn waiting(gateway: &Gateway, person: &ConsolePerson) -> Result<Option<Vec<RunRow>>, Failure> {
    if !run_desk::sees_all(&person.authed) {
        return Ok(None);
    }
    let runs = gateway.store.of(&person.authed.caller.tenant).runs();
    let page = runs.waiting(None, LOOKED_AT, &[]).await.map_err(|error| run_desk::no_store(&error))?;
    let proposals = page.runs.iter().filter(|run| run.tool.as_str().starts_with(MEMORY_TOOLS));
    Ok(Some(proposals.map(|run| inbox::row(&person.authed, run)).collect()))
}

/// `GET /console/memory/{path}`.
pub(super) async fn show(person: ConsolePerson, path: Path<String>, gateway: Data<Gateway>) -> HttpResponse {
    reply::screen(&gateway, &person, "console_document", async {
        drawn(&gateway, &person, &path, None, String::new(), StatusCode::OK).await
    })
    .await
}

/// A form that forgets a document.
#[derive(Debug, Default, Deserialize)]
pub(super) struct ForgetForm {
    #[serde(default)]
    path: String,
    #[serde(default)]
    sha256: String,
    #[serde(default)]
    reason: String,
    #[serde(default)]
    everything: String,
}

/// `POST /console/memory/forget`.
pub(super) async fn forget(
    person: ConsolePerson,
    request: HttpRequest,
    payload: Payload,
    gateway: Data<Gateway>,
) -> HttpResponse {
    reply::screen(&gateway, &person, "console_document_forget", async {
        let sent: ForgetForm = form::read(&gateway, &person, &request, payload).await?;
        let removal = DocumentRemoval {
            path: &sent.path,
            reason: Some(&sent.reason),
            redact: (!sent.everything.is_empty()).then_some("all"),
            if_sha256: Some(sent.sha256.clone()),
        };
        match Box::pin(memory_desk::remove(&gateway, &person.authed, removal)).await {
            Ok(_) => Ok(ConsoleAnswer::SeeOther(format!("{BASE}/memory?forgotten=1"))),
            // Whoever was too late, or gave no reason, sees the document as it is now with what was wrong on top.
            Err(failure) if !failure.code.retryable() && failure.code != Code::InsufficientScope => {
                let status = StatusCode::from_u16(mcp::codes::rest_status(failure.code));
                let text = format!("Nothing was forgotten: {}.", failure.message);
                let notice = Notice {
                    next: Some(changed(&gateway, &person, &sent).await),
                    ..Notice::new(NoticeKind::Bad, text)
                };
                drawn(
                    &gateway,
                    &person,
                    &sent.path,
                    Some(notice),
                    sent.reason.clone(),
                    status.unwrap_or(StatusCode::CONFLICT),
                )
                .await
            }
            Err(failure) => Err(failure),
        }
    })
    .await
}

/// Who changed a document since it was shown, if somebody did.
async fn changed(gateway: &Gateway, person: &ConsolePerson, sent: &ForgetForm) -> String {
    match memory_desk::show(gateway, &person.authed, &sent.path, None).await {
        Ok(now) if now.sha256 != sent.sha256 => {
            let by = now.provenance["actor"].as_str().unwrap_or_default();
            format!("Version {} was written by {by} at {}.", now.version, now.updated_at)
        }
        Ok(_) | Err(_) => "Look at it once more, and try again.".to_owned(),
    }
}

async fn drawn(
    gateway: &Gateway,
    person: &ConsolePerson,
    path: &str,
    notice: Option<Notice>,
    reason: String,
    status: StatusCode,
) -> Result<ConsoleAnswer, Failure> {
    let document = memory_desk::show(gateway, &person.authed, path, None).await?;
    let past = memory_desk::history(gateway, &person.authed, path, None).await?;
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    let some = |value: &Value| value.as_str().map(str::to_owned);
    let origin = &document.provenance;
    let view = DocumentPageView {
        tainted: origin["tainted"] == true,
        by: (text(&origin["actor"]), text(&origin["kind"])),
        run: some(&origin["run"]),
        approver: some(&origin["approver"]),
        versions: past
            .versions
            .iter()
            .map(|version| DocumentVersionRow {
                version: version["version"].as_u64().unwrap_or_default(),
                op: text(&version["op"]),
                by: (
                    text(&version["provenance"]["actor"]),
                    text(&version["provenance"]["kind"]),
                    text(&version["provenance"]["at"]),
                ),
                run: some(&version["provenance"]["run"]),
                difference: text(&version["diff"]),
                redacted: some(&version["redacted"]["reason"]),
            })
            .collect(),
        row: DocumentRow {
            updated_at: Moment::parse(&document.updated_at).unwrap_or(person.now),
            path: document.path,
            title: document.title,
            kind: document.kind,
            trust: document.trust,
        },
        sha256: document.sha256,
        content: document.content,
        evidence: document.evidence,
        findings: document.findings,
        reason,
        form_token: person.key.form_token(),
        notice,
        now: person.now,
    };
    let title = format!("Document {}", view.row.path);
    Ok(DrawnPage { status, ..DrawnPage::ok(Screen::Memory, title, false, page::page(&view)) }.into())
}
