//! What the server fills in when a field is left out.

use serde_json::{Value, json};

use crate::json::{self, set_default};
use crate::kinds::ApiKind;
use crate::world::ClusterWorld;

/// Fills in the defaults of one object.
pub(crate) fn fill(world: &mut ClusterWorld, kind: &ApiKind, object: &mut Value) {
    match kind.type_name.as_str() {
        "core.v1.Pod" => pod(object),
        "core.v1.Service" => service(world, object),
        "core.v1.Namespace" => namespace(object),
        "core.v1.Secret" => secret(object),
        "core.v1.PersistentVolumeClaim" => {
            set_default(object, "/spec/volumeMode", "Filesystem");
            set_default(object, "/spec/storageClassName", "standard");
            set_default(object, "/status/phase", "Pending");
        }
        "apps.v1.Deployment" => deployment(object),
        "apps.v1.ReplicaSet" => workload(object),
        "apps.v1.StatefulSet" => stateful_set(object),
        "apps.v1.DaemonSet" => {
            workload(object);
            set_default(object, "/spec/revisionHistoryLimit", 10);
            set_default(object, "/spec/updateStrategy/type", "RollingUpdate");
            if object["spec"]["updateStrategy"]["type"] == "RollingUpdate" {
                set_default(object, "/spec/updateStrategy/rollingUpdate/maxUnavailable", 1);
                set_default(object, "/spec/updateStrategy/rollingUpdate/maxSurge", 0);
            }
        }
        "batch.v1.Job" => job(object),
        "batch.v1.CronJob" => cron_job(object),
        "autoscaling.v2.HorizontalPodAutoscaler" => set_default(object, "/spec/minReplicas", 1),
        "networking.v1.NetworkPolicy" => set_default(object, "/spec/policyTypes", json!(["Ingress"])),
        "storage.v1.StorageClass" => {
            set_default(object, "/reclaimPolicy", "Delete");
            set_default(object, "/volumeBindingMode", "Immediate");
        }
        "apiextensions.v1.CustomResourceDefinition" => definition(object),
        _ => {}
    }
}

fn pod(pod: &mut Value) {
    pod_spec(pod, "/spec");
    set_default(pod, "/spec/enableServiceLinks", true);
    set_default(pod, "/spec/serviceAccountName", "default");
    set_default(pod, "/spec/serviceAccount", pod["spec"]["serviceAccountName"].clone());
    set_default(pod, "/spec/preemptionPolicy", "PreemptLowerPriority");
    set_default(pod, "/spec/priority", 0);
    set_default(pod, "/status/phase", "Pending");
    set_default(pod, "/status/qosClass", quality(pod));
    admitted(pod);
}

/// What admission adds to a new pod: patience with a lost node, and the token of its account.
fn admitted(pod: &mut Value) {
    let uid = json::uid(pod).to_owned();
    if uid.is_empty() || pod.pointer("/status/startTime").is_some() {
        return;
    }
    for key in ["node.kubernetes.io/not-ready", "node.kubernetes.io/unreachable"] {
        if !json::list(pod, "/spec/tolerations").iter().any(|one| one["key"] == key) {
            let toleration =
                json!({ "key": key, "operator": "Exists", "effect": "NoExecute", "tolerationSeconds": 300 });
            json::list_mut(pod, "/spec/tolerations").push(toleration);
        }
    }
    let is_token = |volume: &Value| json::text_or_empty(volume, "/name").starts_with("kube-api-access-");
    let refused = pod.pointer("/spec/automountServiceAccountToken") == Some(&Value::Bool(false));
    if refused || json::list(pod, "/spec/volumes").iter().any(is_token) {
        return;
    }
    let name = format!("kube-api-access-{}", &crate::world::short_hash(&Value::String(uid))[..5]);
    let sources = json!([
        { "serviceAccountToken": { "expirationSeconds": 3607, "path": "token" } },
        { "configMap": { "name": "kube-root-ca.crt", "items": [{ "key": "ca.crt", "path": "ca.crt" }] } },
    ]);
    let volume = json!({ "name": name, "projected": { "defaultMode": 420, "sources": sources } });
    json::list_mut(pod, "/spec/volumes").push(volume);
    for container in json::list_mut(pod, "/spec/containers") {
        let mount =
            json!({ "name": name, "readOnly": true, "mountPath": "/var/run/secrets/kubernetes.io/serviceaccount" });
        json::list_mut(container, "/volumeMounts").push(mount);
    }
}

