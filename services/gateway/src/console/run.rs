//! `/console/runs/{run}`: one run, and everything a person can do about it.
//!
//! A form is taken only if it carries the digest of the run that was shown. What is done then is done by `run_desk`, as
//! for the REST API; what is asked for besides (a typed name, a fresh proof) is asked before.

use super::person::ConsolePerson;
use super::reply::{self, ConsoleAnswer, DrawnPage};
use super::session::same;
use super::{Console, form, inbox, sign_in};
use crate::app::Gateway;
use crate::http::caller::AuthedRequest;
use crate::run_desk::{self, RunViewer};
use actix_web::http::StatusCode;
use actix_web::web::{Data, Path, Payload};
use actix_web::{HttpRequest, HttpResponse};
use console::Screen;
use console::decide::{DecisionForms, LaterView};
use console::message::{self, MessageView};
use console::parts::{Notice, NoticeKind, RunRow, run_address};
use console::run::{self as page, AnswerView, OutcomeView, RuleView, RunView};
use domain::run::{OnReject, Preview, Run, RunState, Verdict};
use domain::text::visible_json;
use domain::{Code, Effect, Failure, Moment};
use serde::Deserialize;
use serde_json::{Value, json};
use std::time::Duration;
use store::{RunBrief, SignInMethod};

/// How many of the last runs are looked through for earlier ones on the same thing.
const LOOKED_AT: usize = 200;
/// How many of those are shown.
const EARLIER: usize = 5;

/// For how long a run can be put off: as it is sent, in words, and as a time.
const LATER: [(&str, &str, Duration); 3] = [
    ("10m", "for 10 minutes", Duration::from_secs(10 * 60)),
    ("1h", "for an hour", Duration::from_secs(60 * 60)),
    ("1d", "until tomorrow", Duration::from_secs(24 * 60 * 60)),
];

/// A form about a run. Each reads what it needs.
#[derive(Debug, Default, Deserialize)]
pub(super) struct RunForm {
    #[serde(default)]
    digest: String,
    #[serde(default)]
    typed: String,
    #[serde(default)]
    preset: String,
    #[serde(default)]
    reason: String,
    #[serde(default)]
    outcome: String,
    #[serde(default, rename = "for")]
    lasts: String,
}

/// `GET /console/runs/{run}`.
pub(super) async fn show(person: ConsolePerson, id: Path<String>, gateway: Data<Gateway>) -> HttpResponse {
    reply::screen(&gateway, &person, "console_run", async { Ok(drawn(&gateway, &person, &id, None).await?.into()) })
        .await
}

/// What a form asks for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum RunAction {
    Approve,
    Reject,
    Resolve,
    Cancel,
    Clear,
    Arguments,
    Later,
    Now,
}

impl RunAction {
    /// As it stands in an address.
    fn parse(word: &str) -> Option<RunAction> {
        Some(match word {
            "approve" => RunAction::Approve,
            "reject" => RunAction::Reject,
            "resolve" => RunAction::Resolve,
            "cancel" => RunAction::Cancel,
            "clear" => RunAction::Clear,
            // The exact arguments. Posted, because it leaves an entry in the audit log.
            "arguments" => RunAction::Arguments,
            "later" => RunAction::Later,
            "now" => RunAction::Now,
            _ => return None,
        })
    }
}

/// `POST /console/runs/{run}/{action}`.
pub(super) async fn act(
    person: ConsolePerson,
    request: HttpRequest,
    path: Path<(String, String)>,
    payload: Payload,
    gateway: Data<Gateway>,
) -> HttpResponse {
    let (id, word) = path.into_inner();
    reply::screen(&gateway, &person, "console_run_action", async {
        let sent: RunForm = form::read(&gateway, &person, &request, payload).await?;
        let unknown = || Failure::new(Code::NotFound, "the console has no such page");
        let action = RunAction::parse(&word).ok_or_else(unknown)?;
        let (run, _) = find(&gateway, &person.authed, &id).await?;
        if !same(&sent.digest, &run.asked.digest) {
            return Err(Failure::new(Code::Stale, "the form was about something else than this run; nothing was done"));
        }
        let reason = sent.reason.clone();
        match Box::pin(done(&gateway, &person, &run, &id, action, sent)).await {
            Ok(answer) => Ok(answer),
            // Whoever was too late, or typed something else, sees the run as it is now with what was wrong on top, and
            // their words still in the form.
            Err(failure) if told_on_the_page(failure.code) => {
                let status =
                    StatusCode::from_u16(mcp::codes::rest_status(failure.code)).unwrap_or(StatusCode::CONFLICT);
                Ok(drawn(&gateway, &person, &id, Some((notice_of(&failure), status, reason))).await?.into())
            }
            Err(failure) => Err(failure),
        }
    })
    .await
}

