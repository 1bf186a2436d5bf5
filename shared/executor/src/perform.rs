//! The one place where a tool runs: calls that only read, approved runs, and the tools the service answers itself.
//!
//! Whoever wants something done brings an open audit entry, a permit and a bound call. What holds for every tool stands
//! here and nowhere else, in this order: the deadline, the panic that is caught, the tenant's secrets that are taken out,
//! the mark on text from outside, the cap on the result, the taint of the session that is handed it, and what is
//! recorded about it.

use crate::clean::cleaned;
use crate::executor::Executor;
use crate::open_call::OpenCall;
use crate::run_record::RunClaim;
use crate::snapshot::SecretsNow;
use catalog::{BoxedFuture, CatalogEntry, ParsedCall, Progress};
use domain::{Code, Content, Effect, Failure, Outcome, ToolName, ToolOutput, WaitingRun, tokens};
use futures_util::FutureExt;
use policy::Permit;
use std::panic::AssertUnwindSafe;
use std::time::{Duration, Instant};
use telemetry::{SpanAttributes, metrics, names};
use tokio::sync::oneshot;
use tokio_util::sync::CancellationToken;

/// Proof that the audit log has an open entry for what is about to be done. Neither can be had without the store: one
/// holds the receipt of `TenantStore::begin`, the other comes from the commit that claimed a run.
pub(crate) enum OpenEntry<'a> {
    /// The entry of a call.
    Call(&'a OpenCall),
    /// The entry of a claimed run.
    Run(&'a RunClaim),
}

impl OpenEntry<'_> {
    /// Whether it was opened for what the permit allows.
    fn covers(&self, permit: &Permit) -> bool {
        match self {
            OpenEntry::Call(open) => {
                open.call() == permit.call().id && (open.is_recorded() || permit.effect() == Effect::Read)
            }
            OpenEntry::Run(claim) => claim.covers(permit),
        }
    }
}

/// A call whose arguments are parsed, so that nothing but doing it is left.
pub(crate) enum BoundCall<'a> {
    /// Of a tool of the catalog.
    Tool {
        /// The tool.
        entry: &'a CatalogEntry,
        /// Its parsed arguments.
        parsed: ParsedCall,
        /// Where it reports how far it is.
        progress: &'a Progress,
    },
    /// Of a tool that the service answers itself.
    Control {
        /// What answers it.
        work: BoxedFuture<'a, Result<Outcome, Failure>>,
        /// How long that may take.
        deadline: Duration,
    },
}

/// What a call is held to.
pub(crate) struct CallBounds {
    /// The tenant's secrets.
    pub(crate) secrets: SecretsNow,
    /// The most bytes one result may have.
    pub(crate) cap: usize,
    /// Which part of an output is passed on.
    pub(crate) shape: fn(ToolOutput) -> ToolOutput,
    /// Ends the work on the caller's wish.
    pub(crate) cancel: CancellationToken,
    /// What becomes of work that reaches its deadline.
    pub(crate) at_deadline: AtDeadline,
}

/// What becomes of work that reaches its deadline.
pub(crate) enum AtDeadline {
    /// It is dropped, and the call has failed.
    Stop,
    /// It goes on, since what was sent may still be answered; whoever holds the other end is told that it is late.
    GoOn(oneshot::Sender<()>),
}

/// What came of it.
#[derive(Debug)]
pub(crate) enum PerformOutcome {
    /// A result within the cap.
    Done(ToolOutput),
    /// It was done, and the result is larger than the cap.
    TooLarge { bytes: usize, cap: usize },
    /// A run that has not ended: only a tool that the service answers itself gives one.
    Waiting(WaitingRun),
    /// Nothing, and why.
    Failed(Failure),
}

impl PerformOutcome {
    /// What the caller is answered. Tools page their results themselves; what still does not fit is refused whole,
    /// because JSON cut in the middle is worse than none.
    pub(crate) fn into_outcome(self) -> Outcome {
        match self {
            PerformOutcome::Done(output) => Outcome::Done(output),
            PerformOutcome::Waiting(run) => Outcome::Waiting(run),
            PerformOutcome::Failed(failure) => Outcome::Failed(failure),
            PerformOutcome::TooLarge { bytes, cap } => {
                let message = format!("the result has {bytes} bytes and the cap is {cap}");
                let failure = Failure::new(Code::ResultTooLarge, message);
                Outcome::Failed(failure.next("narrow the call so that it returns less"))
            }
        }
    }

    /// Whether there is nothing to hand over.
    fn is_failure(&self) -> bool {
        match self {
            PerformOutcome::Done(_) | PerformOutcome::Waiting(_) => false,
            PerformOutcome::TooLarge { .. } | PerformOutcome::Failed(_) => true,
        }
    }

