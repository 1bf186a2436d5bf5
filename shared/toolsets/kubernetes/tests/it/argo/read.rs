//! Looking: lists, one object with what belongs to it, revisions, and what is out of reach.

use crate::argo::world::{World, only};
use domain::Code;
use sandbox::Seed;
use serde_json::{Value, json};

#[tokio::test]
async fn a_canary_that_waits_is_seen_in_the_list_and_with_its_tree() {
    let world = World::shop().await;

    let list = world.run("argo_get", json!({})).await.unwrap();
    let one = world.rollout("search").await;

    let row = &list["items"][0];
    assert_eq!(
        (&row["name"], &row["phase"], &row["message"]),
        (&json!("search"), &json!("Paused"), &json!("CanaryPauseStep"))
    );
    assert_eq!(
        (&row["strategy"], &row["step"], &row["weight"]),
        (&json!("canary"), &json!("2/5"), &json!(25)),
        "{row}"
    );
    assert_eq!((&row["ready"], &row["revision"]), (&json!("4/4"), &json!(2)));
    assert!(row["images"][0].as_str().unwrap().ends_with("search:4.2.0"));
    let steps = ["set weight 25%", "analysis of error-rate", "pause until promoted", "set weight 50%", "pause for 10m"];
    assert_eq!(one["steps"], json!(steps));
    assert_eq!((&one["current_step"], &one["pause_reasons"]), (&json!(2), &json!(["CanaryPauseStep"])));
    assert_eq!((&one["paused"], &one["aborted"]), (&json!(false), &json!(false)));
    let roles: Vec<(&Value, &Value)> =
        one["replica_sets"].as_array().unwrap().iter().map(|set| (&set["role"], &set["ready"])).collect();
    assert_eq!(roles, [(&json!("canary"), &json!("1/1")), (&json!("stable"), &json!("3/3"))]);
    let analysis = &one["analysis_runs"][0];
    assert_eq!(
        (&analysis["phase"], &analysis["trigger"], &analysis["step"]),
        (&json!("Successful"), &json!("Step"), &json!("1"))
    );
    assert_eq!(one["experiments"], json!([]));
    assert!(one["conditions"].as_array().unwrap().iter().any(|one| one["type"] == "Paused" && one["status"] == "True"));
}

#[tokio::test]
async fn an_analysis_shows_its_last_measurements_or_all_of_them() {
    let world = World::shop().await;
    let results = json!([{
        "name": "error-rate", "phase": "Running", "successful": 4, "failed": 1, "message": "token=ghp_abcdefghijklmnopqrstuvwxyz0123456789",
        "measurements": (1..=5).map(|n| json!({ "phase": "Successful", "value": n.to_string(), "finishedAt": "2026-01-01T00:00:00Z" })).collect::<Vec<_>>(),
    }]);
    world
        .make(json!({
            "apiVersion": "argoproj.io/v1alpha1", "kind": "AnalysisRun", "metadata": { "name": "by-hand", "namespace": "shop" },
            "spec": { "metrics": [] }, "status": { "phase": "Successful", "metricResults": results },
        }))
        .await;

    let short = world.run("argo_get", json!({ "kind": "analysisrun", "name": "by-hand" })).await.unwrap();
    let full = world.run("argo_get", json!({ "kind": "analysisrun", "name": "by-hand", "full": true })).await.unwrap();

    let metric = &short["metrics"][0];
    assert_eq!((&metric["ok"], &metric["failed"], &metric["last_value"]), (&json!(4), &json!(1), &json!("5")));
    assert_eq!(metric["measurements"].as_array().unwrap().len(), 3);
    assert_eq!(full["metrics"][0]["measurements"].as_array().unwrap().len(), 5);
    assert!(!short.to_string().contains("ghp_abc"), "{short}");
}

#[tokio::test]
async fn analyses_are_found_by_the_rollout_they_belong_to() {
    let world = World::shop().await;
    world
        .make(json!({
            "apiVersion": "argoproj.io/v1alpha1", "kind": "AnalysisRun", "spec": { "metrics": [] },
            "metadata": { "name": "search-of-somebody-else", "namespace": "shop" },
        }))
        .await;

    let all = world.run("argo_get", json!({ "kind": "analysisrun" })).await.unwrap();
    let own = world.run("argo_get", json!({ "kind": "analysisrun", "rollout": "search" })).await.unwrap();
    let none = world.run("argo_get", json!({ "kind": "experiment", "rollout": "search" })).await.unwrap();
    let absent = world.run("argo_get", json!({ "kind": "analysisrun", "rollout": "serach" })).await.unwrap_err();

    assert_eq!((&all["count"], &own["count"], &none["count"]), (&json!(2), &json!(1), &json!(0)));
    assert_eq!(own["items"][0]["owner"], "Rollout search");
    assert_eq!((absent.code, absent.did_you_mean), (Code::NotFound, vec!["search".to_owned()]));
}

