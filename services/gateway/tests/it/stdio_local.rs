//! `quartermaster stdio` with the tools of its own process, as a desktop client has it: the real program, real pipes.

use crate::stdio_client::{StdioClient, meta, program, run};
use serde_json::{Value, json};
use std::path::Path;
use testkit::until;

pub(crate) const DATA: [&str; 2] = ["--data", "data"];

/// The text of a result.
pub(crate) fn text(result: &Value) -> &str {
    result["content"][0]["text"].as_str().unwrap_or_default()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_legacy_client_lists_calls_loads_and_is_told_of_its_longer_list() {
    let folder = tempfile::tempdir().unwrap();
    let mut client = StdioClient::start(folder.path(), &DATA);
    let opened = client.initialize().await;
    assert_eq!(opened["serverInfo"]["name"], "quartermaster");
    assert_eq!(opened.get("instructions"), None, "nothing is said where there is no quartermaster.yaml");

    let before = client.tools().await;
    assert!(before.contains(&"memory_read".to_owned()) && before.contains(&"load_toolset".to_owned()), "{before:?}");
    let loaded = client.call("load_toolset", json!({ "toolset": "memory", "include_write_tools": true })).await;
    assert_eq!(loaded["structuredContent"]["loaded"]["memory"], "write", "{loaded}");
    client.notification("notifications/tools/list_changed").await;
    let after = client.tools().await;
    assert!(after.contains(&"memory_remember".to_owned()), "{after:?}");

    let note = json!({ "path": "session/notes/a", "type": "note", "content": "x", "evidence": "y" });
    assert_eq!(client.call("memory_remember", note).await["structuredContent"]["created"], true);
    let read = client.call("memory_read", json!({ "path": "session/notes/a" })).await;
    assert_eq!(read["structuredContent"]["content"], "x");
    let pods = client.call("k8s_get", json!({ "kind": "Pod", "namespace": "shop" })).await;
    assert!(pods["isError"] != true && text(&pods).contains("simulated"), "{pods}");
    client.close();
    assert!(client.end().await.0.success());
}

#[tokio::test(flavor = "multi_thread")]
async fn a_modern_client_needs_no_session_and_can_give_up_what_it_asked() {
    let folder = tempfile::tempdir().unwrap();
    let mut client = StdioClient::start(folder.path(), &DATA);
    let found = client.ask("server/discover", json!({ "_meta": meta() })).await;
    assert_eq!(found["result"]["supportedVersions"], json!(["2026-07-28"]), "{found}");
    assert_eq!(found["result"].get("instructions"), None);
    let listed = client.ask("tools/list", json!({ "_meta": meta() })).await;
    assert_eq!(listed["result"]["resultType"], "complete");

    let wanted = json!({ "toolsListChanged": true });
    let listen = client.request("subscriptions/listen", json!({ "_meta": meta(), "notifications": wanted })).await;
    client.notification("notifications/subscriptions/acknowledged").await;
    let cancel = json!({ "jsonrpc": "2.0", "method": "notifications/cancelled", "params": { "requestId": listen } });
    client.send(&cancel).await;
    // A run of nobody's is waited for until somebody gives up: the wait is a request like any other.
    let read = json!({ "_meta": meta(), "name": "memory_list", "arguments": {} });
    assert!(client.ask("tools/call", read).await["result"]["structuredContent"]["stores"].is_array());
    client.close();
    let (status, rest) = client.end().await;
    assert!(status.success());
    assert!(!rest.iter().any(|message| message["id"] == listen), "what was given up is not answered: {rest:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn rubbish_and_endless_lines_are_answered_and_the_process_goes_on() {
    let folder = tempfile::tempdir().unwrap();
    let mut client = StdioClient::start(folder.path(), &DATA);
    client.initialize().await;
    for (line, code) in [
        (&b"hello\n"[..], -32700),
        (b"\xff\xfe\x00\n", -32700),
        (b"[]\n", -32600),
        (b"{\"jsonrpc\":\"2.0\",\"id\":null,\"method\":\"ping\"}\n", -32600),
        (b"{\"jsonrpc\":\"1.0\",\"id\":9,\"method\":\"ping\"}\n", -32600),
    ] {
        client.write(line).await;
        let answer = client.next().await;
        assert_eq!(answer["error"]["code"], code, "{answer}");
    }
    client.write(b"\n  \r\n").await;
    let mut long = vec![b'x'; 10_000_000];
    long.push(b'\n');
    client.write(&long).await;
    let answer = client.next().await;
    assert_eq!((&answer["error"]["code"], answer.get("id")), (&json!(-32600), None), "{answer}");
    assert!(answer["error"]["message"].as_str().unwrap().contains("longer than"), "{answer}");
    let unknown = client.ask("no/such/method", json!({})).await;
    assert_eq!(unknown["error"]["code"], -32601);
    assert_eq!(client.ask("ping", json!({})).await["result"], json!({}));
    let memory = std::fs::read_to_string(format!("/proc/{}/status", client.id())).unwrap();
    assert!(memory.contains("VmHWM"), "{memory}");
    client.close();
    assert!(client.end().await.0.success());
}

#[tokio::test(flavor = "multi_thread")]
async fn what_was_asked_before_the_input_ended_is_answered() {
    let folder = tempfile::tempdir().unwrap();
    let mut client = StdioClient::start(folder.path(), &DATA);
    client.initialize().await;
    let ping = client.request("ping", json!({})).await;
    client.close();
    let (status, rest) = client.end().await;
    assert!(status.success());
    assert!(rest.iter().any(|message| message["id"] == ping), "{rest:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_killed_client_leaves_no_process_behind() {
    let folder = tempfile::tempdir().unwrap();
    // The client is a shell that starts the server as its child, becomes another program and is killed.
    let binary = env!("CARGO_BIN_EXE_quartermaster");
    let server = format!("echo $BASHPID >pid; exec '{binary}' stdio --data data >out 2>err");
    let script = format!("exec 3> >({server}); echo '{{}}' >&3; exec sleep 600");
    #[expect(clippy::disallowed_methods, reason = "a client that is killed, never part of the service")]
    let mut shell = tokio::process::Command::new("bash");
    shell.args(["-c", &script]).current_dir(folder.path()).env("HOME", folder.path()).kill_on_drop(true);
    let mut shell = shell.spawn().unwrap();
    let answered = folder.path().join("out");
    until("the first answer", async || {
        std::fs::read_to_string(&answered).is_ok_and(|text| text.contains("-32600")).then_some(())
    })
    .await;
    let pid = std::fs::read_to_string(folder.path().join("pid")).unwrap().trim().to_owned();
    assert!(Path::new(&format!("/proc/{pid}")).exists());
    shell.kill().await.unwrap();
    until("the server to end", async || gone(&pid).then_some(())).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn what_the_process_started_ends_with_it() {
    let folder = tempfile::tempdir().unwrap();
    let data = folder.path().join("data");
    std::fs::create_dir_all(data.join("catalog/servers")).unwrap();
    std::fs::create_dir_all(data.join("tenants")).unwrap();
    // An external server that answers nothing and does not mind that its input ends.
    let pid_file = folder.path().join("pid");
    let script = format!("echo $$ >{}; trap '' HUP TERM PIPE; while :; do sleep 1; done", pid_file.display());
    let entry = json!({ "name": "stubborn", "command": "/bin/sh", "args": ["-c", script] });
    std::fs::write(data.join("catalog/servers/stubborn.server.yaml"), entry.to_string()).unwrap();
    let tenant = "tenant: dev\nmode: write\ndefault_toolsets: [memory]\nservers: [{ use: stubborn }]\n";
    std::fs::write(data.join("tenants/dev.yaml"), tenant).unwrap();
    let mut client = StdioClient::start(folder.path(), &DATA);
    client.initialize().await;
    let pid = until("the external server", async || {
        std::fs::read_to_string(&pid_file).ok().filter(|text| text.ends_with('\n'))
    })
    .await;
    client.close();
    assert!(client.end().await.0.success());
    until("its child to end", async || gone(pid.trim()).then_some(())).await;
}

/// Whether a process is not there, or waits only for somebody to ask how it ended.
fn gone(pid: &str) -> bool {
    let status = std::fs::read_to_string(format!("/proc/{pid}/status")).unwrap_or_default();
    status.is_empty() || status.lines().any(|line| line.starts_with("State:") && line.contains('Z'))
}

#[tokio::test(flavor = "multi_thread")]
async fn a_folder_that_another_process_uses_is_named_with_that_process() {
    let folder = tempfile::tempdir().unwrap();
    let mut first = StdioClient::start(folder.path(), &DATA);
    first.initialize().await;
    let before = std::fs::read(folder.path().join("data/resource")).unwrap();

    let mut second = StdioClient::start(folder.path(), &DATA);
    let answer = second.ask("initialize", json!({})).await;
    let message = answer["error"]["message"].as_str().unwrap_or_else(|| panic!("{answer}"));
    assert!(message.contains(&format!("`quartermaster stdio` (process {})", first.id())), "{message}");
    assert!(message.contains("--data") && message.contains("--url http://127.0.0.1:"), "{message}");
    second.close();
    let (status, _) = second.end().await;
    assert_eq!(status.code(), Some(2));
    assert_eq!(std::fs::read(folder.path().join("data/resource")).unwrap(), before, "nothing of the first was touched");
    let (code, _, said) = run(folder.path(), &["dev", "--data", "data", "--listen", "127.0.0.1:0"]).await;
    assert!(code == 2 && said.contains("`quartermaster stdio`"), "{said}");

    // And by the way that the message names it can be shared.
    let url = message.split("--url ").nth(1).and_then(|rest| rest.split_whitespace().next()).unwrap();
    let mut through = StdioClient::start(folder.path(), &["--url", url, "--token-file", "data/agent.token"]);
    through.initialize().await;
    assert!(through.tools().await.contains(&"memory_read".to_owned()));
}

/// Approves what waits, as a person in a terminal in the same folder.
pub(crate) async fn approve(folder: &Path, run_id: &str) {
    let (code, out, said) = run(folder, &["runs", "approve", run_id, "--token-file", "data/approver.token"]).await;
    assert_eq!(code, 0, "{out}{said}");
}

#[tokio::test(flavor = "multi_thread")]
async fn progress_comes_before_its_answer_and_a_legacy_wait_is_cancelled_by_a_message() {
    let folder = tempfile::tempdir().unwrap();
    let mut client = StdioClient::start(folder.path(), &DATA);
    client.initialize().await;
    client.call("load_toolset", json!({ "toolset": "k8s", "include_write_tools": true })).await;
    let scale = json!({ "kind": "Deployment", "name": "cart-worker", "namespace": "shop", "replicas": 4 });
    let waiting = client.call("k8s_scale", scale).await;
    let run_id = waiting["structuredContent"]["run"]["id"].as_str().unwrap_or_else(|| panic!("{waiting}")).to_owned();

    let wait = |token: &str| {
        let arguments = json!({ "run_id": run_id, "wait_ms": 50_000 });
        json!({ "name": "await_run", "arguments": arguments, "_meta": { "progressToken": token } })
    };
    let given_up = client.request("tools/call", wait("given up")).await;
    let waited = client.request("tools/call", wait("waited")).await;
    // Both are under way when a later one has been answered.
    assert!(client.call("memory_list", json!({})).await["structuredContent"]["stores"].is_array());
    let cancel = json!({ "jsonrpc": "2.0", "method": "notifications/cancelled", "params": { "requestId": given_up } });
    client.send(&cancel).await;
    assert_eq!(client.ask("ping", json!({})).await["result"], json!({}));
    approve(folder.path(), &run_id).await;
    let of_wait = |message: &Value| message["params"]["progressToken"] == "waited";
    assert_eq!(client.find(of_wait).await["method"], "notifications/progress");
    let ended = client.answer(waited).await;
    assert_eq!(ended["result"]["structuredContent"]["run"]["state"], "succeeded", "{ended}");
    client.close();
    let (_, rest) = client.end().await;
    assert!(!rest.iter().any(|message| message["id"] == given_up), "{rest:?}");
}

/// The project of the test: one runbook at each of two levels, and one that says it only reads.
const PROJECT: &str = r#"runbooks:
  - name: seed
    description: "Write the marker from `key`"
    arguments: { key: { type: string, required: true, pattern: "^[a-z]{1,9}$" } }
    check: ["test", "-f", "marker-{{ args.key }}"]
    run: ["sh", "-c", "echo seeding; echo done > marker-$QM_ARG_KEY"]
  - { name: fail, run: ["sh", "-c", "echo broken; exit 3"] }
  - { name: look, effect: read, run: ["echo", "looked"] }
  - { name: hang, run: ["sh", "-c", "echo $$ > hang.pid; trap '' TERM; sleep 600"] }
"#;

/// A client in a project below a folder that is one as well.
pub(crate) async fn in_project(folder: &Path) -> StdioClient {
    let inner = folder.join("shop/src");
    std::fs::create_dir_all(&inner).unwrap();
    std::fs::write(folder.join("quartermaster.yaml"), "runbooks:\n  - { name: seed, group: shop, run: [\"true\"] }\n")
        .unwrap();
    std::fs::write(folder.join("shop/quartermaster.yaml"), PROJECT).unwrap();
    let data = folder.join("data").display().to_string();
    let mut command = program(&inner, &["stdio", "--data", &data]);
    command.env("HOME", folder);
    let mut client = StdioClient::of(command);
    let opened = client.initialize().await;
    assert!(opened["instructions"].as_str().unwrap().contains("runbooks of this project"), "{opened}");
    client
}

/// Calls a runbook and has it approved; gives the run.
async fn begin(folder: &Path, client: &mut StdioClient, tool: &str, arguments: Value) -> String {
    // The runner of the process may not have said yet that it is there, and nobody announces it.
    let waiting = loop {
        let answer = client.call(tool, arguments.clone()).await;
        if !text(&answer).contains("runner_offline") {
            break answer;
        }
        tokio::time::sleep(std::time::Duration::from_millis(50)).await;
    };
    let run = &waiting["structuredContent"]["run"];
    assert_eq!(run["state"], "pending_approval", "{waiting}");
    let id = run["id"].as_str().unwrap().to_owned();
    approve(folder, &id).await;
    id
}

/// Calls a runbook, has it approved and gives what became of it.
pub(crate) async fn approved(folder: &Path, client: &mut StdioClient, tool: &str, arguments: Value) -> Value {
    let id = begin(folder, client, tool, arguments).await;
    client.call("await_run", json!({ "run_id": id, "wait_ms": 20_000 })).await
}

#[tokio::test(flavor = "multi_thread")]
async fn a_runbook_that_runs_ends_with_the_process() {
    let folder = tempfile::tempdir().unwrap();
    let mut client = in_project(folder.path()).await;
    begin(folder.path(), &mut client, "runbook__shop__hang", json!({})).await;
    let pid_file = folder.path().join("shop/hang.pid");
    let pid =
        until("the command", async || std::fs::read_to_string(&pid_file).ok().filter(|text| text.ends_with('\n')))
            .await;
    client.close();
    assert!(client.end().await.0.success());
    until("the command to end", async || gone(pid.trim()).then_some(())).await;
}
