//! What a tenant may not reach with a chart, whatever the chart renders.

use crate::releases::world::World;
use kubernetes::client::{ImagePattern, Impersonation, NamespacePattern, WorkloadBounds};
use serde_json::{Value, json};

fn install(values: Value) -> Value {
    json!({ "release": "shop", "chart": "stable/web", "values": values })
}

#[tokio::test]
async fn objects_outside_the_allowed_namespaces_are_refused_before_anybody_is_asked() {
    let Some(world) = World::fenced().await else { return };
    let fine = world.preview("helm_install", install(json!({}))).await;
    assert!(fine.is_ok(), "{fine:?}");

    let elsewhere = world.preview("helm_install", install(json!({ "elsewhere": "default" }))).await.unwrap_err();
    assert_eq!(elsewhere.code, kubernetes::codes::NAMESPACE_DENIED);
    assert!(elsewhere.message.contains("shop-config"), "{elsewhere}");
    let wide = world.preview("helm_install", install(json!({ "role": true }))).await.unwrap_err();
    assert_eq!(wide.code, kubernetes::codes::NAMESPACE_DENIED);
    let other = json!({ "release": "shop", "chart": "stable/web", "namespace": "default" });
    assert_eq!(world.preview("helm_install", other).await.unwrap_err().code, kubernetes::codes::NAMESPACE_DENIED);
    assert_eq!(
        world.run("helm_list", json!({ "namespace": "default" })).await.unwrap_err().code,
        kubernetes::codes::NAMESPACE_DENIED
    );
    assert!(world.run("helm_list", json!({ "namespace": "*" })).await.is_ok());
}

#[tokio::test]
async fn nothing_is_changed_in_a_protected_namespace() {
    let Some(world) =
        World::with(|config, namespace| config.protected = vec![NamespacePattern::parse(namespace).unwrap()]).await
    else {
        return;
    };
    for (tool, args) in [
        ("helm_install", install(json!({}))),
        ("helm_upgrade", install(json!({}))),
        ("helm_rollback", json!({ "release": "shop" })),
        ("helm_uninstall", json!({ "release": "shop" })),
        ("helm_recover", json!({ "release": "shop" })),
        ("helm_test", json!({ "release": "shop" })),
    ] {
        assert_eq!(world.preview(tool, args.clone()).await.unwrap_err().code, kubernetes::codes::PROTECTED, "{tool}");
        assert_eq!(world.run(tool, args).await.unwrap_err().code, kubernetes::codes::PROTECTED, "{tool}");
    }
    let reaching = json!({ "release": "shop", "chart": "stable/web", "namespace": "default", "values": { "elsewhere": "kube-system" } });
    assert_eq!(world.preview("helm_install", reaching).await.unwrap_err().code, kubernetes::codes::PROTECTED);
}

#[tokio::test]
async fn a_chart_brings_no_image_and_no_replicas_beyond_the_tenants_bounds() {
    let images = vec![ImagePattern::parse("registry.example/*").unwrap()];
    let bounds = WorkloadBounds { images: Some(images), most_replicas: Some(3) };
    let Some(world) = World::with(|config, _| config.bounds = bounds).await else { return };
    let fine = world.preview("helm_install", install(json!({ "replicas": 3 }))).await;
    assert!(fine.is_ok(), "{fine:?}");
    for (values, code) in [
        (json!({ "image": "evil.example/web:1.0" }), kubernetes::codes::IMAGE_DENIED),
        (json!({ "replicas": 4 }), kubernetes::codes::REPLICAS_DENIED),
    ] {
        let refused = world.preview("helm_install", install(values)).await.unwrap_err();
        assert_eq!(refused.code, code);
        assert!(refused.message.contains("Deployment shop-web"), "{refused}");
    }
}

