//! `audit`: writes a tenant's ledger out, and verifies it, from a file or from the service itself.
//!
//! What a file holds is judged by nothing but itself, so it can be verified where the service cannot be reached.
//! Whoever can change every line of it can also link every line anew; an export kept elsewhere is what shows that.

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
use store::{ChainBreak, StreamId, VerifiedLedger, Walker};

pub(super) fn run(args: &AuditCommand, output: OutputFormat) -> anyhow::Result<CommandOutcome> {
    match &args.action {
        // An export is JSON lines in either format, so a refusal leaves the standard output empty.
        AuditAction::Export { out: None } => export(args, OutputFormat::Text, |lines| {
            print_exact(lines);
            Ok(())
        }),
        AuditAction::Export { out: Some(file) } => export_to(args, file),
        AuditAction::Verify { file: Some(file) } => told(verify_file(file)?, output),
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
        Ok(()) => Ok(CommandOutcome::Well),
        Err(refusal) => refusal.finish(output),
    }
}

/// Half an export never stands under the name of a whole one. Only its owner reads it: it names people.
fn export_to(args: &AuditCommand, file: &Path) -> anyhow::Result<CommandOutcome> {
    let mut name = file.file_name().context("--out names no file")?.to_owned();
    name.push(".partial");
    let partial = file.with_file_name(name);
    let cannot = || format!("cannot write {}", file.display());
    let mut options = OpenOptions::new();
    let mut draft = options.write(true).create(true).truncate(true).mode(0o600).open(&partial).with_context(cannot)?;
    let ended = export(args, OutputFormat::Text, |lines| draft.write_all(lines.as_bytes()).with_context(cannot));
    if let Ok(CommandOutcome::Well) = ended {
        draft.sync_all().and_then(|()| fs::rename(&partial, file)).with_context(cannot)?;
    } else {
        // What failed is told already; a draft that stays behind is only untidy.
        fs::remove_file(&partial).ok();
    }
    ended
}

/// Either way of being wrong is an answer: a chain that broke, or a line that is none.
enum ExportDefect {
    Broken(ChainBreak),
    Unreadable(u64),
}

type AuditCheck = Result<(Tenant, VerifiedLedger), ExportDefect>;

fn verify_file(file: &Path) -> anyhow::Result<AuditCheck> {
    let cannot = || format!("cannot read {}", file.display());
    let mut reading = ExportReader::default();
    for line in BufReader::new(File::open(file).with_context(cannot)?).split(b'\n') {
        if let Err(doubt) = reading.line(&String::from_utf8_lossy(&line.with_context(cannot)?)) {
            return Ok(Err(doubt));
        }
    }
    reading.finish().with_context(|| format!("{} is no exported ledger", file.display()))
}

fn verify_service(args: &AuditCommand, output: OutputFormat) -> anyhow::Result<CommandOutcome> {
    let (mut reading, mut doubt) = (ExportReader::default(), None);
    let ended = export(args, output, |text| {
        // After the first doubt the rest is of no interest.
        doubt = doubt.take().or_else(|| text.lines().find_map(|line| reading.line(line).err()));
        Ok(())
    })?;
    match (ended, doubt) {
        (CommandOutcome::WithNo, _) => Ok(CommandOutcome::WithNo),
        (CommandOutcome::Well, Some(doubt)) => told(Err(doubt), output),
        (CommandOutcome::Well, None) => told(reading.finish().context("the service returned no audit log")?, output),
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
            Some(ExportLine::Entry(ExportEntry { id, entry })) => match StreamId::parse(&id) {
                Some(id) => walker.entry(id, entry.get().as_bytes().to_vec()).map_err(ExportDefect::Broken),
                None => Err(unreadable),
            },
            None => Err(unreadable),
        }
    }

    fn finish(self) -> anyhow::Result<AuditCheck> {
        let Some((tenant, walker)) = self.walker else { bail!("it holds no line") };
        Ok(walker.finish().map(|verified| (tenant, verified)).map_err(ExportDefect::Broken))
    }
}

fn told(judged: AuditCheck, output: OutputFormat) -> anyhow::Result<CommandOutcome> {
    let (ended, text, told): (CommandOutcome, String, Value) = match judged {
        Ok((tenant, VerifiedLedger { entries, sealed, unsealed })) => (
            CommandOutcome::Well,
            format!(
                "the ledger of {tenant} is as it was sealed: {entries} entries, {sealed} sealed, {unsealed} not yet"
            ),
            json!({ "ok": true, "tenant": tenant.as_str(), "entries": entries, "sealed": sealed, "unsealed": unsealed }),
        ),
        Err(ExportDefect::Broken(found)) => {
            let ChainBreak { seq, entry, what } = found;
            let entry = entry.map(|entry| entry.to_string());
            (
                CommandOutcome::WithNo,
                found.to_string(),
                json!({ "ok": false, "seq": seq, "entry": entry, "what": what.as_str() }),
            )
        }
        Err(ExportDefect::Unreadable(line)) => {
            let text = format!("line {line} is no line of an exported ledger");
            (CommandOutcome::WithNo, text, json!({ "ok": false, "line": line, "what": "unreadable" }))
        }
    };
    match output {
        OutputFormat::Text => print(&format!("{text}\n")),
        OutputFormat::Json => print_json(&told)?,
    }
    Ok(ended)
}
