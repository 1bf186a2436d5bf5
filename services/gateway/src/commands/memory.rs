//! `memory`: exports a tenant's documents as files in a folder, and imports them.
//!
//! One file for each document, so that changes can be reviewed like any other. An import uses the same API, the same scan
//! and the same audit log as a person who writes each document by hand.

mod file;
mod folder;
mod plan;
mod service;

use crate::cli::{ADMIN_TOKEN, MemoryAction, MemoryCommand, OutputFormat};
use crate::commands::api_client::{ApiClient, ApiRefusal};
use crate::commands::{CommandOutcome, one_line, print, print_json, runtime, say};
use crate::http::memory::{DocumentSummary, DocumentView};
use anyhow::Context;
use file::DocumentFile;
use folder::{DocumentFolder, FolderFile};
use memory::documents::{DocPath, DocumentScope, Prefix};
use plan::SyncStep;
use serde_json::{Value, json};
use service::{DocumentService, ScanFindingBody};
use std::collections::HashMap;
use std::path::Path;

/// The evidence of an imported document whose file has none.
const EVIDENCE: &str = "imported from a file";

pub(super) fn run(args: &MemoryCommand, output: OutputFormat) -> anyhow::Result<CommandOutcome> {
    let service = DocumentService::new(ApiClient::open(args.url.as_deref(), args.token_file.as_deref(), ADMIN_TOKEN)?);
    let report = runtime()?.block_on(async {
        match &args.action {
            MemoryAction::Export { dir, prefix } => export(&service, dir, &prefix_of(prefix.as_deref())?).await,
            MemoryAction::Import { dir, prefix, prune, dry_run } => {
                let prefix = prefix_of(prefix.as_deref())?;
                Import { service: &service, dir, prune: *prune, dry_run: *dry_run }.run(&prefix).await
            }
        }
    })?;
    match report {
        Ok(report) => report.finish(output),
        Err(refusal) => refusal.finish(output),
    }
}

fn prefix_of(text: Option<&str>) -> anyhow::Result<Prefix> {
    let prefix = Prefix::parse(text.unwrap_or(DocumentScope::Tenant.as_str())).context("--prefix is not a path")?;
    anyhow::ensure!(
        prefix.scope() == DocumentScope::Tenant,
        "--prefix must begin with `tenant`: only those documents are shared"
    );
    Ok(prefix)
}

/// What an import or export did, and its problems.
#[derive(Default)]
struct SyncReport {
    done: Vec<(&'static str, String)>,
    unchanged: usize,
    wrong: Vec<SyncProblem>,
}

/// One file, or one document, with which nothing was done.
struct SyncProblem {
    file: String,
    line: Option<usize>,
    code: String,
    message: String,
}

impl SyncReport {
    fn done(&mut self, what: &'static str, path: &DocPath) {
        self.done.push((what, path.to_string()));
    }

    fn wrong(&mut self, file: &Path, line: Option<usize>, code: &str, message: impl Into<String>) {
        let (file, code, message) = (file.display().to_string(), code.to_owned(), message.into());
        self.wrong.push(SyncProblem { file, line, code, message });
    }

    /// Notes a document that the service refused. Lines are counted as in the file, of which `head` come before the
    /// text.
    fn refused(&mut self, path: &DocPath, head: usize, refusal: ApiRefusal) {
        let (file, findings) = (folder::place(path), service::findings(&refusal));
        let ApiRefusal { code, message, .. } = refusal;
        if findings.is_empty() {
            self.wrong(&file, None, &code, message);
            return;
        }
        for ScanFindingBody { field, line, rule } in findings {
            let (line, rule) = match field.as_str() {
                "content" => (Some(head + line), rule),
                _ => (None, format!("{field}: {rule}")),
            };
            self.wrong(&file, line, &code, rule);
        }
    }

