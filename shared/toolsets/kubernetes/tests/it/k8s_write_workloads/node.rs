//! `k8s_node`.

use crate::k8s_write_objects::world::{World, another_run, run, until};
use catalog::ProbeResult;
use domain::Code;
use sandbox::{ClusterFault, ClusterHarm};
use serde_json::{Value, json};

const TOOL: &str = "k8s_node";
const NODE: &str = "sandbox-node-1";

fn on(action: &str) -> Value {
    json!({ "action": action, "name": NODE })
}

/// The same, with more arguments.
fn with(mut args: Value, more: &[(&str, Value)]) -> Value {
    for (key, value) in more {
        args[*key] = value.clone();
    }
    args
}

async fn unschedulable(world: &World) -> bool {
    world.get("Node", NODE).await["spec"]["unschedulable"] == true
}

/// A pod on the node, with a controller or none, and with data or none.
async fn pod(world: &World, name: &str, labels: Value, spec: Value) {
    let mut whole = json!({ "nodeName": NODE, "containers": [{ "name": "a", "image": "a:1" }] });
    for (key, value) in spec.as_object().unwrap() {
        whole[key] = value.clone();
    }
    let meta = json!({ "name": name, "namespace": "default", "labels": labels });
    world.make(json!({ "apiVersion": "v1", "kind": "Pod", "metadata": meta, "spec": whole })).await;
    let place = format!("default/{name}");
    until("the pod runs", || async { world.get("Pod", &place).await["status"]["phase"] == "Running" }).await;
}

#[tokio::test]
async fn a_node_is_taken_out_of_use_and_back() {
    let world = World::shop().await;
    let before = world.writes();
    let shown = world.preview(TOOL, on("cordon")).await.unwrap();
    assert_eq!(shown.summary, "cordon Node sandbox-node-1");
    assert!(shown.text.contains("unschedulable: false -> true"), "{}", shown.text);
    assert_eq!(world.last_look(TOOL, on("cordon")).await.unwrap(), shown);
    assert_eq!(world.probe(TOOL, on("cordon"), run()).await, ProbeResult::NotDone);
    assert_eq!(world.writes(), before);

    assert_eq!(world.run(TOOL, on("cordon")).await.unwrap()["unschedulable"], true);
    world.run(TOOL, on("cordon")).await.unwrap();
    assert_eq!(world.writes_since(before), ["PATCH nodes/sandbox-node-1"]);
    assert!(unschedulable(&world).await);
    assert!(matches!(world.probe(TOOL, on("cordon"), run()).await, ProbeResult::Done(Some(_))));
    assert_ne!(world.last_look(TOOL, on("cordon")).await.unwrap().fingerprint, shown.fingerprint);
    world.run_as(TOOL, on("uncordon"), another_run()).await.unwrap();
    assert!(!unschedulable(&world).await);

    let refused = world.preview(TOOL, json!({ "action": "cordon", "name": "sandbox-node-9" })).await.unwrap_err();
    assert_eq!(refused.code, Code::NotFound);
    assert!(refused.did_you_mean.contains(&"sandbox-node-1".to_owned()), "{refused:?}");
    let refused = world.preview(TOOL, with(on("cordon"), &[("force", json!(true))])).await.unwrap_err();
    assert_eq!(refused.code, Code::InvalidArgument);
}

