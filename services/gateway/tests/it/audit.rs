//! The audit log as people meet it: sealed within moments, read over HTTP, exported and verified from a terminal.

use crate::here::{World, embedded, in_process, redis};
use serde_json::{Value, json};
use std::path::Path;
use testkit::{Actor, Plan, until};

/// How a command ended: exit code, what it printed, what it said beside.
pub(crate) struct Told {
    pub(crate) code: i32,
    pub(crate) out: String,
    pub(crate) said: String,
}

/// Runs the real program.
#[expect(clippy::disallowed_methods, reason = "the program under test, never part of the service")]
pub(crate) async fn quartermaster(args: &[&str]) -> Told {
    let mut command = std::process::Command::new(env!("CARGO_BIN_EXE_quartermaster"));
    command.args(args);
    let output = tokio::task::spawn_blocking(move || command.output()).await.unwrap().unwrap();
    let text = |bytes: Vec<u8>| String::from_utf8(bytes).unwrap();
    Told { code: output.status.code().unwrap(), out: text(output.stdout), said: text(output.stderr) }
}

/// Somebody who reads the audit log and does nothing else, at a terminal.
pub(crate) struct Auditor {
    pub(crate) token: String,
    pub(crate) url: String,
    folder: tempfile::TempDir,
}

impl Auditor {
    pub(crate) fn of(world: &World) -> Auditor {
        let token = world.mint().token(|claims| {
            claims.sub = "auditor".to_owned();
            claims.scope = "audit:read".to_owned();
        });
        let folder = tempfile::tempdir().unwrap();
        std::fs::write(folder.path().join("token"), format!("{token}\n")).unwrap();
        Auditor { token, url: format!("http://{}", world.address(0)), folder }
    }

    pub(crate) async fn get(&self, world: &World, query: &str) -> testkit::Answer {
        let bearer = format!("Bearer {}", self.token);
        let request = testkit::Request::new("GET", &format!("/v1/audit{query}"));
        request.header("Authorization", bearer).send(world.address(0)).await
    }

    /// Waits until everything is sealed, and nothing more is about to be written.
    pub(crate) async fn settled(&self, world: &World) -> Vec<Value> {
        until("the audit log to be closed and sealed", async || {
            let page = self.get(world, "?limit=1000").await.json();
            let entries = page["entries"].as_array().unwrap().clone();
            let phase = |name: &str| entries.iter().filter(|entry| entry["entry"]["phase"] == name).count();
            let sealed = entries.iter().all(|entry| !entry["link"].is_null());
            (phase("open") > 0 && phase("open") == phase("close") && sealed).then_some(entries)
        })
        .await
    }

    pub(crate) fn file(&self, name: &str) -> String {
        self.folder.path().join(name).display().to_string()
    }

    pub(crate) async fn run(&self, args: &[&str]) -> Told {
        let token = self.file("token");
        let service = ["audit", "--url", &self.url, "--token-file", &token];
        quartermaster(&[&service[..], args].concat()).await
    }

    /// Verifies some lines as a file.
    async fn judge(&self, lines: &[&str]) -> (i32, String) {
        let file = self.file("judged");
        std::fs::write(&file, lines.iter().map(|line| format!("{line}\n")).collect::<String>()).unwrap();
        let told = self.run(&["verify", &file]).await;
        (told.code, told.out.trim_end().to_owned())
    }
}

