//! `/console/runs` and `/console/mine`: runs in all states, and a person's own requests. Filters stand in the address.

use super::inbox;
use super::oidc::encode;
use super::person::ConsolePerson;
use super::reply::{self, ConsoleAnswer, DrawnPage};
use crate::app::Gateway;
use crate::run_desk::{self, RunFilter};
use actix_web::HttpResponse;
use actix_web::http::StatusCode;
use actix_web::http::header::CONTENT_DISPOSITION;
use actix_web::web::{Data, Query};
use console::parts::RunRow;
use console::runs::{self as page, RunFilterView, RunsView};
use console::{BASE, Screen};
use domain::run::RunState;
use domain::{Code, Failure};
use serde::Deserialize;

/// What is looked for, as it stands in the address. An empty value is none.
#[derive(Debug, Clone, Default, Deserialize)]
pub(super) struct ListQuery {
    #[serde(default)]
    state: String,
    #[serde(default)]
    tool: String,
    #[serde(default)]
    requester: String,
    #[serde(default)]
    decider: String,
    #[serde(default)]
    object: String,
    #[serde(default)]
    session: String,
    cursor: Option<String>,
    #[serde(default)]
    format: String,
}

/// `GET /console/runs`.
pub(super) async fn all(person: ConsolePerson, query: Query<ListQuery>, gateway: Data<Gateway>) -> HttpResponse {
    list(&person, &query, &gateway, Screen::Runs).await
}

/// `GET /console/mine`.
pub(super) async fn mine(person: ConsolePerson, query: Query<ListQuery>, gateway: Data<Gateway>) -> HttpResponse {
    list(&person, &query, &gateway, Screen::Mine).await
}

async fn list(person: &ConsolePerson, query: &ListQuery, gateway: &Gateway, screen: Screen) -> HttpResponse {
    let own = screen == Screen::Mine;
    let (title, path) = if own { ("My requests", "/mine") } else { ("All runs", "/runs") };
    reply::screen(gateway, person, if own { "console_mine" } else { "console_runs" }, async {
        let authed = &person.authed;
        let state = state(&query.state)?;
        let filter = RunFilter {
            state,
            tool: some(&query.tool),
            requester: some(&query.requester),
            decider: some(&query.decider),
            object: some(&query.object),
            session: some(&query.session),
            own,
        };
        let found = run_desk::page(gateway, authed, &filter, query.cursor.as_deref()).await?;
        let rows: Vec<RunRow> = found.runs.iter().map(|(run, _)| inbox::row(authed, run)).collect();
        if query.format == "csv" {
            return Ok(ConsoleAnswer::Ready(csv(&rows, &person.authed.trace_id)));
        }
        let address = |more: &str| {
            let filters = query.pairs();
            let all: Vec<&str> = [filters.as_str(), more].into_iter().filter(|part| !part.is_empty()).collect();
            format!("{BASE}{path}?{}", all.join("&"))
        };
        let view = RunsView {
            title,
            path,
            filter: RunFilterView {
                state,
                tool: query.tool.clone(),
                requester: query.requester.clone(),
                decider: query.decider.clone(),
                object: query.object.clone(),
                session: query.session.clone(),
            },
            own,
            next: found.next.map(|next| address(&format!("cursor={next}"))),
            in_part: found.in_part,
            export: (!rows.is_empty()).then(|| {
                let here = query.cursor.as_deref().map(|at| format!("cursor={}&", encode(at))).unwrap_or_default();
                address(&format!("{here}format=csv"))
            }),
            rows,
            notice: None,
            now: person.now,
        };
        Ok(DrawnPage::ok(screen, title, true, page::page(&view)).into())
    })
    .await
}

fn state(text: &str) -> Result<Option<RunState>, Failure> {
    if text.is_empty() {
        return Ok(None);
    }
    let known = RunState::ALL.into_iter().find(|state| state.as_str() == text);
    known.map(Some).ok_or_else(|| Failure::new(Code::InvalidRequest, "there is no such state"))
}

fn some(text: &str) -> Option<String> {
    Some(text.trim().to_owned()).filter(|text| !text.is_empty())
}

impl ListQuery {
    /// The filters as they stand in an address, without place and format.
    fn pairs(&self) -> String {
        let all = [
            ("state", &self.state),
            ("tool", &self.tool),
            ("requester", &self.requester),
            ("decider", &self.decider),
            ("object", &self.object),
            ("session", &self.session),
        ];
        let set = all.into_iter().filter(|(_, value)| !value.is_empty());
        set.map(|(name, value)| format!("{name}={}", encode(value))).collect::<Vec<_>>().join("&")
    }
}

/// The rows as a file. A cell that a spreadsheet would take for a formula begins with an apostrophe.
fn csv(rows: &[RunRow], trace_id: &str) -> HttpResponse {
    let cell = |text: &str| {
        let text = domain::text::visible(text);
        let formula = text.starts_with(['=', '+', '-', '@', '\t', '\r']);
        format!("\"{}{}\"", if formula { "'" } else { "" }, text.replace('"', "\"\""))
    };
    let mut text = String::from("id,state,tool,effect,object,requester,decided_by,asked_at,expires_at,summary\r\n");
    for row in rows {
        let cells = [
            row.id.as_str(),
            row.state.as_str(),
            &row.tool,
            row.effect.as_str(),
            row.object.as_deref().unwrap_or_default(),
            &row.requester,
            row.decided_by.as_deref().unwrap_or_default(),
            &row.asked_at.to_string(),
            &row.expires_at.to_string(),
            &row.summary,
        ];
        text.push_str(&cells.map(cell).join(","));
        text.push_str("\r\n");
    }
    reply::start(StatusCode::OK, trace_id)
        .insert_header((CONTENT_DISPOSITION, "attachment; filename=\"runs.csv\""))
        .content_type("text/csv; charset=utf-8")
        .body(text)
}

/// `GET` of an address of the console that is none.
pub(super) async fn nothing_here(person: ConsolePerson, gateway: Data<Gateway>) -> HttpResponse {
    reply::screen(&gateway, &person, "console_nothing", async {
        Err(Failure::new(Code::NotFound, "the console has no such page"))
    })
    .await
}
