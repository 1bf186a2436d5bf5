//! The project a command is started in: every `quartermaster.yaml` from the working directory upwards.

use std::path::{Path, PathBuf};

/// The file that makes a folder a project.
pub const FILE: &str = "quartermaster.yaml";

/// Where a command was started, and which files hold there.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Project {
    root: PathBuf,
    files: Vec<PathBuf>,
}

impl Project {
    /// Looks for files from this folder upwards.
    pub fn find(folder: &Path) -> Project {
        let files: Vec<PathBuf> =
            folder.ancestors().map(|level| level.join(FILE)).filter(|file| file.is_file()).collect();
        let nearest = files.first().and_then(|file| file.parent());
        Project { root: nearest.unwrap_or(folder).to_owned(), files }
    }

    /// The files, the nearest first.
    pub fn files(&self) -> &[PathBuf] {
        &self.files
    }

    /// The folder of the nearest file; without one the folder the command was started in.
    pub fn root(&self) -> &Path {
        &self.root
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;

    #[test]
    fn files_are_found_upwards_and_the_nearest_comes_first() {
        let folder = tempfile::tempdir().unwrap();
        let (top, inner) = (folder.path().join("shop"), folder.path().join("shop/cart/src"));
        fs::create_dir_all(&inner).unwrap();
        let nothing = Project::find(&inner);
        assert_eq!((nothing.files(), nothing.root()), (&[][..], inner.as_path()));

        fs::write(top.join(FILE), "").unwrap();
        fs::write(top.join("cart").join(FILE), "").unwrap();
        fs::create_dir(inner.join(FILE)).unwrap(); // a folder of that name is no such file
        let project = Project::find(&inner);
        assert_eq!(project.files(), [top.join("cart").join(FILE), top.join(FILE)]);
        assert_eq!(project.root(), top.join("cart"));
        assert_eq!(Project::find(&top).files(), [top.join(FILE)]);
    }
}
