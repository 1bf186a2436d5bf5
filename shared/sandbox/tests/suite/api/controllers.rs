//! What moves by itself.

use http::Method;
use k8s_openapi::api::apps::v1::{DaemonSet, Deployment, StatefulSet};
use k8s_openapi::api::batch::v1::Job;
use k8s_openapi::api::core::v1::Pod;
use kube::api::{ListParams, Patch, PatchParams};
use serde_json::{Value, json};

use super::support::{CONFIG_MAPS, Cluster, DEPLOYMENTS, PODS, config_map, deployment, pod};

const REVISION: &str = "deployment.kubernetes.io/revision";

fn set_image(image: &str) -> Patch<Value> {
    Patch::Strategic(
        json!({ "spec": { "template": { "spec": { "containers": [{ "name": "app", "image": image }] } } } }),
    )
}

fn reason(pod: &Value) -> Option<&str> {
    pod["status"]["containerStatuses"][0]["state"]["waiting"]["reason"].as_str()
}

#[tokio::test]
async fn a_rolling_update_never_leaves_its_bounds_and_counts_revisions() {
    let cluster = Cluster::empty().await;
    cluster.deployed("web", 4).await;
    let api = cluster.api::<Deployment>("shop");
    api.patch("web", &PatchParams::default(), &set_image("app:2")).await.unwrap();

    let done = cluster
        .until(&api, "web", |one| {
            let status = one.status.clone().unwrap_or_default();
            // 25% of 4: one more, one less.
            assert!(status.replicas.unwrap_or(0) <= 5, "{status:?}");
            assert!(status.available_replicas.unwrap_or(0) >= 3, "{status:?}");
            status.observed_generation == one.metadata.generation
                && status.updated_replicas == Some(4)
                && status.replicas == Some(4)
                && status.available_replicas == Some(4)
        })
        .await;

    assert_eq!(done.metadata.annotations.unwrap()[REVISION], "2");
    let sets = cluster.get("/apis/apps/v1/namespaces/shop/replicasets").await;
    let sizes: Vec<(Value, Value)> = sets["items"]
        .as_array()
        .unwrap()
        .iter()
        .map(|set| (set["metadata"]["annotations"][REVISION].clone(), set["spec"]["replicas"].clone()))
        .collect();
    assert!(sizes.contains(&(json!("1"), json!(0))) && sizes.contains(&(json!("2"), json!(4))), "{sizes:?}");
    let pods = cluster.get(PODS).await;
    let pod = &pods["items"][0];
    assert!(pod["metadata"]["labels"]["pod-template-hash"].is_string());
    let events = cluster.get("/api/v1/namespaces/shop/events?fieldSelector=involvedObject.kind%3DDeployment").await;
    let told =
        events["items"].as_array().unwrap().iter().filter(|event| event["reason"] == "ScalingReplicaSet").count();
    assert!(told >= 3, "{told} events tell of scaling");
    let newer = cluster.get("/apis/events.k8s.io/v1/namespaces/shop/events").await;
    assert!(newer["items"][0]["regarding"]["kind"].is_string());
}

#[tokio::test]
async fn a_paused_deployment_waits_until_it_is_resumed() {
    let cluster = Cluster::empty().await;
    cluster.deployed("web", 1).await;
    let api = cluster.api::<Deployment>("shop");
    let pause = |paused: bool| Patch::Merge(json!({ "spec": { "paused": paused } }));
    api.patch("web", &PatchParams::default(), &pause(true)).await.unwrap();
    api.patch("web", &PatchParams::default(), &set_image("app:2")).await.unwrap();

    let seen =
        |one: &Deployment| one.status.as_ref().and_then(|status| status.observed_generation) == one.metadata.generation;
    let waiting = cluster.until(&api, "web", seen).await;
    assert_eq!(waiting.status.unwrap().updated_replicas, None);
    api.patch("web", &PatchParams::default(), &pause(false)).await.unwrap();

    cluster
        .until(&api, "web", |one| {
            one.status.as_ref().is_some_and(|status| {
                status.updated_replicas == Some(1) && status.available_replicas == Some(1) && status.replicas == Some(1)
            })
        })
        .await;
}

