//! The report: which text of each tenant is served here, for whoever writes the folder.
//!
//! It names texts by their digest, so that a writer knows whether it is its last one that was judged. It is replaced whole,
//! and only if it says something else than before.

use super::{TenantRegistry, lock};
use crate::clock::SystemClock;
use domain::Tenant;
use serde::Serialize;
use std::collections::BTreeMap;
use std::path::Path;
use std::sync::LazyLock;
use tenancy::{Problem, text_digest};

/// Its number alone would not do: in a container it is always the same.
static PROCESS: LazyLock<String> = LazyLock::new(|| format!("{}-{}", std::process::id(), SystemClock.now().millis()));

/// What the report says of one tenant.
#[derive(Debug, Default, Serialize)]
struct TenantReport {
    /// The text that was judged last.
    judged: String,
    /// The text that is served.
    #[serde(skip_serializing_if = "Option::is_none")]
    in_force: Option<String>,
    /// What is wrong with the text that was judged.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    problems: Vec<Problem>,
}

#[derive(Debug, Serialize)]
struct FolderReport<'r> {
    /// This process: another one may judge otherwise.
    process: &'r str,
    tenants: BTreeMap<&'r str, TenantReport>,
}

impl TenantRegistry {
    /// Writes what is served into the file that the settings name.
    pub(super) fn write_report(&self) {
        let Some(path) = &self.parts.report else { return };
        let text = self.report();
        let mut reported = lock(&self.reported);
        if *reported == text {
            return;
        }
        match replace(path, &text) {
            Ok(()) => *reported = text,
            Err(error) => {
                tracing::error!(%error, path = %path.display(), "the report of the tenants cannot be written")
            }
        }
    }

    fn report(&self) -> String {
        let reading = lock(&self.reading);
        let state = self.state.load_full();
        let mut tenants: BTreeMap<&str, TenantReport> = BTreeMap::new();
        for (path, digest, problems) in reading.folder.verdicts() {
            let Some(stem) = path.file_stem().and_then(|stem| stem.to_str()) else { continue };
            let report = tenants.entry(stem).or_default();
            digest.clone_into(&mut report.judged);
            report.problems.extend(problems.iter().cloned());
            let Ok(tenant) = Tenant::parse(stem) else { continue };
            match state.refused.get(&tenant) {
                // It keeps what it had, and what that was is not in its file any more.
                Some(refused) => report.problems.push(refused.problem.clone()),
                None => report.in_force = state.files.get(&tenant).map(|file| text_digest(&file.text)),
            }
        }
        serde_json::to_string(&FolderReport { process: &PROCESS, tenants }).unwrap_or_default()
    }
}

/// Whoever reads it sees the old report or the new one.
fn replace(path: &Path, text: &str) -> std::io::Result<()> {
    let fresh = path.with_extension("fresh");
    std::fs::write(&fresh, text)?;
    std::fs::rename(fresh, path)
}
