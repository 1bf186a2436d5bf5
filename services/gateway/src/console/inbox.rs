//! `GET /console`: what waits for a person.

use super::person::ConsolePerson;
use super::reply::{self, ConsoleAnswer, DrawnPage};
use crate::app::Gateway;
use crate::http::caller::AuthedRequest;
use crate::run_desk;
use actix_web::HttpResponse;
use actix_web::web::{Data, Query};
use console::inbox::{self, InboxView};
use console::parts::RunRow;
use console::{BASE, Screen};
use domain::run::RunState;
use domain::{Code, Failure, Moment, RunId, TokenScope};
use serde::Deserialize;
use store::{RunBrief, WaitingPlace};

/// Runs on one page: what a person reads at once, and the page stays small.
const PAGE: usize = 25;

#[derive(Debug, Deserialize)]
pub(super) struct InboxQuery {
    after: Option<String>,
}

/// `GET /console?after=`.
pub(super) async fn show(person: ConsolePerson, query: Query<InboxQuery>, gateway: Data<Gateway>) -> HttpResponse {
    reply::screen(&gateway, &person, "console_inbox", async {
        let authed = &person.authed;
        if !run_desk::sees_all(authed) {
            // Whoever sees only their own runs has them on a screen of their own; others learn what is missing.
            return match authed.caller.scopes.allow(TokenScope::ToolsRead) {
                true => Ok(ConsoleAnswer::SeeOther(format!("{BASE}/mine"))),
                false => landing(authed),
            };
        }
        let after = query.after.as_deref().map(|text| place(&gateway, authed, text)).transpose()?;
        let store = gateway.store.of(&authed.caller.tenant);
        let later = store.put_off().of(&authed.caller.principal).await.map_err(|error| run_desk::no_store(&error))?;
        let later: Vec<RunId> = later.iter().map(|run| run.id).collect();
        let page = store.runs().waiting(after, PAGE, &later).await.map_err(|error| run_desk::no_store(&error))?;
        let later = match after {
            None => still_waiting(&gateway, authed, &later, page.now).await?,
            Some(_) => Vec::new(),
        };
        let last = match page.runs.is_empty() && after.is_none() {
            true => last_decided(&gateway, authed).await?,
            false => None,
        };
        let view = InboxView {
            rows: page.runs.iter().map(|run| row(authed, run)).collect(),
            unsettled: page.unsettled.iter().map(|run| row(authed, run)).collect(),
            later,
            waiting: page.waiting,
            next: page.next.map(|next| {
                let text = format!("w{}-{}", next.expires_at.millis(), next.id);
                gateway.keys.seal_place(&authed.caller, &text)
            }),
            further: after.is_some(),
            decides: executor::may_decide(&authed.caller).is_ok(),
            last,
            notice: None,
            now: page.now,
        };
        Ok(DrawnPage::ok(Screen::Inbox, "Inbox", true, inbox::page(&view)).into())
    })
    .await
}

/// Of the runs that this person put off, those that nobody has decided meanwhile.
async fn still_waiting(
    gateway: &Gateway,
    authed: &AuthedRequest,
    later: &[RunId],
    now: Moment,
) -> Result<Vec<RunRow>, Failure> {
    if later.is_empty() {
        return Ok(Vec::new());
    }
    let runs = gateway.store.of(&authed.caller.tenant).runs();
    let briefs = runs.briefs(later).await.map_err(|error| run_desk::no_store(&error))?;
    let waits = |run: &&RunBrief| run.state == RunState::PendingApproval && run.expires_at > now;
    Ok(briefs.iter().filter(waits).map(|run| row(authed, run)).collect())
}

/// Where somebody begins who sees no runs.
fn landing(authed: &AuthedRequest) -> Result<ConsoleAnswer, Failure> {
    run_desk::sees_runs(authed).map(|()| ConsoleAnswer::SeeOther(format!("{BASE}/mine")))
}

/// What a list shows of a run to this person.
pub(super) fn row(authed: &AuthedRequest, run: &RunBrief) -> RunRow {
    let viewer = run_desk::viewer(authed, &run.requester);
    RunRow {
        id: run.id.to_string(),
        state: run.state,
        tool: run.tool.as_str().to_owned(),
        effect: run.effect,
        summary: run_desk::summary(run, viewer),
        object: run.object.clone(),
        requester: run.requester.subject.clone(),
        asked_at: run.asked_at,
        expires_at: run.expires_at,
        tainted: run.tainted,
        yeses: (run.yeses, run.deciders),
        decided_by: run.decided_by.clone(),
        own: run.requester.is_same_person(&authed.caller.principal),
    }
}

/// The newest run that somebody decided, among the last ones.
async fn last_decided(gateway: &Gateway, authed: &AuthedRequest) -> Result<Option<RunRow>, Failure> {
    let runs = gateway.store.of(&authed.caller.tenant).runs();
    let ids = runs.ids(None, None, PAGE).await.map_err(|error| run_desk::no_store(&error))?;
    let briefs = runs.briefs(&ids).await.map_err(|error| run_desk::no_store(&error))?;
    let decided = briefs.iter().filter(|run| run.decided_by.is_some()).max_by_key(|run| run.changed_at);
    Ok(decided.map(|run| row(authed, run)))
}

fn place(gateway: &Gateway, authed: &AuthedRequest, text: &str) -> Result<WaitingPlace, Failure> {
    let read = || {
        let place = gateway.keys.open_place(&authed.caller, text)?;
        let (at, id) = place.strip_prefix('w')?.split_once('-')?;
        Some(WaitingPlace { expires_at: Moment::from_millis(at.parse().ok()?), id: RunId::parse(id).ok()? })
    };
    read().ok_or_else(|| {
        Failure::new(Code::BadCursor, "this page of the inbox does not exist").next("Go to the first page.")
    })
}
