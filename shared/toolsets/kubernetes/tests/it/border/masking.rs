//! Nothing secret comes out, whichever way it is asked for.

use crate::border::support::*;
use domain::{Code, Effect};
use kubernetes::client::{ClusterConfig, KnownSecrets, ListQuery, LogQuery, MaskDetail, ObjectPatch};
use serde_json::{Value, json};

const PLAIN: &str = "s3cr3t-sesame-77";
const ENCODED: &str = "czNjcjN0LXNlc2FtZS03Nw==";

fn secret() -> Value {
    let applied = json!({ "kind": "Secret", "stringData": { "key": PLAIN } }).to_string();
    json!({ "apiVersion": "v1", "kind": "Secret", "type": "Opaque", "data": { "key": ENCODED },
        "metadata": { "name": "db", "namespace": "default", "uid": "u-1", "resourceVersion": "7", "managedFields": [{}],
            "annotations": { "kubectl.kubernetes.io/last-applied-configuration": applied } } })
}

fn assert_hidden(value: &Value) {
    let text = value.to_string();
    assert!(!text.contains(PLAIN) && !text.contains(ENCODED), "{text}");
}

#[tokio::test]
async fn a_secret_is_masked_however_it_is_asked_for() {
    let api = Api::start(|seen, _| {
        let item = || {
            let mut item = secret();
            item.as_object_mut().unwrap().remove("kind");
            item
        };
        if seen.is_watch() {
            return Reply::Events(vec![json!({ "type": "MODIFIED", "object": secret() })]);
        }
        if seen.headers["accept"].to_str().unwrap().contains("Table") {
            let rows = json!([{ "cells": ["db", "Opaque", "wide"], "object": { "metadata": secret()["metadata"] } }]);
            let columns =
                json!([{ "name": "Name" }, { "name": "Type", "priority": 0 }, { "name": "Wide", "priority": 1 }]);
            return Reply::Json(200, json!({ "kind": "Table", "columnDefinitions": columns, "rows": rows }));
        }
        match seen.path.as_str() {
            "/api/v1/namespaces/default/secrets" => {
                Reply::Json(200, json!({ "kind": "SecretList", "items": [item()] }))
            }
            _ => Reply::Json(200, secret()),
        }
    })
    .await;
    let (permit, clusters) = (reading(), api.clusters());
    let cluster = clusters.of(&permit, None).unwrap();
    let mut marks = Vec::new();
    for spelling in ["Secret", "secrets", "secret", "v1/Secret"] {
        for detail in [MaskDetail::Clean, MaskDetail::Full] {
            let object = cluster.get(&target(&cluster, spelling, "db").await, detail).await.unwrap();
            assert_hidden(&object);
            marks.push(object["data"]["key"].clone());
            let page =
                cluster.list(&place(&cluster, spelling, None).await, &ListQuery::default(), detail).await.unwrap();
            page.items.iter().for_each(assert_hidden);
            assert_eq!(page.items[0]["kind"], "Secret");
            marks.push(page.items[0]["data"]["key"].clone());
        }
    }
    marks.dedup();
    assert_eq!(marks.len(), 1, "equal values have equal marks: {marks:?}");
    assert!(marks[0].as_str().unwrap().starts_with("masked:"));

    let table = cluster.table(&place(&cluster, "Secret", None).await, &ListQuery::default()).await.unwrap();
    assert_eq!(table.columns, ["Name", "Type"]);
    assert_eq!((table.rows[0].name.as_str(), table.rows[0].cells.len()), ("db", 2));
    let db = target(&cluster, "Secret", "db").await;
    let mut looks = 0;
    let waited = cluster.wait(&db, |object| {
        assert_hidden(object.unwrap());
        looks += 1;
        looks == 2
    });
    assert_hidden(&waited.await.unwrap().object.unwrap());
    let sealed = cluster.sealed(&db).await.unwrap();
    for part in [
        sealed.clone(),
        sealed.part("/data").unwrap(),
        sealed.part("/data/key").unwrap(),
        sealed.part("/metadata").unwrap(),
    ] {
        assert_hidden(&part.shown(&cluster, MaskDetail::Full));
        assert!(!format!("{part:?}").contains(ENCODED));
    }
}

#[tokio::test]
async fn marks_of_one_call_mean_nothing_in_another() {
    let api = Api::start(|_, _| Reply::Json(200, secret())).await;
    let mut marks = Vec::new();
    for name in ["acme", "acme", "globex"] {
        let permit = permit(name, Effect::Read, None);
        let clusters = clusters_for(name, vec![api.config()]);
        let cluster = clusters.of(&permit, None).unwrap();
        let object = cluster.get(&target(&cluster, "Secret", "db").await, MaskDetail::Clean).await.unwrap();
        marks.push(object["data"]["key"].clone());
    }
    assert!(marks[0] != marks[1] && marks[0] != marks[2] && marks[1] != marks[2], "{marks:?}");
}

