//! A tenant's documents as files: out of the service and into it by the real program, and nothing is lost on the way.

use crate::here::{World, embedded, redis};
use crate::memory_people::{person, put};
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::fs;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use testkit::Actor;

/// Somebody at a terminal, with a folder.
struct Clerk {
    url: String,
    folder: tempfile::TempDir,
}

impl Clerk {
    fn of(world: &World, who: &Actor) -> Clerk {
        let folder = tempfile::tempdir().unwrap();
        fs::write(folder.path().join("token"), who.token()).unwrap();
        Clerk { url: format!("http://{}", world.address(0)), folder }
    }

    fn dir(&self) -> PathBuf {
        self.folder.path().join("docs")
    }

    fn file(&self, path: &str) -> PathBuf {
        self.dir().join(format!("{path}.md"))
    }

    fn write(&self, path: &str, text: &str) {
        let file = self.file(path);
        fs::create_dir_all(file.parent().unwrap()).unwrap();
        fs::write(file, text).unwrap();
    }

    fn change(&self, path: &str, from: &str, to: &str) {
        let text = fs::read_to_string(self.file(path)).unwrap();
        assert!(text.contains(from), "{text}");
        fs::write(self.file(path), text.replace(from, to)).unwrap();
    }

    /// Runs `memory` with these words; gives the exit code and what was told.
    #[expect(clippy::disallowed_methods, reason = "the program under test, never part of the service")]
    async fn memory(&self, words: &[&str]) -> (i32, Value) {
        let mut command = std::process::Command::new(env!("CARGO_BIN_EXE_quartermaster"));
        command.args(["--output", "json", "memory"]).args(words).arg("--dir").arg(self.dir());
        command.args(["--url", &self.url, "--token-file"]).arg(self.folder.path().join("token"));
        let output = tokio::task::spawn_blocking(move || command.output()).await.unwrap().unwrap();
        let said = String::from_utf8(output.stderr).unwrap();
        let told = serde_json::from_slice(&output.stdout);
        let told = told.unwrap_or_else(|_| panic!("{said} {}", String::from_utf8_lossy(&output.stdout)));
        (output.status.code().unwrap(), told)
    }

    async fn export(&self) -> usize {
        let (code, told) = self.memory(&["export"]).await;
        assert_eq!(code, 0, "{told}");
        told["done"].as_array().unwrap().len()
    }
}

/// Every file in a folder, by its place.
fn files(folder: &Path) -> BTreeMap<PathBuf, String> {
    let mut found = BTreeMap::new();
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            found.extend(files(&path).into_iter().map(|(inner, text)| (path.join(inner), text)));
        } else {
            found.insert(path.clone(), fs::read_to_string(&path).unwrap());
        }
    }
    found.into_iter().map(|(path, text)| (path.strip_prefix(folder).unwrap_or(&path).to_owned(), text)).collect()
}

fn document(content: &str) -> Value {
    json!({
        "type": "runbook", "title": "A \"title\": with tricks", "content": content,
        "evidence": "seen\nin run_0000000000000000000000", "tags": ["db", "cart"],
    })
}

/// What was done, as `done path`, and what was not, as `code file:line`.
fn told(report: &Value) -> (Vec<String>, Vec<String>) {
    let text = |value: &Value| value.as_str().unwrap_or("-").to_owned();
    let done = report["done"].as_array().unwrap().iter();
    let wrong = report["problems"].as_array().unwrap().iter();
    (
        done.map(|one| format!("{} {}", text(&one["done"]), text(&one["path"]))).collect(),
        wrong.map(|one| format!("{} {}:{}", text(&one["code"]), text(&one["file"]), one["line"])).collect(),
    )
}

