//! A client of `quartermaster stdio` as desktop programs are one: it starts the real program and owns its pipes.

use serde_json::{Value, json};
use std::path::Path;
use std::process::{ExitStatus, Stdio};
use std::sync::{Arc, Mutex};
use testkit::patience::in_time;
use tokio::io::{AsyncBufReadExt, AsyncReadExt, AsyncWriteExt, BufReader};
use tokio::process::{Child, ChildStdin, Command};
use tokio::sync::mpsc;

/// What the modern era wants in every request.
pub(crate) fn meta() -> Value {
    json!({
        "io.modelcontextprotocol/protocolVersion": "2026-07-28",
        "io.modelcontextprotocol/clientCapabilities": {},
    })
}

/// The program, and both of its pipes.
pub(crate) struct StdioClient {
    child: Child,
    input: Option<ChildStdin>,
    lines: mpsc::Receiver<String>,
    errors: Arc<Mutex<String>>,
    /// What came and was not asked for yet.
    aside: Vec<Value>,
    last: u64,
}

/// The program, to be started in a folder that is the user's home as well.
#[expect(clippy::disallowed_methods, reason = "the program under test, never part of the service")]
pub(crate) fn program(folder: &Path, words: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_quartermaster"));
    command.args(words).current_dir(folder).env("HOME", folder).kill_on_drop(true);
    command
}

impl StdioClient {
    /// Starts `quartermaster stdio` with these words.
    pub(crate) fn start(folder: &Path, words: &[&str]) -> StdioClient {
        let words: Vec<&str> = ["stdio"].iter().chain(words).copied().collect();
        StdioClient::of(program(folder, &words))
    }

    #[expect(clippy::disallowed_methods, reason = "a test's own tasks, never part of the service")]
    pub(crate) fn of(mut command: Command) -> StdioClient {
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut child = command.spawn().unwrap();
        let (input, output) = (child.stdin.take(), child.stdout.take().unwrap());
        let (sender, lines) = mpsc::channel(1_000);
        tokio::spawn(async move {
            let mut output = BufReader::new(output).lines();
            while let Ok(Some(line)) = output.next_line().await {
                if sender.send(line).await.is_err() {
                    return;
                }
            }
        });
        let (errors, mut stderr) = (Arc::new(Mutex::new(String::new())), child.stderr.take().unwrap());
        let written = Arc::clone(&errors);
        tokio::spawn(async move {
            let mut bytes = [0; 4096];
            while let Ok(count @ 1..) = stderr.read(&mut bytes).await {
                written.lock().unwrap().push_str(&String::from_utf8_lossy(&bytes[..count]));
            }
        });
        StdioClient { child, input, lines, errors, aside: Vec::new(), last: 0 }
    }

    /// Writes bytes as they are.
    pub(crate) async fn write(&mut self, bytes: &[u8]) {
        in_time("the program to read", self.input.as_mut().unwrap().write_all(bytes)).await.unwrap();
    }

    pub(crate) async fn send(&mut self, message: &Value) {
        self.write(format!("{message}\n").as_bytes()).await;
    }

    /// The next line. Every one must be a message: nothing else may stand on standard output.
    pub(crate) async fn next(&mut self) -> Value {
        let line = in_time("a line", self.lines.recv()).await;
        let line = line.unwrap_or_else(|| panic!("the program ended: {}", self.errors()));
        let message: Value = serde_json::from_str(&line).unwrap_or_else(|_| panic!("no message: {line}"));
        assert_eq!(message["jsonrpc"], "2.0", "{line}");
        message
    }

    /// The first message that fits, now or later; the others wait.
    pub(crate) async fn find(&mut self, fits: impl Fn(&Value) -> bool) -> Value {
        if let Some(at) = self.aside.iter().position(&fits) {
            return self.aside.remove(at);
        }
        loop {
            let message = self.next().await;
            if fits(&message) {
                return message;
            }
            self.aside.push(message);
        }
    }

    /// The notification of this method.
    pub(crate) async fn notification(&mut self, method: &str) -> Value {
        self.find(|message| message["method"] == method).await
    }

    /// Sends a request and gives its id.
    pub(crate) async fn request(&mut self, method: &str, params: Value) -> u64 {
        self.last += 1;
        let request = json!({ "jsonrpc": "2.0", "id": self.last, "method": method, "params": params });
        self.send(&request).await;
        self.last
    }

    /// The answer to a request.
    pub(crate) async fn answer(&mut self, id: u64) -> Value {
        self.find(|message| message["id"] == id && message.get("method").is_none()).await
    }

    pub(crate) async fn ask(&mut self, method: &str, params: Value) -> Value {
        let id = self.request(method, params).await;
        self.answer(id).await
    }

    /// Opens a legacy session and gives the result.
    pub(crate) async fn initialize(&mut self) -> Value {
        let client = json!({ "name": "stdio tests", "version": "1" });
        let params = json!({ "protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": client });
        let answer = self.ask("initialize", params).await;
        self.send(&json!({ "jsonrpc": "2.0", "method": "notifications/initialized" })).await;
        answer["result"].clone()
    }

    /// Calls a tool of a legacy session and gives the result.
    pub(crate) async fn call(&mut self, tool: &str, arguments: Value) -> Value {
        let answer = self.ask("tools/call", json!({ "name": tool, "arguments": arguments })).await;
        answer["result"].clone()
    }

    pub(crate) async fn tools(&mut self) -> Vec<String> {
        let answer = self.ask("tools/list", json!({})).await;
        let tools = answer["result"]["tools"].as_array().unwrap_or_else(|| panic!("{answer}")).clone();
        tools.iter().map(|tool| tool["name"].as_str().unwrap().to_owned()).collect()
    }

    /// What the program said on standard error.
    pub(crate) fn errors(&self) -> String {
        self.errors.lock().unwrap().clone()
    }

    pub(crate) fn id(&self) -> u32 {
        self.child.id().unwrap()
    }

    /// Closes standard input.
    pub(crate) fn close(&mut self) {
        self.input = None;
    }

    /// Waits for the end, and gives how it came and the lines that were left.
    pub(crate) async fn end(mut self) -> (ExitStatus, Vec<Value>) {
        let status = in_time("the program to end", self.child.wait()).await.unwrap();
        let mut rest = std::mem::take(&mut self.aside);
        while let Some(line) = in_time("the last lines", self.lines.recv()).await {
            rest.push(serde_json::from_str(&line).unwrap_or_else(|_| panic!("no message: {line}")));
        }
        (status, rest)
    }
}

/// Runs a command of the program to its end: exit code, standard output, standard error.
pub(crate) async fn run(folder: &Path, words: &[&str]) -> (i32, String, String) {
    let output = in_time("a command", program(folder, words).stdin(Stdio::null()).output()).await.unwrap();
    let text = |bytes| String::from_utf8(bytes).unwrap();
    (output.status.code().unwrap(), text(output.stdout), text(output.stderr))
}