#[tokio::test]
async fn a_drain_moves_pods_and_leaves_those_of_daemon_sets() {
    let world = World::shop().await;
    let args = with(on("drain"), &[("timeout_s", json!(60))]);
    let before = world.writes();
    let plan = world.run(TOOL, with(args.clone(), &[("dry_run", json!(true))])).await.unwrap();
    assert!(!plan["evicted"].as_array().unwrap().is_empty() && plan["unschedulable"] == false, "{plan}");
    let shown = world.preview(TOOL, args.clone()).await.unwrap();
    for part in ["cordoned, then", "of a DaemonSet", "2 other nodes take pods"] {
        assert!(shown.text.contains(part), "{part} in\n{}", shown.text);
    }
    assert_eq!(world.writes(), before, "a preview and a dry run only look");

    let told = world.run(TOOL, args.clone()).await.unwrap();
    assert_eq!((&told["unschedulable"], &told["remaining"], &told["blocked"]), (&json!(true), &json!(0), &json!([])));
    assert!(!told["evicted"].as_array().unwrap().is_empty());
    assert!(told["skipped"][0].as_str().unwrap().starts_with("platform/log-agent-"), "{told}");
    let writes = world.writes_since(before);
    assert!(writes[1..].iter().all(|write| write.starts_with("POST ") && write.ends_with("/eviction")), "{writes:?}");
    assert!(matches!(world.probe(TOOL, args.clone(), run()).await, ProbeResult::Done(Some(_))));

    let again = world.writes();
    assert_eq!(world.run(TOOL, args).await.unwrap()["evicted"], json!([]));
    assert_eq!(world.writes(), again, "a drained node is drained");
}

#[tokio::test]
async fn ordinary_pods_may_come_and_go_and_losses_may_not() {
    let world = World::shop().await;
    let all = [("force", json!(true)), ("delete_emptydir", json!(true))];
    let args = with(on("drain"), &all);
    let shown = world.preview(TOOL, args.clone()).await.unwrap();
    world.change("Deployment", "catalog", json!({ "spec": { "replicas": 9 } })).await;
    until("more pods are there", || async { world.get("Deployment", "catalog").await["status"]["readyReplicas"] == 9 })
        .await;
    world.run_as(TOOL, on("cordon"), another_run()).await.unwrap();
    assert_eq!(world.last_look(TOOL, args.clone()).await.unwrap().fingerprint, shown.fingerprint);

    pod(&world, "lonely", json!({}), json!({})).await;
    let moved = world.last_look(TOOL, args).await.unwrap();
    assert!(moved.fingerprint != shown.fingerprint && moved.text != shown.text);
    assert!(moved.text.contains("default/lonely") && !moved.warnings.is_empty(), "{}", moved.text);
}

#[tokio::test]
async fn what_would_be_lost_keeps_the_node_as_it_is() {
    let world = World::shop().await;
    pod(&world, "lonely", json!({}), json!({ "volumes": [{ "name": "d", "emptyDir": {} }] })).await;
    let before = world.writes();
    let refused = world.preview(TOOL, on("drain")).await.unwrap_err();
    assert_eq!(refused.code, kubernetes::codes::UNMANAGED_PODS);
    assert!(refused.message.contains("default/lonely"), "{refused}");
    assert_eq!(world.run(TOOL, on("drain")).await.unwrap_err().code, kubernetes::codes::UNMANAGED_PODS);
    let forced = with(on("drain"), &[("force", json!(true))]);
    assert_eq!(world.preview(TOOL, forced.clone()).await.unwrap_err().code, kubernetes::codes::EMPTYDIR_DATA);
    assert_eq!(world.run(TOOL, forced.clone()).await.unwrap_err().code, kubernetes::codes::EMPTYDIR_DATA);
    let plan = world.run(TOOL, with(forced.clone(), &[("dry_run", json!(true))])).await.unwrap();
    assert_eq!(plan["blocked"], json!([{ "pod": "default/lonely", "reason": "emptyDir data would be lost" }]));
    assert_eq!((world.writes(), unschedulable(&world).await), (before, false));

    let allowed = with(forced, &[("delete_emptydir", json!(true)), ("timeout_s", json!(60))]);
    let told = world.run(TOOL, allowed).await.unwrap();
    assert!(told["evicted"].as_array().unwrap().contains(&json!("default/lonely")), "{told}");
    assert!(world.find("Pod", "default/lonely").await.is_none());
}

