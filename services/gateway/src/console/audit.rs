//! `/console/audit`: the audit log, its entries, its export, and whether it is as it was sealed.

use super::form::{self, EmptyForm};
use super::oidc::encode;
use super::person::ConsolePerson;
use super::reply::{self, ConsoleAnswer, DrawnPage};
use crate::app::Gateway;
use crate::audit_desk::{self, AuditFilter};
use crate::http::audit::{AuditItem, AuditVerdict};
use actix_web::http::StatusCode;
use actix_web::http::header::CONTENT_DISPOSITION;
use actix_web::web::{Bytes, Data, Path, Payload, Query};
use actix_web::{HttpRequest, HttpResponse};
use archive::{ExportEntry, write_line};
use console::audit::{self as page, AuditFilterView, AuditRow, AuditView};
use console::audit_entry::{self, AuditEntryView, ContentsView};
use console::parts::{Notice, NoticeKind};
use console::{BASE, Screen};
use domain::text::visible_json;
use domain::{Code, Failure, Moment, RunId};
use serde::Deserialize;
use serde_json::Value;
use store::EntryPlace;

/// Entries on one page.
const PAGE: usize = 30;
/// The longest text of an entry that is shown in one piece; the export has all of it.
const LONGEST_SHOWN: usize = 20_000;
const JSON_LINES: &str = "application/jsonl; charset=utf-8";

/// What is looked for, as it stands in the address. An empty value is none.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(default)]
pub(super) struct AuditListQuery {
    since: String,
    until: String,
    tool: String,
    target: String,
    principal: String,
    run: String,
    session: String,
    call: String,
    code: String,
    text: String,
    before: String,
    format: String,
}

impl AuditListQuery {
    fn filter(&self) -> Result<AuditFilter, Failure> {
        let some = |text: &str| Some(text.trim().to_owned()).filter(|text| !text.is_empty());
        Ok(AuditFilter {
            since: moment("the first moment", &self.since)?,
            until: moment("the last moment", &self.until)?,
            tool: some(&self.tool),
            target: some(&self.target),
            principal: some(&self.principal),
            run: some(&self.run),
            session: some(&self.session),
            call: some(&self.call),
            code: some(&self.code),
            text: some(&self.text),
        })
    }

    /// The address of the same search, with this besides.
    fn address(&self, more: &[(&str, &str)]) -> String {
        let all = [
            ("since", self.since.as_str()),
            ("until", &self.until),
            ("tool", &self.tool),
            ("target", &self.target),
            ("principal", &self.principal),
            ("run", &self.run),
            ("session", &self.session),
            ("call", &self.call),
            ("code", &self.code),
            ("text", &self.text),
        ];
        let set = all.into_iter().chain(more.iter().copied()).filter(|(_, value)| !value.is_empty());
        let pairs: Vec<String> = set.map(|(name, value)| format!("{name}={}", encode(value))).collect();
        if pairs.is_empty() { format!("{BASE}/audit") } else { format!("{BASE}/audit?{}", pairs.join("&")) }
    }
}

/// A moment as a browser's field has it, without a zone and perhaps without seconds, or as links have it.
fn moment(name: &str, text: &str) -> Result<Option<Moment>, Failure> {
    let text = text.trim();
    if text.is_empty() {
        return Ok(None);
    }
    let spelled = [text.to_owned(), format!("{text}Z"), format!("{text}:00Z")];
    let wrong = || Failure::new(Code::InvalidRequest, format!("{name} is a time such as 2026-01-31T12:00"));
    spelled.iter().find_map(|text| Moment::parse(text)).map(Some).ok_or_else(wrong)
}

/// `GET /console/audit`.
pub(super) async fn list(person: ConsolePerson, query: Query<AuditListQuery>, gateway: Data<Gateway>) -> HttpResponse {
    reply::screen(
        &gateway,
        &person,
        "console_audit",
        Box::pin(async {
            let filter = query.filter()?;
            let unknown = || Failure::new(Code::BadCursor, "this page of the audit log does not exist");
            let before = Some(query.before.as_str()).filter(|text| !text.is_empty());
            let before = before.map(|text| EntryPlace::parse(text).ok_or_else(unknown)).transpose()?;
            let found = audit_desk::newest_first(&gateway, &person.authed, &filter, before, PAGE).await?;
            if query.format == "jsonl" {
                return Ok(ConsoleAnswer::Ready(as_lines(found.page.entries, &person.authed.trace_id)?));
            }
            let seal = found.page.seal;
            let rows: Vec<AuditRow> =
                found.page.entries.iter().map(|item| row(item, seal.map(|seal| seal.entry))).collect();
            let view = AuditView {
                filter: AuditFilterView {
                    since: query.since.clone(),
                    until: query.until.clone(),
                    tool: query.tool.clone(),
                    target: query.target.clone(),
                    principal: query.principal.clone(),
                    run: query.run.clone(),
                    session: query.session.clone(),
                    code: query.code.clone(),
                    text: query.text.clone(),
                },
                export: (!rows.is_empty()).then(|| query.address(&[("before", &query.before), ("format", "jsonl")])),
                rows,
                next: found.page.next_cursor.map(|next| query.address(&[("before", &next)])),
                first: before.map(|_| query.address(&[])),
                in_part: found.in_part,
                form_token: person.key.form_token(),
                notice: None,
                now: person.now,
            };
            Ok(DrawnPage::ok(Screen::Audit, "Audit log", false, page::page(&view)).into())
        }),
    )
    .await
}

