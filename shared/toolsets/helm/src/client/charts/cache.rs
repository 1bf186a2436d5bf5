//! Archives on disk, by tenant and sha256, because helm reads a file.
//!
//! A digest is no secret, so it opens nothing for another tenant: each has a folder of its own. What is read back is
//! hashed again. Both a tenant's folder and all of them together have a bound; the oldest go first, except those that a
//! call still holds, whose number is bounded by the calls under way.

use super::archive::ChartContents;
use domain::Tenant;
use domain::json::sha256_hex;
use std::collections::HashMap;
use std::fs::{self, DirBuilder, File, OpenOptions};
use std::io::{self, Read, Write};
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError, Weak};
use std::time::SystemTime;

/// What one tenant may have lying there.
const MOST_OF_TENANT: u64 = 128 << 20;
/// What all tenants together may have.
const MOST_OF_ALL: u64 = 1 << 30;

/// A chart's archive, checked and at hand. The file stays as long as this does.
#[derive(Debug, Clone)]
pub struct Archive {
    /// Where helm finds it.
    pub path: PathBuf,
    /// Its digest, in hex.
    pub sha256: String,
    /// The chart's name.
    pub name: String,
    /// The chart's version.
    pub version: String,
    /// What is inside.
    pub contents: Arc<ChartContents>,
    _held: Arc<()>,
}

#[derive(Debug)]
pub(in crate::client) struct Cache {
    folder: PathBuf,
    held: Mutex<HashMap<PathBuf, Weak<()>>>,
}

impl Cache {
    /// A cache in this folder, which is made with the first archive, for nobody else's eyes.
    pub(in crate::client) fn at(folder: PathBuf) -> Cache {
        Cache { folder, held: Mutex::default() }
    }

    /// The bytes with this digest, if the tenant has them.
    pub(in crate::client) fn find(&self, tenant: &Tenant, sha256: &str) -> Option<Vec<u8>> {
        let mut bytes = Vec::new();
        let most = super::archive::MOST_BYTES as u64 + 1;
        File::open(self.place(tenant, sha256)).ok()?.take(most).read_to_end(&mut bytes).ok()?;
        (sha256_hex(&bytes) == sha256).then_some(bytes)
    }

    /// Keeps the bytes and hands the archive out.
    pub(in crate::client) fn keep(
        &self,
        tenant: &Tenant,
        bytes: &[u8],
        contents: ChartContents,
    ) -> io::Result<Archive> {
        let sha256 = sha256_hex(bytes);
        let path = self.place(tenant, &sha256);
        let held = self.hold(&path);
        if self.find(tenant, &sha256).is_none() {
            private_folder(&self.folder.join(tenant.as_str()))?;
            write_whole(&path, bytes)?;
            self.shrink(&self.folder.join(tenant.as_str()), MOST_OF_TENANT);
            self.shrink(&self.folder, MOST_OF_ALL);
        }
        let (name, version) = (contents.name.clone(), contents.version.clone());
        Ok(Archive { path, sha256, name, version, contents: Arc::new(contents), _held: held })
    }

    fn place(&self, tenant: &Tenant, sha256: &str) -> PathBuf {
        self.folder.join(tenant.as_str()).join(format!("{sha256}.tgz"))
    }

    fn hold(&self, path: &Path) -> Arc<()> {
        let mut held = self.held.lock().unwrap_or_else(PoisonError::into_inner);
        held.retain(|_, hold| hold.strong_count() > 0);
        if let Some(hold) = held.get(path).and_then(Weak::upgrade) {
            return hold;
        }
        let hold = Arc::new(());
        held.insert(path.to_owned(), Arc::downgrade(&hold));
        hold
    }

    /// Lets the oldest go until the rest fits. What cannot be looked at or removed is left to the next time.
    fn shrink(&self, folder: &Path, most: u64) {
        let mut files = Vec::new();
        collect(folder, 2, &mut files);
        let mut all: u64 = files.iter().map(|file| file.bytes).sum();
        files.sort_by_key(|file| file.since);
        for file in files {
            if all <= most {
                break;
            }
            let held = self.held.lock().unwrap_or_else(PoisonError::into_inner);
            let free = held.get(&file.path).is_none_or(|hold| hold.strong_count() == 0);
            if free && fs::remove_file(&file.path).is_ok() {
                all -= file.bytes;
            }
        }
    }
}

