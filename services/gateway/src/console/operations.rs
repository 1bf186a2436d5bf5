//! `/console/operations`: readiness, replicas, targets, what waits, and kill switches.

use super::person::ConsolePerson;
use super::reply::{self, ConsoleAnswer, DrawnPage};
use super::{form, inbox};
use crate::app::Gateway;
use crate::http::caller::AuthedRequest;
use crate::http::switches::{SwitchRequest, SwitchView};
use crate::{run_desk, switch_desk};
use actix_web::http::StatusCode;
use actix_web::web::{Data, Path, Payload, Query};
use actix_web::{HttpRequest, HttpResponse};
use console::operations::{self as page, OperationsView, SwitchFormView, SwitchRow, SwitchesView, TargetRow};
use console::parts::{Notice, NoticeKind, RunRow};
use console::{BASE, Screen};
use domain::{Code, Failure, SwitchMode, TokenScope};
use serde::Deserialize;
use std::time::Duration;

/// How many waiting runs are looked through for the oldest.
const LOOKED_AT: usize = 100;
/// How long a switch can last: as it is sent, and in words.
const SPANS: &[(&str, &str)] = &[
    ("30m", "in 30 minutes"),
    ("2h", "in 2 hours"),
    ("8h", "in 8 hours"),
    ("24h", "in 24 hours"),
    ("7d", "in 7 days"),
    ("", "when it is lifted"),
];

#[derive(Debug, Deserialize)]
pub(super) struct OperationsQuery {
    #[serde(default)]
    done: String,
}

/// `GET /console/operations?done=`.
pub(super) async fn show(person: ConsolePerson, query: Query<OperationsQuery>, gateway: Data<Gateway>) -> HttpResponse {
    let done = |text: &str| Some(Notice::new(NoticeKind::Good, text));
    let notice = match query.done.as_str() {
        "set" => done("The switch is set. It holds on all replicas within a second."),
        "unmatched" => Some(Notice {
            next: Some("Check its name: at the moment it concerns no tool of the tenant.".to_owned()),
            ..Notice::new(NoticeKind::Plain, "The switch is set.")
        }),
        "lifted" => done("The switch is lifted."),
        _ => None,
    };
    reply::screen(&gateway, &person, "console_operations", async {
        Ok(drawn(&gateway, &person, SwitchFormView::default(), notice, StatusCode::OK).await?.into())
    })
    .await
}

/// The form that sets a switch.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct SetForm {
    on: String,
    mode: String,
    reason: String,
    #[serde(rename = "for")]
    lasts: String,
    tenant: Option<String>,
    typed: String,
}

/// `POST /console/operations/switches`.
pub(super) async fn set(
    person: ConsolePerson,
    request: HttpRequest,
    payload: Payload,
    gateway: Data<Gateway>,
) -> HttpResponse {
    reply::screen(
        &gateway,
        &person,
        "console_set_switch",
        Box::pin(async {
            let sent: SetForm = form::read(&gateway, &person, &request, payload).await?;
            let typed = SwitchFormView {
                on: sent.on.clone(),
                mode: sent.mode.clone(),
                reason: sent.reason.clone(),
                lasts: sent.lasts.clone(),
                tenant: sent.tenant.clone(),
            };
            let set = async {
                let wanted = wanted(&person.authed, sent)?;
                switch_desk::set(&gateway, &person.authed, wanted).await
            };
            match set.await {
                Ok(switch) => {
                    let done = if switch.warnings.is_empty() { "set" } else { "unmatched" };
                    Ok(ConsoleAnswer::SeeOther(format!("{BASE}/operations?done={done}#switches")))
                }
                Err(failure) if told_on_the_page(failure.code) => told(&gateway, &person, typed, &failure).await,
                Err(failure) => Err(failure),
            }
        }),
    )
    .await
}

