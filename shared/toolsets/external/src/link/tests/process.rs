//! Servers that are child processes. The double is a few lines of shell.

use super::super::{LinkLimits, LinkTarget, ServerEra, TargetReach};
use super::world::*;
use domain::{Code, Effect};
use egress::AddressGuard;
use serde_json::json;
use std::collections::BTreeMap;
use std::path::Path;
use std::time::Duration;

/// Answers by what a line asks for; `CALL` stands for what it does with a call. Ids come first in our lines.
const SERVER: &str = r#"
answer() { printf '{"jsonrpc":"2.0","id":%s,%s}\n' "$id" "$1"; }
while IFS= read -r line; do
  id=$(printf %s "$line" | sed 's/^{"id":\([0-9]*\),.*/\1/')
  case $line in
    *'"method":"server/discover"'*) answer '"error":{"code":-32601,"message":"no"}' ;;
    *'"method":"initialize"'*) answer '"result":{"protocolVersion":"2025-06-18","capabilities":{"tools":{"listChanged":true}},"serverInfo":{"name":"sh","version":"1"}}' ;;
    *'"method":"tools/list"'*) answer '"result":{"tools":[{"name":"echo","inputSchema":{"type":"object"},"x-own":1}]}' ;;
    *'"method":"tools/call"'*) CALL ;;
  esac
done
"#;

fn target(call: &str, env: &[(&str, &str)]) -> LinkTarget {
    let path = ("PATH".to_owned(), "/usr/bin:/bin".to_owned());
    let env = env.iter().map(|&(name, value)| (name.to_owned(), value.to_owned())).chain([path]).collect();
    let args = vec!["-c".to_owned(), SERVER.replace("CALL", call)];
    LinkTarget {
        reach: TargetReach::Process { command: "/bin/sh".into(), args, env },
        headers: Vec::new(),
        params: BTreeMap::new(),
        guard: AddressGuard::default(),
        credentials: None,
    }
}

/// Whether a process of that number is there and not just waiting to be reaped.
fn lives(pid: &str) -> bool {
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
    stat.rsplit_once(')').is_some_and(|(_, rest)| !rest.trim_start().starts_with('Z'))
}

#[tokio::test]
async fn a_process_is_listed_and_called_with_nothing_but_its_own_environment() {
    let call_with = r#"answer "\"result\":{\"content\":[{\"type\":\"text\",\"text\":\"$(env | cut -d= -f1 | sort | tr '\n' ' ')\"}]}""#;
    let target = target(call_with, &[("TOKEN", "t")]);
    let links = links();

    let listed = links.list(&key(), &target, &limits()).await.unwrap();
    let called = call(&links, &target, Effect::Change).await.unwrap();

    assert_eq!(listed.tools, [json!({ "name": "echo", "inputSchema": { "type": "object" }, "x-own": 1 })]);
    assert_eq!(listed.era, ServerEra::Legacy);
    let seen = called.content[0]["text"].as_str().unwrap().to_owned();
    let foreign: Vec<_> =
        seen.split(' ').filter(|name| !["", "PATH", "PWD", "SHLVL", "TOKEN", "_"].contains(name)).collect();
    assert!(foreign.is_empty(), "{foreign:?}");
    assert!(seen.contains("TOKEN"));
}

#[tokio::test]
async fn a_process_ends_with_its_children_when_the_link_is_dropped() {
    let folder = tempfile::tempdir().unwrap();
    let pids = folder.path().join("pids");
    let call_with = r#"sleep 600 & echo $$ $! > "$PIDS"; answer '"result":{"content":[]}'"#;
    let target = target(call_with, &[("PIDS", pids.to_str().unwrap())]);
    let links = links();
    call(&links, &target, Effect::Read).await.unwrap();
    let written = read(&pids);
    assert!(written.iter().all(|pid| lives(pid)), "{written:?}");

    links.drop_links(&tenant(), None);

    until("both are gone", || !written.iter().any(|pid| lives(pid))).await;
}

fn read(pids: &Path) -> Vec<String> {
    std::fs::read_to_string(pids).unwrap().split_whitespace().map(str::to_owned).collect()
}

#[tokio::test]
async fn a_process_that_dies_during_a_change_leaves_it_unknown_and_is_started_again() {
    let folder = tempfile::tempdir().unwrap();
    let marker = folder.path().join("died");
    let call_with = r#"if [ -e "$MARK" ]; then answer '"result":{"content":[]}'; else : > "$MARK"; exit 1; fi"#;
    let target = target(call_with, &[("MARK", marker.to_str().unwrap())]);
    let links = links();

    let failure = call(&links, &target, Effect::Change).await.unwrap_err();
    assert_eq!(failure.code, Code::OutcomeUnknown);

    call(&links, &target, Effect::Change).await.unwrap();
}

#[tokio::test]
async fn a_line_of_a_process_is_bounded_in_bytes_and_values() {
    let small = || LinkLimits { bytes: 10_000, nodes: 500, ..limits() };
    let long =
        r#"answer "\"result\":{\"content\":[],\"structuredContent\":\"$(head -c 20000 /dev/zero | tr '\0' x)\"}""#;
    let wide = r#"answer "\"result\":{\"content\":[],\"structuredContent\":[0$(yes ,0 | head -n 1000 | tr -d '\n')]}""#;
    let endless = "tr '\\0' x < /dev/zero";
    for call_with in [long, wide, endless] {
        let failure = call_within(&links(), &target(call_with, &[]), Effect::Read, small()).await.unwrap_err();

        assert_eq!(failure.code, Code::ResultTooLarge, "{call_with}: {failure}");
    }
}

#[tokio::test]
async fn a_process_that_hangs_meets_the_deadline_and_chatter_is_ignored() {
    let silent = target(":", &[]);
    let chatty = target(
        r#"echo; echo not json; echo '{"jsonrpc":"2.0","id":4711,"result":{}}'; answer '"result":{"content":[]}'"#,
        &[],
    );
    let links = links();

    let late = call_within(&links, &silent, Effect::Change, limits_of(Duration::from_millis(1500))).await.unwrap_err();
    assert_eq!(late.code, Code::OutcomeUnknown);
    call(&links, &chatty, Effect::Read).await.unwrap();
}

#[tokio::test]
async fn a_program_that_is_not_there_cannot_be_reached() {
    let mut target = target(":", &[]);
    target.reach = TargetReach::Process { command: "/nowhere/at/all".into(), args: vec![], env: BTreeMap::new() };

    let failure = call(&links(), &target, Effect::Read).await.unwrap_err();

    assert_eq!(failure.code, crate::codes::UPSTREAM_REFUSED);
    assert!(!failure.message.contains("nowhere"));
}

#[tokio::test]
async fn a_process_tells_of_changes() {
    let target = target(
        r#"echo '{"jsonrpc":"2.0","method":"notifications/tools/list_changed"}'; answer '"result":{"content":[]}'"#,
        &[],
    );
    let links = links();
    let mut changes = links.changes();

    call(&links, &target, Effect::Read).await.unwrap();

    let heard = tokio::time::timeout(Duration::from_secs(20), changes.recv()).await.unwrap().unwrap();
    assert_eq!(heard, key());
}