struct CachedArchive {
    path: PathBuf,
    bytes: u64,
    since: SystemTime,
}

fn collect(folder: &Path, depth: usize, files: &mut Vec<CachedArchive>) {
    for entry in fs::read_dir(folder).into_iter().flatten().flatten() {
        let Ok(facts) = entry.metadata() else { continue };
        if facts.is_dir() && depth > 0 {
            collect(&entry.path(), depth - 1, files);
        } else if facts.is_file() {
            let since = facts.modified().unwrap_or(SystemTime::UNIX_EPOCH);
            files.push(CachedArchive { path: entry.path(), bytes: facts.len(), since });
        }
    }
}

fn private_folder(path: &Path) -> io::Result<()> {
    DirBuilder::new().recursive(true).mode(0o700).create(path)
}

/// Written beside and moved into place, so that nobody ever reads half of it.
fn write_whole(path: &Path, bytes: &[u8]) -> io::Result<()> {
    static COUNT: AtomicU64 = AtomicU64::new(0);
    let beside = path.with_extension(format!("{}-{}.part", std::process::id(), COUNT.fetch_add(1, Ordering::Relaxed)));
    let written = OpenOptions::new().write(true).create_new(true).mode(0o600).open(&beside).and_then(|mut file| {
        file.write_all(bytes)?;
        fs::rename(&beside, path)
    });
    written.inspect_err(|_| drop(fs::remove_file(&beside)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::Value;
    use std::os::unix::fs::PermissionsExt;

    fn contents() -> ChartContents {
        let (name, version) = ("web".to_owned(), "1.0.0".to_owned());
        ChartContents {
            name,
            version,
            metadata: Value::Null,
            values: None,
            readme: None,
            crds: vec![],
            evaluates_texts: false,
            may_look_up: false,
        }
    }

    fn tenant(slug: &str) -> Tenant {
        Tenant::parse(slug).expect("a slug")
    }

    #[test]
    fn a_digest_opens_nothing_for_another_tenant() {
        let folder = tempfile::tempdir().unwrap();
        let cache = Cache::at(folder.path().join("charts"));
        let kept = cache.keep(&tenant("acme"), b"archive", contents()).unwrap();

        assert_eq!(cache.find(&tenant("acme"), &kept.sha256).as_deref(), Some(&b"archive"[..]));
        assert_eq!(cache.find(&tenant("beta"), &kept.sha256), None);
        let mode = |path: &Path| fs::metadata(path).unwrap().permissions().mode() & 0o777;
        assert_eq!((mode(&kept.path), mode(kept.path.parent().unwrap())), (0o600, 0o700));
    }

    #[test]
    fn what_was_changed_on_disk_is_not_handed_out() {
        let folder = tempfile::tempdir().unwrap();
        let cache = Cache::at(folder.path().to_owned());
        let kept = cache.keep(&tenant("acme"), b"archive", contents()).unwrap();
        fs::write(&kept.path, b"evil").unwrap();

        assert_eq!(cache.find(&tenant("acme"), &kept.sha256), None);
        let again = cache.keep(&tenant("acme"), b"archive", contents()).unwrap();
        assert_eq!(fs::read(again.path).unwrap(), b"archive");
    }

    #[test]
    fn the_oldest_go_first_and_what_is_held_stays() {
        let folder = tempfile::tempdir().unwrap();
        let cache = Cache::at(folder.path().to_owned());
        let acme = tenant("acme");
        let kept: Vec<Archive> =
            [b"one", b"two", b"six"].iter().map(|b| cache.keep(&acme, *b, contents()).unwrap()).collect();
        for (n, archive) in kept.iter().enumerate() {
            let since = SystemTime::UNIX_EPOCH + std::time::Duration::from_secs(n as u64);
            File::options().write(true).open(&archive.path).unwrap().set_modified(since).unwrap();
        }
        let (held, paths) = (kept[0].clone(), kept.iter().map(|k| k.path.clone()).collect::<Vec<_>>());
        drop(kept);

        cache.shrink(folder.path(), 6);

        assert_eq!(paths.iter().map(|path| path.exists()).collect::<Vec<_>>(), [true, false, true]);
        drop(held);
        cache.shrink(folder.path(), 0);
        assert!(paths.iter().all(|path| !path.exists()));
    }
}
