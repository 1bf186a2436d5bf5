//! The book: every tenant's file in one folder.
//!
//! A file is named after its tenant, so a name in a problem, in a folder and in a token is the same name. One bad
//! file costs only its own tenant, and a reload may keep what that tenant had before. A file that is as it was is not
//! parsed again.
//!
//! Not here: noticing that a file changed (see the gateway).

use crate::check::{self, KnownNames};
use crate::config::TenantConfig;
use crate::problem::{Position, Problem, ProblemReport, shown};
use crate::yaml;
use domain::Tenant;
use domain::json::sha256_hex;
use std::collections::BTreeMap;
use std::fs::{File, Metadata};
use std::io::{self, Read};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, SystemTime};

/// A file that changed so lately may change again without looking different: the clock of a file system is coarse.
const SETTLES: Duration = Duration::from_secs(2);

/// What a folder of tenants' files says.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct TenantFiles {
    /// The tenants whose files are right.
    pub tenants: BTreeMap<Tenant, Arc<ConfiguredTenant>>,
    /// What is wrong with the others, file by file.
    pub problems: Vec<Problem>,
}

/// One tenant's configuration and the file it came from.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ConfiguredTenant {
    /// The configuration.
    pub config: Arc<TenantConfig>,
    /// The file, as problems name it.
    pub file: String,
    /// What it says, word for word.
    pub text: String,
}

/// How a file looks from outside: what differs when it was written again.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct FileStamp {
    device: u64,
    inode: u64,
    bytes: u64,
    written: (i64, i64),
    changed: (i64, i64),
}

impl FileStamp {
    /// Of a file that has not changed for a moment; `None` for one that may change unseen, or is not there.
    pub fn of(path: &Path) -> Option<FileStamp> {
        let seen = path.metadata().ok()?;
        // A time in the future says nothing, and neither does one that cannot be read.
        let age = SystemTime::now().duration_since(seen.modified().ok()?).ok()?;
        (age > SETTLES).then(|| FileStamp::read(&seen))
    }

    fn read(seen: &Metadata) -> FileStamp {
        FileStamp {
            device: seen.dev(),
            inode: seen.ino(),
            bytes: seen.len(),
            written: (seen.mtime(), seen.mtime_nsec()),
            changed: (seen.ctime(), seen.ctime_nsec()),
        }
    }
}

/// What was read of a folder, so that only what has changed is read again.
#[derive(Debug, Default)]
pub struct FolderReading {
    pages: BTreeMap<PathBuf, PageReading>,
    /// Whether the folder could be read.
    listed: bool,
}

#[derive(Debug)]
struct PageReading {
    stamp: Option<FileStamp>,
    /// Of the text that was judged, right or wrong; empty if there was none.
    digest: String,
    page: Result<Arc<ConfiguredTenant>, Vec<Problem>>,
}

/// The digest of a file's text, as `sha256:<hex>`.
pub fn text_digest(text: &str) -> String {
    format!("sha256:{}", sha256_hex(text.as_bytes()))
}

impl FolderReading {
    /// Whether some file changed so lately that it has to be looked at once more.
    pub fn is_unsettled(&self) -> bool {
        self.pages.values().any(|page| page.stamp.is_none())
    }

    /// Every file, the digest of the text that was judged, and what is wrong with it.
    pub fn verdicts(&self) -> impl Iterator<Item = (&Path, &str, &[Problem])> {
        self.pages.iter().map(|(path, page)| {
            let problems = page.page.as_ref().err().map_or(&[][..], Vec::as_slice);
            (path.as_path(), page.digest.as_str(), problems)
        })
    }

    /// Forgets everything, because files mean something else now.
    pub fn clear(&mut self) {
        self.pages.clear();
    }