#[tokio::test]
async fn a_rollout_that_stands_still_too_long_says_so() {
    let cluster = Cluster::empty().await;
    let mut slow = deployment("web", "app:missing", 1);
    slow["spec"]["progressDeadlineSeconds"] = json!(1);
    cluster.create(DEPLOYMENTS, &slow).await;

    let api = cluster.api::<Deployment>("shop");
    cluster
        .until(&api, "web", |one| {
            let conditions = one.status.clone().and_then(|status| status.conditions).unwrap_or_default();
            conditions
                .iter()
                .any(|one| one.type_ == "Progressing" && one.reason.as_deref() == Some("ProgressDeadlineExceeded"))
        })
        .await;
}

#[tokio::test]
async fn pods_fail_in_the_ways_their_annotation_or_spec_says() {
    let cluster = Cluster::empty().await;
    for (name, behave) in [("crash", "crash"), ("oom", "oom"), ("unready", "unready"), ("image", "image-missing")] {
        let mut one = pod(name, "app:1");
        one["metadata"]["annotations"] = json!({ "sandbox/behave": behave });
        cluster.create(PODS, &one).await;
    }
    cluster.create(PODS, &pod("tag", "app:does-not-exist-1")).await;
    let mut unconfigured = pod("config", "app:1");
    let reference = json!({ "configMapKeyRef": { "name": "settings", "key": "colour" } });
    unconfigured["spec"]["containers"][0]["env"] = json!([{ "name": "COLOUR", "valueFrom": reference }]);
    cluster.create(PODS, &unconfigured).await;

    let at = |name: &str| format!("{PODS}/{name}");
    for name in ["image", "tag"] {
        cluster.until_path(&at(name), |pod| reason(pod) == Some("ImagePullBackOff")).await;
    }
    cluster.until_path(&at("crash"), |pod| reason(pod) == Some("CrashLoopBackOff")).await;
    let oom = cluster.until_path(&at("oom"), |pod| reason(pod) == Some("CrashLoopBackOff")).await;
    assert_eq!(oom["status"]["containerStatuses"][0]["lastState"]["terminated"]["reason"], "OOMKilled");
    let unready = cluster.until_path(&at("unready"), |pod| pod["status"]["phase"] == "Running").await;
    assert_eq!(unready["status"]["containerStatuses"][0]["ready"], false);

    let config = cluster.until_path(&at("config"), |pod| reason(pod) == Some("CreateContainerConfigError")).await;
    assert_eq!(
        config["status"]["containerStatuses"][0]["state"]["waiting"]["message"],
        "configmap \"settings\" not found"
    );
    cluster.create(CONFIG_MAPS, &config_map("settings", &json!({ "colour": "blue" }))).await;
    cluster.until_path(&at("config"), |pod| pod["status"]["containerStatuses"][0]["ready"] == true).await;
}

