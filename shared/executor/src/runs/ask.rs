//! A gated call becomes a run: once, however often it is sent.
//!
//! The run's name is derived from the digest and the run before it, so two replicas that are asked the same thing at the
//! same moment write the same record, and the second finds the first's.

use super::{RunWait, WaitUntil};
use crate::clean::{self, ShownWithoutSecrets};
use crate::executor::Executor;
use crate::failpoint::stop_at;
use crate::failures::no_store;
use crate::open_call::OpenCall;
use crate::request::CallRequest;
use crate::run_record::FOLDS;
use crate::snapshot::Snapshot;
use catalog::{CatalogEntry, ParsedCall, ToolPreview};
use domain::run::{OnReject, Preview, Run, RunRequest, RunState};
use domain::text::visible;
use domain::{Code, Failure, Moment, Outcome, RunId};
use policy::Permit;
use redact::Scrubber;
use serde_json::Value;
use std::sync::Arc;
use store::{PriorRuns, RunCasOutcome, StoreEpoch, StoreError, VersionedRun};
use telemetry::{Step, names};

/// The longest key of a caller.
const LONGEST_KEY: usize = 255;

impl Executor {
    /// Records what is asked for and answers with the run, or with what became of it within the caller's patience.
    pub(crate) async fn ask(
        &self,
        snapshot: &Arc<Snapshot>,
        entry: &CatalogEntry,
        request: &CallRequest,
        asking: AskParams,
    ) -> Outcome {
        let AskParams { parsed, rehearsal, open, past } = asking;
        let before = self.store.lineages().now();
        let outcome = match self.earlier(&open, request, &rehearsal, &past).await {
            Ok(Some(held)) => Ok((held, true)),
            Ok(None) => self.record(snapshot, entry, request, &parsed, &rehearsal, &open, &past).await,
            Err(failure) => Err(failure),
        };
        let outcome = match outcome {
            Ok((held, replayed)) => self.hold(request, &open, held, (replayed, before)).await.into(),
            Err(failure) => Outcome::Failed(failure),
        };
        open.close(&outcome).await;
        outcome
    }

    /// The run this call began earlier, if it did: by the caller's own key, or by asking exactly the same again.
    async fn earlier(
        &self,
        open: &OpenCall,
        request: &CallRequest,
        rehearsal: &Permit,
        past: &PriorRuns,
    ) -> Result<Option<VersionedRun>, Failure> {
        let digest = rehearsal.call().digest();
        let runs = open.shelf.runs();
        if let Some(key) = &request.idempotency_key {
            if key.is_empty() || key.chars().count() > LONGEST_KEY {
                let message = format!("an idempotency key has 1 to {LONGEST_KEY} characters");
                return Err(Failure::new(Code::InvalidArgument, message));
            }
            if let Some(id) = past.same_key {
                return match authentic(runs.find(id).await)? {
                    Some(held) if held.run.asked.digest == digest => Ok(Some(held)),
                    Some(held) => Err(Failure::new(Code::KeyReused, "this key was used for another call")
                        .next("use a new key for a new call")
                        .details(serde_json::json!({ "run": held.run.id.to_string() }))),
                    None => Ok(None),
                };
            }
        }
        let Some(id) = past.same_digest else { return Ok(None) };
        let held = authentic(runs.find(id).await)?;
        // An ending that nobody has heard of is still owed; one that was handed over is history.
        let Some(held) = held.filter(|held| !is_history(&held.run)) else {
            return Ok(None);
        };
        if let Some(key) = &request.idempotency_key {
            // The key is new, the run is not: from now on the one leads to the other.
            let entry = self.moved(open.shelf.tenant(), Some(&held.run), &held.run, Some(&request.caller));
            match runs.remember(&held, key, &entry).await.map_err(|e| no_store(&e))? {
                RunCasOutcome::Done(held) | RunCasOutcome::Conflict(held) => return Ok(Some(held)),
                RunCasOutcome::Late(_) | RunCasOutcome::TooManyWaiting | RunCasOutcome::Gone => return Ok(None),
            }
        }
        Ok(Some(held))
    }