    /// Reads what has changed; tells whether anything says something else than before.
    fn refresh(&mut self, paths: Vec<PathBuf>, known: &KnownNames<'_>) -> bool {
        let mut before = std::mem::take(&mut self.pages);
        let mut other = false;
        for path in paths {
            // Looked at before it is read: what is written meanwhile makes it look different the next time.
            let stamp = FileStamp::of(&path);
            let next = match before.remove(&path) {
                Some(same) if stamp.is_some() && same.stamp == stamp => same,
                earlier => {
                    let file = label(&path);
                    let text = text_of(&path, &file);
                    let digest = text.as_deref().map_or_else(|_| String::new(), text_digest);
                    let read = text.and_then(|text| {
                        let config = Arc::new(judge_page(&path, &file, &text, known)?);
                        Ok(ConfiguredTenant { config, file, text })
                    });
                    let (page, is_other) = match (read, earlier.map(|earlier| earlier.page)) {
                        (Ok(now), Some(Ok(before))) if *before == now => (Ok(before), false),
                        (Err(now), Some(Err(before))) if before == now => (Err(now), false),
                        (now, _) => (now.map(Arc::new), true),
                    };
                    other |= is_other;
                    PageReading { stamp, digest, page }
                }
            };
            self.pages.insert(path, next);
        }
        other || !before.is_empty()
    }
}

impl TenantFiles {
    /// Reads the files of the folder that have changed since `reading`; `None` if nothing says something else than before.
    pub fn read_changed(dir: &Path, known: &KnownNames<'_>, reading: &mut FolderReading) -> Option<TenantFiles> {
        match files(dir) {
            Ok(paths) => {
                let was_listed = std::mem::replace(&mut reading.listed, true);
                let other = reading.refresh(paths, known);
                (other || !was_listed).then(|| {
                    let mut book = TenantFiles::default();
                    reading.pages.iter().for_each(|(path, page)| book.add(path, &page.page));
                    book
                })
            }
            Err(error) => {
                reading.listed = false;
                let problems = vec![unreadable(&label(dir), &error)];
                Some(TenantFiles { problems, ..TenantFiles::default() })
            }
        }
    }

    /// Reads each `*.yaml` and `*.yml` file directly in the folder, in the order of their names.
    /// Hidden files are left alone: editors and mounted volumes keep their own things there.
    pub fn read(dir: &Path, known: &KnownNames<'_>) -> TenantFiles {
        TenantFiles::read_changed(dir, known, &mut FolderReading::default()).unwrap_or_default()
    }

    /// Keeps what `before` knew of every tenant whose file is now wrong. A file that is gone takes its tenant along.
    pub fn keep_from(&mut self, before: &TenantFiles, dir: &Path) {
        let (wrong, folder) = (&self.problems, label(dir));
        let bad = |file: &str| wrong.iter().any(|problem| problem.file == file || problem.file == folder);
        let kept =
            before.tenants.iter().filter(|(tenant, page)| !self.tenants.contains_key(*tenant) && bad(&page.file));
        let kept: Vec<_> = kept.map(|(tenant, page)| (tenant.clone(), Arc::clone(page))).collect();
        self.tenants.extend(kept);
    }

    fn add(&mut self, path: &Path, page: &Result<Arc<ConfiguredTenant>, Vec<Problem>>) {
        match page {
            Ok(page) => match self.tenants.get(&page.config.tenant) {
                Some(first) => {
                    let mut report = ProblemReport::of(&label(path));
                    let message = format!("the tenant `{}` already has the file {}", page.config.tenant, first.file);
                    report.add(Position::START, "duplicate_tenant", message, Some("remove one of them".to_owned()));
                    self.problems.extend(report.judge(None::<()>).err().unwrap_or_default());
                }
                None => {
                    self.tenants.insert(page.config.tenant.clone(), Arc::clone(page));
                }
            },
            Err(problems) => self.problems.extend(problems.iter().cloned()),
        }
    }
}

/// Reads and checks one tenant's file, which must be named after its tenant.
pub fn read_file(path: &Path, known: &KnownNames<'_>) -> Result<TenantConfig, Vec<Problem>> {
    let file = label(path);
    judge_page(path, &file, &text_of(path, &file)?, known)
}

fn judge_page(path: &Path, file: &str, text: &str, known: &KnownNames<'_>) -> Result<TenantConfig, Vec<Problem>> {
    let config = check::parse(file, text, known)?;
    let stem = path.file_stem().unwrap_or_default().to_string_lossy();
    if stem == config.tenant.as_str() {
        return Ok(config);
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
