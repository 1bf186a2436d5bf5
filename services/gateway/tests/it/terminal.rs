//! The commands that ask a running service, at a terminal: every refusal looks the same.

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
const COMMANDS: [&[&str]; 9] = [
    &["runs"],
    &["runs", "show", "run_1"],
    &["runs", "approve", "run_1"],
    &["servers"],
    &["servers", "show", "wiki"],
    &["servers", "accept", "wiki"],
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
    for words in [&["runs", "show", "../audit"][..], &["runs", "list", "--state", "a&b"], &["servers", "show", "a/b"]] {
        let (code, out, err) = service.run(words);
        assert_eq!((code, out.as_str()), (2, ""), "{words:?}");
        assert!(err.contains("has only letters, digits, `-` and `_`"), "{words:?}: {err}");
    }
}
