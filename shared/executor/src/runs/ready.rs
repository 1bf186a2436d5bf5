//! What must be there, and still be so, before a byte is sent.
//!
//! The tool, its schema, the arguments and today's policy are asked again, with the yes as evidence; then the target is
//! looked at for the last time.

use super::ask;
use super::carry_out::found_failed;
use super::standing::PreSendCheck;
use crate::clean;
use crate::failures::random;
use crate::snapshot::Snapshot;
use catalog::{CatalogEntry, NameMatch, ParsedCall, ProbeResult};
use domain::run::{Ending, Preview, Run};
use domain::{Call, CallId, Caller, Code, Scopes, Tenant, ToolUse};
use policy::{CallEvidence, Decision, Permit};
use redact::Scrubber;
use serde_json::{Map, Value};
use std::sync::Arc;
use std::time::Duration;
use store::SwitchesInForce;
use telemetry::{Step, names};

/// Everything that must be there before a byte is sent.
pub(super) struct PreparedRun {
    pub(super) entry: Arc<CatalogEntry>,
    pub(super) parsed: ParsedCall,
    pub(super) permit: Permit,
    pub(super) deadline: Duration,
}

/// Finds the tool again, understands the arguments again, and asks today's policy with the yes as evidence.
pub(super) fn prepare(
    snapshot: &Snapshot,
    tenant: &Tenant,
    run: &Run,
    switches: &SwitchesInForce,
) -> Result<PreparedRun, Ending> {
    let asked = &run.asked;
    let stale = |what: &str| Ending::not_attempted(Code::Stale, format!("{what} since it was approved"));
    let NameMatch::Tool(entry) = snapshot.catalog.find(asked.tool.as_str()) else {
        return Err(stale("the tool is gone"));
    };
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
        token: None,
        labels: Vec::new(),
    };
    let id = CallId::from_random(random().map_err(|f| Ending::not_attempted(f.code, f.message))?);
    let used = ToolUse {
        tool: asked.tool.clone(),
        toolset: entry.definition().toolset.clone(),
        needs: entry.list(),
        effect: parsed.effect,
        about: parsed.about.clone(),
        schema: entry.schema_digest(),
        arguments: &parsed.arguments,
    };
    let call = Call::new(id, Arc::new(caller), asked.session, used)
        .with_session_facts(asked.tainted, Arc::new(asked.assignment.clone()))
        .aimed_at(entry.target(&parsed));
    let Some(evidence) = CallEvidence::of_approved_run(run, switches) else {
        return Err(Ending::not_attempted(Code::PolicyDenied, "too few people have approved it"));
    };
    match policy::decide(&snapshot.policy, call, &evidence) {
        Decision::Permit(permit) => {
            Ok(PreparedRun { entry: Arc::clone(entry), parsed, permit, deadline: entry.definition().deadline })
        }
        Decision::Ask(..) => Err(stale("what would be done is no longer what was approved")),
        Decision::Deny(reason) => Err(Ending::not_attempted(reason.0.code, reason.0.message)),
    }
}

/// What the last look before sending says.
pub(super) enum PreSendFinding {
    /// What the approver judged is still so.
    Same,
    /// It has happened already; this is its result.
    Happened(Option<String>),
    /// It was tried before, is over, and failed; this is its end.
    Tried(Ending),
    /// It may have happened, and nobody can tell.
    Unproven,
    /// It is no longer so.
    Other(Ending),
}

/// Looks at the target for the last time. Whoever takes a run over asks first whether it has happened: the effect itself
/// would make everything look different.
pub(super) async fn last_look(
    ready: &PreparedRun,
    run: &Run,
    wanted: PreSendCheck,
    secrets: &Scrubber,
) -> PreSendFinding {
    let look = ready.permit.for_preview();
    let work = &ready.parsed.work;
    let stale = |what: String| PreSendFinding::Other(Ending::not_attempted(Code::Stale, what));
    if wanted != PreSendCheck::Nothing {
        let step = Step::begin(names::SPAN_PROBE);
        let found = tokio::time::timeout(ready.deadline, work.probe(&look)).await.unwrap_or(ProbeResult::Unknown);
        step.end(matches!(found, ProbeResult::Unknown).then_some(Code::OutcomeUnknown.as_str()));
        match (found, wanted) {
            (ProbeResult::Done(result), _) => {
                return PreSendFinding::Happened(result.map(|text| clean::json(text, secrets)));
            }
            (ProbeResult::Failed(failure), _) => {
                return PreSendFinding::Tried(found_failed(clean::failed(failure, secrets)));
            }
            (ProbeResult::NotDone, PreSendCheck::More)
            | (ProbeResult::Unknown, PreSendCheck::Proof | PreSendCheck::More) => return PreSendFinding::Unproven,
            (ProbeResult::NotDone | ProbeResult::Unknown, _) => {}
        }
    }
    let step = Step::begin(names::SPAN_PREVIEW);
    let drawn = tokio::time::timeout(ready.deadline, work.preview(&look)).await;
    step.end(ask::preview_error(&drawn));
    let drawn = match drawn {
        Ok(Ok(drawn)) => drawn,
        Ok(Err(failure)) => {
            let failure = clean::failed(failure, secrets);
            return stale(format!("the target can no longer be looked at: {}", failure.message));
        }
        Err(_) => return stale("the target can no longer be looked at in time".to_owned()),
    };
    // The requester reads what is said here, so it says nothing of what was read from the target.
    match ask::preview(&ready.entry, &ready.parsed, drawn, secrets) {
        Ok(now) if still_covered(&run.asked.preview, &now) => PreSendFinding::Same,
        Ok(_) | Err(_) => stale("the target has changed since it was approved".to_owned()),
    }
}

/// Whether a yes to what was shown covers what would be shown now. Where the target moved and what would be done is still
/// the same, it does; but not where something differs that no text shows.
fn still_covered(was: &Preview, now: &Preview) -> bool {
    let reads_the_same = now.text == was.text && now.warnings == was.warnings;
    now.fingerprint == was.fingerprint || (reads_the_same && unshown(&now.fingerprint) == unshown(&was.fingerprint))
}

/// What a fingerprint says of things that no text shows, such as the values of secrets: it stands behind the last sign.
fn unshown(fingerprint: &str) -> Option<&str> {
    fingerprint.rsplit_once('#').map(|(_, rest)| rest)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn preview(text: &str, fingerprint: &str) -> Preview {
        Preview {
            summary: "a change".to_owned(),
            text: text.to_owned(),
            warnings: Vec::new(),
            fingerprint: fingerprint.to_owned(),
            arguments: None,
            hidden: Vec::new(),
        }
    }

    #[test]
    fn a_yes_does_not_cover_another_secret_behind_the_same_text() {
        let was = preview("key: (secret, another one)", "k8s:aa#11");
        assert!(still_covered(&was, &preview("other words", "k8s:aa#11")), "what was judged is the same");
        assert!(still_covered(&was, &preview(&was.text, "k8s:bb#11")), "only what was not shown has moved");
        assert!(!still_covered(&was, &preview(&was.text, "k8s:bb#22")), "the secret is another one");
        assert!(!still_covered(&was, &preview("other words", "k8s:bb#11")));
        let plain = preview("words", "aa");
        assert!(still_covered(&plain, &preview("words", "bb")), "a tool that hides nothing is judged by its text");
    }
}
