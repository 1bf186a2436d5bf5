//! Notices that files of a folder were written, by what the system tells of it.
//!
//! Only *that* something happened is kept: what it was is found by looking. Where the system tells nothing, such as on
//! some network mounts, the periodic look is what finds changes.

use std::path::PathBuf;

#[cfg(target_os = "linux")]
pub(super) use linux::FolderEvents;
#[cfg(not(target_os = "linux"))]
pub(super) use other::FolderEvents;

#[cfg(target_os = "linux")]
mod linux {
    use super::PathBuf;
    use rustix::fs::inotify::{self, CreateFlags, Reader, WatchFlags};
    use std::mem::MaybeUninit;
    use std::os::fd::OwnedFd;
    use tokio::io::unix::AsyncFd;

    /// Hears of changes in some folders.
    pub(in crate::tenants) struct FolderEvents {
        events: AsyncFd<OwnedFd>,
    }

    impl FolderEvents {
        /// Begins to listen; `None` where the system gives no events. To be called inside the runtime.
        #[expect(
            deprecated,
            reason = "its successor is unsafe; this value owns the descriptor to its end, as is asked for"
        )]
        pub(in crate::tenants) fn begin() -> Option<FolderEvents> {
            let events = inotify::init(CreateFlags::NONBLOCK | CreateFlags::CLOEXEC);
            let events = events.map_err(std::io::Error::from).and_then(AsyncFd::new);
            if let Err(error) = &events {
                tracing::warn!(%error, "the system tells nothing of changed files; folders are looked at more often");
            }
            events.ok().map(|events| FolderEvents { events })
        }

        /// Watches these folders, those included that appeared since the last time. Tells whether all are watched.
        pub(in crate::tenants) fn watch(&self, folders: &[PathBuf]) -> bool {
            // Not every single write: what was written whole is closed, or put in its place by a rename.
            let flags = WatchFlags::CLOSE_WRITE
                | WatchFlags::CREATE
                | WatchFlags::DELETE
                | WatchFlags::MOVED_FROM
                | WatchFlags::MOVED_TO
                | WatchFlags::ATTRIB
                | WatchFlags::ONLYDIR;
            // One that cannot be watched keeps none of the others from it.
            let refused = folders
                .iter()
                .filter(|folder| inotify::add_watch(self.events.get_ref(), folder.as_path(), flags).is_err());
            refused.count() == 0
        }

        /// Waits until something happened, and forgets what it was.
        pub(in crate::tenants) async fn changed(&self) {
            loop {
                let Ok(mut ready) = self.events.readable().await else { return std::future::pending().await };
                let mut buffer = [MaybeUninit::uninit(); 4096];
                let mut reader = Reader::new(self.events.get_ref(), &mut buffer);
                let mut heard = false;
                while reader.next().is_ok() {
                    heard = true;
                }
                ready.clear_ready();
                if heard {
                    return;
                }
            }
        }
    }
}

#[cfg(not(target_os = "linux"))]
mod other {
    use super::PathBuf;

    /// Hears of nothing.
    pub(in crate::tenants) struct FolderEvents;

    impl FolderEvents {
        pub(in crate::tenants) fn begin() -> Option<FolderEvents> {
            None
        }

        pub(in crate::tenants) fn watch(&self, _: &[PathBuf]) -> bool {
            false
        }

        pub(in crate::tenants) async fn changed(&self) {
            std::future::pending().await
        }
    }
}
