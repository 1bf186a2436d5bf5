//! Create, replace, patch and delete.

use http::Method;
use k8s_openapi::api::apps::v1::{Deployment, ReplicaSet};
use k8s_openapi::api::core::v1::{ConfigMap, Pod};
use kube::api::{DeleteParams, ListParams, Patch, PatchParams, PostParams, Preconditions, PropagationPolicy};
use serde_json::{Value, json};

use super::support::{CONFIG_MAPS, Cluster, DEPLOYMENTS, config_map, deployment};

const JSON: &str = "application/json";

#[tokio::test]
async fn refusals_have_the_shape_and_words_of_the_real_server() {
    let cluster = Cluster::empty().await;
    cluster.create(CONFIG_MAPS, &config_map("one", &json!({}))).await;

    let (code, missing) = cluster.ask(Method::GET, &format!("{DEPLOYMENTS}/nobody"), None).await;
    assert_eq!((code, missing["reason"].as_str()), (404, Some("NotFound")));
    assert_eq!(missing["message"], "deployments.apps \"nobody\" not found");
    assert_eq!(missing["details"], json!({ "name": "nobody", "group": "apps", "kind": "deployments" }));

    let (code, twice) = cluster.ask(Method::POST, CONFIG_MAPS, Some((JSON, &config_map("one", &json!({}))))).await;
    assert_eq!((code, twice["reason"].as_str()), (409, Some("AlreadyExists")));
    assert_eq!(twice["message"], "configmaps \"one\" already exists");

    let (code, bad) = cluster.ask(Method::POST, CONFIG_MAPS, Some((JSON, &config_map("Not_Good", &json!({}))))).await;
    assert_eq!((code, bad["reason"].as_str()), (422, Some("Invalid")));
    assert!(bad["message"].as_str().unwrap().starts_with(
        "ConfigMap \"Not_Good\" is invalid: metadata.name: Invalid value: \"Not_Good\": a lowercase RFC 1123 subdomain"
    ));

    let nowhere = json!({ "apiVersion": "v1", "kind": "ConfigMap", "metadata": { "name": "x" } });
    let (code, no_room) =
        cluster.ask(Method::POST, "/api/v1/namespaces/nowhere/configmaps", Some((JSON, &nowhere))).await;
    assert_eq!((code, no_room["message"].as_str()), (404, Some("namespaces \"nowhere\" not found")));
}

#[tokio::test]
async fn a_write_that_names_an_old_version_is_refused() {
    let cluster = Cluster::empty().await;
    let api = cluster.api::<ConfigMap>("shop");
    cluster.create(CONFIG_MAPS, &config_map("one", &json!({ "a": "1" }))).await;
    let mut mine = api.get("one").await.unwrap();
    api.patch("one", &PatchParams::default(), &Patch::Merge(json!({ "data": { "a": "2" } }))).await.unwrap();

    mine.data.as_mut().unwrap().insert("b".into(), "3".into());
    let refused = api.replace("one", &PostParams::default(), &mine).await.unwrap_err();

    let kube::Error::Api(status) = refused else { panic!("{refused}") };
    assert_eq!((status.code, status.reason.as_str()), (409, "Conflict"));
    assert_eq!(
        status.message,
        "Operation cannot be fulfilled on configmaps \"one\": the object has been modified; please apply your changes to the latest version and try again"
    );
}

