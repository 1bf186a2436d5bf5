//! The modes of everything `quartermaster dev` writes, and how it ends if it cannot begin.

use std::fs;
use std::net::{SocketAddr, TcpListener};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Stdio};
use testkit::until;

/// A process that is ended with the test.
struct Running(Child);

impl Drop for Running {
    fn drop(&mut self) {
        self.0.kill().ok();
        self.0.wait().ok();
    }
}

#[expect(clippy::disallowed_methods, reason = "the program under test, never part of the service")]
fn dev(data: &Path) -> Running {
    let mut command = std::process::Command::new(env!("CARGO_BIN_EXE_quartermaster"));
    command.args(["dev", "--listen", "127.0.0.1:0", "--data"]).arg(data);
    Running(command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap())
}

/// What `dev` tells on this address, and how it ends.
#[expect(clippy::disallowed_methods, reason = "the program under test, never part of the service")]
fn told_by_dev(address: SocketAddr, data: &Path) -> (Option<i32>, String) {
    let mut command = std::process::Command::new(env!("CARGO_BIN_EXE_quartermaster"));
    command.args(["dev", "--listen", &address.to_string(), "--data"]).arg(data);
    let output = command.stdin(Stdio::null()).output().unwrap();
    (output.status.code(), String::from_utf8(output.stderr).unwrap())
}

/// Everything below a folder, with its mode.
fn modes(folder: &Path) -> Vec<(PathBuf, bool, u32)> {
    let mut all = Vec::new();
    for entry in fs::read_dir(folder).unwrap().flatten() {
        let (path, facts) = (entry.path(), entry.metadata().unwrap());
        all.push((path.clone(), facts.is_dir(), facts.permissions().mode() & 0o777));
        if facts.is_dir() {
            all.extend(modes(&path));
        }
    }
    all
}

async fn written_by_dev(data: &Path) -> Vec<(PathBuf, bool, u32)> {
    let running = dev(data);
    // The last file that a start writes.
    let last = data.join("admin.token");
    until("dev to be ready", async || last.exists().then_some(())).await;
    drop(running);
    modes(data)
}

#[tokio::test(flavor = "multi_thread")]
async fn only_its_owner_can_read_what_dev_writes() {
    let folder = tempfile::tempdir().unwrap();
    let data = folder.path().join("data");
    let all = written_by_dev(&data).await;
    let names: Vec<_> = all.iter().filter_map(|(path, ..)| path.file_name()?.to_str()).collect();
    for name in ["state.redb", "dev.toml", "resource", "signing.key", "service.key", "agent.token", "dev.yaml"] {
        assert!(names.contains(&name), "{name} is not among {names:?}");
    }
    for (path, is_folder, mode) in all {
        assert_eq!(mode, if is_folder { 0o700 } else { 0o600 }, "{}", path.display());
    }
    assert_eq!(fs::metadata(&data).unwrap().permissions().mode() & 0o777, 0o700);
}

#[tokio::test(flavor = "multi_thread")]
async fn what_an_older_build_left_open_is_closed_at_the_next_start() {
    let folder = tempfile::tempdir().unwrap();
    for name in ["dev.toml", "dev.new", "agent.new", "resource", "state.redb"] {
        let path = folder.path().join(name);
        fs::write(&path, "").unwrap();
        fs::set_permissions(&path, fs::Permissions::from_mode(0o644)).unwrap();
    }
    for (path, is_folder, mode) in written_by_dev(folder.path()).await {
        assert_eq!(mode, if is_folder { 0o700 } else { 0o600 }, "{}", path.display());
    }
}

#[test]
fn dev_on_an_address_in_use_says_so_and_nothing_of_what_it_had_begun() {
    let (folder, taken) = (tempfile::tempdir().unwrap(), TcpListener::bind("127.0.0.1:0").unwrap());
    let address = taken.local_addr().unwrap();
    let (code, told) = told_by_dev(address, folder.path());
    assert_eq!(code, Some(2), "{told}");
    assert!(told.contains(&format!("cannot listen on {address}")), "{told}");
    for wrong in ["panicked", "ERROR", "WARN"] {
        assert!(!told.contains(wrong), "{told}");
    }
}
