//! Secrets in files: one folder per tenant, one file per secret, as a mounted Kubernetes secret brings them.
//!
//! A file may be a link, since that is how such a mount is replaced in one go. It is read at each use.

use domain::Tenant;
use redact::SecretText;
use std::fs::{self, File};
use std::io::{ErrorKind, Read};
use std::path::{Path, PathBuf};

/// The largest file: a kubeconfig or a bundle of certificates.
const MOST_BYTES: u64 = 256 * 1024;
/// How many files of a folder are listed.
const MOST_LISTED: usize = 1_000;

/// The file is there but cannot be used.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct UnusableFile;

/// The folder with all tenants' secrets.
#[derive(Debug, Clone)]
pub(crate) struct Files(PathBuf);

impl Files {
    pub(crate) fn at(folder: PathBuf) -> Files {
        Files(folder)
    }

    /// Reads a secret, without the line break at its end. The name has been checked.
    pub(crate) fn find(&self, tenant: &Tenant, name: &str) -> Result<Option<SecretText>, UnusableFile> {
        let path = self.0.join(tenant.as_str()).join(name);
        match read(&path) {
            Ok(text) => {
                let text = text.strip_suffix('\n').unwrap_or(&text);
                let text = text.strip_suffix('\r').unwrap_or(text);
                if text.is_empty() { Err(UnusableFile) } else { Ok(Some(SecretText::new(text))) }
            }
            // A link that leads nowhere is a secret that is being replaced, not one that never was.
            Err(error) if error.kind() == ErrorKind::NotFound && fs::symlink_metadata(&path).is_err() => Ok(None),
            Err(_) => Err(UnusableFile),
        }
    }

    /// The names of a tenant's files, as far as they can name secrets.
    pub(crate) fn names(&self, tenant: &Tenant) -> Vec<String> {
        let Ok(folder) = fs::read_dir(self.0.join(tenant.as_str())) else { return Vec::new() };
        let named = folder.flatten().take(MOST_LISTED).filter_map(|file| {
            let name = file.file_name().into_string().ok().filter(|name| crate::is_secret_name(name))?;
            fs::metadata(file.path()).is_ok_and(|facts| facts.is_file()).then_some(name)
        });
        named.collect()
    }
}

fn read(path: &Path) -> std::io::Result<String> {
    // Opening a pipe would wait for somebody to write.
    if !fs::metadata(path)?.is_file() {
        return Err(ErrorKind::InvalidInput.into());
    }
    let mut text = String::new();
    let length = File::open(path)?.take(MOST_BYTES + 1).read_to_string(&mut text)?;
    if length as u64 > MOST_BYTES { Err(ErrorKind::FileTooLarge.into()) } else { Ok(text) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_is_read_through_links_and_without_its_last_line_break() {
        let folder = tempfile::tempdir().unwrap();
        let acme = Tenant::parse("acme").unwrap();
        let home = folder.path().join("acme");
        // As a mount looks: the file is a link into a folder that is a link.
        fs::create_dir_all(home.join("..2026")).unwrap();
        fs::write(home.join("..2026/pull"), "first\n").unwrap();
        std::os::unix::fs::symlink("..2026", home.join("..data")).unwrap();
        std::os::unix::fs::symlink("..data/pull", home.join("pull")).unwrap();
        for (name, text) in [("two", "a\n\n"), ("dos", "a\r\n"), ("none", "\n"), ("empty", "")] {
            fs::write(home.join(name), text).unwrap();
        }
        fs::write(home.join("bytes"), [0xff, 0xfe]).unwrap();
        fs::write(home.join("huge"), "x".repeat(256 * 1024 + 1)).unwrap();
        fs::create_dir(home.join("folder")).unwrap();
        std::os::unix::fs::symlink("..data/gone", home.join("dangling")).unwrap();

        let files = Files::at(folder.path().to_owned());
        let find = |name: &str| files.find(&acme, name).map(|found| found.map(|value| value.expose().to_owned()));
        assert_eq!(find("pull"), Ok(Some("first".into())));
        assert_eq!(find("two"), Ok(Some("a\n".into())));
        assert_eq!(find("dos"), Ok(Some("a".into())));
        assert_eq!(find("absent"), Ok(None));
        for bad in ["none", "empty", "bytes", "huge", "folder", "dangling"] {
            assert_eq!(find(bad), Err(UnusableFile), "{bad}");
        }
        let mut names = files.names(&acme);
        names.sort_unstable();
        assert_eq!(names, ["bytes", "dos", "empty", "huge", "none", "pull", "two"]);
        assert!(files.names(&Tenant::parse("globex").unwrap()).is_empty());
    }
}
