//! The console log of a build, as far as it has been written by now.
//!
//! It is stored with notes for the browser in it, which are never shown as text: so a position in the log and the
//! length of what was shown are different things.

use std::time::Duration;

use http::{HeaderValue, StatusCode, header};
use jiff::Timestamp;

use super::build::{SimulatedBuild, SimulatedCause};
use super::job::{SimulatedJob, SimulatedJobKind};
use super::page;
use super::plan::BuildResult;
use crate::reply::{self, SandboxReply};

/// A note, as it begins and as it ends. Between them lies an enciphered object.
const NOTE: (&str, &str) = ("\u{1b}[8mha:////", "\u{1b}[0m");

/// All that is stored so far.
pub(super) fn stored(job: &SimulatedJob, build: &SimulatedBuild, now: Timestamp) -> String {
    let pipeline = job.kind == SimulatedJobKind::Pipeline;
    let mut lines: Vec<String> = build.order.causes.iter().map(with_note).collect();
    lines.push(match pipeline {
        true => "[Pipeline] Start of Pipeline".to_owned(),
        false => format!("Building remotely on agent-1 in workspace /var/lib/agent/workspace/{}", job.path),
    });
    for (number, stage) in build.plan.stages.iter().enumerate() {
        let Some(said) = said(build, number, now) else { break };
        if pipeline {
            lines.extend(["[Pipeline] stage".to_owned(), format!("[Pipeline] {{ ({})", stage.name)]);
            lines.push("[Pipeline] sh".to_owned());
        }
        lines.extend(said.iter().cloned());
        if pipeline && stage_is_over(build, number, now) {
            lines.extend(["[Pipeline] }".to_owned(), "[Pipeline] // stage".to_owned()]);
        }
    }
    lines.extend(build.stopped.iter().cloned());
    if build.over {
        if pipeline {
            lines.push("[Pipeline] End of Pipeline".to_owned());
        }
        lines.push(format!("Finished: {}", build.outcome.name()));
    }
    lines.join("\n") + "\n"
}

/// The name of a person carries a note, from which browsers make a link.
fn with_note(cause: &SimulatedCause) -> String {
    let text = cause.text();
    match cause {
        SimulatedCause::User(user) => {
            let note = format!("{}4AbCdEfGhIjKlMnOpQrStUvWxYz0123456789+/AAAAlh+LCAAAAAAAAP9b85aB{}", NOTE.0, NOTE.1);
            text.replacen(user, &format!("{note}{user}"), 1)
        }
        SimulatedCause::Timer | SimulatedCause::Commit | SimulatedCause::Replay(_) => text,
    }
}

/// What people see of it.
pub(super) fn shown(stored: &str) -> String {
    let mut parts = stored.split(NOTE.0);
    let first = parts.next().unwrap_or_default().to_owned();
    // A note that was cut in two cannot be told from text any more.
    parts.fold(first, |text, part| text + part.split_once(NOTE.1).map_or(part, |(_, rest)| rest))
}

/// When a stage begins, counted from the start of its build.
pub(super) fn begins(build: &SimulatedBuild, number: usize) -> Duration {
    build.plan.stages.iter().take(number).map(|stage| stage.lasts).sum()
}

pub(super) fn stage_is_over(build: &SimulatedBuild, number: usize, now: Timestamp) -> bool {
    build.over || build.elapsed(now) >= begins(build, number + 1)
}

/// The lines a stage has said by now; nothing if it has not begun.
pub(super) fn said(build: &SimulatedBuild, number: usize, now: Timestamp) -> Option<&[String]> {
    let stage = build.plan.stages.get(number)?;
    let begun = build.elapsed(now).checked_sub(begins(build, number))?;
    // A build that was stopped just when this stage was about to begin never reached it.
    if begun.is_zero() && number > 0 && build.outcome == BuildResult::Aborted {
        return None;
    }
    if begun >= stage.lasts {
        return Some(&stage.lines);
    }
    // The first line comes at once, the others evenly over the time.
    let share = begun.as_millis() as usize * stage.lines.len() / stage.lasts.as_millis().max(1) as usize;
    Some(&stage.lines[..stage.lines.len().min(share + 1)])
}

/// The log from a stored position on, with how long it is and whether it goes on.
pub(super) fn progressive(stored: &str, start: usize, running: bool) -> SandboxReply {
    // A start beyond the end begins again, for logs that were replaced by a shorter one.
    let rest = stored.as_bytes().get(start..).unwrap_or(stored.as_bytes());
    // This read, and only this one, ends its lines as HTTP does.
    let text = shown(&String::from_utf8_lossy(rest)).replace('\n', "\r\n");
    let mut answer = reply::with_type(StatusCode::OK, "text/plain;charset=utf-8", text);
    answer.headers_mut().insert("X-Text-Size", HeaderValue::from(stored.len()));
    if running {
        answer.headers_mut().insert("X-More-Data", HeaderValue::from_static("true"));
    }
    answer
}

/// An archived file.
pub(super) fn artifact(build: &SimulatedBuild, path: &str) -> SandboxReply {
    let Some((_, content)) = super::reports::archived(build).iter().find(|(known, _)| known == path) else {
        return page::not_found();
    };
    let kind = match path.rsplit('.').next() {
        Some("txt" | "log") => "text/plain",
        Some("json") => "application/json",
        Some("xml") => "application/xml",
        Some("html") => "text/html",
        _ => "application/octet-stream",
    };
    let mut answer = reply::with_type(StatusCode::OK, kind, content.clone());
    answer.headers_mut().insert(header::ACCEPT_RANGES, HeaderValue::from_static("bytes"));
    // What a build made must not run in the reader's browser.
    let policy = "sandbox; default-src 'none'; img-src 'self'; style-src 'self';";
    answer.headers_mut().insert(header::CONTENT_SECURITY_POLICY, HeaderValue::from_static(policy));
    answer
}
