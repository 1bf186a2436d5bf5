"""Our nodes at the API server: registered once, kept alive by leases."""

import http.client
import time

import clock

LEASES = "/apis/coordination.k8s.io/v1/namespaces/kube-node-lease/leases"
RENEW_EVERY = 10  # seconds, as a real kubelet
STATUS_EVERY = 18  # renewals between two full statuses: three minutes


class Node:
    def __init__(self, number, port, version, api):
        self.name, self.port, self.version, self.api = f"node-{number}", port, version, api
        self.zone = f"zone-{'abc'[number % 3]}"
        self.ready_since = clock.seconds(clock.now())

    def register(self):
        labels = {
            "kubernetes.io/hostname": self.name,
            "kubernetes.io/os": "linux",
            "kubernetes.io/arch": "amd64",
            "node.kubernetes.io/instance-type": "simulated",
            "topology.kubernetes.io/region": "loopback",
            "topology.kubernetes.io/zone": self.zone,
        }
        self.api.post("/api/v1/nodes", {"metadata": {"name": self.name, "labels": labels}})
        self.publish()

    def publish(self):
        size = {"cpu": "16", "memory": "64Gi", "pods": "110", "ephemeral-storage": "100Gi"}
        conditions = [
            ("MemoryPressure", "False", "KubeletHasSufficientMemory"),
            ("DiskPressure", "False", "KubeletHasNoDiskPressure"),
            ("PIDPressure", "False", "KubeletHasSufficientPID"),
            ("Ready", "True", "KubeletReady"),
        ]
        status = {
            "capacity": size,
            "allocatable": size,
            "addresses": [
                {"type": "InternalIP", "address": "127.0.0.1"},
                {"type": "Hostname", "address": self.name},
            ],
            "daemonEndpoints": {"kubeletEndpoint": {"Port": self.port}},
            "nodeInfo": {
                "architecture": "amd64",
                "operatingSystem": "linux",
                "osImage": "simulated",
                "kernelVersion": "0",
                "kubeletVersion": self.version,
                "kubeProxyVersion": "",
                "containerRuntimeVersion": "fakelet://1",
                "machineID": self.name,
                "systemUUID": self.name,
                "bootID": self.name,
            },
            "conditions": [
                {
                    "type": kind,
                    "status": holds,
                    "reason": reason,
                    "message": "simulated by the testbed",
                    "lastHeartbeatTime": clock.seconds(clock.now()),
                    "lastTransitionTime": self.ready_since,
                }
                for kind, holds, reason in conditions
            ],
        }
        code, answer = self.api.patch(f"/api/v1/nodes/{self.name}/status", {"status": status})
        if code != 200:
            print(f"node {self.name}: status {code} {answer.get('message')}", flush=True)

    def renew(self):
        spec = {
            "holderIdentity": self.name,
            "leaseDurationSeconds": 40,
            "renewTime": clock.micros(clock.now()),
        }
        code, _ = self.api.patch(f"{LEASES}/{self.name}", {"spec": spec})
        if code == 404:
            self.api.post(LEASES, {"metadata": {"name": self.name, "namespace": "kube-node-lease"}, "spec": spec})

    def beat(self, count):
        """A node that a test deleted comes back, as if its machine had been started anew."""
        self.renew()
        if self.api.get(f"/api/v1/nodes/{self.name}")[0] == 404:
            self.register()
        elif count % STATUS_EVERY == 0:
            self.publish()


def keep_alive(nodes):
    count = 0
    while True:
        for node in nodes:
            try:
                node.beat(count)
            except (OSError, http.client.HTTPException) as broken:
                print(f"node {node.name}: {broken!r}", flush=True)
        count += 1
        time.sleep(RENEW_EVERY)
