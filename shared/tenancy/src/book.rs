//! The book: every tenant's file in one folder.
//!
//! A file is named after its tenant, so a name in a problem, in a folder and in a token is the same name. One bad
//! file costs only its own tenant, and a reload may keep what that tenant had before.
//!
//! Not here: noticing that a file changed (see the gateway).

use crate::check::{self, KnownNames};
use crate::config::TenantConfig;
use crate::problem::{Position, Problem, ProblemReport, shown};
use crate::yaml;
use domain::Tenant;
use std::collections::BTreeMap;
use std::fs::File;
use std::io::{self, Read};
use std::path::{Path, PathBuf};

/// What a folder of tenants' files says.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct TenantFiles {
    /// The tenants whose files are right.
    pub tenants: BTreeMap<Tenant, ConfiguredTenant>,
    /// What is wrong with the others, file by file.
    pub problems: Vec<Problem>,
}

/// One tenant's configuration and the file it came from.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ConfiguredTenant {
    /// The configuration.
    pub config: TenantConfig,
    /// The file, as problems name it.
    pub file: String,
    /// What it says, word for word.
    pub text: String,
}

impl TenantFiles {
    /// Reads each `*.yaml` and `*.yml` file directly in the folder, in the order of their names.
    /// Hidden files are left alone: editors and mounted volumes keep their own things there.
    pub fn read(dir: &Path, known: &KnownNames<'_>) -> TenantFiles {
        let mut book = TenantFiles::default();
        match files(dir) {
            Ok(paths) => paths.iter().for_each(|path| book.add(path, known)),
            Err(error) => book.problems.push(unreadable(&label(dir), &error)),
        }
        book
    }

    /// Keeps what `before` knew of every tenant whose file is now wrong. A file that is gone takes its tenant along.
    pub fn keep_from(&mut self, before: &TenantFiles, dir: &Path) {
        let (wrong, folder) = (&self.problems, label(dir));
        let bad = |file: &str| wrong.iter().any(|problem| problem.file == file || problem.file == folder);
        let kept =
            before.tenants.iter().filter(|(tenant, page)| !self.tenants.contains_key(*tenant) && bad(&page.file));
        let kept: Vec<_> = kept.map(|(tenant, page)| (tenant.clone(), page.clone())).collect();
        self.tenants.extend(kept);
    }

    fn add(&mut self, path: &Path, known: &KnownNames<'_>) {
        let file = label(path);
        match read_page(path, &file, known) {
            Ok((config, text)) => match self.tenants.get(&config.tenant) {
                Some(first) => {
                    let mut report = ProblemReport::of(&file);
                    let message = format!("the tenant `{}` already has the file {}", config.tenant, first.file);
                    report.add(Position::START, "duplicate_tenant", message, Some("remove one of them".to_owned()));
                    self.problems.extend(report.judge(None::<()>).err().unwrap_or_default());
                }
                None => {
                    self.tenants.insert(config.tenant.clone(), ConfiguredTenant { config, file, text });
                }
            },
            Err(problems) => self.problems.extend(problems),
        }
    }
}

/// Reads and checks one tenant's file, which must be named after its tenant.
pub fn read_file(path: &Path, known: &KnownNames<'_>) -> Result<TenantConfig, Vec<Problem>> {
    read_page(path, &label(path), known).map(|(config, _)| config)
}

fn read_page(path: &Path, file: &str, known: &KnownNames<'_>) -> Result<(TenantConfig, String), Vec<Problem>> {
    let text = text_of(path, file)?;
    let config = check::parse(file, &text, known)?;
    let stem = path.file_stem().unwrap_or_default().to_string_lossy();
    if stem == config.tenant.as_str() {
        return Ok((config, text));
    }
    let mut report = ProblemReport::of(file);
    let message = format!("the file is named {} and speaks of the tenant `{}`", shown(&stem), config.tenant);
    let hint = format!("name it {}.yaml, or correct `tenant`", config.tenant);
    report.add(Position::START, "file_name", message, Some(hint));
    report.judge(None)
}

/// The text of a regular file within the size that is looked at.
pub fn text_of(path: &Path, file: &str) -> Result<String, Vec<Problem>> {
    let bytes = bytes_of(path).map_err(|error| vec![unreadable(file, &error)])?;
    let mut report = ProblemReport::of(file);
    if let Some(head) = bytes.get(..yaml::MOST_BYTES).filter(|head| head.len() < bytes.len()) {
        yaml::too_large(head, &mut report);
        return report.judge(None);
    }
    let text = String::from_utf8(bytes);
    if let Err(error) = &text {
        let good = String::from_utf8_lossy(&error.as_bytes()[..error.utf8_error().valid_up_to()]);
        report.add(Position::after(&good), "not_utf8", "the file is not UTF-8 from here on", None);
    }
    report.judge(text.ok())
}

fn bytes_of(path: &Path) -> io::Result<Vec<u8>> {
    // Asked before opening: opening a pipe would wait for whoever writes to it.
    if !path.metadata()?.is_file() {
        return Err(io::Error::other("not a regular file"));
    }
    let mut bytes = Vec::new();
    let one_more = u64::try_from(yaml::MOST_BYTES + 1).unwrap_or(u64::MAX);
    File::open(path)?.take(one_more).read_to_end(&mut bytes)?;
    Ok(bytes)
}

/// The files of a folder that hold YAML, in the order of their names. Hidden ones are left out.
pub fn files(dir: &Path) -> io::Result<Vec<PathBuf>> {
    let mut paths = dir.read_dir()?.map(|entry| Ok(entry?.path())).collect::<io::Result<Vec<_>>>()?;
    paths.retain(|path| {
        let name = path.file_name().unwrap_or_default().to_string_lossy();
        !name.starts_with('.') && (name.ends_with(".yaml") || name.ends_with(".yml"))
    });
    paths.sort();
    Ok(paths)
}

/// The problem that a file cannot be read.
pub fn unreadable(file: &str, error: &io::Error) -> Problem {
    let (file, message) = (file.to_owned(), format!("cannot be read: {error}"));
    let Position { line, column } = Position::START;
    Problem { file, line, column, code: "unreadable", message, hint: None }
}

/// How problems name a file.
pub fn label(path: &Path) -> String {
    path.display().to_string()
}

#[cfg(test)]
mod tests;
