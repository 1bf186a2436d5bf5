//! The commands that ask a running service, at a terminal: every refusal looks the same, and no text that somebody else
//! chose reaches the terminal as anything but text.

use serde_json::{Value, json};
use std::io::{Read, Write};
use std::net::TcpListener;
use tempfile::TempDir;

/// A service that gives every request the same answer.
struct FixedService {
    url: String,
    folder: TempDir,
}

impl FixedService {
    fn start(status: u16, body: &Value) -> FixedService {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let url = format!("http://{}", listener.local_addr().unwrap());
        let body = body.to_string();
        let head = format!("HTTP/1.1 {status} X\r\nContent-Type: application/json\r\nConnection: close\r\n");
        let answer = format!("{head}Content-Length: {}\r\n\r\n{body}", body.len());
        std::thread::spawn(move || {
            for stream in listener.incoming() {
                let mut stream = stream.unwrap();
                let mut request = Vec::new();
                let mut piece = [0; 4096];
                while !request.windows(4).any(|end| end == b"\r\n\r\n") {
                    match stream.read(&mut piece).unwrap_or(0) {
                        0 => break,
                        read => request.extend_from_slice(&piece[..read]),
                    }
                }
                stream.write_all(answer.as_bytes()).ok();
            }
        });
        let folder = TempDir::new().unwrap();
        std::fs::write(folder.path().join("token"), "a.b.c\n").unwrap();
        FixedService { url, folder }
    }

    /// Runs a command against the service: its exit code, its standard output and its standard error.
    #[expect(clippy::disallowed_methods, reason = "the program under test, never part of the service")]
    fn run(&self, words: &[&str]) -> (i32, String, String) {
        let mut command = std::process::Command::new(env!("CARGO_BIN_EXE_quartermaster"));
        command.args(words).args(["--url", &self.url, "--token-file", "token"]).current_dir(self.folder.path());
        let output = command.output().unwrap();
        let text = |bytes: Vec<u8>| String::from_utf8(bytes).unwrap();
        (output.status.code().unwrap(), text(output.stdout), text(output.stderr))
    }
}

/// One call of each command.
const COMMANDS: [&[&str]; 12] = [
    &["runs"],
    &["runs", "show", "run_1"],
    &["runs", "approve", "run_1"],
    &["servers"],
    &["servers", "show", "wiki"],
    &["servers", "accept", "wiki"],
    &["switch"],
    &["switch", "clear", "sw_1"],
    &["usage"],
    &["audit", "verify"],
    &["memory", "export", "--dir", "out"],
    &["memory", "import", "--dir", "."],
];

#[test]
fn every_command_reports_a_refusal_in_the_same_way() {
    let refusal = json!({ "error": { "code": "insufficient_scope", "message": "the token lacks a scope",
        "hint": "use another token", "retryable": false } });
    let service = FixedService::start(403, &refusal);
    let expected = "insufficient_scope: the token lacks a scope\n  use another token\n";
    for words in COMMANDS.into_iter().chain([&["audit", "export"][..]]) {
        let (code, out, err) = service.run(words);
        assert_eq!((code, out.as_str(), err.as_str()), (1, "", expected), "{words:?}");
    }
    for words in COMMANDS {
        let (code, out, err) = service.run(&[&["--output", "json"], words].concat());
        assert_eq!((code, err.as_str()), (1, expected), "{words:?}");
        assert_eq!(serde_json::from_str::<Value>(&out).unwrap(), refusal, "{words:?}");
    }
}

#[test]
fn an_answer_that_is_not_the_services_is_no_refusal() {
    let service = FixedService::start(502, &json!({ "message": "bad gateway" }));
    for words in COMMANDS {
        let (code, out, err) = service.run(words);
        assert_eq!((code, out.as_str()), (2, ""), "{words:?}");
        assert!(err.contains("the service answered with status 502"), "{words:?}: {err}");
    }
}

#[test]
fn an_id_that_leads_elsewhere_is_bad_usage() {
    let service = FixedService::start(200, &json!({}));
    for words in [
        &["runs", "show", "../audit"][..],
        &["runs", "list", "--state", "a&b"],
        &["servers", "show", "a/b"],
        &["switch", "clear", "a/b"],
    ] {
        let (code, out, err) = service.run(words);
        assert_eq!((code, out.as_str()), (2, ""), "{words:?}");
        assert!(err.contains("has only letters, digits, `-` and `_`"), "{words:?}: {err}");
    }
}

