//! The shop: healthy parts, a rollout that cannot finish, and a worker that cannot start.

use std::time::Duration;

use serde_json::{Value, json};

use super::{WorldStory, canary};

pub(super) const NAMESPACE: &str = "shop";
pub(super) const REGISTRY: &str = "registry.sandbox";

pub(super) fn tell(story: &mut WorldStory<'_>) {
    let (minute, hour, day) = (Duration::from_secs(60), Duration::from_secs(3600), Duration::from_secs(86_400));
    story.ago(12 * day);
    story.create(json!({ "apiVersion": "v1", "kind": "Namespace", "metadata": { "name": NAMESPACE, "labels": { "team": "commerce" } } }));
    configuration(story);
    for (name, image, replicas, port) in [
        ("frontend", "shop/frontend:3.2.0", 3, 8080),
        ("catalog", "shop/catalog:1.9.2", 2, 8080),
        ("checkout", "shop/checkout:2.7.0", 4, 8080),
    ] {
        story.create(deployment(name, image, replicas, port));
        story.create(service(name, port));
    }
    story.create(redis());
    story.create(service("redis", 6379));
    story.create(json!({
        "apiVersion": "policy/v1", "kind": "PodDisruptionBudget", "metadata": { "name": "checkout", "namespace": NAMESPACE },
        "spec": { "minAvailable": 2, "selector": { "matchLabels": { "app": "checkout" } } },
    }));
    story.create(json!({
        "apiVersion": "autoscaling/v2", "kind": "HorizontalPodAutoscaler", "metadata": { "name": "frontend", "namespace": NAMESPACE },
        "spec": {
            "minReplicas": 3, "maxReplicas": 8,
            "scaleTargetRef": { "apiVersion": "apps/v1", "kind": "Deployment", "name": "frontend" },
            "metrics": [{ "type": "Resource", "resource": { "name": "cpu", "target": { "type": "Utilization", "averageUtilization": 70 } } }],
        },
    }));
    story.create(ingress());
    story.create(nightly());
    story.create(worker("1.4.0"));
    canary::first_release(story);
    story.settle();

    story.ago(3 * day);
    story.patch(
        "deployments.apps",
        (NAMESPACE, "checkout"),
        &image("checkout", "2.7.1", "checkout 2.7.1: round cents like the bank does"),
    );
    story.settle();

    // The worker's new version wants its Redis address by the environment, and nobody gave it one.
    story.ago(2 * hour);
    story.patch("deployments.apps", (NAMESPACE, "cart-worker"), &worker_upgrade());
    story.settle();

    // The pipeline rolled out a tag that was never pushed.
    story.ago(35 * minute);
    story.patch("deployments.apps", (NAMESPACE, "checkout"), &image("checkout", "2.8.0", "checkout 2.8.0: gift cards"));
    story.settle();

    // A canary waits for somebody to look at it.
    story.ago(20 * minute);
    canary::next_release(story);
    story.settle();
    story.ago(15 * minute);
    story.settle();
    story.ago(Duration::from_secs(1));
}

fn configuration(story: &mut WorldStory<'_>) {
    story.create(json!({
        "apiVersion": "v1", "kind": "ConfigMap", "metadata": { "name": "shop-config", "namespace": NAMESPACE },
        "data": { "currency": "EUR", "redis-url": "redis://redis.shop.svc:6379/0", "catalog-url": "http://catalog.shop.svc:8080" },
    }));
    story.create(json!({
        "apiVersion": "v1", "kind": "Secret", "metadata": { "name": "payment-provider", "namespace": NAMESPACE },
        "type": "Opaque", "stringData": { "api-key": "sandbox-not-a-real-key", "merchant": "sandbox-shop" },
    }));
}

/// The variables every part of the shop starts with.
fn environment() -> Value {
    json!([
        { "name": "CURRENCY", "valueFrom": { "configMapKeyRef": { "name": "shop-config", "key": "currency" } } },
        { "name": "PAYMENT_KEY", "valueFrom": { "secretKeyRef": { "name": "payment-provider", "key": "api-key" } } },
    ])
}