#[tokio::test]
async fn a_long_list_goes_on_with_a_cursor() {
    let world = World::shop().await;
    for n in 0..130 {
        let metadata = json!({ "name": format!("run-{n:03}"), "namespace": "shop" });
        world.make(json!({ "apiVersion": "argoproj.io/v1alpha1", "kind": "AnalysisRun", "metadata": metadata, "spec": {} })).await;
    }

    let mut names = Vec::new();
    let mut args = json!({ "kind": "analysisrun" });
    loop {
        let page = world.run("argo_get", args.clone()).await.unwrap();
        names.extend(page["items"].as_array().unwrap().iter().map(|row| row["name"].as_str().unwrap().to_owned()));
        match page.get("next_cursor") {
            Some(cursor) => args["cursor"] = cursor.clone(),
            None => break,
        }
    }

    names.sort();
    names.dedup();
    assert_eq!(names.len(), 131);
}

#[tokio::test]
async fn the_history_knows_roles_analyses_and_templates() {
    let world = World::shop().await;

    let history = world.run("argo_history", json!({ "name": "search", "revision": 1 })).await.unwrap();
    let absent = world.run("argo_history", json!({ "name": "search", "revision": 7 })).await.unwrap_err();

    let lines = history["revisions"].as_array().unwrap();
    let told: Vec<(&Value, &Value)> = lines.iter().map(|line| (&line["revision"], &line["role"])).collect();
    assert_eq!(told, [(&json!(2), &json!("canary")), (&json!(1), &json!("stable"))]);
    assert!(lines[0]["analysis"][0].as_str().unwrap().ends_with(": Successful"), "{history}");
    let image = history.pointer("/template/spec/containers/0/image").unwrap().as_str().unwrap();
    assert!(image.ends_with("search:4.1.0"));
    assert!(!history["template"].to_string().contains("rollouts-pod-template-hash"));
    assert_eq!(
        (absent.code, absent.next.as_deref()),
        (kubernetes::codes::REVISION_NOT_FOUND, Some("choose from: 2, 1"))
    );
}

#[tokio::test]
async fn a_list_in_a_namespace_that_does_not_exist_says_so() {
    let world = World::shop().await;
    let refused = world.run("argo_get", json!({ "namespace": "shopp" })).await.unwrap_err();
    assert_eq!((refused.code, refused.did_you_mean), (Code::NotFound, vec!["shop".to_owned()]));
    let none = world.run("argo_get", json!({ "namespace": "platform" })).await.unwrap();
    assert_eq!(none["count"], 0);
}

#[tokio::test]
async fn a_cluster_without_argo_says_so_to_every_tool() {
    let world = World::with(Seed::shop().without_rollouts(), |_| {}).await;

    for (tool, args) in [
        ("argo_get", json!({})),
        ("argo_get", json!({ "kind": "experiment", "name": "x" })),
        ("argo_history", json!({ "name": "search" })),
        ("argo_rollout", json!({ "action": "promote", "name": "search" })),
        ("argo_analysis", json!({ "action": "terminate", "kind": "analysisrun", "name": "x" })),
    ] {
        let refused = world.run(tool, args).await.unwrap_err();
        assert_eq!(refused.code, kubernetes::codes::ARGO_NOT_INSTALLED, "{tool}: {refused}");
        assert!(refused.next.is_some_and(|next| next.contains("k8s_rollout")));
    }
}

#[tokio::test]
async fn nothing_is_seen_or_steered_outside_of_the_allow_list() {
    let world = World::with(Seed::shop(), |config| {
        config.namespaces = only(&["platform"]);
        config.default_namespace = "platform".to_owned();
    })
    .await;
    let before = world.writes();

    let everywhere = world.run("argo_get", json!({ "namespace": "*" })).await.unwrap();
    assert_eq!(everywhere["items"], json!([]));
    for (tool, args) in [
        ("argo_get", json!({ "namespace": "shop" })),
        ("argo_get", json!({ "namespace": "shop", "name": "search" })),
        ("argo_get", json!({ "namespace": "shop", "kind": "analysisrun", "rollout": "search" })),
        ("argo_history", json!({ "namespace": "shop", "name": "search" })),
        ("argo_rollout", json!({ "namespace": "shop", "name": "search", "action": "abort" })),
        ("argo_analysis", json!({ "namespace": "shop", "name": "x", "action": "terminate", "kind": "analysisrun" })),
    ] {
        assert_eq!(world.run(tool, args).await.unwrap_err().code, kubernetes::codes::NAMESPACE_DENIED, "{tool}");
    }
    assert_eq!(world.writes(), before);
    assert!(world.sandbox().requests().iter().all(|request| !request.contains("/namespaces/shop")));
}

#[tokio::test]
async fn what_contradicts_itself_is_refused() {
    let world = World::shop().await;
    for args in [
        json!({ "name": "search", "rollout": "search", "kind": "analysisrun" }),
        json!({ "rollout": "search" }),
        json!({ "rollout": "search", "kind": "analysisrun", "namespace": "*" }),
    ] {
        assert_eq!(world.run("argo_get", args.clone()).await.unwrap_err().code, Code::InvalidArgument, "{args}");
    }
}
