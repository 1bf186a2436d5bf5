//! What became of a runbook: a result, or a failure that says which command failed, how, and what it wrote last.

use crate::codes;
use crate::declaration::Runbook;
use domain::job::{JobEnding, JobOutput, JobStep, StepExit};
use domain::{Code, Failure};
use schemars::JsonSchema;
use serde::Serialize;
use serde_json::json;
use std::collections::VecDeque;
use target::written::{KeptEnd, shown};

/// How much output is kept of its beginning, and as much of its end, before it is made fit to be shown.
const KEPT_BYTES: usize = 64 * 1024;
/// How much of the output a failure quotes.
const QUOTED_CHARS: usize = 2_000;

/// The result of a runbook.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
pub struct RunbookResult {
    /// `succeeded`; `already_done`, if `check` found nothing to do and nothing else ran.
    pub outcome: &'static str,
    /// The runbook, as `group/name`.
    pub runbook: String,
    /// Where it ran.
    #[serde(rename = "where")]
    pub place: String,
    /// What its commands wrote, masked: the beginning and the end.
    pub output: String,
    /// How many bytes of output were left out.
    #[serde(skip_serializing_if = "is_zero")]
    pub omitted_bytes: u64,
    /// The output is the words of programs.
    pub untrusted: bool,
}

fn is_zero(number: &u64) -> bool {
    *number == 0
}

/// The output of a runbook while it comes: its beginning and its end.
#[derive(Debug, Default)]
pub struct KeptOutput {
    head: String,
    tail: VecDeque<String>,
    tail_bytes: usize,
    omitted: u64,
    /// Whether the last piece ended a line.
    open: bool,
}

impl KeptOutput {
    /// Adds what a step wrote. Lines of `check` and `verify` say so.
    pub fn push(&mut self, step: JobStep, text: &str) {
        for line in text.split_inclusive('\n') {
            let named = !self.open && step != JobStep::Run;
            self.open = !line.ends_with('\n');
            let line = if named { format!("[{}] {line}", step.as_str()) } else { line.to_owned() };
            if self.tail.is_empty() && self.head.len() + line.len() <= KEPT_BYTES {
                self.head.push_str(&line);
                continue;
            }
            self.tail_bytes += line.len();
            self.tail.push_back(line);
            while self.tail_bytes > KEPT_BYTES
                && let Some(oldest) = self.tail.pop_front()
            {
                self.tail_bytes -= oldest.len();
                self.omitted += oldest.len() as u64;
            }
        }
    }

    /// Adds what a step wrote, from a runner.
    pub fn push_all(&mut self, output: &[JobOutput]) {
        output.iter().for_each(|piece| self.push(piece.step, &piece.text));
    }

    /// Notes output that was left out elsewhere.
    pub fn omit(&mut self, bytes: u64) {
        self.omitted += bytes;
    }

    /// The output as it may be shown, and how many bytes of it are left out.
    pub fn shown(&self) -> (String, u64) {
        let tail: String = self.tail.iter().map(String::as_str).collect();
        let whole = format!("{}{tail}", self.head);
        let (head, left) = shown(&whole, KeptEnd::First);
        if left.is_none() && self.omitted == 0 {
            return (head, 0);
        }
        let kept = head.lines().count();
        let rest: String = whole.split_inclusive('\n').skip(kept).collect();
        let (tail, left) = shown(&rest, KeptEnd::Last);
        let omitted = left.bytes + self.omitted;
        match omitted {
            0 => (format!("{head}{tail}"), 0),
            _ => (format!("{}\n… {omitted} bytes left out …\n{tail}", head.trim_end_matches('\n')), omitted),
        }
    }

    /// The end of the output, for a sentence.
    fn quoted(&self) -> String {
        let tail: String = self.tail.iter().map(String::as_str).collect();
        let (text, _) = shown(&format!("{}{tail}", self.head), KeptEnd::Last);
        let skipped = text.chars().count().saturating_sub(QUOTED_CHARS);
        text.chars().skip(skipped).collect()
    }
}