    #[expect(clippy::too_many_arguments, reason = "the parts of one call, each used once, none of them kept")]
    async fn record(
        &self,
        snapshot: &Snapshot,
        entry: &CatalogEntry,
        request: &CallRequest,
        parsed: &ParsedCall,
        rehearsal: &Permit,
        open: &OpenCall,
        past: &PriorRuns,
    ) -> Result<(VersionedRun, bool), Failure> {
        if self.closed.load(std::sync::atomic::Ordering::Relaxed) {
            return Err(Failure::new(
                Code::StoreFull,
                "the state store takes nothing new at the moment, so nobody can be asked",
            )
            .next("nothing was executed; go on with calls that only read, and try again later")
            .retry_after_ms(30_000));
        }
        let review = entry.definition().reviewed.map(|own| snapshot.approvals.review.unwrap_or(own));
        if past.waiting >= snapshot.approvals.most_waiting {
            return Err(too_many(snapshot, review.is_some()));
        }
        let deadline = entry.definition().deadline;
        let step = Step::begin(names::SPAN_PREVIEW);
        let drawn = tokio::time::timeout(deadline, parsed.work.preview(rehearsal)).await;
        step.end(preview_error(&drawn));
        let late =
            || Failure::new(Code::Deadline, format!("the target did not answer within {} s", deadline.as_secs()));
        let drawn = drawn.unwrap_or_else(|_| Err(late())).map_err(|failure| {
            let failure = clean::failed(failure, &snapshot.secrets.now());
            if failure.code.before_asking() {
                return failure;
            }
            let message = format!("what would happen cannot be shown: {}", failure.message);
            // The cause keeps its name: an agent that can mend it should not have to read the sentence.
            let mut details = failure.details.clone().filter(serde_json::Value::is_object).unwrap_or_default();
            details["cause"] = failure.code.as_str().into();
            Failure { code: Code::PreviewUnavailable, message, details: Some(details), ..failure }
        })?;
        let call = rehearsal.call();
        let preview = preview(entry, parsed, drawn, &snapshot.secrets.now())?;
        let approvals = &snapshot.approvals;
        let asked = RunRequest {
            schema: entry.schema_digest().to_owned(),
            arguments: parsed.arguments.clone(),
            idempotent: entry.definition().idempotent,
            preview,
            reviewed: review.is_some(),
            // What is proposed for a review is no step that a no could end.
            on_reject: review.map_or_else(|| policy::on_reject(&snapshot.policy, call), |_| OnReject::Continue),
            deciders: approvals.deciders,
            expires_at: open.now.plus(review.unwrap_or(approvals.expires)),
            execute_within_ms: u64::try_from(approvals.execute_within.as_millis()).unwrap_or(u64::MAX),
            trace: request.trace.clone(),
            span: telemetry::current_span(),
            ..RunRequest::new(call, open.now)
        };
        let key = request.idempotency_key.as_deref();
        let most = u64::try_from(approvals.most_waiting).unwrap_or(u64::MAX);
        let mut last = past.same_digest;
        for _ in 0..FOLDS {
            let run = Run::new(self.run_id(call.digest(), last), asked.clone());
            let audit_log = self.moved(open.shelf.tenant(), None, &run, Some(&request.caller));
            let opened = match open.shelf.runs().open(&run, key, most, &audit_log).await {
                // Whatever stands under this name is not ours; the next name is free.
                Err(StoreError::NotAuthentic { .. }) => {
                    last = Some(run.id);
                    continue;
                }
                opened => opened.map_err(|e| no_store(&e))?,
            };
            match opened {
                RunCasOutcome::Done(held) => {
                    self.notices.tell(&call.caller.tenant, None, &held.run);
                    return Ok((held, false));
                }
                // The way to an old run may be forgotten before the run is; what was handed over is history all the same.
                RunCasOutcome::Conflict(held) if is_history(&held.run) => last = Some(held.run.id),
                RunCasOutcome::Conflict(held) => return Ok((held, true)),
                // Others were asked for meanwhile, and the store counts what is there.
                RunCasOutcome::TooManyWaiting => return Err(too_many(snapshot, review.is_some())),
                RunCasOutcome::Late(_) | RunCasOutcome::Gone => break,
            }
        }
        Err(Failure::new(Code::Internal, "the run could not be written"))
    }

    /// Keyed, so that nobody can guess it; the same for whoever asks the same after the same history.
    fn run_id(&self, digest: &str, last: Option<RunId>) -> RunId {
        let history = match (last, self.store.lineages().now().generation) {
            (Some(last), _) => last.to_string(),
            (None, 0 | 1) => String::new(),
            // A store that lost everything knows no history, but the target may remember what was sent under a name.
            (None, generation) => format!("generation {generation}"),
        };
        RunId::from_random(self.keys.run_bits(digest, &history))
    }

