//! What people do with runs, whichever door they come in by: the REST API and the console call these and nothing else.
//!
//! Deciding needs `runs:decide` and no tool scope; agents see only their own runs, and of those only what they asked for
//! and what became of it.

use crate::app::Gateway;
use crate::http::caller::AuthedRequest;
use domain::run::{Run, RunState, Verdict};
use domain::{Caller, Code, Failure, Moment, Principal, RunId, TokenScope};
use executor::runs::report;
use executor::{RunDecision, ServiceKeys};
use serde_json::{Value, json};
use store::{RunBrief, StoreError};

/// Runs on one page.
pub(crate) const PAGE: usize = 50;
/// How many runs are looked through for a filtered page, by their brief records.
const MOST_SCANNED: usize = 1_000;
/// How many of these records are read at once.
const READ_AT_ONCE: usize = 100;
/// The longest reason a person can give.
const LONGEST_REASON: usize = 2_000;

/// Which runs somebody looks for. What is `None` fits all.
#[derive(Debug, Clone, Default)]
pub(crate) struct RunFilter {
    pub(crate) state: Option<RunState>,
    pub(crate) session: Option<String>,
    pub(crate) tool: Option<String>,
    /// A part of the name of whoever asked.
    pub(crate) requester: Option<String>,
    /// A part of the name of whoever decided last.
    pub(crate) decider: Option<String>,
    /// A part of what it is done to.
    pub(crate) object: Option<String>,
    /// Whether only the caller's own are looked for.
    pub(crate) own: bool,
}

impl RunFilter {
    fn fits(&self, run: &RunBrief) -> bool {
        let holds = |wanted: &Option<String>, text: Option<&str>| {
            wanted
                .as_deref()
                .is_none_or(|wanted| text.is_some_and(|text| text.to_lowercase().contains(&wanted.to_lowercase())))
        };
        self.state.is_none_or(|state| run.state == state)
            && self.tool.as_deref().is_none_or(|tool| run.tool.as_str() == tool)
            && self.session.as_deref().is_none_or(|id| run.session.is_some_and(|s| s.to_string() == id))
            && holds(&self.requester, Some(&run.requester.subject))
            && holds(&self.decider, run.decided_by.as_deref())
            && holds(&self.object, run.object.as_deref())
    }
}

/// One page of runs.
pub(crate) struct RunsPage {
    /// The runs, newest first, and as whom the caller sees each.
    pub(crate) runs: Vec<(RunBrief, RunViewer)>,
    /// Where the next page begins.
    pub(crate) next: Option<String>,
    /// Whether the search stopped before the page was full.
    pub(crate) in_part: bool,
}

/// A page of the runs that the caller may see, newest first.
pub(crate) async fn page(
    gateway: &Gateway,
    authed: &AuthedRequest,
    filter: &RunFilter,
    cursor: Option<&str>,
) -> Result<RunsPage, Failure> {
    sees_runs(authed)?;
    let from = cursor.map(|text| read_cursor(&gateway.keys, &authed.caller, text)).transpose()?;
    let runs = gateway.store.of(&authed.caller.tenant).runs();
    let own = (filter.own || !sees_all(authed)).then_some(&authed.caller.principal);
    let ids = runs.ids(own, from.map(|(at, _)| at), MOST_SCANNED).await.map_err(|e| no_store(&e))?;
    // Several runs may have been requested in one millisecond; the cursor names the last one that was read.
    let behind = from.and_then(|(_, id)| ids.iter().position(|run| *run == id)).map_or(0, |at| at + 1);
    let (mut page, mut last) = (Vec::new(), None);
    for some in ids[behind..].chunks(READ_AT_ONCE) {
        for run in runs.briefs(some).await.map_err(|e| no_store(&e))? {
            if page.len() == PAGE {
                break;
            }
            last = Some((run.asked_at, run.id));
            if filter.fits(&run) {
                let viewer = viewer(authed, &run.requester);
                page.push((run, viewer));
            }
        }
        if page.len() == PAGE {
            break;
        }
    }
    let more = page.len() == PAGE || ids.len() == MOST_SCANNED;
    // The last run that was read may be one that is not shown, so its place is sealed.
    let next =
        last.filter(|_| more).map(|(at, id)| gateway.keys.seal_place(&authed.caller, &format!("{}-{id}", at.millis())));
    Ok(RunsPage { in_part: more && page.len() < PAGE, runs: page, next })
}

fn read_cursor(keys: &ServiceKeys, caller: &Caller, text: &str) -> Result<(Moment, RunId), Failure> {
    let read = || {
        let place = keys.open_place(caller, text)?;
        let (at, id) = place.split_once('-')?;
        Some((Moment::from_millis(at.parse().ok()?), RunId::parse(id).ok()?))
    };
    read().ok_or_else(|| Failure::new(Code::BadCursor, "the cursor is not one of this list"))
}

/// What a reader is shown of a run.
pub(crate) fn told(run: &Run, viewer: RunViewer) -> Value {
    match viewer {
        RunViewer::Decider => report::to_person(run),
        RunViewer::Auditor => report::to_auditor(run),
        RunViewer::Requester => report::to_requester(run),
    }
}