fn deployment(name: &str, image: &str, replicas: u32, port: u32) -> Value {
    json!({
        "apiVersion": "apps/v1", "kind": "Deployment",
        "metadata": {
            "name": name, "namespace": NAMESPACE, "labels": { "app": name, "part-of": "shop" },
            "annotations": { "kubernetes.io/change-cause": format!("{name}: first release") },
        },
        "spec": {
            "replicas": replicas, "selector": { "matchLabels": { "app": name } },
            "template": {
                "metadata": { "labels": { "app": name, "part-of": "shop" } },
                "spec": { "containers": [{
                    "name": name, "image": format!("{REGISTRY}/{image}"), "env": environment(),
                    "ports": [{ "name": "http", "containerPort": port }],
                    "readinessProbe": { "httpGet": { "path": "/readyz", "port": "http" } },
                    "resources": { "requests": { "cpu": "100m", "memory": "128Mi" }, "limits": { "cpu": "500m", "memory": "256Mi" } },
                }] },
            },
        },
    })
}

fn service(name: &str, port: u32) -> Value {
    json!({
        "apiVersion": "v1", "kind": "Service",
        "metadata": { "name": name, "namespace": NAMESPACE, "labels": { "app": name } },
        "spec": { "selector": { "app": name }, "ports": [{ "name": "main", "port": port, "targetPort": port }] },
    })
}

fn image(container: &str, tag: &str, cause: &str) -> Value {
    json!({
        "metadata": { "annotations": { "kubernetes.io/change-cause": cause } },
        "spec": { "template": { "spec": { "containers": [{ "name": container, "image": format!("{REGISTRY}/shop/{container}:{tag}") }] } } },
    })
}

fn worker(tag: &str) -> Value {
    let mut worker = deployment("cart-worker", &format!("shop/cart-worker:{tag}"), 2, 9090);
    let container = &mut worker["spec"]["template"]["spec"]["containers"][0];
    container["env"] = json!([
        { "name": "CURRENCY", "value": "EUR" },
        { "name": "REDIS_URL", "value": "redis://redis.shop.svc:6379/0" },
    ]);
    worker
}

/// The upgrade that lost a variable: the new image and an environment rewritten by hand.
fn worker_upgrade() -> Value {
    json!({
        "metadata": { "annotations": { "kubernetes.io/change-cause": "cart-worker 1.5.0: tidy up the environment" } },
        "spec": { "template": { "spec": { "containers": [{
            "name": "cart-worker", "image": format!("{REGISTRY}/shop/cart-worker:1.5.0"),
            "env": [{ "name": "REDIS_URL", "$patch": "delete" }],
        }] } } },
    })
}

fn redis() -> Value {
    json!({
        "apiVersion": "apps/v1", "kind": "StatefulSet", "metadata": { "name": "redis", "namespace": NAMESPACE, "labels": { "app": "redis" } },
        "spec": {
            "serviceName": "redis", "replicas": 1, "selector": { "matchLabels": { "app": "redis" } },
            "template": {
                "metadata": { "labels": { "app": "redis" } },
                "spec": { "containers": [{
                    "name": "redis", "image": "redis:7.4", "ports": [{ "name": "redis", "containerPort": 6379 }],
                    "volumeMounts": [{ "name": "data", "mountPath": "/data" }],
                }], "volumes": [{ "name": "data", "persistentVolumeClaim": { "claimName": "data-redis-0" } }] },
            },
            "volumeClaimTemplates": [{
                "metadata": { "name": "data" },
                "spec": { "accessModes": ["ReadWriteOnce"], "resources": { "requests": { "storage": "2Gi" } } },
            }],
        },
    })
}

fn ingress() -> Value {
    let backend = json!({ "service": { "name": "frontend", "port": { "number": 8080 } } });
    json!({
        "apiVersion": "networking.k8s.io/v1", "kind": "Ingress", "metadata": { "name": "shop", "namespace": NAMESPACE },
        "spec": { "ingressClassName": "sandbox", "rules": [{
            "host": "shop.sandbox.test", "http": { "paths": [{ "path": "/", "pathType": "Prefix", "backend": backend }] },
        }] },
    })
}

fn nightly() -> Value {
    json!({
        "apiVersion": "batch/v1", "kind": "CronJob", "metadata": { "name": "nightly-report", "namespace": NAMESPACE },
        "spec": { "schedule": "15 2 * * *", "jobTemplate": { "spec": { "template": { "spec": {
            "restartPolicy": "Never", "containers": [{ "name": "report", "image": format!("{REGISTRY}/shop/report:1.1") }],
        } } } } },
    })
}
