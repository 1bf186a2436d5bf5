//! The audit log outside the store: signed checkpoints, exported files, and what is found when somebody meddles.

use crate::audit::{Auditor, Told, call, quartermaster};
use crate::here::{World, in_process};
use serde_json::{Value, json};
use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use testkit::{Plan, Request, until};

const KEYS: &str = "/.well-known/quartermaster-audit-keys.json";

/// Signs every three entries.
fn plan(plan: Plan) -> Plan {
    plan.setting("QM_AUDIT__CHECKPOINT_ENTRIES", "3")
}

/// Waits until everything is sealed and signed, and gives the number of entries.
async fn signed(world: &World, auditor: &Auditor) -> u64 {
    let entries = auditor.settled(world).await;
    let last = entries.last().unwrap()["link"]["seq"].as_u64().unwrap();
    until("a checkpoint near the end", async || {
        let page = checkpoints(world, auditor).await;
        let signed = page["newest"]["last"].as_u64().unwrap_or_default();
        (last - signed < 3).then_some(())
    })
    .await;
    entries.len() as u64
}

async fn checkpoints(world: &World, auditor: &Auditor) -> Value {
    let request = Request::new("GET", "/v1/audit/checkpoints");
    request.header("Authorization", format!("Bearer {}", auditor.token)).send(world.address(0)).await.json()
}

#[tokio::test(flavor = "multi_thread")]
async fn checkpoints_are_published_and_verified_without_a_secret() {
    let world = plan(Plan::embedded()).tenant("acme", "").start(in_process()).await;
    call(&world.tenant("acme").agent(), 6).await;
    let auditor = Auditor::of(&world);
    let count = signed(&world, &auditor).await;
    let told = auditor.run(&["verify", "--output", "json"]).await;
    let told: Value = serde_json::from_str(&told.out).unwrap();
    assert_eq!((&told["ok"], &told["entries"], &told["after"]), (&json!(true), &json!(count), &json!(0)));
    assert!(told["checkpoints"].as_u64() >= Some(1) && told["signed"].as_u64() > Some(count - 3), "{told}");

    // Public keys and the file are all that is needed, far from the service.
    let keys = world.get(0, KEYS).await;
    assert_eq!((keys.status, keys.json()["keys"][0]["crv"].as_str()), (200, Some("Ed25519")));
    let (file, set) = (auditor.file("audit.jsonl"), auditor.file("keys.json"));
    std::fs::write(&set, keys.json().to_string()).unwrap();
    assert_eq!(auditor.run(&["export", "--out", &file]).await.code, 0);
    let away = ["audit", "--url", "http://127.0.0.1:1", "--token-file", "/nowhere", "verify", &file];
    let told = quartermaster(&[&away[..], &["--keys", &set]].concat()).await;
    assert_eq!(told.code, 0, "{}{}", told.out, told.said);
    let told = quartermaster(&[&away[..], &["--keys", &set, "--known", &file]].concat()).await;
    assert_eq!(told.code, 0, "{}{}", told.out, told.said);
    let told = quartermaster(&away).await;
    assert_eq!((told.code, told.said.contains("name a file with --keys")), (2, true), "{}", told.said);
    let other =
        json!({ "keys": [{ "kty": "OKP", "crv": "Ed25519", "x": "11qYAYKxCrfVS_7TyWQHOg7hcvPapiMlrwIaaPcHURo" }] });
    std::fs::write(&set, other.to_string()).unwrap();
    let told = quartermaster(&[&away[..], &["--keys", &set]].concat()).await;
    assert_eq!((told.code, told.out.as_str()), (1, "checkpoint 1 is signed by an unknown key\n"));

    for actor in [world.tenant("acme").agent(), world.tenant("acme").approver()] {
        assert_eq!(actor.rest().get("/v1/audit/checkpoints").await.status, 403);
    }
}

