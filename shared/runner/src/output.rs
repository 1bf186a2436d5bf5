//! What commands print: whole lines, secrets taken out, within a cap.
//!
//! The log holds what was printed until somebody takes it, and never more than the cap: a command does not wait for a
//! network that is cut. The beginning is handed out as it comes; of what is printed beyond that the end is kept and
//! handed out last, because the end says why a command failed.

use domain::job::{JobOutput, JobStep, OutputStream};
use redact::{Redactor, Scrubber, SecretText};
use std::collections::VecDeque;
use std::sync::{Mutex, MutexGuard, PoisonError};
use tokio::io::{AsyncRead, AsyncReadExt};
use tokio::sync::Notify;

/// How long a line may be; the rest of a longer one is left out.
const LINE: usize = 16 * 1024;
/// So much of the end of a cut line is left out as well: it may hold the beginning of a secret.
const SPARED: usize = 1024;
/// What a line costs besides its text.
const OVERHEAD: usize = 16;

/// What the commands of one job printed and nobody has taken yet.
pub struct OutputLog {
    scrubber: Scrubber,
    parts: Mutex<LogParts>,
    changed: Notify,
}

#[derive(Default)]
struct LogParts {
    ready: VecDeque<JobOutput>,
    /// How much more is handed out as it comes.
    head_left: usize,
    tail: VecDeque<JobOutput>,
    tail_bytes: usize,
    tail_most: usize,
    dropped: u64,
}

impl OutputLog {
    /// A log that keeps so many bytes, and takes these secrets out.
    pub fn new(cap: u64, secrets: impl IntoIterator<Item = SecretText>) -> OutputLog {
        let cap = usize::try_from(cap).unwrap_or(usize::MAX);
        let tail_most = cap / 4;
        let parts = LogParts { head_left: cap - tail_most, tail_most, ..LogParts::default() };
        // Lines are looked at one by one, so a secret of several lines is known by each of them as well.
        let values = secrets.into_iter().flat_map(|secret| {
            let lines: Vec<SecretText> = secret.expose().lines().map(SecretText::new).collect();
            lines.into_iter().chain([secret])
        });
        OutputLog { scrubber: Scrubber::new(values), parts: Mutex::new(parts), changed: Notify::new() }
    }

    /// Takes what is there, oldest first, of at most about this many bytes; with it how many bytes were left out since
    /// this was last asked.
    pub fn take(&self, most: usize) -> (Vec<JobOutput>, u64) {
        let mut parts = self.lock();
        let (mut taken, mut bytes) = (Vec::new(), 0);
        while let Some(output) = parts.ready.front() {
            bytes += output.text.len() + OVERHEAD;
            if bytes > most && !taken.is_empty() {
                break;
            }
            taken.extend(parts.ready.pop_front());
        }
        (taken, std::mem::take(&mut parts.dropped))
    }

    /// Whether there is nothing to take.
    pub fn is_empty(&self) -> bool {
        self.lock().ready.is_empty()
    }

    /// Resolves when something was printed since this last resolved.
    pub async fn changed(&self) {
        self.changed.notified().await;
    }

    /// A text without the secrets of this job.
    pub(crate) fn scrub(&self, text: &str) -> String {
        self.scrubber.scrub(text).into_owned()
    }

    /// Hands out the end of what was printed, which was kept back.
    pub(crate) fn finish(&self) {
        let mut parts = self.lock();
        let tail = std::mem::take(&mut parts.tail);
        parts.ready.extend(tail);
        drop(parts);
        self.changed.notify_one();
    }

    /// Reads a stream of a command to its end, whatever it holds, so that the command never waits for us.
    pub(crate) async fn read(&self, mut from: impl AsyncRead + Unpin, step: JobStep, stream: OutputStream) {
        let (mut lines, mut buffer) = (LineReader::default(), vec![0; 8 * 1024]);
        // A stream that breaks is a stream that ended: what came of the command is told by its exit.
        while let Ok(n) = from.read(&mut buffer).await {
            if n == 0 {
                break;
            }
            let text = lines.push(&buffer[..n], &self.scrubber);
            self.add(step, stream, text, lines.take_dropped());
        }
        let text = lines.finish(&self.scrubber);
        self.add(step, stream, text, lines.take_dropped());
    }

    fn add(&self, step: JobStep, stream: OutputStream, text: String, dropped: u64) {
        let mut parts = self.lock();
        parts.dropped += dropped;
        if text.is_empty() {
            return;
        }
        let cost = text.len() + OVERHEAD;
        let output = JobOutput { step, stream, text };
        if cost <= parts.head_left && parts.tail.is_empty() {
            parts.head_left -= cost;
            parts.ready.push_back(output);
            drop(parts);
            self.changed.notify_one();
            return;
        }
        parts.keep_back(output, cost);
    }

    fn lock(&self) -> MutexGuard<'_, LogParts> {
        self.parts.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl LogParts {
    fn keep_back(&mut self, output: JobOutput, cost: usize) {
        self.tail_bytes += cost;
        self.tail.push_back(output);
        while self.tail_bytes > self.tail_most {
            let Some(oldest) = self.tail.pop_front() else { break };
            self.tail_bytes -= oldest.text.len() + OVERHEAD;
            self.dropped += oldest.text.len() as u64;
        }
    }
}

/// Makes lines of bytes, secrets taken out.
#[derive(Default)]
struct LineReader {
    line: Vec<u8>,
    /// Whether the rest of this line is left out.
    cut: bool,
    dropped: u64,
    redactor: Redactor,
}

impl LineReader {
    fn push(&mut self, bytes: &[u8], scrubber: &Scrubber) -> String {
        let mut out = String::new();
        for piece in bytes.split_inclusive(|byte| *byte == b'\n') {
            let room = LINE.saturating_sub(self.line.len());
            let taken = if self.cut { 0 } else { piece.len().min(room) };
            self.line.extend_from_slice(&piece[..taken]);
            if taken < piece.len() {
                self.cut = true;
                self.dropped += (piece.len() - taken) as u64;
            }
            if piece.ends_with(b"\n") {
                out.push_str(&self.finish(scrubber));
            }
        }
        out
    }

    fn finish(&mut self, scrubber: &Scrubber) -> String {
        let line = std::mem::take(&mut self.line);
        if line.is_empty() {
            self.cut = false;
            return String::new();
        }
        let text = String::from_utf8_lossy(&line);
        let text = text.strip_suffix('\n').unwrap_or(&text);
        let clean = scrubber.scrub(text);
        let mut out = self.redactor.line(&clean).into_owned();
        // Bytes that are no text have become longer, and masks may have, too.
        if std::mem::take(&mut self.cut) || out.len() > LINE {
            let most = out.len().min(LINE).saturating_sub(SPARED);
            let end = (0..=most).rev().find(|end| out.is_char_boundary(*end)).unwrap_or(0);
            self.dropped += (out.len() - end) as u64;
            out.truncate(end);
            out.push_str(" … (line cut)");
        }
        out.push('\n');
        out
    }

    fn take_dropped(&mut self) -> u64 {
        std::mem::take(&mut self.dropped)
    }
}

impl std::fmt::Debug for OutputLog {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("OutputLog").field("empty", &self.is_empty()).finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests;
