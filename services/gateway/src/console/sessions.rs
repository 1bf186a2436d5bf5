//! `/console/sessions`: open sessions of the tenant, and the form that ends one.

use super::form::{self, EmptyForm};
use super::oidc::encode;
use super::person::ConsolePerson;
use super::reply::{self, ConsoleAnswer, DrawnPage};
use crate::app::Gateway;
use crate::http::caller::{administers, audits};
use crate::session_desk::{self, SessionInUse};
use actix_web::http::StatusCode;
use actix_web::web::{Data, Path, Payload, Query};
use actix_web::{HttpRequest, HttpResponse};
use console::parts::{Notice, NoticeKind};
use console::sessions::{self as page, SessionRow, SessionsView};
use console::{BASE, Screen};
use domain::{Code, Failure, Level};
use serde::Deserialize;

#[derive(Debug, Default, Deserialize)]
pub(super) struct SessionsQuery {
    after: Option<String>,
    #[serde(default)]
    done: String,
}

/// `GET /console/sessions?after=&done=`.
pub(super) async fn list(person: ConsolePerson, query: Query<SessionsQuery>, gateway: Data<Gateway>) -> HttpResponse {
    let ended = (query.done == "ended").then(|| Notice {
        next: Some("Its agent is told so at its next call, and may open another one.".to_owned()),
        ..Notice::new(NoticeKind::Good, "The session is ended, on all replicas.")
    });
    reply::screen(&gateway, &person, "console_sessions", async {
        Ok(drawn(&gateway, &person, query.after.as_deref(), ended, StatusCode::OK).await?.into())
    })
    .await
}

/// `POST /console/sessions/{session}/end`.
pub(super) async fn end(
    person: ConsolePerson,
    request: HttpRequest,
    id: Path<String>,
    payload: Payload,
    gateway: Data<Gateway>,
) -> HttpResponse {
    reply::screen(
        &gateway,
        &person,
        "console_end_session",
        Box::pin(async {
            let EmptyForm {} = form::read(&gateway, &person, &request, payload).await?;
            match session_desk::end(&gateway, &person.authed, &id).await {
                Ok(()) => Ok(ConsoleAnswer::SeeOther(format!("{BASE}/sessions?done=ended"))),
                Err(failure) if failure.code == Code::NotFound => {
                    let notice = Notice::new(NoticeKind::Bad, format!("Nothing was done: {}.", failure.message));
                    Ok(drawn(&gateway, &person, None, Some(notice), StatusCode::NOT_FOUND).await?.into())
                }
                Err(failure) => Err(failure),
            }
        }),
    )
    .await
}

async fn drawn(
    gateway: &Gateway,
    person: &ConsolePerson,
    after: Option<&str>,
    notice: Option<Notice>,
    status: StatusCode,
) -> Result<DrawnPage, Failure> {
    let found = session_desk::list(gateway, &person.authed, after).await?;
    let view = SessionsView {
        rows: found.sessions.into_iter().map(row).collect(),
        next: found.next.map(|next| format!("{BASE}/sessions?after={}", encode(&next.to_string()))),
        further: after.is_some(),
        cut: found.cut,
        ends: administers(&person.authed).is_ok(),
        audits: audits(&person.authed).is_ok(),
        form_token: person.key.form_token(),
        notice,
        now: person.now,
    };
    let address = Some(format!("{BASE}/sessions"));
    let drawn = DrawnPage::ok(Screen::Sessions, "Sessions", false, page::page(&view));
    Ok(DrawnPage { status, address, ..drawn })
}

fn row(in_use: SessionInUse) -> SessionRow {
    let SessionInUse { session, tokens, last_used, calls } = in_use;
    let assignment = &session.assignment;
    let opened_for = [assignment.agent.as_deref(), assignment.workflow.as_deref()];
    let opened_for = opened_for.into_iter().flatten().collect::<Vec<_>>().join(", workflow ");
    SessionRow {
        id: session.id.to_string(),
        owner: session.owner.subject.clone(),
        client: session.client.as_deref().map(str::to_owned),
        door: session.door,
        assignment: (!opened_for.is_empty()).then_some(opened_for),
        mode: session.mode,
        toolsets: session.loaded.iter().map(|(name, level)| (name.to_string(), level == Level::Write)).collect(),
        tokens,
        tainted: session.tainted,
        opened_at: session.opened_at,
        last_used,
        calls,
    }
}
