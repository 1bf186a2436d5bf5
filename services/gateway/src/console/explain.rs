//! `/console/explain` and `/console/replay`: what policy says to a call, and what a draft would have said to those of the
//! past. Judged by `explain`, as for the command of that name.

use super::config::{LARGEST_FORM, excerpt, problems};
use super::form::{self, text_of_field};
use super::person::ConsolePerson;
use super::reply::{self, ConsoleAnswer, DrawnPage};
use crate::app::Gateway;
use crate::config_desk::{self, TenantView};
use crate::explain::replay::{PastCalls, Replay, ReplayedCall, replay as hold_against};
use crate::explain::{self, ExplainAnswer, ExplainSubject, ExplainVerdict, FileRules, RulePosition, judge};
use crate::http::caller::{AuthedRequest, administers, audits};
use actix_web::web::{Data, Payload, Query};
use actix_web::{HttpRequest, HttpResponse};
use catalog::CatalogEntry;
use console::Screen;
use console::explain::{
    self as page, ExplainAnswerView, ExplainQueryView, ExplainView, ReplayOutcomeView, ReplayRow, ReplayView,
    RuleLineView, SINCE,
};
use console::parts::{Notice, NoticeKind};
use domain::run::OnReject;
use domain::{Code, Failure, KnownSwitches, Moment, Scopes, SessionMode};
use serde::Deserialize;
use serde_json::{Map, Value};
use std::sync::Arc;
use std::time::Duration;
use store::AuditLogPosition;
use tenancy::TenantConfig;

/// How many entries of the audit log one replay reads, and how many at once.
const MOST_ENTRIES: usize = 20_000;
const AT_ONCE: usize = 1_000;
/// How many calls of each kind are shown.
const SHOWN: usize = 50;

/// A call that is asked about, as it stands in the address.
#[derive(Debug, Default, Deserialize)]
pub(super) struct ExplainQuery {
    #[serde(default)]
    tool: String,
    #[serde(default)]
    args: String,
    #[serde(default)]
    read: String,
    #[serde(default)]
    write: String,
    #[serde(default)]
    mode: String,
}

/// `GET /console/explain?tool=&args=&read=&write=&mode=`.
pub(super) async fn show(person: ConsolePerson, query: Query<ExplainQuery>, gateway: Data<Gateway>) -> HttpResponse {
    reply::screen(&gateway, &person, "console_explain", async {
        let now = config_desk::show(&gateway, &person.authed).await?;
        let asked = !query.tool.trim().is_empty();
        let scopes = match asked {
            true => [("tools:read", &query.read), ("tools:write", &query.write)]
                .into_iter()
                .filter(|(_, set)| !set.is_empty())
                .map(|(scope, _)| scope.to_owned())
                .collect(),
            false => vec!["tools:read".to_owned(), "tools:write".to_owned()],
        };
        let answer = if asked { Some(answer(&gateway, &person.authed, &now, &query, &scopes)) } else { None };
        let (answer, notice) = match answer.transpose() {
            Ok(answer) => (answer, None),
            Err(failure) => (None, Some(Notice::new(NoticeKind::Bad, format!("{}.", failure.message)))),
        };
        let known = &person.authed.snapshot.catalog;
        let view = ExplainView {
            query: ExplainQueryView {
                tool: query.tool.trim().to_owned(),
                args: text_of_field(&query.args),
                scopes,
                mode: query.mode.clone(),
            },
            tools: known.entries().iter().map(|entry| entry.name().as_str().to_owned()).collect(),
            answer,
            notice,
        };
        Ok(DrawnPage::ok(Screen::Explain, "Explain a call", false, page::page(&view)).into())
    })
    .await
}

/// What the configuration that is served says to the call.
fn answer(
    gateway: &Gateway,
    authed: &AuthedRequest,
    now: &TenantView,
    query: &ExplainQuery,
    scopes: &[String],
) -> Result<ExplainAnswerView, Failure> {
    let wrong = |message: String| Failure::new(Code::InvalidArgument, message);
    let tenant = &authed.caller.tenant;
    let config = gateway.tenants.config_of(tenant).ok_or_else(|| wrong("the tenant is not served here".to_owned()))?;
    let arguments = arguments(&query.args)?;
    let known = authed.snapshot.catalog.entries();
    let subject = explain::subject(query.tool.trim(), arguments, &config, gateway.tenants.toolsets(), known)
        .map_err(|error| wrong(error.to_string()))?;
    let rules = FileRules::of_config(now.source, &config);
    let mode = match query.mode.as_str() {
        "read" => SessionMode::Read,
        "write" => SessionMode::Write,
        _ => config.mode,
    };
    let switches = gateway.store.switches().in_force(tenant, crate::clock::SystemClock.now());
    let answer = match subject {
        ExplainSubject::Answered(answer) => rules.place(answer),
        ExplainSubject::Call(request) => {
            judge(&config, &rules, request, Scopes::parse(&scopes.join(" ")), (mode, switches.switches()))
        }
    };
    Ok(answer_view(answer, &now.text))
}

