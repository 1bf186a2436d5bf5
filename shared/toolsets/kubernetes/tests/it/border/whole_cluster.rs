//! The same handles against a simulated cluster that keeps objects, moves workloads and runs commands.

use crate::border::support::*;
use domain::Code;
use kubernetes::client::{
    AccessReview, ClusterConfig, ClusterEndpoint, Clusters, DeleteCascade, DeleteOptions, Force, ListQuery, LogQuery,
    MaskDetail, MetricsSubject, ObjectPatch, PodCommand, SecretText, marker,
};
use sandbox::{Sandbox, Seed};
use serde_json::{Value, json};
use std::time::Duration;

async fn shop() -> (Sandbox, Clusters) {
    let sandbox = Sandbox::start(Seed::shop()).await.unwrap();
    let source = ClusterEndpoint::KubeconfigText(SecretText::new(sandbox.kubeconfig()));
    let config =
        ClusterConfig { default_namespace: "shop".into(), simulated: true, ..ClusterConfig::new("main", source) };
    (sandbox, clusters_of(vec![config]))
}

#[tokio::test]
async fn everything_can_be_looked_at() {
    let (sandbox, clusters) = shop().await;
    let permit = reading();
    let cluster = clusters.of(&permit, None).unwrap();
    assert!(cluster.simulated());
    assert!(cluster.version().await.unwrap()["gitVersion"].as_str().unwrap().starts_with("v1."));
    assert!(cluster.ready().await.unwrap().healthy);
    assert!(cluster.kinds().await.unwrap().len() > 20);

    let deployments = place(&cluster, "deploy", None).await;
    let page =
        cluster.list(&deployments, &ListQuery { limit: 1, ..ListQuery::default() }, MaskDetail::Clean).await.unwrap();
    assert_eq!((page.items.len(), page.items[0]["kind"].as_str()), (1, Some("Deployment")));
    let next = ListQuery { cursor: page.cursor, ..ListQuery::default() };
    let rest = cluster.list(&deployments, &next, MaskDetail::Clean).await.unwrap();
    assert!(rest.items.iter().all(|item| item["metadata"]["name"] != page.items[0]["metadata"]["name"]));
    let table = cluster.table(&deployments, &ListQuery::default()).await.unwrap();
    assert!(table.columns.contains(&"Ready".to_owned()) && table.rows.iter().any(|row| row.name == "frontend"));

    let frontend = target(&cluster, "Deployment", "frontend").await;
    let object = cluster.get(&frontend, MaskDetail::Clean).await.unwrap();
    assert!(object["metadata"]["managedFields"].is_null());
    cluster.events_of(&frontend, object["metadata"]["uid"].as_str().unwrap()).await.unwrap();
    assert!(cluster.scale_of(&frontend).await.unwrap()["spec"]["replicas"].is_u64());
    let secret = cluster.get(&target(&cluster, "Secret", "payment-provider").await, MaskDetail::Full).await.unwrap();
    assert!(secret["data"].as_object().unwrap().values().all(|value| value.as_str().unwrap().starts_with("masked:")));

    let kind = cluster.kind("Deployment").await.unwrap();
    assert!(cluster.openapi(&kind).await.unwrap()["components"].is_object());
    let deed =
        AccessReview { verb: "patch".into(), kind, subresource: None, namespace: Some("shop".into()), name: None };
    assert!(cluster.may(&deed).await.unwrap().allowed);
    assert!(cluster.rules(None).await.unwrap()["resourceRules"].is_array());
    let measured = cluster.metrics(MetricsSubject::Pods).await.unwrap();
    let at = cluster.place(&measured, Some("*"), kubernetes::client::Wildcard::Allowed).await.unwrap();
    assert!(!cluster.list(&at, &ListQuery::default(), MaskDetail::Clean).await.unwrap().items.is_empty());
    assert!(sandbox.writes().is_empty(), "looking changes nothing: {:?}", sandbox.writes());
}

#[tokio::test]
async fn a_rehearsal_shows_the_change_and_leaves_the_cluster_as_it_was() {
    let (sandbox, clusters) = shop().await;
    let permit = rehearsing();
    let cluster = clusters.of(&permit, None).unwrap();
    let frontend = target(&cluster, "Deployment", "frontend").await;
    let writer = cluster.write().unwrap();
    let before = cluster.get(&frontend, MaskDetail::Clean).await.unwrap();

    let would =
        writer.apply(&frontend, json!({ "metadata": { "labels": { "tier": "web" } } }), Force::No).await.unwrap();
    assert_eq!(would.object["metadata"]["labels"]["tier"], "web");
    let patch = ObjectPatch::Merge(json!({ "spec": { "paused": true } }).into());
    assert_eq!(writer.patch(&frontend, patch, None).await.unwrap().object["spec"]["paused"], true);
    writer.set_scale(&frontend, 0, None).await.unwrap();
    let deletion = DeleteOptions { uid: None, cascade: DeleteCascade::Background, grace_s: None };
    writer.delete(&frontend, &deletion).await.unwrap();

    let after = cluster.get(&frontend, MaskDetail::Clean).await.unwrap();
    assert_eq!((&after["spec"], &after["metadata"]["labels"]), (&before["spec"], &before["metadata"]["labels"]));
    assert!(sandbox.writes().is_empty(), "{:?}", sandbox.writes());
}