#[tokio::test]
async fn a_budget_is_respected_and_the_node_stays_cordoned() {
    let world = World::shop().await;
    pod(&world, "precious", json!({ "app": "precious" }), json!({})).await;
    let budget = json!({ "minAvailable": 1, "selector": { "matchLabels": { "app": "precious" } } });
    let meta = json!({ "name": "keep-one", "namespace": "default" });
    world
        .make(json!({ "apiVersion": "policy/v1", "kind": "PodDisruptionBudget", "metadata": meta, "spec": budget }))
        .await;
    until("the budget is counted", || async {
        world.get("PodDisruptionBudget", "default/keep-one").await["status"]["currentHealthy"] == 1
    })
    .await;
    let args = with(on("drain"), &[("force", json!(true)), ("timeout_s", json!(10))]);
    let shown = world.preview(TOOL, args.clone()).await.unwrap();
    assert!(shown.warnings.iter().any(|warning| warning.contains("default/keep-one")), "{:?}", shown.warnings);

    let refused = world.run(TOOL, args.clone()).await.unwrap_err();
    assert_eq!(refused.code, kubernetes::codes::PDB_BLOCKED);
    for part in ["default/precious (budget keep-one)", "stays cordoned", "remain"] {
        assert!(refused.message.contains(part), "{part} in {}", refused.message);
    }
    assert!(
        unschedulable(&world).await && world.find("Pod", "default/precious").await.is_some(),
        "never deleted instead"
    );
    assert_eq!(world.probe(TOOL, args, run()).await, ProbeResult::NotDone, "some are left, and it is safe to repeat");
}

#[tokio::test]
async fn a_tenant_of_some_namespaces_has_no_node() {
    let limited = World::limited(&["shop"]).await;
    for args in [on("cordon"), on("drain")] {
        assert_eq!(limited.preview(TOOL, args.clone()).await.unwrap_err().code, kubernetes::codes::NAMESPACE_DENIED);
        assert_eq!(limited.run(TOOL, args).await.unwrap_err().code, kubernetes::codes::NAMESPACE_DENIED);
    }
    let dry = with(on("drain"), &[("dry_run", json!(true))]);
    assert_eq!(limited.run(TOOL, dry).await.unwrap_err().code, kubernetes::codes::NAMESPACE_DENIED);
    assert_eq!(limited.writes(), 0);
}

#[tokio::test]
async fn a_lost_answer_to_a_cordon_is_unknown_and_to_an_eviction_is_asked_again() {
    let world = World::shop().await;
    let fault = |method: &str, path: &str, harm| ClusterFault {
        method: Some(method.into()),
        path: path.into(),
        times: 1,
        harm,
    };
    world.sandbox.plant(fault("PATCH", "nodes/sandbox-node-1", ClusterHarm::CutAfter));
    assert_eq!(world.run(TOOL, on("cordon")).await.unwrap_err().code, Code::OutcomeUnknown);
    assert!(matches!(world.probe(TOOL, on("cordon"), run()).await, ProbeResult::Done(_)));

    world.sandbox.plant(fault("POST", "/eviction", ClusterHarm::CutAfter));
    world.sandbox.plant(fault("POST", "/eviction", ClusterHarm::Answer(503, None)));
    let told = world.run(TOOL, with(on("drain"), &[("timeout_s", json!(60))])).await.unwrap();
    assert_eq!((&told["remaining"], &told["blocked"]), (&json!(0), &json!([])), "{told}");
}

#[tokio::test]
async fn an_eviction_that_is_forbidden_stops_the_drain_and_says_how_far_it_came() {
    let world = World::shop().await;
    let harm = ClusterHarm::Answer(403, None);
    world.sandbox.plant(ClusterFault { method: Some("POST".into()), path: "/eviction".into(), times: 100, harm });
    let refused = world.run(TOOL, with(on("drain"), &[("timeout_s", json!(30))])).await.unwrap_err();
    assert_eq!(refused.code, target::codes::FORBIDDEN);
    assert!(refused.message.contains("0 pods of node sandbox-node-1 were evicted before"), "{refused}");
    assert!(refused.message.ends_with("it stays cordoned") && unschedulable(&world).await, "{refused}");
}