fn arguments(text: &str) -> Result<Option<Map<String, Value>>, Failure> {
    if text.trim().is_empty() {
        return Ok(None);
    }
    let wrong = |message: String| Failure::new(Code::InvalidArgument, message);
    match serde_json::from_str(text) {
        Ok(Value::Object(arguments)) => Ok(Some(arguments)),
        Ok(_) => Err(wrong("the arguments are a JSON object, such as {\"namespace\":\"shop\"}".to_owned())),
        Err(error) => Err(wrong(format!("the arguments are not JSON: {error}"))),
    }
}

fn answer_view(answer: ExplainAnswer, text: &str) -> ExplainAnswerView {
    ExplainAnswerView {
        verdict: verdict(answer.verdict),
        why: answer.why,
        effect: answer.effect.map(|effect| (effect, answer.about)),
        rule: answer.rule.map(|rule| rule_view(rule, text)),
        on_reject: answer.on_reject.map(|on_reject| match on_reject {
            OnReject::Fail => "stops the session until a person clears it",
            OnReject::Continue => "lets the agent go on and choose something else",
        }),
        notes: answer.notes,
    }
}

fn rule_view(rule: RulePosition, text: &str) -> RuleLineView {
    RuleLineView {
        key: rule.key.to_owned(),
        excerpt: excerpt(text, rule.line),
        text: rule.text,
        line: rule.line,
        column: rule.column,
    }
}

const fn verdict(verdict: ExplainVerdict) -> &'static str {
    match verdict {
        ExplainVerdict::Allowed => "allowed",
        ExplainVerdict::Asks => "asks",
        ExplainVerdict::Denied => "denied",
    }
}

/// `GET /console/replay`: with what is in force as the draft to begin with.
pub(super) async fn begin(person: ConsolePerson, gateway: Data<Gateway>) -> HttpResponse {
    reply::screen(&gateway, &person, "console_replay", async {
        may_replay(&person.authed)?;
        let now = config_desk::show(&gateway, &person.authed).await?;
        let sent = ReplayForm { etag: now.etag.clone(), since: "7d".to_owned(), ..ReplayForm::default() };
        Ok(drawn(&person, &now, sent, now.text.clone(), Vec::new(), None))
    })
    .await
}

/// A draft to try.
#[derive(Debug, Default, Deserialize)]
pub(super) struct ReplayForm {
    #[serde(default)]
    text: String,
    #[serde(default)]
    etag: String,
    #[serde(default)]
    note: String,
    #[serde(default)]
    since: String,
}

/// `POST /console/replay`: posted because a text is too long for an address. It changes nothing.
pub(super) async fn replay(
    person: ConsolePerson,
    request: HttpRequest,
    payload: Payload,
    gateway: Data<Gateway>,
) -> HttpResponse {
    reply::screen(&gateway, &person, "console_replay", async {
        let mut sent: ReplayForm = form::read_up_to(LARGEST_FORM, &gateway, &person, &request, payload).await?;
        may_replay(&person.authed)?;
        let text = text_of_field(&sent.text);
        if !SINCE.iter().any(|(value, _)| *value == sent.since) {
            sent.since = "7d".to_owned();
        }
        let now = config_desk::show(&gateway, &person.authed).await?;
        let draft = match config_desk::judged(&gateway, &person.authed.caller.tenant, &text).await? {
            Ok(draft) => draft,
            Err(found) => {
                let found = problems(&found, &text);
                return Ok(drawn(&person, &now, sent, text, found, None));
            }
        };
        let from = person.now.since(Moment::from_secs(0)).saturating_sub(length(&sent.since));
        let from = Moment::from_millis(u64::try_from(from.as_millis()).unwrap_or_default());
        let (replayed, in_part) = Box::pin(held_against(&gateway, &person.authed, draft, from)).await?;
        let outcome = outcome(replayed, in_part, &text, person.now);
        Ok(drawn(&person, &now, sent, text, Vec::new(), Some(outcome)))
    })
    .await
}

