//! What an approver is shown of a change, and what must still be so when it is carried out.
//!
//! What is shown may hold what moves by itself: results of other builds, how long something runs. What is judged is
//! which server and job, and the definitions of its parameters or the number of the build.

use crate::client::PermittedServer;
use catalog::ToolPreview;
use domain::json::{canonical, sha256_hex};
use serde_json::{Value, json};

/// The most lines that are shown.
const MOST_LINES: usize = 180;
/// How many letters of a fingerprint are shown.
const DIGEST: usize = 16;

/// A preview in the making.
#[derive(Debug)]
pub(super) struct JenkinsPreview {
    judged: Vec<Value>,
    lines: Vec<String>,
    warnings: Vec<String>,
}

impl JenkinsPreview {
    /// An empty sheet about this server.
    pub(super) fn of(server: &PermittedServer<'_>) -> JenkinsPreview {
        let simulated = if server.simulated() { " (simulated)" } else { "" };
        JenkinsPreview {
            judged: vec![json!({ "server": server.name() })],
            lines: vec![format!("Jenkins server {}{simulated}, as {}", server.name(), server.user())],
            warnings: Vec::new(),
        }
    }

    /// Says something that may be otherwise by the time it is done.
    pub(super) fn line(&mut self, line: impl Into<String>) {
        self.lines.push(line.into());
    }

    /// Notes something that must still be so.
    pub(super) fn judge(&mut self, fact: Value) {
        self.judged.push(fact);
    }

    /// Warns.
    pub(super) fn warn(&mut self, warning: impl Into<String>) {
        self.warnings.push(warning.into());
    }

    /// The finished preview. Its text ends with the beginning of the fingerprint: two texts are the same only if what
    /// was judged is, although the text itself may not say all of it.
    pub(super) fn drawn(self, summary: impl Into<String>, arguments: Option<String>) -> ToolPreview {
        let judged = json!({ "judged": self.judged, "warnings": self.warnings });
        let fingerprint = sha256_hex(canonical(&judged).as_bytes());
        let mut lines: Vec<String> = self.lines.iter().flat_map(|text| text.lines()).map(str::to_owned).collect();
        if lines.len() > MOST_LINES {
            let left = lines.len() - MOST_LINES;
            lines.truncate(MOST_LINES);
            lines.push(format!("… and {left} more lines"));
        }
        lines.push(format!("judged: sha256 {}", &fingerprint[..DIGEST]));
        ToolPreview {
            summary: summary.into(),
            text: lines.join("\n"),
            warnings: self.warnings,
            arguments,
            fingerprint: format!("jenkins:{fingerprint}"),
        }
    }
}
