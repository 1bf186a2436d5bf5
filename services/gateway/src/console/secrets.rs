//! `/console/secrets`: names of secrets, and values that only go in. What is done is done by `secret_desk`, as for the REST
//! API; a form carries the version that was shown.

use super::form::{self, text_of_field};
use super::person::ConsolePerson;
use super::reply::{self, ConsoleAnswer, DrawnPage};
use crate::app::Gateway;
use crate::secret_desk::{self, SecretSummary};
use actix_web::http::StatusCode;
use actix_web::web::{Data, Payload, Query};
use actix_web::{HttpRequest, HttpResponse};
use console::parts::{Notice, NoticeKind};
use console::secrets::{self as page, SecretRow, SecretsView};
use console::{BASE, Screen};
use domain::{Code, Failure, Moment};
use redact::SecretText;
use serde::Deserialize;
use std::collections::BTreeSet;
use store::WritePrecondition;
use tenancy::SecretUse;
use vault::{MOST_BYTES, Missing, is_secret_name};

/// The largest form: a value of which every byte is written out as three.
const LARGEST_FORM: usize = 3 * MOST_BYTES + 16 * 1024;

#[derive(Debug, Deserialize)]
pub(super) struct SecretsQuery {
    #[serde(default)]
    name: String,
    #[serde(default)]
    done: String,
}

/// A form about a secret. It does not print: it may hold a value.
#[derive(Deserialize)]
struct SecretForm {
    #[serde(default)]
    name: String,
    #[serde(default)]
    value: String,
    #[serde(default)]
    version: u64,
    #[serde(default)]
    typed: String,
}

/// `GET /console/secrets?name=&done=`.
pub(super) async fn show(person: ConsolePerson, query: Query<SecretsQuery>, gateway: Data<Gateway>) -> HttpResponse {
    reply::screen(&gateway, &person, "console_secrets", async {
        let notice = match query.done.as_str() {
            "set" => Some(Notice::new(NoticeKind::Good, "The secret is set.")),
            "removed" => Some(Notice::new(NoticeKind::Good, "The secret is removed.")),
            _ => None,
        };
        drawn(&gateway, &person, &query.name, notice, StatusCode::OK).await
    })
    .await
}

/// `POST /console/secrets/set`: in the place of the version that was shown, or of none.
pub(super) async fn set(
    person: ConsolePerson,
    request: HttpRequest,
    payload: Payload,
    gateway: Data<Gateway>,
) -> HttpResponse {
    reply::screen(&gateway, &person, "console_secret_set", async {
        let sent: SecretForm = form::read_up_to(LARGEST_FORM, &gateway, &person, &request, payload).await?;
        let base = match sent.version {
            0 => WritePrecondition::Absent,
            version => WritePrecondition::Version(version),
        };
        let value = SecretText::new(meant(&sent.value));
        let set = secret_desk::set(&gateway, &person.authed, sent.name.trim(), value, Some(base)).await;
        answered(&gateway, &person, set.map(|_| "set"), sent.name.trim()).await
    })
    .await
}

/// `POST /console/secrets/remove`: the version that was shown. The name is typed, because what uses it stops working.
pub(super) async fn remove(
    person: ConsolePerson,
    request: HttpRequest,
    payload: Payload,
    gateway: Data<Gateway>,
) -> HttpResponse {
    reply::screen(&gateway, &person, "console_secret_remove", async {
        let sent: SecretForm = form::read(&gateway, &person, &request, payload).await?;
        let removed = match sent.typed.trim() == sent.name {
            true => secret_desk::remove(&gateway, &person.authed, &sent.name, Some(sent.version)).await,
            false => Err(Failure::new(Code::InvalidArgument, "the typed name is not that of the secret")),
        };
        answered(&gateway, &person, removed.map(|_| "removed"), "").await
    })
    .await
}

