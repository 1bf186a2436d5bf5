//! Everything that fuzzing found to be worth keeping, once more: `shared/fuzz/corpus`.

#[path = "../../../../shared/fuzz/src/targets.rs"]
mod targets;

use std::panic::catch_unwind;
use std::path::{Path, PathBuf};

fn entries(folder: &Path) -> Vec<PathBuf> {
    let mut found: Vec<PathBuf> = std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()).collect();
    found.sort();
    found
}

#[test]
fn no_stranger_bytes_break_a_parser_or_what_it_promises() {
    let corpus = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../shared/fuzz/corpus");
    let folders: Vec<PathBuf> = targets::TARGETS.iter().map(|(name, _)| corpus.join(name)).collect();
    for folder in entries(&corpus) {
        assert!(folders.contains(&folder), "{} belongs to no target", folder.display());
    }
    let mut broken = Vec::new();
    for ((_, target), folder) in targets::TARGETS.iter().zip(&folders) {
        let files = entries(folder);
        assert!(files.len() >= 5, "{} holds next to nothing", folder.display());
        for file in files {
            let bytes = std::fs::read(&file).unwrap();
            if catch_unwind(|| target(&bytes)).is_err() {
                broken.push(file.display().to_string());
            }
        }
    }
    assert!(broken.is_empty(), "broken by {}", broken.join(", "));
}
