"""fakelet: nodes for a control plane that has no machines.

Registers nodes, keeps their leases, and does for the pods bound to them what a kubelet would make visible: statuses,
events, logs, exec. No container ever runs. How a pod behaves is said in docs/testbed.md.

    fakelet --server URL --ca FILE --token FILE --port PORT --cert FILE --key FILE --nodes N --version V
"""

import argparse
import pathlib
import signal
import sys
import threading

import kubelet
import node
from api import Api
from pod import Pod


class Pods:
    """The pods bound to our nodes, by uid."""

    def __init__(self, nodes, api):
        self.nodes, self.api = {each.name for each in nodes}, api
        self.known = {}
        self.lock = threading.Lock()

    def find(self, namespace, name):
        with self.lock:
            named = [pod for pod in self.known.values() if (pod.namespace, pod.name) == (namespace, name)]
        return named[-1] if named else None

    def listed(self, items):
        present = {item["metadata"]["uid"] for item in items}
        for uid in set(self.known) - present:
            self.forget(uid)
        for item in items:
            self.seen("MODIFIED", item)

    def seen(self, kind, item):
        uid = item["metadata"]["uid"]
        if kind == "DELETED":
            self.forget(uid)
        elif kind in ("ADDED", "MODIFIED") and item["spec"].get("nodeName") in self.nodes:
            if uid not in self.known:
                self.take_in(uid, item)
            self.known[uid].update(item)

    def take_in(self, uid, item):
        pod = Pod(item, self.api)
        with self.lock:
            self.known[uid] = pod
        # One that has ended, or is to end, before we ever saw it is not brought to life again.
        ended = item.get("status", {}).get("phase") in ("Succeeded", "Failed")
        if not ended and not item["metadata"].get("deletionTimestamp"):
            pod.start()

    def forget(self, uid):
        with self.lock:
            pod = self.known.pop(uid, None)
        if pod:
            pod.stopped.set()


def main():
    parser = argparse.ArgumentParser(description="nodes for a control plane that has no machines")
    for option in ("server", "ca", "token", "cert", "key", "version"):
        parser.add_argument(f"--{option}", required=True)
    parser.add_argument("--port", type=int, required=True)
    parser.add_argument("--nodes", type=int, default=3)
    options = parser.parse_args()
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(0))
    threading.stack_size(512 * 1024)  # a pod takes two threads or more

    api = Api(options.server, options.ca, pathlib.Path(options.token).read_text().strip())
    nodes = [node.Node(number, options.port, options.version, api) for number in range(options.nodes)]
    pods = Pods(nodes, api)
    kubelet.listen(options.port, options.cert, options.key, options.ca, pods.find)
    for each in nodes:
        each.register()
    threading.Thread(target=node.keep_alive, args=(nodes,), daemon=True).start()
    print(f"nodes {', '.join(each.name for each in nodes)} on port {options.port}", flush=True)
    api.follow("/api/v1/pods", pods.listed, pods.seen)


main()
