//! Fields that may not change once they are set.

use serde_json::Value;

use crate::json;
use crate::kinds::ApiKind;
use crate::status::{ApiStatus, FieldCause};

const FIXED: &str = "field is immutable";

/// Refuses a write that changes what is fixed.
pub(crate) fn check_fixed(before: &Value, after: &Value, kind: &ApiKind) -> Result<(), ApiStatus> {
    let mut causes = Vec::new();
    let mut fixed = |at: &str, why: &str| {
        let (was, is) = (before.pointer(at), after.pointer(at));
        if was != is {
            let field = at[1..].replace('/', ".");
            causes.push(FieldCause::invalid(field, is.unwrap_or(&Value::Null), why));
        }
    };
    match kind.type_name.as_str() {
        "apps.v1.Deployment" | "apps.v1.ReplicaSet" | "apps.v1.DaemonSet" => fixed("/spec/selector", FIXED),
        "batch.v1.Job" => {
            fixed("/spec/selector", FIXED);
            fixed("/spec/completions", FIXED);
            fixed("/spec/template", FIXED);
        }
        "rbac.v1.RoleBinding" | "rbac.v1.ClusterRoleBinding" => fixed("/roleRef", "cannot change roleRef"),
        "storage.v1.StorageClass" => {
            fixed("/provisioner", FIXED);
            fixed("/parameters", FIXED);
            fixed("/reclaimPolicy", FIXED);
        }
        "core.v1.Secret" => {
            fixed("/type", FIXED);
            frozen_data(before, after, &mut causes);
        }
        "core.v1.ConfigMap" => frozen_data(before, after, &mut causes),
        "core.v1.Service" => service(before, after, &mut causes),
        "core.v1.Pod" => pod(before, after, &mut causes),
        "apps.v1.StatefulSet" => stateful_set(before, after, &mut causes),
        "core.v1.PersistentVolumeClaim" => claim(before, after, &mut causes),
        "apiextensions.v1.CustomResourceDefinition" => {
            fixed("/spec/group", FIXED);
            fixed("/spec/scope", FIXED);
            fixed("/spec/names/plural", FIXED);
        }
        _ => {}
    }
    if causes.is_empty() { Ok(()) } else { Err(ApiStatus::invalid(&kind.named(), json::name(after), &causes)) }
}

fn frozen_data(before: &Value, after: &Value, causes: &mut Vec<FieldCause>) {
    if !json::is_true(before, "/immutable") {
        return;
    }
    for field in ["immutable", "data", "binaryData"] {
        if before.get(field) != after.get(field) {
            causes.push(FieldCause::forbidden(field, "field is immutable when `immutable` is set"));
        }
    }
}

fn service(before: &Value, after: &Value, causes: &mut Vec<FieldCause>) {
    let was = json::text_or_empty(before, "/spec/clusterIP");
    let is = json::text_or_empty(after, "/spec/clusterIP");
    let external = json::text(after, "/spec/type") == Some("ExternalName");
    if !was.is_empty() && was != is && !external {
        let shown = Value::Array(vec![Value::String(is.to_owned())]);
        causes.push(FieldCause::invalid("spec.clusterIPs[0]", &shown, "may not change once set"));
    }
}

fn pod(before: &Value, after: &Value, causes: &mut Vec<FieldCause>) {
    let without_free_fields = |pod: &Value| {
        let mut spec = pod.get("spec").cloned().unwrap_or_default();
        for at in ["/activeDeadlineSeconds", "/tolerations", "/terminationGracePeriodSeconds", "/ephemeralContainers"] {
            json::take(&mut spec, at);
        }
        for field in ["containers", "initContainers"] {
            for one in spec.get_mut(field).and_then(Value::as_array_mut).into_iter().flatten() {
                json::take(one, "/image");
            }
        }
        spec
    };
    if without_free_fields(before) != without_free_fields(after) {
        let why = "pod updates may not change fields other than `spec.containers[*].image`,\
                   `spec.initContainers[*].image`,`spec.activeDeadlineSeconds`,`spec.tolerations` (only additions to \
                   existing tolerations),`spec.terminationGracePeriodSeconds` (allow it to be set to 1 if it was \
                   previously negative)";
        causes.push(FieldCause::forbidden("spec", why));
    }
}

fn stateful_set(before: &Value, after: &Value, causes: &mut Vec<FieldCause>) {
    let fixed_part = |set: &Value| {
        let mut spec = set.get("spec").cloned().unwrap_or_default();
        for field in [
            "replicas",
            "ordinals",
            "template",
            "updateStrategy",
            "revisionHistoryLimit",
            "persistentVolumeClaimRetentionPolicy",
            "minReadySeconds",
        ] {
            json::take(&mut spec, &format!("/{field}"));
        }
        spec
    };
    if fixed_part(before) != fixed_part(after) {
        let why = "updates to statefulset spec for fields other than 'replicas', 'ordinals', 'template', \
                   'updateStrategy', 'revisionHistoryLimit', 'persistentVolumeClaimRetentionPolicy' and \
                   'minReadySeconds' are forbidden";
        causes.push(FieldCause::forbidden("spec", why));
    }
}

fn claim(before: &Value, after: &Value, causes: &mut Vec<FieldCause>) {
    let fixed_part = |claim: &Value| {
        let mut spec = claim.get("spec").cloned().unwrap_or_default();
        json::take(&mut spec, "/resources");
        json::take(&mut spec, "/volumeName");
        json::take(&mut spec, "/volumeAttributesClassName");
        spec
    };
    if fixed_part(before) != fixed_part(after) {
        let why =
            "spec is immutable after creation except resources.requests and volumeAttributesClassName for bound claims";
        causes.push(FieldCause::forbidden("spec", why));
    }
}