    /// What its result costs a model that reads it, about: the structured one, or else its blocks. `None`: it has none.
    fn tokens(&self) -> Option<u64> {
        let block = |content: &Content| match content {
            Content::Text(text) => tokens::estimate(text),
            Content::Block(block) => tokens::estimate(&block.to_string()),
        };
        match self {
            PerformOutcome::Done(ToolOutput { structured: Some(text), .. }) => Some(tokens::estimate(text)),
            PerformOutcome::Done(output) => Some(output.content.iter().map(block).sum()),
            PerformOutcome::Waiting(run) => Some(tokens::estimate(&run.json)),
            PerformOutcome::TooLarge { .. } | PerformOutcome::Failed(_) => None,
        }
    }

    /// Notes on the span of a call or of an execution what came of it.
    fn note_on(&self, span: &mut SpanAttributes, tokens: Option<u64>) {
        span.set(names::CODE, self.word());
        let bytes = match self {
            PerformOutcome::Done(output) => {
                span.set(names::RESULT_UNTRUSTED, output.tainting);
                size(output)
            }
            PerformOutcome::TooLarge { bytes, .. } => *bytes,
            PerformOutcome::Waiting(run) => run.json.len(),
            PerformOutcome::Failed(_) => {
                span.set(names::ERROR_TYPE, "tool_error");
                return;
            }
        };
        span.set(names::RESULT_BYTES, u64::try_from(bytes).unwrap_or(u64::MAX));
        span.set(names::RESULT_TRUNCATED, matches!(self, PerformOutcome::TooLarge { .. }));
        if let Some(tokens) = tokens {
            span.set(names::RESULT_TOKENS, tokens);
        }
    }

    /// How it ended, in one word of a closed list.
    fn word(&self) -> &'static str {
        match self {
            PerformOutcome::Done(_) | PerformOutcome::Waiting(_) => "ok",
            PerformOutcome::TooLarge { .. } => Code::ResultTooLarge.as_str(),
            PerformOutcome::Failed(failure) => failure.code.as_str(),
        }
    }
}

impl Executor {
    /// Does what a bound call says. The audit entry stays open: whoever opened it closes it with what this returns.
    pub(crate) async fn perform(
        &self,
        entry: OpenEntry<'_>,
        permit: &Permit,
        call: BoundCall<'_>,
        bounds: CallBounds,
    ) -> PerformOutcome {
        if !entry.covers(permit) {
            return PerformOutcome::Failed(Failure::new(Code::Internal, "no audit entry is open for this call"));
        }
        let open = match &entry {
            OpenEntry::Call(open) => Some(*open),
            OpenEntry::Run(_) => None,
        };
        if let Some(open) = open.filter(|open| !open.is_recorded()) {
            self.count_unrecorded(permit.tenant(), open.now);
        }
        let tool = &permit.call().tool;
        let CallBounds { secrets, cap, shape, cancel, at_deadline } = bounds;
        let (work, deadline, outside_text): (BoxedFuture<'_, Outcome>, _, _) = match call {
            BoundCall::Tool { entry, parsed, progress } => {
                let definition = entry.definition();
                // Begun inside the future, so that a panic of its first line is caught too.
                let work = async move { parsed.work.run(permit, progress).await.into() };
                (Box::pin(work), definition.deadline, definition.outside_text)
            }
            BoundCall::Control { work, deadline } => (Box::pin(work.map(Outcome::from)), deadline, false),
        };
        let work = within_deadline(tool, caught(tool, work), deadline, cancel, at_deadline);
        let performed = async {
            let performed = match cleaned(&secrets, work).await {
                Outcome::Done(output) => capped(shape(marked(output, outside_text)), cap),
                Outcome::Waiting(run) => PerformOutcome::Waiting(run),
                Outcome::Failed(failure) => PerformOutcome::Failed(failure),
            };
            match (entry, taints(&performed)) {
                (OpenEntry::Call(open), true) => match Box::pin(self.taint_first(open, &permit.call().caller)).await {
                    Ok(()) => performed,
                    Err(failure) => PerformOutcome::Failed(failure),
                },
                // What a run gives is kept with its mark; it taints the session that is handed it later.
                (OpenEntry::Call(_), false) | (OpenEntry::Run(_), _) => performed,
            }
        };
        let began = Instant::now();
        let performed = performed.await;
        let tokens = performed.tokens();
        if let (Some(open), Some(tokens)) = (open, tokens) {
            // Set once: a call is performed once.
            open.tokens.set(tokens).ok();
        }
        self.usage.call(permit.call(), tokens, began.elapsed());
        if let Some(tokens) = tokens {
            metrics::RESULT_TOKENS.observe([permit.call().toolset.as_str()], tokens as f64);
        }
        // Every tool that ever runs passes here once, so this is where its time and its ending are recorded.
        telemetry::note(|span| performed.note_on(span, tokens));
        let kind = tool_type(permit.call().toolset.as_str());
        let error = if performed.is_failure() { "tool_error" } else { "" };
        metrics::EXECUTE_TOOL.observe_since([tool.as_str(), kind, error], began);
        performed
    }