#[tokio::test]
async fn what_is_written_back_is_what_the_cluster_holds_and_not_its_mask() {
    let template =
        json!({ "spec": { "containers": [{ "name": "app", "env": [{ "name": "DB_PASSWORD", "value": PLAIN }] }] } });
    let held = template.clone();
    let api = Api::start(move |seen, _| match seen.method.as_str() {
        "GET" => {
            let mut object = deployment("web", 1);
            object["spec"]["template"] = held.clone();
            Reply::Json(200, object)
        }
        _ => Reply::Json(200, deployment("web", 1)),
    })
    .await;
    let (permit, clusters) = (acting(), api.clusters());
    let cluster = clusters.of(&permit, None).unwrap();
    let web = target(&cluster, "Deployment", "web").await;

    let mut former = cluster.sealed(&web).await.unwrap().part("/spec/template").unwrap();
    assert_hidden(&former.shown(&cluster, MaskDetail::Clean));
    former.set("/metadata/labels/x", json!("y"));
    former.remove("/metadata/labels/pod-template-hash");
    let mut operations =
        kubernetes::client::SealedValue::from(json!([{ "op": "replace", "path": "/spec/template", "value": null }]));
    operations.set("/0/value", former);
    cluster.write().unwrap().patch(&web, ObjectPatch::Json(operations), Some("7")).await.unwrap();

    let sent = api.seen()[1].json();
    let mut wanted = template;
    wanted["metadata"] = json!({ "labels": { "x": "y" } });
    assert_eq!(sent[1]["value"], wanted);
}

#[tokio::test]
async fn kinds_a_tenant_calls_secret_are_masked_too() {
    let api = Api::start(|_, _| {
        Reply::Json(200, json!({ "kind": "Rollout", "metadata": { "name": "r" }, "data": { "k": PLAIN } }))
    })
    .await;
    let clusters = clusters_of(vec![ClusterConfig { secret_kinds: vec!["Rollout".into()], ..api.config() }]);
    let permit = reading();
    let cluster = clusters.of(&permit, None).unwrap();
    assert_hidden(&cluster.get(&target(&cluster, "Rollout", "r").await, MaskDetail::Full).await.unwrap());
}

#[tokio::test]
async fn logs_are_masked_bounded_and_explained() {
    let api = Api::start(|seen, _| match seen.query.contains("container=app") {
        true => {
            Reply::Text(200, format!("start\ndb password={PLAIN}\nAuthorization: Bearer {}\nend\n", "a1".repeat(20)))
        }
        false => {
            let message = "a container name must be specified for pod web-1, choose one of: [app sidecar]";
            status(400, "BadRequest", message, json!([]))
        }
    })
    .await;
    let (permit, clusters) = (reading(), api.clusters());
    let cluster = clusters.of(&permit, None).unwrap();
    let pod = target(&cluster, "Pod", "web-1").await;

    let app = LogQuery { container: Some("app".into()), tail: Some(10), since_s: Some(60), ..LogQuery::default() };
    let logs = cluster.logs(&pod, &app).await.unwrap();
    assert_eq!((logs.lines.len(), logs.truncated), (4, false));
    let text = logs.lines.join("\n");
    assert!(text.contains("db password=masked:") && !text.contains(PLAIN) && !text.contains("a1a1a1"), "{text}");
    assert_eq!(api.seen()[0].query, "limitBytes=1048576&container=app&tailLines=10&sinceSeconds=60");

    let failure = cluster.logs(&pod, &LogQuery::default()).await.unwrap_err();
    assert_eq!((failure.code, failure.did_you_mean.len()), (kubernetes::codes::CONTAINER_REQUIRED, 2));
    let strange = LogQuery { container: Some("a&follow=true".into()), ..LogQuery::default() };
    assert_eq!(cluster.logs(&pod, &strange).await.unwrap_err().code, Code::InvalidArgument);
}

#[tokio::test]
async fn an_endless_log_is_cut_at_whole_lines() {
    let api = Api::start(|_, _| Reply::Text(200, "a line of a log\n".repeat(200_000))).await;
    let (permit, clusters) = (reading(), api.clusters());
    let cluster = clusters.of(&permit, None).unwrap();
    let logs = cluster.logs(&target(&cluster, "Pod", "web-1").await, &LogQuery::default()).await.unwrap();
    assert!(logs.truncated);
    assert!(logs.lines.len() < 70_000 && logs.lines.iter().all(|line| line == "a line of a log"));
}

#[tokio::test]
async fn a_chart_is_given_stand_ins_that_lead_back_to_the_marks_of_what_is_masked() {
    let api = Api::start(|_, _| Reply::Json(200, json!({}))).await;
    let (permit, clusters) = (reading(), api.clusters());
    let cluster = clusters.of(&permit, None).unwrap();
    let values = json!({ "auth": { "password": PLAIN }, "replicas": 3 });

    let (given, stand_ins) = cluster.stand_ins(values.clone(), &KnownSecrets::default());

    assert_hidden(&given);
    assert_eq!(given["replicas"], 3);
    let masked = cluster.masked_values(values, &KnownSecrets::default());
    assert_ne!(given, masked, "a chart cannot tell whose mark it is");
    assert_eq!(stand_ins.put_back(&given.to_string()), masked.to_string());
    assert!(!stand_ins.is_empty());
}
