//! `quartermaster check`, `explain` and `schema`, and that the guide to tenants' files shows what they really say.

use serde_json::Value;
use std::path::PathBuf;
use tempfile::TempDir;

/// The real program in a folder; its exit code, what it printed, and what it said beside that.
#[expect(clippy::disallowed_methods, reason = "the program under test, never part of the service")]
fn program(dir: &TempDir, args: &[&str]) -> (i32, String, String) {
    let mut command = std::process::Command::new(env!("CARGO_BIN_EXE_quartermaster"));
    let output = command.args(args).current_dir(dir.path()).output().unwrap();
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    (output.status.code().unwrap(), text(&output.stdout), text(&output.stderr))
}

fn folder(files: &[(&str, &str)]) -> TempDir {
    let dir = TempDir::new().unwrap();
    for (name, text) in files {
        std::fs::write(dir.path().join(name), text).unwrap();
    }
    dir
}

/// The blocks of a kind on the page.
fn blocks(page: &str, kind: &str) -> Vec<String> {
    let fence = format!("```{kind}\n");
    page.split(&fence).skip(1).map(|rest| rest.split("```").next().unwrap().to_owned()).collect()
}

/// The words of a line as a shell reads them, as far as the page needs it: blanks between, single quotes around.
fn words(line: &str) -> Vec<String> {
    let odd_ones_are_quoted = line.split('\'').enumerate();
    let words = odd_ones_are_quoted.flat_map(|(n, piece)| match n % 2 {
        0 => piece.split_whitespace().map(str::to_owned).collect::<Vec<_>>(),
        _ => vec![piece.to_owned()],
    });
    words.collect()
}

#[test]
fn the_guide_shows_what_the_program_says() {
    let path = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../docs/tenants.md");
    #[expect(clippy::disallowed_methods, reason = "asks whoever runs the test, not the service's settings")]
    let update = std::env::var("UPDATE_DOCS").is_ok();
    let mut page = std::fs::read_to_string(&path).unwrap();
    let dir = TempDir::new().unwrap();
    for block in blocks(&page, "yaml") {
        let name = block.lines().next().and_then(|line| line.strip_prefix("# ")).filter(|name| name.ends_with(".yaml"));
        if let Some(name) = name {
            std::fs::write(dir.path().join(name), &block).unwrap();
        }
    }
    let shown = blocks(&page, "console");
    assert!(shown.len() >= 5, "the page shows {} commands", shown.len());
    for block in shown {
        let line = block.lines().next().unwrap();
        let args = words(line.strip_prefix("$ quartermaster ").unwrap());
        let (code, said, beside) = program(&dir, &args.iter().map(String::as_str).collect::<Vec<_>>());
        assert!(code < 2, "{line}: {beside}");
        let fresh = format!("{line}\n{said}");
        if update {
            page = page.replace(&format!("```console\n{block}"), &format!("```console\n{fresh}"));
        } else {
            assert_eq!(block, fresh, "docs/tenants.md is behind; UPDATE_DOCS=1 writes it anew");
        }
    }
    if update {
        std::fs::write(&path, page).unwrap();
    }
}

#[test]
fn the_servers_of_the_operators_guide_are_right() {
    let path = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../docs/servers.md");
    let page = std::fs::read_to_string(path).unwrap();
    let shown = blocks(&page, "yaml").into_iter().filter_map(|block| {
        let name = block.strip_prefix("# ")?.split([':', '\n']).next()?.rsplit('/').next()?.to_owned();
        name.ends_with(".yaml").then_some((name, block))
    });
    let shown: Vec<(String, String)> = shown.collect();
    let dir = folder(&shown.iter().map(|(name, block)| (name.as_str(), block.as_str())).collect::<Vec<_>>());
    let args: Vec<&str> = ["check"].into_iter().chain(shown.iter().map(|(name, _)| name.as_str())).collect();
    assert_eq!(program(&dir, &args).1, format!("{} files are valid\n", shown.len()));
    assert!(shown.len() >= 2, "the page shows {} files", shown.len());
}