/// The entries of a page as a file, with what they were sealed with.
fn as_lines(entries: Vec<AuditItem>, trace_id: &str) -> Result<HttpResponse, Failure> {
    let mut text = String::new();
    for AuditItem { id, contents, entry, .. } in entries {
        write_line(&mut text, &ExportEntry { id, contents, entry })
            .map_err(|_| Failure::new(Code::Internal, "the entries cannot be written"))?;
    }
    Ok(reply::start(StatusCode::OK, trace_id)
        .insert_header((CONTENT_DISPOSITION, "attachment; filename=\"audit-page.jsonl\""))
        .content_type(JSON_LINES)
        .body(text))
}

/// `GET /console/audit/{entry}`.
pub(super) async fn show(person: ConsolePerson, id: Path<String>, gateway: Data<Gateway>) -> HttpResponse {
    reply::screen(&gateway, &person, "console_audit_entry", async {
        let item = audit_desk::entry(&gateway, &person.authed, &id).await?;
        let view = entry_view(&item, person.now);
        Ok(DrawnPage::ok(Screen::Audit, format!("Entry {}", item.id), false, audit_entry::page(&view)).into())
    })
    .await
}

/// `POST /console/audit/verify`.
pub(super) async fn verify(
    person: ConsolePerson,
    request: HttpRequest,
    payload: Payload,
    gateway: Data<Gateway>,
) -> HttpResponse {
    reply::screen(
        &gateway,
        &person,
        "console_audit_verify",
        Box::pin(async {
            let EmptyForm {} = form::read(&gateway, &person, &request, payload).await?;
            let verdict: AuditVerdict = audit_desk::verify(&gateway, &person.authed).await?.into();
            let filter = AuditFilter::default();
            let found = audit_desk::newest_first(&gateway, &person.authed, &filter, None, PAGE).await?;
            let seal = found.page.seal.map(|seal| seal.entry);
            let query = AuditListQuery::default();
            let view = AuditView {
                filter: AuditFilterView::default(),
                rows: found.page.entries.iter().map(|item| row(item, seal)).collect(),
                next: found.page.next_cursor.map(|next| query.address(&[("before", &next)])),
                first: None,
                in_part: false,
                export: None,
                form_token: person.key.form_token(),
                notice: Some(verdict_notice(&verdict)),
                now: person.now,
            };
            let address = Some(query.address(&[]));
            let drawn = DrawnPage::ok(Screen::Audit, "Audit log", false, page::page(&view));
            Ok(DrawnPage { address, ..drawn }.into())
        }),
    )
    .await
}

fn verdict_notice(verdict: &AuditVerdict) -> Notice {
    if let Some(flaw) = &verdict.flaw {
        let text = format!("The audit log is not as it was sealed: {flaw}.");
        let next = match &verdict.entry {
            Some(entry) => {
                format!("Look at the entry {entry}, keep a copy of the store, and compare with your exports.")
            }
            None => "Keep a copy of the store, and compare with your exports.".to_owned(),
        };
        return Notice { next: Some(next), ..Notice::new(NoticeKind::Bad, text) };
    }
    let signed = match verdict.checkpoints {
        0 => "no checkpoint yet".to_owned(),
        1 => format!("1 checkpoint, signed up to entry {}", verdict.signed),
        count => format!("{count} checkpoints, signed up to entry {}", verdict.signed),
    };
    let begins = if verdict.after == 0 { String::new() } else { format!(" behind entry {}", verdict.after) };
    let text = format!(
        "The audit log is intact{begins}: {} entries, {} sealed, {} not sealed yet; {signed}.",
        verdict.entries, verdict.sealed, verdict.unsealed
    );
    Notice::new(NoticeKind::Good, text)
}

/// `GET /console/audit/export`: everything, as it is read.
pub(super) async fn export(person: ConsolePerson, gateway: Data<Gateway>) -> HttpResponse {
    let trace_id = person.authed.trace_id.clone();
    let begun = match audit_desk::export(&gateway, &person.authed).await {
        Ok(begun) => begun,
        Err(failure) => return reply::screen(&gateway, &person, "console_audit_export", async { Err(failure) }).await,
    };
    // The person's place among the requests under way is held until the last line was sent.
    let lines = futures_util::stream::try_unfold((begun, person), |(mut export, person)| async move {
        // A download that ends early has no last page, and whoever verifies it finds that.
        let broken = |failure: Failure| std::io::Error::other(failure.message);
        let lines = export.next().await.map_err(broken)?;
        Ok::<_, std::io::Error>(lines.map(|lines| (Bytes::from(lines), (export, person))))
    });
    reply::start(StatusCode::OK, &trace_id)
        .insert_header((CONTENT_DISPOSITION, "attachment; filename=\"audit.jsonl\""))
        .content_type(JSON_LINES)
        .streaming(lines)
}

