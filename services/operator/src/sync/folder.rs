//! The files of the gateway: one text for each tenant, and a folder for each tenant's secrets.
//!
//! The folders are this program's alone: it marks them when they are empty, and touches none that holds something and has
//! no mark. A file is put in its place whole, and only if it says something else; what is no longer wanted is removed.

use std::collections::{BTreeMap, BTreeSet};
use std::fs::{self, OpenOptions};
use std::io::{self, ErrorKind, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

/// The mark of a folder that is ours. Hidden, so that the gateway does not look at it.
const MARK: &str = ".quartermaster-sync";

/// The names and contents of a folder's files.
pub type FileContents = BTreeMap<String, Vec<u8>>;

/// The two folders.
#[derive(Debug, Clone)]
pub struct SyncFolders {
    /// Texts.
    pub tenants: PathBuf,
    /// Secrets.
    pub secrets: PathBuf,
}

impl SyncFolders {
    /// Makes the folders, and sees to it that they are nobody else's.
    pub fn claim(&self) -> io::Result<()> {
        for folder in [&self.tenants, &self.secrets] {
            fs::create_dir_all(folder)?;
            if folder.join(MARK).exists() {
                continue;
            }
            if fs::read_dir(folder)?.next().is_some() {
                let message = format!("{} holds files that are not ours; give sync an empty folder", folder.display());
                return Err(io::Error::new(ErrorKind::AlreadyExists, message));
            }
            fs::write(folder.join(MARK), "what is in here is written and removed by quartermaster-operator sync\n")?;
        }
        Ok(())
    }

    /// Makes the texts be these; tells how many files were written or removed.
    pub fn write_texts(&self, texts: &BTreeMap<String, String>) -> io::Result<usize> {
        let files = texts.iter().map(|(tenant, text)| (format!("{tenant}.yaml"), text.clone().into_bytes())).collect();
        replace_all(&self.tenants, &files)
    }

    /// Makes the secrets of each tenant be these. A tenant that is not named has none.
    pub fn write_secrets(&self, secrets: &BTreeMap<String, FileContents>) -> io::Result<usize> {
        let mut changes = 0;
        for (tenant, files) in secrets.iter().filter(|(_, files)| !files.is_empty()) {
            let folder = self.secrets.join(tenant);
            fs::create_dir_all(&folder)?;
            changes += replace_all(&folder, files)?;
        }
        for entry in fs::read_dir(&self.secrets)? {
            let entry = entry?;
            let is_wanted =
                entry.file_name().to_str().is_some_and(|name| secrets.get(name).is_some_and(|files| !files.is_empty()));
            if !is_wanted && entry.file_type()?.is_dir() {
                fs::remove_dir_all(entry.path())?;
                changes += 1;
            }
        }
        Ok(changes)
    }
}

/// Whether a name can be that of a secret's file, and nothing else.
pub fn is_file_name(name: &str) -> bool {
    let is_good = |byte: u8| byte.is_ascii_alphanumeric() || b"-_.".contains(&byte);
    (1..=253).contains(&name.len()) && !name.starts_with('.') && name.bytes().all(is_good)
}

fn replace_all(folder: &Path, files: &FileContents) -> io::Result<usize> {
    fs::create_dir_all(folder)?;
    let mut changes = 0;
    for (name, contents) in files {
        let path = folder.join(name);
        if fs::read(&path).is_ok_and(|now| now == *contents) {
            continue;
        }
        // Hidden, so that nobody takes it for a file of the folder.
        let fresh = folder.join(format!(".fresh-{name}"));
        remove(&fresh)?;
        OpenOptions::new().write(true).create_new(true).mode(0o600).open(&fresh)?.write_all(contents)?;
        fs::rename(&fresh, &path)?;
        changes += 1;
    }
    let there: BTreeSet<String> =
        fs::read_dir(folder)?.filter_map(|entry| entry.ok()?.file_name().into_string().ok()).collect();
    for name in there.iter().filter(|name| !files.contains_key(*name) && name.as_str() != MARK) {
        remove(&folder.join(name))?;
        changes += 1;
    }
    Ok(changes)
}

fn remove(path: &Path) -> io::Result<()> {
    match fs::remove_file(path) {
        Err(error) if error.kind() != ErrorKind::NotFound => Err(error),
        _ => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn folders_hold_what_is_wanted_and_nothing_else() {
        let place = std::env::temp_dir().join(format!("quartermaster-sync-{}", std::process::id()));
        let folders = SyncFolders { tenants: place.join("tenants"), secrets: place.join("secrets") };
        fs::create_dir_all(&folders.tenants).unwrap();
        fs::write(folders.tenants.join("theirs.txt"), "x").unwrap();
        assert_eq!(folders.claim().unwrap_err().kind(), ErrorKind::AlreadyExists);
        fs::remove_file(folders.tenants.join("theirs.txt")).unwrap();
        folders.claim().unwrap();
        fs::write(folders.tenants.join("gone.yaml"), "x").unwrap();
        folders.claim().unwrap();
        fs::write(folders.tenants.join(".fresh-shop.yaml"), "half").unwrap();
        let texts = BTreeMap::from([("shop".to_owned(), "tenant: shop\n".to_owned())]);
        assert_eq!(folders.write_texts(&texts).unwrap(), 2);
        assert_eq!(folders.write_texts(&texts).unwrap(), 0, "nothing differs");
        let mut there: Vec<_> =
            fs::read_dir(&folders.tenants).unwrap().map(|entry| entry.unwrap().file_name()).collect();
        there.sort();
        assert_eq!(there, [MARK, "shop.yaml"]);
        let secrets = BTreeMap::from([("shop".to_owned(), FileContents::from([("token".to_owned(), b"t".to_vec())]))]);
        assert_eq!(folders.write_secrets(&secrets).unwrap(), 1);
        assert_eq!(folders.write_secrets(&secrets).unwrap(), 0);
        use std::os::unix::fs::PermissionsExt;
        assert_eq!(fs::metadata(folders.secrets.join("shop/token")).unwrap().permissions().mode() & 0o777, 0o600);
        assert_eq!(folders.write_secrets(&BTreeMap::new()).unwrap(), 1);
        assert!(!folders.secrets.join("shop").exists());
        fs::remove_dir_all(place).unwrap();
    }

    #[test]
    fn no_name_leads_out_of_the_folder() {
        for bad in ["", ".", "..", "a/b", "../a", ".hidden", "a\0b", "é"] {
            assert!(!is_file_name(bad), "{bad:?}");
        }
        assert!(is_file_name("server.notes.token") && is_file_name("-x_1"));
    }
}
