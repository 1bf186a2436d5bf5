//! Runbooks of a project on this machine: `quartermaster.yaml`, found upwards from a folder.
//!
//! Every folder on the way to the root that has such a file is a level; the nearest is the first. All runbooks of all
//! levels are listed, and where two levels would give a tool the same name, the nearest keeps it. A file of a level holds
//! the keys `runbooks` and `params`, as a tenant's file does; a runbook that does not say where it runs runs on runners of
//! the label `local`, in the folder of its level.
//!
//! Only reading: nothing here starts anything.

use crate::declaration::Runbook;
use crate::names::{self, RunbookId};
use crate::section::{self, RunbookDefaults};
use domain::job::RunnerLabel;
use std::path::{Path, PathBuf};
use tenancy::Problem;
use tenancy::book::{label, text_of};

/// The file of a level.
pub const MANIFEST: &str = "quartermaster.yaml";
/// The label of runners on this machine.
pub const LOCAL_LABEL: &str = "local";
/// How many levels are looked at; nobody nests projects deeper.
const MOST_LEVELS: usize = 16;
/// How many folders are looked into on the way to the root.
const MOST_FOLDERS: usize = 256;

/// What the files of a project say.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct LocalRunbooks {
    /// The files, the nearest first.
    pub files: Vec<PathBuf>,
    /// The runbooks of all levels, the nearest first, each with the name of its tool.
    pub runbooks: Vec<Runbook>,
    /// What is wrong with files; their runbooks are left out.
    pub problems: Vec<Problem>,
    /// What is allowed and somebody should look at.
    pub warnings: Vec<Problem>,
}

impl LocalRunbooks {
    /// Reads every level from this folder upwards.
    pub fn find(folder: &Path) -> LocalRunbooks {
        let mut found = LocalRunbooks::default();
        let mut ids = Vec::new();
        for file in files(folder) {
            let level = found.files.len();
            match level_of(&file) {
                Ok((runbooks, warnings)) => {
                    found.warnings.extend(warnings);
                    for runbook in runbooks {
                        let folder = file.parent().unwrap_or(Path::new("")).display().to_string();
                        let (group, name) = (runbook.text.group.clone(), runbook.text.name.clone());
                        ids.push(RunbookId { level, folder, group, name });
                        found.runbooks.push(runbook);
                    }
                }
                Err(problems) => found.problems.extend(problems),
            }
            found.files.push(file);
        }
        let names = names::tool_names(&ids);
        for (runbook, name) in found.runbooks.iter_mut().zip(names) {
            if let Some(name) = name {
                runbook.tool = name;
            }
        }
        found
    }
}

/// The files of all levels from this folder upwards, the nearest first.
pub fn files(folder: &Path) -> Vec<PathBuf> {
    let candidates = folder.ancestors().take(MOST_FOLDERS).map(|folder| folder.join(MANIFEST));
    candidates.filter(|file| file.is_file()).take(MOST_LEVELS).collect()
}

/// The runbooks of one level, and what they are warned of.
fn level_of(file: &Path) -> Result<(Vec<Runbook>, Vec<Problem>), Vec<Problem>> {
    let file_label = label(file);
    let text = text_of(file, &file_label)?;
    let folder = file.parent().unwrap_or(Path::new("/"));
    let group = folder.file_name().map(|name| name.to_string_lossy().chars().filter(|c| *c != '/').collect());
    let defaults = RunbookDefaults {
        group,
        runner: RunnerLabel::parse(LOCAL_LABEL),
        directory: Some(folder.display().to_string()),
    };
    let (values, warnings) = tenancy::parse_section(&file_label, &text, &section::with_defaults(defaults))?;
    let runbooks = values.get::<Vec<Runbook>>(section::KEY).ok().flatten().cloned().unwrap_or_default();
    Ok((runbooks, warnings))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;

    fn write(folder: &Path, text: &str) {
        fs::create_dir_all(folder).unwrap();
        fs::write(folder.join(MANIFEST), text).unwrap();
    }

    #[test]
    fn every_level_is_listed_the_nearest_first_and_names_differ() {
        let root = tempfile::tempdir().unwrap();
        let (outer, inner) = (root.path().join("shop"), root.path().join("shop/web/src"));
        write(
            &outer,
            "runbooks:\n  - { name: migrate, group: db, run: [\"/bin/outer\"] }\n  - { name: seed, run: [\"a\"] }\n",
        );
        write(&outer.join("web"), "runbooks:\n  - { name: migrate, group: db, run: [\"/bin/inner\"] }\n");
        fs::create_dir_all(&inner).unwrap();
        let found = LocalRunbooks::find(&inner);
        assert_eq!(found.problems, []);
        assert_eq!(found.files, [outer.join("web").join(MANIFEST), outer.join(MANIFEST)]);
        let names: Vec<&str> = found.runbooks.iter().map(|one| one.tool.as_str()).collect();
        assert_eq!(names[0], "runbook__db__migrate");
        assert!(names[1].starts_with("runbook__db__migrate_"), "{names:?}");
        assert_eq!(names[2], "runbook__shop__seed", "the folder is the group where none is named");
        assert_eq!(found.runbooks[0].text.run, ["/bin/inner"]);
        let folder = outer.join("web").display().to_string();
        assert_eq!(found.runbooks[0].text.directory.as_deref(), Some(folder.as_str()));
        assert_eq!(found.runbooks[0].place.target(), "runner/local");
    }

    #[test]
    fn a_file_with_a_mistake_costs_its_own_level_only() {
        let root = tempfile::tempdir().unwrap();
        let inner = root.path().join("a");
        write(root.path(), "runbooks:\n  - { name: ok, run: [\"true\"] }\n");
        write(&inner, "runbooks:\n  - { name: bad, run: [\"sh\", \"{{ args.nope }}\"] }\n");
        let found = LocalRunbooks::find(&inner);
        let problem = &found.problems[0];
        assert_eq!((problem.line, problem.column, problem.code), (2, 30, "unknown_argument"));
        assert_eq!(found.runbooks.len(), 1);
    }

    #[test]
    fn without_a_file_there_is_nothing() {
        let root = tempfile::tempdir().unwrap();
        let found = LocalRunbooks::find(root.path());
        assert!(found.runbooks.is_empty() && found.problems.is_empty());
    }
}