fn quality(pod: &Value) -> &'static str {
    let with = |at: &str| json::list(pod, "/spec/containers").iter().any(|one| one.pointer(at).is_some());
    let all = |at: &str| json::list(pod, "/spec/containers").iter().all(|one| one.pointer(at).is_some());
    let same = json::list(pod, "/spec/containers").iter().all(|one| {
        let requests = one.pointer("/resources/requests");
        requests.is_none() || requests == one.pointer("/resources/limits")
    });
    if all("/resources/limits/cpu") && all("/resources/limits/memory") && same {
        "Guaranteed"
    } else if with("/resources/requests") || with("/resources/limits") {
        "Burstable"
    } else {
        "BestEffort"
    }
}

/// Defaults of a pod's spec, wherever it stands.
fn pod_spec(object: &mut Value, at: &str) {
    let Some(spec) = object.pointer_mut(at) else { return };
    for (field, value) in [
        ("/restartPolicy", json!("Always")),
        ("/dnsPolicy", json!("ClusterFirst")),
        ("/schedulerName", json!("default-scheduler")),
        ("/terminationGracePeriodSeconds", json!(30)),
        ("/securityContext", json!({})),
    ] {
        set_default(spec, field, value);
    }
    for field in ["containers", "initContainers", "ephemeralContainers"] {
        for one in spec.get_mut(field).and_then(Value::as_array_mut).into_iter().flatten() {
            container(one);
        }
    }
    for volume in spec.get_mut("volumes").and_then(Value::as_array_mut).into_iter().flatten() {
        for source in ["configMap", "secret", "projected"] {
            if volume.get(source).is_some() {
                set_default(volume, &format!("/{source}/defaultMode"), 420);
            }
        }
    }
}

fn container(container: &mut Value) {
    let image = json::text_or_empty(container, "/image");
    let name = image.rsplit('/').next().unwrap_or(image);
    let latest = !image.contains('@') && name.rsplit_once(':').is_none_or(|(_, tag)| tag == "latest");
    set_default(container, "/imagePullPolicy", if latest { "Always" } else { "IfNotPresent" });
    set_default(container, "/terminationMessagePath", "/dev/termination-log");
    set_default(container, "/terminationMessagePolicy", "File");
    set_default(container, "/resources", json!({}));
    for port in container.get_mut("ports").and_then(Value::as_array_mut).into_iter().flatten() {
        set_default(port, "/protocol", "TCP");
    }
    for probe in ["livenessProbe", "readinessProbe", "startupProbe"] {
        if let Some(probe) = container.get_mut(probe).filter(|probe| probe.is_object()) {
            for (field, value) in
                [("/failureThreshold", 3), ("/periodSeconds", 10), ("/successThreshold", 1), ("/timeoutSeconds", 1)]
            {
                set_default(probe, field, value);
            }
            if probe.get("httpGet").is_some() {
                set_default(probe, "/httpGet/scheme", "HTTP");
                set_default(probe, "/httpGet/path", "/");
            }
        }
    }
    for variable in container.get_mut("env").and_then(Value::as_array_mut).into_iter().flatten() {
        if variable.pointer("/valueFrom/fieldRef").is_some() {
            set_default(variable, "/valueFrom/fieldRef/apiVersion", "v1");
        }
    }
}

fn workload(object: &mut Value) {
    set_default(object, "/spec/replicas", 1);
    if object["kind"] == "DaemonSet" {
        json::take(object, "/spec/replicas");
    }
    pod_spec(object, "/spec/template/spec");
}

fn deployment(object: &mut Value) {
    workload(object);
    set_default(object, "/spec/revisionHistoryLimit", 10);
    set_default(object, "/spec/progressDeadlineSeconds", 600);
    set_default(object, "/spec/strategy/type", "RollingUpdate");
    if object["spec"]["strategy"]["type"] == "RollingUpdate" {
        set_default(object, "/spec/strategy/rollingUpdate/maxSurge", "25%");
        set_default(object, "/spec/strategy/rollingUpdate/maxUnavailable", "25%");
    }
}

fn stateful_set(object: &mut Value) {
    workload(object);
    set_default(object, "/spec/revisionHistoryLimit", 10);
    set_default(object, "/spec/podManagementPolicy", "OrderedReady");
    set_default(object, "/spec/updateStrategy/type", "RollingUpdate");
    if object["spec"]["updateStrategy"]["type"] == "RollingUpdate" {
        set_default(object, "/spec/updateStrategy/rollingUpdate/partition", 0);
    }
    set_default(object, "/spec/persistentVolumeClaimRetentionPolicy/whenDeleted", "Retain");
    set_default(object, "/spec/persistentVolumeClaimRetentionPolicy/whenScaled", "Retain");
}