async fn what_is_exported_and_imported_elsewhere_is_exported_equal(world: World) {
    let (paul, other) = (person(&world, "acme"), person(&world, "other"));
    for (path, content) in [
        ("tenant/runbooks/a", "# A\n\n---\nnot: a head\n\n  indented"),
        ("tenant/runbooks/deep/er/b.v2", "ä ö\ttab \u{1f980}"),
        ("tenant/services/c", "---"),
    ] {
        let kept = put(&paul, path, &document(content), None).await;
        assert_eq!(kept.status, 201, "{path}: {}", kept.text());
    }
    let (here, there) = (Clerk::of(&world, &paul), Clerk::of(&world, &other));
    assert_eq!(here.export().await, 3);
    let first = files(&here.dir());
    assert_eq!(first.len(), 3);
    assert!(first[Path::new("tenant/services/c.md")].ends_with("\n---\n---\n"), "{first:?}");

    fs::rename(here.dir(), there.dir()).unwrap();
    let (code, report) = there.memory(&["import"]).await;
    let created = ["tenant/runbooks/a", "tenant/runbooks/deep/er/b.v2", "tenant/services/c"];
    assert_eq!((code, told(&report).0), (0, created.map(|path| format!("created {path}")).to_vec()), "{report}");
    assert_eq!(files(&there.dir()), first, "importing changes no file that says what it is");
    fs::remove_dir_all(there.dir()).unwrap();
    assert_eq!(there.export().await, 3);
    assert_eq!(files(&there.dir()), first);
    let (code, report) = there.memory(&["import"]).await;
    assert_eq!((code, &report["unchanged"], told(&report)), (0, &json!(3), (Vec::new(), Vec::new())));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_round_trip_gives_equal_files_on_redis() {
    what_is_exported_and_imported_elsewhere_is_exported_equal(redis(1).await).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_round_trip_gives_equal_files_embedded() {
    what_is_exported_and_imported_elsewhere_is_exported_equal(embedded().await).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn an_import_writes_what_changed_here_and_leaves_what_changed_there() {
    let world = embedded().await;
    let paul = person(&world, "acme");
    let mut digests = BTreeMap::new();
    for name in ["edited", "both", "theirs", "same"] {
        let path = format!("tenant/runbooks/{name}");
        let kept = put(&paul, &path, &document(&format!("first {name}")), None).await.json();
        digests.insert(name, kept["sha256"].as_str().unwrap().to_owned());
    }
    let clerk = Clerk::of(&world, &paul);
    clerk.export().await;
    for name in ["both", "theirs"] {
        let path = format!("tenant/runbooks/{name}");
        assert_eq!(put(&paul, &path, &document("newer"), Some(&digests[name])).await.status, 200);
    }
    clerk.change("tenant/runbooks/edited", "first edited", "second edited");
    clerk.change("tenant/runbooks/both", "first both", "mine");
    clerk.write("tenant/runbooks/fresh", "---\ntype: note\n---\nby hand\n");

    let (code, dry) = clerk.memory(&["import", "--dry-run"]).await;
    let (code_then, report) = clerk.memory(&["import"]).await;
    let done = ["replaced tenant/runbooks/edited", "created tenant/runbooks/fresh"].map(str::to_owned).to_vec();
    let wrong = vec!["memory_conflict tenant/runbooks/both.md:null".to_owned()];
    assert_eq!((code, told(&dry)), (1, (done.clone(), wrong.clone())), "a dry run says the same");
    assert_eq!((code_then, told(&report), &report["unchanged"]), (1, (done, wrong), &json!(2)));
    let shown = async |path: &str| paul.rest().get(&crate::memory_people::address(path)).await.json();
    assert_eq!(shown("tenant/runbooks/both").await["content"], "newer", "nobody's change is lost");
    assert_eq!(shown("tenant/runbooks/edited").await["version"], 2);
    let fresh = shown("tenant/runbooks/fresh").await;
    assert_eq!((&fresh["content"], &fresh["evidence"]), (&json!("by hand"), &json!("imported from a file")));

    // The files now say what they were written as, so the next change goes on from there.
    clerk.change("tenant/runbooks/edited", "second edited", "third edited");
    let (_, report) = clerk.memory(&["import"]).await;
    assert_eq!(told(&report).0, ["replaced tenant/runbooks/edited"]);
    assert_eq!(shown("tenant/runbooks/edited").await["version"], 3);
}

#[tokio::test(flavor = "multi_thread")]
async fn what_must_not_be_kept_is_named_by_file_line_and_rule_and_the_rest_is_written() {
    let world = embedded().await;
    let paul = person(&world, "acme");
    let clerk = Clerk::of(&world, &paul);
    let key = format!("AKIA{}", "IOSFODNN7EXAMPLQ");
    clerk.write("tenant/runbooks/secret", &format!("---\ntype: note\n---\n# Keys\n\n{key}\n"));
    clerk.write("tenant/runbooks/fine", "---\ntype: note\n---\nfine\n");
    clerk.write("tenant/runbooks/headless", "# no head\n");
    clerk.write("tenant/runbooks/Loud", "---\ntype: note\n---\nx\n");
    clerk.write("user/notes/mine", "---\ntype: note\n---\nx\n");
    clerk.write("tenant/runbooks/large", &format!("---\ntype: note\n---\n{}", "x".repeat(120_000)));
    symlink(clerk.file("tenant/runbooks/fine"), clerk.file("tenant/runbooks/link")).unwrap();
    let (code, report) = clerk.memory(&["import"]).await;
    let (done, mut wrong) = told(&report);
    wrong.sort();
    assert_eq!((code, done), (1, vec!["created tenant/runbooks/fine".to_owned()]), "{report}");
    assert_eq!(
        wrong,
        [
            "bad_file tenant/runbooks/Loud.md:null",
            "bad_file tenant/runbooks/headless.md:1",
            "bad_file tenant/runbooks/large.md:null",
            "bad_file tenant/runbooks/link.md:null",
            "bad_file user/notes/mine.md:null",
            "secret_found tenant/runbooks/secret.md:6",
        ]
    );
    assert!(!report.to_string().contains(&key));
}

#[tokio::test(flavor = "multi_thread")]
async fn pruning_takes_away_what_has_no_file_within_the_prefix_and_never_everything() {
    let world = embedded().await;
    let paul = person(&world, "acme");
    for path in ["tenant/runbooks/a", "tenant/runbooks/b", "tenant/services/c"] {
        put(&paul, path, &document(path), None).await;
    }
    let clerk = Clerk::of(&world, &paul);
    fs::create_dir_all(clerk.dir()).unwrap();
    let (code, report) = clerk.memory(&["import", "--prune"]).await;
    assert_eq!((code, told(&report).0), (1, Vec::new()), "an empty folder is most often the wrong one");
    let (code, report) = clerk.memory(&["export", "--prefix", "tenant/runbooks"]).await;
    assert_eq!((code, told(&report).0.len()), (0, 2));
    fs::remove_file(clerk.file("tenant/runbooks/b")).unwrap();
    let words = ["import", "--prune", "--prefix", "tenant/runbooks"];
    for extra in [Some("--dry-run"), None] {
        let (code, report) = clerk.memory(&words.into_iter().chain(extra).collect::<Vec<_>>()).await;
        assert_eq!((code, told(&report).0), (0, vec!["pruned tenant/runbooks/b".to_owned()]), "{extra:?} {report}");
    }
    let left = paul.rest().get("/v1/memory/documents").await.json();
    let left: Vec<&Value> = left["documents"].as_array().unwrap().iter().map(|line| &line["path"]).collect();
    assert_eq!(left, ["tenant/runbooks/a", "tenant/services/c"]);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_token_that_may_not_is_told_so_and_nothing_is_written() {
    let world = embedded().await;
    let clerk = Clerk::of(&world, &world.tenant("acme").agent());
    let (code, report) = clerk.memory(&["export"]).await;
    assert_eq!((code, &report["error"]["code"]), (1, &json!("insufficient_scope")));
    assert!(!clerk.dir().exists());
}