/// Text that would clear the screen, ring, overwrite its line, turn writing around, hide, and write a line of its own.
const HOSTILE: &str = "x\u{1b}[2J\u{7}\r\u{202e}\u{200b}\u{9b}31m\u{e0041}\nok  y";

/// What of a text a terminal would obey or not show.
fn harmful(text: &str) -> Option<char> {
    text.chars().find(|c| domain::text::is_tricky(*c))
}

#[test]
fn text_that_somebody_else_chose_is_shown_and_not_obeyed() {
    let run = json!({
        "id": "run_1", "state": "pending_approval", "tool": "k8s_apply", "effect": "change", "summary": HOSTILE,
        "requested_by": HOSTILE, "warnings": [HOSTILE], "preview": { "text": HOSTILE },
        "decisions": [{ "verdict": "rejected", "by": HOSTILE, "at": "now", "reason": HOSTILE }],
        "outcome": { "code": "failed", "message": HOSTILE, "basis": "answer" },
    });
    let tool = json!({ "name": "mcp_wiki__a", "upstream_name": HOSTILE, "pin": "new", "reason": HOSTILE,
        "remarks": [HOSTILE], "definition": { "description": HOSTILE } });
    let server = json!({ "id": "wiki", "tools": [tool], "trouble": { "code": "c", "message": HOSTILE } });
    let switch = json!({ "id": "sw_1", "on": "tenant", "mode": "stop", "tenant": "acme", "reason": HOSTILE });
    let answers = [
        (&["runs"][..], json!({ "runs": [run] })),
        (&["runs", "show", "run_1"], run.clone()),
        (&["servers"], json!({ "servers": [server] })),
        (&["servers", "show", "wiki"], server.clone()),
        (&["switch"], json!({ "switches": [switch], "authentic": true })),
        (&["usage"], json!({ "from": "a", "to": "b", "by": "principal", "rows": [{ "name": HOSTILE, "calls": 1 }] })),
    ];
    for (words, answer) in answers {
        let service = FixedService::start(200, &answer);
        let (code, out, err) = service.run(words);
        assert_eq!((code, harmful(&out), err.as_str()), (0, None, ""), "{words:?}: {out}");
        assert!(out.contains("x\\u{001b}[2J\\u{0007}\\u{000d}\\u{202e}\\u{200b}"), "{words:?}: {out}");
        assert!(!out.lines().any(|line| line.starts_with("ok  y")), "{words:?}: {out}");
        let (code, out, err) = service.run(&[&["--output", "json"], words].concat());
        assert_eq!((code, harmful(&out), err.as_str()), (0, None, ""), "{words:?}: {out}");
        assert!(out.contains("\\u202e\\u200b\\u009b31m\\udb40\\udc41"), "{words:?}: {out}");
        assert_eq!(serde_json::from_str::<Value>(&out).unwrap(), answer, "{words:?}: the value is the same");
    }
}

#[test]
fn a_refusal_is_shown_and_not_obeyed() {
    let refusal = json!({ "error": { "code": "not_found", "message": HOSTILE, "hint": HOSTILE } });
    let service = FixedService::start(404, &refusal);
    for words in COMMANDS {
        let (code, out, err) = service.run(&[&["--output", "json"], words].concat());
        assert_eq!((code, harmful(&out), harmful(&err)), (1, None, None), "{words:?}: {out}{err}");
        assert_eq!(err.lines().count(), 2, "{words:?}: {err}");
    }
}

#[test]
fn an_exported_audit_log_stays_as_it_is_where_it_is_no_terminal() {
    let entry = json!({ "actor": { "sub": "x\u{202e}" } });
    let page = json!({ "tenant": "acme", "seal": null, "entries": [{ "id": "1-0", "at": "now", "entry": entry, "link": null }],
        "loose": [], "next_cursor": null, "checkpoints": [] });
    let service = FixedService::start(200, &page);
    let (code, out, err) = service.run(&["audit", "export"]);
    assert_eq!((code, err.as_str()), (0, ""));
    assert!(out.ends_with("{\"id\":\"1-0\",\"entry\":{\"actor\":{\"sub\":\"x\u{202e}\"}}}\n"), "{out}");
    let (code, out, err) = service.run(&["audit", "search"]);
    assert_eq!((code, harmful(&out), err.as_str()), (0, None, ""), "{out}");
    assert!(out.contains("x\\u{202e}"), "a search is for people: {out}");
}
