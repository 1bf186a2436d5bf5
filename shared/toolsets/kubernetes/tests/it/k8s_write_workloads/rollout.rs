//! `k8s_rollout`.

use crate::k8s_write_objects::world::{World, another_run, approval, run, until};
use catalog::ProbeResult;
use domain::Code;
use sandbox::{ClusterFault, ClusterHarm};
use serde_json::{Value, json};

const TOOL: &str = "k8s_rollout";
const RESTARTED: &str = "kubectl.kubernetes.io/restartedAt";

fn on(action: &str, kind: &str, name: &str) -> Value {
    json!({ "action": action, "kind": kind, "name": name })
}

fn set_image(name: &str, images: Value) -> Value {
    json!({ "action": "set_image", "kind": "Deployment", "name": name, "images": images })
}

fn image(object: &Value) -> &str {
    object["spec"]["template"]["spec"]["containers"][0]["image"].as_str().unwrap()
}

#[tokio::test]
async fn a_restart_is_shown_done_once_and_proven() {
    let world = World::shop().await;
    let before = world.writes();
    let args = on("restart", "Deployment", "frontend");

    let shown = world.preview(TOOL, args.clone()).await.unwrap();
    assert_eq!(shown.summary, "restart Deployment shop/frontend");
    for part in
        ["on cluster main (simulated)", "rolled out (3 of 3 ready)", "maxUnavailable", "budgets: none", RESTARTED]
    {
        assert!(shown.text.contains(part), "{part} in\n{}", shown.text);
    }
    assert_eq!(world.last_look(TOOL, args.clone()).await.unwrap().fingerprint, shown.fingerprint);
    assert_eq!(world.probe(TOOL, args.clone(), run()).await, ProbeResult::NotDone);
    assert_eq!(world.writes(), before, "a preview only looks");

    let told = world.run(TOOL, args.clone()).await.unwrap();
    assert_eq!((&told["action"], &told["noop"], &told["from_revision"]), (&json!("restart"), &json!(false), &json!(1)));
    let live = world.get("Deployment", "frontend").await;
    assert_eq!(live["spec"]["template"]["metadata"]["annotations"][RESTARTED], approval(run()).at.exact());

    world.run(TOOL, args.clone()).await.unwrap();
    assert_eq!(world.writes_since(before), ["PATCH shop/deployments/frontend"], "a repeated run has the effect of one");
    assert!(matches!(world.probe(TOOL, args.clone(), run()).await, ProbeResult::Done(Some(_))));
    assert_eq!(world.probe(TOOL, args.clone(), another_run()).await, ProbeResult::NotDone);

    // Another change overwrites the mark of the run on the object, and not what the run did.
    world.run_as(TOOL, on("pause", "Deployment", "frontend"), another_run()).await.unwrap();
    let paused = &world.get("Deployment", "frontend").await["spec"]["paused"];
    assert_eq!(*paused, true, "what was approved within the same second is not taken for done");
    assert!(matches!(world.probe(TOOL, args, run()).await, ProbeResult::Done(_)));
}

#[tokio::test]
async fn an_undo_goes_back_to_the_revision_before_and_not_forth_again() {
    let world = World::shop().await;
    let args = on("undo", "Deployment", "checkout");
    let shown = world.preview(TOOL, args.clone()).await.unwrap();
    assert_eq!(shown.summary, "undo Deployment shop/checkout to revision 2");
    for part in
        ["revision: 3 -> 2", "checkout:2.8.0 -> registry.sandbox/shop/checkout:2.7.1", "minAvailable 2", "+++ then"]
    {
        assert!(shown.text.contains(part), "{part} in\n{}", shown.text);
    }
    assert!(shown.warnings.iter().any(|warning| warning.contains("is stuck")), "{:?}", shown.warnings);

    let before = world.writes();
    let told = world.run(TOOL, args.clone()).await.unwrap();
    assert_eq!((&told["from_revision"], &told["to_revision"]), (&json!(3), &json!(2)));
    assert_eq!(told["images"]["to"]["checkout"], "registry.sandbox/shop/checkout:2.7.1");
    let live = world.get("Deployment", "checkout").await;
    assert!(
        image(&live).ends_with(":2.7.1")
            && live["spec"]["template"]["metadata"]["labels"]["pod-template-hash"].is_null()
    );
    let notes = &live["metadata"]["annotations"];
    assert!(notes["kubernetes.io/change-cause"].as_str().unwrap().contains("2.7.1"), "annotations come back: {notes}");
    assert_eq!(notes["quartermaster/run"], run().to_string());

    world.run(TOOL, args.clone()).await.unwrap();
    assert!(image(&world.get("Deployment", "checkout").await).ends_with(":2.7.1"), "the same run does not toggle");
    assert_eq!(world.writes_since(before).len(), 1);
    assert!(matches!(world.probe(TOOL, args.clone(), run()).await, ProbeResult::Done(_)));
    assert_eq!(world.probe(TOOL, args, another_run()).await, ProbeResult::Unknown, "somebody's mark is there");
    until("the rollout that could not finish is over", || async {
        world.get("Deployment", "checkout").await["status"]["availableReplicas"] == 4
    })
    .await;
}

