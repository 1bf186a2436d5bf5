//! Traces as a collector receives them: read from real OTLP of a real process.

use crate::here::processes;
use crate::k8s_yard::{Draft, Yard, deployment, manifest};
use crate::runs_desk::{approve, await_run, ended};
use crate::upstream_yard::{Shelf, draw, ours};
use sandbox::Seed;
use serde_json::json;
use std::collections::BTreeSet;
use testkit::upstream::{Era, McpServer};
use testkit::{CollectedSpan, Collector, Plan, Process, Request, until};

/// A `traceparent` in a trace of its own.
fn parent(trace: char) -> String {
    format!("00-{}-00f067aa0ba902b7-01", trace_of(trace))
}

fn trace_of(trace: char) -> String {
    trace.to_string().repeat(32)
}

async fn traced(collector: &Collector) -> Yard<Process> {
    let draft = Draft::simulated(Seed::empty()).await;
    let draft = draft.setting("QM_TELEMETRY__OTLP_ENDPOINT", &collector.url());
    draft.setting("QM_TELEMETRY__SAMPLE_RATIO", "1.0").start_as(processes()).await
}

/// Waits for a span of this name in this trace.
async fn span(collector: &Collector, trace: &str, name: &str) -> CollectedSpan {
    let find = async || collector.spans().into_iter().find(|span| span.trace == trace && span.name == name);
    until(&format!("the span {name}"), find).await
}

/// The names of the spans from the first one of the trace that we made to this one.
fn way_to(spans: &[CollectedSpan], span: &CollectedSpan) -> Vec<String> {
    let mut way = vec![span.name.clone()];
    let mut at = span;
    while let Some(above) = spans.iter().find(|other| other.trace == at.trace && other.id == at.parent) {
        way.insert(0, above.name.clone());
        at = above;
    }
    way
}

/// A service that keeps no trace by itself, with as many of a tenant's callers' as this.
async fn sparing(collector: &Collector, callers: u32) -> Yard<Process> {
    let draft = Draft::simulated(Seed::empty()).await;
    let draft = draft.setting("QM_TELEMETRY__OTLP_ENDPOINT", &collector.url());
    let draft = draft.setting("QM_TELEMETRY__CALLER_SAMPLES_PER_MINUTE", &callers.to_string());
    draft.setting("QM_TELEMETRY__SAMPLE_RATIO", "0.0").start_as(processes()).await
}

