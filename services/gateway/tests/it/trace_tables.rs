//! The tables of spans and attributes in docs/telemetry.md, held to what a collector receives of a running service.

use crate::helm_story::binary;
use crate::here::processes;
use crate::k8s_yard::{Draft, Yard, config_map, deployment, manifest};
use crate::memory_people::put;
use crate::runs_desk::{approve, await_run, ended, reject, show};
use crate::upstream_yard::{Shelf, admin, draw, ours, using};
use sandbox::{ClusterFault, ClusterHarm, Seed};
use serde_json::json;
use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;
use testkit::upstream::{Era, McpServer};
use testkit::{CollectedSpan, Collector, Plan, Process, until};

/// One row of the table of spans.
struct SpanRow {
    kind: u64,
    /// Every name it may have; empty if the names are examples.
    names: BTreeSet<String>,
}

/// The rows of the table under a heading of the page.
fn rows(heading: &str) -> Vec<Vec<String>> {
    let page = std::fs::read_to_string(concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/telemetry.md")).unwrap();
    let section = page.split(&format!("\n### {heading}\n")).nth(1).unwrap();
    let lines = section.lines().skip_while(|line| !line.starts_with('|')).take_while(|line| line.starts_with('|'));
    let cells = |line: &str| line.trim_matches('|').split(" | ").map(|cell| cell.trim().to_owned()).collect();
    lines.skip(2).map(cells).collect()
}

/// What stands between backticks.
fn quoted(cell: &str) -> BTreeSet<String> {
    cell.split('`').skip(1).step_by(2).map(str::to_owned).collect()
}

fn span_table() -> BTreeMap<String, SpanRow> {
    let kind = |word: &str| ["internal", "server", "client"].iter().position(|kind| *kind == word).unwrap() as u64 + 1;
    let row = |cells: Vec<String>| {
        let [span, word, names] = cells.try_into().unwrap();
        let closed = if names.contains("such as") { BTreeSet::new() } else { quoted(&names) };
        (span, SpanRow { kind: kind(&word), names: closed })
    };
    rows("Spans").into_iter().map(row).collect()
}

/// On which spans an attribute may be.
fn attribute_table(spans: &BTreeMap<String, SpanRow>) -> BTreeMap<String, BTreeSet<String>> {
    let row = |cells: Vec<String>| {
        let name = quoted(&cells[0]).pop_first().unwrap();
        let on: BTreeSet<String> = match cells[1].as_str() {
            "all" => spans.keys().cloned().collect(),
            "links" => BTreeSet::new(),
            some => some.split(", ").map(str::to_owned).collect(),
        };
        assert!(on.iter().all(|span| spans.contains_key(span)), "{name} is on spans of no table: {on:?}");
        (name, on)
    };
    rows("Attributes").into_iter().map(row).collect()
}

/// Which row a span belongs to.
fn row_of(span: &CollectedSpan, table: &BTreeMap<String, SpanRow>) -> String {
    let has = |name: &str| span.attributes.contains_key(name);
    let named = |row: &&String| table[*row].names.contains(&span.name);
    let row = match span.kind {
        2 if has("mcp.method.name") => "MCP message",
        2 => "HTTP request",
        3 if has("db.system.name") => "store",
        3 if has("mcp.method.name") => "external server",
        3 => "target",
        _ if span.name.starts_with("execute_tool ") => "execution",
        _ if span.name.starts_with("helm ") => "helm",
        _ => table.keys().find(named).unwrap_or_else(|| panic!("a span of no table: {span:?}")).as_str(),
    };
    assert_eq!(table[row].kind, span.kind, "{span:?}");
    assert!(table[row].names.is_empty() || table[row].names.contains(&span.name), "{span:?} is no {row}");
    row.to_owned()
}

/// Settings under which everything is told.
const TOLD: [(&str, &str); 4] = [
    ("QM_TELEMETRY__SAMPLE_RATIO", "1.0"),
    ("QM_TELEMETRY__SLOW_STEP_MS", "0"),
    ("QM_TELEMETRY__SLOW_STORE_MS", "0"),
    ("QM_APPROVALS__LEASE", "3s"),
];

/// Every method of both eras, calls that end in every way, and the REST turn.
async fn ask_everything(yard: &Yard<Process>) {
    let pods = json!({ "kind": "Pod" });
    let legacy = &yard.agent;
    assert_eq!(legacy.notify("notifications/initialized", json!({})).await.status, 202);
    legacy.notify("notifications/cancelled", json!({ "requestId": 4711 })).await;
    legacy.ask("ping", json!({})).await;
    legacy.list().await;
    legacy.call("k8s_get", pods.clone()).await;
    legacy.call("k8s_get", json!({ "kind": 7 })).await;
    legacy.call("no_such_canary", json!({})).await;
    let agent = yard.world.tenant("acme").agent();
    let modern = agent.modern();
    modern.ask("server/discover", json!({})).await;
    modern.list().await;
    modern.call("k8s_get", pods.clone()).await;
    drop(modern.listen().await);
    // Refused before there is a call.
    modern.ask("tools/list", json!({ "cursor": "made up" })).await;
    let rest = agent.rest();
    let session = rest.open("read").await;
    rest.tools(&session, "mcp").await;
    rest.call(&session, "k8s_get", pods).await;
}

/// Runs that are executed, rejected, asked for twice, waited for and reconciled.
async fn ask_people(yard: &Yard<Process>) {
    let apply = |object| json!({ "manifest": manifest(&[object]) });
    let run = yard.ask("k8s_apply", apply(deployment("web", 1))).await;
    yard.ask("k8s_apply", apply(deployment("web", 1))).await;
    approve(&yard.ana, &run).await;
    ended(&yard.ana, &run).await;
    await_run(&yard.agent, &run).await;
    let run = yard.ask("k8s_apply", apply(deployment("api", 1))).await;
    reject(&yard.ana, &run, "not now").await;
    // A write whose answer is lost: the target is asked what became of it.
    let run = yard.ask("k8s_apply", apply(config_map("lost", "hello"))).await;
    let fault = |harm| ClusterFault { method: Some("PATCH".into()), path: "/configmaps/lost?".into(), times: 1, harm };
    yard.sandbox().plant(fault(ClusterHarm::Delay(Duration::ZERO)));
    yard.sandbox().plant(fault(ClusterHarm::CutAfter));
    approve(&yard.ana, &run).await;
    until("a look at the target", async || {
        let told = show(&yard.ana, &run).await;
        told["state"].as_str().unwrap().starts_with("reconciled").then_some(())
    })
    .await;
}

/// Documents, by agents and by people, and what admins ask.
async fn keep_documents(yard: &Yard<Process>) {
    yard.agent.load("memory:write").await;
    let note = json!({ "path": "session/notes/a", "type": "note", "content": "one two", "evidence": "seen" });
    let kept = yard.agent.call("memory_remember", note.clone()).await;
    let sha256 = kept.ok()["sha256"].clone();
    yard.agent.call("memory_search", json!({ "query": "two" })).await;
    yard.agent.call("memory_read", json!({ "path": "session/notes/none" })).await;
    let mut again = note;
    (again["content"], again["if_sha256"]) = (json!("one three"), sha256);
    yard.agent.call("memory_remember", again).await;
    yard.agent.call("memory_forget", json!({ "path": "session/notes/a", "reason": "done" })).await;
    let paul = admin(&yard.ana);
    let body = json!({ "type": "runbook", "content": "# A\nb\n", "evidence": "done twice", "tags": [] });
    assert_eq!(put(&paul, "tenant/runbooks/a", &body, None).await.status, 201);
    paul.rest().get("/v1/usage").await;
    paul.rest().get("/v1/switches").await;
}

/// A server of somebody else.
async fn ask_a_server(collector: &Collector) {
    let wiki = McpServer::start(Era::Both).await;
    let shelf = Shelf::new().trusted("wiki", &wiki);
    let plan = shelf.under(Plan::embedded()).setting("QM_UPSTREAMS__PRIVATE", "true");
    let plan = plan.setting("QM_TELEMETRY__OTLP_ENDPOINT", &collector.url()).tenant("acme", &using(&["wiki"], ""));
    let plan = TOLD.into_iter().fold(plan, |plan, (key, value)| plan.setting(key, value));
    let world = plan.setting("QM_APPROVALS__RENEW_EVERY", "1s").start(processes()).await;
    let client = world.tenant("acme").agent().legacy().await;
    draw(&client, "wiki").await;
    client.call(&ours("wiki", "whoami"), json!({})).await;
    until("the span of the server", async || {
        collector.spans().iter().any(|span| span.attributes.contains_key("server.address")).then_some(())
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn spans_and_attributes_are_those_of_the_tables_and_all_of_them() {
    let (spans, collector) = (span_table(), Collector::start().await);
    let attributes = attribute_table(&spans);
    let listed: BTreeSet<&str> = telemetry::names::ATTRIBUTES.iter().copied().collect();
    assert_eq!(attributes.keys().map(String::as_str).collect::<BTreeSet<_>>(), listed, "the page and the names file");
    let draft = Draft::simulated(Seed::empty()).await.setting("QM_TELEMETRY__OTLP_ENDPOINT", &collector.url());
    let draft = TOLD.into_iter().fold(draft, |draft, (key, value)| draft.setting(key, value));
    let helm = binary();
    let draft = helm.iter().fold(draft, |draft, helm| draft.setting("QM_UPSTREAMS__HELM", &helm.display().to_string()));
    let yard = draft.setting("QM_APPROVALS__RENEW_EVERY", "1s").start_as(processes()).await;
    if helm.is_some() {
        yard.agent.load("helm").await;
        yard.agent.call("helm_list", json!({})).await;
    }
    ask_everything(&yard).await;
    ask_people(&yard).await;
    keep_documents(&yard).await;
    ask_a_server(&collector).await;
    // What comes last was told last.
    until("the last span", async || collector.spans().iter().any(|span| span.name == "show_usage").then_some(())).await;

    let (mut seen_rows, mut seen_attributes) = (BTreeSet::new(), BTreeSet::new());
    let mut seen_names = BTreeSet::new();
    for span in collector.spans() {
        let row = row_of(&span, &spans);
        for (name, value) in &span.attributes {
            let on = attributes.get(name).unwrap_or_else(|| panic!("{name} is in no table"));
            assert!(on.contains(&row), "{name} = {value} is on a span of the kind {row}: {span:?}");
            seen_attributes.insert(name.clone());
        }
        let failed = span.attributes.contains_key("error.type");
        assert_eq!(span.failed, failed, "its status says so exactly if there is an error.type: {span:?}");
        seen_names.insert(span.name.clone());
        seen_rows.insert(row);
    }
    for method in ["initialize", "ping", "tools/list", "server/discover", "subscriptions/listen"] {
        assert!(seen_names.contains(method), "no span of {method}");
    }
    for notification in ["notifications/cancelled", "notifications/other"] {
        assert!(seen_names.contains(notification), "no span of {notification}");
    }
    for row in ["step", "memory", "decision"] {
        let missing: Vec<_> = spans[row].names.difference(&seen_names).collect();
        assert_eq!(missing, Vec::<&String>::new(), "names of a {row} that were never told");
    }
    let of_helm = |name: &str| helm.is_none() && ["helm", "process.exit.code"].contains(&name);
    let missing: Vec<_> = spans.keys().filter(|row| !seen_rows.contains(*row) && !of_helm(row)).collect();
    assert_eq!(missing, Vec::<&String>::new(), "rows of which there was no span");
    // Links have no attribute but this one; `traces` looks at it.
    let is_missing = |name: &str| !seen_attributes.contains(name) && name != "quartermaster.link" && !of_helm(name);
    let missing: Vec<_> = attributes.keys().filter(|name| is_missing(name)).collect();
    assert_eq!(missing, Vec::<&String>::new(), "attributes that were never told");
}
