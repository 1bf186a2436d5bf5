//! Where one call of helm lives: a folder nobody else can look into, removed afterwards.
//!
//! It holds the credentials of one cluster for as long as helm runs. Should this process be killed, helm is not told; so
//! each folder says who made it and which process lives in it, and the next start ends and removes what has no owner.
//! In a container there is nothing to find: the kernel ends everything when the first process ends.

use crate::client::group::ProcessIdentity;
use std::io;
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};

/// The folder of all private folders.
const RUN: &str = "run";
const OWNER: &str = "owner";
const CHILD: &str = "child";

/// A folder for one call.
#[derive(Debug)]
pub(in crate::client) struct Private {
    folder: PathBuf,
}

impl Private {
    /// Makes one below `cache`.
    pub(in crate::client) fn make(cache: &Path) -> io::Result<Private> {
        static COUNT: AtomicU64 = AtomicU64::new(0);
        let run = cache.join(RUN);
        make_folder(&run, true)?;
        // Its name is used once in the life of a process, and another process has another number.
        let own = ProcessIdentity::own().ok_or(io::ErrorKind::Unsupported)?;
        let count = COUNT.fetch_add(1, Ordering::Relaxed);
        let folder = run.join(format!("{}-{count}", own.line().replace([' ', ':', '[', ']', '@', '/'], "_")));
        make_folder(&folder, false)?;
        let private = Private { folder };
        for name in ["home", "cache", "config", "data", "plugins", "tmp", "cwd", "out"] {
            make_folder(&private.path(name), false)?;
        }
        private.file(OWNER, own.line().as_bytes())?;
        Ok(private)
    }

    /// A path in it.
    pub(in crate::client) fn path(&self, name: &str) -> PathBuf {
        self.folder.join(name)
    }

    /// Writes a file only we can read, and gives its path.
    pub(in crate::client) fn file(&self, name: &str, contents: &[u8]) -> io::Result<PathBuf> {
        let path = self.path(name);
        let mut file = std::fs::OpenOptions::new().write(true).create_new(true).mode(0o600).open(&path)?;
        io::Write::write_all(&mut file, contents)?;
        Ok(path)
    }

    /// Notes down who lives here.
    pub(in crate::client) fn inhabited_by(&self, pid: Option<u32>) -> io::Result<()> {
        match pid.and_then(ProcessIdentity::of) {
            Some(child) => self.file(CHILD, child.line().as_bytes()).map(|_| ()),
            None => Ok(()),
        }
    }
}

impl Drop for Private {
    /// A handful of small files: done before anybody could be told to wait for it.
    fn drop(&mut self) {
        if let Err(error) = std::fs::remove_dir_all(&self.folder) {
            tracing::warn!(%error, "a private folder of helm was not removed");
        }
    }
}

/// Ends and removes what processes left behind that are no more. Gives how many folders there were.
pub(in crate::client) fn sweep(cache: &Path) -> usize {
    let Ok(entries) = std::fs::read_dir(cache.join(RUN)) else { return 0 };
    let mut swept = 0;
    for folder in entries.flatten().map(|entry| entry.path()) {
        let Some(owner) = ProcessIdentity::read(&folder.join(OWNER)) else { continue };
        // One that lives where we cannot see is left to its own kind.
        if !owner.is_near() || owner.is_alive() {
            continue;
        }
        if let Some(child) = ProcessIdentity::read(&folder.join(CHILD)) {
            child.kill_group();
        }
        drop(Private { folder });
        swept += 1;
    }
    swept
}

fn make_folder(path: &Path, may_exist: bool) -> io::Result<()> {
    std::fs::DirBuilder::new().mode(0o700).recursive(may_exist).create(path)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::PermissionsExt;

    #[test]
    fn a_private_folder_is_ours_alone_and_goes() {
        let cache = tempfile::tempdir().unwrap();
        let private = Private::make(cache.path()).unwrap();
        let file = private.file("kubeconfig", b"secret").unwrap();
        let mode = |path: &Path| std::fs::metadata(path).unwrap().permissions().mode() & 0o777;
        assert_eq!((mode(&private.folder), mode(&file), mode(&private.path("home"))), (0o700, 0o600, 0o700));
        let folder = private.folder.clone();
        assert_eq!(sweep(cache.path()), 0, "its owner lives");
        drop(private);
        assert!(!folder.exists());
    }

    #[test]
    fn what_a_dead_process_left_is_swept_and_what_lives_elsewhere_is_not() {
        let cache = tempfile::tempdir().unwrap();
        let own = ProcessIdentity::own().unwrap().line();
        let mut words = own.split(' ');
        let (pid, _, space) = (words.next().unwrap(), words.next().unwrap(), words.next().unwrap());
        let left = |name: &str, owner: String| {
            let folder = cache.path().join(RUN).join(name);
            std::fs::create_dir_all(&folder).unwrap();
            std::fs::write(folder.join(OWNER), owner).unwrap();
            folder
        };
        let dead = left("dead", format!("{pid} 1 {space}"));
        let elsewhere = left("elsewhere", format!("{pid} 1 pid:[1]@another"));
        assert_eq!(sweep(cache.path()), 1);
        assert!(!dead.exists() && elsewhere.exists());
    }
}
