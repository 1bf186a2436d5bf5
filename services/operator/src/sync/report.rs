//! What the gateway says of the texts in its folder: the file that its setting `tenants.report` names.

use serde::Deserialize;
use std::collections::BTreeMap;
use std::io::ErrorKind;
use std::path::PathBuf;

/// The gateway's report.
#[derive(Deserialize, Debug, Default)]
pub struct FolderReport {
    /// The process that wrote it.
    pub process: String,
    /// By tenant.
    pub tenants: BTreeMap<String, ReportedTenant>,
}

/// What it says of one tenant.
#[derive(Deserialize, Debug, Clone, PartialEq, Eq)]
pub struct ReportedTenant {
    /// The text that was judged last.
    pub judged: String,
    /// The text that is served.
    #[serde(default)]
    pub in_force: Option<String>,
    /// What is wrong with the one that was judged.
    #[serde(default)]
    pub problems: Vec<ReportedProblem>,
}

/// A mistake, as the validator tells it.
#[derive(Deserialize, Debug, Clone, PartialEq, Eq)]
pub struct ReportedProblem {
    /// The line.
    pub line: u32,
    /// The character in it.
    pub column: u32,
    /// The kind of mistake.
    pub code: String,
    /// What is wrong.
    pub message: String,
}

/// The file, and what it held when it was last read.
#[derive(Debug)]
pub struct ReportFile {
    path: PathBuf,
    last: String,
}

impl ReportFile {
    /// The report at a path.
    pub fn at(path: PathBuf) -> ReportFile {
        ReportFile { path, last: String::new() }
    }

    /// The report, if it is another one than before. One that is not there yet is none.
    pub fn changed(&mut self) -> Option<FolderReport> {
        let text = match std::fs::read_to_string(&self.path) {
            Ok(text) => text,
            Err(error) if error.kind() == ErrorKind::NotFound => return None,
            Err(error) => {
                tracing::warn!(%error, "the gateway's report cannot be read");
                return None;
            }
        };
        if text == self.last {
            return None;
        }
        let report = serde_json::from_str(&text);
        if let Err(error) = &report {
            tracing::warn!(%error, "the gateway's report cannot be understood");
        }
        self.last = text;
        report.ok()
    }
}