/// A replay tells what is in the audit log, so it needs the right to read that as well.
fn may_replay(authed: &AuthedRequest) -> Result<(), Failure> {
    administers(authed)?;
    audits(authed)
}

fn length(since: &str) -> Duration {
    let hours = match since {
        "1h" => 1,
        "24h" => 24,
        "30d" => 30 * 24,
        _ => 7 * 24,
    };
    Duration::from_secs(hours * 3_600)
}

/// Holds a draft against the calls since a moment; whether there are more than were read comes with it.
async fn held_against(
    gateway: &Gateway,
    authed: &AuthedRequest,
    draft: TenantConfig,
    from: Moment,
) -> Result<(Replay, bool), Failure> {
    let shelf = gateway.store.of(&authed.caller.tenant);
    let mut past = PastCalls::for_reader(&authed.caller.principal);
    let mut after = Some(AuditLogPosition::before(from));
    let mut read = 0;
    let in_part = loop {
        let page = shelf.audit_log(after, AT_ONCE).await.map_err(|error| {
            Failure::new(error.code(), "the audit log cannot be read at the moment").retry_after_ms(1_000)
        })?;
        read += page.entries.len();
        for entry in &page.entries {
            // What is no JSON has no parts.
            let parsed: Value = serde_json::from_slice(&entry.body).unwrap_or_default();
            past.note(entry.id.item.at, &parsed, || {
                shelf.open_contents(&entry.body).filter(|contents| contents.whole).map(|contents| contents.text)
            });
        }
        match page.next {
            Some(next) if read < MOST_ENTRIES => after = Some(next),
            next => break next.is_some(),
        }
    };
    let (tenants, catalog) = (Arc::clone(&gateway.tenants), Arc::clone(&authed.snapshot.catalog));
    let work = move || {
        let known: &[Arc<CatalogEntry>] = catalog.entries();
        hold_against(past, &draft, tenants.toolsets(), known)
    };
    let replayed = tokio::task::spawn_blocking(work).await;
    Ok((replayed.map_err(|_| Failure::new(Code::Internal, "the calls could not be judged"))?, in_part))
}

fn outcome(replayed: Replay, in_part: bool, text: &str, now: Moment) -> ReplayOutcomeView {
    let approved = replayed.stopped_approved_by_reader();
    let rows = |calls: Vec<ReplayedCall>| {
        let total = calls.len();
        (calls.into_iter().take(SHOWN).map(|call| row(call, text, now)).collect::<Vec<_>>(), total)
    };
    let (stopped, total) = rows(replayed.stopped);
    ReplayOutcomeView {
        judged: replayed.judged,
        without_arguments: replayed.without_arguments,
        unknown: replayed.unknown,
        in_part,
        stopped: (stopped, total, approved),
        asked: rows(replayed.asked),
        freed: rows(replayed.freed),
    }
}

fn row(ReplayedCall { call, would }: ReplayedCall, text: &str, now: Moment) -> ReplayRow {
    ReplayRow {
        at: call.at.unwrap_or(now),
        tool: call.tool,
        about: match (would.about, call.target) {
            (Some(about), Some(target)) => Some(format!("{about}, {target}")),
            (about, target) => about.or(target),
        },
        by: call.by,
        was: call.was.map_or("denied", verdict),
        run: call.run.map(|run| (run, call.approved_by)),
        approved_by_reader: call.approved_by_reader,
        would: verdict(would.verdict),
        why: would.why,
        rule: would.rule.map(|rule| rule_view(rule, text)),
    }
}

fn drawn(
    person: &ConsolePerson,
    now: &TenantView,
    sent: ReplayForm,
    text: String,
    problems: Vec<console::config::ProblemView>,
    outcome: Option<ReplayOutcomeView>,
) -> ConsoleAnswer {
    let view = ReplayView {
        text,
        etag: if sent.etag.is_empty() { now.etag.clone() } else { sent.etag },
        note: sent.note,
        since: sent.since,
        problems,
        outcome,
        locked: now.locked,
        form_token: person.key.form_token(),
        now: person.now,
    };
    DrawnPage::ok(Screen::Explain, "Replay past calls", false, page::replay(&view)).into()
}
