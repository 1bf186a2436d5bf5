use super::*;
use serde_json::json;

const NOW: u64 = 1_763_280_000; // 2025-11-16T08:00:00Z

/// The row of an object, which must be the same if only the fields are read that the projection names.
fn shown(group: &str, kind: &str, object: Value) -> String {
    let row_of = |object: &Value| row(group, kind, object, true, Moment::from_secs(NOW));
    let list = json!({ "kind": format!("{kind}List"), "items": [object] }).to_string();
    let read = fields(group, kind).map(|fields| fields.read(list.as_bytes()).unwrap());
    if let Some(read) = read {
        assert_eq!(row_of(&object), row_of(&read["items"][0]), "a field of {kind} is shown and not read");
    }
    Value::Object(row(group, kind, &object, false, Moment::from_secs(NOW))).to_string()
}

fn meta(name: &str) -> Value {
    json!({ "name": name, "namespace": "shop", "creationTimestamp": "2025-11-16T07:30:00Z" })
}

#[test]
fn a_pod_says_how_it_is() {
    let pod = json!({
        "metadata": meta("web"), "spec": { "nodeName": "n1", "containers": [{}, {}] },
        "status": { "phase": "Running", "podIP": "10.0.0.1", "containerStatuses": [{ "ready": true, "restartCount": 2 }, { "ready": true, "restartCount": 1 }] },
    });
    assert_eq!(
        shown("", "Pod", pod.clone()),
        r#"{"age":"30m","ip":"10.0.0.1","name":"web","node":"n1","phase":"Running","ready":"2/2","restarts":3}"#
    );
    let phase = |change: Value| {
        let mut pod = pod.clone();
        pod["status"] = change;
        let row: Value = serde_json::from_str(&shown("", "Pod", pod)).unwrap();
        row["phase"].clone()
    };
    assert_eq!(
        phase(
            json!({ "phase": "Running", "containerStatuses": [{ "state": { "waiting": { "reason": "CrashLoopBackOff" } } }] })
        ),
        "CrashLoopBackOff"
    );
    assert_eq!(
        phase(
            json!({ "phase": "Pending", "initContainerStatuses": [{ "state": { "terminated": { "reason": "Error" } } }] })
        ),
        "Init:Error"
    );
    assert_eq!(
        phase(
            json!({ "phase": "Pending", "containerStatuses": [{ "state": { "waiting": { "reason": "ContainerCreating" } } }] })
        ),
        "Pending"
    );
    assert_eq!(phase(json!({ "phase": "Failed", "reason": "Evicted" })), "Evicted");
    assert_eq!(phase(json!({})), "Unknown");
}

#[test]
fn workloads_say_how_far_they_are() {
    let spec = json!({ "replicas": 3, "paused": true, "template": { "spec": { "containers": [{ "image": "a:1" }, { "image": "b:2" }] } } });
    let deployment = json!({ "kind": "Deployment", "metadata": meta("web"), "spec": spec, "status": { "readyReplicas": 2, "updatedReplicas": 3, "availableReplicas": 2 } });
    assert_eq!(
        shown("apps", "Deployment", deployment),
        r#"{"age":"30m","available":2,"images":"a:1, b:2","name":"web","paused":true,"ready":"2/3","updated":3}"#
    );
    let daemons = json!({ "metadata": meta("d"), "spec": spec, "status": { "desiredNumberScheduled": 4, "numberReady": 3, "updatedNumberScheduled": 4 } });
    assert_eq!(
        shown("apps", "DaemonSet", daemons),
        r#"{"age":"30m","desired":4,"images":"a:1, b:2","name":"d","ready":3,"updated":4}"#
    );
    let job = json!({ "metadata": meta("j"), "spec": { "completions": 2 }, "status": { "succeeded": 1, "active": 1, "startTime": "2025-11-16T07:59:00Z" } });
    assert_eq!(
        shown("batch", "Job", job),
        r#"{"active":1,"age":"30m","duration":"60s","failed":0,"name":"j","succeeded":"1/2"}"#
    );
    let cron = json!({ "metadata": meta("c"), "spec": { "schedule": "*/5 * * * *", "suspend": true }, "status": { "lastScheduleTime": "2025-11-16T07:55:00Z", "active": [{}] } });
    assert_eq!(
        shown("batch", "CronJob", cron),
        r#"{"active":1,"age":"30m","last_run":"5m","name":"c","schedule":"*/5 * * * *","suspended":true}"#
    );
    let hpa = json!({
        "metadata": meta("h"),
        "spec": { "scaleTargetRef": { "kind": "Deployment", "name": "web" }, "maxReplicas": 9, "metrics": [{ "type": "Resource", "resource": { "name": "cpu", "target": { "averageUtilization": 80 } } }, { "type": "External" }] },
        "status": { "currentReplicas": 4, "currentMetrics": [{ "resource": { "name": "cpu", "current": { "averageUtilization": 63 } } }] },
    });
    assert_eq!(
        shown("autoscaling", "HorizontalPodAutoscaler", hpa),
        r#"{"age":"30m","current":4,"max":9,"metrics":"cpu 63%/80%, External","min":1,"name":"h","target":"Deployment/web"}"#
    );
    let pdb = json!({ "metadata": meta("p"), "spec": { "minAvailable": "50%" }, "status": { "disruptionsAllowed": 1, "currentHealthy": 3, "desiredHealthy": 2 } });
    assert_eq!(
        shown("policy", "PodDisruptionBudget", pdb),
        r#"{"age":"30m","allowed":1,"current":"3/2","min_available":"50%","name":"p"}"#
    );
}