const SERVERS: &str = "servers:\n- name: wiki\n  url: 'https://wiki.example/mcp'\n  params: { key: { secret: true } }\n  \
    auth: { secret: '{{ params.key }}' }\n  effects: { 'read-*': read, drop: disrupt }\n";
const ACME: &str = "tenant: acme\nmode: write\nclusters: [{ name: play, sandbox: true }]\n\
    params: { key: { secret: true } }\n\
    servers:\n- use: wiki\n  params: { key: '{{ params.key }}' }\n  access:\n    allowlist:\n    - read-*\n    - write\n    \
    - { name: drop, require_approval: { on_reject: fail } }\n    - { name: read-secret, require_approval: {} }\n\
    policy:\n  deny:\n  - k8s_exec\n  - k8s_get:secrets\n  - mcp_wiki__read-all\n  \
      require_approval: ['k8s_get:configmaps', { name: 'k8s_*', on_reject: fail }]\n";

/// What is said about a call of Acme's: exit code, verdict, and the line that decided.
fn explained(file: &str, more: &[&str]) -> (i32, String, Option<u64>, Value) {
    let dir = folder(&[("servers.yaml", SERVERS), ("acme.yaml", file)]);
    let args = ["--output", "json", "explain", "--tenant", "acme.yaml", "--servers", "servers.yaml"];
    let (code, said, beside) = program(&dir, &args.iter().chain(more).copied().collect::<Vec<_>>());
    let told: Value = serde_json::from_str(&said).unwrap_or_else(|_| panic!("{more:?}: {said}{beside}"));
    (code, told["verdict"].as_str().unwrap().to_owned(), told["rule"]["line"].as_u64(), told)
}

