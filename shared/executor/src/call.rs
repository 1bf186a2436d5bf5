//! The path of one call: find, parse, take a slot, open the audit entry, decide, perform, close.
//!
//! Each step hands the next one proof: the parsed arguments carry the effect, the store's receipt says that the entry is
//! open, and only a permit reaches the tool. A refusal at any step is an ordinary outcome with its code.

use crate::call_count::CallCount;
use crate::executor::Executor;
use crate::failures::random;
use crate::perform::{AtDeadline, BoundCall, CallBounds, OpenEntry};
use crate::request::{CallRequest, ClientEra, read_handle};
use crate::runs::ask::AskParams;
use crate::snapshot::Snapshot;
use crate::virtuals::call_tool;
use catalog::{CatalogEntry, NameMatch};
use domain::outcome::near;
use domain::{Call, CallId, Code, Failure, Outcome, ToolUse};
use policy::Decision;
use std::sync::Arc;
use telemetry::{Step, names};
use tracing::Instrument;

impl Executor {
    /// Carries out one call. One over the rate is refused before anything is read of it, so that a caller who does not
    /// stop costs next to nothing.
    pub async fn call(&self, snapshot: &Arc<Snapshot>, mut request: CallRequest) -> Outcome {
        let mut count = CallCount::new(&request.caller);
        let rate = self.admission.rate(snapshot.policy.calls_per_minute);
        if let Err(exceeded) = self.admission.call(&request.caller, rate) {
            // In a box, as is everything that most calls do not do: each of them would carry its size along.
            let refusal = Outcome::Failed(Box::pin(self.refuse(snapshot, &request, exceeded)).await);
            count.ended(&refusal);
            return refusal;
        }
        loop {
            let outcome = match snapshot.catalog.find(&request.tool) {
                NameMatch::Tool(entry) => self.call_tool(snapshot, entry, request, &mut count).await,
                // The inner call is an ordinary one: the same path, the same verdict.
                NameMatch::Virtual(catalog::ControlTool::CallTool) => match call_tool::unwrap(snapshot, request) {
                    Ok(inner) => {
                        request = inner;
                        continue;
                    }
                    Err(failure) => Err(failure),
                },
                NameMatch::Virtual(which) => Box::pin(self.call_virtual(snapshot, which, request, &mut count)).await,
                NameMatch::Nothing if snapshot.withheld.contains(&request.tool) => Err(withheld(&request.tool)),
                NameMatch::Nothing => Err(unknown_tool(snapshot, &request.tool)),
            };
            let outcome = outcome.into();
            count.ended(&outcome);
            return outcome;
        }
    }

    async fn call_tool<'s>(
        &self,
        snapshot: &'s Arc<Snapshot>,
        entry: &'s Arc<CatalogEntry>,
        mut request: CallRequest,
        count: &mut CallCount<'s>,
    ) -> Result<Outcome, Failure> {
        count.of_toolset(entry.definition().toolset.as_str());
        let step = Step::begin(names::SPAN_RESOLVE);
        let parsed = entry.parse(std::mem::take(&mut request.arguments));
        step.end_with(&parsed, |failure| failure.code.as_str());
        let parsed = parsed?;
        count.effect(parsed.effect);
        // A call that waits holds no slot: others may call meanwhile.
        let slot = if entry.definition().waits {
            self.admission.waiting(&request.caller)?
        } else {
            self.admission.slot(&request.caller, snapshot.in_flight)?
        };
        let session = read_handle(&request.handle)?;
        let used = ToolUse {
            tool: entry.name().clone(),
            toolset: entry.definition().toolset.clone(),
            needs: entry.list(),
            effect: parsed.effect,
            about: parsed.about.clone(),
            schema: entry.schema_digest(),
            arguments: &parsed.arguments,
        };
        let target = entry.target(&parsed);
        let call = Call::new(CallId::from_random(random()?), Arc::clone(&request.caller), session, used)
            .aimed_at(target.clone());
        let (mut open, evidence, past) = self.open(snapshot, &call, (target, &parsed.arguments), &request).await?;
        let call = match &open.held {
            Some(held) => call.with_session_facts(held.session.tainted, Arc::new(held.session.assignment.clone())),
            None => call,
        };
        let step = Step::begin(names::SPAN_DECIDE);
        let decided = policy::decide(&snapshot.policy, call, &evidence);
        step.end(None);
        open.decided(&decided, snapshot);
        count.decided(&decided, &open);
        Ok(match decided {
            Decision::Permit(permit) => {
                let (executor, entry, progress) = (self.clone(), Arc::clone(entry), request.progress);
                let (cap, secrets) = (snapshot.result_bytes, snapshot.secrets.clone());
                let (cancel, at_deadline) = (request.cancel, AtDeadline::Stop);
                let bounds = CallBounds { secrets, cap, shape: std::convert::identity, cancel, at_deadline };
                // Made where it is awaited: a future that is handed on first is copied.
                let work = || async move {
                    // Held until the work ends, whoever is still waiting for it.
                    let _slot = slot;
                    let call = BoundCall::Tool { entry: &entry, parsed, progress: &progress };
                    let outcome = executor.perform(OpenEntry::Call(&open), &permit, call, bounds).await.into_outcome();
                    open.close(&outcome).await;
                    outcome
                };
                match request.era {
                    // The client that vanishes takes its call along.
                    ClientEra::Modern => work().await,
                    // A lost connection is not a cancellation in the legacy era, only the explicit one is.
                    ClientEra::Legacy => {
                        self.tasks.spawn("legacy call", work().in_current_span()).await.ok().flatten().unwrap_or_else(
                            || Outcome::Failed(Failure::new(Code::Internal, "the call ended without a result")),
                        )
                    }
                }
            }
            Decision::Ask(_, rehearsal) => {
                // Waiting for a person holds no slot: others may call meanwhile.
                drop(slot);
                let cancel = request.cancel.clone();
                let asking = AskParams { parsed, rehearsal, open, past };
                tokio::select! {
                    outcome = Box::pin(self.ask(snapshot, entry, &request, asking)) => outcome,
                    () = cancel.cancelled() => {
                        return Err(Failure::new(Code::Cancelled, "the caller cancelled the wait"));
                    }
                }
            }
            Decision::Deny(reason) => {
                let refusal = Outcome::Failed(reason.0);
                open.close(&refusal).await;
                refusal
            }
        })
    }
}

fn withheld(name: &str) -> Failure {
    let message = format!("{name} is not the tool that was accepted: its server describes it differently now");
    Failure::new(Code::ToolChanged, message).next("do without it; an admin of the tenant can look at it and accept it")
}

fn unknown_tool(snapshot: &Snapshot, name: &str) -> Failure {
    let known = snapshot.catalog.entries().iter().map(|e| e.name().as_str());
    let virtuals = catalog::ControlTool::ALL.iter().map(|v| v.name());
    let shown: String = name.chars().filter(|c| !c.is_control()).take(64).collect();
    Failure::new(Code::UnknownTool, format!("Unknown tool: {shown}")).did_you_mean(near(name, known.chain(virtuals)))
}
