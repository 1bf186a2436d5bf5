//! What an approver is shown of a change of a release, and what must still be so when it is carried out.
//!
//! What is judged: cluster, namespace, release, its newest revision, the chart's digest, which objects would be made,
//! changed and removed, hooks, and the warnings. Not judged are the contents of the objects: they follow from chart,
//! values and revision, except for what a chart makes up anew each time it is rendered, such as a password.

use super::objects::Difference;
use super::release::{ReleaseRef, RevisionSummary};
use catalog::ToolPreview;
use domain::json;
use kubernetes::client::{JudgedDigest, without_marks};
use serde_json::{Value, json};

/// The most lines that are shown of all differences together, and the most bytes of everything.
const MOST_LINES: usize = 160;
const MOST_BYTES: usize = 20 * 1024;
/// How many letters of a digest are shown.
const DIGEST: usize = 16;

/// A preview in the making.
#[derive(Debug)]
pub(super) struct ReleasePreview {
    digest: JudgedDigest,
    judged: Vec<Value>,
    lines: Vec<String>,
    differences: Vec<Difference>,
    warnings: Vec<String>,
}

impl ReleasePreview {
    /// About this release, whose newest revision this is.
    pub(super) fn of(spot: &ReleaseRef<'_>, newest: Option<&RevisionSummary>) -> ReleasePreview {
        let simulated = if spot.cluster.simulated() { " (simulated)" } else { "" };
        let base = newest.map(|newest| json!([newest.revision, newest.status]));
        let judged = json!({
            "cluster": spot.cluster.name(), "namespace": spot.namespace, "release": spot.name, "base": base,
        });
        let mut lines =
            vec![format!("release {}/{} on cluster {}{simulated}", spot.namespace, spot.name, spot.cluster.name())];
        if let Some(newest) = newest {
            lines.push(format!("now: revision {}, {}, chart {}", newest.revision, newest.status, newest.chart));
        }
        let digest = spot.cluster.judged_digest();
        ReleasePreview { digest, judged: vec![judged], lines, differences: Vec::new(), warnings: Vec::new() }
    }

    /// Says something that must still be so.
    pub(super) fn judge(&mut self, line: impl Into<String>) {
        let line = line.into();
        self.judged.push(Value::from(line.as_str()));
        self.lines.push(line);
    }

    /// Says something that may be otherwise by the time it is done.
    pub(super) fn line(&mut self, line: impl Into<String>) {
        self.lines.push(line.into());
    }

    /// Warns. A warning is judged.
    pub(super) fn warn(&mut self, warning: impl Into<String>) {
        let warning = warning.into();
        if !self.warnings.contains(&warning) {
            self.warnings.push(warning);
        }
    }

    /// What would become of objects. Which, and what, is judged.
    pub(super) fn differences(&mut self, differences: Vec<Difference>) {
        let count = |action: &str| differences.iter().filter(|difference| difference.action == action).count();
        self.lines.push(format!(
            "objects: {} to create, {} to change, {} to remove",
            count("create"),
            count("change"),
            count("remove")
        ));
        let named: Vec<String> = differences.iter().map(|d| format!("{} {}", d.action, d.object)).collect();
        // What is random may make an object differ from itself, so only what comes and goes is held against a yes.
        let fixed: Vec<&String> = named.iter().filter(|named| !named.starts_with("change ")).collect();
        self.judged.push(json!({ "objects": fixed }));
        self.differences = differences;
    }

    /// The finished preview.
    pub(super) fn drawn(self, summary: impl Into<String>, arguments: Option<String>) -> ToolPreview {
        let judged = json!({ "judged": self.judged, "warnings": self.warnings });
        // What is shown is blind to the values of secrets; what is compared sees them, and nobody sees it.
        let digest = json::sha256_hex(json::canonical(&without_marks(&judged)).as_bytes());
        let whole = self.digest.of(&judged);
        let mut text = self.lines.join("\n");
        text.push_str(&shown(&self.differences));
        text.push_str(&format!("\njudged: sha256 {}\n", &digest[..DIGEST]));
        ToolPreview {
            summary: summary.into(),
            text,
            warnings: self.warnings,
            arguments,
            fingerprint: format!("helm:{whole}#{whole}"),
        }
    }
}

/// Differences within their bounds: whatever comes and goes first by name, then how, as far as there is room.
pub(super) fn shown(differences: &[Difference]) -> String {
    let (mut out, mut lines) = (String::new(), 0);
    let share = MOST_LINES.checked_div(differences.len()).unwrap_or(MOST_LINES).max(1);
    for (n, difference) in differences.iter().enumerate() {
        let title = format!("\n\n{} {}", difference.action, difference.object);
        if out.len() + title.len() > MOST_BYTES || lines >= MOST_LINES {
            out.push_str(&format!("\n… and {} more objects", differences.len() - n));
            break;
        }
        out.push_str(&title);
        // The first two say which side is which.
        let all: Vec<&str> = difference.text.lines().skip(2).collect();
        for (n, line) in all.iter().enumerate() {
            if n >= share || out.len() + line.len() > MOST_BYTES {
                out.push_str(&format!("\n… and {} more lines", all.len() - n));
                break;
            }
            out.push('\n');
            out.push_str(line);
            lines += 1;
        }
    }
    out
}