    /// Answers with the run at once, or waits for it as long as the caller wants to.
    async fn hold(
        &self,
        request: &CallRequest,
        open: &OpenCall,
        held: VersionedRun,
        (replayed, before): (bool, StoreEpoch),
    ) -> Result<Outcome, Failure> {
        telemetry::note(|span| {
            span.show(names::RUN_ID, held.run.id).set(names::RUN_STATE, held.run.state.as_str());
            span.set(names::RUN_DIGEST, run_digest(&held.run)).set(names::REPLAYED, replayed);
        });
        let held = match request.hold {
            // Nobody's patience lasts as long as a review.
            Some(patience) if !held.run.state.is_settled() && !held.run.asked.reviewed => {
                match self.admission.waiting(&request.caller) {
                    Ok(_place) => {
                        let (until, progress) = (WaitUntil::Settled, &request.progress);
                        let waiting = RunWait { until, patience, may_see: &|_| true, progress };
                        self.wait_for(&request.caller.tenant, held.run.id, waiting).await?
                    }
                    // The run is recorded; whoever asked is answered with it at once and can wait for it later.
                    Err(_) => held,
                }
            }
            Some(_) | None => held,
        };
        if held.run.state.is_final() {
            stop_at!("after_record");
        }
        if held.run.state == RunState::PendingApproval {
            tracing::info!(run = %held.run.id, tool = %held.run.asked.tool, "a call waits for a person");
        }
        self.confirm_told(&open.shelf, &held.run, before).await?;
        self.hand_over(open, &request.caller, &held, replayed).await
    }
}

/// The run that was read. One whose record is not authentic is none, so that whoever asked can ask again.
fn authentic(read: Result<(Option<VersionedRun>, Moment), StoreError>) -> Result<Option<VersionedRun>, Failure> {
    match read {
        Ok((run, _)) => Ok(run),
        Err(StoreError::NotAuthentic { .. }) => Ok(None),
        Err(error) => Err(no_store(&error)),
    }
}

/// Whether a run is over and its requester knows how.
fn is_history(run: &Run) -> bool {
    run.state.is_final() && run.delivered
}

fn too_many(snapshot: &Snapshot, reviewed: bool) -> Failure {
    let most = snapshot.approvals.most_waiting;
    let message = match reviewed {
        true => format!("{most} proposals of this caller wait for a review already"),
        false => format!("{most} runs of this caller wait for a person already"),
    };
    Failure::new(Code::TooManyPending, message).next("wait for one of them with await_run")
}

/// What a gated call brings along.
pub(crate) struct AskParams {
    pub(crate) parsed: ParsedCall,
    pub(crate) rehearsal: Permit,
    pub(crate) open: OpenCall,
    pub(crate) past: PriorRuns,
}

/// How drawing a preview went wrong, in one word, if it did.
pub(super) fn preview_error<T, L>(drawn: &Result<Result<T, Failure>, L>) -> Option<&'static str> {
    match drawn {
        Ok(Ok(_)) => None,
        Ok(Err(failure)) => Some(failure.code.as_str()),
        Err(_) => Some(Code::Deadline.as_str()),
    }
}

/// As much of the digest of a run as tells it apart.
pub(super) fn run_digest(run: &Run) -> &str {
    let digest = run.asked.digest.rsplit(':').next().unwrap_or_default();
    digest.get(..12).unwrap_or(digest)
}

/// The most bytes that whoever decides is asked to read about one run. What is longer is refused before there is a run,
/// because nobody signs for what was left out.
const MOST_SHOWN: usize = 512 * 1024;

/// What an approver is shown: the tool's own drawing where it has one, and always the arguments. All of it is whole, and
/// as it is, but for the tenant's secrets and for what the tool hides by its kind; how much is hidden is told.
pub(crate) fn preview(
    entry: &CatalogEntry,
    parsed: &ParsedCall,
    drawn: Option<ToolPreview>,
    secrets: &Scrubber,
) -> Result<Preview, Failure> {
    let name = entry.name();
    let drawn = drawn.unwrap_or_else(|| ToolPreview {
        summary: format!("{name} with {} of arguments", size(parsed.arguments.len())),
        text: name.to_string(),
        warnings: Vec::new(),
        arguments: None,
        hidden: Vec::new(),
        fingerprint: String::new(),
    });
    let mut shown = ShownWithoutSecrets::new(secrets);
    let mut warnings = Vec::new();
    if parsed.effect == domain::Effect::Disrupt {
        warnings.push("This takes something away or puts service at risk.".to_owned());
    }
    warnings.extend(drawn.warnings.iter().map(|warning| visible(&shown.text(warning, "a warning"))));
    let summary = visible(&shown.text(&drawn.summary, "the summary"));
    let text = visible(&shown.text(&drawn.text, "the preview"));
    let given = drawn.arguments.as_ref().unwrap_or(&parsed.arguments);
    // Arguments are an object that was parsed before; whatever else a tool gives is shown as the text it is.
    let given: Value = serde_json::from_str(given).unwrap_or_else(|_| Value::from(given.as_str()));
    let clean = shown.arguments(given.clone(), "argument ");
    let arguments = (drawn.arguments.is_some() || clean != given).then(|| clean.to_string());
    let text = format!("{text}{}{}", Preview::ARGUMENTS, written_out(clean));
    // Paths hold names that somebody chose; each statement stays in its line.
    let one_line = |line: &String| visible(line).replace('\n', "\\n");
    let hidden: Vec<String> = drawn.hidden.iter().chain(&shown.hidden).map(one_line).collect();
    let bytes = summary.len() + text.len() + warnings.iter().chain(&hidden).map(String::len).sum::<usize>();
    fits(bytes)?;
    Ok(Preview { summary, text, warnings, fingerprint: drawn.fingerprint, arguments, hidden })
}

