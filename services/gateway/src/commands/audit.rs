//! `audit`: searches, follows, exports and verifies a tenant's audit log, from the service or from exported files.
//!
//! Nothing here needs a secret but the token that reads the audit log; files need none at all.

mod search;
mod service;
mod verify;

use crate::cli::{ADMIN_TOKEN, AuditAction, AuditCommand, OutputFormat};
use crate::commands::api_client::ApiClient;
use crate::commands::{CommandOutcome, print_exact, runtime};
use anyhow::Context;
use archive::Checkpoint;
use std::fs::{self, OpenOptions};
use std::io::Write;
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;

pub(super) fn run(args: &AuditCommand, output: OutputFormat) -> anyhow::Result<CommandOutcome> {
    match &args.action {
        // An export is JSON lines in either format, so a refusal leaves the standard output empty.
        AuditAction::Export { out: None } => {
            let exported = export(args, OutputFormat::Text, |lines| {
                print_exact(lines);
                Ok(())
            });
            exported.map(|(outcome, _)| outcome)
        }
        AuditAction::Export { out: Some(file) } => export_to(args, file),
        AuditAction::Verify(verify) => verify::run(args, verify, output),
        AuditAction::Search { filter, limit } => search::search(args, filter, *limit, output),
        AuditAction::Tail { filter } => search::tail(args, filter, output),
    }
}

fn export(
    args: &AuditCommand,
    output: OutputFormat,
    take: impl FnMut(&str) -> anyhow::Result<()>,
) -> anyhow::Result<(CommandOutcome, Option<Checkpoint>)> {
    let client = ApiClient::open(args.url.as_deref(), args.token_file.as_deref(), ADMIN_TOKEN)?;
    match runtime()?.block_on(service::export(&client, take))? {
        Ok(newest) => Ok((CommandOutcome::Done, newest)),
        Err(refusal) => Ok((refusal.finish(output)?, None)),
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
    if let Ok((CommandOutcome::Done, _)) = outcome {
        draft.sync_all().and_then(|()| fs::rename(&partial, file)).with_context(cannot)?;
    } else {
        // The failure is reported already; a draft that stays behind is only untidy.
        fs::remove_file(&partial).ok();
    }
    outcome.map(|(outcome, _)| outcome)
}