/// The line of a list that a reader is shown of a run.
pub(crate) fn summary(run: &RunBrief, viewer: RunViewer) -> String {
    match viewer {
        RunViewer::Decider => run.summary.clone(),
        RunViewer::Auditor => redact::redact(&run.summary),
        // Once it is over, of its arguments only the names are left.
        RunViewer::Requester if run.state.is_final() => match &run.object {
            Some(object) => format!("{} on {object}", run.tool),
            None => run.tool.to_string(),
        },
        RunViewer::Requester => run.requested.clone(),
    }
}

/// Takes a person's decision.
pub(crate) async fn decide(
    gateway: &Gateway,
    authed: &AuthedRequest,
    id: &str,
    verdict: Verdict,
    reason: Option<String>,
) -> Result<Run, Failure> {
    executor::may_decide(&authed.caller)?;
    if reason.as_ref().is_some_and(|reason| reason.len() > LONGEST_REASON) {
        return Err(Failure::new(Code::TooLarge, format!("a reason has at most {LONGEST_REASON} bytes")));
    }
    let decision = RunDecision { verdict, reason };
    Box::pin(gateway.executor.answer(&authed.snapshot, &authed.caller, parse(id)?, decision)).await
}

/// Takes a pending run back, for the one who asked for it.
pub(crate) async fn cancel(gateway: &Gateway, authed: &AuthedRequest, id: &str) -> Result<Run, Failure> {
    gateway.executor.cancel_run(&authed.caller, parse(id)?).await
}

/// Settles an outcome that nobody could find out.
pub(crate) async fn resolve(
    gateway: &Gateway,
    authed: &AuthedRequest,
    id: &str,
    succeeded: bool,
) -> Result<Run, Failure> {
    executor::may_decide(&authed.caller)?;
    gateway.executor.resolve(&authed.caller, parse(id)?, succeeded).await
}

/// Lets the session go on that a rejection stopped.
pub(crate) async fn clear(gateway: &Gateway, authed: &AuthedRequest, id: &str) -> Result<Run, Failure> {
    gateway.executor.clear(&authed.caller, parse(id)?).await
}

/// The exact arguments of a run. Who read them is in the audit log before they leave.
pub(crate) async fn arguments(gateway: &Gateway, authed: &AuthedRequest, id: &str) -> Result<Value, Failure> {
    executor::may_decide(&authed.caller)?;
    let run = gateway.executor.exact_arguments(&authed.caller, parse(id)?).await?;
    let unreadable = |_| Failure::new(Code::Internal, "the arguments of the run cannot be read");
    let arguments: Value = serde_json::from_str(&run.asked.arguments).map_err(unreadable)?;
    Ok(json!({
        "id": run.id.to_string(), "tool": run.asked.tool.as_str(), "digest": run.asked.digest,
        "arguments": arguments,
    }))
}

/// As whom somebody sees a run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum RunViewer {
    /// Somebody who may decide it, and reads what will be executed as it is.
    Decider,
    /// Somebody who reads what others decide.
    Auditor,
    /// Whoever asked for it, also with a token that decides the runs of others.
    Requester,
}

pub(crate) fn viewer(authed: &AuthedRequest, requester: &Principal) -> RunViewer {
    if requester.is_same_person(&authed.caller.principal) {
        RunViewer::Requester
    } else if executor::may_decide(&authed.caller).is_ok() {
        RunViewer::Decider
    } else {
        RunViewer::Auditor
    }
}

/// A caller who decides, or reads the audit log, sees all runs of the tenant; everybody else sees their own.
pub(crate) fn may_see(authed: &AuthedRequest, run: &Run) -> bool {
    sees_all(authed) || run.asked.requester == authed.caller.principal
}

/// A token that may call tools may be an agent's, whatever else its issuer put there, and no agent reads what others
/// asked for.
pub(crate) fn sees_all(authed: &AuthedRequest) -> bool {
    let scopes = authed.caller.scopes;
    let person = !scopes.allow(TokenScope::ToolsRead);
    person && (scopes.allow(TokenScope::RunsDecide) || scopes.allow(TokenScope::AuditRead))
}

pub(crate) fn sees_runs(authed: &AuthedRequest) -> Result<(), Failure> {
    let scopes = authed.caller.scopes;
    if [TokenScope::ToolsRead, TokenScope::RunsDecide, TokenScope::AuditRead]
        .into_iter()
        .any(|scope| scopes.allow(scope))
    {
        return Ok(());
    }
    let failure = Failure::new(Code::InsufficientScope, "the token may not see runs");
    Err(failure.details(json!({ "scope": TokenScope::RunsDecide.as_str() })))
}

/// An id that cannot be a run's answers like an unknown one.
pub(crate) fn parse(id: &str) -> Result<RunId, Failure> {
    RunId::parse(id).map_err(|_| Failure::new(Code::NotFound, "no such run"))
}

pub(crate) fn no_store(error: &StoreError) -> Failure {
    Failure::new(error.code(), "the state store did not answer").retry_after_ms(1_000)
}
