//! The shop's canary: a new version of the search, measured, well so far, and waiting for a person.

use serde_json::{Value, json};

use super::WorldStory;
use super::shop::{NAMESPACE, REGISTRY};

const NAME: &str = "search";

/// The version that serves, and how the next ones come in.
pub(super) fn first_release(story: &mut WorldStory<'_>) {
    let metric = json!({
        "name": "error-rate", "interval": "30s", "count": 3, "failureLimit": 1, "successCondition": "result[0] < 0.01",
        "provider": { "prometheus": {
            "address": "http://metrics.platform.svc:9100", "query": "rate(search_errors_total[1m])",
        } },
    });
    story.create(json!({
        "apiVersion": "argoproj.io/v1alpha1", "kind": "AnalysisTemplate",
        "metadata": { "name": "error-rate", "namespace": NAMESPACE }, "spec": { "metrics": [metric] },
    }));
    story.create(json!({
        "apiVersion": "argoproj.io/v1alpha1", "kind": "Rollout",
        "metadata": { "name": NAME, "namespace": NAMESPACE, "labels": { "app": NAME, "part-of": "shop" } },
        "spec": {
            "replicas": 4, "selector": { "matchLabels": { "app": NAME } }, "template": template("4.1.0"),
            "strategy": { "canary": { "steps": [
                { "setWeight": 25 },
                { "analysis": { "templates": [{ "templateName": "error-rate" }] } },
                { "pause": {} },
                { "setWeight": 50 },
                { "pause": { "duration": "10m" } },
            ] } },
        },
    }));
}

/// The version that is being tried.
pub(super) fn next_release(story: &mut WorldStory<'_>) {
    let change = json!({ "spec": { "template": template("4.2.0") } });
    story.patch("rollouts.argoproj.io", (NAMESPACE, NAME), &change);
}

fn template(tag: &str) -> Value {
    json!({
        "metadata": { "labels": { "app": NAME, "part-of": "shop" } },
        "spec": { "containers": [{
            "name": NAME, "image": format!("{REGISTRY}/shop/search:{tag}"), "ports": [{ "name": "http", "containerPort": 8080 }],
            "resources": { "requests": { "cpu": "100m", "memory": "128Mi" }, "limits": { "cpu": "500m", "memory": "256Mi" } },
        }] },
    })
}