/// Refuses what is more than anybody is asked to read.
fn fits(bytes: usize) -> Result<(), Failure> {
    if bytes <= MOST_SHOWN {
        return Ok(());
    }
    let message =
        format!("whoever decides would have to read {bytes} bytes about this call, and at most {MOST_SHOWN} are shown");
    Err(Failure::new(Code::TooLarge, message)
        .next("ask for less at a time: split the call, or leave out what stays as it is"))
}

/// Arguments for a person to read: JSON on one line, but texts of several lines below it, line by line. Each of those
/// lines has a sign before it, so that none can pass for a line of ours.
fn written_out(mut arguments: Value) -> String {
    let is_long = |value: &Value| value.as_str().is_some_and(|text| text.contains('\n'));
    let mut texts = Vec::new();
    if let Value::Object(fields) = &mut arguments {
        let long: Vec<String> = fields.iter().filter(|(_, value)| is_long(value)).map(|(key, _)| key.clone()).collect();
        texts.extend(long.into_iter().filter_map(|key| fields.remove(&key).map(|value| (key, value))));
    }
    let mut out = visible(&arguments.to_string());
    for (key, text) in texts {
        let text = text.as_str().unwrap_or_default();
        out.push_str(&format!("\n  {}, {} characters:", visible(&format!("{key:?}")), text.chars().count()));
        text.split('\n').for_each(|line| out.push_str(&format!("\n  | {}", visible(line))));
    }
    out
}

fn size(bytes: usize) -> String {
    if bytes == 1 { "1 byte".to_owned() } else { format!("{bytes} bytes") }
}

#[cfg(test)]
mod tests {
    use super::super::example;
    use super::*;

    #[test]
    fn only_what_is_over_and_handed_over_is_history() {
        for state in RunState::ALL {
            for delivered in [false, true] {
                let run = Run { delivered, ..example::run(state) };
                assert_eq!(is_history(&run), state.is_final() && delivered, "{state:?} {delivered}");
            }
        }
        assert_eq!((size(0), size(1), size(2)), ("0 bytes".into(), "1 byte".into(), "2 bytes".into()));
    }

    #[test]
    fn traces_name_what_went_wrong_with_a_preview_and_the_beginning_of_a_digest() {
        let failed = Failure::new(Code::NotFound, "no such pod");
        assert_eq!(preview_error::<(), ()>(&Ok(Ok(()))), None);
        assert_eq!(preview_error::<(), ()>(&Ok(Err(failed))), Some("not_found"));
        assert_eq!(preview_error::<(), ()>(&Err(())), Some("deadline"), "it came too late");
        let mut run = example::run(RunState::PendingApproval);
        for (digest, shown) in [("sha256:0123456789abcdef", "0123456789ab"), ("short", "short")] {
            run.asked.digest = digest.into();
            assert_eq!(run_digest(&run), shown);
        }
    }

    #[test]
    fn what_nobody_could_read_is_refused_from_the_first_byte_too_many() {
        assert!(fits(MOST_SHOWN).is_ok());
        assert_eq!(fits(MOST_SHOWN + 1).unwrap_err().code, Code::TooLarge);
    }

    #[test]
    fn ap5_text_that_plays_tricks_is_shown_as_what_it_is() {
        assert_eq!(visible("a\u{202e}b\u{200b}c\u{1b}[2J\u{0}"), "a\\u{202e}b\\u{200b}c\\u{001b}[2J\\u{0000}");
        assert_eq!(visible("a\u{fe0f}b\u{34f}c\u{180b}d\u{1bca0}"), "a\\u{fe0f}b\\u{034f}c\\u{180b}d\\u{1bca0}");
        assert_eq!(visible("plain\n\ttext ä 漢"), "plain\n\ttext ä 漢");
    }

    #[test]
    fn texts_of_several_lines_are_written_out_and_cannot_pass_for_ours() {
        let given = serde_json::json!({ "pod": "a", "stdin": "one\n\narguments: {}\r\n", "word": "b" });
        assert_eq!(
            written_out(given),
            "{\"pod\":\"a\",\"word\":\"b\"}\n  \"stdin\", 20 characters:\n  | one\n  | \n  | arguments: {}\\u{000d}\n  | "
        );
        assert_eq!(written_out(serde_json::json!({ "a": "b" })), r#"{"a":"b"}"#);
    }
}
