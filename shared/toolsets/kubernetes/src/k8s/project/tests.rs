use super::*;
use serde_json::json;

const NOW: u64 = 1_763_280_000; // 2025-11-16T08:00:00Z

fn shown(group: &str, kind: &str, object: Value) -> String {
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
        row("", "Pod", &pod, true, Moment::from_secs(NOW))["phase"].clone()
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
    assert_eq!(
        shown("events.k8s.io", "Event", newer),
        r#"{"age":"30m","count":9,"last_seen":"0s","message":"hi","object":"Node/n"}"#
    );
}

#[test]
fn nothing_in_an_object_makes_a_row_fail() {
    let kinds = [
        ("", "Pod"),
        ("apps", "Deployment"),
        ("apps", "DaemonSet"),
        ("batch", "Job"),
        ("batch", "CronJob"),
        ("", "Service"),
        ("networking.k8s.io", "Ingress"),
        ("", "Node"),
        ("", "Event"),
        ("", "ConfigMap"),
        ("", "Secret"),
        ("", "PersistentVolumeClaim"),
        ("", "PersistentVolume"),
        ("autoscaling", "HorizontalPodAutoscaler"),
        ("policy", "PodDisruptionBudget"),
        ("", "Namespace"),
        ("", "ServiceAccount"),
        ("apiextensions.k8s.io", "CustomResourceDefinition"),
    ];
    for (group, kind) in kinds {
        assert!(knows(group, kind), "{kind}");
        for odd in [json!(null), json!([]), json!("x"), json!({ "metadata": 1, "spec": [], "status": "x", "data": 3 })]
        {
            row(group, kind, &odd, true, Moment::from_secs(NOW));
        }
    }
    assert!(!knows("example.com", "Service") && !knows("argoproj.io", "Rollout"));
}