fn told_on_the_page(code: Code) -> bool {
    [Code::AlreadyDecided, Code::Expired, Code::NotPossible, Code::OwnRequest, Code::InvalidArgument, Code::TooLarge]
        .contains(&code)
}

fn notice_of(failure: &Failure) -> Notice {
    let text = if failure.code == Code::AlreadyDecided {
        format!("Somebody was quicker: {}. Your decision did not count.", failure.message)
    } else {
        format!("Nothing was done: {}.", failure.message)
    };
    Notice { next: failure.next.clone(), ..Notice::new(NoticeKind::Bad, text) }
}

async fn done(
    gateway: &Gateway,
    person: &ConsolePerson,
    run: &Run,
    id: &str,
    action: RunAction,
    sent: RunForm,
) -> Result<ConsoleAnswer, Failure> {
    let authed = &person.authed;
    match action {
        RunAction::Approve => {
            may_approve(gateway, person, run, &sent)?;
            Box::pin(run_desk::decide(gateway, authed, id, Verdict::Approve, None)).await?;
        }
        RunAction::Reject => {
            let reason = [sent.preset.trim(), sent.reason.trim()].into_iter().filter(|text| !text.is_empty());
            let reason = reason.collect::<Vec<_>>().join(" ");
            let reason = (!reason.is_empty()).then_some(reason);
            Box::pin(run_desk::decide(gateway, authed, id, Verdict::Reject, reason)).await?;
        }
        RunAction::Resolve => {
            let succeeded = match sent.outcome.as_str() {
                "succeeded" => true,
                "failed" => false,
                _ => return Err(Failure::new(Code::InvalidArgument, "choose whether it was done")),
            };
            run_desk::resolve(gateway, authed, id, succeeded).await?;
        }
        RunAction::Cancel => drop(run_desk::cancel(gateway, authed, id).await?),
        RunAction::Clear => drop(run_desk::clear(gateway, authed, id).await?),
        RunAction::Arguments => {
            let exact = run_desk::arguments(gateway, authed, id).await?;
            let view = MessageView {
                title: "Exact arguments".to_owned(),
                text: "With nothing hidden. The audit log says that you read them.".to_owned(),
                body: Some(pretty(&exact["arguments"])),
                back: Some((run_address(id), "Back to the run".to_owned())),
                ..MessageView::default()
            };
            return Ok(DrawnPage::ok(Screen::Other, "Exact arguments", false, message::page(&view)).into());
        }
        RunAction::Later => {
            let known = LATER.iter().find(|(word, _, _)| *word == sent.lasts);
            let (_, _, lasts) = known.ok_or_else(|| Failure::new(Code::InvalidArgument, "choose for how long"))?;
            if !comes_back(run, *lasts, person.now) {
                return Err(Failure::new(Code::InvalidArgument, "the run would expire before it comes back"));
            }
            put_off(gateway, authed, run, *lasts).await?;
            return Ok(ConsoleAnswer::SeeOther(console::BASE.to_owned()));
        }
        RunAction::Now => put_off(gateway, authed, run, Duration::ZERO).await?,
    }
    Ok(ConsoleAnswer::SeeOther(run_address(id)))
}