#[tokio::test]
async fn an_approved_change_is_made_marked_seen_and_undone() {
    let (sandbox, clusters) = shop().await;
    let permit = acting();
    let cluster = clusters.of(&permit, None).unwrap();
    let writer = cluster.write().unwrap();
    let config = target(&cluster, "ConfigMap", "made-here").await;

    let made = writer.apply(&config, json!({ "data": { "a": "1" } }), Force::No).await.unwrap();
    assert!(made.created);
    assert!(marker::carries(&cluster.get(&config, MaskDetail::Full).await.unwrap(), run()));
    let version = made.object["metadata"]["resourceVersion"].as_str().unwrap();
    let patch = |value: &str| ObjectPatch::Merge(json!({ "data": { "a": value } }).into());
    writer.patch(&config, patch("2"), Some(version)).await.unwrap();
    assert_eq!(writer.patch(&config, patch("3"), Some(version)).await.unwrap_err().code, Code::Conflict);
    let stale = ObjectPatch::Json(json!([{ "op": "replace", "path": "/data/a", "value": "4" }]).into());
    assert_eq!(writer.patch(&config, stale, Some(version)).await.unwrap_err().code, Code::Conflict);
    assert_eq!(cluster.get(&config, MaskDetail::Clean).await.unwrap()["data"]["a"], "2");

    let another = DeleteOptions { uid: Some("another".into()), cascade: DeleteCascade::Background, grace_s: None };
    assert_eq!(writer.delete(&config, &another).await.unwrap_err().code, kubernetes::codes::UID_CHANGED);
    writer.delete(&config, &DeleteOptions { uid: None, ..another }).await.unwrap();
    assert!(cluster.wait(&config, |object| object.is_none()).await.unwrap().met);
    assert_eq!(sandbox.writes().len(), 3, "{:?}", sandbox.writes());
}

#[tokio::test]
async fn scaling_is_seen_to_happen() {
    let (_sandbox, clusters) = shop().await;
    let permit = acting();
    let cluster = clusters.of(&permit, None).unwrap();
    let catalog = target(&cluster, "Deployment", "catalog").await;
    let version = cluster.scale_of(&catalog).await.unwrap()["metadata"]["resourceVersion"].clone();
    cluster.write().unwrap().set_scale(&catalog, 4, version.as_str()).await.unwrap();
    let ready = |object: Option<&Value>| object.is_some_and(|object| object["status"]["readyReplicas"] == 4);
    let waited = cluster.wait(&catalog, ready).await.unwrap();
    assert!(waited.met && waited.relists == 0, "{waited:?}");
}

#[tokio::test]
async fn commands_run_and_logs_are_read() {
    let (_sandbox, clusters) = shop().await;
    let permit = acting();
    let cluster = clusters.of(&permit, None).unwrap();
    let pods = place(&cluster, "Pod", None).await;
    let query = ListQuery {
        labels: Some("app=frontend".into()),
        fields: Some("status.phase=Running".into()),
        ..ListQuery::default()
    };
    let found = cluster.list(&pods, &query, MaskDetail::Clean).await.unwrap();
    let pod = pods.object(found.items[0]["metadata"]["name"].as_str().unwrap()).unwrap();
    cluster.logs(&pod, &LogQuery { tail: Some(5), timestamps: true, ..LogQuery::default() }).await.unwrap();

    let writer = cluster.write().unwrap();
    let exec = |command: &[&str], stdin: Option<&str>| PodCommand {
        container: None,
        command: command.iter().map(|word| (*word).to_owned()).collect(),
        stdin: stdin.map(str::to_owned),
        timeout: Duration::from_secs(10),
    };
    let ran = writer.exec(&pod, &exec(&["echo", "a b; c", "$X"], None)).await.unwrap();
    assert_eq!((ran.exit_code, ran.stdout.as_str(), ran.timed_out), (Some(0), "a b; c $X\n", false));
    let ran = writer.exec(&pod, &exec(&["cat"], Some("read me"))).await.unwrap();
    assert_eq!((ran.exit_code, ran.stdout.as_str()), (Some(0), "read me"));
    let ran = writer.exec(&pod, &exec(&["echo", "password=hunter2hunter2"], None)).await.unwrap();
    assert!(!ran.stdout.contains("hunter2"), "{}", ran.stdout);
    assert_eq!(writer.exec(&pod, &exec(&["false"], None)).await.unwrap().exit_code, Some(1));
    let slow = PodCommand { timeout: Duration::from_millis(500), ..exec(&["sleep", "600"], None) };
    let ran = writer.exec(&pod, &slow).await.unwrap();
    assert!(ran.timed_out && ran.exit_code.is_none());
}