#[tokio::test]
async fn a_revision_that_was_dangerous_is_a_warning_before_all_others() {
    let world = World::shop().await;
    let frontend = |privileged: bool| {
        let container = json!({ "name": "frontend", "securityContext": { "privileged": privileged } });
        let template = json!({ "spec": { "containers": [container] } });
        json!({ "kind": "Deployment", "name": "frontend", "type": "strategic", "patch": json!({ "spec": { "template": template } }).to_string() })
    };
    let seen = |revision: &'static str| {
        let world = &world;
        async move {
            let live = world.get("Deployment", "frontend").await;
            live["metadata"]["annotations"]["deployment.kubernetes.io/revision"] == revision
        }
    };
    world.run("k8s_patch", frontend(true)).await.unwrap();
    until("the dangerous revision", || seen("2")).await;
    world.run_as("k8s_patch", frontend(false), another_run()).await.unwrap();
    until("the one after it", || seen("3")).await;

    let shown = world.preview(TOOL, on("undo", "Deployment", "frontend")).await.unwrap();

    assert_eq!(shown.warnings[0], "Deployment shop/frontend: container frontend would be privileged.", "{shown:?}");
}

#[tokio::test]
async fn an_undo_names_its_revision_or_those_there_are() {
    let world = World::shop().await;
    let to = |revision: u32| json!({ "action": "undo", "kind": "deploy", "name": "checkout", "to_revision": revision });
    let refused = world.preview(TOOL, to(9)).await.unwrap_err();
    assert_eq!(
        (refused.code, refused.next.as_deref()),
        (kubernetes::codes::REVISION_NOT_FOUND, Some("choose from: 3, 2, 1"))
    );
    assert_eq!(
        world.preview(TOOL, on("undo", "deploy", "frontend")).await.unwrap_err().code,
        kubernetes::codes::REVISION_NOT_FOUND
    );
    let before = world.writes();
    assert_eq!(world.run(TOOL, to(3)).await.unwrap()["noop"], true);
    assert_eq!(world.writes(), before);
    world.run(TOOL, to(1)).await.unwrap();
    assert!(image(&world.get("Deployment", "checkout").await).ends_with(":2.7.0"));
}

#[tokio::test]
async fn an_undo_of_the_other_kinds_is_read_from_their_revisions() {
    let world = World::shop().await;
    for (kind, name, namespace, container) in
        [("StatefulSet", "redis", "shop", "redis"), ("DaemonSet", "log-agent", "platform", "agent")]
    {
        let place = format!("{namespace}/{name}");
        let was = image(&world.get(kind, &place).await).to_owned();
        let forth = json!({ "action": "set_image", "kind": kind, "name": name, "namespace": namespace, "images": { container: "other:9" } });
        world.run_as(TOOL, forth, another_run()).await.unwrap();
        until("a revision is kept", || async {
            let args = json!({ "action": "undo", "kind": kind, "name": name, "namespace": namespace });
            world.preview(TOOL, args).await.is_ok_and(|drawn| drawn.text.contains(&was))
        })
        .await;
        let back = json!({ "action": "undo", "kind": kind, "name": name, "namespace": namespace });
        let told = world.run(TOOL, back).await.unwrap();
        assert_eq!(told["images"], json!({ "from": { container: "other:9" }, "to": { container: was } }));
        let live = world.get(kind, &place).await;
        assert_eq!(image(&live), was);
        assert_eq!(live["spec"]["template"]["spec"]["containers"].as_array().unwrap().len(), 1, "replaced, not merged");
    }
}

