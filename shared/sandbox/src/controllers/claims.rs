//! PersistentVolumeClaims: a volume for every claim of the sandbox's storage class.

use serde_json::{Value, json};

use crate::json;
use crate::world::ClusterWorld;

pub(super) fn look(world: &mut ClusterWorld) {
    for claim in world.all("persistentvolumeclaims", "") {
        if json::text(&claim, "/status/phase") == Some("Pending") && !json::is_going(&claim) {
            bind(world, &claim);
        }
    }
}

fn bind(world: &mut ClusterWorld, claim: &Value) {
    let class = json::text_or_empty(claim, "/spec/storageClassName");
    let Some(class) = world.find("storageclasses.storage.k8s.io", "", class) else { return };
    let name = format!("pvc-{}", json::uid(claim));
    let capacity = claim.pointer("/spec/resources/requests").cloned().unwrap_or_else(|| json!({ "storage": "1Gi" }));
    let modes = claim.pointer("/spec/accessModes").cloned().unwrap_or_else(|| json!(["ReadWriteOnce"]));
    world.make(
        "persistentvolumes",
        json!({
            "metadata": { "name": name, "annotations": { "pv.kubernetes.io/provisioned-by": class["provisioner"] } },
            "spec": {
                "capacity": capacity, "accessModes": modes, "persistentVolumeReclaimPolicy": class["reclaimPolicy"],
                "storageClassName": json::name(&class), "volumeMode": "Filesystem",
                "claimRef": {
                    "apiVersion": "v1", "kind": "PersistentVolumeClaim", "namespace": json::namespace(claim),
                    "name": json::name(claim), "uid": json::uid(claim),
                },
                "csi": { "driver": class["provisioner"], "volumeHandle": name },
            },
            "status": { "phase": "Bound" },
        }),
    );
    world.change("persistentvolumeclaims", claim, |claim| {
        json::set(claim, "/spec/volumeName", name);
        json::set(claim, "/status", json!({ "phase": "Bound", "accessModes": modes, "capacity": capacity }));
    });
}
