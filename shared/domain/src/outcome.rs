//! What a call ended with: an output, a run that waits, or a failure the model can act on.

use crate::run::RunState;
use crate::{Code, RunId};
use serde_json::Value;
use std::fmt;
use std::time::Duration;

/// One block of a result beside its structured content.
#[derive(Debug, Clone, PartialEq)]
pub enum Content {
    /// Plain text.
    Text(String),
    /// A block that already has the shape of the protocol (image, audio, embedded resource).
    Block(Value),
}

/// What a tool gave back.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct ToolOutput {
    /// The structured result as JSON text, serialised once.
    pub structured: Option<String>,
    /// Blocks to show; when empty, the structured text is shown instead.
    pub content: Vec<Content>,
    /// Whether it holds text that somebody outside wrote and that may speak to the model: the session that is handed it
    /// is tainted from then on.
    pub tainting: bool,
}

impl ToolOutput {
    /// A structured result.
    pub fn structured(json: String) -> ToolOutput {
        ToolOutput { structured: Some(json), ..ToolOutput::default() }
    }
}

/// Why a call gave nothing, in words the model can act on. Holds no secret and no text from outside.
#[derive(Debug, Clone, PartialEq)]
pub struct Failure {
    /// The stable name.
    pub code: Code,
    /// What happened.
    pub message: String,
    /// One concrete next step.
    pub next: Option<String>,
    /// Up to three near names the caller may see.
    pub did_you_mean: Vec<String>,
    /// When a retry may succeed, where that is known.
    pub retry_after_ms: Option<u64>,
    /// Facts for the caller, such as a current digest.
    pub details: Option<Value>,
}

impl Failure {
    /// A failure with its sentence.
    pub fn new(code: Code, message: impl Into<String>) -> Failure {
        let (message, did_you_mean) = (message.into(), Vec::new());
        Failure { code, message, next: None, did_you_mean, retry_after_ms: None, details: None }
    }

    /// Adds the next step.
    #[must_use]
    pub fn next(mut self, step: impl Into<String>) -> Failure {
        self.next = Some(step.into());
        self
    }

    /// Adds near names.
    #[must_use]
    pub fn did_you_mean(mut self, names: Vec<String>) -> Failure {
        self.did_you_mean = names;
        self
    }

    /// Adds when to try again.
    #[must_use]
    pub fn retry_after_ms(mut self, millis: u64) -> Failure {
        self.retry_after_ms = Some(millis);
        self
    }

    /// Adds how long to wait before trying again.
    #[must_use]
    pub fn retry_after(self, wait: Duration) -> Failure {
        self.retry_after_ms(u64::try_from(wait.as_millis()).unwrap_or(u64::MAX))
    }

    /// Adds facts.
    #[must_use]
    pub fn details(mut self, details: Value) -> Failure {
        self.details = Some(details);
        self
    }
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.code.as_str(), self.message)
    }
}

/// A run that is still open: what the caller of a gated call is answered with until it has ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct WaitingRun {
    /// The run.
    pub id: RunId,
    /// Where it stands: pending approval, approved or executing.
    pub state: RunState,
    /// The structured answer about it as JSON text, serialised once.
    pub json: String,
}

/// What a call ended with, from the executor to whatever encodes it. Whether a run waits is known by the type: nobody
/// reads a result to find out, so no result of a tool can pass for one of our runs.
#[derive(Debug, Clone, PartialEq)]
pub enum Outcome {
    /// The tool's result.
    Done(ToolOutput),
    /// A run that has not ended.
    Waiting(WaitingRun),
    /// Nothing, and why.
    Failed(Failure),
}

impl Outcome {
    /// Why the call failed, if it did.
    pub fn failure(&self) -> Option<&Failure> {
        match self {
            Outcome::Failed(failure) => Some(failure),
            Outcome::Done(_) | Outcome::Waiting(_) => None,
        }
    }

    /// The structured answer as JSON text, if there is one.
    pub fn structured(&self) -> Option<&str> {
        match self {
            Outcome::Done(output) => output.structured.as_deref(),
            Outcome::Waiting(run) => Some(&run.json),
            Outcome::Failed(_) => None,
        }
    }
}

/// What a tool returned.
impl From<Result<ToolOutput, Failure>> for Outcome {
    fn from(result: Result<ToolOutput, Failure>) -> Outcome {
        match result {
            Ok(output) => Outcome::Done(output),
            Err(failure) => Outcome::Failed(failure),
        }
    }
}

/// What a step on the way of a call returned.
impl From<Result<Outcome, Failure>> for Outcome {
    fn from(result: Result<Outcome, Failure>) -> Outcome {
        result.unwrap_or_else(Outcome::Failed)
    }
}

/// Up to three of `known` that `wanted` may have meant: by part, or by an edit distance of at most two.
pub fn near<'a>(wanted: &str, known: impl IntoIterator<Item = &'a str>) -> Vec<String> {
    let mut ranked: Vec<(usize, &str)> = known
        .into_iter()
        .filter_map(|name| match distance(wanted, name) {
            d @ 0..=2 => Some((d, name)),
            _ if wanted.len() >= 3 && (name.contains(wanted) || wanted.contains(name)) => Some((3, name)),
            _ => None,
        })
        .collect();
    ranked.sort_unstable();
    ranked.into_iter().take(3).map(|(_, name)| name.to_owned()).collect()
}

/// Levenshtein distance, cut short for texts whose lengths alone are too far apart.
fn distance(a: &str, b: &str) -> usize {
    if a.len().abs_diff(b.len()) > 2 || a.len() > 64 {
        return usize::MAX;
    }
    let mut row: Vec<usize> = (0..=b.len()).collect();
    for (i, x) in a.bytes().enumerate() {
        let mut corner = row[0];
        row[0] = i + 1;
        for (j, y) in b.bytes().enumerate() {
            let swap = corner + usize::from(x != y);
            corner = row[j + 1];
            row[j + 1] = swap.min(corner + 1).min(row[j] + 1);
        }
    }
    row[b.len()]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn near_names_come_nearest_first() {
        let known = ["k8s_get", "k8s_logs", "helm_get", "memory_read"];
        assert_eq!(near("k8s_gett", known), ["k8s_get"]);
        assert_eq!(near("memory", known), ["memory_read"]);
        assert_eq!(near("zzz", known), Vec::<String>::new());
        assert_eq!(near("", known), Vec::<String>::new());
    }
}