#[tokio::test]
async fn a_paused_deployment_is_resumed_first() {
    let world = World::shop().await;
    let before = world.writes();
    assert_eq!(world.run(TOOL, on("resume", "Deployment", "catalog")).await.unwrap()["noop"], true);
    assert_eq!(world.writes(), before);

    world.run(TOOL, on("pause", "Deployment", "catalog")).await.unwrap();
    assert_eq!(world.get("Deployment", "catalog").await["spec"]["paused"], true);
    assert!(matches!(
        world.probe(TOOL, on("pause", "Deployment", "catalog"), another_run()).await,
        ProbeResult::Done(_)
    ));
    for action in ["restart", "undo"] {
        let refused = world.preview(TOOL, on(action, "Deployment", "catalog")).await.unwrap_err();
        assert_eq!(refused.code, kubernetes::codes::ROLLOUT_PAUSED);
        assert_eq!(refused.next.as_deref(), Some("resume it first with k8s_rollout action=resume"));
    }
    let shown = world.preview(TOOL, set_image("catalog", json!({ "catalog": "shop/catalog:2" }))).await.unwrap();
    assert!(shown.warnings.iter().any(|warning| warning.contains("paused")), "{:?}", shown.warnings);
    world.run_as(TOOL, on("resume", "Deployment", "catalog"), another_run()).await.unwrap();
    assert_ne!(world.get("Deployment", "catalog").await["spec"]["paused"], true);

    let refused = world.preview(TOOL, on("pause", "StatefulSet", "redis")).await.unwrap_err();
    assert_eq!(refused.code, kubernetes::codes::UNSUPPORTED_KIND);
}

#[tokio::test]
async fn images_are_set_by_the_name_of_their_container() {
    let world = World::shop().await;
    let args = set_image("frontend", json!({ "frontend": "registry.sandbox/shop/frontend:3.3.0" }));
    let shown = world.preview(TOOL, args.clone()).await.unwrap();
    assert!(
        shown.text.contains(
            "image of frontend: registry.sandbox/shop/frontend:3.2.0 -> registry.sandbox/shop/frontend:3.3.0"
        )
    );
    let told = world.run(TOOL, args.clone()).await.unwrap();
    assert_eq!(told["images"]["from"]["frontend"], "registry.sandbox/shop/frontend:3.2.0");
    let live = world.get("Deployment", "frontend").await;
    assert!(image(&live).ends_with(":3.3.0") && live["spec"]["template"]["spec"]["containers"][0]["ports"].is_array());
    assert!(matches!(world.probe(TOOL, args, another_run()).await, ProbeResult::Done(_)), "the images are as wished");

    world.run_as(TOOL, set_image("frontend", json!({ "*": "other:1" })), another_run()).await.unwrap();
    assert_eq!(image(&world.get("Deployment", "frontend").await), "other:1");

    let refused = world.preview(TOOL, set_image("frontend", json!({ "frontent": "a:1" }))).await.unwrap_err();
    assert_eq!(
        (refused.code, refused.did_you_mean),
        (kubernetes::codes::CONTAINER_NOT_FOUND, vec!["frontend".to_owned()])
    );
    for (args, what) in [
        (json!({ "action": "set_image", "kind": "deploy", "name": "frontend" }), "images"),
        (json!({ "action": "restart", "kind": "deploy", "name": "frontend", "images": { "a": "b" } }), "images"),
        (json!({ "action": "pause", "kind": "deploy", "name": "frontend", "to_revision": 1 }), "to_revision"),
    ] {
        let refused = world.preview(TOOL, args).await.unwrap_err();
        assert_eq!(refused.code, Code::InvalidArgument);
        assert!(refused.message.contains(what), "{refused}");
    }
}

#[tokio::test]
async fn what_the_approver_judged_voids_the_yes_and_a_status_does_not() {
    let world = World::shop().await;
    let args = on("restart", "Deployment", "frontend");
    let shown = world.preview(TOOL, args.clone()).await.unwrap();

    world.change_status("Deployment", "frontend", json!({ "status": { "collisionCount": 7 } })).await;
    world.change("Deployment", "frontend", json!({ "spec": { "replicas": 5 } })).await;
    let moved = world.last_look(TOOL, args.clone()).await.unwrap();
    assert_eq!(moved.fingerprint, shown.fingerprint, "an autoscaler may work while a person thinks");

    let annotations = json!({ "metadata": { "annotations": { "other": "template" } } });
    world.change("Deployment", "frontend", json!({ "spec": { "template": annotations } })).await;
    let drifted = world.last_look(TOOL, args).await.unwrap();
    assert_ne!(drifted.fingerprint, shown.fingerprint);
    assert_ne!(drifted.text, shown.text);
}

