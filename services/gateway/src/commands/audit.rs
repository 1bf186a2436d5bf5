//! `audit`: exports a tenant's audit log, and verifies it, from a file or from the service.
//!
//! A file is verified by itself alone, so the service need not be reachable. Somebody who can change every line of a file
//! can also compute every link again; only an export that is kept elsewhere shows that.

mod lines;
mod service;

use crate::cli::{AuditAction, AuditCommand, OutputFormat};
use crate::commands::api_client::ApiClient;
use crate::commands::{CommandOutcome, print, print_exact, print_json, runtime};
use anyhow::{Context, bail};
use domain::Tenant;
use lines::{ExportEntry, ExportHead, ExportLine};
use serde_json::{Value, json};
use std::fs::{self, File, OpenOptions};
use std::io::{BufRead, BufReader, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;
use store::{ChainBreak, EntryPlace, VerifiedAuditLog, Walker};

pub(super) fn run(args: &AuditCommand, output: OutputFormat) -> anyhow::Result<CommandOutcome> {
    match &args.action {
        // An export is JSON lines in either format, so a refusal leaves the standard output empty.
        AuditAction::Export { out: None } => export(args, OutputFormat::Text, |lines| {
            print_exact(lines);
            Ok(())
        }),
        AuditAction::Export { out: Some(file) } => export_to(args, file),
        AuditAction::Verify { file: Some(file) } => report(verify_file(file)?, output),
        AuditAction::Verify { file: None } => verify_service(args, output),
    }
}

fn export(
    args: &AuditCommand,
    output: OutputFormat,
    take: impl FnMut(&str) -> anyhow::Result<()>,
) -> anyhow::Result<CommandOutcome> {
    let client = ApiClient::open(&args.url, &args.token_file)?;
    match runtime()?.block_on(service::export(&client, take))? {
        Ok(()) => Ok(CommandOutcome::Done),
        Err(refusal) => refusal.finish(output),
    }
}

/// A file of that name is always a whole export. Only its owner can read it: it names people.
fn export_to(args: &AuditCommand, file: &Path) -> anyhow::Result<CommandOutcome> {
    let mut name = file.file_name().context("--out names no file")?.to_owned();
    name.push(".partial");
    let partial = file.with_file_name(name);
    let cannot = || format!("cannot write {}", file.display());
    let mut options = OpenOptions::new();
    let mut draft = options.write(true).create(true).truncate(true).mode(0o600).open(&partial).with_context(cannot)?;
    let outcome = export(args, OutputFormat::Text, |lines| draft.write_all(lines.as_bytes()).with_context(cannot));
    if let Ok(CommandOutcome::Done) = outcome {
        draft.sync_all().and_then(|()| fs::rename(&partial, file)).with_context(cannot)?;
    } else {
        // The failure is reported already; a draft that stays behind is only untidy.
        fs::remove_file(&partial).ok();
    }
    outcome
}

/// Why an export does not verify. Either way is an answer and no error of the command.
enum ExportDefect {
    Broken(ChainBreak),
    Unreadable(u64),
}

type AuditCheck = Result<(Tenant, VerifiedAuditLog), ExportDefect>;

fn verify_file(file: &Path) -> anyhow::Result<AuditCheck> {
    let cannot = || format!("cannot read {}", file.display());
    let mut reader = ExportReader::default();
    for line in BufReader::new(File::open(file).with_context(cannot)?).split(b'\n') {
        if let Err(defect) = reader.line(&String::from_utf8_lossy(&line.with_context(cannot)?)) {
            return Ok(Err(defect));
        }
    }
    reader.finish().with_context(|| format!("{} is not an exported audit log", file.display()))
}

fn verify_service(args: &AuditCommand, output: OutputFormat) -> anyhow::Result<CommandOutcome> {
    let (mut reader, mut defect) = (ExportReader::default(), None);
    let outcome = export(args, output, |text| {
        // Only the first defect is reported.
        defect = defect.take().or_else(|| text.lines().find_map(|line| reader.line(line).err()));
        Ok(())
    })?;
    match (outcome, defect) {
        (CommandOutcome::Negative, _) => Ok(CommandOutcome::Negative),
        (CommandOutcome::Done, Some(defect)) => report(Err(defect), output),
        (CommandOutcome::Done, None) => report(reader.finish().context("the service returned no audit log")?, output),
    }
}

/// An export that is being read, line by line.
#[derive(Default)]
struct ExportReader {
    walker: Option<(Tenant, Walker)>,
    lines: u64,
}

impl ExportReader {
    fn line(&mut self, text: &str) -> Result<(), ExportDefect> {
        self.lines += 1;
        let unreadable = ExportDefect::Unreadable(self.lines);
        let Some((_, walker)) = &mut self.walker else {
            let head = ExportHead::read(text).and_then(|head| Some((Tenant::parse(&head.tenant).ok()?, head.seal)));
            let Some((tenant, seal)) = head else { return Err(unreadable) };
            self.walker = Some((tenant.clone(), Walker::new(&tenant, seal)));
            return Ok(());
        };
        match ExportLine::read(text) {
            Some(ExportLine::Link(link)) => walker.link(link).map_err(ExportDefect::Broken),
            Some(ExportLine::Entry(ExportEntry { id, entry })) => match EntryPlace::parse(&id) {
                Some(id) => walker.entry(id, entry.get().as_bytes().to_vec()).map_err(ExportDefect::Broken),
                None => Err(unreadable),
            },
            None => Err(unreadable),
        }
    }

    fn finish(self) -> anyhow::Result<AuditCheck> {
        let Some((tenant, walker)) = self.walker else { bail!("it is empty") };
        Ok(walker.finish().map(|verified| (tenant, verified)).map_err(ExportDefect::Broken))
    }
}

fn report(check: AuditCheck, output: OutputFormat) -> anyhow::Result<CommandOutcome> {
    let (outcome, text, body): (CommandOutcome, String, Value) = match check {
        Ok((tenant, VerifiedAuditLog { entries, sealed, unsealed })) => (
            CommandOutcome::Done,
            format!(
                "the audit log of {tenant} is intact: {entries} entries, {sealed} sealed, {unsealed} not sealed yet"
            ),
            json!({ "ok": true, "tenant": tenant.as_str(), "entries": entries, "sealed": sealed, "unsealed": unsealed }),
        ),
        Err(ExportDefect::Broken(chain_break)) => {
            let ChainBreak { seq, entry, what } = chain_break;
            let entry = entry.map(|entry| entry.to_string());
            (
                CommandOutcome::Negative,
                chain_break.to_string(),
                json!({ "ok": false, "seq": seq, "entry": entry, "what": what.as_str() }),
            )
        }
        Err(ExportDefect::Unreadable(line)) => {
            let text = format!("line {line} is not a line of an exported audit log");
            (CommandOutcome::Negative, text, json!({ "ok": false, "line": line, "what": "unreadable" }))
        }
    };
    match output {
        OutputFormat::Text => print(&format!("{text}\n")),
        OutputFormat::Json => print_json(&body)?,
    }
    Ok(outcome)
}
