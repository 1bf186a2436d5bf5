//! `audit verify`: one file, a folder of them, or the audit log of the service, held to its checkpoints.
//!
//! Public keys come from a file, or from where the service publishes them; they are needed only where there are
//! checkpoints. Whoever does not trust the service brings them, and a checkpoint, from elsewhere.

use super::export;
use crate::cli::{ADMIN_TOKEN, AuditCommand, OutputFormat, VerifyArgs};
use crate::commands::api_client::service;
use crate::commands::{CommandOutcome, print, print_json, runtime};
use anyhow::{Context, bail};
use archive::{ArchiveFlaw, ArchiveReader, Checkpoint, Expectations, PublicKeys, VerifiedArchive};
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::fs::{self, File};
use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};

/// Where the service publishes its keys.
const KEYS: &str = "/.well-known/quartermaster-audit-keys.json";
/// The most that is read of them.
const MOST_KEYS: usize = 1 << 20;

/// A flaw, and the file it is in.
struct Finding {
    flaw: ArchiveFlaw,
    file: Option<PathBuf>,
}

type AuditCheck = Result<VerifiedArchive, Finding>;

pub(super) fn run(args: &AuditCommand, verify: &VerifyArgs, output: OutputFormat) -> anyhow::Result<CommandOutcome> {
    let known = verify.known.as_deref().map(known).transpose()?.unwrap_or_default();
    let judge = Judge { args, verify, known };
    let checks = match &verify.path {
        None => match judge.service(output)? {
            Some(check) => vec![check],
            None => return Ok(CommandOutcome::Negative),
        },
        Some(path) => {
            let is_folder = fs::metadata(path).with_context(|| format!("cannot read {}", path.display()))?.is_dir();
            let groups = if is_folder { by_tenant(path)? } else { vec![vec![path.clone()]] };
            groups.iter().map(|files| judge.files(files)).collect::<Result<_, _>>()?
        }
    };
    report(checks, output)
}

/// What all audit logs of one command are held to.
struct Judge<'a> {
    args: &'a AuditCommand,
    verify: &'a VerifyArgs,
    known: Vec<Checkpoint>,
}

impl Judge<'_> {
    fn files(&self, files: &[PathBuf]) -> anyhow::Result<AuditCheck> {
        let mut reader = ArchiveReader::default();
        for file in files {
            let cannot = || format!("cannot read {}", file.display());
            let found = |flaw| Ok(Err(Finding { flaw, file: Some(file.clone()) }));
            for line in BufReader::new(File::open(file).with_context(cannot)?).split(b'\n') {
                if let Err(flaw) = reader.line(&String::from_utf8_lossy(&line.with_context(cannot)?)) {
                    return found(flaw);
                }
            }
            if let Err(flaw) = reader.end_of_file() {
                return found(flaw);
            }
        }
        if reader.is_empty() {
            bail!("{} is not an exported audit log: it is empty", files[0].display());
        }
        self.finish(reader, &self.known, false)
    }

    /// `None` if the service refused, which is reported already.
    fn service(&self, output: OutputFormat) -> anyhow::Result<Option<AuditCheck>> {
        let (mut reader, mut flaw) = (ArchiveReader::default(), None);
        let (outcome, newest) = export(self.args, output, |text| {
            // Only the first flaw is reported.
            flaw = flaw.take().or_else(|| text.lines().find_map(|line| reader.line(line).err()));
            Ok(())
        })?;
        match (outcome, flaw) {
            (CommandOutcome::Negative | CommandOutcome::Unusable, _) => Ok(None),
            (CommandOutcome::Done, Some(flaw)) => Ok(Some(Err(Finding { flaw, file: None }))),
            (CommandOutcome::Done, None) => {
                // The service knows of it by a record of its own, which the list has to reach.
                let known: Vec<Checkpoint> = self.known.iter().cloned().chain(newest).collect();
                self.finish(reader, &known, true).map(Some)
            }
        }
    }

    fn finish(&self, reader: ArchiveReader, known: &[Checkpoint], whole: bool) -> anyhow::Result<AuditCheck> {
        // Without checkpoints there is nothing to be signed; that there ought to be some is found all the same.
        let keys = if reader.has_checkpoints() { self.keys()? } else { PublicKeys::default() };
        let expected = Expectations { keys: Some(&keys), known, whole };
        match reader.finish(expected) {
            Ok(verified) => Ok(Ok(verified.context("there is no audit log")?)),
            Err(flaw) => Ok(Err(Finding { flaw, file: None })),
        }
    }

    fn keys(&self) -> anyhow::Result<PublicKeys> {
        let text = match &self.verify.keys {
            Some(file) => fs::read_to_string(file).with_context(|| format!("cannot read {}", file.display()))?,
            None => {
                let (url, _) = service(self.args.url.as_deref(), self.args.token_file.as_deref(), ADMIN_TOKEN);
                let url = format!("{url}{KEYS}");
                let client = egress::service_client(&url, &egress::Config::default())?;
                let fetched = runtime()?.block_on(egress::get_capped(&client, &url, MOST_KEYS));
                let bytes = fetched
                    .with_context(|| format!("cannot read the public keys at {url}; name a file with --keys"))?;
                String::from_utf8(bytes).context("the public keys are no text")?
            }
        };
        PublicKeys::read(&text).context("the public keys cannot be used")
    }
}

