//! Server-side apply.

use k8s_openapi::api::apps::v1::Deployment;
use k8s_openapi::api::core::v1::ConfigMap;
use kube::api::{Patch, PatchParams};
use serde_json::{Value, json};

use super::support::{CONFIG_MAPS, Cluster, DEPLOYMENTS, config_map, deployment};

fn apply(manager: &str) -> PatchParams {
    PatchParams::apply(manager)
}

fn status(error: kube::Error) -> Box<kube::core::Status> {
    let kube::Error::Api(status) = error else { panic!("{error}") };
    status
}

#[tokio::test]
async fn an_applied_object_is_made_and_its_fields_belong_to_the_manager() {
    let cluster = Cluster::empty().await;
    let api = cluster.api::<Deployment>("shop");

    let made = api.patch("web", &apply("one"), &Patch::Apply(deployment("web", "app:1", 2))).await.unwrap();
    let again = api.patch("web", &apply("one"), &Patch::Apply(deployment("web", "app:1", 2))).await.unwrap();

    let entries = made.metadata.managed_fields.unwrap();
    let fields = serde_json::to_value(&entries[0].fields_v1).unwrap();
    assert_eq!((entries[0].manager.as_deref(), entries[0].operation.as_deref()), (Some("one"), Some("Apply")));
    assert_eq!(fields["f:spec"]["f:replicas"], json!({}));
    let containers = &fields["f:spec"]["f:template"]["f:spec"]["f:containers"];
    assert_eq!(containers["k:{\"name\":\"app\"}"]["f:image"], json!({}));
    assert_eq!(again.metadata.generation, Some(1));
}

#[tokio::test]
async fn a_field_of_another_manager_is_a_conflict_that_names_both_and_force_takes_it() {
    let cluster = Cluster::empty().await;
    let api = cluster.api::<Deployment>("shop");
    api.patch("web", &apply("one"), &Patch::Apply(deployment("web", "app:1", 2))).await.unwrap();
    let image = |tag: &str| {
        json!({
            "apiVersion": "apps/v1", "kind": "Deployment",
            "spec": { "template": { "spec": { "containers": [{ "name": "app", "image": tag }] } } },
        })
    };

    let refused = status(api.patch("web", &apply("two"), &Patch::Apply(image("app:2"))).await.unwrap_err());
    let shared = api.patch("web", &apply("two"), &Patch::Apply(image("app:1"))).await;
    let forced = api.patch("web", &apply("two").force(), &Patch::Apply(image("app:2"))).await.unwrap();
    let late = status(api.patch("web", &apply("one"), &Patch::Apply(deployment("web", "app:1", 2))).await.unwrap_err());

    assert_eq!((refused.code, refused.reason.as_str()), (409, "Conflict"));
    let path = ".spec.template.spec.containers[name=\"app\"].image";
    assert_eq!(refused.message, format!("Apply failed with 1 conflict: conflict with \"one\": {path}"));
    let cause = &refused.details.unwrap().causes[0];
    assert_eq!((cause.reason.as_str(), cause.field.as_str()), ("FieldManagerConflict", path));
    assert!(shared.is_ok(), "the same value may belong to two");
    let containers = &forced.spec.unwrap().template.spec.unwrap().containers;
    assert_eq!(containers[0].image.as_deref(), Some("app:2"));
    assert!(late.message.contains("conflict with \"two\""), "{}", late.message);
}

#[tokio::test]
async fn fields_changed_by_ordinary_writes_conflict_too() {
    let cluster = Cluster::empty().await;
    cluster
        .create(&format!("{CONFIG_MAPS}?fieldManager=maker"), &config_map("one", &json!({ "a": "1", "b": "1" })))
        .await;
    let api = cluster.api::<ConfigMap>("shop");

    let wanted = json!({ "apiVersion": "v1", "kind": "ConfigMap", "data": { "a": "2", "b": "2" } });
    let refused = status(api.patch("one", &apply("two"), &Patch::Apply(wanted)).await.unwrap_err());

    assert_eq!(
        refused.message,
        "Apply failed with 2 conflicts: conflicts with \"maker\" using v1:\n- .data.a\n- .data.b"
    );
}

#[tokio::test]
async fn what_a_manager_leaves_out_goes_unless_another_owns_it() {
    let cluster = Cluster::empty().await;
    let api = cluster.api::<ConfigMap>("shop");
    let intent = |data: Value| json!({ "apiVersion": "v1", "kind": "ConfigMap", "data": data });
    api.patch("one", &apply("one"), &Patch::Apply(intent(json!({ "a": "1", "b": "1", "c": "1" })))).await.unwrap();
    api.patch("one", &apply("two"), &Patch::Apply(intent(json!({ "b": "1" })))).await.unwrap();

    let left = api.patch("one", &apply("one"), &Patch::Apply(intent(json!({ "a": "1" })))).await.unwrap();

    let keys: Vec<String> = left.data.unwrap().into_keys().collect();
    assert_eq!(keys, ["a", "b"]);
}

#[tokio::test]
async fn an_undeclared_field_is_refused_by_the_typed_merge() {
    let cluster = Cluster::empty().await;
    let mut wrong = deployment("web", "app:1", 1);
    wrong["spec"]["replicsa"] = json!(3);

    let (code, refused) =
        cluster.patch(&format!("{DEPLOYMENTS}/web?fieldManager=one&fieldValidation=Strict"), "apply", &wrong).await;
    let (unnamed, why) = cluster.patch(&format!("{DEPLOYMENTS}/web"), "apply", &deployment("web", "app:1", 1)).await;

    assert_eq!(code, 500);
    assert_eq!(
        refused["message"],
        "failed to create typed patch object (shop/web; apps/v1, Kind=Deployment): .spec.replicsa: field not declared in schema"
    );
    assert_eq!((unnamed, why["details"]["causes"][0]["field"].as_str()), (422, Some("fieldManager")));
}

#[tokio::test]
async fn a_rehearsed_apply_shows_the_result_and_keeps_the_object() {
    let cluster = Cluster::empty().await;
    let api = cluster.api::<Deployment>("shop");
    api.patch("web", &apply("one"), &Patch::Apply(deployment("web", "app:1", 2))).await.unwrap();

    let shown = api.patch("web", &apply("one").dry_run(), &Patch::Apply(deployment("web", "app:9", 4))).await.unwrap();

    assert_eq!((shown.spec.unwrap().replicas, shown.metadata.generation), (Some(4), Some(2)));
    assert_eq!(api.get("web").await.unwrap().spec.unwrap().replicas, Some(2));
}