#[test]
fn services_ingresses_and_nodes() {
    let service = json!({ "metadata": meta("s"), "spec": { "type": "NodePort", "clusterIP": "10.1.1.1", "ports": [{ "port": 80, "nodePort": 30080 }, { "port": 53, "protocol": "UDP" }] } });
    assert_eq!(
        shown("", "Service", service),
        r#"{"age":"30m","cluster_ip":"10.1.1.1","name":"s","ports":"80:30080/TCP, 53/UDP","type":"NodePort"}"#
    );
    let ingress = json!({ "metadata": meta("i"), "spec": { "ingressClassName": "nginx", "rules": [{ "host": "a.example" }, {}], "tls": [{}] }, "status": { "loadBalancer": { "ingress": [{ "hostname": "lb.example" }] } } });
    assert_eq!(
        shown("networking.k8s.io", "Ingress", ingress),
        r#"{"address":"lb.example","age":"30m","class":"nginx","hosts":"a.example, *","name":"i","tls":true}"#
    );
    let node = json!({
        "metadata": { "name": "n1", "creationTimestamp": "2025-11-01T08:00:00Z", "labels": { "node-role.kubernetes.io/control-plane": "" } },
        "spec": { "unschedulable": true },
        "status": { "conditions": [{ "type": "Ready", "status": "True" }, { "type": "DiskPressure", "status": "True" }], "nodeInfo": { "kubeletVersion": "v1.33.1" }, "allocatable": { "cpu": "4", "memory": "16Gi" } },
    });
    assert_eq!(
        shown("", "Node", node),
        r#"{"age":"15d","cpu":"4","memory":"16Gi","name":"n1","pressure":["DiskPressure"],"ready":true,"roles":"control-plane","schedulable":false,"version":"v1.33.1"}"#
    );
}