/// The checkpoints in a file, whatever else is there.
fn known(file: &Path) -> anyhow::Result<Vec<Checkpoint>> {
    let text = fs::read_to_string(file).with_context(|| format!("cannot read {}", file.display()))?;
    let found: Vec<Checkpoint> = text.lines().filter_map(Checkpoint::read).collect();
    if found.is_empty() {
        bail!("{} holds no checkpoint", file.display());
    }
    Ok(found)
}

/// The exported files of a folder, those of a tenant together, in the order of their names.
fn by_tenant(folder: &Path) -> anyhow::Result<Vec<Vec<PathBuf>>> {
    let mut files = Vec::new();
    collect(folder, &mut files)?;
    files.sort_by(|a, b| a.file_name().cmp(&b.file_name()));
    let mut tenants: BTreeMap<String, Vec<PathBuf>> = BTreeMap::new();
    for file in files {
        let mut head = String::new();
        let cannot = || format!("cannot read {}", file.display());
        BufReader::new(File::open(&file).with_context(cannot)?).read_line(&mut head).with_context(cannot)?;
        // A file whose head cannot be read is judged apart, and found to be unreadable.
        let tenant = archive::ExportHead::read(head.trim_end()).map_or_else(String::new, |head| head.tenant);
        tenants.entry(tenant).or_default().push(file);
    }
    if tenants.is_empty() {
        bail!("{} holds no exported audit log (*.jsonl)", folder.display());
    }
    Ok(tenants.into_values().collect())
}

fn collect(folder: &Path, files: &mut Vec<PathBuf>) -> anyhow::Result<()> {
    let cannot = || format!("cannot read {}", folder.display());
    for entry in fs::read_dir(folder).with_context(cannot)? {
        let path = entry.with_context(cannot)?.path();
        if path.is_dir() {
            collect(&path, files)?;
        } else if path.extension().is_some_and(|end| end == "jsonl") {
            files.push(path);
        }
    }
    Ok(())
}

fn report(checks: Vec<AuditCheck>, output: OutputFormat) -> anyhow::Result<CommandOutcome> {
    let broken = checks.iter().any(Result::is_err);
    let told: Vec<(String, Value)> = checks.into_iter().map(tell).collect();
    match output {
        OutputFormat::Text => told.iter().for_each(|(text, _)| print(&format!("{text}\n"))),
        OutputFormat::Json if told.len() == 1 => print_json(&told[0].1)?,
        OutputFormat::Json => print_json(&told.into_iter().map(|(_, body)| body).collect::<Vec<_>>())?,
    }
    Ok(if broken { CommandOutcome::Negative } else { CommandOutcome::Done })
}

fn tell(check: AuditCheck) -> (String, Value) {
    match check {
        Ok(VerifiedArchive { tenant, after, entries, sealed, unsealed, checkpoints, signed }) => {
            let begins = if after == 0 { String::new() } else { format!(" behind entry {after}") };
            let signatures = match checkpoints {
                0 => "no checkpoint yet".to_owned(),
                count => format!("{count} checkpoints, signed up to entry {signed}"),
            };
            let text = format!(
                "the audit log of {tenant} is intact{begins}: {entries} entries, {sealed} sealed, {unsealed} not sealed yet; {signatures}"
            );
            let body = json!({ "ok": true, "tenant": tenant.as_str(), "after": after, "entries": entries, "sealed": sealed,
                "unsealed": unsealed, "checkpoints": checkpoints, "signed": signed });
            (text, body)
        }
        Err(Finding { flaw, file }) => {
            let mut body = json!({ "ok": false, "what": flaw.word() });
            match &flaw {
                ArchiveFlaw::Unreadable { line } => body["line"] = json!(line),
                ArchiveFlaw::Entry(chain_break) => {
                    body["seq"] = json!(chain_break.seq);
                    body["entry"] = json!(chain_break.entry.map(|entry| entry.to_string()));
                }
                ArchiveFlaw::Checkpoint(broken) => body["checkpoint"] = json!(broken.checkpoint),
                ArchiveFlaw::Gap { seq } | ArchiveFlaw::Forked { seq } | ArchiveFlaw::Unfounded { seq } => {
                    body["seq"] = json!(seq);
                }
                ArchiveFlaw::Foreign => {}
            }
            let place = file.filter(|_| !matches!(flaw, ArchiveFlaw::Entry(_))).map(|file| file.display().to_string());
            let text = match &place {
                Some(file) if !matches!(flaw, ArchiveFlaw::Unreadable { .. }) => format!("{file}: {flaw}"),
                Some(_) | None => flaw.to_string(),
            };
            if let Some(file) = place {
                body["file"] = json!(file);
            }
            (text, body)
        }
    }
}