/// Takes a run out of this person's inbox for a while. Nothing changes for the run, or for anybody else.
async fn put_off(gateway: &Gateway, authed: &AuthedRequest, run: &Run, lasts: Duration) -> Result<(), Failure> {
    executor::may_decide(&authed.caller)?;
    let store = gateway.store.of(&authed.caller.tenant).put_off();
    store.put_off(&authed.caller.principal, run.id, lasts).await.map_err(|error| run_desk::no_store(&error))
}

/// What the console asks for before a disruptive run is approved: the name, typed, and a fresh proof of who decides.
fn may_approve(gateway: &Gateway, person: &ConsolePerson, run: &Run, sent: &RunForm) -> Result<(), Failure> {
    if run.asked.effect != Effect::Disrupt {
        return Ok(());
    }
    if sent.typed.trim() != typed_name(run) {
        return Err(Failure::new(Code::InvalidArgument, "the typed name is not that of the object"));
    }
    let stale = gateway.console.as_ref().is_none_or(|console| step_up(console, person, run).is_some());
    if stale {
        return Err(Failure::new(Code::InvalidArgument, "sign in again before you approve a disruptive run"));
    }
    Ok(())
}

/// What is typed to approve a disruptive run: the last word of its object, or the tool.
fn typed_name(run: &Run) -> String {
    let object = run.asked.object().unwrap_or_default();
    let word = object.rsplit('/').next().filter(|word| !word.is_empty());
    word.unwrap_or(run.asked.tool.as_str()).to_owned()
}

/// Where to sign in again first, if a disruptive run is to be approved and the last proof is too old.
fn step_up(console: &Console, person: &ConsolePerson, run: &Run) -> Option<String> {
    let fresh = person.now.since(person.session.proven_at) <= console.step_up;
    // A link of `dev` has no issuer to ask again.
    if run.asked.effect != Effect::Disrupt || fresh || person.session.method == SignInMethod::Link {
        return None;
    }
    // Without an issuer nobody could prove anything: then the answer leads to signing in from the beginning.
    let to = run_address(&run.id.to_string());
    let anew = || format!("{}/sign-in?to={}", console::BASE, super::oidc::encode(&to));
    Some(sign_in::again_address(console, &person.session, &to).unwrap_or_else(anew))
}

/// A run that this person may see, and as whom.
async fn find(gateway: &Gateway, authed: &AuthedRequest, id: &str) -> Result<(Run, RunViewer), Failure> {
    run_desk::sees_runs(authed)?;
    let runs = gateway.store.of(&authed.caller.tenant).runs();
    let (held, _) = runs.find(run_desk::parse(id)?).await.map_err(|error| run_desk::no_store(&error))?;
    let gone = || Failure::new(Code::NotFound, "no such run");
    let run = held.ok_or_else(gone)?.run;
    if !run_desk::may_see(authed, &run) {
        return Err(gone());
    }
    let viewer = run_desk::viewer(authed, &run.asked.requester);
    Ok((run, viewer))
}

async fn drawn(
    gateway: &Gateway,
    person: &ConsolePerson,
    id: &str,
    refusal: Option<(Notice, StatusCode, String)>,
) -> Result<DrawnPage, Failure> {
    let (notice, status, reason) = match refusal {
        Some((notice, status, reason)) => (Some(notice), status, reason),
        None => (None, StatusCode::OK, String::new()),
    };
    let (run, viewer) = find(gateway, &person.authed, id).await?;
    let earlier = earlier(gateway, &person.authed, &run).await?;
    let later = put_off_until(gateway, &person.authed, &run, viewer).await?;
    let mut view = view(gateway, person, &run, viewer, earlier, notice);
    view.forms.later = match later {
        Some(until) => Some(LaterView::Until(until)),
        None => offered(&run, person.now),
    };
    view.forms.later.take_if(|_| !view.forms.decide);
    view.forms.reason = reason;
    let title = format!("{} {}", run.asked.tool, console::parts::state_in_words(run.state));
    let address = Some(run_address(id));
    Ok(DrawnPage { status, address, ..DrawnPage::ok(Screen::Other, title, true, page::page(&view)) })
}

