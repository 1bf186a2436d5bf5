//! Traces as somebody looks them up: in a real Jaeger, after the fact.

use crate::here::processes;
use crate::runs_desk::{approve, ask, asker, asking, await_run, ended};
use std::collections::BTreeSet;
use testkit::{Jaeger, JaegerSpan, Plan};

#[tokio::test(flavor = "multi_thread")]
async fn the_story_of_a_run_over_two_replicas_is_read_back_from_a_real_backend() {
    let Some(program) = Jaeger::program() else {
        eprintln!("SKIPPED: QUARTERMASTER_TEST_JAEGER names no Jaeger; the ring `tracing` builds one");
        return;
    };
    let jaeger = Jaeger::start(&program).await;
    let plan = asking(Plan::redis(2), "").setting("QM_TELEMETRY__OTLP_ENDPOINT", &jaeger.url());
    let world = plan.setting("QM_TELEMETRY__SAMPLE_RATIO", "1.0").start(processes()).await;
    let (agent, ana) = (world.tenant("acme").agent(), world.tenant("acme").approver());
    let client = asker(&agent.on(0)).await;
    let run = ask(&client, "a", "one").await;
    approve(&ana.on(1), &run).await;
    ended(&ana.on(1), &run).await;
    await_run(&client, &run).await;

    let call = "tools/call memory_remember";
    let names = ["decision approve", "execute_tool memory_remember", "await_run", call];
    let spans = jaeger.spans("quartermaster.run.id", &run, &names).await;
    let find = |name: &str| {
        let of_run = |span: &&JaegerSpan| span.name() == name && span.tag("quartermaster.run.id") == Some(run.clone());
        spans.iter().find(of_run).unwrap_or_else(|| panic!("no {name} in {spans:#?}"))
    };
    let [decision, execution, wait, request] = names.map(find);
    assert_eq!(BTreeSet::from([decision, execution, wait, request].map(|span| span.place().0)).len(), 4, "four traces");
    for other in [request, decision] {
        assert!(execution.references().contains(&other.place()), "the execution leads to {other:?}");
    }
    assert!(wait.references().contains(&execution.place()), "waiting leads to the execution");
    assert_eq!(request.tag("quartermaster.decision").as_deref(), Some("ask"));
    assert_eq!(execution.tag("quartermaster.run.state").as_deref(), Some("succeeded"));
    assert_eq!(execution.tag("quartermaster.run.epoch").as_deref(), Some("1"));
    // Whoever took the approval executed it, and that was the other one.
    assert_eq!(decision.replica, execution.replica);
    assert_ne!(request.replica, decision.replica);
    assert_eq!(request.replica, wait.replica);
    // A trace is whole: from the HTTP request down to what was done with the document.
    let whole = jaeger.trace(&request.place().0).await;
    let parent = whole.iter().find(|span| request.references().contains(&span.place())).expect("it has a parent");
    assert_eq!((parent.name(), parent.references().len()), ("POST /mcp", 0));
    let whole = jaeger.trace(&execution.place().0).await;
    let kept = whole.iter().find(|span| span.name() == "create_memory").expect("the document was kept");
    assert!(kept.references().contains(&execution.place()));
    let loads = jaeger.spans("gen_ai.tool.name", "load_toolset", &["tools/call load_toolset"]).await;
    assert!(loads.iter().any(|span| span.replica == request.replica), "{loads:#?}");
}
