//! `/console/servers`: external servers. What is done is done by `server_desk`, as for the REST API; a form that accepts
//! carries the digest of what was shown.

use super::form;
use super::person::ConsolePerson;
use super::reply::{self, ConsoleAnswer, DrawnPage};
use crate::app::Gateway;
use crate::server_desk::{self, AcceptRequest, SeenTool, waits};
use actix_web::http::StatusCode;
use actix_web::web::{Data, Path, Payload};
use actix_web::{HttpRequest, HttpResponse};
use console::parts::{Notice, NoticeKind};
use console::servers::{self as page, ServerRow, ServerView, ServersView, ToolView};
use console::{BASE, Screen};
use domain::{Code, Failure, Moment};
use external::{ListState, PinState, ServerStanding, ToolStanding};
use serde::Deserialize;

/// `GET /console/servers`.
pub(super) async fn list(person: ConsolePerson, gateway: Data<Gateway>) -> HttpResponse {
    reply::screen(&gateway, &person, "console_servers", async {
        let servers = server_desk::list(&gateway, &person.authed).await?;
        let view = ServersView { servers: servers.iter().map(row).collect(), now: person.now };
        Ok(DrawnPage::ok(Screen::Servers, "External servers", false, page::list(&view)).into())
    })
    .await
}

/// `GET /console/servers/{server}`.
pub(super) async fn show(person: ConsolePerson, id: Path<String>, gateway: Data<Gateway>) -> HttpResponse {
    reply::screen(&gateway, &person, "console_server", async {
        let server = server_desk::show(&gateway, &person.authed, &id).await?;
        Ok(drawn(&person, server, None, StatusCode::OK))
    })
    .await
}

/// A form about a server. Each reads what it needs.
#[derive(Debug, Default, Deserialize)]
pub(super) struct ServerForm {
    #[serde(default)]
    name: String,
    #[serde(default)]
    digest: String,
    #[serde(default)]
    list_digest: String,
}

/// `POST /console/servers/{server}/refresh`: the server is asked for its list now.
pub(super) async fn refresh(
    person: ConsolePerson,
    request: HttpRequest,
    id: Path<String>,
    payload: Payload,
    gateway: Data<Gateway>,
) -> HttpResponse {
    reply::screen(&gateway, &person, "console_server_refresh", async {
        let _: ServerForm = form::read(&gateway, &person, &request, payload).await?;
        server_desk::refresh(&gateway, &person.authed, &id).await?;
        Ok(ConsoleAnswer::SeeOther(address(&id)))
    })
    .await
}

/// `POST /console/servers/{server}/accept`: one tool, or all that wait, by the digest of what was shown.
pub(super) async fn accept(
    person: ConsolePerson,
    request: HttpRequest,
    id: Path<String>,
    payload: Payload,
    gateway: Data<Gateway>,
) -> HttpResponse {
    reply::screen(&gateway, &person, "console_server_accept", async {
        let ServerForm { name, digest, list_digest } = form::read(&gateway, &person, &request, payload).await?;
        let accepting = match list_digest.is_empty() {
            false => AcceptRequest { tools: Vec::new(), all: true, list_digest: Some(list_digest) },
            true => {
                let seen = SeenTool { name: name.clone(), digest };
                AcceptRequest { tools: vec![seen], all: false, list_digest: None }
            }
        };
        match server_desk::accept(&gateway, &person.authed, &id, &accepting).await {
            Ok(accepted) if accepted.is_empty() => {
                let server = server_desk::show(&gateway, &person.authed, &id).await?;
                let notice = already(&server, &name);
                Ok(drawn(&person, server, Some(notice), StatusCode::CONFLICT))
            }
            Ok(_) => Ok(ConsoleAnswer::SeeOther(address(&id))),
            Err(failure) if [Code::NotFound, Code::ToolChanged].contains(&failure.code) => {
                let server = server_desk::show(&gateway, &person.authed, &id).await?;
                let status = StatusCode::from_u16(mcp::codes::rest_status(failure.code));
                Ok(drawn(&person, server, Some(moved(&failure)), status.unwrap_or(StatusCode::CONFLICT)))
            }
            Err(failure) => Err(failure),
        }
    })
    .await
}