    /// Prints the report. The exit code is 1 if there is any problem.
    fn finish(self, output: OutputFormat) -> anyhow::Result<CommandOutcome> {
        match output {
            OutputFormat::Json => {
                let done = |(what, path): &(&str, String)| json!({ "path": path, "done": what });
                let wrong =
                    |w: &SyncProblem| json!({ "file": w.file, "line": w.line, "code": w.code, "message": w.message });
                let report = json!({
                    "done": self.done.iter().map(done).collect::<Vec<Value>>(),
                    "unchanged": self.unchanged,
                    "problems": self.wrong.iter().map(wrong).collect::<Vec<Value>>(),
                });
                print_json(&report)?;
            }
            OutputFormat::Text => {
                self.done.iter().for_each(|(what, path)| print(&format!("{what:<9} {}\n", one_line(path))));
                for SyncProblem { file, line, code, message } in &self.wrong {
                    let line = line.map(|line| format!("{line}:")).unwrap_or_default();
                    say(&format!("{}\n", one_line(&format!("{file}:{line} {code}: {message}"))));
                }
                say(&format!(
                    "{} done, {} unchanged, {} with problems\n",
                    self.done.len(),
                    self.unchanged,
                    self.wrong.len()
                ));
            }
        }
        Ok(if self.wrong.is_empty() { CommandOutcome::Done } else { CommandOutcome::Negative })
    }
}

/// Writes every document under a prefix into the folder.
async fn export(
    service: &DocumentService,
    dir: &Path,
    prefix: &Prefix,
) -> anyhow::Result<Result<SyncReport, ApiRefusal>> {
    let mut report = SyncReport::default();
    let summaries = match service.list(prefix).await? {
        Ok(summaries) => summaries,
        Err(refusal) => return Ok(Err(refusal)),
    };
    for line in summaries {
        // A path from the service is checked before it becomes the name of a file.
        let path = match DocPath::parse(&line.path) {
            Ok(path) if prefix.holds(path.as_str()) => path,
            Ok(_) | Err(_) => {
                report.wrong(Path::new("-"), None, "bad_path", "the service returned a document with an invalid path");
                continue;
            }
        };
        match service.get(&path).await? {
            Ok(DocumentView { title, kind, tags, evidence, sha256, content, .. }) => {
                let filed = DocumentFile {
                    title: Some(title),
                    kind,
                    tags,
                    evidence: Some(evidence),
                    sha256: Some(sha256),
                    content,
                };
                folder::write(dir, &path, &filed.to_text())?;
                report.done("exported", &path);
            }
            Err(refusal) => report.refused(&path, 0, refusal),
        }
    }
    Ok(Ok(report))
}

/// Brings files into the service.
struct Import<'a> {
    service: &'a DocumentService,
    dir: &'a Path,
    prune: bool,
    dry_run: bool,
}

impl Import<'_> {
    async fn run(&self, prefix: &Prefix) -> anyhow::Result<Result<SyncReport, ApiRefusal>> {
        let mut report = SyncReport::default();
        let DocumentFolder { files, unusable } = folder::read(self.dir, prefix)?;
        for (place, why) in unusable {
            report.wrong(&place, None, "bad_file", why);
        }
        let there = match self.service.list(prefix).await? {
            Ok(summaries) => summaries,
            Err(refusal) => return Ok(Err(refusal)),
        };
        let mut there: HashMap<String, DocumentSummary> =
            there.into_iter().map(|line| (line.path.clone(), line)).collect();
        let any = !files.is_empty();
        for FolderFile { path, text } in files {
            let line = there.remove(path.as_str());
            let read = text.map_err(|why| (None, why)).and_then(|text| {
                let wrong = |wrong: file::FileProblem| (Some(wrong.line), wrong.message);
                DocumentFile::parse(&text).map(|filed| (text, filed)).map_err(wrong)
            });
            match read {
                Ok((text, filed)) => self.one(&mut report, &path, &text, filed, line.as_ref()).await?,
                Err((at, why)) => report.wrong(&folder::place(&path), at, "bad_file", why),
            }
        }
        if self.prune && any {
            self.prune(&mut report, there).await?;
        } else if self.prune {
            report.wrong(self.dir, None, "nothing_here", "the folder has no documents, so nothing was pruned");
        }
        Ok(Ok(report))
    }

    async fn one(
        &self,
        report: &mut SyncReport,
        path: &DocPath,
        text: &str,
        filed: DocumentFile,
        there: Option<&DocumentSummary>,
    ) -> anyhow::Result<()> {
        let (what, base) = match plan::step(&filed, there) {
            SyncStep::Unchanged | SyncStep::Behind => {
                report.unchanged += 1;
                return Ok(());
            }
            SyncStep::Conflict => {
                let why = "the document has changed since this file was exported; export it again and merge";
                report.wrong(&folder::place(path), None, "memory_conflict", why);
                return Ok(());
            }
            SyncStep::Create => ("created", None),
            SyncStep::Replace(base) => ("replaced", Some(base)),
        };
        if self.dry_run {
            report.done(what, path);
            return Ok(());
        }
        let DocumentFile { title, kind, tags, evidence, content, .. } = filed;
        let evidence = evidence.unwrap_or_else(|| EVIDENCE.to_owned());
        let mut body = json!({ "content": content, "type": kind, "tags": tags, "evidence": evidence });
        if let Some(title) = title {
            body["title"] = json!(title);
        }
        match self.service.put(path, body, base.as_deref()).await? {
            Ok(written) => {
                // From now on the file belongs to this version.
                folder::write(self.dir, path, &file::with_sha256(text, &written.sha256))?;
                report.done(what, path);
            }
            Err(refusal) => report.refused(path, file::head_lines(text), refusal),
        }
        Ok(())
    }

    /// Deletes documents that have no file, unless they changed since the import began.
    async fn prune(&self, report: &mut SyncReport, left: HashMap<String, DocumentSummary>) -> anyhow::Result<()> {
        let mut left: Vec<DocumentSummary> = left.into_values().collect();
        left.sort_by(|a, b| a.path.cmp(&b.path));
        for line in left {
            let Ok(path) = DocPath::parse(&line.path) else { continue };
            if self.dry_run {
                report.done("pruned", &path);
                continue;
            }
            match self.service.delete(&path, &line.sha256).await? {
                Ok(_) => report.done("pruned", &path),
                Err(refusal) => report.refused(&path, 0, refusal),
            }
        }
        Ok(())
    }
}
