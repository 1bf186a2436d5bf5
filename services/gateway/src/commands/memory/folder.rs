//! A folder of documents: `<path>.md` for each, and nothing outside the folder is read or written.
//!
//! Symbolic links are refused everywhere: they can lead to somebody else's file.

use super::file::MOST_HEAD;
use anyhow::{Context, bail};
use memory::documents::{DocPath, DocumentScope, Prefix};
use std::fs::{self, DirBuilder, File, OpenOptions};
use std::io::{ErrorKind, Read, Write};
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

/// The largest file that can be a document.
const MOST_BYTES: u64 = (memory::documents::scan::MOST_BYTES + MOST_HEAD) as u64;
/// How many documents a folder may hold; the largest scope holds fewer.
const MOST_FILES: usize = 5_000;

/// A file that may be a document.
pub(super) struct FolderFile {
    /// The path of the document.
    pub(super) path: DocPath,
    /// Its text, or why it was not read.
    pub(super) text: Result<String, String>,
}

/// The contents of a folder.
pub(super) struct DocumentFolder {
    /// Every document's file, in the order of their paths.
    pub(super) files: Vec<FolderFile>,
    /// Every file that cannot be a document, and why.
    pub(super) unusable: Vec<(PathBuf, String)>,
}

/// Looks through a folder for documents under a prefix.
pub(super) fn read(root: &Path, prefix: &Prefix) -> anyhow::Result<DocumentFolder> {
    let mut walk = FolderWalk { root, prefix, files: Vec::new(), unusable: Vec::new() };
    walk.descend(Path::new(""), 0)?;
    let FolderWalk { mut files, mut unusable, .. } = walk;
    files.sort_by(|a, b| a.path.cmp(&b.path));
    unusable.sort();
    Ok(DocumentFolder { files, unusable })
}

struct FolderWalk<'a> {
    root: &'a Path,
    prefix: &'a Prefix,
    files: Vec<FolderFile>,
    unusable: Vec<(PathBuf, String)>,
}

impl FolderWalk<'_> {
    fn descend(&mut self, below: &Path, depth: usize) -> anyhow::Result<()> {
        let folder = self.root.join(below);
        let cannot = || format!("cannot read {}", folder.display());
        for entry in fs::read_dir(&folder).with_context(cannot)? {
            let entry = entry.with_context(cannot)?;
            let (name, kind) = (entry.file_name(), entry.file_type().with_context(cannot)?);
            let place = below.join(&name);
            if name.to_string_lossy().starts_with('.') {
                continue;
            }
            if kind.is_symlink() {
                self.unusable.push((place, "it is a symbolic link".to_owned()));
            } else if kind.is_dir() && depth < memory::documents::path::MOST_SEGMENTS {
                self.descend(&place, depth + 1)?;
            } else if kind.is_file() && place.extension().is_some_and(|end| end == "md") {
                self.file(&place)?;
            }
        }
        Ok(())
    }

    fn file(&mut self, place: &Path) -> anyhow::Result<()> {
        if self.files.len() >= MOST_FILES {
            bail!("the folder holds more than {MOST_FILES} documents");
        }
        let path = place.with_extension("");
        match path.to_str().map(DocPath::parse) {
            Some(Ok(path)) if path.scope() != DocumentScope::Tenant => {
                self.unusable.push((place.to_owned(), "only documents of the tenant are kept as files".to_owned()));
            }
            Some(Ok(path)) if self.prefix.holds(path.as_str()) => {
                let text = text(&self.root.join(place));
                self.files.push(FolderFile { path, text });
            }
            Some(Ok(_)) => {}
            Some(Err(error)) => self.unusable.push((place.to_owned(), error.to_string())),
            None => self.unusable.push((place.to_owned(), "its name is not UTF-8".to_owned())),
        }
        Ok(())
    }
}

fn text(file: &Path) -> Result<String, String> {
    let mut bytes = Vec::new();
    let opened = File::open(file).map_err(|error| format!("it cannot be read: {error}"))?;
    opened.take(MOST_BYTES + 1).read_to_end(&mut bytes).map_err(|error| format!("it cannot be read: {error}"))?;
    if bytes.len() as u64 > MOST_BYTES {
        return Err(format!("it has more than {MOST_BYTES} bytes"));
    }
    String::from_utf8(bytes).map_err(|_| "it is not UTF-8".to_owned())
}

/// The file of a document within the folder.
pub(super) fn place(path: &DocPath) -> PathBuf {
    PathBuf::from(format!("{path}.md"))
}

/// Writes a document's file, whole or not at all.
pub(super) fn write(root: &Path, path: &DocPath, text: &str) -> anyhow::Result<()> {
    let place = place(path);
    let file = root.join(&place);
    let cannot = || format!("cannot write {}", file.display());
    real_folders(root, place.parent().unwrap_or(Path::new("")))?;
    let name = file.file_name().unwrap_or_default().to_string_lossy();
    let draft = file.with_file_name(format!(".{name}.partial"));
    // A draft that was left behind, or a link that was laid there, is not written through.
    match fs::remove_file(&draft) {
        Err(error) if error.kind() != ErrorKind::NotFound => return Err(error).with_context(cannot),
        Ok(()) | Err(_) => {}
    }
    let written = (|| {
        let mut out = OpenOptions::new().write(true).create_new(true).mode(0o600).open(&draft)?;
        out.write_all(text.as_bytes())?;
        out.sync_all()?;
        fs::rename(&draft, &file)
    })();
    if written.is_err() {
        // The failure is reported; a draft that stays behind is only untidy.
        fs::remove_file(&draft).ok();
    }
    written.with_context(cannot)
}

