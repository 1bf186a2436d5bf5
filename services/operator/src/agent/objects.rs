//! What an agent becomes: a ConfigMap and a Deployment of its template. Pure.

use crate::apply::WantedObject;
use crate::names::{self, AGENT_LABEL, CONFIG_FILE, CONFIG_FOLDER, CONFIG_VOLUME, MCP_SERVERS};
use crate::resources::{DeploymentMode, LanguageAgent, LanguageToolSpec};
use crate::tool::objects::container;
use k8s_openapi::api::apps::v1::Deployment;
use k8s_openapi::api::core::v1::ConfigMap;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::OwnerReference;
use kube::ResourceExt;
use kube::api::ApiResource;
use serde_json::{Map, Value, json};

/// A tool that an agent is given.
#[derive(Debug, Clone)]
pub struct GivenTool {
    /// Its name.
    pub name: String,
    /// Where the agent reaches it.
    pub endpoint: String,
    /// How it is run.
    pub spec: LanguageToolSpec,
}

/// The objects of an agent, in the order in which they are written: the pods need the ConfigMap.
pub fn all(agent: &LanguageAgent, owner: &OwnerReference, tools: &[GivenTool]) -> [WantedObject; 2] {
    let object = |resource, name, key: &str, value: Value| WantedObject {
        resource,
        namespace: agent.namespace().unwrap_or_default(),
        name,
        labels: json!(names::labels(AGENT_LABEL, &agent.name_any())),
        body: Map::from_iter([(key.to_owned(), value)]),
        owner: owner.clone(),
    };
    let (config, name) = (json!({ CONFIG_FILE: config(tools) }), agent.name_any());
    [
        object(ApiResource::erase::<ConfigMap>(&()), names::config_map(&name), "data", config),
        object(ApiResource::erase::<Deployment>(&()), name, "spec", deployment(agent, tools)),
    ]
}

/// The file that an agent reads. Names are quoted, so that a tool may be called `null` or `yes`.
fn config(tools: &[GivenTool]) -> String {
    if tools.is_empty() {
        return "tools: {}\n".to_owned();
    }
    let entry =
        |tool: &GivenTool| format!("  \"{}\":\n    endpoint: {}\n    protocol: mcp\n", tool.name, tool.endpoint);
    "tools:\n".to_owned() + &tools.iter().map(entry).collect::<String>()
}

fn deployment(agent: &LanguageAgent, tools: &[GivenTool]) -> Value {
    let name = agent.name_any();
    let mut template = agent.spec.template.clone();
    let metadata = object_at(&mut template, "metadata");
    let labels = object_at(metadata, "labels");
    labels.extend(names::labels(AGENT_LABEL, &name).into_iter().map(|(key, value)| (key, json!(value))));
    let pod = object_at(&mut template, "spec");
    let endpoints: Vec<&str> = tools.iter().map(|tool| tool.endpoint.as_str()).collect();
    for container in list_at(pod, "containers").iter_mut().filter_map(Value::as_object_mut) {
        connect(container, &endpoints.join(","));
    }
    let sidecars = tools.iter().filter(|tool| tool.spec.deployment_mode == DeploymentMode::Sidecar);
    for tool in sidecars {
        let mut sidecar = container(&tool.name, &tool.spec);
        // A sidecar is there before the agent starts, and after it has ended.
        sidecar.insert("restartPolicy".to_owned(), json!("Always"));
        list_at(pod, "initContainers").push(Value::Object(sidecar));
        list_at(pod, "volumes").extend(tool.spec.volumes.clone().unwrap_or_default());
    }
    let config = json!({ "name": CONFIG_VOLUME, "configMap": { "name": names::config_map(&name) } });
    list_at(pod, "volumes").push(config);
    let mut spec = Map::new();
    spec.insert("selector".to_owned(), json!({ "matchLabels": { AGENT_LABEL: name } }));
    spec.insert("template".to_owned(), Value::Object(template));
    if let Some(replicas) = agent.spec.replicas {
        spec.insert("replicas".to_owned(), json!(replicas));
    }
    Value::Object(spec)
}

/// Gives a container of the agent its tools. A variable of that name in the template is the operator's to set.
fn connect(container: &mut Map<String, Value>, endpoints: &str) {
    let env = list_at(container, "env");
    env.retain(|variable| variable["name"] != MCP_SERVERS);
    env.push(json!({ "name": MCP_SERVERS, "value": endpoints }));
    let mount = json!({ "name": CONFIG_VOLUME, "mountPath": CONFIG_FOLDER, "readOnly": true });
    list_at(container, "volumeMounts").push(mount);
}

/// The object under a key. Where something else is, an empty one takes its place, and the API server names what is missing.
fn object_at<'m>(map: &'m mut Map<String, Value>, key: &str) -> &'m mut Map<String, Value> {
    let value = map.entry(key.to_owned()).or_insert(Value::Null);
    if !value.is_object() {
        *value = json!({});
    }
    value.as_object_mut().expect("it is one now")
}

/// The same for lists.
fn list_at<'m>(map: &'m mut Map<String, Value>, key: &str) -> &'m mut Vec<Value> {
    let value = map.entry(key.to_owned()).or_insert(Value::Null);
    if !value.is_array() {
        *value = json!([]);
    }
    value.as_array_mut().expect("it is one now")
}

/// Why these tools cannot be given to one agent together, if they cannot.
pub fn clash(agent: &LanguageAgent, tools: &[GivenTool]) -> Option<String> {
    let mut taken: Vec<(u16, &str)> = Vec::new();
    let own =
        ["containers", "initContainers"].map(|key| agent.spec.template.get("spec").and_then(|spec| spec.get(key)));
    let own: Vec<&str> = own
        .into_iter()
        .flatten()
        .filter_map(Value::as_array)
        .flatten()
        .filter_map(|container| container["name"].as_str())
        .collect();
    for tool in tools.iter().filter(|tool| tool.spec.deployment_mode == DeploymentMode::Sidecar) {
        if own.contains(&tool.name.as_str()) {
            return Some(format!("the template has a container `{}`, which is the name of a sidecar", tool.name));
        }
        if let Some((port, other)) = taken.iter().find(|(port, _)| *port == tool.spec.port) {
            return Some(format!("the sidecars `{other}` and `{}` both listen on port {port}", tool.name));
        }
        taken.push((tool.spec.port, &tool.name));
    }
    None
}
