//! The first minutes: `init` and what leads on from there, and `demo` against a running `dev`.

use serde_json::Value;
use std::fs;
use std::net::TcpListener;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Stdio};
use tempfile::TempDir;
use testkit::until;

/// The real program in a folder.
#[expect(clippy::disallowed_methods, reason = "the program under test, never part of the service")]
fn command(folder: &Path, args: &[&str]) -> std::process::Command {
    let mut command = std::process::Command::new(env!("CARGO_BIN_EXE_quartermaster"));
    command.args(args).current_dir(folder).env("QM_TELEMETRY__LOG", "off").stdin(Stdio::null());
    command
}

/// Its exit code, what it printed, and what it said beside that.
fn program(folder: &Path, args: &[&str]) -> (i32, String, String) {
    let output = command(folder, args).output().unwrap();
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    (output.status.code().unwrap(), text(&output.stdout), text(&output.stderr))
}

fn mode(path: &Path) -> u32 {
    fs::metadata(path).unwrap().permissions().mode() & 0o777
}

fn initialised() -> (TempDir, PathBuf) {
    let dir = TempDir::new().unwrap();
    let (code, said, beside) = program(dir.path(), &["init", "here", "--tenant", "shop"]);
    assert_eq!((code, beside.as_str()), (0, ""), "{said}");
    let folder = dir.path().join("here");
    assert!(said.contains("quartermaster doctor --config"), "{said}");
    (dir, folder)
}

#[test]
fn init_writes_a_skeleton_that_check_and_doctor_find_well() {
    let (dir, folder) = initialised();
    for name in ["service.key", "signing.key"] {
        assert_eq!(mode(&folder.join(name)), 0o600, "{name}");
    }
    assert_eq!(mode(&folder), 0o700);
    assert_eq!(fs::read(folder.join("service.key")).unwrap().len(), 32);
    let text = fs::read_to_string(folder.join("README.md")).unwrap();
    assert!(!text.contains("@FOLDER@") && !text.contains("@TENANT@") && text.contains("tenants/shop.yaml"), "{text}");

    let files = ["here/quartermaster.toml", "here/tenants/shop.yaml", "here/catalog/servers.yaml"];
    let (code, said, beside) = program(dir.path(), &[&["check"], &files[..]].concat());
    assert_eq!((code, said.as_str()), (0, "3 files are valid\n"), "{beside}");
    let (code, said, beside) = program(dir.path(), &["doctor", "--config", files[0]]);
    assert_eq!(code, 0, "{said}{beside}");
    assert!(!said.contains("FAIL") && said.contains("ok   tenant shop"), "{said}");
    // Two skeletons share no key.
    let (_other, other) = initialised();
    assert_ne!(fs::read(folder.join("service.key")).unwrap(), fs::read(other.join("service.key")).unwrap());
}

#[tokio::test(flavor = "multi_thread")]
async fn the_skeleton_serves_and_its_first_token_opens_a_session() {
    let (dir, folder) = initialised();
    let port = free_port();
    let mut serving = command(dir.path(), &["serve", "--config", "here/quartermaster.toml"]);
    serving.env("QM_LISTEN__ADDRESS", format!("127.0.0.1:{port}")).env("QM_TELEMETRY__METRICS_LISTEN", "");
    let _serving = Running(serving.stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap());
    let key = folder.join("signing.key").display().to_string();
    let args = ["token", "--key", &key, "--issuer", "https://first-steps.quartermaster.localhost"];
    let more = ["--audience", "http://127.0.0.1:8080/mcp", "--tenant", "shop", "--sub", "a", "--scope", "runs:decide"];
    let (code, token, beside) = program(dir.path(), &[&args[..], &more[..]].concat());
    assert_eq!(code, 0, "{beside}");
    fs::write(dir.path().join("approver.token"), token).unwrap();
    let url = format!("http://127.0.0.1:{port}");
    until("the service to answer", async || {
        let (code, _, said) = program(dir.path(), &["runs", "--url", &url, "--token-file", "approver.token"]);
        (code == 0 && said.contains("no runs are pending")).then_some(())
    })
    .await;
}