/// Creates the folders that are missing, and refuses those that are links.
fn real_folders(root: &Path, below: &Path) -> anyhow::Result<()> {
    let cannot = |folder: &Path| format!("cannot make {}", folder.display());
    DirBuilder::new().recursive(true).mode(0o700).create(root).with_context(|| cannot(root))?;
    let mut folder = root.to_owned();
    for part in below.components() {
        folder.push(part);
        match folder.symlink_metadata() {
            Ok(metadata) if metadata.is_dir() => {}
            Ok(_) => bail!("{} is not a folder, or is a symbolic link", folder.display()),
            Err(_) => DirBuilder::new().mode(0o700).create(&folder).with_context(|| cannot(&folder))?,
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::{PermissionsExt, symlink};

    fn path(text: &str) -> DocPath {
        DocPath::parse(text).unwrap()
    }

    #[test]
    fn only_their_owner_can_read_exported_documents() {
        let folder = tempfile::tempdir().unwrap();
        let root = folder.path().join("export");
        write(&root, &path("tenant/runbooks/a"), "text").unwrap();
        let mode = |below: &str| fs::metadata(root.join(below)).unwrap().permissions().mode() & 0o777;
        assert_eq!((mode(""), mode("tenant/runbooks"), mode("tenant/runbooks/a.md")), (0o700, 0o700, 0o600));
    }

    fn all() -> Prefix {
        Prefix::of(DocumentScope::Tenant)
    }

    #[test]
    fn documents_are_found_where_they_were_written() {
        let folder = tempfile::tempdir().unwrap();
        write(folder.path(), &path("tenant/runbooks/b.v2"), "two").unwrap();
        write(folder.path(), &path("tenant/runbooks/a/deep"), "one").unwrap();
        write(folder.path(), &path("tenant/services/c"), "three").unwrap();
        write(folder.path(), &path("tenant/services/c"), "four").unwrap();
        fs::write(folder.path().join("README.txt"), "not a document").unwrap();
        let DocumentFolder { files, unusable } = read(folder.path(), &all()).unwrap();
        let read_files: Vec<_> = files.iter().map(|file| (file.path.as_str(), file.text.as_deref().unwrap())).collect();
        let expected =
            [("tenant/runbooks/a/deep", "one"), ("tenant/runbooks/b.v2", "two"), ("tenant/services/c", "four")];
        assert_eq!((read_files.as_slice(), unusable), (expected.as_slice(), Vec::new()));
        let some = Prefix::parse("tenant/services").unwrap();
        assert_eq!(read(folder.path(), &some).unwrap().files.len(), 1);
    }

    #[test]
    fn links_and_names_that_are_no_paths_are_refused() {
        let (folder, outside) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
        fs::write(outside.path().join("x.md"), "secret").unwrap();
        write(folder.path(), &path("tenant/runbooks/a"), "one").unwrap();
        symlink(outside.path().join("x.md"), folder.path().join("tenant/runbooks/link.md")).unwrap();
        symlink(outside.path(), folder.path().join("tenant/services")).unwrap();
        fs::write(folder.path().join("tenant/runbooks/Shouting.md"), "x").unwrap();
        fs::create_dir_all(folder.path().join("user/notes")).unwrap();
        fs::write(folder.path().join("user/notes/x.md"), "x").unwrap();
        let DocumentFolder { files, unusable } = read(folder.path(), &all()).unwrap();
        assert_eq!(files.len(), 1);
        let names: Vec<_> = unusable.iter().map(|(place, _)| place.display().to_string()).collect();
        assert_eq!(
            names,
            ["tenant/runbooks/Shouting.md", "tenant/runbooks/link.md", "tenant/services", "user/notes/x.md"]
        );

        assert!(write(folder.path(), &path("tenant/services/y"), "z").is_err(), "nothing is written through a link");
        assert!(!outside.path().join("y.md").exists());
        symlink(outside.path().join("x.md"), folder.path().join("tenant/runbooks/.a.md.partial")).unwrap();
        write(folder.path(), &path("tenant/runbooks/a"), "two").unwrap();
        assert_eq!(fs::read_to_string(outside.path().join("x.md")).unwrap(), "secret");
    }

    #[test]
    fn files_that_are_too_large_or_no_text_are_named() {
        let folder = tempfile::tempdir().unwrap();
        let place = |name: &str| folder.path().join("tenant/runbooks").join(name);
        write(folder.path(), &path("tenant/runbooks/large"), &"x".repeat(MOST_BYTES as usize + 1)).unwrap();
        fs::write(place("odd.md"), b"\xff").unwrap();
        let DocumentFolder { files, .. } = read(folder.path(), &all()).unwrap();
        let problems: Vec<_> = files.iter().map(|file| file.text.clone().unwrap_err()).collect();
        assert_eq!(problems, [format!("it has more than {MOST_BYTES} bytes"), "it is not UTF-8".to_owned()]);
    }
}
