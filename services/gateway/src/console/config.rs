//! `/console/config`: the tenant's configuration. What is done is done by `config_desk`, as for the REST API.
//!
//! A form carries the tag of what was shown. Whoever saves after somebody else gets their text back, the difference against
//! what holds by then, and the name of whoever was quicker.

use super::form::{self, text_of_field};
use super::person::ConsolePerson;
use super::reply::{self, ConsoleAnswer, DrawnPage};
use super::{config_keys, difference};
use crate::app::Gateway;
use crate::config_desk::{self, MOST_BYTES, TenantView, Warning};
use actix_web::http::StatusCode;
use actix_web::web::{Data, Path, Payload, Query};
use actix_web::{HttpRequest, HttpResponse};
use console::config::{self as page, ConfigView, DraftView, ProblemView};
use console::config_history::{self, HistoryView, VersionRow, VersionView};
use console::parts::{Notice, NoticeKind};
use console::{BASE, Screen};
use domain::{Code, Failure, Moment};
use serde::Deserialize;
use tenancy::Problem;

/// The largest form: a text of which every byte is written out as three.
pub(super) const LARGEST_FORM: usize = 3 * MOST_BYTES + 16 * 1024;
/// How much of a line is shown beside a mistake in it.
const LONGEST_EXCERPT: usize = 200;

/// A form about the configuration. Each reads what it needs.
#[derive(Debug, Default, Deserialize)]
pub(super) struct ConfigForm {
    #[serde(default)]
    etag: String,
    #[serde(default)]
    text: String,
    #[serde(default)]
    note: String,
    #[serde(default)]
    version: u64,
}

#[derive(Debug, Deserialize)]
pub(super) struct ConfigQuery {
    saved: Option<u64>,
}

/// `GET /console/config?saved=`.
pub(super) async fn show(person: ConsolePerson, query: Query<ConfigQuery>, gateway: Data<Gateway>) -> HttpResponse {
    reply::screen(&gateway, &person, "console_config", async {
        let now = config_desk::show(&gateway, &person.authed).await?;
        // The address is only believed where it says what is true.
        let saved = query.saved.filter(|saved| now.version == Some(*saved) || now.version.is_none());
        let notice = saved.map(|saved| match now.version {
            Some(_) => Notice::new(NoticeKind::Good, format!("Version {saved} is saved.")),
            None => Notice::new(NoticeKind::Good, "The tenant's file holds again."),
        });
        drawn(&gateway, &person, now, None, notice, StatusCode::OK)
    })
    .await
}

/// `POST /console/config/check`: what saving this text would say.
pub(super) async fn check(
    person: ConsolePerson,
    request: HttpRequest,
    payload: Payload,
    gateway: Data<Gateway>,
) -> HttpResponse {
    reply::screen(&gateway, &person, "console_config_check", async {
        let sent: ConfigForm = form::read_up_to(LARGEST_FORM, &gateway, &person, &request, payload).await?;
        let text = text_of_field(&sent.text);
        let checked = config_desk::check(&gateway, &person.authed, &text).await?;
        let now = config_desk::show(&gateway, &person.authed).await?;
        let draft = DraftView {
            problems: problems(&checked.problems, &text),
            warnings: messages(checked.warnings),
            difference: difference::between(&now.text, &text),
            note: sent.note,
            text,
        };
        let moved = (sent.etag != now.etag).then(|| quicker(&now, "The difference below is against that."));
        drawn(&gateway, &person, now, Some(draft), moved, StatusCode::OK)
    })
    .await
}

/// `POST /console/config/save`.
pub(super) async fn save(
    person: ConsolePerson,
    request: HttpRequest,
    payload: Payload,
    gateway: Data<Gateway>,
) -> HttpResponse {
    reply::screen(&gateway, &person, "console_config_save", async {
        let sent: ConfigForm = form::read_up_to(LARGEST_FORM, &gateway, &person, &request, payload).await?;
        let text = text_of_field(&sent.text);
        let set = match commented(&sent) {
            Ok(note) => config_desk::set(&gateway, &person.authed, &sent.etag, text.clone(), Some(note)).await,
            Err(failure) => Err(failure),
        };
        match set {
            Ok(change) => Ok(ConsoleAnswer::SeeOther(format!("{BASE}/config?saved={}", change.version))),
            Err(failure) if told_on_the_page(failure.code) => {
                let now = config_desk::show(&gateway, &person.authed).await?;
                // Whatever was wrong with the form, the text is told about as well.
                let checked = config_desk::check(&gateway, &person.authed, &text).await?;
                let draft = DraftView {
                    problems: problems(&checked.problems, &text),
                    warnings: messages(checked.warnings),
                    difference: difference::between(&now.text, &text),
                    note: sent.note,
                    text,
                };
                let next = "Your text is below. Look at the difference, and save again if it is right.";
                let notice = match failure.code == Code::ConfigConflict {
                    true => quicker(&now, next),
                    false => Notice::new(NoticeKind::Bad, format!("Nothing was saved: {}.", failure.message)),
                };
                drawn(&gateway, &person, now, Some(draft), Some(notice), status(&failure))
            }
            Err(failure) => Err(failure),
        }
    })
    .await
}