#[tokio::test]
async fn a_stateful_set_starts_in_order_and_rolls_from_the_end() {
    let cluster = Cluster::empty().await;
    let set = json!({
        "apiVersion": "apps/v1", "kind": "StatefulSet", "metadata": { "name": "db", "namespace": "shop" },
        "spec": {
            "serviceName": "db", "replicas": 2, "selector": { "matchLabels": { "app": "db" } },
            "template": { "metadata": { "labels": { "app": "db" } }, "spec": { "containers": [{ "name": "app", "image": "db:1" }] } },
            "volumeClaimTemplates": [{ "metadata": { "name": "data" }, "spec": { "accessModes": ["ReadWriteOnce"], "resources": { "requests": { "storage": "1Gi" } } } }],
        },
    });
    cluster.create("/apis/apps/v1/namespaces/shop/statefulsets", &set).await;
    let api = cluster.api::<StatefulSet>("shop");
    let ready = |one: &StatefulSet| one.status.as_ref().and_then(|status| status.ready_replicas) == Some(2);
    cluster.until(&api, "db", ready).await;
    let (first, second) = (cluster.get(&format!("{PODS}/db-0")).await, cluster.get(&format!("{PODS}/db-1")).await);
    assert!(first["metadata"]["creationTimestamp"].as_str() <= second["metadata"]["creationTimestamp"].as_str());
    assert_eq!(
        cluster.get("/api/v1/namespaces/shop/persistentvolumeclaims/data-db-1").await["status"]["phase"],
        "Bound"
    );

    api.patch("db", &PatchParams::default(), &set_image("db:2")).await.unwrap();

    cluster
        .until(&api, "db", |one| {
            let status = one.status.clone().unwrap_or_default();
            status.observed_generation == one.metadata.generation
                && status.updated_replicas == Some(2)
                && status.ready_replicas == Some(2)
                && status.current_revision == status.update_revision
        })
        .await;
    let revisions = cluster.get("/apis/apps/v1/namespaces/shop/controllerrevisions").await;
    assert_eq!(revisions["items"].as_array().unwrap().len(), 2);
    let (code, refused) = cluster
        .patch("/apis/apps/v1/namespaces/shop/statefulsets/db", "merge", &json!({ "spec": { "serviceName": "x" } }))
        .await;
    assert!(code == 422 && refused["message"].as_str().unwrap().contains("updates to statefulset spec"), "{refused}");
}

#[tokio::test]
async fn a_daemon_set_has_one_pod_on_every_node() {
    let cluster = Cluster::empty().await;
    let set = json!({
        "apiVersion": "apps/v1", "kind": "DaemonSet", "metadata": { "name": "agent", "namespace": "shop" },
        "spec": {
            "selector": { "matchLabels": { "app": "agent" } },
            "template": { "metadata": { "labels": { "app": "agent" } }, "spec": { "containers": [{ "name": "app", "image": "agent:1" }] } },
        },
    });
    cluster.create("/apis/apps/v1/namespaces/shop/daemonsets", &set).await;
    let api = cluster.api::<DaemonSet>("shop");
    let all = |one: &DaemonSet, updated: i32| {
        one.status.as_ref().is_some_and(|status| {
            status.number_ready == 3
                && status.updated_number_scheduled == Some(updated)
                && status.observed_generation == one.metadata.generation
        })
    };
    cluster.until(&api, "agent", |one| all(one, 3)).await;
    api.patch("agent", &PatchParams::default(), &set_image("agent:2")).await.unwrap();
    cluster.until(&api, "agent", |one| all(one, 3)).await;

    let pods = cluster.api::<Pod>("shop").list(&ListParams::default().labels("app=agent")).await.unwrap().items;
    let mut nodes: Vec<String> = pods
        .into_iter()
        .filter(|pod| pod.metadata.deletion_timestamp.is_none())
        .filter_map(|pod| pod.spec.unwrap().node_name)
        .collect();
    nodes.sort();
    assert_eq!(nodes, ["sandbox-node-1", "sandbox-node-2", "sandbox-node-3"]);
}

#[tokio::test]
async fn jobs_end_well_or_after_too_many_failures_and_are_removed_in_time() {
    let cluster = Cluster::empty().await;
    let job = |name: &str, command: &[&str]| {
        json!({
            "apiVersion": "batch/v1", "kind": "Job", "metadata": { "name": name, "namespace": "shop" },
            "spec": {
                "backoffLimit": 0, "ttlSecondsAfterFinished": if name == "short" { 0 } else { 600 },
                "template": { "spec": { "restartPolicy": "Never", "containers": [{ "name": "app", "image": "tools:1", "command": command }] } },
            },
        })
    };
    let jobs = "/apis/batch/v1/namespaces/shop/jobs";
    cluster.create(jobs, &job("good", &["echo", "done"])).await;
    cluster.create(jobs, &job("bad", &["sh", "-c", "echo oops >&2; exit 3"])).await;
    cluster.create(jobs, &job("short", &["true"])).await;
    let api = cluster.api::<Job>("shop");
    let has = |one: &Job, wanted: &str| {
        let conditions = one.status.clone().and_then(|status| status.conditions).unwrap_or_default();
        conditions.iter().any(|condition| condition.type_ == wanted && condition.status == "True")
    };

    let good = cluster.until(&api, "good", |one| has(one, "Complete")).await;
    cluster.until(&api, "bad", |one| has(one, "Failed")).await;
    cluster.until_path(&format!("{jobs}/short"), |answer| answer["code"] == 404).await;

    assert_eq!(good.status.unwrap().succeeded, Some(1));
    let pods = cluster.get(&format!("{PODS}?labelSelector=batch.kubernetes.io/job-name%3Dbad")).await;
    assert_eq!(pods["items"][0]["status"]["containerStatuses"][0]["state"]["terminated"]["exitCode"], 3);
    let name = pods["items"][0]["metadata"]["name"].as_str().unwrap();
    let (_, log) = cluster.ask_text(Method::GET, &format!("{PODS}/{name}/log"), None, &[]).await;
    assert_eq!(log, "oops\n");
}