#[tokio::test]
async fn a_rehearsal_answers_like_the_write_and_changes_nothing() {
    let cluster = Cluster::empty().await;
    cluster.create(DEPLOYMENTS, &deployment("web", "app:1", 1)).await;
    let before = cluster.sandbox.writes();
    let dry = |path: &str| format!("{path}?dryRun=All");

    let (_, made) = cluster.ask(Method::POST, &dry(CONFIG_MAPS), Some((JSON, &config_map("ghost", &json!({}))))).await;
    let (_, scaled) =
        cluster.patch(&dry(&format!("{DEPLOYMENTS}/web/scale")), "merge", &json!({ "spec": { "replicas": 7 } })).await;
    let (_, changed) =
        cluster.patch(&dry(&format!("{DEPLOYMENTS}/web")), "merge", &json!({ "spec": { "replicas": 5 } })).await;
    let (deleted, _) = cluster.ask(Method::DELETE, &dry(&format!("{DEPLOYMENTS}/web")), None).await;

    assert!(made["metadata"]["uid"].is_string());
    assert_eq!(
        (scaled["spec"]["replicas"].as_i64(), changed["spec"]["replicas"].as_i64(), deleted),
        (Some(7), Some(5), 200)
    );
    let (ghost, _) = cluster.ask(Method::GET, &format!("{CONFIG_MAPS}/ghost"), None).await;
    assert_eq!((ghost, cluster.get(&format!("{DEPLOYMENTS}/web")).await["spec"]["replicas"].as_i64()), (404, Some(1)));
    assert_eq!(cluster.sandbox.writes(), before);
}

#[tokio::test]
async fn generation_counts_what_is_wanted_and_the_controller_says_what_it_saw() {
    let cluster = Cluster::empty().await;
    let made = cluster.deployed("web", 1).await;
    let api = cluster.api::<Deployment>("shop");
    assert_eq!(made.metadata.generation, Some(1));

    let labelled = api
        .patch("web", &PatchParams::default(), &Patch::Merge(json!({ "metadata": { "labels": { "a": "b" } } })))
        .await
        .unwrap();
    let scaled =
        api.patch("web", &PatchParams::default(), &Patch::Merge(json!({ "spec": { "replicas": 2 } }))).await.unwrap();

    assert_eq!((labelled.metadata.generation, scaled.metadata.generation), (Some(1), Some(2)));
    cluster
        .until(&api, "web", |one| one.status.as_ref().and_then(|status| status.observed_generation) == Some(2))
        .await;
}

#[tokio::test]
async fn each_patch_form_changes_in_its_own_way() {
    let cluster = Cluster::empty().await;
    cluster.create(DEPLOYMENTS, &deployment("web", "app:1", 1)).await;
    let path = format!("{DEPLOYMENTS}/web");
    let containers = |object: &Value| object["spec"]["template"]["spec"]["containers"].clone();

    let env = json!({ "spec": { "template": { "spec": { "containers": [{ "name": "app", "env": [{ "name": "A", "value": "1" }] }] } } } });
    let (code, strategic) = cluster.patch(&path, "strategic-merge", &env).await;
    assert_eq!((code, containers(&strategic)[0]["image"].as_str()), (200, Some("app:1")));
    assert_eq!(containers(&strategic)[0]["env"], json!([{ "name": "A", "value": "1" }]));

    let test = json!([
        { "op": "test", "path": "/spec/replicas", "value": 1 },
        { "op": "replace", "path": "/spec/template/spec/containers/0/image", "value": "app:2" },
    ]);
    let (code, by_json) = cluster.patch(&path, "json", &test).await;
    assert_eq!((code, containers(&by_json)[0]["image"].as_str()), (200, Some("app:2")));
    let (code, refused) =
        cluster.patch(&path, "json", &json!([{ "op": "test", "path": "/spec/replicas", "value": 9 }])).await;
    assert_eq!((code, refused["reason"].as_str()), (422, Some("Invalid")));

    let whole =
        json!({ "spec": { "template": { "spec": { "containers": [{ "name": "other", "image": "other:1" }] } } } });
    let (_, merged) = cluster.patch(&path, "merge", &whole).await;
    assert_eq!(containers(&merged).as_array().unwrap().len(), 1);
    assert_eq!(containers(&merged)[0]["name"], "other");
}