#[test]
fn a_decision_is_explained_by_rule_and_line() {
    let get = |kind: &str| format!(r#"{{"kind":"{kind}","namespace":"default"}}"#);
    let (pods, secrets, maps) = (get("pods"), get("secrets"), get("configmaps"));
    let scale = |n: u8| format!(r#"{{"kind":"Deployment","name":"web","namespace":"shop","replicas":{n}}}"#);
    for (args, code, verdict, line) in [
        (vec!["k8s_exec"], 1, "denied", Some(16)),
        (vec!["k8s_get", "--args", &secrets], 1, "denied", Some(17)),
        (vec!["k8s_get", "--args", &maps], 0, "asks", Some(19)),
        (vec!["k8s_get", "--args", &pods], 0, "asks", Some(19)),
        (vec!["k8s_scale", "--args", &scale(1)], 0, "asks", Some(19)),
        (vec!["k8s_scale", "--args", &scale(1), "--mode", "read"], 1, "denied", None),
        (vec!["k8s_scale", "--args", &scale(1), "--scope", "tools:read"], 1, "denied", None),
        (vec!["memory_read", "--args", r#"{"path":"session/notes/a.md"}"#], 0, "allowed", None),
        (vec!["load_toolset"], 0, "allowed", None),
        (vec!["jenkins_whoami"], 1, "denied", None),
        (vec!["mcp_wiki__read-page"], 0, "allowed", None),
        (vec!["mcp_wiki__read-page", "--mode", "read", "--scope", "tools:read"], 0, "allowed", None),
        (vec!["mcp_wiki__read-secret"], 0, "asks", Some(13)),
        (vec!["mcp_wiki__read-all"], 1, "denied", Some(18)),
        (vec!["mcp_wiki__write"], 0, "asks", None),
        (vec!["mcp_wiki__write", "--mode", "read"], 1, "denied", None),
        (vec!["mcp_wiki__drop"], 0, "asks", Some(12)),
        (vec!["mcp_wiki__other"], 1, "denied", Some(10)),
    ] {
        let (was, said, at, told) = explained(ACME, &args);
        assert_eq!((was, said.as_str(), at), (code, verdict, line), "{args:?}: {told:#}");
    }
    let (_, _, _, told) = explained(ACME, &["k8s_scale", "--args", &scale(0)]);
    assert_eq!((&told["effect"], &told["on_reject"]), (&"disrupt".into(), &"fail".into()));
    let (_, _, _, told) = explained(ACME, &["mcp_wiki__write"]);
    assert!(told["notes"][0].as_str().unwrap().contains("its definition is not known here"), "{told}");
    let reads = ACME.replace("mode: write", "mode: read");
    let (code, verdict, line, _) = explained(&reads, &["k8s_scale", "--args", &scale(1)]);
    assert_eq!((code, verdict.as_str(), line), (1, "denied", Some(2)));
}

#[test]
fn what_cannot_be_explained_is_bad_usage() {
    let dir = folder(&[("acme.yaml", "tenant: acme\n"), ("bad.yaml", "tenant: bad\nmode: all\n")]);
    for (args, said) in [
        (vec!["explain", "k8s_gett", "--tenant", "acme.yaml"], "did you mean k8s_get"),
        (vec!["explain", "memory_read", "--tenant", "bad.yaml"], "bad.yaml:2:7: bad_value"),
        (vec!["explain", "memory_read", "--tenant", "none.yaml"], "none.yaml:1:1: unreadable"),
        (vec!["explain", "memory_read", "--tenant", "acme.yaml", "--args", "[1]"], "JSON object"),
        (vec!["explain", "memory_read", "--tenant", "acme.yaml", "--args", "{"], "not JSON"),
        (vec!["explain", "memory_read", "--tenant", "acme.yaml", "--args", r#"{"pth":"x"}"#], "unknown_argument: "),
        (vec!["explain", "memory_read", "--tenant", "acme.yaml", "--mode", "all"], "--mode"),
        (vec!["explain", "memory_read"], "--tenant"),
    ] {
        let (code, printed, beside) = program(&dir, &args);
        assert_eq!((code, printed.as_str()), (2, ""), "{args:?}");
        assert!(beside.contains(said), "{args:?}: {beside}");
    }
}

#[test]
fn settings_servers_and_tenants_are_checked_together() {
    let bad = SERVERS.replace("auth: { secret: '{{ params.key }}' }", "auth: { secret: 'env:KEY' }");
    let settings = "[[identity.issuers]]\nissuer = \"https://login.example\"\nalgorithms = [\"EdDSA\"]\n\
        jwks_url = \"https://login.example/keys\"\n[upstreams]\ncatalog = \".\"\n";
    let dir = folder(&[("servers.yaml", SERVERS), ("acme.yaml", ACME), ("qm.toml", settings)]);
    let (code, said, _) = program(&dir, &["check", "servers.yaml", "acme.yaml"]);
    assert_eq!((code, said.as_str()), (0, "2 files are valid\n"));
    let (code, said, _) = program(&dir, &["check", "qm.toml", "acme.yaml", "servers.yaml"]);
    assert_eq!((code, said.as_str()), (0, "3 files are valid\n"), "a file that the settings name as well is one file");

    let (code, said, beside) = program(&dir, &["check", "acme.yaml"]);
    assert_eq!(code, 1);
    assert!(said.starts_with("acme.yaml:6:8: unknown_server: "), "{said}");
    assert!(beside.contains("the catalog of external servers is empty"), "{beside}");

    let dir = folder(&[("servers.yaml", &bad), ("acme.yaml", "tenant: acme\nmode: all"), ("qm.toml", "[x]\n")]);
    let (code, said, _) = program(&dir, &["--output", "json", "check", "acme.yaml", "servers.yaml", "qm.toml"]);
    let problems: Vec<Value> = serde_json::from_str(&said).unwrap();
    let codes: Vec<&str> = problems.iter().map(|problem| problem["code"].as_str().unwrap()).collect();
    assert_eq!((code, codes), (1, vec!["settings", "env_refused", "bad_value"]));
}

#[test]
fn the_schema_is_printed() {
    let (code, said, _) = program(&folder(&[]), &["schema"]);
    let published = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../docs/tenant.schema.json");
    assert!((code, said) == (0, std::fs::read_to_string(published).unwrap()), "`tenant_docs` writes the page");
}
