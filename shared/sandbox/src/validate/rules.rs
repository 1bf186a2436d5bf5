//! Rules of single kinds that hold for every write.

use serde_json::Value;

use crate::json;
use crate::kinds::ApiKind;
use crate::schema::{SchemaNode, Types};
use crate::selector::Labels;
use crate::status::{ApiStatus, FieldCause};

const SUBDOMAIN: &str = "a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or '.', \
     and must start and end with an alphanumeric character (e.g. 'example.com', regex used for validation is \
     '[a-z0-9]([-a-z0-9]*[a-z0-9])?(\\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*')";
const LABEL: &str = "a lowercase RFC 1123 label must consist of lower case alphanumeric characters or '-', \
     and must start and end with an alphanumeric character (e.g. 'my-name',  or '123-abc', regex used for validation is \
     '[a-z0-9]([-a-z0-9]*[a-z0-9])?')";
const LABEL_VALUE: &str = "a valid label must be an empty string or consist of alphanumeric characters, '-', '_' or '.', \
     and must start and end with an alphanumeric character (e.g. 'MyValue',  or 'my_value',  or '12345', regex used for \
     validation is '(([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9])?')";

/// Refuses an object that breaks a rule of its kind.
pub(crate) fn check_rules(object: &Value, kind: &ApiKind, types: &Types, place: &SchemaNode) -> Result<(), ApiStatus> {
    let mut causes = Vec::new();
    check_name(object, kind, &mut causes);
    check_labels(object, &mut causes);
    causes.extend(super::missing(object, types, place));
    match kind.type_name.as_str() {
        "core.v1.Pod" => check_pod_spec(object.get("spec"), "spec", &mut causes),
        "apps.v1.Deployment" | "apps.v1.ReplicaSet" | "apps.v1.StatefulSet" | "apps.v1.DaemonSet" => {
            check_workload(object, &mut causes);
        }
        "batch.v1.Job" => {
            check_pod_spec(object.pointer("/spec/template/spec"), "spec.template.spec", &mut causes);
            check_job_restart(object, "/spec/template/spec", &mut causes);
        }
        "core.v1.Service" => check_service(object, &mut causes),
        "core.v1.ConfigMap" | "core.v1.Secret" => check_keys(object, &mut causes),
        _ => {}
    }
    if causes.is_empty() { Ok(()) } else { Err(ApiStatus::invalid(&kind.named(), json::name(object), &causes)) }
}

fn check_name(object: &Value, kind: &ApiKind, causes: &mut Vec<FieldCause>) {
    let name = json::name(object);
    if name.is_empty() {
        causes.push(FieldCause::required("metadata.name", "name or generateName is required"));
        return;
    }
    if kind.group == "rbac.authorization.k8s.io" {
        return; // Path segments: anything without a slash, which a URL cannot carry anyway.
    }
    let as_label = matches!(kind.plural.as_str(), "namespaces" | "services");
    let fits = if as_label { is_label(name) } else { name.len() <= 253 && name.split('.').all(is_label) };
    if !fits {
        let rule = if as_label { LABEL } else { SUBDOMAIN };
        causes.push(FieldCause::invalid("metadata.name", &Value::String(name.to_owned()), rule));
    }
}

fn is_label(text: &str) -> bool {
    let edge = |c: Option<char>| c.is_some_and(|c| c.is_ascii_lowercase() || c.is_ascii_digit());
    let inner = text.chars().all(|c| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '-');
    inner && text.len() <= 253 && edge(text.chars().next()) && edge(text.chars().last())
}

fn check_labels(object: &Value, causes: &mut Vec<FieldCause>) {
    for (_, value) in json::map(object, "/metadata/labels").into_iter().flatten() {
        let text = value.as_str().unwrap_or_default();
        let fits = |c: char| c.is_ascii_alphanumeric() || "-_.".contains(c);
        let edges = [text.chars().next(), text.chars().last()];
        let edges = edges.iter().flatten().all(char::is_ascii_alphanumeric);
        if text.len() > 63 || !text.chars().all(fits) || !edges {
            causes.push(FieldCause::invalid("metadata.labels", value, LABEL_VALUE));
        }
    }
}