fn text(value: &Value) -> Option<String> {
    value.as_str().map(str::to_owned)
}

fn parsed(item: &AuditItem) -> Value {
    serde_json::from_str(item.entry.get()).unwrap_or_default()
}

fn row(item: &AuditItem, seal: Option<EntryPlace>) -> AuditRow {
    let entry = parsed(item);
    let place = EntryPlace::parse(&item.id);
    let run = entry["run"]["id"].as_str().or_else(|| entry["decision"]["basis"].as_str());
    AuditRow {
        id: item.id.clone(),
        at: place.map_or(Moment::from_millis(0), |place| place.item.at),
        phase: text(&entry["phase"]).unwrap_or_else(|| "unreadable".to_owned()),
        tool: text(&entry["tool"]),
        target: text(&entry["target"]),
        actor: text(&entry["actor"]["person"]).or_else(|| text(&entry["actor"]["sub"])),
        verdict: text(&entry["decision"]["verdict"]),
        code: text(&entry["outcome"]["code"]),
        run: run.filter(|id| RunId::parse(id).is_ok()).map(str::to_owned),
        trace: text(&entry["trace"]),
        sealed: item.link.is_some() || place <= seal,
    }
}

fn entry_view(item: &AuditItem, now: Moment) -> AuditEntryView {
    let entry = parsed(item);
    let number = |value: &Value| value.as_u64().map(|number| number.to_string());
    let scopes = entry["actor"]["scopes"].as_array();
    let scopes = scopes.map(|all| all.iter().filter_map(Value::as_str).collect::<Vec<_>>().join(" "));
    let decision = &entry["decision"];
    let rule = decision["rule"].as_object().map(|_| {
        let rule = &decision["rule"];
        format!("{} {} ({} line {})", rule["key"], rule["text"], rule["source"], rule["line"]).replace('"', "")
    });
    let facts = [
        ("Kind of actor", text(&entry["actor"]["kind"])),
        ("Issuer", text(&entry["actor"]["iss"])),
        ("Subject", text(&entry["actor"]["sub"])),
        ("Rights", scopes),
        ("Toolset", text(&entry["toolset"])),
        ("Effect", text(&entry["effect"])),
        ("Basis", text(&decision["basis"])),
        ("Rule", rule),
        ("Reason", text(&decision["comment"])),
        ("State", text(&entry["run"]["to"]).or_else(|| text(&entry["run"]["state"]))),
        ("Milliseconds", number(&entry["outcome"]["ms"])),
        ("Bytes", number(&entry["outcome"]["bytes"])),
        ("Tokens", number(&entry["outcome"]["tokens"])),
        ("Program", text(&entry["client"])),
        ("Replica", text(&entry["replica"])),
    ];
    let listed =
        |id: &Value, name: &str| text(id).map(|id| (id.clone(), format!("{BASE}/audit?{name}={}", encode(&id))));
    let contents = item.contents.as_ref().map(|contents| {
        let pretty = serde_json::from_str::<Value>(&contents.text).ok();
        let pretty = pretty.and_then(|value| serde_json::to_string_pretty(&value).ok());
        let (shown, cut) = bounded(&pretty.map_or_else(|| contents.text.clone(), |text| visible_json(&text)));
        ContentsView { text: shown, whole: contents.whole && !cut }
    });
    let stored = serde_json::to_string_pretty(&entry).unwrap_or_else(|_| item.entry.get().to_owned());
    AuditEntryView {
        row: row(item, None),
        facts: facts.into_iter().filter_map(|(name, value)| Some((name, value?))).collect(),
        session: listed(&entry["session"], "session"),
        call: listed(&entry["call"], "call"),
        contents,
        link: item.link.as_ref().and_then(|link| serde_json::to_string(link).ok()),
        stored: bounded(&stored).0,
        now,
    }
}

/// As much of a text as one page shows, and whether something was left out.
fn bounded(text: &str) -> (String, bool) {
    let end = text.floor_char_boundary(LONGEST_SHOWN);
    if end == text.len() { (text.to_owned(), false) } else { (format!("{}…", &text[..end]), true) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_moment_is_read_as_browsers_and_links_write_it() {
        let noon = Moment::parse("2026-01-31T12:00:00Z");
        for text in ["2026-01-31T12:00", "2026-01-31T12:00:00", "2026-01-31T12:00:00Z", " 2026-01-31T12:00 "] {
            assert_eq!(moment("it", text).unwrap(), noon, "{text}");
        }
        assert_eq!(moment("it", " ").unwrap(), None);
        for bad in ["noon", "2026-01-31", "2026-13-01T00:00", "1"] {
            assert!(moment("it", bad).is_err(), "{bad}");
        }
    }
}
