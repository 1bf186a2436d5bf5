//! What must be there, and still be so, before a byte is sent.
//!
//! The tool, its schema, the arguments and today's policy are asked again, with the yes as evidence; then the target is
//! looked at for the last time.

use super::ask;
use super::standing::Wanted;
use crate::call::digest;
use crate::clean;
use crate::snapshot::Snapshot;
use catalog::{Entry, Found, Parsed, Probe};
use domain::run::{Ending, Run, Verdict};
use domain::{Call, CallId, Caller, Code, Level, Loaded, Scopes, Tenant};
use policy::{Approval, Approved, Decision, Evidence, Permit};
use redact::Scrubber;
use serde_json::{Map, Value};
use std::sync::Arc;
use std::time::Duration;

/// Everything that must be there before a byte is sent.
pub(super) struct Prepared {
    pub(super) entry: Arc<Entry>,
    pub(super) parsed: Parsed,
    pub(super) permit: Permit,
    pub(super) deadline: Duration,
}

/// Finds the tool again, understands the arguments again, and asks today's policy with the yes as evidence.
pub(super) fn prepare(snapshot: &Snapshot, tenant: &Tenant, run: &Run) -> Result<Prepared, Ending> {
    let asked = &run.asked;
    let stale = |what: &str| Ending::not_attempted(Code::Stale, format!("{what} since it was approved"));
    let Found::Tool(entry) = snapshot.catalog.find(asked.tool.as_str()) else { return Err(stale("the tool is gone")) };
    if entry.schema_digest() != asked.schema {
        return Err(stale("the tool's schema has changed"));
    }
    let arguments: Map<String, Value> =
        serde_json::from_str(&asked.arguments).map_err(|_| stale("the arguments can no longer be read"))?;
    let parsed = entry.parse(arguments).map_err(|_| stale("the arguments no longer fit"))?;
    let caller = Caller {
        tenant: tenant.clone(),
        principal: asked.requester.clone(),
        scopes: Scopes::parse(&asked.scopes),
        expires_at: asked.expires_at,
    };
    let mut call = Call {
        id: CallId::from_random(crate::call::random().map_err(|f| Ending::not_attempted(f.code, f.message))?),
        caller: Arc::new(caller),
        session: asked.session,
        tainted: asked.tainted,
        assignment: Arc::new(asked.assignment.clone()),
        tool: asked.tool.clone(),
        toolset: entry.definition().toolset.clone(),
        needs: entry.list(),
        effect: parsed.effect,
        about: parsed.about.clone(),
        digest: String::new(),
    };
    call.digest = digest(&call, entry.schema_digest(), &parsed.arguments);
    let evidence = Evidence {
        // What was issued when it was asked was judged then; what the tenant forbids today is judged below.
        loaded: Loaded::from_iter([(asked.toolset.clone(), Level::Write)]),
        mode: domain::Mode::Write,
        tainted: asked.tainted,
        calls_this_minute: 0,
        stopped: false,
        approved: Some(Approved { approval: approval(run), digest: asked.digest.clone() }),
    };
    match policy::decide(&snapshot.policy, call, &evidence) {
        Decision::Permit(permit) => {
            Ok(Prepared { entry: Arc::clone(entry), parsed, permit, deadline: entry.definition().deadline })
        }
        Decision::Ask(..) => Err(stale("what would be done is no longer what was approved")),
        Decision::Deny(reason) => Err(Ending::not_attempted(Code::PolicyDenied, reason.0.message)),
    }
}

/// What people said yes to. The moment is that of the last yes: every attempt to carry the run out finds the same.
pub(super) fn approval(run: &Run) -> Approval {
    let yeses = run.answers.iter().filter(|answer| answer.verdict == Verdict::Approve);
    let at = yeses.clone().map(|answer| answer.at).max().unwrap_or(run.asked.asked_at);
    Approval { run: run.id, by: yeses.map(|answer| answer.by.clone()).collect(), at }
}

/// What the last look before sending says.
pub(super) enum Looked {
    /// What the approver judged is still so.
    Same,
    /// It has happened already; this is its result.
    Happened(Option<String>),
    /// It may have happened, and nobody can tell.
    Unproven,
    /// It is no longer so.
    Other(Ending),
}

/// Looks at the target for the last time. Whoever takes a run over asks first whether it has happened: the effect itself
/// would make everything look different.
pub(super) async fn last_look(ready: &Prepared, run: &Run, wanted: Wanted, secrets: &Scrubber) -> Looked {
    let look = policy::look(ready.permit.call().clone(), approval(run));
    let work = &ready.parsed.work;
    let stale = |what: String| Looked::Other(Ending::not_attempted(Code::Stale, what));
    if wanted != Wanted::Nothing {
        let found = tokio::time::timeout(ready.deadline, work.probe(&look)).await.unwrap_or(Probe::Unknown);
        match (found, wanted) {
            (Probe::Done(result), _) => return Looked::Happened(result.map(|text| clean::json(text, secrets))),
            (Probe::NotDone, Wanted::More) | (Probe::Unknown, Wanted::Proof | Wanted::More) => return Looked::Unproven,
            (Probe::NotDone | Probe::Unknown, _) => {}
        }
    }
    let drawn = match tokio::time::timeout(ready.deadline, work.preview(&look)).await {
        Ok(Ok(drawn)) => drawn.map(|drawn| clean::drawn(drawn, secrets)),
        Ok(Err(failure)) => {
            let failure = clean::failed(failure, secrets);
            return stale(format!("the target can no longer be looked at: {}", failure.message));
        }
        Err(_) => return stale("the target can no longer be looked at in time".to_owned()),
    };
    let (now, was) = (ask::preview(&ready.entry, &ready.parsed, drawn), &run.asked.preview);
    // Where the target moved and what would be done is still the same, the yes still covers it.
    if now.fingerprint == was.fingerprint || (now.text == was.text && now.warnings == was.warnings) {
        return Looked::Same;
    }
    stale(format!("the target has changed since it was approved; now: {}", now.summary))
}
