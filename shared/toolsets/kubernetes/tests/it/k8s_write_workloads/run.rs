//! `k8s_run`.

use crate::k8s_write_objects::world::{World, another_run, run, until};
use catalog::ProbeResult;
use domain::Code;
use sandbox::{ClusterFault, ClusterHarm};
use serde_json::{Value, json};

const TOOL: &str = "k8s_run";

fn job() -> String {
    let id = run().to_string();
    format!("qm-{}", id.strip_prefix("run_").unwrap().to_lowercase())
}

fn echo(words: &[&str]) -> Value {
    let command = [&["echo"], words].concat();
    json!({ "image": "busybox:1.36", "command": command, "timeout_s": 20 })
}

#[tokio::test]
async fn a_job_runs_once_without_rights_and_says_what_it_wrote() {
    let world = World::shop().await;
    let (args, before) = (echo(&["$(id)", "; x"]), world.writes());
    let shown = world.preview(TOOL, args.clone()).await.unwrap();
    assert_eq!(shown.summary, "run busybox:1.36 as a Job in shop");
    for part in
        ["automountServiceAccountToken: false", "backoffLimit: 0", "- ALL", "restartPolicy: Never", r#""$(id)""#]
    {
        assert!(shown.text.contains(part), "{part} in\n{}", shown.text);
    }
    assert_eq!(world.last_look(TOOL, args.clone()).await.unwrap(), shown);
    assert_eq!(world.probe(TOOL, args.clone(), run()).await, ProbeResult::NotDone);
    assert_eq!(world.writes(), before, "a preview only looks");

    let told = world.run(TOOL, args.clone()).await.unwrap();
    assert_eq!((&told["job"], &told["phase"], &told["exit_code"]), (&json!(job()), &json!("Succeeded"), &json!(0)));
    assert_eq!(told["logs"], "$(id) ; x");
    assert!(told["expires_at"].is_string(), "{told}");
    let live = world.get("Job", &job()).await;
    assert_eq!((&live["spec"]["backoffLimit"], &live["spec"]["ttlSecondsAfterFinished"]), (&json!(0), &json!(600)));
    assert_eq!(live["metadata"]["annotations"]["quartermaster/run"], run().to_string());

    assert_eq!(world.run(TOOL, args.clone()).await.unwrap()["job"], job());
    assert_eq!(world.writes_since(before), ["POST shop/jobs"], "a repeated run has the effect of one");
    assert!(
        matches!(world.probe(TOOL, args, run()).await, ProbeResult::Done(Some(text)) if text.contains("Succeeded"))
    );
}

#[tokio::test]
async fn how_a_program_ends_is_a_result() {
    let world = World::shop().await;
    let told = world.run(TOOL, json!({ "image": "busybox:1", "command": ["false"], "timeout_s": 20 })).await.unwrap();
    assert_eq!((&told["phase"], &told["exit_code"]), (&json!("Failed"), &json!(1)));
    let slow = json!({ "image": "busybox:1", "command": ["sleep", "30"], "timeout_s": 2 });
    let told = world.run_as(TOOL, slow, another_run()).await.unwrap();
    assert!(told["phase"] == "Running" && told["warnings"][0].as_str().unwrap().contains("not ended"), "{told}");
}

#[tokio::test]
async fn an_image_that_cannot_be_had_is_told() {
    let world = World::shop().await;
    let told = world.run(TOOL, json!({ "image": "busybox:missing", "timeout_s": 2 })).await.unwrap();
    let warnings = told["warnings"].to_string();
    assert!(told["phase"] == "Pending" && warnings.contains("ImagePull"), "{told}");
}

#[tokio::test]
async fn a_cronjob_runs_now_as_it_would_at_night() {
    let world = World::shop().await;
    let args = json!({ "from_cronjob": "nightly-report", "timeout_s": 20 });
    let shown = world.preview(TOOL, args.clone()).await.unwrap();
    assert!(shown.summary.ends_with("from CronJob shop/nightly-report") && shown.text.contains("shop/report:1.1"));
    let told = world.run(TOOL, args.clone()).await.unwrap();
    assert_eq!(told["phase"], "Succeeded", "{told}");
    let live = world.get("Job", &job()).await;
    assert_eq!(live["metadata"]["annotations"]["cronjob.kubernetes.io/instantiate"], "manual");
    let owner = &live["metadata"]["ownerReferences"][0];
    assert_eq!((&owner["kind"], &owner["name"]), (&json!("CronJob"), &json!("nightly-report")));

    let template = json!({ "jobTemplate": { "spec": { "template": { "spec": { "containers": [{ "name": "report", "image": "evil:1" }] } } } } });
    world.change("CronJob", "nightly-report", json!({ "metadata": { "labels": { "a": "b" } } })).await;
    assert_eq!(world.last_look(TOOL, args.clone()).await.unwrap().fingerprint, shown.fingerprint);
    world.change("CronJob", "nightly-report", json!({ "spec": template })).await;
    assert_ne!(
        world.last_look(TOOL, args).await.unwrap().fingerprint,
        shown.fingerprint,
        "another template is another deed"
    );

    let refused = world.preview(TOOL, json!({ "from_cronjob": "nightly-raport" })).await.unwrap_err();
    assert_eq!((refused.code, refused.did_you_mean), (Code::NotFound, vec!["nightly-report".to_owned()]));
    let both = json!({ "from_cronjob": "nightly-report", "command": ["sh"] });
    assert_eq!(world.preview(TOOL, both).await.unwrap_err().code, Code::InvalidArgument);
}

#[tokio::test]
async fn a_debug_container_joins_a_pod_once_and_stays() {
    let world = World::shop().await;
    let args =
        json!({ "debug_pod": "redis-0", "image": "busybox:1.36", "command": ["echo", "hello"], "timeout_s": 20 });
    let shown = world.preview(TOOL, args.clone()).await.unwrap();
    assert_eq!(shown.summary, "attach busybox:1.36 to Pod shop/redis-0");
    assert!(shown.warnings.iter().any(|warning| warning.contains("until the pod is deleted")), "{:?}", shown.warnings);
    assert!(world.get("Pod", "redis-0").await["spec"]["ephemeralContainers"].is_null(), "a preview only looks");

    let told = world.run(TOOL, args.clone()).await.unwrap();
    assert_eq!((&told["pod"], &told["phase"], &told["exit_code"]), (&json!("redis-0"), &json!("Succeeded"), &json!(0)));
    assert_eq!(told["logs"], "hello");
    world.run(TOOL, args.clone()).await.unwrap();
    let live = world.get("Pod", "redis-0").await;
    let added = live["spec"]["ephemeralContainers"].as_array().unwrap();
    assert_eq!((added.len(), &added[0]["name"]), (1, &json!(job())));
    assert_eq!(added[0]["securityContext"]["capabilities"]["drop"], json!(["ALL"]));
    assert!(matches!(world.probe(TOOL, args.clone(), run()).await, ProbeResult::Done(Some(_))));
    assert_eq!(world.probe(TOOL, args, another_run()).await, ProbeResult::NotDone);
    let refused = world.preview(TOOL, json!({ "debug_pod": "redis-9", "image": "busybox" })).await.unwrap_err();
    assert_eq!((refused.code, refused.did_you_mean), (Code::NotFound, vec!["redis-0".to_owned()]));
}

#[tokio::test]
async fn a_lost_answer_is_unknown_and_a_second_attempt_does_no_more() {
    let world = World::shop().await;
    let (args, before) = (echo(&["once"]), world.writes());
    let fault =
        ClusterFault { method: Some("POST".into()), path: "/jobs".into(), times: 1, harm: ClusterHarm::CutAfter };
    world.sandbox.plant(fault);
    assert_eq!(world.run(TOOL, args.clone()).await.unwrap_err().code, Code::OutcomeUnknown);
    assert!(matches!(world.probe(TOOL, args.clone(), run()).await, ProbeResult::Done(_)));
    assert_eq!(world.run(TOOL, args).await.unwrap()["logs"], "once");
    assert_eq!(world.writes_since(before).len(), 1);
}

#[tokio::test]
async fn a_job_of_that_name_that_is_not_ours_is_left_alone() {
    let world = World::shop().await;
    let template = json!({ "spec": { "restartPolicy": "Never", "containers": [{ "name": "a", "image": "other:1" }] } });
    world
        .make(json!({ "apiVersion": "batch/v1", "kind": "Job", "metadata": { "name": job(), "namespace": "shop" },
            "spec": { "template": template } }))
        .await;
    until("it is there", || async { world.find("Job", &job()).await.is_some() }).await;
    assert_eq!(world.run(TOOL, echo(&["x"])).await.unwrap_err().code, kubernetes::codes::ALREADY_EXISTS);
    assert_eq!(world.probe(TOOL, echo(&["x"]), run()).await, ProbeResult::Unknown);
}

#[tokio::test]
async fn protected_foreign_and_full_namespaces_are_told_before_anybody_is_asked() {
    let protected = World::protected().await;
    for args in
        [echo(&["x"]), json!({ "from_cronjob": "nightly-report" }), json!({ "debug_pod": "redis-0", "image": "a" })]
    {
        assert_eq!(protected.preview(TOOL, args.clone()).await.unwrap_err().code, kubernetes::codes::PROTECTED);
        assert_eq!(protected.run(TOOL, args).await.unwrap_err().code, kubernetes::codes::PROTECTED);
    }
    let limited = World::limited(&["shop"]).await;
    let mut args = echo(&["x"]);
    args["namespace"] = json!("platform");
    assert_eq!(limited.preview(TOOL, args.clone()).await.unwrap_err().code, kubernetes::codes::NAMESPACE_DENIED);
    assert_eq!(limited.run(TOOL, args).await.unwrap_err().code, kubernetes::codes::NAMESPACE_DENIED);
    assert_eq!((protected.writes(), limited.writes()), (0, 0));

    let world = World::shop().await;
    world
        .make(json!({ "apiVersion": "v1", "kind": "ResourceQuota", "metadata": { "name": "none", "namespace": "shop" },
            "spec": { "hard": { "count/jobs.batch": "0" } } }))
        .await;
    assert_eq!(world.preview(TOOL, echo(&["x"])).await.unwrap_err().code, Code::QuotaExceeded);
}