/// Until when this person has put the run off, if they decide runs and have.
async fn put_off_until(
    gateway: &Gateway,
    authed: &AuthedRequest,
    run: &Run,
    viewer: RunViewer,
) -> Result<Option<Moment>, Failure> {
    if viewer != RunViewer::Decider || run.state != RunState::PendingApproval {
        return Ok(None);
    }
    let store = gateway.store.of(&authed.caller.tenant).put_off();
    let all = store.of(&authed.caller.principal).await.map_err(|error| run_desk::no_store(&error))?;
    Ok(all.iter().find(|off| off.id == run.id).map(|off| off.until))
}

/// Whether a run that is put off for so long is back before it expires.
fn comes_back(run: &Run, lasts: Duration, now: Moment) -> bool {
    now.plus(lasts) < run.asked.expires_at
}

fn offered(run: &Run, now: Moment) -> Option<LaterView> {
    let spans = LATER.iter().filter(|(_, _, lasts)| comes_back(run, *lasts, now));
    let spans: Vec<_> = spans.map(|(word, words, _)| (*word, *words)).collect();
    (!spans.is_empty()).then_some(LaterView::Offered(spans))
}

/// The last runs on the same thing, among the newest of the tenant that this person may see.
async fn earlier(gateway: &Gateway, authed: &AuthedRequest, run: &Run) -> Result<Vec<RunRow>, Failure> {
    let runs = gateway.store.of(&authed.caller.tenant).runs();
    let no_store = |error: store::StoreError| run_desk::no_store(&error);
    let own = (!run_desk::sees_all(authed)).then_some(&authed.caller.principal);
    let ids = runs.ids(own, None, LOOKED_AT).await.map_err(no_store)?;
    let briefs = runs.briefs(&ids).await.map_err(no_store)?;
    let Some(object) = run.asked.object() else { return Ok(Vec::new()) };
    let same = |brief: &&RunBrief| {
        brief.id != run.id && brief.object.as_deref().is_some_and(|other| may_be_same(&object, other))
    };
    Ok(briefs.iter().filter(same).take(EARLIER).map(|brief| inbox::row(authed, brief)).collect())
}

/// Whether two objects may be the same: they have the same name, and one of them says no more than the other about where
/// it is. A call that leaves the namespace out means one all the same.
fn may_be_same(one: &str, other: &str) -> bool {
    let words = |object: &str| object.to_lowercase().split('/').map(str::to_owned).collect::<Vec<_>>();
    let (one, other) = (words(one), words(other));
    let within = |few: &[String], many: &[String]| few.iter().all(|word| many.contains(word));
    one.last() == other.last() && (within(&one, &other) || within(&other, &one))
}

/// The page of a run, made of what the REST API tells this person about it.
fn view(
    gateway: &Gateway,
    person: &ConsolePerson,
    run: &Run,
    viewer: RunViewer,
    earlier: Vec<RunRow>,
    notice: Option<Notice>,
) -> RunView {
    let told = run_desk::told(run, viewer);
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    let texts = |value: &Value| value.as_array().map_or_else(Vec::new, |many| many.iter().map(text).collect());
    let whole = text(&told["preview"]["text"]);
    // The arguments stand last in the text of a preview, and are shown below by themselves.
    let difference = whole.rfind(Preview::ARGUMENTS).map_or(whole.as_str(), |at| &whole[..at]).to_owned();
    let rule = person.authed.snapshot.asking_place(run.asked.tool.as_str(), run.asked.about.as_deref());
    let answers = told["decisions"].as_array().cloned().unwrap_or_default();
    let assignment = &run.asked.assignment;
    let dropped = run.state.is_final() && told["arguments"] == json!({ "redacted": true });
    let opened_for = [assignment.agent.as_deref(), assignment.workflow.as_deref()];
    let opened_for = opened_for.into_iter().flatten().collect::<Vec<_>>().join(", workflow ");
    RunView {
        id: run.id.to_string(),
        state: run.state,
        tool: text(&told["tool"]),
        toolset: text(&told["toolset"]),
        effect: run.asked.effect,
        sentence: text(&told["preview"]["summary"]),
        warnings: texts(&told["warnings"]),
        difference,
        arguments: (!told["arguments"].is_null() && !dropped).then(|| pretty(&told["arguments"])),
        hidden: texts(&told["preview"]["hidden"]),
        digest: text(&told["digest"]),
        requester: text(&told["requested_by"]),
        session: told["session"].as_str().map(str::to_owned),
        assignment: (!opened_for.is_empty()).then_some(opened_for),
        tainted: run.asked.tainted,
        asked_at: run.asked.asked_at,
        expires_at: run.asked.expires_at,
        deciders: run.asked.deciders,
        rejection_stops: run.asked.on_reject == OnReject::Fail,
        answers: answers
            .iter()
            .map(|answer| AnswerView {
                by: text(&answer["by"]),
                verdict: text(&answer["verdict"]),
                reason: answer["reason"].as_str().map(str::to_owned),
                at: text(&answer["at"]),
            })
            .collect(),
        outcome: told.get("outcome").map(|outcome| OutcomeView {
            code: outcome["code"].as_str().map(str::to_owned),
            message: text(&outcome["message"]),
            attempted: outcome["attempted"] == true,
            result: (!outcome["result"].is_null()).then(|| pretty(&outcome["result"])),
            basis: text(&outcome["basis"]),
        }),
        changed_at: run.changed_at,
        rule: rule.map(|rule| RuleView {
            key: rule.key.to_owned(),
            text: rule.text,
            source: rule.source,
            line: rule.line,
        }),
        earlier,
        forms: forms(gateway, person, run, viewer),
        notice,
        now: person.now,
    }
}