/// The traces and spans that a span is linked to as this.
fn linked(span: &CollectedSpan, what: &str) -> Vec<(String, String)> {
    let links = span.links.iter().filter(|(.., attributes)| attributes["quartermaster.link"] == what);
    links.map(|(trace, id, _)| (trace.clone(), id.clone())).collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_run_is_told_by_linked_traces_that_are_always_kept() {
    let collector = Collector::start().await;
    let yard = sparing(&collector, 0).await;
    let run = yard.ask("k8s_apply", json!({ "manifest": manifest(&[deployment("web", 1)]) })).await;
    approve(&yard.ana, &run).await;
    ended(&yard.ana, &run).await;
    await_run(&yard.agent, &run).await;

    let find = async |name: &str, key: &str, value: &str| {
        let find = async || {
            let spans = collector.spans().into_iter();
            spans.filter(|span| span.name == name).find(|span| span.attributes.get(key).is_some_and(|own| own == value))
        };
        until(&format!("the span {name}"), find).await
    };
    let place = |span: &CollectedSpan| (span.trace.clone(), span.id.clone());
    let decision = find("decision approve", "quartermaster.run.id", &run).await;
    let execution = find("execute_tool k8s_apply", "quartermaster.run.id", &run).await;
    let wait = find("await_run", "quartermaster.run.id", &run).await;
    let asked = linked(&execution, "request");
    let request = async || collector.spans().into_iter().find(|span| asked == [place(span)]);
    let request = until("the request", request).await;
    assert_eq!(request.name, "tools/call k8s_apply");
    assert_eq!(request.attributes["quartermaster.decision"], "ask");
    assert_eq!((execution.parent.as_str(), execution.attributes["quartermaster.run.epoch"].as_str()), ("", "1"));
    let ended = ["quartermaster.run.state", "quartermaster.code"].map(|key| execution.attributes.get(key));
    assert_eq!(ended.map(|value| value.map(String::as_str)), [Some("succeeded"), Some("ok")]);
    assert_eq!(linked(&execution, "decision"), [place(&decision)]);
    assert_eq!(linked(&wait, "execution"), [place(&execution)]);
    let traces = [&request, &decision, &execution, &wait].map(|span| span.trace.clone());
    assert_eq!(BTreeSet::from(traces).len(), 4, "four short traces");
    assert_eq!(decision.attributes["quartermaster.run.state"], "executing");
    let decider = &decision.attributes["quartermaster.run.decider"];
    assert!(!decider.is_empty() && !decider.contains("ana"), "a pseudonym: {decider}");
    // What is above them is kept too, and what the execution did.
    let spans = collector.spans();
    for (inner, first) in [(&request, "POST /mcp"), (&decision, "POST /v1/runs/{run}/approve")] {
        let find = async || {
            let spans = collector.spans();
            (way_to(&spans, inner).first().map(String::as_str) == Some(first)).then_some(())
        };
        until(first, find).await;
    }
    assert!(
        spans.iter().any(|span| span.trace == execution.trace && span.kind == 3),
        "the cluster was asked: {spans:#?}"
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn a_callers_wish_to_be_kept_counts_up_to_a_rate_and_a_strangers_does_not() {
    let collector = Collector::start().await;
    let yard = sparing(&collector, 2).await;
    let call = json!({ "name": "k8s_get", "arguments": { "kind": "Pod" } });
    for trace in ['1', '2', '3', '4'] {
        let call = yard.agent.prepare("tools/call", call.clone()).with("traceparent", parent(trace));
        assert_eq!(yard.agent.send(&call).await.status, 200);
    }
    for _ in 0..20 {
        let stranger = Request::new("GET", "/v1/runs").header("traceparent", parent('a'));
        assert_eq!(stranger.send(yard.world.address(0)).await.status, 401);
        let forged = Request::new("GET", "/v1/runs").header("traceparent", parent('b'));
        assert_eq!(forged.header("authorization", "Bearer a.b.c").send(yard.world.address(0)).await.status, 401);
    }
    // A failure is kept whatever the share, and comes last.
    yard.agent.call("k8s_get", json!({ "kind": "NoSuchKind" })).await;
    let failed = async || collector.spans().into_iter().find(|span| span.attributes.contains_key("error.type"));
    until("the failed call", failed).await;

    let spans = collector.spans();
    let kept = |trace: char| spans.iter().any(|span| span.trace == trace_of(trace));
    assert_eq!(['1', '2', '3', '4'].map(kept), [true, true, false, false]);
    assert_eq!(['a', 'b'].map(kept), [false, false]);
    assert!(!spans.iter().any(|span| span.name == "GET /v1/runs"), "{spans:#?}");
}

const LISTING: &str = "GET /api/{version}/namespaces/{namespace}/{resource}";

#[tokio::test(flavor = "multi_thread")]
async fn a_call_is_one_trace_from_the_request_to_the_cluster_by_whichever_way_it_came() {
    let collector = Collector::start().await;
    let yard = traced(&collector).await;
    let arguments = json!({ "kind": "Pod" });
    let call = json!({ "name": "k8s_get", "arguments": arguments });

    let legacy = yard.agent.prepare("tools/call", call.clone()).with("traceparent", parent('a'));
    assert_eq!(yard.agent.send(&legacy).await.header("x-trace-id"), Some(trace_of('a').as_str()));
    let agent = yard.world.tenant("acme").agent();
    let modern = agent.modern().prepare("tools/call", call).with("traceparent", parent('b'));
    agent.modern().send(&modern).await;
    let rest = agent.rest();
    let session = rest.open("read").await;
    let turn = rest.prepare("POST", &format!("/v1/sessions/{session}/calls"));
    let turn = turn.with("content-type", "application/json").with("traceparent", parent('c'));
    let turn = turn.body(json!({ "tool": "k8s_get", "arguments": arguments }).to_string());
    let answer = rest.send(&turn).await;
    assert_eq!(answer.status, 200, "{}", answer.text());

    for (trace, first, second, entry) in [
        ('a', "POST /mcp", "tools/call k8s_get", "mcp"),
        ('b', "POST /mcp", "tools/call k8s_get", "mcp"),
        ('c', "POST /v1/sessions/{session}/calls", "execute_tool k8s_get", "rest"),
    ] {
        let trace = trace_of(trace);
        // The first span of a trace ends last, so then all of it is there.
        let request = span(&collector, &trace, first).await;
        assert_eq!((request.kind, request.parent.as_str()), (2, "00f067aa0ba902b7"), "{request:?}");
        assert_eq!(request.attributes["http.response.status_code"], "200");
        let spans = collector.spans();
        let listing = spans.iter().find(|span| span.trace == trace && span.kind == 3 && span.name == LISTING);
        let listing = listing.unwrap_or_else(|| panic!("no request to the cluster in {trace}: {spans:#?}"));
        assert_eq!(way_to(&spans, listing), [first, second, LISTING]);
        let call = spans.iter().find(|span| span.trace == trace && span.name == second).unwrap();
        let told = |name: &str| call.attributes.get(name).map(String::as_str);
        assert_eq!(told("gen_ai.tool.name"), Some("k8s_get"));
        assert_eq!((told("quartermaster.code"), told("quartermaster.entry")), (Some("ok"), Some(entry)));
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn the_trace_a_message_names_wins_and_its_request_is_linked() {
    let collector = Collector::start().await;
    let yard = traced(&collector).await;
    let agent = yard.world.tenant("acme").agent();
    let call = json!({ "name": "k8s_get", "arguments": { "kind": "Pod" }, "_meta": { "traceparent": parent('d') } });
    agent.modern().send(&agent.modern().prepare("tools/call", call).with("traceparent", parent('e'))).await;

    let request = span(&collector, &trace_of('e'), "POST /mcp").await;
    let call = span(&collector, &trace_of('d'), "tools/call k8s_get").await;
    assert_eq!(call.parent, "00f067aa0ba902b7");
    let (trace, id, attributes) = &call.links[0];
    assert_eq!((trace, id), (&request.trace, &request.id));
    assert_eq!(attributes["quartermaster.link"], "transport");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_decision_and_the_execution_have_spans_and_free_text_has_none() {
    let collector = Collector::start().await;
    let yard = traced(&collector).await;
    let run = yard.ask("k8s_apply", json!({ "manifest": manifest(&[deployment("web", 1)]) })).await;
    approve(&yard.ana, &run).await;
    ended(&yard.ana, &run).await;
    yard.agent.call("no_such_canary", json!({})).await;

    let find = |name: &'static str| {
        let collector = &collector;
        async move { collector.spans().into_iter().find(|span| span.name == name) }
    };
    let decision = until("the decision", async || find("POST /v1/runs/{run}/approve").await).await;
    assert_eq!((decision.kind, decision.attributes["http.response.status_code"].as_str()), (2, "200"));
    let of_run = async || {
        let spans = collector.spans().into_iter();
        spans
            .filter(|span| span.name == "execute_tool k8s_apply")
            .find(|span| span.attributes["quartermaster.run.id"] == run)
    };
    until("the execution", of_run).await;
    until("the call of a tool that is not there", async || find("tools/call").await).await;
    assert!(!collector.taken().windows(14).any(|window| window == b"no_such_canary"));
}

#[tokio::test(flavor = "multi_thread")]
async fn whoever_is_asked_can_continue_the_trace() {
    let collector = Collector::start().await;
    let (cluster, jenkins) = (McpServer::start(Era::Both).await, McpServer::start(Era::Both).await);
    let wiki = McpServer::start(Era::Both).await;
    let shelf = Shelf::new().trusted("wiki", &wiki);
    let file = format!(
        "default_toolsets: [k8s, jenkins]\nclusters: [{{ name: main, kubeconfig: {{ secret: kubeconfig }} }}]\n\
         toolsets:\n  jenkins: {{ url: \"http://{}\", user: robot, token: {{ secret: jenkins }} }}\n\
         servers: [{{ use: wiki }}]",
        jenkins.address()
    );
    let kubeconfig = format!(
        "apiVersion: v1\nkind: Config\ncurrent-context: a\ncontexts: [{{ name: a, context: {{ cluster: a, user: a }} }}]\n\
         clusters: [{{ name: a, cluster: {{ server: \"http://{}\" }} }}]\nusers: [{{ name: a, user: {{}} }}]\n",
        cluster.address()
    );
    let plan = (shelf.under(Plan::embedded()))
        .setting("QM_UPSTREAMS__PRIVATE", "true")
        .setting("QM_UPSTREAMS__PORTS", &format!("[{}]", jenkins.port()))
        .setting("QM_TELEMETRY__OTLP_ENDPOINT", &collector.url())
        .setting("QM_TELEMETRY__SAMPLE_RATIO", "1.0")
        .tenant("acme", &file)
        .secret("acme", "kubeconfig", &kubeconfig)
        .secret("acme", "jenkins", "a-token-of-jenkins");
    let world = plan.start(processes()).await;
    let client = world.tenant("acme").agent().legacy().await;
    draw(&client, "wiki").await;

    let whoami = ours("wiki", "whoami");
    for (trace, tool, arguments, asked) in [
        ('a', "k8s_get", json!({ "kind": "Pod" }), &cluster),
        ('b', "jenkins_whoami", json!({}), &jenkins),
        ('c', whoami.as_str(), json!({}), &wiki),
    ] {
        let call = client.prepare("tools/call", json!({ "name": tool, "arguments": arguments }));
        client.send(&call.with("traceparent", parent(trace))).await;
        let trace = trace_of(trace);
        let heard = asked.requests().into_iter().find_map(|seen| {
            let parent = seen.header("traceparent")?.to_owned();
            parent.contains(&trace).then_some(parent)
        });
        let heard = heard.unwrap_or_else(|| panic!("{tool} told nobody of the trace"));
        let find = async || {
            let spans = collector.spans().into_iter();
            spans.filter(|span| span.trace == trace).find(|span| heard == format!("00-{trace}-{}-01", span.id))
        };
        let span = until("the span that was told", find).await;
        assert_eq!(span.kind, 3, "it is the one of the request: {span:?}");
    }
    let called = wiki.requests().into_iter().find(|seen| seen.text().contains("tools/call")).unwrap();
    assert!(called.text().contains(r#""traceparent":"00-ccc"#), "a message tells it too: {}", called.text());
}
