//! What a tool becomes: Deployment, Service and NetworkPolicy, or a container in somebody else's pod. Pure.

use crate::apply::WantedObject;
use crate::names::{self, AGENT_LABEL, OPERATOR, TOOL_LABEL};
use crate::resources::{LanguageTool, LanguageToolSpec};
use k8s_openapi::api::apps::v1::Deployment;
use k8s_openapi::api::core::v1::Service;
use k8s_openapi::api::networking::v1::NetworkPolicy;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::OwnerReference;
use kube::ResourceExt;
use kube::api::ApiResource;
use serde::Serialize;
use serde_json::{Map, Value, json};

/// The objects of a tool that runs in pods of its own, in the order in which they are written: the fence comes first.
pub fn all(tool: &LanguageTool, owner: &OwnerReference, agents: &[String], operator_in: &str) -> [WantedObject; 3] {
    let object = |resource, spec: Value| WantedObject {
        resource,
        namespace: tool.namespace().unwrap_or_default(),
        name: tool.name_any(),
        labels: json!(names::labels(TOOL_LABEL, &tool.name_any())),
        body: Map::from_iter([("spec".to_owned(), spec)]),
        owner: owner.clone(),
    };
    [
        object(ApiResource::erase::<NetworkPolicy>(&()), network_policy(tool, agents, operator_in)),
        object(ApiResource::erase::<Deployment>(&()), deployment(tool)),
        object(ApiResource::erase::<Service>(&()), service(tool)),
    ]
}

/// Lets the agents in that refer to the tool, and the operator, which asks what it offers. Nobody else.
fn network_policy(tool: &LanguageTool, agents: &[String], operator_in: &str) -> Value {
    let operator = json!({
        "namespaceSelector": { "matchLabels": { "kubernetes.io/metadata.name": operator_in } },
        "podSelector": { "matchLabels": { "app.kubernetes.io/name": OPERATOR } },
    });
    let mut from = vec![operator];
    if !agents.is_empty() {
        let one_of = json!({ "key": AGENT_LABEL, "operator": "In", "values": agents });
        from.push(json!({ "podSelector": { "matchExpressions": [one_of] } }));
    }
    json!({
        "podSelector": { "matchLabels": { TOOL_LABEL: tool.name_any() } },
        "policyTypes": ["Ingress"],
        "ingress": [{ "from": from, "ports": [{ "protocol": "TCP", "port": tool.spec.port }] }],
    })
}

fn service(tool: &LanguageTool) -> Value {
    json!({
        "type": "ClusterIP",
        "selector": { TOOL_LABEL: tool.name_any() },
        "ports": [{ "name": "mcp", "protocol": "TCP", "port": tool.spec.port, "targetPort": tool.spec.port }],
    })
}

fn deployment(tool: &LanguageTool) -> Value {
    let (spec, name) = (&tool.spec, tool.name_any());
    let mut labels = spec.pod_labels.clone().unwrap_or_default();
    labels.extend(names::labels(TOOL_LABEL, &name));
    let mut pod = Map::new();
    pod.insert("containers".to_owned(), json!([container(&name, spec)]));
    // Only a tool that was given an account of its own speaks to the API server.
    pod.insert("automountServiceAccountToken".to_owned(), json!(spec.service_account_name.is_some()));
    set(&mut pod, "volumes", spec.volumes.as_ref());
    set(&mut pod, "serviceAccountName", spec.service_account_name.as_ref());
    set(&mut pod, "imagePullSecrets", spec.image_pull_secrets.as_ref());
    set(&mut pod, "securityContext", spec.pod_security_context.as_ref());
    set(&mut pod, "nodeSelector", spec.node_selector.as_ref());
    set(&mut pod, "tolerations", spec.tolerations.as_ref());
    set(&mut pod, "affinity", spec.affinity.as_ref());
    let mut metadata = Map::from_iter([("labels".to_owned(), json!(labels))]);
    set(&mut metadata, "annotations", spec.pod_annotations.as_ref());
    let mut body = Map::new();
    body.insert("selector".to_owned(), json!({ "matchLabels": { TOOL_LABEL: name } }));
    body.insert("template".to_owned(), json!({ "metadata": metadata, "spec": pod }));
    set(&mut body, "replicas", spec.replicas.as_ref());
    Value::Object(body)
}

/// The container of a tool, in its own pod or in an agent's.
pub fn container(name: &str, spec: &LanguageToolSpec) -> Map<String, Value> {
    let health = json!({ "httpGet": { "path": "/health", "port": spec.port } });
    let confined = json!({ "allowPrivilegeEscalation": false, "capabilities": { "drop": ["ALL"] } });
    let mut container = Map::new();
    container.insert("name".to_owned(), json!(name));
    container.insert("image".to_owned(), json!(spec.image));
    container.insert("ports".to_owned(), json!([{ "containerPort": spec.port, "protocol": "TCP" }]));
    container.insert("readinessProbe".to_owned(), spec.readiness_probe.as_ref().map_or(health, |probe| json!(probe)));
    container.insert(
        "securityContext".to_owned(),
        spec.security_context.as_ref().map_or(confined, |context| json!(context)),
    );
    set(&mut container, "command", spec.command.as_ref());
    set(&mut container, "args", spec.args.as_ref());
    set(&mut container, "env", spec.env.as_ref());
    set(&mut container, "envFrom", spec.env_from.as_ref());
    set(&mut container, "resources", spec.resources.as_ref());
    set(&mut container, "livenessProbe", spec.liveness_probe.as_ref());
    set(&mut container, "startupProbe", spec.startup_probe.as_ref());
    set(&mut container, "imagePullPolicy", spec.image_pull_policy.as_ref());
    set(&mut container, "volumeMounts", spec.volume_mounts.as_ref());
    container
}

fn set<T: Serialize>(map: &mut Map<String, Value>, key: &str, value: Option<&T>) {
    if let Some(value) = value {
        map.insert(key.to_owned(), json!(value));
    }
}