/// What a runbook's ending is for its caller.
pub fn of_ending(
    runbook: &Runbook,
    place: String,
    ending: &JobEnding,
    output: &KeptOutput,
) -> Result<RunbookResult, Failure> {
    let id = runbook.id();
    let done = |outcome: &'static str| {
        let (output, omitted_bytes) = output.shown();
        Ok(RunbookResult { outcome, runbook: id.clone(), place: place.clone(), output, omitted_bytes, untrusted: true })
    };
    match ending {
        JobEnding::AlreadyDone => done("already_done"),
        JobEnding::Succeeded => done("succeeded"),
        JobEnding::Failed { step, exit } => Err(failed(&id, &place, *step, exit, output)),
        JobEnding::Refused { reason } => {
            let reason: String = redact::message(reason).chars().take(QUOTED_CHARS).collect();
            let message = format!("{place} does not run {id}: {reason:?}");
            Err(Failure::new(codes::RUNNER_REFUSED, message).next("nothing was executed; ask the owner of the runner"))
        }
        JobEnding::NotBegun { reason } => {
            let reason: String = redact::message(reason).chars().take(QUOTED_CHARS).collect();
            let message = format!("{id} was not begun: {reason}");
            Err(Failure::new(codes::RUNNER_BUSY, message).next("nothing was executed; call again later"))
        }
        JobEnding::Cancelled => {
            let message = format!("{id} was ended while it was at work; a part of it may be done");
            Err(unknown(&message))
        }
        JobEnding::Unknown { reason } => {
            let reason: String = redact::message(reason).chars().take(QUOTED_CHARS).collect();
            Err(unknown(&format!("nobody knows how {id} ended: {reason:?}")))
        }
    }
}

/// Something may have been executed, and nobody knows how it ended.
pub fn unknown(message: &str) -> Failure {
    Failure::new(Code::OutcomeUnknown, message).next("look at what it should have done before asking anew")
}

/// A command failed. What it wrote is quoted; the runner, the service and everything else go on.
fn failed(id: &str, place: &str, step: JobStep, exit: &StepExit, output: &KeptOutput) -> Failure {
    let step = step.as_str();
    let (how, code) = match exit {
        StepExit::Code(code) => (format!("exited with {code}"), Some(*code)),
        StepExit::Signal(signal) => (format!("was ended by the signal {signal}"), None),
        StepExit::TimedOut => ("was ended, because its time was over".to_owned(), None),
        StepExit::NotStarted(why) => {
            let why: String = redact::message(why).chars().take(200).collect();
            (format!("could not be started: {why}"), None)
        }
    };
    let quoted = output.quoted();
    let words = match quoted.trim().is_empty() {
        true => "it wrote nothing".to_owned(),
        false => format!("it wrote last (untrusted): {quoted:?}"),
    };
    let message = format!("{id} failed on {place}: `{step}` {how}; {words}");
    let (shown, omitted) = output.shown();
    Failure::new(codes::RUNBOOK_FAILED, message)
        .next("read the output; a repeated call runs it anew, and `check` ends it if it is done")
        .details(json!({
            "step": step, "exit_code": code, "output": shown, "omitted_bytes": omitted, "untrusted": true,
        }))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn short_output_stays_whole_and_steps_beside_the_command_are_named() {
        let mut output = KeptOutput::default();
        output.push(JobStep::Check, "no marker\n");
        output.push(JobStep::Run, "seeding ");
        output.push(JobStep::Run, "done\nbye\n");
        output.push(JobStep::Verify, "fine");
        assert_eq!(output.shown(), ("[check] no marker\nseeding done\nbye\n[verify] fine".to_owned(), 0));
    }

    #[test]
    fn of_long_output_the_beginning_and_the_end_are_kept() {
        let mut output = KeptOutput::default();
        (0..100_000).for_each(|n| output.push(JobStep::Run, &format!("line {n:06}\n")));
        let (text, omitted) = output.shown();
        assert!(text.starts_with("line 000000\n") && text.ends_with("line 099999\n"), "{}", text.len());
        assert!(text.len() < 24 * 1024 && omitted > 1_000_000, "{} {omitted}", text.len());
        assert!(text.contains(&format!("\n… {omitted} bytes left out …\n")));
    }

    #[test]
    fn middling_output_is_whole_though_it_has_two_halves() {
        let mut output = KeptOutput::default();
        let lines: String = (0..900).map(|n| format!("line {n:04}\n")).collect();
        output.push(JobStep::Run, &lines);
        assert_eq!(output.shown(), (lines, 0));
    }
}