#[tokio::test]
async fn unknown_fields_are_refused_when_strict_and_dropped_with_a_warning_otherwise() {
    let cluster = Cluster::empty().await;
    let mut wrong = deployment("web", "app:1", 1);
    wrong["spec"]["template"]["spec"]["containers"][0]["imag"] = json!("typo");

    let (code, refused) =
        cluster.ask(Method::POST, &format!("{DEPLOYMENTS}?fieldValidation=Strict"), Some((JSON, &wrong))).await;
    let (kept, headers, text) = cluster.ask_whole(Method::POST, DEPLOYMENTS, Some((JSON, &wrong)), &[]).await;

    assert_eq!(code, 400);
    assert_eq!(
        refused["message"],
        "Deployment in version \"v1\" cannot be handled as a Deployment: strict decoding error: unknown field \"spec.template.spec.containers[0].imag\""
    );
    assert_eq!(kept, 201);
    assert!(headers["warning"].to_str().unwrap().contains("unknown field"));
    assert!(!text.contains("typo"));
    let mut shape = deployment("shape", "app:1", 1);
    shape["spec"]["replicas"] = json!("three");
    let (code, refused) = cluster.ask(Method::POST, DEPLOYMENTS, Some((JSON, &shape))).await;
    assert_eq!((code, refused["reason"].as_str()), (400, Some("BadRequest")));
}

#[tokio::test]
async fn what_is_fixed_stays() {
    let cluster = Cluster::empty().await;
    cluster.create(DEPLOYMENTS, &deployment("web", "app:1", 1)).await;
    let service = json!({
        "apiVersion": "v1", "kind": "Service", "metadata": { "name": "web", "namespace": "shop" },
        "spec": { "selector": { "app": "web" }, "ports": [{ "port": 80, "targetPort": "http" }] },
    });
    let services = "/api/v1/namespaces/shop/services";
    let made = cluster.create(services, &service).await;

    let selector = json!({ "spec": { "selector": { "matchLabels": { "app": "other" } }, "template": { "metadata": { "labels": { "app": "other" } } } } });
    let (code, refused) = cluster.patch(&format!("{DEPLOYMENTS}/web"), "merge", &selector).await;
    assert_eq!((code, refused["reason"].as_str()), (422, Some("Invalid")));
    assert_eq!(refused["details"]["causes"][0]["field"], "spec.selector");
    assert!(refused["message"].as_str().unwrap().ends_with("field is immutable"));

    assert!(made["spec"]["clusterIP"].as_str().unwrap().starts_with("10.96."));
    let (code, refused) =
        cluster.patch(&format!("{services}/web"), "merge", &json!({ "spec": { "clusterIP": "10.96.9.9" } })).await;
    assert_eq!((code, refused["details"]["causes"][0]["field"].as_str()), (422, Some("spec.clusterIPs[0]")));

    let frozen = json!({ "apiVersion": "v1", "kind": "ConfigMap", "metadata": { "name": "ice" }, "immutable": true, "data": { "a": "1" } });
    cluster.create(CONFIG_MAPS, &frozen).await;
    let (code, _) = cluster.patch(&format!("{CONFIG_MAPS}/ice"), "merge", &json!({ "data": { "a": "2" } })).await;
    assert_eq!(code, 422);
}

#[tokio::test]
async fn deletion_keeps_its_preconditions_and_waits_for_finalizers() {
    let cluster = Cluster::empty().await;
    let api = cluster.api::<ConfigMap>("shop");
    let mut held = config_map("held", &json!({}));
    held["metadata"]["finalizers"] = json!(["example.com/hold"]);
    cluster.create(CONFIG_MAPS, &held).await;

    let other = Preconditions { uid: Some("not-this-one".into()), resource_version: None };
    let refused =
        api.delete("held", &DeleteParams { preconditions: Some(other), ..Default::default() }).await.unwrap_err();
    let kube::Error::Api(status) = refused else { panic!("{refused}") };
    assert!(status.code == 409 && status.message.contains("Precondition failed: UID in precondition: not-this-one"));

    api.delete("held", &DeleteParams::default()).await.unwrap();
    assert!(api.get("held").await.unwrap().metadata.deletion_timestamp.is_some());
    api.patch("held", &PatchParams::default(), &Patch::Merge(json!({ "metadata": { "finalizers": null } })))
        .await
        .unwrap();
    assert!(api.get_opt("held").await.unwrap().is_none());

    for name in ["a", "b"] {
        cluster.create(CONFIG_MAPS, &config_map(name, &json!({}))).await;
    }
    api.delete_collection(&DeleteParams::default(), &ListParams::default().fields("metadata.name!=b")).await.unwrap();
    assert!(api.get_opt("a").await.unwrap().is_none() && api.get_opt("b").await.unwrap().is_some());
}

