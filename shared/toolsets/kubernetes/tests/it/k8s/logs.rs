use crate::k8s::world::{World, texts};
use domain::Code;
use serde_json::{Value, json};

async fn pod_of(world: &World, app: &str) -> String {
    let pods = world.call("k8s_get", json!({ "kind": "Pod", "selector": format!("app={app}") })).await.unwrap();
    texts(&pods, "name")[0].to_owned()
}

#[tokio::test]
async fn the_last_lines_of_one_pod() {
    let world = World::shop().await;
    let pod = pod_of(&world, "frontend").await;

    let answer = world.call("k8s_logs", json!({ "pod": pod, "tail": 5 })).await.unwrap();

    let text = answer["text"].as_str().unwrap();
    assert_eq!(text.lines().count(), 5);
    assert_eq!(answer["streams"], json!([{ "pod": pod, "container": "frontend", "lines": 5 }]));
    assert!(!text.contains(&format!("{pod}/")), "one stream needs no label");
    assert_eq!(answer["untrusted"], true);
}

#[tokio::test]
async fn lines_of_several_pods_are_labelled_and_in_order() {
    let world = World::shop().await;
    let answer = world.call("k8s_logs", json!({ "selector": "app=frontend", "tail": 3 })).await.unwrap();
    let streams = answer["streams"].as_array().unwrap();
    assert_eq!(streams.len(), 3);
    let text = answer["text"].as_str().unwrap();
    assert!(text.lines().all(|line| line.contains("/frontend: ")), "{text}");
}

#[tokio::test]
async fn what_a_crashed_container_said_is_found_by_a_search() {
    let world = World::shop().await;
    let args = json!({ "selector": "app=cart-worker", "grep": "(?i)required environment variable" });
    let answer = world.call("k8s_logs", args).await.unwrap();
    assert!(answer["text"].as_str().unwrap().contains("REDIS_URL"), "{answer}");
}

#[tokio::test]
async fn older_lines_follow_by_cursor_without_a_gap() {
    let world = World::shop().await;
    let pod = pod_of(&world, "frontend").await;
    let whole = world.call("k8s_logs", json!({ "pod": pod, "tail": 60 })).await.unwrap();
    let whole: Vec<String> = whole["text"].as_str().unwrap().lines().map(str::to_owned).collect();

    let first = world.call("k8s_logs", json!({ "pod": pod, "tail": 20 })).await.unwrap();
    let older =
        world.call("k8s_logs", json!({ "pod": pod, "tail": 20, "cursor": first["next_cursor"] })).await.unwrap();

    let lines =
        |answer: &Value| -> Vec<String> { answer["text"].as_str().unwrap().lines().map(str::to_owned).collect() };
    let (first, older) = (lines(&first), lines(&older));
    // The pod may have written on meanwhile, so the pieces are looked for in the whole by their neighbours.
    let joined = [older.clone(), first.clone()].concat();
    let at = whole.iter().position(|line| *line == joined[0]).expect("the older lines are in the whole");
    let overlap = whole.len() - at;
    assert!(overlap >= 20, "{overlap}");
    assert_eq!(whole[at..], joined[..overlap.min(joined.len())]);
}

#[tokio::test]
async fn a_long_log_keeps_its_newest_lines() {
    let world = World::shop().await;
    let pod = pod_of(&world, "frontend").await;
    let answer = world.call("k8s_logs", json!({ "pod": pod, "tail": 2000 })).await.unwrap();
    let newest = world.call("k8s_logs", json!({ "pod": pod, "tail": 3 })).await.unwrap();
    let (text, newest) = (answer["text"].as_str().unwrap(), newest["text"].as_str().unwrap());
    let recent: Vec<&str> = text.lines().rev().take(6).collect();
    assert!(newest.lines().any(|line| recent.contains(&line)), "{newest}\n{recent:?}");
    if answer["truncated"] == true {
        assert!(answer["omitted"]["lines"].as_u64().unwrap() > 0 && answer["next_cursor"].is_string());
    }
}

#[tokio::test]
async fn what_cannot_be_read_is_told_with_the_way_out() {
    let world = World::shop().await;
    let pod = pod_of(&world, "frontend").await;
    for (args, code) in [
        (json!({}), Code::InvalidArgument),
        (json!({ "pod": pod, "selector": "app=web" }), Code::InvalidArgument),
        (json!({ "pod": pod, "container": "frontent" }), kubernetes::codes::CONTAINER_NOT_FOUND),
        (json!({ "pod": pod, "previous": true }), kubernetes::codes::NO_PREVIOUS_LOGS),
        (json!({ "pod": "nobody" }), Code::NotFound),
        (json!({ "selector": "app=nobody" }), Code::NotFound),
        (json!({ "pod": pod, "grep": "(" }), Code::InvalidArgument),
        (json!({ "pod": pod, "tail": 0 }), Code::InvalidArgument),
        (json!({ "pod": pod, "since": "yesterday" }), Code::InvalidArgument),
    ] {
        assert_eq!(world.refused("k8s_logs", args.clone()).await.code, code, "{args}");
    }
}

#[tokio::test]
async fn too_many_pods_are_not_read_at_once() {
    let world = World::new(sandbox::Seed::empty().with_pods("shop", 40)).await;
    let failure = world.refused("k8s_logs", json!({ "selector": "app=bulk" })).await;
    assert_eq!(failure.code, kubernetes::codes::TOO_MANY_PODS);
}

#[tokio::test]
async fn a_secret_that_a_program_wrote_is_neither_shown_nor_found() {
    let world = World::shop().await;
    let line = "connecting with password=correct-horse-battery and more";
    world
        .make(json!({
            "apiVersion": "v1", "kind": "Pod", "metadata": { "name": "chatty", "namespace": "shop" },
            "spec": { "restartPolicy": "Never", "containers": [{ "name": "main", "image": "busybox:1.36", "command": ["echo", line] }] },
        }))
        .await;
    let done = json!({ "kind": "Pod", "name": "chatty", "until": "status.phase=Succeeded", "timeout_s": 60 });
    assert_eq!(world.call("k8s_wait", done).await.unwrap()["met"], true);

    let shown = world.call("k8s_logs", json!({ "pod": "chatty" })).await.unwrap();
    assert!(shown["text"].as_str().unwrap().starts_with("connecting with password"), "{shown}");
    assert!(!shown.to_string().contains("battery"), "{shown}");
    for guess in ["battery", "correct-h", "password=c"] {
        let found = world.call("k8s_logs", json!({ "pod": "chatty", "grep": guess })).await.unwrap();
        assert_eq!(found["text"], "", "{guess}");
    }
}