/// What is told to whoever accepted what somebody else had accepted.
fn already(server: &ServerStanding, name: &str) -> Notice {
    let tool = server.tools.iter().find(|tool| tool.name.as_deref() == Some(name) || tool.upstream_name == name);
    let text = match tool.and_then(|tool| tool.accepted.as_ref()) {
        Some(accepted) => {
            let by = accepted.by.as_deref().unwrap_or("the first list");
            format!("Somebody was quicker: {name} was accepted by {by} at {}.", accepted.at)
        }
        None => "Nothing of this server waits any more.".to_owned(),
    };
    Notice::new(NoticeKind::Plain, text)
}

/// What is told to whoever accepted something else than the server shows now.
fn moved(failure: &Failure) -> Notice {
    let accepted = failure.details.as_ref().and_then(|details| details["accepted"].as_array()).map_or(0, Vec::len);
    let done = if accepted == 0 { "Nothing was accepted" } else { "Not everything was accepted" };
    Notice { next: failure.next.clone(), ..Notice::new(NoticeKind::Bad, format!("{done}: {}.", failure.message)) }
}

fn address(id: &str) -> String {
    format!("{BASE}/servers/{}", super::oidc::encode(id))
}

fn drawn(person: &ConsolePerson, server: ServerStanding, notice: Option<Notice>, status: StatusCode) -> ConsoleAnswer {
    let view = ServerView {
        row: row(&server),
        list_digest: server.digest,
        pins_readable: server.pins_readable,
        beyond: server.beyond,
        tools: server.tools.into_iter().map(tool).collect(),
        form_token: person.key.form_token(),
        notice,
        now: person.now,
    };
    let title = format!("Server {}", view.row.id);
    DrawnPage { status, ..DrawnPage::ok(Screen::Servers, title, false, page::page(&view)) }.into()
}

fn row(server: &ServerStanding) -> ServerRow {
    let count = |wanted: fn(PinState) -> bool| server.tools.iter().filter(|tool| wanted(tool.pin)).count();
    ServerRow {
        id: server.id.clone(),
        description: server.description.clone(),
        toolset: server.toolset.clone(),
        own: server.own,
        state: match server.state {
            ListState::NeverListed => ("not listed yet", "warn"),
            ListState::Fresh => ("list is current", "good"),
            ListState::Stale => ("list is old", "warn"),
            ListState::Unreachable => ("gives no list", "bad"),
        },
        trouble: server
            .trouble
            .as_ref()
            .map(|trouble| (trouble.code.clone(), trouble.message.clone(), trouble.since.clone())),
        paused: server.paused,
        listed_at: server.listed_at.as_deref().and_then(Moment::parse),
        accepted: count(|pin| pin == PinState::Accepted),
        waiting: count(waits),
    }
}

fn tool(standing: ToolStanding) -> ToolView {
    let pretty = |value: &serde_json::Value| serde_json::to_string_pretty(value).unwrap_or_default();
    ToolView {
        state: match standing.pin {
            PinState::Accepted => "accepted",
            PinState::Changed => "changed",
            PinState::New => "new",
            PinState::Removed => "no longer listed",
            PinState::Refused => "refused",
            PinState::NotAllowed => "not in the allowlist",
        },
        waits: waits(standing.pin),
        effect: standing.effect.map(|effect| (effect, standing.why.unwrap_or_default().to_owned())),
        accepted: standing
            .accepted
            .map(|accepted| (accepted.by.unwrap_or_else(|| "the first list".to_owned()), accepted.at)),
        definition: standing.definition.as_ref().map(pretty),
        name: standing.name,
        upstream_name: standing.upstream_name,
        reason: standing.reason,
        digest: standing.digest,
        difference: standing.difference,
        remarks: standing.remarks,
    }
}