#[tokio::test]
async fn dependents_follow_their_owner_or_are_set_free() {
    let cluster = Cluster::empty().await;
    cluster.deployed("web", 1).await;
    cluster.deployed("kept", 1).await;
    let deployments = cluster.api::<Deployment>("shop");
    let sets = cluster.api::<ReplicaSet>("shop");
    let of = |app: &str| ListParams::default().labels(&format!("app={app}"));

    let foreground = DeleteParams { propagation_policy: Some(PropagationPolicy::Foreground), ..Default::default() };
    let going = deployments.delete("web", &foreground).await.unwrap().left().unwrap();
    assert_eq!(going.metadata.finalizers.unwrap(), ["foregroundDeletion"]);
    cluster
        .until_path("/apis/apps/v1/namespaces/shop/deployments?fieldSelector=metadata.name%3Dweb", |list| {
            list["items"].as_array().is_some_and(Vec::is_empty)
        })
        .await;
    assert!(sets.list(&of("web")).await.unwrap().items.is_empty());

    let orphan = DeleteParams { propagation_policy: Some(PropagationPolicy::Orphan), ..Default::default() };
    deployments.delete("kept", &orphan).await.unwrap();
    let left = sets.list(&of("kept")).await.unwrap().items;
    assert_eq!(left.len(), 1);
    assert!(left[0].metadata.owner_references.clone().unwrap_or_default().is_empty());
    assert_eq!(cluster.api::<Pod>("shop").list(&of("kept")).await.unwrap().items.len(), 1);
}

#[tokio::test]
async fn a_namespace_goes_with_everything_in_it() {
    let cluster = Cluster::empty().await;
    cluster.deployed("web", 2).await;

    let (code, going) = cluster.ask(Method::DELETE, "/api/v1/namespaces/shop", None).await;
    let (refused, why) = cluster.ask(Method::POST, CONFIG_MAPS, Some((JSON, &config_map("late", &json!({}))))).await;

    assert_eq!((code, going["status"]["phase"].as_str()), (200, Some("Terminating")));
    assert!(refused == 403 || refused == 404, "{why}");
    cluster.until_path("/api/v1/namespaces/shop", |answer| answer["code"] == 404).await;
    assert!(!cluster.namespaces().await.contains(&"shop".to_owned()));
}

#[tokio::test]
async fn status_and_scale_are_doors_of_their_own() {
    let cluster = Cluster::empty().await;
    let api = cluster.api::<Deployment>("shop");
    cluster.deployed("web", 1).await;

    let scale = api.get_scale("web").await.unwrap();
    assert_eq!((scale.spec.unwrap().replicas, scale.status.unwrap().selector.as_deref()), (Some(1), Some("app=web")));
    let scaled = api
        .patch_scale("web", &PatchParams::default(), &Patch::Merge(json!({ "spec": { "replicas": 3 } })))
        .await
        .unwrap();
    assert_eq!(scaled.spec.unwrap().replicas, Some(3));
    cluster.until(&api, "web", |one| one.status.as_ref().and_then(|status| status.ready_replicas) == Some(3)).await;

    let stale = json!({ "metadata": { "resourceVersion": "1" }, "spec": { "replicas": 9 } });
    let (code, _) = cluster.patch(&format!("{DEPLOYMENTS}/web/scale"), "merge", &stale).await;
    assert_eq!(code, 409);
    let (_, through_main) =
        cluster.patch(&format!("{DEPLOYMENTS}/web"), "merge", &json!({ "status": { "replicas": 99 } })).await;
    assert_ne!(through_main["status"]["replicas"], 99);
    let status =
        json!({ "spec": { "replicas": 50 }, "status": { "conditions": [{ "type": "Custom", "status": "True" }] } });
    let (_, through_status) = cluster.patch(&format!("{DEPLOYMENTS}/web/status"), "merge", &status).await;
    assert_eq!(through_status["spec"]["replicas"], 3);
    assert_eq!(through_status["status"]["conditions"][0]["type"], "Custom");
}