#[tokio::test]
async fn endpoints_follow_the_ready_pods_of_a_service() {
    let cluster = Cluster::empty().await;
    let service = json!({
        "apiVersion": "v1", "kind": "Service", "metadata": { "name": "web", "namespace": "shop" },
        "spec": { "selector": { "app": "web" }, "ports": [{ "port": 80, "targetPort": "http" }] },
    });
    cluster.create("/api/v1/namespaces/shop/services", &service).await;
    cluster.deployed("web", 2).await;

    let path = "/api/v1/namespaces/shop/endpoints/web";
    let full = cluster
        .until_path(path, |one| one["subsets"][0]["addresses"].as_array().is_some_and(|all| all.len() == 2))
        .await;
    assert_eq!(full["subsets"][0]["ports"][0]["port"], 8080);
    let slices = cluster
        .get("/apis/discovery.k8s.io/v1/namespaces/shop/endpointslices?labelSelector=kubernetes.io/service-name%3Dweb")
        .await;
    assert_eq!(slices["items"][0]["endpoints"].as_array().unwrap().len(), 2);
    cluster.patch(&format!("{DEPLOYMENTS}/web/scale"), "merge", &json!({ "spec": { "replicas": 0 } })).await;
    cluster.until_path(path, |one| one["subsets"].as_array().is_some_and(Vec::is_empty)).await;
}

#[tokio::test]
async fn a_cordoned_node_takes_no_pods_and_a_quota_takes_no_more() {
    let cluster = Cluster::empty().await;
    for number in 1..=3 {
        let path = format!("/api/v1/nodes/sandbox-node-{number}");
        cluster.patch(&path, "strategic-merge", &json!({ "spec": { "unschedulable": true } })).await;
    }
    cluster.create(PODS, &pod("homeless", "app:1")).await;
    let path = format!("{PODS}/homeless");
    let waiting = cluster.until_path(&path, |pod| pod["status"]["conditions"][0]["reason"] == "Unschedulable").await;
    assert_eq!(waiting["status"]["conditions"][0]["message"], "0/3 nodes are available: 3 node(s) were unschedulable.");
    cluster.patch("/api/v1/nodes/sandbox-node-2", "merge", &json!({ "spec": { "unschedulable": null } })).await;
    let placed = cluster.until_path(&path, |pod| pod["status"]["phase"] == "Running").await;
    assert_eq!(placed["spec"]["nodeName"], "sandbox-node-2");

    let quota = json!({ "apiVersion": "v1", "kind": "ResourceQuota", "metadata": { "name": "few" }, "spec": { "hard": { "pods": "1" } } });
    cluster.create("/api/v1/namespaces/shop/resourcequotas", &quota).await;
    let (code, refused) = cluster.ask(Method::POST, PODS, Some(("application/json", &pod("more", "app:1")))).await;
    assert_eq!(code, 403);
    assert_eq!(
        refused["message"],
        "pods \"more\" is forbidden: exceeded quota: few, requested: pods=1, used: pods=1, limited: pods=1"
    );
}