/// The script of docs/audit.md, with this export and these keys.
#[expect(clippy::disallowed_methods, reason = "an independent program that verifies, never part of the service")]
fn script(keys: &Path, file: &Path) -> Option<Told> {
    let page = std::fs::read_to_string(concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/audit.md")).unwrap();
    let (_, rest) = page.split_once("```python\n").unwrap();
    let (script, _) = rest.split_once("```").unwrap();
    let ready = Command::new("python3").args(["-c", "import cryptography"]).output();
    if !ready.is_ok_and(|ready| ready.status.success()) {
        println!("SKIPPED: python3 with the package cryptography is not here");
        return None;
    }
    let output = Command::new("python3").arg("-c").arg(script).args([keys, file]).output().unwrap();
    let text = |bytes: Vec<u8>| String::from_utf8(bytes).unwrap();
    Some(Told { code: output.status.code().unwrap(), out: text(output.stdout), said: text(output.stderr) })
}

#[tokio::test(flavor = "multi_thread")]
async fn the_script_of_the_auditors_page_agrees() {
    let world = plan(Plan::embedded()).tenant("acme", "").start(in_process()).await;
    call(&world.tenant("acme").agent(), 5).await;
    let auditor = Auditor::of(&world);
    let count = signed(&world, &auditor).await;
    let (file, set) = (auditor.file("audit.jsonl"), auditor.file("keys.json"));
    std::fs::write(&set, world.get(0, KEYS).await.json().to_string()).unwrap();
    assert_eq!(auditor.run(&["export", "--out", &file]).await.code, 0);
    let Some(told) = script(Path::new(&set), Path::new(&file)) else { return };
    assert_eq!((told.code, told.out.contains(&format!("{count} entries"))), (0, true), "{}{}", told.out, told.said);
    let text = std::fs::read_to_string(&file).unwrap();
    for (from, to) in [("\"phase\":\"close\"", "\"phase\":\"clOse\""), ("\"made\":\"2", "\"made\":\"3")] {
        std::fs::write(&file, text.replacen(from, to, 1)).unwrap();
        assert_eq!(script(Path::new(&set), Path::new(&file)).unwrap().code, 1, "{from}");
    }
}

/// Rewrites a stream of Redis with one thing changed: entry `at` is deleted, doubled, edited, exchanged with the next, or
/// everything from it on is gone.
const MEDDLE: &str = "
local items, way, at = redis.call('XRANGE', KEYS[1], '-', '+'), ARGV[1], tonumber(ARGV[2])
if at >= #items and way == 'exchanged' then at = #items - 1 end
local fields = {}
for n, item in ipairs(items) do fields[n] = item[2] end
if way == 'edited' then
  local body = fields[at][2]
  local last = body:find('%w%W*$')
  fields[at] = {'b', body:sub(1, last - 1) .. (body:sub(last, last) == '1' and '2' or '1') .. body:sub(last + 1)}
elseif way == 'exchanged' then
  fields[at], fields[at + 1] = fields[at + 1], fields[at]
end
redis.call('DEL', KEYS[1])
for n, item in ipairs(items) do
  if not (way == 'deleted' and n == at) and not (way == 'truncated' and n >= at) then
    redis.call('XADD', KEYS[1], item[1], unpack(fields[n]))
  end
end
return #items";

#[tokio::test(flavor = "multi_thread")]
async fn au2_whatever_is_done_to_entries_links_or_checkpoints_in_the_store_is_found() {
    let mut world = plan(Plan::redis(1)).tenant("acme", "").start(in_process()).await;
    let agent = world.tenant("acme").agent();
    let auditor = Auditor::of(&world);
    for _ in 0..3 {
        call(&agent, 2).await;
        signed(&world, &auditor).await;
    }
    assert_eq!(auditor.run(&["verify"]).await.code, 0);
    let mut tried = 0;
    for stream in ["audit", "links", "checkpoints"] {
        let (key, kept) = (format!("world:{{acme}}:{stream}"), format!("world:{{acme}}:kept-{stream}"));
        assert_eq!(world.redis().command(&["COPY", &key, &kept]), ":1");
        let length: usize = world.redis().command(&["XLEN", &key])[1..].trim().parse().unwrap();
        assert!(length >= 2, "{stream}");
        for way in ["deleted", "edited", "exchanged", "truncated"] {
            for at in [1, 2, length] {
                world.redis().command(&["EVAL", MEDDLE, "1", &key, way, &at.to_string()]);
                let told = auditor.run(&["verify"]).await;
                assert!(told.code != 0, "{stream} {at} {way}: {}", told.out);
                tried += 1;
                assert_eq!(world.redis().command(&["COPY", &kept, &key, "REPLACE"]), ":1");
            }
        }
    }
    assert_eq!((auditor.run(&["verify"]).await.code, tried), (0, 36), "and all of it was put back");
}

fn files(folder: &Path) -> Vec<PathBuf> {
    let mut found = Vec::new();
    for entry in std::fs::read_dir(folder).into_iter().flatten() {
        let path = entry.unwrap().path();
        if path.is_dir() { found.extend(files(&path)) } else { found.push(path) }
    }
    found.sort_by(|a, b| a.file_name().cmp(&b.file_name()));
    found
}

#[tokio::test(flavor = "multi_thread")]
async fn a_folder_gets_every_tenants_audit_log_and_verifies() {
    let out = tempfile::tempdir().unwrap();
    let sink =
        format!("[{{ name = \"disk\", kind = \"folder\", path = \"{}\", every = \"1ms\" }}]", out.path().display());
    let world = plan(Plan::redis(2)).setting("QM_AUDIT__SINKS", &sink).tenant("acme", "").tenant("bolt", "");
    let world = world.start(in_process()).await;
    for tenant in ["acme", "bolt"] {
        let agent = world.tenant(tenant).agent();
        let (on_a, on_b) = (agent.on(0), agent.on(1));
        tokio::join!(call(&on_a, 4), call(&on_b, 4));
    }
    let auditor = Auditor::of(&world);
    let count = signed(&world, &auditor).await;
    let folder = out.path().display().to_string();
    until("everything to be exported", async || {
        let told = auditor.run(&["verify", &folder, "--output", "json"]).await;
        let told: Value = serde_json::from_str(&told.out).ok()?;
        let acme = told.as_array()?.iter().find(|one| one["tenant"] == "acme")?;
        (acme["entries"] == count && acme["signed"].as_u64()? + 3 > count).then_some(())
    })
    .await;
    let told = auditor.run(&["verify", &folder]).await;
    assert_eq!((told.code, told.out.lines().count()), (0, 2), "{}", told.out);

    let acme = files(&out.path().join("acme"));
    assert!(acme.iter().all(|file| file.extension().unwrap() == "jsonl"), "{acme:?}");
    let (first, text) = (&acme[0], std::fs::read_to_string(&acme[0]).unwrap());
    std::fs::write(first, text.replacen("\"phase\":\"open\"", "\"phase\":\"shut\"", 1)).unwrap();
    let told = auditor.run(&["verify", &folder]).await;
    assert_eq!((told.code, told.out.contains("is edited")), (1, true), "{}", told.out);
    std::fs::write(first, &text).unwrap();
    if acme.len() > 2 {
        let middle = std::fs::read_to_string(&acme[1]).unwrap();
        std::fs::remove_file(&acme[1]).unwrap();
        let told = auditor.run(&["verify", &folder]).await;
        assert_eq!((told.code, told.out.contains("missing")), (1, true), "{}", told.out);
        std::fs::write(&acme[1], middle).unwrap();
    }
    let warnings = world.get(0, "/readyz").await.json()["warnings"].clone();
    assert!(!warnings.to_string().contains("audit_export_behind"), "{warnings}");
}

#[tokio::test(flavor = "multi_thread")]
async fn the_audit_log_is_searched_by_every_part_and_a_page_without_a_find_goes_on() {
    let world = plan(Plan::embedded()).tenant("acme", "").start(in_process()).await;
    let agent = world.tenant("acme").agent();
    call(&agent, 3).await;
    agent.legacy().await.call("memory_search", json!({ "query": "none" })).await;
    let auditor = Auditor::of(&world);
    let whole = auditor.settled(&world).await;
    let find = async |query: &str| {
        let page = auditor.get(&world, &format!("?limit=1000&{query}")).await;
        assert_eq!(page.status, 200, "{query}");
        page.json()["entries"].as_array().unwrap().clone()
    };
    let opened =
        |tool: &str| whole.iter().find(|one| one["entry"]["phase"] == "open" && one["entry"]["tool"] == tool).unwrap();
    let read = &opened("memory_search")["entry"];
    let text = |value: &Value| value.as_str().unwrap().to_owned();
    for (query, fits) in [
        (
            "tool=memory_search".to_owned(),
            Box::new(|one: &Value| one["tool"] == "memory_search") as Box<dyn Fn(&Value) -> bool>,
        ),
        (format!("session={}", text(&read["session"])), Box::new(|one: &Value| one["session"] == read["session"])),
        (format!("call={}", text(&read["call"])), Box::new(|one: &Value| one["call"] == read["call"])),
        (
            format!("principal={}", text(&read["actor"]["sub"])),
            Box::new(|one: &Value| one["actor"]["sub"] == read["actor"]["sub"]),
        ),
        ("code=ok".to_owned(), Box::new(|one: &Value| one["outcome"]["code"] == "ok")),
        ("code=not_found&tool=memory_list".to_owned(), Box::new(|_: &Value| false)),
        ("target=cluster/x".to_owned(), Box::new(|_: &Value| false)),
        ("run=run_1".to_owned(), Box::new(|_: &Value| false)),
        ("since=2020-01-01T00:00:00Z".to_owned(), Box::new(|_: &Value| true)),
        ("since=2999-01-01T00:00:00Z".to_owned(), Box::new(|_: &Value| false)),
        ("until=2999-01-01T00:00:00Z".to_owned(), Box::new(|_: &Value| true)),
        ("until=2020-01-01T00:00:00Z".to_owned(), Box::new(|_: &Value| false)),
    ] {
        let wanted: Vec<&Value> = whole.iter().filter(|one| fits(&one["entry"])).collect();
        let found = find(&query).await;
        assert_eq!(found.iter().collect::<Vec<_>>(), wanted, "{query}");
    }
    let page = auditor.get(&world, "?limit=2&tool=none").await.json();
    assert_eq!((&page["entries"], page["next_cursor"].is_string()), (&json!([]), true), "two were looked at");
    for bad in ["since=yesterday", "until=1", "since="] {
        let refused = auditor.get(&world, &format!("?{bad}")).await;
        assert_eq!((refused.status, &refused.json()["error"]["code"]), (400, &json!("invalid_request")), "{bad}");
    }

    let told = auditor.run(&["search", "--tool", "memory_search", "--since", "1h"]).await;
    assert_eq!((told.code, told.out.lines().count()), (0, 2), "{}{}", told.out, told.said);
    assert!(told.out.lines().all(|line| line.contains("memory_search")), "{}", told.out);
    let told = auditor.run(&["search", "--tool", "memory_list", "--limit", "1", "--output", "json"]).await;
    assert_eq!(serde_json::from_str::<Value>(&told.out).unwrap()["entry"]["tool"], "memory_list");
    assert!(told.said.contains("only the first 1"), "{}", told.said);
    let told = auditor.run(&["search", "--since", "soon"]).await;
    assert_eq!((told.code, told.said.contains("neither a time")), (2, true), "{}", told.said);
}

#[tokio::test(flavor = "multi_thread")]
#[expect(clippy::disallowed_methods, reason = "the program under test, never part of the service")]
async fn tail_shows_what_is_written_while_it_runs() {
    let world = plan(Plan::embedded()).tenant("acme", "").start(in_process()).await;
    let (agent, auditor) = (world.tenant("acme").agent(), Auditor::of(&world));
    let mut command = Command::new(env!("CARGO_BIN_EXE_quartermaster"));
    let token = auditor.file("token");
    command.args(["audit", "--url", &auditor.url, "--token-file", &token, "tail", "--tool", "memory_list"]);
    let mut running = command.stdout(Stdio::piped()).spawn().unwrap();
    let mut lines = BufReader::new(running.stdout.take().unwrap()).lines();
    for round in 0..2 {
        call(&agent, 1).await;
        // Opening and closing entry of the call.
        for _ in 0..2 {
            let (line, rest) = tokio::task::spawn_blocking(move || (lines.next(), lines)).await.unwrap();
            lines = rest;
            let line = line.unwrap().unwrap();
            assert!(line.contains("memory_list"), "round {round}: {line}");
        }
    }
    running.kill().unwrap();
    running.wait().unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn a_collector_gets_the_audit_log_line_by_line_and_what_it_holds_verifies() {
    const WORDS: &str = "three whooping cranes";
    let collector = testkit::Collector::start().await;
    let sink = format!(
        r#"[{{ name = "otel", kind = "otlp", url = "{}/v1/logs", every = "100ms", contents = "opened" }}]"#,
        collector.url()
    );
    let world = plan(Plan::embedded()).setting("QM_AUDIT__SINKS", &sink).tenant("acme", "").start(in_process()).await;
    let client = world.tenant("acme").agent().legacy().await;
    client.call("memory_search", json!({ "query": WORDS })).await.ok();
    let auditor = Auditor::of(&world);
    let count = signed(&world, &auditor).await;

    // A chunk that was sent twice has the same places, so it is there once.
    let lines = until("the collector to have it", async || {
        let mut lines = std::collections::BTreeMap::new();
        for log in collector.logs() {
            assert_eq!(log.attributes["quartermaster.tenant"], "acme");
            let line: u32 = log.attributes["quartermaster.audit.line"].parse().unwrap();
            lines.insert((log.attributes["quartermaster.audit.chunk"].clone(), line), log);
        }
        let entries = lines.values().filter(|log| log.attributes["quartermaster.audit.kind"] == "entry").count();
        (entries as u64 >= count).then_some(lines)
    })
    .await;
    let opened = lines.values().find(|log| log.body.contains(WORDS)).expect("the contents are opened");
    let line: Value = serde_json::from_str(&opened.body).unwrap();
    assert_eq!(line["contents"]["whole"], true);
    assert_eq!(line["entry"]["trace"], opened.trace, "a record belongs to the trace of its entry");

    let folder = tempfile::tempdir().unwrap();
    let write = |bend: &dyn Fn(&str) -> String| {
        let mut files: std::collections::BTreeMap<&str, String> = std::collections::BTreeMap::new();
        for ((chunk, _), log) in &lines {
            files.entry(chunk).or_default().push_str(&format!("{}\n", bend(&log.body)));
        }
        for (chunk, text) in files {
            let file = folder.path().join(chunk);
            std::fs::create_dir_all(file.parent().unwrap()).unwrap();
            std::fs::write(file, text).unwrap();
        }
        folder.path().display().to_string()
    };
    let whole = write(&str::to_owned);
    let told = auditor.run(&["verify", &whole]).await;
    assert_eq!(told.code, 0, "{}{}", told.out, told.said);
    let bent = write(&|line| line.replace(WORDS, "three hooded crows"));
    let told = auditor.run(&["verify", &bent]).await;
    assert_eq!((told.code, told.out.contains("is edited")), (1, true), "{}{}", told.out, told.said);
}