    /// Taints the session that is about to be handed text from outside: once, and in the audit log too. Before the text, so
    /// that there is no moment in which it was read and nobody knows; if it cannot be written, the text stays here.
    pub(crate) async fn taint_first(&self, open: &OpenCall, caller: &domain::Caller) -> Result<(), Failure> {
        use std::sync::atomic::Ordering;
        match &open.held {
            Some(held) if !open.tainted.load(Ordering::Relaxed) => {
                self.taint(&open.shelf.sessions(), held.clone(), caller, open.now).await?;
                open.tainted.store(true, Ordering::Relaxed);
                Ok(())
            }
            Some(held) => {
                if self.taints.due(held.session.id, self.lives.carry_over, Instant::now()) {
                    self.taint_again(open, held.clone(), caller.clone());
                }
                Ok(())
            }
            None => Ok(()),
        }
    }

    /// Renews what the taint of a session means for new ones. Nobody waits for it: the session itself is tainted already.
    fn taint_again(&self, open: &OpenCall, held: store::VersionedSession, caller: domain::Caller) {
        let (executor, sessions, now) = (self.clone(), open.shelf.sessions(), open.now);
        self.tasks.spawn_lasting("taint", async move {
            if let Err(failure) = executor.taint(&sessions, held, &caller, now).await {
                tracing::debug!(code = failure.code.as_str(), "the taint of a session could not be renewed");
            }
        });
    }
}

/// The work, with a panic in it as a failure like any other.
async fn caught(tool: &ToolName, work: BoxedFuture<'_, Outcome>) -> Outcome {
    AssertUnwindSafe(work).catch_unwind().await.unwrap_or_else(|_| {
        tracing::error!(tool = %tool, "a tool panicked");
        Outcome::Failed(Failure::new(Code::Internal, format!("{tool} failed inside the service")))
    })
}

async fn within_deadline(
    tool: &ToolName,
    work: impl Future<Output = Outcome>,
    deadline: Duration,
    cancel: CancellationToken,
    at_deadline: AtDeadline,
) -> Outcome {
    tokio::pin!(work);
    tokio::select! {
        biased; // a result that is there wins a tie against its own deadline
        outcome = &mut work => return outcome,
        () = cancel.cancelled() => {
            return Outcome::Failed(Failure::new(Code::Cancelled, "the caller cancelled the call"));
        }
        () = tokio::time::sleep(deadline) => {}
    }
    match at_deadline {
        AtDeadline::Stop => Outcome::Failed(
            Failure::new(Code::Deadline, format!("{tool} took longer than its {} s", deadline.as_secs()))
                .next("narrow the call, or try again later")
                .retry_after_ms(1_000),
        ),
        AtDeadline::GoOn(late) => {
            // Nobody may be there to hear it; the work goes on all the same.
            late.send(()).ok();
            work.await
        }
    }
}

/// Whatever such a tool gives is text from outside, whether it says so itself or not.
fn marked(output: ToolOutput, outside_text: bool) -> ToolOutput {
    ToolOutput { tainting: output.tainting || outside_text, ..output }
}

/// How large a result is. Blocks often say once more what the structured result says, so the larger of the two counts.
fn size(output: &ToolOutput) -> usize {
    let block = |content: &Content| match content {
        Content::Text(text) => text.len(),
        Content::Block(block) => block.to_string().len(),
    };
    output.structured.as_ref().map_or(0, String::len).max(output.content.iter().map(block).sum())
}

/// Holds a result to the cap.
fn capped(output: ToolOutput, cap: usize) -> PerformOutcome {
    let bytes = size(&output);
    if bytes <= cap { PerformOutcome::Done(output) } else { PerformOutcome::TooLarge { bytes, cap } }
}

/// What kind of tool it is, in the words of the GenAI conventions.
pub(crate) fn tool_type(toolset: &str) -> &'static str {
    if toolset == "memory" { "datastore" } else { "extension" }
}

/// Whether whoever is handed this reads words that somebody outside chose.
fn taints(performed: &PerformOutcome) -> bool {
    match performed {
        PerformOutcome::Done(output) => output.tainting,
        PerformOutcome::Failed(failure) => quotes(failure.code),
        PerformOutcome::TooLarge { .. } | PerformOutcome::Waiting(_) => false,
    }
}

/// Whether a failure of this kind is told in words that somebody outside chose.
pub(crate) fn quotes(code: Code) -> bool {
    code.quotes_target()
}

#[cfg(test)]
mod tests;