#[tokio::test]
async fn a_lost_answer_is_unknown_and_a_second_attempt_does_no_more() {
    let world = World::shop().await;
    let (args, before) = (on("restart", "Deployment", "catalog"), world.writes());
    let fault =
        |harm| ClusterFault { method: Some("PATCH".into()), path: "deployments/catalog".into(), times: 1, harm };

    world.sandbox.plant(fault(ClusterHarm::CutAfter));
    assert_eq!(world.run(TOOL, args.clone()).await.unwrap_err().code, Code::OutcomeUnknown);
    assert!(matches!(world.probe(TOOL, args.clone(), run()).await, ProbeResult::Done(_)));
    world.run(TOOL, args).await.unwrap();
    assert_eq!(world.writes_since(before).len(), 1);

    world.sandbox.plant(fault(ClusterHarm::Answer(504, None)));
    let pause = on("pause", "Deployment", "catalog");
    assert_eq!(world.run_as(TOOL, pause.clone(), another_run()).await.unwrap_err().code, Code::OutcomeUnknown);
    assert_eq!(world.probe(TOOL, pause.clone(), another_run()).await, ProbeResult::NotDone);
    // A version that was passed by is no change, so the patch is made anew.
    world.sandbox.plant(fault(ClusterHarm::Answer(409, None)));
    world.run_as(TOOL, pause, another_run()).await.unwrap();
    assert_eq!(world.get("Deployment", "catalog").await["spec"]["paused"], true);
}

#[tokio::test]
async fn what_is_not_there_not_a_workload_or_not_the_tenants_is_told() {
    let world = World::shop().await;
    let refused = world.preview(TOOL, on("restart", "Deployment", "frontned")).await.unwrap_err();
    assert_eq!((refused.code, refused.did_you_mean), (Code::NotFound, vec!["frontend".to_owned()]));
    let refused = world.preview(TOOL, on("restart", "Rollout", "frontend")).await.unwrap_err();
    assert_eq!(
        (refused.code, refused.next.as_deref()),
        (
            kubernetes::codes::UNSUPPORTED_KIND,
            Some("call load_toolset with toolset=argo, then argo_get or argo_rollout")
        )
    );
    assert_eq!(
        world.preview(TOOL, on("restart", "Service", "frontend")).await.unwrap_err().code,
        kubernetes::codes::UNSUPPORTED_KIND
    );
    let foreign = on("restart", "deployments.example.com", "frontend");
    assert_eq!(world.preview(TOOL, foreign).await.unwrap_err().code, kubernetes::codes::UNKNOWN_KIND);

    let limited = World::limited(&["shop"]).await;
    let elsewhere = json!({ "action": "restart", "kind": "deploy", "name": "metrics", "namespace": "platform" });
    assert_eq!(limited.preview(TOOL, elsewhere.clone()).await.unwrap_err().code, kubernetes::codes::NAMESPACE_DENIED);
    assert_eq!(limited.run(TOOL, elsewhere).await.unwrap_err().code, kubernetes::codes::NAMESPACE_DENIED);
    let protected = World::protected().await;
    let args = on("restart", "Deployment", "frontend");
    assert_eq!(protected.preview(TOOL, args.clone()).await.unwrap_err().code, kubernetes::codes::PROTECTED);
    assert_eq!(protected.run(TOOL, args).await.unwrap_err().code, kubernetes::codes::PROTECTED);
    assert_eq!((limited.writes(), protected.writes()), (0, 0));
}

#[tokio::test]
async fn a_status_that_moves_is_no_obstacle_and_a_template_that_moves_is_one() {
    let world = World::shop().await;
    let (args, path) = (on("restart", "Deployment", "frontend"), "deployments/frontend");
    let status = json!({ "status": { "collisionCount": 7 } });
    let write = world.run(TOOL, args.clone());
    world.meanwhile(path, write, world.change_status("Deployment", "frontend", status)).await.unwrap();
    let restarted = |object: &Value| object["spec"]["template"]["metadata"]["annotations"][RESTARTED].clone();
    assert_eq!(restarted(&world.get("Deployment", "frontend").await), approval(run()).at.exact());

    let (args, path) = (on("restart", "Deployment", "catalog"), "deployments/catalog");
    let template = json!({ "spec": { "template": { "metadata": { "annotations": { "other": "template" } } } } });
    let write = world.run(TOOL, args);
    let refused = world.meanwhile(path, write, world.change("Deployment", "catalog", template)).await.unwrap_err();
    assert_eq!(refused.code, Code::Conflict);
    assert_eq!(restarted(&world.get("Deployment", "catalog").await), Value::Null, "nobody signed for that template");
}