/// `POST /console/config/remove`: back to the file.
pub(super) async fn remove(
    person: ConsolePerson,
    request: HttpRequest,
    payload: Payload,
    gateway: Data<Gateway>,
) -> HttpResponse {
    reply::screen(&gateway, &person, "console_config_remove", async {
        let sent: ConfigForm = form::read(&gateway, &person, &request, payload).await?;
        let removed = match commented(&sent) {
            Ok(note) => config_desk::remove(&gateway, &person.authed, &sent.etag, Some(note)).await,
            Err(failure) => Err(failure),
        };
        match removed {
            Ok(change) => Ok(ConsoleAnswer::SeeOther(format!("{BASE}/config?saved={}", change.version))),
            Err(failure) if told_on_the_page(failure.code) => {
                let now = config_desk::show(&gateway, &person.authed).await?;
                let notice = refused(&failure, &now);
                drawn(&gateway, &person, now, None, Some(notice), status(&failure))
            }
            Err(failure) => Err(failure),
        }
    })
    .await
}

#[derive(Debug, Deserialize)]
pub(super) struct HistoryQuery {
    before: Option<u64>,
}

/// `GET /console/config/history?before=`.
pub(super) async fn history(person: ConsolePerson, query: Query<HistoryQuery>, gateway: Data<Gateway>) -> HttpResponse {
    reply::screen(&gateway, &person, "console_config_history", async {
        let past = config_desk::history(&gateway, &person.authed, query.before).await?;
        let now = config_desk::show(&gateway, &person.authed).await?;
        let versions = past.versions.iter().map(|version| row(version, &now, person.now)).collect();
        let view = HistoryView { versions, before: past.next_before, now: person.now };
        Ok(DrawnPage::ok(Screen::Config, "Earlier versions", false, config_history::list(&view)).into())
    })
    .await
}

/// `GET /console/config/history/{version}`.
pub(super) async fn version(person: ConsolePerson, number: Path<String>, gateway: Data<Gateway>) -> HttpResponse {
    reply::screen(&gateway, &person, "console_config_version", async {
        one(&gateway, &person, &number, None, StatusCode::OK).await
    })
    .await
}

/// `POST /console/config/rollback`: an earlier text holds again.
pub(super) async fn rollback(
    person: ConsolePerson,
    request: HttpRequest,
    payload: Payload,
    gateway: Data<Gateway>,
) -> HttpResponse {
    reply::screen(&gateway, &person, "console_config_rollback", async {
        let sent: ConfigForm = form::read(&gateway, &person, &request, payload).await?;
        let set = match commented(&sent) {
            Ok(note) => config_desk::rollback(&gateway, &person.authed, &sent.etag, sent.version, Some(note)).await,
            Err(failure) => Err(failure),
        };
        match set {
            Ok(change) => Ok(ConsoleAnswer::SeeOther(format!("{BASE}/config?saved={}", change.version))),
            Err(failure) if told_on_the_page(failure.code) => {
                let now = config_desk::show(&gateway, &person.authed).await?;
                let notice = Notice { next: first_problem(&failure), ..refused(&failure, &now) };
                one(&gateway, &person, &sent.version.to_string(), Some(notice), status(&failure)).await
            }
            Err(failure) => Err(failure),
        }
    })
    .await
}

/// `GET /console/config/keys`: what every key means.
pub(super) async fn keys(person: ConsolePerson, gateway: Data<Gateway>) -> HttpResponse {
    reply::screen(&gateway, &person, "console_config_keys", async {
        crate::http::caller::administers(&person.authed)?;
        let keys = config_keys::of(&tenancy::json_schema(&gateway.tenants.sections()));
        let content = console::config_keys::page(&keys);
        Ok(DrawnPage::ok(Screen::Config, "Every key, explained", false, content).into())
    })
    .await
}

