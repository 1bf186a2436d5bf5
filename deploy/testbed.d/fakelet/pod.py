"""One pod on one of our nodes: its containers, its status at the API server, its events, its end."""

import http.client
import threading

import clock
from container import Container, digest

class Pod:
    """`latest` is the object as last seen. Containers run in threads of their own and call `publish`."""

    def __init__(self, seen, api):
        self.latest, self.api = seen, api
        meta = seen["metadata"]
        self.namespace, self.name, self.uid = meta["namespace"], meta["name"], meta["uid"]
        self.title = f"{self.name}_{self.namespace}({self.uid})"
        self.path = f"/api/v1/namespaces/{self.namespace}/pods/{self.name}"
        self.begun = clock.now()
        self.stopped = threading.Event()
        self.leaving = False
        self.lock = threading.Lock()
        self.since = {}  # condition -> (status, moment of its last change)
        self.published = None
        # From the uid, so that a fakelet that was restarted comes to the same one: an address may not change.
        first, second, third = bytes.fromhex(digest(self.uid))[:3]
        self.address = f"10.{128 + first % 128}.{second}.{1 + third % 254}"
        # For the same reason it goes on counting where the last one stopped.
        counts = {c["name"]: c["restartCount"] for c in seen.get("status", {}).get("containerStatuses", [])}
        spec = seen["spec"]
        self.init = [Container(self, each, "init") for each in spec.get("initContainers", [])]
        self.main = [Container(self, each, "main", counts.get(each["name"], 0)) for each in spec["containers"]]
        self.ephemeral = []
        self.threads = []

    # --- what the object says

    def annotation(self, name):
        return (self.latest["metadata"].get("annotations") or {}).get(name, "")

    def behaviour(self):
        return self.annotation("sandbox/behave")

    def policy(self):
        return self.latest["spec"].get("restartPolicy", "Always")

    def container(self, name):
        return next((each for each in (*self.init, *self.main, *self.ephemeral) if each.name == name), None)

    # --- the life

    def start(self):
        threading.Thread(target=self.guarded, args=(self.live,), daemon=True).start()

    def live(self):
        self.publish()
        for each in self.init:
            if each.sidecar:
                self.threads.append(each.start())
            else:
                each.live()
                if each.exit_code() != 0:
                    return
        for each in self.main:
            each.state = {"waiting": {"reason": "ContainerCreating"}}
            self.threads.append(each.start())

    def update(self, seen):
        """Takes a newer version of the object; a debug container may have been added, or its end asked for."""
        self.latest = seen
        known = {each.name for each in self.ephemeral}
        for spec in seen["spec"].get("ephemeralContainers", []):
            if spec["name"] not in known:
                each = Container(self, spec, "ephemeral")
                self.ephemeral.append(each)
                self.threads.append(each.start())
        if seen["metadata"].get("deletionTimestamp") and not self.leaving:
            self.leaving = True
            threading.Thread(target=self.guarded, args=(self.leave,), daemon=True).start()

    def leave(self):
        """Stops the containers, lets their last states be seen, and tells the API server that nothing is left."""
        for each in self.main:
            if "running" in each.state:
                self.event("Normal", "Killing", f"Stopping container {each.name}", each)
        self.stopped.set()
        for thread in self.threads:
            thread.join(5)
        self.api.call("DELETE", self.path, {"gracePeriodSeconds": 0, "preconditions": {"uid": self.uid}})

    def guarded(self, work):
        """Runs `work`; a broken connection is worth a line in the log, not the life of the fakelet."""
        try:
            work()
        except (OSError, http.client.HTTPException) as broken:
            print(f"pod {self.title}: {broken!r}", flush=True)
        finally:
            self.api.hang_up()

    # --- what others see

    def phase(self):
        if any(each.exit_code() not in (0, None) for each in self.init):
            return "Failed"
        codes = [each.exit_code() for each in self.main]
        if all(code is not None for code in codes):
            return "Failed" if any(codes) else "Succeeded"
        started = any("running" in each.state or each.last or each.exit_code() is not None for each in self.main)
        return "Running" if started else "Pending"

    def conditions(self, phase):
        initialized = all(each.exit_code() == 0 or each.sidecar for each in self.init)
        ready = phase == "Running" and all(each.ready for each in self.main)
        waiting = [each.name for each in self.main if not each.ready]
        why = {"reason": "ContainersNotReady", "message": f"containers with unready status: [{' '.join(waiting)}]"}
        if phase == "Succeeded":
            why = {"reason": "PodCompleted"}
        for kind, holds in (
            ("PodReadyToStartContainers", phase not in ("Succeeded", "Failed")),
            ("Initialized", initialized),
            ("Ready", ready),
            ("ContainersReady", ready),
            ("PodScheduled", True),
        ):
            status = "True" if holds else "False"
            if self.since.get(kind, (None,))[0] != status:
                self.since[kind] = (status, clock.seconds(clock.now()))
            reason = why if kind.endswith("Ready") and not holds else {"reason": None, "message": None}
            yield {"type": kind, "status": status, "lastTransitionTime": self.since[kind][1], **reason}

    def publish(self):
        """Writes the status if it changed. The uid keeps it from a namesake that took the pod's place."""
        with self.lock:
            phase = self.phase()
            status = {
                "phase": phase,
                "observedGeneration": self.latest["metadata"].get("generation"),
                "hostIP": "127.0.0.1",
                "hostIPs": [{"ip": "127.0.0.1"}],
                "startTime": clock.seconds(self.begun),
                "conditions": list(self.conditions(phase)),
                "initContainerStatuses": [each.status() for each in self.init],
                "containerStatuses": [each.status() for each in self.main],
                "ephemeralContainerStatuses": [each.status() for each in self.ephemeral],
            }
            if phase != "Pending":
                status |= {"podIP": self.address, "podIPs": [{"ip": self.address}]}
            if status == self.published:
                return
            code, answer = self.api.patch(f"{self.path}/status", {"metadata": {"uid": self.uid}, "status": status})
            if code == 200:
                self.published = status
            elif code not in (404, 409):
                print(f"pod {self.title}: status {code} {answer.get('message')}", flush=True)

    def event(self, kind, reason, message, container):
        """Writes an event, or counts up the same one."""
        path = f"/api/v1/namespaces/{self.namespace}/events"
        name = f"{self.name}.{digest(self.uid + container.name + reason + message)[:16]}"
        moment = clock.seconds(clock.now())
        part = {"init": "initContainers", "main": "containers", "ephemeral": "ephemeralContainers"}[container.kind]
        written = {
            "metadata": {"name": name, "namespace": self.namespace},
            "involvedObject": {
                "apiVersion": "v1",
                "kind": "Pod",
                "namespace": self.namespace,
                "name": self.name,
                "uid": self.uid,
                "fieldPath": f"spec.{part}{{{container.name}}}",
            },
            "type": kind,
            "reason": reason,
            "message": message,
            "count": 1,
            "firstTimestamp": moment,
            "lastTimestamp": moment,
            "source": {"component": "kubelet", "host": self.latest["spec"]["nodeName"]},
            "reportingComponent": "kubelet",
            "reportingInstance": self.latest["spec"]["nodeName"],
        }
        status, _ = self.api.post(path, written)
        if status == 409:
            _, before = self.api.get(f"{path}/{name}")
            self.api.patch(f"{path}/{name}", {"count": before.get("count", 0) + 1, "lastTimestamp": moment})
