//! The simulated nodes.

use serde_json::{Value, json};

/// A node as its kubelet would report it. Its names say that nothing here is real.
pub(crate) fn node(number: usize, now: &str) -> Value {
    let name = format!("sandbox-node-{number}");
    let zone = ["a", "b", "c"][number % 3];
    let resources = json!({ "cpu": "4", "memory": "8148520Ki", "pods": "110", "ephemeral-storage": "61255492Ki" });
    let condition = |kind: &str, status: &str, reason: &str, message: &str| {
        json!({
            "type": kind, "status": status, "reason": reason, "message": message,
            "lastHeartbeatTime": now, "lastTransitionTime": now,
        })
    };
    json!({
        "metadata": {
            "name": name,
            "labels": {
                "kubernetes.io/hostname": name, "kubernetes.io/os": "linux", "kubernetes.io/arch": "amd64",
                "topology.kubernetes.io/zone": format!("sandbox-1{zone}"), "topology.kubernetes.io/region": "sandbox-1",
                "node.kubernetes.io/instance-type": "simulated",
            },
            "annotations": { "sandbox/simulated": "true", "node.alpha.kubernetes.io/ttl": "0" },
        },
        "spec": { "podCIDR": format!("10.244.{number}.0/24"), "providerID": format!("sandbox://simulated/{name}") },
        "status": {
            "capacity": resources, "allocatable": resources,
            "addresses": [
                { "type": "InternalIP", "address": format!("192.168.49.{}", number + 1) },
                { "type": "Hostname", "address": name },
            ],
            "conditions": [
                condition("MemoryPressure", "False", "KubeletHasSufficientMemory", "kubelet has sufficient memory available"),
                condition("DiskPressure", "False", "KubeletHasNoDiskPressure", "kubelet has no disk pressure"),
                condition("PIDPressure", "False", "KubeletHasSufficientPID", "kubelet has sufficient PID available"),
                condition("Ready", "True", "KubeletReady", "kubelet is posting ready status"),
            ],
            "nodeInfo": {
                "machineID": format!("sandbox{number}"), "systemUUID": format!("sandbox{number}"),
                "bootID": format!("sandbox{number}"), "kernelVersion": "6.1.0-simulated", "osImage": "Sandbox (simulated)",
                "containerRuntimeVersion": "sandbox://1.0", "kubeletVersion": crate::discovery::VERSION,
                "kubeProxyVersion": crate::discovery::VERSION, "operatingSystem": "linux", "architecture": "amd64",
            },
            "daemonEndpoints": { "kubeletEndpoint": { "Port": 10250 } },
        },
    })
}
