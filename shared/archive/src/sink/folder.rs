//! A folder: `<tenant>/<day>/<chunk>.jsonl`.
//!
//! A file of that name is always whole: it is written beside, synced, and renamed. Only the service's user can read it.

use super::{Chunk, SinkError};
use std::fs::{self, DirBuilder, File, OpenOptions};
use std::io::{self, Write};
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

#[derive(Debug)]
pub(super) struct FolderSink {
    root: PathBuf,
}

impl FolderSink {
    pub(super) fn new(root: &Path) -> FolderSink {
        FolderSink { root: root.to_owned() }
    }

    pub(super) async fn put(&self, chunk: &Chunk) -> Result<(), SinkError> {
        let (file, lines) = (self.root.join(chunk.path()), chunk.lines.clone());
        let written = tokio::task::spawn_blocking(move || write(&file, &lines)).await;
        written.unwrap_or_else(|ended| Err(io::Error::other(ended))).map_err(SinkError::Folder)
    }
}

fn write(file: &Path, lines: &[u8]) -> io::Result<()> {
    let folder = file.parent().unwrap_or(file);
    DirBuilder::new().recursive(true).mode(0o700).create(folder)?;
    let draft = file.with_extension("partial");
    let mut open = OpenOptions::new().write(true).create(true).truncate(true).mode(0o600).open(&draft)?;
    open.write_all(lines)?;
    open.sync_all()?;
    fs::rename(&draft, file)?;
    // The name is in the folder, and the folder in its own; each has to be on the disk as well.
    for above in folder.ancestors().take(3) {
        File::open(above)?.sync_all()?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use domain::{Moment, Tenant};
    use std::os::unix::fs::PermissionsExt;

    fn chunk(name: &str, lines: &[u8]) -> Chunk {
        let (tenant, at) = (Tenant::parse("acme").unwrap(), Moment::from_secs(1_763_280_000));
        Chunk { tenant, name: name.to_owned(), at, lines: lines.to_vec() }
    }

    #[tokio::test]
    async fn a_file_is_whole_filed_by_tenant_and_day_and_private() {
        let root = tempfile::tempdir().unwrap();
        let sink = FolderSink::new(&root.path().join("audit"));
        sink.put(&chunk("1-2.jsonl", b"one\n")).await.unwrap();
        sink.put(&chunk("1-2.jsonl", b"two\n")).await.unwrap();
        let day = root.path().join("audit/acme/2025-11-16");
        assert_eq!(fs::read(day.join("1-2.jsonl")).unwrap(), b"two\n", "sent again, it takes its own place");
        assert_eq!(fs::read_dir(&day).unwrap().count(), 1, "no draft is left");
        assert_eq!(fs::metadata(day.join("1-2.jsonl")).unwrap().permissions().mode() & 0o777, 0o600);
        assert_eq!(fs::metadata(&day).unwrap().permissions().mode() & 0o777, 0o700);
    }

    #[tokio::test]
    async fn a_folder_that_cannot_be_written_is_an_error() {
        let root = tempfile::tempdir().unwrap();
        fs::write(root.path().join("audit"), "in the way").unwrap();
        let sink = FolderSink::new(&root.path().join("audit"));
        assert!(matches!(sink.put(&chunk("1-2.jsonl", b"")).await, Err(SinkError::Folder(_))));
    }
}