/// What this person can do about the run. The functions behind the forms judge again.
fn forms(gateway: &Gateway, person: &ConsolePerson, run: &Run, viewer: RunViewer) -> DecisionForms {
    let pending = run.state == RunState::PendingApproval && run.asked.expires_at > person.now;
    let own = run.asked.requester == person.authed.caller.principal;
    let decider = viewer == RunViewer::Decider;
    let address = run_address(&run.id.to_string());
    let why_not = match viewer {
        RunViewer::Decider => None,
        RunViewer::Auditor => Some("You can read this run. Deciding it needs the right runs:decide.".to_owned()),
        RunViewer::Requester => Some("You asked for this yourself, so somebody else decides it.".to_owned()),
    };
    let mine = run.answers.iter().find(|answer| answer.by.is_same_person(&person.authed.caller.principal));
    let decide = pending && decider && mine.is_none();
    let stopped = run.state == RunState::Rejected && run.asked.on_reject == OnReject::Fail;
    DecisionForms {
        form_token: person.key.form_token(),
        decide,
        why_not: why_not.or_else(|| mine.map(|_| "You have answered. The run waits for others.".to_owned())),
        typed: (run.asked.effect == Effect::Disrupt).then(|| typed_name(run)),
        step_up: gateway.console.as_ref().and_then(|console| step_up(console, person, run)),
        reason_needed: run.asked.reviewed,
        resolve: run.state == RunState::OutcomeUnknown && decider,
        cancel: pending && own,
        clear: stopped && decider,
        later: None,
        reason: String::new(),
        exact_arguments: (decider && !run.state.is_final()).then(|| format!("{address}/arguments")),
        command: decide.then(|| format!("quartermaster runs approve {}", run.id)),
        address,
    }
}

fn pretty(value: &Value) -> String {
    visible_json(&serde_json::to_string_pretty(value).unwrap_or_default())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_object_is_the_same_with_and_without_its_place() {
        for (one, other, same) in [
            ("Deployment/web", "Deployment/web", true),
            ("Deployment/web", "prod/shop/deployment/web", true),
            ("prod/shop/Deployment/web", "shop/Deployment/web", true),
            ("shop/Deployment/web", "bank/Deployment/web", false),
            ("Deployment/web", "StatefulSet/web", false),
            ("Deployment/web", "Deployment/web-2", false),
            ("web/Deployment/cart", "Deployment/web", false),
        ] {
            assert_eq!(may_be_same(one, other), same, "{one} {other}");
            assert_eq!(may_be_same(other, one), same, "{other} {one}");
        }
    }
}