/// `POST /console/operations/switches/{switch}/lift`.
pub(super) async fn lift(
    person: ConsolePerson,
    request: HttpRequest,
    id: Path<String>,
    payload: Payload,
    gateway: Data<Gateway>,
) -> HttpResponse {
    reply::screen(
        &gateway,
        &person,
        "console_lift_switch",
        Box::pin(async {
            let SetForm { .. } = form::read(&gateway, &person, &request, payload).await?;
            match switch_desk::lift(&gateway, &person.authed, &id).await {
                Ok(_) => Ok(ConsoleAnswer::SeeOther(format!("{BASE}/operations?done=lifted#switches"))),
                // Somebody else was quicker, or it has ended.
                Err(failure) if failure.code == Code::NotFound => {
                    told(&gateway, &person, SwitchFormView::default(), &failure).await
                }
                Err(failure) => Err(failure),
            }
        }),
    )
    .await
}

fn told_on_the_page(code: Code) -> bool {
    [Code::InvalidRequest, Code::InvalidArgument, Code::NotFound, Code::QuotaExceeded].contains(&code)
}

async fn told(
    gateway: &Gateway,
    person: &ConsolePerson,
    typed: SwitchFormView,
    failure: &Failure,
) -> Result<ConsoleAnswer, Failure> {
    let status = StatusCode::from_u16(mcp::codes::rest_status(failure.code)).unwrap_or(StatusCode::CONFLICT);
    let text = format!("Nothing was done: {}.", failure.message);
    let notice = Notice { next: failure.next.clone(), ..Notice::new(NoticeKind::Bad, text) };
    Ok(drawn(gateway, person, typed, Some(notice), status).await?.into())
}

/// What the form asks for. Besides what the desk judges, whoever stops a whole tenant types its name.
fn wanted(authed: &AuthedRequest, sent: SetForm) -> Result<SwitchRequest, Failure> {
    let invalid = |message: &str| Failure::new(Code::InvalidArgument, message);
    let mode = match sent.mode.as_str() {
        "read-only" => SwitchMode::ReadOnly,
        "stop" => SwitchMode::Stop,
        _ => return Err(invalid("choose what is let through")),
    };
    let lasts = match sent.lasts.as_str() {
        "" => None,
        "30m" => Some(30 * 60),
        "2h" => Some(2 * 60 * 60),
        "8h" => Some(8 * 60 * 60),
        "24h" => Some(24 * 60 * 60),
        "7d" => Some(7 * 24 * 60 * 60),
        _ => return Err(invalid("choose when the switch ends")),
    };
    let on = sent.on.trim().to_owned();
    let tenant = sent.tenant.map(|tenant| tenant.trim().to_owned()).filter(|tenant| !tenant.is_empty());
    let whose = tenant.as_deref().unwrap_or(authed.caller.tenant.as_str());
    if on == "tenant" && mode == SwitchMode::Stop && sent.typed.trim() != whose {
        return Err(invalid("the typed name is not that of the tenant to be stopped"));
    }
    let lasts = lasts.map(Duration::from_secs);
    Ok(SwitchRequest { on, mode, reason: sent.reason, tenant, until: None, lasts })
}

