//! The platform: what the cluster's keepers run for everybody. All of it is well.

use std::time::Duration;

use serde_json::{Value, json};

use super::WorldStory;

const NAMESPACE: &str = "platform";

pub(super) fn tell(story: &mut WorldStory<'_>) {
    story.ago(Duration::from_secs(20 * 86_400));
    story.create(json!({ "apiVersion": "v1", "kind": "Namespace", "metadata": { "name": NAMESPACE, "labels": { "team": "platform" } } }));
    story.create(json!({
        "apiVersion": "v1", "kind": "ConfigMap", "metadata": { "name": "log-agent", "namespace": NAMESPACE },
        "data": { "agent.yaml": "output: http://metrics.platform.svc:9100\nbatch: 500\n" },
    }));
    story.create(agent());
    story.create(deployment("metrics", "platform/metrics:0.14.3", 2, 9100));
    story.create(deployment("ingress", "platform/ingress:1.12.1", 2, 8443));
    story.create(json!({
        "apiVersion": "v1", "kind": "Service", "metadata": { "name": "metrics", "namespace": NAMESPACE },
        "spec": { "selector": { "app": "metrics" }, "ports": [{ "name": "http", "port": 9100 }] },
    }));
    story.create(json!({
        "apiVersion": "batch/v1", "kind": "Job", "metadata": { "name": "migrate-dashboards", "namespace": NAMESPACE },
        "spec": { "template": { "spec": {
            "restartPolicy": "Never", "containers": [{ "name": "migrate", "image": "registry.sandbox/platform/tools:5.0" }],
        } } },
    }));
    story.settle();
}

fn deployment(name: &str, image: &str, replicas: u32, port: u32) -> Value {
    json!({
        "apiVersion": "apps/v1", "kind": "Deployment", "metadata": { "name": name, "namespace": NAMESPACE, "labels": { "app": name } },
        "spec": {
            "replicas": replicas, "selector": { "matchLabels": { "app": name } },
            "template": {
                "metadata": { "labels": { "app": name } },
                "spec": { "containers": [{
                    "name": name, "image": format!("registry.sandbox/{image}"), "ports": [{ "name": "http", "containerPort": port }],
                    "resources": { "requests": { "cpu": "50m", "memory": "96Mi" } },
                }] },
            },
        },
    })
}

fn agent() -> Value {
    json!({
        "apiVersion": "apps/v1", "kind": "DaemonSet", "metadata": { "name": "log-agent", "namespace": NAMESPACE, "labels": { "app": "log-agent" } },
        "spec": {
            "selector": { "matchLabels": { "app": "log-agent" } },
            "template": {
                "metadata": { "labels": { "app": "log-agent" } },
                "spec": {
                    "containers": [{
                        "name": "agent", "image": "registry.sandbox/platform/log-agent:2.1.0",
                        "volumeMounts": [{ "name": "config", "mountPath": "/etc/agent" }],
                    }],
                    "volumes": [{ "name": "config", "configMap": { "name": "log-agent" } }],
                },
            },
        },
    })
}