async fn one(
    gateway: &Gateway,
    person: &ConsolePerson,
    number: &str,
    notice: Option<Notice>,
    status: StatusCode,
) -> Result<ConsoleAnswer, Failure> {
    let found = config_desk::version(gateway, &person.authed, number).await?;
    let now = config_desk::show(gateway, &person.authed).await?;
    let difference = found.text.as_ref().map(|text| difference::between(&now.text, text)).unwrap_or_default();
    let view = VersionView {
        row: row(&found, &now, person.now),
        text: found.text,
        difference,
        etag: now.etag,
        locked: now.locked,
        form_token: person.key.form_token(),
        notice,
        now: person.now,
    };
    let title = format!("Version {}", view.row.version);
    Ok(DrawnPage { status, ..DrawnPage::ok(Screen::Config, title, false, config_history::page(&view)) }.into())
}

fn drawn(
    gateway: &Gateway,
    person: &ConsolePerson,
    now: TenantView,
    draft: Option<DraftView>,
    notice: Option<Notice>,
    status: StatusCode,
) -> Result<ConsoleAnswer, Failure> {
    let at = now.set_at.as_deref().and_then(Moment::parse);
    let view = ConfigView {
        version: now.version,
        set: now.set_by.zip(at),
        etag: now.etag,
        note: now.note,
        locked: now.locked,
        in_force: now.in_force,
        problems: problems(&now.problems, &now.text),
        warnings: messages(config_desk::warnings_now(gateway, &person.authed)?),
        text: now.text,
        draft,
        form_token: person.key.form_token(),
        notice,
        now: person.now,
    };
    Ok(DrawnPage { status, ..DrawnPage::ok(Screen::Config, "Configuration", false, page::page(&view)) }.into())
}

fn row(version: &config_desk::TenantVersion, now: &TenantView, read: Moment) -> VersionRow {
    VersionRow {
        version: version.version,
        removed: version.removed,
        by: version.set_by.clone(),
        at: Moment::parse(&version.set_at).unwrap_or(read),
        note: version.note.clone(),
        current: now.version == Some(version.version),
    }
}

/// A change is saved with a comment: the history is read by people.
fn commented(sent: &ConfigForm) -> Result<&str, Failure> {
    let note = sent.note.trim();
    match note.is_empty() {
        true => Err(Failure::new(Code::InvalidRequest, "a change needs a comment that says why")),
        false => Ok(note),
    }
}

/// What is told above the text that was sent, so that nothing of it is lost.
fn told_on_the_page(code: Code) -> bool {
    [Code::ConfigInvalid, Code::ConfigConflict, Code::InvalidRequest, Code::NotFound, Code::TooLarge].contains(&code)
}

fn status(failure: &Failure) -> StatusCode {
    StatusCode::from_u16(mcp::codes::rest_status(failure.code)).unwrap_or(StatusCode::CONFLICT)
}

fn refused(failure: &Failure, now: &TenantView) -> Notice {
    match failure.code == Code::ConfigConflict {
        true => quicker(now, "Look at what holds now, and try again if it is right."),
        false => Notice::new(NoticeKind::Bad, format!("Nothing was changed: {}.", failure.message)),
    }
}

/// What the loser of a race is told.
fn quicker(now: &TenantView, next: &str) -> Notice {
    let text = match (now.version, &now.set_by, &now.set_at) {
        (Some(version), Some(by), Some(at)) => {
            format!("Somebody was quicker: version {version} was set by {by} at {at}.")
        }
        _ => "Somebody was quicker: the tenant's file holds now, or was changed.".to_owned(),
    };
    Notice { next: Some(next.to_owned()), ..Notice::new(NoticeKind::Bad, text) }
}

fn messages(warnings: Vec<Warning>) -> Vec<String> {
    warnings.into_iter().map(|warning| warning.message).collect()
}

pub(super) fn problems(found: &[Problem], text: &str) -> Vec<ProblemView> {
    let view = |problem: &Problem| ProblemView {
        line: problem.line,
        column: problem.column,
        code: problem.code.to_owned(),
        message: problem.message.clone(),
        hint: problem.hint.clone(),
        excerpt: excerpt(text, problem.line),
    };
    found.iter().map(view).collect()
}

/// The first mistake that a refusal names.
fn first_problem(failure: &Failure) -> Option<String> {
    let problem = failure.details.as_ref()?.get("problems")?.get(0)?;
    Some(format!(
        "Line {}, column {}: {}",
        problem["line"],
        problem["column"],
        problem["message"].as_str().unwrap_or_default()
    ))
}

/// The line in which a mistake stands.
pub(super) fn excerpt(text: &str, line: u32) -> String {
    let at = usize::try_from(line).unwrap_or(1).saturating_sub(1);
    text.lines().nth(at).unwrap_or_default().chars().take(LONGEST_EXCERPT).collect()
}
