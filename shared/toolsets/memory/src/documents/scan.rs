//! The safety scan of every write, of people as of agents: what must not be remembered is refused, naming the line and
//! the rule, never the text.
//!
//! A secret or a control character is refused everywhere. Text that gives orders to whoever reads it, or hides
//! something, is kept inside a session and marked, since it reaches nobody else, and refused beyond it. So is a log.
//! The marks are no proof of harmlessness: everything read back is data, whatever the scan found.
//!
//! Reading order: this file (the verdict), `secrets`, `orders` (with `fold`), `hidden`, `logs`. Every check is linear in
//! the length of the text.

mod fold;
mod hidden;
mod logs;
mod orders;
mod secrets;

use crate::codes;
use crate::documents::DocumentScope;
use domain::{Code, Failure};
use serde::Serialize;
use serde_json::json;

/// The largest document.
pub const MOST_BYTES: usize = 100_000;
/// Above this a document is kept but said to be long: few readers get to its end.
const LONG_BYTES: usize = 25_000;
/// How many findings are told.
const TOLD: usize = 10;

/// Which text of a document.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum DocumentField {
    /// Where it is.
    Path,
    /// Its labels, one in a line.
    Tags,
    /// Its text.
    Content,
    /// Its title.
    Title,
    /// How its writer knows.
    Evidence,
    /// Why it is changed, promoted or removed.
    Reason,
}

impl DocumentField {
    const fn as_str(self) -> &'static str {
        match self {
            DocumentField::Path => "path",
            DocumentField::Tags => "tags",
            DocumentField::Content => "content",
            DocumentField::Title => "title",
            DocumentField::Evidence => "evidence",
            DocumentField::Reason => "reason",
        }
    }
}

/// One thing that was found: where, and by which rule. Never what.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct ScanFinding {
    /// In which text.
    pub field: DocumentField,
    /// In which line, counted from one.
    pub line: usize,
    /// By which rule.
    pub rule: &'static str,
}

impl std::fmt::Display for ScanFinding {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}, line {}: {}", self.field.as_str(), self.line, self.rule)
    }
}

/// What the scan says of texts that may be kept.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ScanResult {
    /// What readers should know; anything here makes the document suspect.
    pub findings: Vec<ScanFinding>,
    /// What the writer should know.
    pub warnings: Vec<String>,
}

impl ScanResult {
    /// Whether the text tries to give orders or hides something.
    pub fn suspect(&self) -> bool {
        !self.findings.is_empty()
    }

    /// Adds what another text of the same document showed.
    fn and(mut self, other: ScanResult) -> ScanResult {
        self.findings.extend(other.findings);
        self.warnings.extend(other.warnings);
        self
    }
}

/// Looks through every text that is to be kept, or shown to whoever decides.
pub fn all(texts: &[(DocumentField, &str)], scope: DocumentScope) -> Result<ScanResult, Failure> {
    texts.iter().try_fold(ScanResult::default(), |so_far, (field, text)| Ok(so_far.and(scan(*field, text, scope)?)))
}

/// Looks through one text.
pub fn scan(field: DocumentField, text: &str, scope: DocumentScope) -> Result<ScanResult, Failure> {
    if text.len() > MOST_BYTES {
        let message = format!("the {} has {} bytes and {MOST_BYTES} are allowed", field.as_str(), text.len());
        return Err(Failure::new(Code::TooLarge, message).next("summarise it, or split it over several documents"));
    }
    let finding = |(line, rule): (usize, &'static str)| ScanFinding { field, line, rule };
    let control = text.lines().enumerate().filter(|(_, line)| line.chars().any(|c| c.is_control() && c != '\t'));
    let control: Vec<ScanFinding> = control.take(TOLD).map(|(n, _)| finding((n + 1, "control characters"))).collect();
    refuse_if_any(control, codes::UNSAFE_TEXT, "holds control characters", "remove them and call again")?;

    let secrets = secrets::find(text).into_iter().take(TOLD).map(finding).collect();
    let next = "remove the value; say where it is kept instead";
    refuse_if_any(secrets, codes::SECRET_FOUND, "seems to hold a secret", next)?;

    let mut found = hidden::find(text);
    found.extend(orders::find(text).ok_or_else(blind)?);
    found.sort_unstable();
    found.dedup();
    let findings: Vec<ScanFinding> = found.into_iter().take(TOLD).map(finding).collect();
    let log = logs::is_dump(text).ok_or_else(blind)?;
    let mut warnings = Vec::new();
    match scope {
        DocumentScope::Session => {
            warnings.extend(findings.iter().map(|finding| format!("kept, but marked as suspect: {finding}")));
            warnings
                .extend(log.map(|line| format!("most of it is a log, from line {line}: keep what it means instead")));
        }
        DocumentScope::User | DocumentScope::Tenant => {
            let next = "say what is meant in plain words; what others read must not give orders or hide anything";
            refuse_if_any(findings.clone(), codes::UNSAFE_TEXT, "is not safe to be read by others", next)?;
            let dump = log.map(|line| finding((line, "log lines"))).into_iter().collect();
            let next = "summarise what the log shows; quote a few lines at most";
            refuse_if_any(dump, codes::LOG_DUMP, "is where a log begins that is too long to be kept", next)?;
        }
    }
    if text.len() > LONG_BYTES {
        warnings.push(format!(
            "{} bytes is long for one document; shorter ones are found and read more easily",
            text.len()
        ));
    }
    Ok(ScanResult { findings, warnings })
}

/// A refusal that names the first place in words and all of them, up to a bound, in its details.
fn refuse_if_any(findings: Vec<ScanFinding>, code: Code, what: &str, next: &str) -> Result<(), Failure> {
    let Some(first) = findings.first() else { return Ok(()) };
    let place = match first.field {
        DocumentField::Content => format!("line {}", first.line),
        DocumentField::Path
        | DocumentField::Tags
        | DocumentField::Title
        | DocumentField::Evidence
        | DocumentField::Reason => {
            format!("line {} of the {}", first.line, first.field.as_str())
        }
    };
    let message = format!("{place} {what} ({})", first.rule);
    Err(Failure::new(code, message).next(next).details(json!({ "findings": findings })))
}

/// Without its rules the scan proves nothing, and what is not proven is not kept.
fn blind() -> Failure {
    Failure::new(Code::Internal, "the safety scan is not available")
}

#[cfg(test)]
mod tests;
