//! What the tenant's policy lets workloads be, whoever approves.

use super::world::World;
use kubernetes::client::{ImagePattern, WorkloadBounds};
use kubernetes::codes::{IMAGE_DENIED, REPLICAS_DENIED};
use serde_json::{Value, json};

async fn bounded() -> World {
    let images = ["ghcr.io/acme/*", "registry.example/shop/*"].map(|text| ImagePattern::parse(text).unwrap());
    World::with(|config| {
        config.bounds = WorkloadBounds { images: Some(images.to_vec()), most_replicas: Some(5) };
    })
    .await
}

fn deployment(image: &str, replicas: u32) -> Value {
    let manifest = json!({
        "apiVersion": "apps/v1", "kind": "Deployment", "metadata": { "name": "new" },
        "spec": { "replicas": replicas, "selector": { "matchLabels": { "app": "new" } },
            "template": { "metadata": { "labels": { "app": "new" } },
                "spec": { "containers": [{ "name": "new", "image": image }] } } },
    });
    json!({ "manifest": manifest.to_string() })
}

#[tokio::test]
async fn images_and_replicas_beyond_the_tenants_bounds_are_refused_before_anybody_is_asked() {
    let world = bounded().await;
    let patch =
        |patch: Value| json!({ "kind": "Deployment", "name": "new", "type": "strategic", "patch": patch.to_string() });
    let image = |image: &str| json!({ "spec": { "template": { "spec": { "containers": [{ "name": "new", "image": image }] } } } });
    assert!(world.preview("k8s_apply", deployment("ghcr.io/acme/new:1", 5)).await.is_ok());
    world.run("k8s_apply", deployment("ghcr.io/acme/new:1", 5)).await.unwrap();
    assert!(world.preview("k8s_patch", patch(image("ghcr.io/acme/new:2"))).await.is_ok());
    let json_patch =
        json!([{ "op": "replace", "path": "/spec/template/spec/containers/0/image", "value": "evil.io/x" }]);
    for (tool, args, code) in [
        ("k8s_apply", deployment("evil.io/acme/new:1", 1), IMAGE_DENIED),
        ("k8s_apply", deployment("ghcr.io/acme/new:1", 6), REPLICAS_DENIED),
        ("k8s_patch", patch(image("evil.io/x")), IMAGE_DENIED),
        (
            "k8s_patch",
            json!({ "kind": "Deployment", "name": "new", "type": "json", "patch": json_patch.to_string() }),
            IMAGE_DENIED,
        ),
        ("k8s_patch", patch(json!({ "spec": { "replicas": 6 } })), REPLICAS_DENIED),
        ("k8s_scale", json!({ "kind": "Deployment", "name": "new", "replicas": 6 }), REPLICAS_DENIED),
        (
            "k8s_rollout",
            json!({ "kind": "Deployment", "name": "new", "action": "set_image", "images": { "new": "evil.io/x" } }),
            IMAGE_DENIED,
        ),
    ] {
        let failure = world.preview(tool, args.clone()).await.expect_err("it is refused");
        assert_eq!(failure.code, code, "{tool} {args}: {failure:?}");
    }
    // What is sent whole is judged once more when it is sent.
    assert_eq!(world.run("k8s_apply", deployment("evil.io/x", 1)).await.unwrap_err().code, IMAGE_DENIED);
    assert_eq!(
        world.get("Deployment", "new").await["spec"]["template"]["spec"]["containers"][0]["image"],
        "ghcr.io/acme/new:1"
    );
}
