//! `helm_show`: what a chart says of itself.

use crate::charts::archives::{chart, sha256};
use crate::charts::server::Answer;
use crate::charts::world::World;
use domain::Code;
use serde_json::json;

#[tokio::test]
async fn values_docs_metadata_and_crds_are_shown() {
    let world = World::new().await;
    let archive = world.publish(
        "web",
        "1.2.0",
        &[
            ("values.yaml", "replicas: 1 # how many\n"),
            ("README.md", "# Web\n"),
            ("crds/a.yaml", "kind: CustomResourceDefinition\n"),
        ],
    );
    let show = |show: &'static str| world.call("helm_show", json!({ "chart": "stable/web", "show": show }));

    let values = world.call("helm_show", json!({ "chart": "stable/web" })).await.unwrap();
    assert_eq!((&values["text"], &values["version"]), (&json!("replicas: 1 # how many\n"), &json!("1.2.0")));
    assert_eq!(values["digest"], format!("sha256:{}", sha256(&archive)));
    assert_eq!(values["untrusted"], true);
    assert_eq!(show("readme").await.unwrap()["text"], "# Web\n");
    assert_eq!(show("crds").await.unwrap()["text"], "---\n# crds/a.yaml\nkind: CustomResourceDefinition\n");
    assert_eq!(show("chart").await.unwrap()["metadata"]["appVersion"], "7.0");
}

#[tokio::test]
async fn an_archive_is_fetched_once_and_a_damaged_one_again() {
    let world = World::new().await;
    let archive = world.publish("web", "1.2.0", &[("values.yaml", "a: 1\n")]);
    let fetched = || world.server.paths().iter().filter(|path| path.ends_with(".tgz")).count();
    for _ in 0..3 {
        world.call("helm_show", json!({ "chart": "stable/web" })).await.unwrap();
    }
    assert_eq!(fetched(), 1);

    let file = world.folder.path().join(format!("charts/acme/{}.tgz", sha256(&archive)));
    std::fs::write(&file, b"changed by somebody").unwrap();
    let answer = world.call("helm_show", json!({ "chart": "stable/web" })).await.unwrap();
    assert_eq!((answer["text"].as_str(), fetched()), (Some("a: 1\n"), 2));
    assert_eq!(std::fs::read(file).unwrap(), archive);
}

#[tokio::test]
async fn a_long_text_goes_on_with_the_same_archive() {
    let world = World::new().await;
    let long: String = (0..5_000).map(|n| format!("key{n}: value\n")).collect();
    world.publish("web", "1.2.0", &[("values.yaml", &long)]);
    let mut args = json!({ "chart": "stable/web", "version": "1.x" });
    let first = world.call("helm_show", args.clone()).await.unwrap();
    assert!(first["truncated"] == true && first["omitted"]["lines"].as_u64().unwrap() > 1_000);
    args["cursor"] = first["next_cursor"].clone();

    // A newer version appears meanwhile; the cursor stays with the one it was given for.
    let newer = chart("web", "1.3.0", &[("values.yaml", "other: true\n")]);
    world.server.put("/stable/web-1.3.0.tgz", Answer::ok(newer));
    world.index("  web:\n  - {version: 1.3.0, urls: [web-1.3.0.tgz]}\n  - {version: 1.2.0, urls: [web-1.2.0.tgz]}\n");
    world.call("helm_search", json!({ "query": "web", "refresh": true })).await.unwrap();
    let mut whole = first["text"].as_str().unwrap().to_owned();
    loop {
        let next = world.call("helm_show", args.clone()).await.unwrap();
        assert_eq!(next["version"], "1.2.0");
        whole.push_str(next["text"].as_str().unwrap());
        match next["next_cursor"].as_str() {
            Some(cursor) => args["cursor"] = json!(cursor),
            None => break,
        }
    }
    assert_eq!(whole, long);

    // The same version with other bytes is not what was being read.
    args["cursor"] = first["next_cursor"].clone();
    world.server.put("/stable/web-1.2.0.tgz", Answer::ok(chart("web", "1.2.0", &[("values.yaml", "x: y\n")])));
    assert_eq!(world.refused("helm_show", args.clone()).await.code, target::codes::CURSOR_EXPIRED);
    world.later.store(601, std::sync::atomic::Ordering::Relaxed);
    assert_eq!(world.refused("helm_show", args).await.code, target::codes::CURSOR_EXPIRED);
}

#[tokio::test]
async fn secrets_in_defaults_are_masked_and_controls_dropped() {
    let world = World::new().await;
    let key = "-----BEGIN PRIVATE KEY-----\nMIIcanary\n-----END PRIVATE KEY-----";
    world.publish(
        "web",
        "1.0.0",
        &[("values.yaml", &format!("token: ghp_{}\n{key}\n\u{1b}[31mred\n", "a1B2".repeat(9)))],
    );

    let answer = world.call("helm_show", json!({ "chart": "stable/web" })).await.unwrap();

    let text = answer["text"].as_str().unwrap();
    assert!(!text.contains("ghp_a1B2") && !text.contains("MIIcanary") && !text.contains('\u{1b}'), "{text}");
}

#[tokio::test]
async fn what_is_not_there_is_told_with_what_is() {
    let world = World::new().await;
    world.publish("website", "1.2.0", &[]);

    let chart = world.refused("helm_show", json!({ "chart": "stable/websit" })).await;
    assert_eq!((chart.code, chart.did_you_mean), (helm::codes::CHART_NOT_FOUND, vec!["website".to_owned()]));
    let version = world.refused("helm_show", json!({ "chart": "stable/website", "version": "^2" })).await;
    assert_eq!((version.code, version.did_you_mean), (helm::codes::VERSION_NOT_FOUND, vec!["1.2.0".to_owned()]));
    let repository = world.refused("helm_show", json!({ "chart": "stabel/website" })).await;
    assert_eq!((repository.code, repository.did_you_mean), (Code::NotFound, vec!["stable".to_owned()]));
    let registry = world.refused("helm_show", json!({ "chart": "oci://registry.example/web" })).await;
    assert_eq!(registry.code, target::codes::HOST_DENIED);
}