fn check_workload(object: &Value, causes: &mut Vec<FieldCause>) {
    let selector = object.pointer("/spec/selector").unwrap_or(&Value::Null);
    let labels = object.pointer("/spec/template/metadata/labels").unwrap_or(&Value::Null);
    let parsed = Labels::of_object(selector);
    if !selector.is_null() && parsed.is_empty() {
        causes.push(FieldCause::invalid("spec.selector", selector, "empty selector is invalid for deployment"));
    } else if !selector.is_null() && !parsed.matches_labels(labels) {
        let why = "`selector` does not match template `labels`";
        causes.push(FieldCause::invalid("spec.template.metadata.labels", labels, why));
    }
    if json::int(object, "/spec/replicas", 0) < 0 {
        let why = "must be greater than or equal to 0";
        causes.push(FieldCause::invalid("spec.replicas", &object["spec"]["replicas"], why));
    }
    check_pod_spec(object.pointer("/spec/template/spec"), "spec.template.spec", causes);
    let restart = json::text(object, "/spec/template/spec/restartPolicy").unwrap_or("Always");
    if restart != "Always" {
        causes.push(FieldCause::not_supported("spec.template.spec.restartPolicy", restart, &["Always"]));
    }
}

fn check_job_restart(object: &Value, at: &str, causes: &mut Vec<FieldCause>) {
    let restart = json::text(object, &format!("{at}/restartPolicy")).unwrap_or("Always");
    if restart == "Always" {
        let field = format!("{}.restartPolicy", at[1..].replace('/', "."));
        causes.push(FieldCause::not_supported(field, restart, &["OnFailure", "Never"]));
    }
}

fn check_pod_spec(spec: Option<&Value>, path: &str, causes: &mut Vec<FieldCause>) {
    let Some(spec) = spec else { return };
    if spec.get("containers").is_some_and(|one| one.as_array().is_some_and(Vec::is_empty)) {
        causes.push(FieldCause::required(format!("{path}.containers"), ""));
    }
    let volumes: Vec<&str> = json::list(spec, "/volumes").iter().filter_map(|one| json::text(one, "/name")).collect();
    let mut seen: Vec<&str> = Vec::new();
    for field in ["initContainers", "containers"] {
        for (at, container) in json::list(spec, &format!("/{field}")).iter().enumerate() {
            let here = format!("{path}.{field}[{at}]");
            let name = json::text_or_empty(container, "/name");
            if seen.contains(&name) {
                causes.push(FieldCause::duplicate(format!("{here}.name"), name));
            }
            seen.push(name);
            if !name.is_empty() && !is_label(name) {
                causes.push(FieldCause::invalid(format!("{here}.name"), &container["name"], LABEL));
            }
            if json::text_or_empty(container, "/image").is_empty() {
                causes.push(FieldCause::required(format!("{here}.image"), ""));
            }
            for (mount_at, mount) in json::list(container, "/volumeMounts").iter().enumerate() {
                let name = json::text_or_empty(mount, "/name");
                if !volumes.contains(&name) {
                    causes.push(FieldCause::not_found(format!("{here}.volumeMounts[{mount_at}].name"), name));
                }
            }
        }
    }
}

fn check_service(object: &Value, causes: &mut Vec<FieldCause>) {
    let ports = json::list(object, "/spec/ports");
    let kind = json::text(object, "/spec/type").unwrap_or("ClusterIP");
    if !["ClusterIP", "NodePort", "LoadBalancer", "ExternalName"].contains(&kind) {
        causes.push(FieldCause::not_supported(
            "spec.type",
            kind,
            &["ClusterIP", "ExternalName", "LoadBalancer", "NodePort"],
        ));
    }
    if ports.is_empty() && kind != "ExternalName" && json::text(object, "/spec/clusterIP") != Some("None") {
        causes.push(FieldCause::required("spec.ports", ""));
    }
    for (at, port) in ports.iter().enumerate() {
        if !(1..=65_535).contains(&json::int(port, "/port", 0)) {
            let why = "must be between 1 and 65535, inclusive";
            causes.push(FieldCause::invalid(format!("spec.ports[{at}].port"), &port["port"], why));
        }
        if ports.len() > 1 && port.get("name").is_none() {
            causes.push(FieldCause::required(format!("spec.ports[{at}].name"), ""));
        }
    }
}

fn check_keys(object: &Value, causes: &mut Vec<FieldCause>) {
    for (key, _) in json::map(object, "/data").into_iter().flatten() {
        if key.is_empty() || !key.chars().all(|c| c.is_ascii_alphanumeric() || "-_.".contains(c)) {
            let why = "a valid config key must consist of alphanumeric characters, '-', '_' or '.' (e.g. 'key.name',  or \
                       'KEY_NAME',  or 'key-name', regex used for validation is '[-._a-zA-Z0-9]+')";
            causes.push(FieldCause::invalid(format!("data[{key}]"), &Value::String(key.clone()), why));
        }
    }
}