/// Leads to the list, or shows it again with what was wrong. The value that was sent is gone either way.
async fn answered(
    gateway: &Gateway,
    person: &ConsolePerson,
    done: Result<&str, Failure>,
    name: &str,
) -> Result<ConsoleAnswer, Failure> {
    let told = [Code::InvalidArgument, Code::InvalidRequest, Code::ConfigConflict, Code::NotFound, Code::TooLarge];
    match done {
        Ok(word) => Ok(ConsoleAnswer::SeeOther(format!("{BASE}/secrets?done={word}"))),
        Err(failure) if told.contains(&failure.code) || failure.code == Code::QuotaExceeded => {
            let status = StatusCode::from_u16(mcp::codes::rest_status(failure.code)).unwrap_or(StatusCode::CONFLICT);
            drawn(gateway, person, name, Some(notice_of(&failure)), status).await
        }
        Err(failure) => Err(failure),
    }
}

fn notice_of(failure: &Failure) -> Notice {
    let winner = failure.details.as_ref().filter(|_| failure.code == Code::ConfigConflict);
    let text = match winner {
        Some(details) => format!(
            "Somebody was quicker: version {} was set by {} at {}. Nothing was changed.",
            details["version"],
            details["set_by"].as_str().unwrap_or_default(),
            details["set_at"].as_str().unwrap_or_default(),
        ),
        None => format!("Nothing was changed: {}.", failure.message),
    };
    let next = match failure.code == Code::ConfigConflict {
        true => Some("The list below shows what stands now. Enter the value again if it is still right.".to_owned()),
        false => failure.next.clone(),
    };
    Notice { next, ..Notice::new(NoticeKind::Bad, text) }
}

/// The value that was meant: people paste a token with the line break that stood behind it.
fn meant(value: &str) -> String {
    let text = text_of_field(value);
    match text.strip_suffix('\n') {
        Some(line) if !line.contains('\n') => line.to_owned(),
        Some(_) | None => text,
    }
}

async fn drawn(
    gateway: &Gateway,
    person: &ConsolePerson,
    chosen: &str,
    notice: Option<Notice>,
    status: StatusCode,
) -> Result<ConsoleAnswer, Failure> {
    let list = secret_desk::list(gateway, &person.authed).await?;
    let tenant = &person.authed.caller.tenant;
    let config = gateway.tenants.config_of(tenant);
    let uses = config.as_ref().map(|config| tenancy::secret_uses(&gateway.tenants.sections(), config));
    let uses = uses.unwrap_or_default();
    let named = config.iter().flat_map(|config| config.secrets.iter());
    let missing = named.filter(|name| matches!(gateway.vault.read(tenant, name), Err(Missing::Unknown { .. })));
    let view = SecretsView {
        missing: missing.cloned().collect(),
        secrets: list.secrets.into_iter().map(|secret| row(secret, &uses, person.now)).collect(),
        chosen: Some(chosen).filter(|name| is_secret_name(name)).unwrap_or_default().to_owned(),
        locked: !gateway.tenants.over_http(),
        form_token: person.key.form_token(),
        notice,
        now: person.now,
    };
    Ok(DrawnPage { status, ..DrawnPage::ok(Screen::Secrets, "Secrets", false, page::page(&view)) }.into())
}

fn row(secret: SecretSummary, uses: &BTreeSet<SecretUse>, now: Moment) -> SecretRow {
    let of_this = uses.iter().filter(|used| used.secret == secret.name);
    SecretRow {
        uses: of_this.map(|used| format!("{}: {}", used.section, used.place)).collect(),
        source: match secret.source {
            Some("store") => "set by people",
            Some("file") => "a file of the operator",
            Some("environment") => "a variable of the operator",
            Some(_) | None => "nowhere",
        },
        hides_operators: secret.kept.is_some() && secret.sources.len() > 1,
        trouble: secret.kept.as_ref().and_then(|kept| match kept.standing {
            "unopenable" => Some("cannot be opened: set it again"),
            _ => None,
        }),
        set: secret.kept.map(|kept| (kept.version, kept.set_by, Moment::parse(&kept.set_at).unwrap_or(now))),
        name: secret.name,
    }
}

#[cfg(test)]
mod tests {
    use super::meant;

    #[test]
    fn a_single_line_is_meant_without_its_end() {
        assert_eq!(meant("token\r\n"), "token");
        assert_eq!(meant("token"), "token");
        assert_eq!(meant("-----BEGIN\r\nx\r\n"), "-----BEGIN\nx\n");
        assert_eq!(meant("\r\n"), "");
        assert_eq!(meant(" token "), " token ");
    }
}
