//! Every field of every resource has an effect, and taking it away takes the effect away.

use crate::on_a_cluster::yard::{Yard, condition_of, template, using};
use operator::resources::definitions;
use serde_json::{Value, json};
use std::collections::BTreeSet;

/// A field, a value for it, the kind of object that shows it, where, and what is there then.
type Effect = (&'static str, Value, &'static str, &'static str, Value);

const CONTAINER: &str = "/spec/template/spec/containers/0";

fn effects_of_a_tool() -> Vec<Effect> {
    let pod =
        |field: &'static str, value: Value, place: &'static str| (field, value.clone(), "Deployment", place, value);
    let probe = json!({ "httpGet": { "path": "/live", "port": 8080, "scheme": "HTTP" }, "periodSeconds": 7,
        "timeoutSeconds": 1, "successThreshold": 1, "failureThreshold": 3 });
    let toleration = json!([{ "key": "gpu", "operator": "Exists", "effect": "NoSchedule" }]);
    let term = json!({ "topologyKey": "kubernetes.io/hostname", "labelSelector": { "matchLabels": { "a": "b" } } });
    let apart = json!({ "podAntiAffinity": { "requiredDuringSchedulingIgnoredDuringExecution": [term] } });
    let volume = json!([{ "name": "scratch", "emptyDir": { "sizeLimit": "1Mi" } }]);
    vec![
        (
            "image",
            json!("registry.example/tool:2"),
            "Deployment",
            "/spec/template/spec/containers/0/image",
            json!("registry.example/tool:2"),
        ),
        ("port", json!(9000), "Service", "/spec/ports/0/port", json!(9000)),
        ("port", json!(9000), "Service", "/spec/ports/0/targetPort", json!(9000)),
        ("port", json!(9000), "Deployment", "/spec/template/spec/containers/0/ports/0/containerPort", json!(9000)),
        (
            "port",
            json!(9000),
            "Deployment",
            "/spec/template/spec/containers/0/readinessProbe/httpGet/port",
            json!(9000),
        ),
        ("port", json!(9000), "NetworkPolicy", "/spec/ingress/0/ports/0/port", json!(9000)),
        ("replicas", json!(2), "Deployment", "/spec/replicas", json!(2)),
        pod("command", json!(["serve"]), "/spec/template/spec/containers/0/command"),
        pod("args", json!(["--fast"]), "/spec/template/spec/containers/0/args"),
        pod("env", json!([{ "name": "A", "value": "1" }]), "/spec/template/spec/containers/0/env"),
        pod(
            "envFrom",
            json!([{ "configMapRef": { "name": "x", "optional": true } }]),
            "/spec/template/spec/containers/0/envFrom",
        ),
        pod("resources", json!({ "requests": { "cpu": "10m" } }), "/spec/template/spec/containers/0/resources"),
        pod("livenessProbe", probe.clone(), "/spec/template/spec/containers/0/livenessProbe"),
        pod("readinessProbe", probe.clone(), "/spec/template/spec/containers/0/readinessProbe"),
        pod("startupProbe", probe, "/spec/template/spec/containers/0/startupProbe"),
        pod("securityContext", json!({ "runAsUser": 7 }), "/spec/template/spec/containers/0/securityContext"),
        pod("imagePullPolicy", json!("Never"), "/spec/template/spec/containers/0/imagePullPolicy"),
        pod("volumes", volume, "/spec/template/spec/volumes"),
        pod("serviceAccountName", json!("robot"), "/spec/template/spec/serviceAccountName"),
        (
            "serviceAccountName",
            json!("robot"),
            "Deployment",
            "/spec/template/spec/automountServiceAccountToken",
            json!(true),
        ),
        pod("imagePullSecrets", json!([{ "name": "pull" }]), "/spec/template/spec/imagePullSecrets"),
        pod("podSecurityContext", json!({ "fsGroup": 9 }), "/spec/template/spec/securityContext"),
        pod("nodeSelector", json!({ "disk": "fast" }), "/spec/template/spec/nodeSelector"),
        pod("tolerations", toleration, "/spec/template/spec/tolerations"),
        pod("affinity", apart, "/spec/template/spec/affinity"),
        ("podLabels", json!({ "team": "a" }), "Deployment", "/spec/template/metadata/labels/team", json!("a")),
        (
            "podAnnotations",
            json!({ "team/x": "a" }),
            "Deployment",
            "/spec/template/metadata/annotations/team~1x",
            json!("a"),
        ),
    ]
}

#[tokio::test(flavor = "multi_thread")]
async fn every_field_of_a_tool_has_an_effect_and_loses_it() {
    let Some(yard) = Yard::open().await else { return };
    let operator = yard.operator().await;
    let base = json!({ "image": "registry.example/tool:1" });
    yard.tool("every", base.clone()).await;
    for (field, value, kind, place, want) in effects_of_a_tool() {
        let before = yard.see(kind, "every", "to be there", |_| true).await.pointer(place).cloned();
        assert_ne!(before, Some(want.clone()), "{field} shows nothing at {place}");
        let mut spec = base.clone();
        spec[field] = value;
        yard.tool("every", spec).await;
        yard.see(kind, "every", &format!("{field} at {place}"), |object| object.pointer(place) == Some(&want)).await;
        yard.tool("every", base.clone()).await;
        // Nobody is overruled who scales: the number that was there stays.
        if field != "replicas" {
            let gone = format!("{place} as before {field}");
            yard.see(kind, "every", &gone, |object| object.pointer(place) != Some(&want)).await;
        }
    }
    // Mounts need a volume beside them.
    let mounted = json!({ "image": "registry.example/tool:1", "volumes": [{ "name": "s", "emptyDir": {} }],
        "volumeMounts": [{ "name": "s", "mountPath": "/s" }] });
    yard.tool("every", mounted).await;
    let place = format!("{CONTAINER}/volumeMounts/0/mountPath");
    yard.see("Deployment", "every", "the mount", |object| object.pointer(&place) == Some(&json!("/s"))).await;
    assert!(operator.stop().await);
}

/// Fields whose effect another test shows: where the tool runs, how it is asked, and a protocol of which there is one.
const ELSEWHERE: [&str; 5] = ["type", "deploymentMode", "path", "tokenSecretRef", "volumeMounts"];

#[test]
fn no_field_is_without_a_test() {
    for (file, definition) in definitions() {
        let definition = serde_json::to_value(definition).unwrap();
        let schema =
            &definition["spec"]["versions"][0]["schema"]["openAPIV3Schema"]["properties"]["spec"]["properties"];
        let fields: BTreeSet<&str> = schema.as_object().unwrap().keys().map(String::as_str).collect();
        let tested: BTreeSet<&str> = match file {
            "languagetools.langop.io.json" => {
                effects_of_a_tool().into_iter().map(|(field, ..)| field).chain(ELSEWHERE).collect()
            }
            _ => BTreeSet::from(["tools", "replicas", "template"]),
        };
        assert_eq!(fields, tested, "{file}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn every_field_of_an_agent_has_an_effect() {
    let Some(yard) = Yard::open().await else { return };
    let operator = yard.operator().await;
    yard.agent("every", using(&[])).await;
    let env = |object: &Value| object.pointer(&format!("{CONTAINER}/env/0/value")).cloned();
    yard.see("Deployment", "every", "no tools", |object| env(object) == Some(json!(""))).await;
    yard.tool("a", json!({ "image": "registry.example/a:1" })).await;

    let endpoint = format!("http://a.{}.svc.cluster.local:8080", yard.namespace);
    yard.agent("every", json!({ "tools": [{ "name": "a" }], "replicas": 3, "template": template() })).await;
    yard.see("Deployment", "every", "a tool", |object| {
        env(object) == Some(json!(endpoint)) && object["spec"]["replicas"] == 3
    })
    .await;
    yard.agent("every", json!({ "tools": [{ "name": "a", "enabled": false }], "template": template() })).await;
    yard.see("Deployment", "every", "the tool to be taken away", |object| env(object) == Some(json!(""))).await;
    let other = json!({ "metadata": { "labels": { "x": "y" } },
        "spec": { "containers": [{ "name": "other", "image": "registry.example/agent:2" }] } });
    yard.agent("every", json!({ "template": other })).await;
    yard.see("Deployment", "every", "another template", |object| {
        object.pointer(&format!("{CONTAINER}/name")) == Some(&json!("other"))
            && object["spec"]["template"]["spec"]["containers"].as_array().unwrap().len() == 1
            && object["spec"]["template"]["metadata"]["labels"]["x"] == "y"
    })
    .await;
    assert!(operator.stop().await);
}

#[tokio::test(flavor = "multi_thread")]
async fn the_api_server_refuses_what_cannot_be() {
    let Some(yard) = Yard::open().await else { return };
    let image = "registry.example/tool:1";
    for (name, spec, why) in [
        ("x", json!({}), "spec.image"),
        ("x", json!({ "image": "" }), "spec.image"),
        ("x", json!({ "image": image, "type": "openapi" }), "spec.type"),
        ("x", json!({ "image": image, "deploymentMode": "daemon" }), "spec.deploymentMode"),
        ("x", json!({ "image": image, "port": 0 }), "spec.port"),
        ("x", json!({ "image": image, "port": 65536 }), "spec.port"),
        ("x", json!({ "image": image, "path": "http://elsewhere/" }), "spec.path"),
        ("x", json!({ "image": image, "deploymentMode": "sidecar", "replicas": 2 }), "a sidecar has no pod of its own"),
        (
            "x",
            json!({ "image": image, "deploymentMode": "sidecar", "tokenSecretRef": { "name": "a", "key": "b" } }),
            "nobody asks a sidecar",
        ),
        ("7x", json!({ "image": image }), "the name becomes the name of a Service"),
        ("a.b", json!({ "image": image }), "the name becomes the name of a Service"),
    ] {
        let refused = yard.write("LanguageTool", name, spec.clone()).await.map(|_| ()).unwrap_err().to_string();
        assert!(refused.contains(why), "{spec}: {refused}");
    }
    let twice = json!({ "tools": [{ "name": "a" }, { "name": "a" }], "template": template() });
    let refused = yard.write("LanguageAgent", "x", twice).await.map(|_| ()).unwrap_err().to_string();
    assert!(refused.to_lowercase().contains("duplicate"), "{refused}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_generation_that_cannot_be_applied_leaves_the_last_good_one_in_force() {
    let Some(yard) = Yard::open().await else { return };
    let operator = yard.operator().await;
    yard.tool("steady", json!({ "image": "registry.example/tool:1" })).await;
    yard.see_condition("LanguageTool", "steady", "Ready", ("True", "ReplicasReady")).await;

    let wrong = json!({ "image": "registry.example/tool:2", "resources": { "limit": { "cpu": "1" } } });
    yard.tool("steady", wrong).await;
    let seen = yard.see_condition("LanguageTool", "steady", "Accepted", ("False", "Refused")).await;
    let accepted = condition_of(&seen, "Accepted");
    assert!(accepted["message"].as_str().unwrap().contains("limit"), "it names the field: {accepted}");
    assert_eq!(accepted["observedGeneration"], seen["metadata"]["generation"]);
    assert_eq!(seen["status"]["phase"], "Failed");
    assert_eq!(condition_of(&seen, "Ready")["status"], "True", "the old pods still serve");
    let deployment = yard.find("Deployment", "steady").await.unwrap();
    assert_eq!(deployment.pointer(&format!("{CONTAINER}/image")), Some(&json!("registry.example/tool:1")));

    yard.tool("steady", json!({ "image": "registry.example/tool:2" })).await;
    let seen = yard.see_condition("LanguageTool", "steady", "Accepted", ("True", "Applied")).await;
    assert_eq!(seen["status"]["observedGeneration"], seen["metadata"]["generation"]);
    assert!(operator.stop().await);
}