fn job(object: &mut Value) {
    for (field, value) in [("/spec/backoffLimit", json!(6)), ("/spec/suspend", json!(false))] {
        set_default(object, field, value);
    }
    if object.pointer("/spec/completions").is_none() && object.pointer("/spec/parallelism").is_none() {
        set_default(object, "/spec/completions", 1);
    }
    set_default(object, "/spec/parallelism", 1);
    set_default(object, "/spec/completionMode", "NonIndexed");
    set_default(object, "/spec/podReplacementPolicy", "TerminatingOrFailed");
    pod_spec(object, "/spec/template/spec");
    let uid = json::uid(object).to_owned();
    if !json::is_true(object, "/spec/manualSelector") && !uid.is_empty() {
        set_default(object, "/spec/selector/matchLabels/batch.kubernetes.io~1controller-uid", uid.clone());
        let name = json::name(object).to_owned();
        for (label, value) in [
            ("batch.kubernetes.io/controller-uid", &uid),
            ("batch.kubernetes.io/job-name", &name),
            ("controller-uid", &uid),
            ("job-name", &name),
        ] {
            set_default(object, &format!("/spec/template/metadata/labels/{}", json::escaped(label)), value.clone());
        }
    }
}

fn cron_job(object: &mut Value) {
    for (field, value) in [
        ("/spec/concurrencyPolicy", json!("Allow")),
        ("/spec/suspend", json!(false)),
        ("/spec/successfulJobsHistoryLimit", json!(3)),
        ("/spec/failedJobsHistoryLimit", json!(1)),
    ] {
        set_default(object, field, value);
    }
    pod_spec(object, "/spec/jobTemplate/spec/template/spec");
}

fn namespace(object: &mut Value) {
    let name = json::name(object).to_owned();
    json::set(object, "/metadata/labels/kubernetes.io~1metadata.name", name);
    set_default(object, "/spec/finalizers", json!(["kubernetes"]));
    set_default(object, "/status/phase", "Active");
}

pub(crate) fn secret(object: &mut Value) {
    use base64::Engine as _;
    set_default(object, "/type", "Opaque");
    for (key, value) in json::take(object, "/stringData").as_ref().and_then(Value::as_object).into_iter().flatten() {
        let encoded = base64::engine::general_purpose::STANDARD.encode(value.as_str().unwrap_or_default());
        json::set(object, &format!("/data/{}", json::escaped(key)), encoded);
    }
}

fn service(world: &mut ClusterWorld, object: &mut Value) {
    set_default(object, "/spec/type", "ClusterIP");
    set_default(object, "/spec/sessionAffinity", "None");
    let kind = json::text_or_empty(object, "/spec/type").to_owned();
    if kind != "ExternalName" {
        let headless = json::text(object, "/spec/clusterIP") == Some("None");
        if !headless {
            let wanted = json::text(object, "/spec/clusterIP").filter(|ip| !ip.is_empty()).map(str::to_owned);
            let address = wanted.unwrap_or_else(|| world.next_address("10.96"));
            json::set(object, "/spec/clusterIP", address);
        }
        set_default(object, "/spec/clusterIPs", json!([object["spec"]["clusterIP"]]));
        set_default(object, "/spec/ipFamilies", json!(["IPv4"]));
        set_default(object, "/spec/ipFamilyPolicy", "SingleStack");
        set_default(object, "/spec/internalTrafficPolicy", "Cluster");
    }
    let outside = kind == "NodePort" || kind == "LoadBalancer";
    for (at, port) in object["spec"].get_mut("ports").and_then(Value::as_array_mut).into_iter().flatten().enumerate() {
        set_default(port, "/protocol", "TCP");
        set_default(port, "/targetPort", port["port"].clone());
        if outside {
            let base = json::int(port, "/port", 0) % 2000;
            set_default(port, "/nodePort", 30_000 + base + i64::try_from(at).unwrap_or_default());
        }
    }
    set_default(object, "/status/loadBalancer", json!({}));
}

fn definition(object: &mut Value) {
    set_default(object, "/spec/conversion/strategy", "None");
    let kind = json::text_or_empty(object, "/spec/names/kind").to_owned();
    set_default(object, "/spec/names/singular", kind.to_lowercase());
    set_default(object, "/spec/names/listKind", format!("{kind}List"));
}