#[tokio::test]
async fn what_reaches_further_is_a_warning_to_whoever_signs() {
    let Some(world) = World::new().await else { return };
    let drawn = world.preview("helm_install", install(json!({ "role": true, "privileged": true }))).await.unwrap();
    assert_eq!(drawn.warnings[0], "Deployment shop-web: container web would be privileged.", "the dangers stand first");
    assert!(
        drawn.warnings.iter().any(|w| w.contains("whole cluster") && w.contains("ClusterRole shop-role")),
        "{:?}",
        drawn.warnings
    );
    assert!(
        drawn.warnings.iter().any(|w| w.contains("privileged") && w.contains("Deployment shop-web")),
        "{:?}",
        drawn.warnings
    );

    world
        .run(
            "helm_install",
            json!({ "release": "shop", "chart": "stable/web", "values": { "greeting": "hi" }, "timeout_s": 60 }),
        )
        .await
        .unwrap();
    let reset = json!({ "release": "shop", "chart": "stable/web", "keep_values": "reset" });
    let drawn = world.preview("helm_upgrade", reset).await.unwrap();
    assert!(drawn.warnings.iter().any(|w| w.contains("would be lost: greeting")), "{:?}", drawn.warnings);
}

/// A definition with a converter, in a folder that helm makes without rendering it.
const DEFINITION: &str = "apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: { name: things.example.com }
spec:
  group: example.com
  scope: Namespaced
  names: { kind: Thing, plural: things }
  conversion: { strategy: Webhook, webhook: { conversionReviewVersions: [v1], clientConfig: { url: 'https://evil.example/convert' } } }
  versions: [{ name: v1, served: true, storage: true, schema: { openAPIV3Schema: { type: object } } }]
";

/// Something else in that folder.
const POD: &str = "apiVersion: v1
kind: Pod
metadata: { name: stowaway }
spec: { containers: [{ name: a, image: evil.example/a, securityContext: { privileged: true } }] }
";

#[tokio::test]
async fn what_stands_in_a_crds_folder_is_shown_and_judged_like_the_rest() {
    let Some(world) = World::new().await else { return };
    let head = "apiVersion: v2\nname: sub\nversion: 1.0.0\n";
    let files: &[(&str, &str)] =
        &[("crds/a.yaml", DEFINITION), ("charts/sub/Chart.yaml", head), ("charts/sub/crds/B.YAML", POD)];
    world.publish_with(&[("1.0.0", files)]);

    let drawn = world.preview("helm_install", install(json!({}))).await.unwrap();

    for part in
        ["create CustomResourceDefinition things.example.com", "https://evil.example/convert", "create Pod stowaway"]
    {
        assert!(drawn.text.contains(part), "{part} in {}", drawn.text);
    }
    assert_eq!(
        drawn.warnings[..2],
        [
            "CustomResourceDefinition things.example.com: objects of this kind would be converted by a webhook."
                .to_owned(),
            "Pod stowaway: container a would be privileged.".to_owned(),
        ],
    );

    let images = vec![ImagePattern::parse("registry.example/*").unwrap()];
    let bounds = WorkloadBounds { images: Some(images), most_replicas: None };
    let Some(bounded) = World::with(|config, _| config.bounds = bounds).await else { return };
    bounded.publish_with(&[("1.0.0", files)]);
    let refused = bounded.preview("helm_install", install(json!({}))).await.unwrap_err();
    assert_eq!(refused.code, kubernetes::codes::IMAGE_DENIED, "{refused}");

    let Some(fenced) = World::fenced().await else { return };
    fenced.publish_with(&[("1.0.0", &[("charts/sub/Chart.yaml", head), ("charts/sub/crds/a.yaml", DEFINITION)])]);
    let refused = fenced.preview("helm_install", install(json!({}))).await.unwrap_err();
    assert_eq!(refused.code, kubernetes::codes::NAMESPACE_DENIED, "{refused}");
}

#[tokio::test]
async fn ci8_helm_acts_as_whom_the_tenant_acts_and_nobody_else() {
    let who = Impersonation { user: "stranger".to_owned(), groups: vec!["visitors".to_owned()] };
    let Some(world) = World::with(|config, _| config.impersonate = Some(who)).await else { return };
    let failure = world.run("helm_list", json!({})).await.unwrap_err();
    assert_eq!(failure.code, target::codes::FORBIDDEN, "{failure:?}");
    assert!(failure.details.unwrap()["message"].as_str().unwrap().contains("stranger"));
}
