//! `k8s_exec`.

use crate::k8s_write_objects::world::{World, run};
use catalog::ProbeResult;
use domain::Code;
use serde_json::{Value, json};

const TOOL: &str = "k8s_exec";

fn in_redis(command: Value) -> Value {
    json!({ "pod": "redis-0", "command": command })
}

async fn two_containers(world: &World) {
    let container = |name: &str| json!({ "name": name, "image": "app:1" });
    world
        .make(json!({ "apiVersion": "v1", "kind": "Pod", "metadata": { "name": "pair", "namespace": "shop" },
            "spec": { "containers": [container("web"), container("proxy")] } }))
        .await;
    crate::k8s_write_objects::world::until("the pair runs", || async {
        world.get("Pod", "pair").await["status"]["phase"] == "Running"
    })
    .await;
}

#[tokio::test]
async fn a_command_runs_as_the_words_it_is_made_of() {
    let world = World::shop().await;
    let words = json!(["echo", "$(id)", "; rm -rf /", "`x`", "a  b", "--flag", "%0a"]);
    let told = world.run(TOOL, in_redis(words)).await.unwrap();
    assert_eq!((&told["exit_code"], told["stderr"].as_str()), (&json!(0), Some("")));
    assert_eq!(told["stdout"], "$(id) ; rm -rf / `x` a  b --flag %0a\n");

    let told = world.run(TOOL, json!({ "pod": "redis-0", "command": ["cat"], "stdin": "one\ntwo\n" })).await.unwrap();
    assert_eq!(told["stdout"], "one\ntwo\n");
    let told = world.run(TOOL, in_redis(json!(["sh", "-c", "echo bad >&2; exit 3"]))).await.unwrap();
    assert_eq!((&told["exit_code"], told["stderr"].as_str()), (&json!(3), Some("bad\n")));
}

#[tokio::test]
async fn the_approver_reads_the_exact_command_and_where_it_runs() {
    let world = World::shop().await;
    let args = json!({ "pod": "redis-0", "command": ["sh", "-c", "echo \u{202e}dlrow; id\n"], "stdin": "secret" });
    let shown = world.preview(TOOL, args.clone()).await.unwrap();
    assert_eq!(shown.summary, "run \"sh\" in Pod shop/redis-0 (redis)");
    for part in [
        "container: redis (redis:7.4)",
        "service account: default",
        "stdin: 6 bytes, sha256 2bb80d5",
        r"\u{202e}dlrow; id\n",
    ] {
        assert!(shown.text.contains(part), "{part} in\n{}", shown.text);
    }
    assert!(!shown.text.contains('\u{202e}'), "nothing can be made to read backwards");
    assert_eq!(world.last_look(TOOL, args).await.unwrap(), shown);
    assert!(world.sandbox.requests().iter().all(|request| !request.contains("/exec")), "a preview runs nothing");
}

#[tokio::test]
async fn a_pod_made_anew_voids_the_yes() {
    let world = World::shop().await;
    two_containers(&world).await;
    let args = json!({ "pod": "pair", "container": "web", "command": ["true"] });
    let shown = world.preview(TOOL, args.clone()).await.unwrap();
    world.change("Pod", "pair", json!({ "metadata": { "labels": { "a": "b" } } })).await;
    assert_eq!(world.last_look(TOOL, args.clone()).await.unwrap().fingerprint, shown.fingerprint);

    world.run("k8s_delete", json!({ "kind": "Pod", "name": "pair", "grace_s": 0 })).await.unwrap();
    crate::k8s_write_objects::world::until("it is gone", || async { world.find("Pod", "pair").await.is_none() }).await;
    two_containers(&world).await;
    let again = world.last_look(TOOL, args).await.unwrap();
    assert_ne!(again.fingerprint, shown.fingerprint);
    assert_ne!(again.text, shown.text, "the same words about another pod are not the same");
}

#[tokio::test]
async fn a_container_is_named_where_there_are_several() {
    let world = World::shop().await;
    two_containers(&world).await;
    let refused = world.preview(TOOL, json!({ "pod": "pair", "command": ["true"] })).await.unwrap_err();
    assert_eq!(
        (refused.code, refused.next.as_deref()),
        (kubernetes::codes::CONTAINER_REQUIRED, Some("set container to one of: web, proxy"))
    );
    let near = json!({ "pod": "pair", "container": "prox", "command": ["true"] });
    let refused = world.preview(TOOL, near).await.unwrap_err();
    assert_eq!(
        (refused.code, refused.did_you_mean),
        (kubernetes::codes::CONTAINER_NOT_FOUND, vec!["proxy".to_owned()])
    );
    let refused = world.preview(TOOL, json!({ "pod": "redis-1", "command": ["true"] })).await.unwrap_err();
    assert_eq!((refused.code, refused.did_you_mean), (Code::NotFound, vec!["redis-0".to_owned()]));
}

#[tokio::test]
async fn what_is_secret_does_not_come_out() {
    let world = World::shop().await;
    let told = world.run(TOOL, in_redis(json!(["echo", "password=correcthorsebattery"]))).await.unwrap();
    assert!(!told["stdout"].as_str().unwrap().contains("correcthorse"), "{told}");
}

#[tokio::test]
async fn a_command_that_is_missing_or_does_not_end_is_told() {
    let world = World::shop().await;
    let refused = world.run(TOOL, in_redis(json!(["no-such-program"]))).await.unwrap_err();
    assert_eq!(refused.code, kubernetes::codes::COMMAND_NOT_FOUND);
    let args = json!({ "pod": "redis-0", "command": ["sleep", "60"], "timeout_s": 1 });
    let told = world.run(TOOL, args.clone()).await.unwrap();
    assert!(told.get("exit_code").is_none());
    assert!(told["warnings"][0].as_str().unwrap().contains("may live on"), "{told}");
    assert_eq!(world.probe(TOOL, args, run()).await, ProbeResult::Unknown, "nobody can tell whether a command ran");
}

#[tokio::test]
async fn long_output_is_cut_and_counted() {
    let world = World::shop().await;
    let line = "x".repeat(90);
    let text = format!("{line}\\n").repeat(80);
    let told = world.run(TOOL, in_redis(json!(["printf", text]))).await.unwrap();
    assert!(told["stdout"].as_str().unwrap().len() <= 8 * 1024);
    let lines = told.pointer("/omitted/lines").map_or(0, |lines| lines.as_u64().unwrap());
    assert_eq!(u64::try_from(told["stdout"].as_str().unwrap().lines().count()).unwrap() + lines, 80);
}

#[tokio::test]
async fn protected_and_foreign_namespaces_are_left_alone() {
    let protected = World::protected().await;
    assert_eq!(protected.preview(TOOL, in_redis(json!(["id"]))).await.unwrap_err().code, kubernetes::codes::PROTECTED);
    assert_eq!(protected.run(TOOL, in_redis(json!(["id"]))).await.unwrap_err().code, kubernetes::codes::PROTECTED);
    let limited = World::limited(&["platform", "shop"]).await;
    let system = json!({ "pod": "x", "namespace": "default", "command": ["id"] });
    assert_eq!(limited.preview(TOOL, system.clone()).await.unwrap_err().code, kubernetes::codes::NAMESPACE_DENIED);
    assert_eq!(limited.run(TOOL, system).await.unwrap_err().code, kubernetes::codes::NAMESPACE_DENIED);
    assert!(protected.sandbox.requests().iter().all(|request| !request.contains("/exec")));
}