/// The lines of an export without its checkpoints, which may come at any moment.
fn unsigned(export: &str) -> String {
    export.lines().filter(|line| !line.starts_with(r#"{"checkpoint""#)).map(|line| format!("{line}\n")).collect()
}

pub(crate) async fn call(agent: &Actor, times: usize) {
    let client = agent.legacy().await;
    for _ in 0..times {
        client.call("memory_list", json!({})).await.ok();
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn an_exported_audit_log_is_verified_and_every_change_to_it_is_named() {
    let world = embedded().await;
    call(&world.tenant("acme").agent(), 4).await;
    let auditor = Auditor::of(&world);
    let count = auditor.settled(&world).await.len();

    let file = auditor.file("audit log.jsonl");
    let exported = auditor.run(&["export", "--out", &file]).await;
    assert_eq!((exported.code, exported.out.as_str()), (0, ""), "{}", exported.said);
    let text = unsigned(&std::fs::read_to_string(&file).unwrap());
    assert_eq!(unsigned(&auditor.run(&["export"]).await.out), text, "to the terminal goes the same");
    assert!(!Path::new(&format!("{file}.partial")).exists());
    let lines: Vec<&str> = text.lines().collect();
    assert_eq!(lines.len(), 1 + 2 * count, "a head, and each entry with its link");
    let good = format!("the audit log of acme is intact: {count} entries, {count} sealed, 0 not sealed yet; ");
    assert_eq!(auditor.judge(&lines).await, (0, format!("{good}no checkpoint yet")));
    assert!(auditor.run(&["verify"]).await.out.starts_with(&good), "and the service's own is the same");

    let place =
        |seq: usize| serde_json::from_str::<Value>(lines[2 * seq - 1]).unwrap()["id"].as_str().unwrap().to_owned();
    let broken = |seq: usize, what: &str| (1, format!("entry {seq} ({}) is {what}", place(seq)));
    let edited = lines[5].replace("\"phase\":\"", "\"phase\":\"x");
    let with = |at: usize, line: &str| [&lines[..at], &[line], &lines[at + 1..]].concat().join("\n");
    assert_eq!(auditor.judge(&[&with(5, &edited)]).await, broken(3, "edited"));
    assert_eq!(auditor.judge(&[&lines[..3], &lines[4..]].concat()).await, broken(2, "missing"));
    let swapped = [&lines[..3], &[lines[5], lines[4], lines[3]], &lines[6..]].concat();
    assert_eq!(auditor.judge(&swapped).await, (1, format!("entry 2 ({}) is reordered", place(3))));
    assert_eq!(auditor.judge(&lines[..lines.len() - 2]).await, (1, format!("entry {count} is truncated")));
    assert_eq!(auditor.judge(&[&lines[..3], &lines[5..]].concat()).await, (1, "entry 2 is missing".to_owned()));
    let foreign = with(0, &lines[0].replace("acme", "other"));
    assert_eq!(auditor.judge(&[&foreign]).await, broken(1, "edited"));
    let torn = [&lines[..4], &[&lines[4][..lines[4].len() / 2]]].concat();
    assert_eq!(auditor.judge(&torn).await, (1, "line 5 is not a line of an exported audit log".to_owned()));
    assert_eq!(auditor.judge(&lines[1..]).await, (1, "line 1 is not a line of an exported audit log".to_owned()));
}

#[tokio::test(flavor = "multi_thread")]
async fn programs_are_told_in_json_and_bad_usage_is_not_an_answer() {
    let world = embedded().await;
    call(&world.tenant("acme").agent(), 1).await;
    let auditor = Auditor::of(&world);
    let count = auditor.settled(&world).await.len();

    let told = auditor.run(&["verify", "--output", "json"]).await;
    let mut told_body: Value = serde_json::from_str(&told.out).unwrap();
    for key in ["checkpoints", "signed"] {
        assert!(told_body.as_object_mut().unwrap().remove(key).unwrap().is_u64(), "whenever a checkpoint was made");
    }
    let wanted = json!({ "ok": true, "tenant": "acme", "after": 0, "entries": count, "sealed": count, "unsealed": 0 });
    assert_eq!((told.code, told_body), (0, wanted));
    let file = auditor.file("audit log");
    let head = auditor.run(&["export"]).await.out.lines().next().unwrap().to_owned();
    std::fs::write(&file, head).unwrap();
    let told = auditor.run(&["verify", &file, "--output", "json"]).await;
    let wanted = json!({ "ok": false, "seq": 1, "entry": null, "what": "truncated" });
    assert_eq!((told.code, serde_json::from_str::<Value>(&told.out).unwrap()), (1, wanted));

    let empty = auditor.file("empty");
    std::fs::write(&empty, "").unwrap();
    let (nothing, nowhere) = (auditor.file("nothing"), auditor.file("no/where"));
    for (args, said) in [
        (&["verify", &nothing][..], "cannot read"),
        (&["verify", &empty], "is not an exported audit log"),
        (&["export", "--out", &nowhere], "cannot write"),
        (&["export", "--token-file", &nothing], "cannot read the token"),
        (&["export", "--url", "http://127.0.0.1:1"], "the service did not answer"),
    ] {
        let told = auditor.run(args).await;
        assert_eq!((told.code, told.out.as_str()), (2, ""), "{args:?}");
        assert!(told.said.contains(said), "{args:?}: {}", told.said);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_token_that_may_not_read_the_audit_log_exports_nothing() {
    let world = embedded().await;
    let auditor = Auditor::of(&world);
    let (token, file) = (auditor.file("other.token"), auditor.file("audit log"));
    std::fs::write(&token, world.tenant("acme").agent().token()).unwrap();
    let told = auditor.run(&["export", "--out", &file, "--token-file", &token]).await;
    assert_eq!(told.code, 1);
    assert!(told.said.contains("insufficient_scope"), "{}", told.said);
    assert!(!Path::new(&file).exists() && !Path::new(&format!("{file}.partial")).exists());
    let told = auditor.run(&["verify", "--token-file", &token]).await;
    assert_eq!((told.code, told.out.as_str()), (1, ""));
}

#[tokio::test(flavor = "multi_thread")]
async fn the_audit_log_is_read_page_by_page_and_only_by_whoever_may() {
    let world = embedded().await;
    let acme = world.tenant("acme");
    call(&acme.agent(), 3).await;
    let auditor = Auditor::of(&world);
    let whole = auditor.settled(&world).await;

    let (mut seen, mut query) = (Vec::new(), "?limit=2".to_owned());
    loop {
        let page = auditor.get(&world, &query).await.json();
        assert_eq!((&page["tenant"], &page["loose"]), (&json!("acme"), &json!([])));
        seen.extend(page["entries"].as_array().unwrap().clone());
        let Some(next) = page["next_cursor"].as_str() else { break };
        query = format!("?limit=2&after={next}");
    }
    assert_eq!(seen, whole);
    let numbers: Vec<u64> = seen.iter().map(|entry| entry["link"]["seq"].as_u64().unwrap()).collect();
    assert_eq!(numbers, (1..=whole.len() as u64).collect::<Vec<_>>());

    for actor in [acme.agent(), acme.reader(), acme.approver()] {
        let refused = actor.rest().get("/v1/audit").await;
        assert_eq!((refused.status, &refused.json()["error"]["code"]), (403, &json!("insufficient_scope")));
        assert!(refused.header("www-authenticate").unwrap().contains("scope=\"audit:read\""));
    }
    let stranger = world.mint().token(|claims| {
        claims.tenant = "other".to_owned();
        claims.scope = "audit:read".to_owned();
    });
    let foreign = Auditor { token: stranger, ..Auditor::of(&world) };
    let nothing = json!({ "tenant": "other", "start": null, "seal": null, "entries": [], "loose": [], "next_cursor": null,
        "end_cursor": null });
    assert_eq!(foreign.get(&world, "").await.json(), nothing);
    for (query, code) in [
        ("?limit=0", "invalid_request"),
        ("?limit=1001", "invalid_request"),
        ("?limit=-1", "invalid_request"),
        ("?before=1", "invalid_request"),
        ("?after=", "bad_cursor"),
        ("?after=1-0", "bad_cursor"),
        ("?after=18446744073709551615-18446744073709551615.0-0", "bad_cursor"),
    ] {
        let refused = auditor.get(&world, query).await;
        assert_eq!((refused.status, &refused.json()["error"]["code"]), (400, &json!(code)), "{query}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn au1_replicas_seal_one_chain_and_an_entry_taken_out_beneath_them_is_named() {
    let mut world = redis(2).await;
    let agent = world.tenant("acme").agent();
    let (on_a, on_b) = (agent.on(0), agent.on(1));
    tokio::join!(call(&on_a, 10), call(&on_b, 10));
    let auditor = Auditor::of(&world);
    let entries = auditor.settled(&world).await;
    let told = auditor.run(&["verify"]).await;
    assert_eq!((told.code, told.out.contains(&format!("{} sealed", entries.len()))), (0, true), "{}", told.out);

    // Entries that were written together stand in one item, and go with it.
    let item = |entry: &Value| entry["id"].as_str().unwrap().split('.').next().unwrap().to_owned();
    let victim = item(&entries[7]);
    assert_eq!(world.redis().command(&["XDEL", "world:{acme}:audit", &victim]), ":1");

    let told = auditor.run(&["verify"]).await;
    let gone: Vec<usize> = (1..=entries.len()).filter(|seq| item(&entries[seq - 1]) == victim).collect();
    assert_eq!((told.code, told.out), (1, format!("entry {} ({victim}) is missing\n", gone[0])));
    let page = auditor.get(&world, "?limit=1000").await.json();
    let loose: Vec<Value> = page["loose"].as_array().unwrap().iter().map(|link| link["seq"].clone()).collect();
    assert_eq!((loose, &page["loose"][0]["entry"]), (gone.into_iter().map(Value::from).collect(), &json!(victim)));
}

#[tokio::test(flavor = "multi_thread")]
async fn sealing_goes_on_after_the_store_was_away() {
    let mut world = redis(1).await;
    world.redis().sync_every_write();
    let agent = world.tenant("acme").agent();
    call(&agent, 2).await;
    let auditor = Auditor::of(&world);
    let before = auditor.settled(&world).await.len();
    world.redis().restart();
    until("calls to work again", async || {
        (agent.plain("tools/call", json!({ "name": "memory_list" })).await.code() == "ok").then_some(())
    })
    .await;
    let after = auditor.settled(&world).await;
    assert!(after.len() > before);
    assert_eq!(auditor.run(&["verify"]).await.code, 0);
}

/// The opening entries of calls of a tool.
fn openings<'a>(entries: &'a [Value], tool: &str) -> Vec<&'a Value> {
    let is = |entry: &&Value| entry["phase"] == "open" && entry["tool"] == tool;
    entries.iter().map(|entry| &entry["entry"]).filter(is).collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn the_entry_of_a_call_names_its_target() {
    let targets = "default_toolsets: [k8s, jenkins, memory]\n\
        clusters: [{ name: play, sandbox: true }, { name: other, sandbox: true }]\n\
        toolsets: { jenkins: { sandbox: true } }";
    let world = Plan::embedded().tenant("acme", targets).start(in_process()).await;
    let client = world.tenant("acme").agent().legacy().await;
    for (tool, arguments) in [
        ("k8s_get", json!({ "kind": "Pod", "cluster": "other" })),
        ("k8s_get", json!({ "kind": "Pod", "cluster": "unheard-of" })),
        ("jenkins_whoami", json!({})),
        ("memory_list", json!({})),
    ] {
        client.call(tool, arguments).await;
    }
    let entries = Auditor::of(&world).settled(&world).await;
    let targets = |tool: &str| openings(&entries, tool).iter().map(|entry| entry["target"].clone()).collect::<Vec<_>>();
    assert_eq!(targets("k8s_get"), [json!("cluster/other"), Value::Null], "a name that is none stays out");
    assert_eq!(targets("jenkins_whoami"), ["jenkins/jenkins"], "the only one need not be named");
    assert_eq!(targets("memory_list"), [Value::Null]);
}

#[tokio::test(flavor = "multi_thread")]
async fn the_entry_of_a_call_names_its_token_by_a_keyed_digest() {
    let world = embedded().await;
    let agent = world.tenant("acme").agent();
    let again = agent.scoped("tools:read");
    for actor in [&agent, &agent, &again] {
        call(actor, 1).await;
    }
    let entries = Auditor::of(&world).settled(&world).await;
    let token = |entry: &&Value| entry["actor"]["token"].as_str().expect("every call had a token").to_owned();
    let tokens: Vec<String> = openings(&entries, "memory_list").iter().map(token).collect();
    let [first, second, third] = tokens.as_slice() else { panic!("three calls: {entries:#?}") };
    assert_eq!(first, second, "one token, however often");
    assert_ne!(first, third, "another token of the same principal");
    assert!(first.starts_with("hmac:") && first.len() == "hmac:".len() + 32, "{first}");
    let plain = domain::json::sha256_hex(agent.token().as_bytes());
    let text = serde_json::to_string(&entries).unwrap();
    assert!(!text.contains(agent.token()) && !text.contains(&plain[..32]), "nobody can check a guess against it");
}

/// What `audit:read` shows of a text: whole, and as the digest in the entry says.
fn contents(item: &Value) -> Value {
    let (shown, entry) = (&item["contents"], &item["entry"]["contents"]);
    let (text, salt) = (shown["text"].as_str().unwrap(), shown["salt"].as_str().unwrap());
    assert_eq!((&shown["whole"], &entry["bytes"]), (&json!(true), &json!(text.len())));
    let salt: Vec<u8> =
        (0..salt.len()).step_by(2).map(|at| u8::from_str_radix(&salt[at..at + 2], 16).unwrap()).collect();
    let digest = domain::json::sha256_hex(&[&salt, text.as_bytes()].concat());
    assert_eq!(entry["digest"], format!("sha256:{digest}"), "anybody who may read it can check it");
    serde_json::from_str(text).unwrap()
}

#[tokio::test(flavor = "multi_thread")]
async fn the_exact_arguments_and_result_are_in_the_log_and_only_sealed_in_the_store() {
    const WORDS: &str = "whooping crane 4711";
    let mut world = redis(1).await;
    let agent = world.tenant("acme").agent();
    let client = agent.legacy().await;
    let failed = client.call("memory_read", json!({ "path": "session/notes/none" })).await;
    client.call("memory_search", json!({ "query": WORDS })).await.ok();
    client.call("memory_search", json!({ "query": "password=hunter22hunter22" })).await.ok();
    let entries = Auditor::of(&world).settled(&world).await;
    let of = |phase: &str, tool: &str| -> Vec<Value> {
        let is = |item: &&Value| item["entry"]["phase"] == phase && item["entry"]["tool"] == tool;
        entries.iter().filter(is).cloned().collect()
    };
    let asked = of("open", "memory_search");
    assert_eq!(contents(&asked[0]), json!({ "query": WORDS }));
    assert!(!contents(&asked[1]).to_string().contains("hunter22"), "what looks like a secret is masked");
    let ended = of("close", "memory_search");
    assert!(contents(&ended[0]).is_object());
    assert_eq!(
        (&ended[0]["entry"]["decision"]["verdict"], &ended[0]["entry"]["outcome"]["code"]),
        (&json!("permit"), &json!("ok"))
    );
    assert!(ended[0]["entry"]["outcome"]["ms"].is_u64());
    let refused = contents(&of("close", "memory_read")[0]);
    assert_eq!((&refused["code"], failed.code()), (&json!("doc_not_found"), "doc_not_found"));

    let stored = String::from_utf8_lossy(&world.redis().written()).into_owned();
    assert!(stored.contains("memory_search") && !stored.contains(WORDS), "the store holds no word of it");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_tenant_that_wants_digests_has_no_contents_in_its_log() {
    let world = Plan::embedded().tenant("acme", "audit: { contents: digests }").start(in_process()).await;
    let client = world.tenant("acme").agent().legacy().await;
    client.call("memory_search", json!({ "query": "whooping crane" })).await.ok();
    let entries = Auditor::of(&world).settled(&world).await;
    let opened = entries.iter().find(|item| item["entry"]["phase"] == "open").unwrap();
    let whole = json!({ "query": "whooping crane" }).to_string();
    assert_eq!((&opened["contents"]["text"], &opened["contents"]["whole"]), (&json!(""), &json!(false)));
    let salt = opened["contents"]["salt"].as_str().unwrap();
    let salt: Vec<u8> =
        (0..salt.len()).step_by(2).map(|at| u8::from_str_radix(&salt[at..at + 2], 16).unwrap()).collect();
    let digest = domain::json::sha256_hex(&[&salt, whole.as_bytes()].concat());
    assert_eq!(opened["entry"]["contents"]["digest"], format!("sha256:{digest}"), "a guess can be checked");
}

#[tokio::test(flavor = "multi_thread")]
async fn entries_tell_the_rule_and_its_line_the_tokens_and_the_program() {
    let file = "policy:\n  deny:\n  - memory_read:session\n  require_approval: [memory_history]";
    let world = Plan::embedded().tenant("acme", file).start(in_process()).await;
    let agent = world.tenant("acme").agent();
    let client = agent.legacy().await;
    client.call("memory_read", json!({ "path": "session/notes/none" })).await;
    client.call("memory_history", json!({ "path": "tenant/runbooks/none" })).await;
    client.call("memory_list", json!({})).await.ok();
    let program = json!({ "io.modelcontextprotocol/clientInfo": { "name": "crane", "version": "4.2" } });
    let named = json!({ "name": "memory_search", "arguments": { "query": "x" }, "_meta": program });
    agent.modern().ask("tools/call", named).await.ok();
    let rest = agent.rest().post("/v1/sessions", &json!({})).await.json();
    let session = rest["session"]["id"].as_str().or(rest["id"].as_str()).unwrap_or_else(|| panic!("{rest}"));
    let body = json!({ "tool": "memory_search", "arguments": { "query": "y" } });
    let request = agent.post(&format!("/v1/sessions/{session}/calls"), &body).header("User-Agent", "curl/8.1");
    assert_eq!(agent.send(&request).await.status, 200);

    let entries = Auditor::of(&world).settled(&world).await;
    let of = |phase: &str, tool: &str| -> Vec<&Value> {
        let is = |entry: &&Value| entry["phase"] == phase && entry["tool"] == tool;
        entries.iter().map(|item| &item["entry"]).filter(is).collect()
    };
    let rule = |tool: &str| of("close", tool)[0]["decision"]["rule"].clone();
    assert_eq!(
        rule("memory_read"),
        json!({ "key": "policy.deny", "text": "memory_read:session", "source": "file", "line": 6 })
    );
    assert_eq!(
        rule("memory_history"),
        json!({ "key": "policy.require_approval", "text": "memory_history", "source": "file", "line": 7 })
    );
    let listed = of("close", "memory_list")[0];
    assert_eq!(listed["decision"], json!({ "verdict": "permit" }), "a read rests on no rule");
    let outcome = &listed["outcome"];
    assert!(outcome["tokens"].as_u64() > Some(0) && outcome["bytes"].as_u64() > outcome["tokens"].as_u64(), "{listed}");
    assert_eq!(listed["client"], "testkit/1", "what initialize said");
    let programs: Vec<&Value> = of("open", "memory_search").iter().map(|entry| &entry["client"]).collect();
    assert_eq!(programs, ["crane/4.2", "curl/8.1"]);
}

#[tokio::test(flavor = "multi_thread")]
async fn the_end_of_a_run_has_its_exact_result_who_approved_it_and_how_long_it_took() {
    let world = crate::runs_desk::asking(Plan::embedded(), "deciders: 1").start(in_process()).await;
    let tenant = world.tenant("acme");
    let client = crate::runs_desk::asker(&tenant.agent()).await;
    let run = crate::runs_desk::ask(&client, "cranes", "three whooping cranes").await;
    crate::runs_desk::approve(&tenant.approver(), &run).await;
    let told = crate::runs_desk::ended(&tenant.approver(), &run).await;
    assert_eq!(told["state"], "succeeded", "{told}");
    // Nobody has been handed it: the entry of the end stands by itself.
    let ended = until("the end of the run", async || {
        let page = Auditor::of(&world).get(&world, "?limit=1000").await.json();
        let is = |item: &&Value| item["entry"]["run"]["id"] == run && item["entry"]["run"]["to"] == "succeeded";
        page["entries"].as_array().unwrap().iter().find(is).cloned()
    })
    .await;
    let entry = &ended["entry"];
    assert_eq!(contents(&ended)["path"], "tenant/runbooks/cranes", "{ended}");
    assert_eq!(entry["outcome"]["code"], "ok");
    assert!(entry["outcome"]["ms"].is_u64() && entry["outcome"]["tokens"].as_u64() > Some(0), "{entry}");
    let approvals = entry["run"]["approvals"].as_array().unwrap();
    assert_eq!(approvals.len(), 1, "{entry}");
    assert!(approvals[0]["sub"].is_string() && approvals[0]["at"].as_str().unwrap().ends_with('Z'), "{entry}");
}