async fn drawn(
    gateway: &Gateway,
    person: &ConsolePerson,
    typed: SwitchFormView,
    notice: Option<Notice>,
    status: StatusCode,
) -> Result<DrawnPage, Failure> {
    let authed = &person.authed;
    may_look(authed)?;
    let report = gateway.readiness.now();
    let words = |codes: &[&'static str]| codes.iter().map(|code| (*code).to_owned()).collect();
    let (waiting, oldest) = waiting(gateway, authed).await;
    let loads = gateway.tenants.all_attached(&authed.caller.tenant);
    let target = |load: toolset::TargetLoad| TargetRow {
        name: load.name,
        breaker_open: load.is_closed,
        in_flight: load.in_flight,
        waiting: load.waiting,
    };
    let view = OperationsView {
        reasons: words(&report.reasons),
        warnings: words(&report.warnings),
        shards_down: report.shards_down.clone(),
        replica: gateway.replica.clone(),
        version: env!("CARGO_PKG_VERSION").to_owned(),
        replicas: gateway.duties.replicas(&gateway.replica),
        store: store_in_words(gateway.store.backend()).to_owned(),
        waiting,
        oldest,
        targets: loads.iter().flat_map(|attached| attached.loads()).map(target).collect(),
        switches: switches(gateway, person, typed).await?,
        notice,
        now: person.now,
    };
    let address = Some(format!("{BASE}/operations"));
    let drawn = DrawnPage::ok(Screen::Operations, "Operations", false, page::page(&view));
    Ok(DrawnPage { status, address, ..drawn })
}

fn store_in_words(backend: &str) -> &str {
    match backend {
        "redb" => "embedded, in a file of this process",
        "redis" => "Redis",
        other => other,
    }
}

/// Those who set switches may look, and those who read the audit log, which names replicas and targets too.
fn may_look(authed: &AuthedRequest) -> Result<(), Failure> {
    switch_desk::may_set(authed).or_else(|missing| crate::http::caller::audits(authed).map_err(|_| missing))
}

/// How many runs wait, and the oldest of those that expire next, for somebody who sees runs.
async fn waiting(gateway: &Gateway, authed: &AuthedRequest) -> (Option<u64>, Option<RunRow>) {
    let runs = gateway.store.of(&authed.caller.tenant).runs();
    let Ok(found) = runs.waiting(None, LOOKED_AT, &[]).await else { return (None, None) };
    let oldest = found.runs.iter().min_by_key(|run| run.asked_at).filter(|_| run_desk::sees_all(authed));
    (Some(found.waiting), oldest.map(|run| inbox::row(authed, run)))
}

async fn switches(
    gateway: &Gateway,
    person: &ConsolePerson,
    form: SwitchFormView,
) -> Result<Result<SwitchesView, String>, Failure> {
    let authed = &person.authed;
    let listed = match switch_desk::list(gateway, authed).await {
        Ok(listed) => listed,
        Err(failure) if failure.code == Code::InsufficientScope => {
            return Ok(Err(TokenScope::TenantAdmin.as_str().to_owned()));
        }
        Err(failure) => return Err(failure),
    };
    let own = authed.caller.tenant.to_string();
    let chooses = authed.caller.scopes.allow(TokenScope::OperatorSwitch);
    let form = SwitchFormView {
        tenant: chooses.then(|| form.tenant.clone().unwrap_or_else(|| own.clone())),
        lasts: if form.on.is_empty() { "2h".to_owned() } else { form.lasts },
        ..form
    };
    let row = |switch: &SwitchView| SwitchRow {
        id: switch.id.clone(),
        tenant: switch.tenant.clone(),
        on: switch.on.clone(),
        mode: switch.mode,
        reason: switch.reason.clone(),
        set_by: switch.set_by.clone().unwrap_or_else(|| switch.by.in_words().to_owned()),
        set_at: switch.set_at.clone(),
        until: switch.until.clone(),
        liftable: switch_desk::may_lift(authed, switch),
    };
    Ok(Ok(SwitchesView {
        rows: listed.switches.iter().map(row).collect(),
        authentic: listed.authentic,
        subjects: subjects(gateway, authed),
        spans: SPANS,
        form,
        typed: own,
        form_token: person.key.form_token(),
    }))
}

/// What can be switched in the tenant.
fn subjects(gateway: &Gateway, authed: &AuthedRequest) -> Vec<String> {
    let catalog = &authed.snapshot.catalog;
    let attached = gateway.tenants.all_attached(&authed.caller.tenant);
    let targets = attached.iter().flat_map(|one| one.loads()).map(|load| format!("target:{}", load.name));
    let toolsets = catalog.toolsets().iter().map(|set| format!("toolset:{}", set.name));
    let tools = catalog.entries().iter().map(|entry| format!("tool:{}", entry.definition().name));
    std::iter::once("tenant".to_owned()).chain(toolsets).chain(targets).chain(tools).collect()
}