#[test]
fn init_overwrites_nothing_and_says_what_to_do() {
    let (dir, folder) = initialised();
    let key = fs::read(folder.join("service.key")).unwrap();
    let (code, _, said) = program(dir.path(), &["init", "here"]);
    assert_eq!(code, 2);
    assert!(said.contains("is not empty") && said.contains("name another folder"), "{said}");
    assert_eq!(fs::read(folder.join("service.key")).unwrap(), key);
    fs::create_dir(dir.path().join("empty")).unwrap();
    assert_eq!(program(dir.path(), &["init", "empty"]).0, 0, "an empty folder is as good as none");
    fs::write(dir.path().join("file"), "x").unwrap();
    for (args, todo) in [
        (&["init", "file"][..], "name a folder"),
        (&["init", "no/such/parent"], "create it first"),
        (&["init", "a", "--tenant", "Bad_Name"], "1 to 63 of a-z"),
        (&["init", "a", "--resource", "tools.example.com"], "ends in /mcp"),
        (&["init", "a\"b"], "name a plainer one"),
    ] {
        let (code, out, said) = program(dir.path(), args);
        assert_eq!((code, out.as_str()), (2, ""), "{args:?}");
        assert!(said.contains(todo), "{args:?}: {said}");
    }
    let left: Vec<_> = fs::read_dir(dir.path()).unwrap().flatten().map(|entry| entry.file_name()).collect();
    assert!(left.iter().all(|name| !name.to_string_lossy().ends_with(".new")), "{left:?}");
}

#[test]
fn each_error_on_the_way_says_what_to_do() {
    let (dir, folder) = initialised();
    let settings = "here/quartermaster.toml";
    for (args, todo) in [
        (&["serve", "--config", "nowhere.toml"][..], "quartermaster init"),
        (&["doctor", "--config", "nowhere.toml"], "quartermaster init"),
        (&["runs"], "start `quartermaster dev`"),
        (&["demo"], "start `quartermaster dev`"),
    ] {
        let (code, _, said) = program(dir.path(), args);
        assert_eq!(code, 2, "{args:?}: {said}");
        assert!(said.contains(todo), "{args:?}: {said}");
    }
    fs::remove_file(folder.join("service.key")).unwrap();
    let (code, said, _) = program(dir.path(), &["doctor", "--config", settings]);
    assert_eq!(code, 1, "{said}");
    assert!(said.contains("FAIL service key") && said.contains("32 random bytes"), "{said}");
    let (code, _, said) = program(dir.path(), &["serve", "--config", settings]);
    assert_eq!(code, 2, "{said}");
    assert!(said.contains("put 32 random bytes there"), "{said}");
}

/// A process that is ended with the test.
struct Running(Child);

impl Drop for Running {
    fn drop(&mut self) {
        self.0.kill().ok();
        self.0.wait().ok();
    }
}

fn free_port() -> u16 {
    TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port()
}

/// A `dev` of its own, ready.
async fn dev() -> (TempDir, Running) {
    let dir = TempDir::new().unwrap();
    let listen = format!("127.0.0.1:{}", free_port());
    let mut command = command(dir.path(), &["dev", "--listen", &listen]);
    let running = Running(command.stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap());
    let last = dir.path().join(".quartermaster/admin.token");
    until("dev to be ready", async || last.exists().then_some(())).await;
    (dir, running)
}

#[tokio::test(flavor = "multi_thread")]
async fn demo_heals_the_deployment_after_an_approval_and_then_finds_nothing_to_do() {
    let (dir, _dev) = dev().await;
    let (code, said, beside) = program(dir.path(), &["--output", "json", "demo", "--approve"]);
    assert_eq!(code, 0, "{said}{beside}");
    let ended: Value = serde_json::from_str(&said).unwrap();
    assert_eq!((&ended["healed"], &ended["state"]), (&true.into(), &"succeeded".into()), "{ended}");
    assert!(beside.contains("checkout is broken") && beside.contains("checkout is well again"), "{beside}");
    let (_, run, _) = program(dir.path(), &["runs", "show", ended["run"].as_str().unwrap()]);
    assert!(run.contains("approved   by approver@dev"), "{run}");

    let (code, said, _) = program(dir.path(), &["demo", "--approve"]);
    assert_eq!(code, 1, "{said}");
    assert!(said.contains("well already") && said.contains("Restart `dev`"), "{said}");
}

#[tokio::test(flavor = "multi_thread")]
async fn demo_waits_for_a_person_and_changes_nothing_if_they_reject() {
    let (dir, _dev) = dev().await;
    let waiting = command(dir.path(), &["demo"]).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    let run = until("the run", async || {
        let (_, said, _) = program(dir.path(), &["--output", "json", "runs"]);
        let listed: Value = serde_json::from_str(&said).ok()?;
        listed["runs"][0]["id"].as_str().map(str::to_owned)
    })
    .await;
    assert_eq!(program(dir.path(), &["runs", "reject", &run, "--reason", "not today"]).0, 0);
    let output = waiting.wait_with_output().unwrap();
    let said = String::from_utf8_lossy(&output.stdout);
    assert_eq!(output.status.code(), Some(1), "{said}");
    assert!(said.contains(&format!("quartermaster runs approve {run}")), "{said}");
    assert!(said.contains("rejected: not today. I change nothing."), "{said}");
}
