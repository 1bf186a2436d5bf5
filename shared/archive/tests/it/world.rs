//! A store in memory with one tenant, and an archive with the sinks that a test wants.

use archive::{Archive, ArchiveConfig, ExportOutcome, SignOutcome, SinkConfig};
use domain::Tenant;
use serde_json::{Value, json};
use std::path::{Path, PathBuf};
use std::time::Duration;
use store::{AuditEntry, Config, Phase, Store, TenantStore};
use tempfile::TempDir;

/// The service's own secret.
pub(crate) const SECRET: [u8; 32] = [7; 32];

pub(crate) struct World {
    pub(crate) shelf: TenantStore,
    pub(crate) archive: Archive,
    pub(crate) folder: TempDir,
}

impl World {
    /// With a folder, into which everything goes at once.
    pub(crate) async fn with_folder() -> World {
        let folder = tempfile::tempdir().unwrap();
        let sink = json!({ "name": "disk", "kind": "folder", "path": folder.path().join("out"), "every": "1ms" });
        World::with(folder, &json!([sink])).await
    }

    pub(crate) async fn with(folder: TempDir, sinks: &Value) -> World {
        let store = Store::open(&Config::at("memory:")).await.unwrap();
        let shelf = store.of(&Tenant::parse("acme").unwrap());
        World { shelf, archive: archive(sinks), folder }
    }

    /// Writes so many entries and seals them.
    pub(crate) async fn write(&self, count: usize) {
        for _ in 0..count {
            self.shelf.audit().note(&AuditEntry::new(Phase::Admin)).await.unwrap();
        }
        while self.shelf.seal(100).await.unwrap().behind {}
    }

    pub(crate) async fn sign(&self) {
        assert_eq!(self.archive.sign(&self.shelf).await.unwrap(), SignOutcome::Signed);
    }

    /// Exports until nothing is left.
    pub(crate) async fn export(&self) {
        loop {
            match self.archive.export(0, &self.shelf).await.unwrap() {
                ExportOutcome::Sent => {}
                ExportOutcome::Nothing => return,
                ExportOutcome::Waiting(wait) => tokio::time::sleep(wait).await,
            }
        }
    }

    /// The files of the folder, in their order.
    pub(crate) fn files(&self) -> Vec<PathBuf> {
        let mut files = Vec::new();
        collect(&self.folder.path().join("out"), &mut files);
        files.sort();
        files
    }

    /// The lines of each file.
    pub(crate) fn exported(&self) -> Vec<Vec<String>> {
        let lines = |file: &PathBuf| std::fs::read_to_string(file).unwrap().lines().map(str::to_owned).collect();
        self.files().iter().map(lines).collect()
    }
}

fn collect(folder: &Path, files: &mut Vec<PathBuf>) {
    for entry in std::fs::read_dir(folder).into_iter().flatten() {
        let path = entry.unwrap().path();
        if path.is_dir() { collect(&path, files) } else { files.push(path) }
    }
}

/// An archive that signs every three entries.
pub(crate) fn archive(sinks: &Value) -> Archive {
    let sinks: Vec<SinkConfig> = serde_json::from_value(sinks.clone()).unwrap();
    let config = ArchiveConfig {
        signing_key_file: PathBuf::new(),
        older_key_files: Vec::new(),
        checkpoint_every: Duration::from_secs(3600),
        checkpoint_entries: 3,
        look_every: Duration::from_secs(600),
        keep: Duration::from_secs(3600),
        sinks,
    };
    config.check().unwrap();
    Archive::open(&config, &SECRET, &[]).unwrap()
}