#[test]
fn what_is_kept_is_shown_by_its_keys() {
    let map = json!({ "metadata": meta("m"), "data": { "a": "xy", "b": "z" }, "binaryData": { "c": "AA==" } });
    assert_eq!(shown("", "ConfigMap", map), r#"{"age":"30m","bytes":7,"keys":["a","b","c"],"name":"m"}"#);
    let secret = json!({ "metadata": meta("s"), "type": "Opaque", "data": { "password": "aHVudGVyMg==" } });
    let row = shown("", "Secret", secret);
    assert_eq!(row, r#"{"age":"30m","keys":["password"],"name":"s","type":"Opaque"}"#);
    let claim = json!({ "metadata": meta("c"), "spec": { "storageClassName": "fast", "volumeName": "v", "resources": { "requests": { "storage": "1Gi" } } }, "status": { "phase": "Pending" } });
    assert_eq!(
        shown("", "PersistentVolumeClaim", claim),
        r#"{"age":"30m","class":"fast","name":"c","phase":"Pending","size":"1Gi","volume":"v"}"#
    );
}

#[test]
fn the_rest_is_shown_as_well() {
    let leaving = json!({ "metadata": { "name": "web", "deletionTimestamp": "2025-11-16T07:59:00Z" }, "spec": { "containers": [{ "name": "a" }] } });
    assert_eq!(
        shown("", "Pod", leaving),
        r#"{"name":"web","phase":"Terminating","ready":"0/1","restarts":0,"terminating":true}"#
    );
    let outside = json!({ "metadata": meta("s"), "spec": { "externalIPs": ["1.2.3.4"] } });
    assert_eq!(shown("", "Service", outside), r#"{"age":"30m","external":"1.2.3.4","name":"s"}"#);
    let named =
        json!({ "metadata": meta("s"), "spec": { "externalName": "db.example" }, "status": { "loadBalancer": {} } });
    assert_eq!(shown("", "Service", named), r#"{"age":"30m","external":"db.example","name":"s"}"#);
    let balanced = json!({ "metadata": meta("s"), "status": { "loadBalancer": { "ingress": [{ "ip": "5.6.7.8" }] } } });
    assert_eq!(shown("", "Service", balanced), r#"{"age":"30m","external":"5.6.7.8","name":"s"}"#);
    let done = json!({ "metadata": meta("j"), "status": { "failed": 2, "startTime": "2025-11-16T07:00:00Z", "completionTime": "2025-11-16T07:01:00Z" } });
    assert_eq!(
        shown("batch", "Job", done),
        r#"{"active":0,"age":"30m","duration":"60s","failed":2,"name":"j","succeeded":"0/1"}"#
    );
    let most = json!({ "metadata": meta("p"), "spec": { "maxUnavailable": 1 } });
    assert_eq!(
        shown("policy", "PodDisruptionBudget", most),
        r#"{"age":"30m","allowed":0,"current":"0/0","max_unavailable":1,"name":"p"}"#
    );
    let sets = json!({ "kind": "ReplicaSet", "metadata": meta("r"), "spec": { "replicas": 1 } });
    assert_eq!(shown("apps", "ReplicaSet", sets), r#"{"age":"30m","available":0,"name":"r","ready":"0/1"}"#);
    let bound = json!({ "metadata": meta("c"), "status": { "phase": "Bound", "capacity": { "storage": "2Gi" } } });
    assert_eq!(shown("", "PersistentVolumeClaim", bound), r#"{"age":"30m","name":"c","phase":"Bound","size":"2Gi"}"#);
    let volume = json!({ "metadata": meta("v"), "spec": { "capacity": { "storage": "2Gi" }, "persistentVolumeReclaimPolicy": "Retain", "claimRef": { "namespace": "shop", "name": "c" } }, "status": { "phase": "Bound" } });
    assert_eq!(
        shown("", "PersistentVolume", volume),
        r#"{"age":"30m","claim":"shop/c","name":"v","phase":"Bound","reclaim":"Retain","size":"2Gi"}"#
    );
    let namespace = json!({ "metadata": meta("n"), "status": { "phase": "Active" } });
    assert_eq!(shown("", "Namespace", namespace), r#"{"age":"30m","name":"n","phase":"Active"}"#);
    let account = json!({ "metadata": meta("a"), "secrets": [{ "name": "t" }, {}] });
    assert_eq!(shown("", "ServiceAccount", account), r#"{"age":"30m","name":"a","secrets":2}"#);
    let definition = json!({ "metadata": meta("d"), "spec": { "group": "example.com", "scope": "Namespaced", "versions": [{ "name": "v1", "served": true }, { "name": "v0", "served": false }] } });
    assert_eq!(
        shown("apiextensions.k8s.io", "CustomResourceDefinition", definition),
        r#"{"age":"30m","group":"example.com","name":"d","scope":"Namespaced","versions":["v1"]}"#
    );
}

#[test]
fn an_event_is_its_message_and_the_message_is_masked() {
    let event = json!({
        "metadata": meta("web.17f"), "type": "Warning", "reason": "Failed", "count": 4, "lastTimestamp": "2025-11-16T07:59:00Z",
        "involvedObject": { "kind": "Pod", "name": "web" }, "message": "pull https://robot:hunter22@registry/x failed",
    });
    assert_eq!(
        shown("", "Event", event),
        r#"{"age":"30m","count":4,"last_seen":"60s","message":"pull https://[redacted: password in an address]@registry/x failed","object":"Pod/web","reason":"Failed","type":"Warning"}"#
    );
    let newer = json!({ "metadata": meta("x"), "regarding": { "kind": "Node", "name": "n" }, "note": "hi", "series": { "count": 9, "lastObservedTime": "2025-11-16T08:00:00Z" } });
    for field in ["eventTime", "firstTimestamp"] {
        let event = json!({ "metadata": meta("y"), field: "2025-11-16T07:59:00Z", "deprecatedCount": 3 });
        assert_eq!(shown("", "Event", event), r#"{"age":"30m","count":3,"last_seen":"60s"}"#);
    }
    assert_eq!(
        shown("events.k8s.io", "Event", newer),
        r#"{"age":"30m","count":9,"last_seen":"0s","message":"hi","object":"Node/n"}"#
    );
}

#[test]
fn nothing_in_an_object_makes_a_row_fail() {
    for (group, kind) in KINDS {
        assert!(knows(group, kind), "{kind}");
        for odd in [json!(null), json!([]), json!("x"), json!({ "metadata": 1, "spec": [], "status": "x", "data": 3 })]
        {
            row(group, kind, &odd, true, Moment::from_secs(NOW));
        }
    }
    assert!(!knows("example.com", "Service") && !knows("argoproj.io", "Rollout"));
}
