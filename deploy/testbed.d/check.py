"""Whether a testbed is one: what the tests rely on, asked of the running thing through its API server.

    deploy/testbed check

Works in a namespace of its own and removes it. Ends with an error at the first promise that does not hold.
"""

import base64
import json
import os
import pathlib
import socket
import sys
import time
import urllib.parse

sys.path.insert(0, str(pathlib.Path(__file__).parent / "fakelet"))

import clock  # noqa: E402
import websocket  # noqa: E402
from api import Api  # noqa: E402
from wire import Wire  # noqa: E402

FOLDER = pathlib.Path(sys.argv[1])
SPACE = f"check-{os.getpid()}"
CORE = f"/api/v1/namespaces/{SPACE}"
APPS = f"/apis/apps/v1/namespaces/{SPACE}"


def client(name):
    config = json.loads((FOLDER / "kubeconfig" / name).read_text())
    return Api(config["clusters"][0]["cluster"]["server"], FOLDER / "pki/ca.crt", config["users"][0]["user"]["token"])


ADMIN = client("admin")


def check(what, holds, seen=""):
    print(f"  {'ok      ' if holds else 'FAILED  '}{what}", flush=True)
    if not holds:
        sys.exit(f"seen: {seen}")


def create(path, body):
    status, answer = ADMIN.post(path, body)
    check(f"{body['kind']} {body['metadata']['name']} is created", status == 201, answer)


def eventually(what, look):
    """Waits until `look()` gives something true, and gives that."""
    end = time.monotonic() + 60
    while not (found := look()):
        if time.monotonic() > end:
            check(what, False, "nothing within 60 s")
        time.sleep(0.1)
    check(what, True)
    return found


def pods(label):
    return ADMIN.get(f"{CORE}/pods?labelSelector=app%3D{label}")[1]["items"]


def waiting(label):
    """What the containers of these pods wait for."""
    statuses = [each for pod in pods(label) for each in pod["status"].get("containerStatuses", [])]
    return {each["state"].get("waiting", {}).get("reason") for each in statuses}


def deployment(name, image="shop/cart:1", replicas=1, annotations=None, env=()):
    container = {"name": "web", "image": image, "env": list(env)}
    meta = {"labels": {"app": name}, "annotations": annotations or {}}
    template = {"metadata": meta, "spec": {"containers": [container]}}
    spec = {"replicas": replicas, "selector": {"matchLabels": {"app": name}}, "template": template}
    return {"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": name}, "spec": spec}


def settled(name):
    found = ADMIN.get(f"{APPS}/deployments/{name}")[1]
    status, wanted = found["status"], found["spec"]["replicas"]
    return status.get("observedGeneration") == found["metadata"]["generation"] and all(
        status.get(count) == wanted for count in ("replicas", "updatedReplicas", "availableReplicas")
    )


def raw(path):
    """GET of something that is not JSON."""
    connection = ADMIN.connect(20)
    connection.request("GET", path, headers={**ADMIN.headers(), "Accept": "*/*"})
    answer = connection.getresponse()
    return answer.status, answer.read().decode()


class Client(websocket.WebSocket):
    """The other end of the channel protocol: masks what it sends, keeps what it is sent."""

    def __init__(self, pod, protocol, command):
        asked = {"stdin": "true", "stdout": "true", "stderr": "true", "command": command}
        query = urllib.parse.urlencode(asked, doseq=True)
        plain = socket.create_connection((ADMIN.host, ADMIN.port))
        connection = ADMIN.tls.wrap_socket(plain, server_hostname=ADMIN.host)
        key = base64.b64encode(os.urandom(16)).decode()
        lines = (
            f"GET {CORE}/pods/{pod}/exec?{query} HTTP/1.1",
            f"Host: {ADMIN.host}",
            f"Authorization: Bearer {ADMIN.token}",
            "Connection: Upgrade",
            "Upgrade: websocket",
            "Sec-WebSocket-Version: 13",
            f"Sec-WebSocket-Key: {key}",
            f"Sec-WebSocket-Protocol: {protocol}",
        )
        connection.sendall("".join(f"{line}\r\n" for line in (*lines, "")).encode())
        super().__init__(Wire(connection))
        head = b""
        while not head.endswith(b"\r\n\r\n"):
            head += self.wire.receive(1)
        self.accepted = b" 101 " in head.split(b"\r\n")[0] and websocket.accept(key).encode() in head

    def send(self, kind, body):
        size = bytes([0x80 | len(body)])  # nothing here is longer than 125 bytes
        self.wire.send(bytes([0x80 | kind]) + size + bytes(4) + body)  # a mask of zeros is a mask

    def talk(self, text, closes):
        """Sends input, and gives all that comes back, by channel."""
        self.send(websocket.BINARY, bytes([websocket.STDIN]) + text)
        if closes:
            self.send(websocket.BINARY, bytes([websocket.CLOSE, websocket.STDIN]))
        came = {1: b"", 2: b"", websocket.STATUS: b""}
        while not came[websocket.STATUS]:
            _, kind, body = self.receive()
            if kind == websocket.BINARY and body[0] in came:
                came[body[0]] += body[1:]
        return came


def workloads():
    create(f"{APPS}/deployments", deployment("cart", replicas=3, annotations={"sandbox/log": "a planted line"}))
    eventually("its pods become ready", lambda: settled("cart"))
    newer = {"containers": [{"name": "web", "image": "shop/cart:2"}]}
    ADMIN.patch(f"{APPS}/deployments/cart", {"spec": {"template": {"spec": newer}}})
    eventually("a rollout replaces them", lambda: settled("cart") and len(pods("cart")) == 3)
    check("by the new image", {pod["spec"]["containers"][0]["image"] for pod in pods("cart")} == {"shop/cart:2"})


def fates():
    missing = {"name": "A", "valueFrom": {"configMapKeyRef": {"name": "late", "key": "k"}}}
    create(f"{APPS}/deployments", deployment("crash", annotations={"sandbox/behave": "crash"}))
    create(f"{APPS}/deployments", deployment("pull", image="shop/pull:missing"))
    create(f"{APPS}/deployments", deployment("config", env=[missing]))
    eventually("a crashing container backs off", lambda: waiting("crash") == {"CrashLoopBackOff"})
    eventually("a missing image is waited for", lambda: waiting("pull") == {"ImagePullBackOff"})
    eventually("so is a missing ConfigMap", lambda: waiting("config") == {"CreateContainerConfigError"})
    create(f"{CORE}/configmaps", {"kind": "ConfigMap", "metadata": {"name": "late"}, "data": {"k": "v"}})
    eventually("until it is there", lambda: settled("config"))
    status, text = raw(f"{CORE}/pods/{pods('crash')[0]['metadata']['name']}/log?previous=true")
    check("the log of the life before is kept", status == 200 and "fatal: cannot go on" in text, text)


def logs():
    path = f"{CORE}/pods/{pods('cart')[0]['metadata']['name']}/log"
    _, text = raw(f"{path}?timestamps=true&tailLines=2")
    stamps = [clock.parse(line.split()[0]) for line in text.splitlines()]
    check("log lines carry their moments", len(stamps) == 2 and stamps[0] < stamps[1], text)
    _, again = raw(f"{path}?timestamps=true")
    check("and carry the same ones the next time", text.splitlines()[0] in again.splitlines(), again)
    check("a limit of bytes is kept", raw(f"{path}?limitBytes=9")[1] == "a planted", raw(f"{path}?limitBytes=9"))


def commands():
    pod = pods("cart")[0]["metadata"]["name"]
    for protocol in websocket.WebSocket.PROTOCOLS:
        closes = protocol.startswith("v5")
        script = ["sh", "-c", "echo out; echo err >&2; exit 3"]
        client = Client(pod, protocol, script)
        check(f"exec by {protocol} is accepted", client.accepted)
        came = client.talk(b"", closes)
        check("with both outputs apart", (came[1], came[2]) == (b"out\n", b"err\n"), came)
        causes = json.loads(came[websocket.STATUS])["details"]["causes"]
        check("and its exit code", causes == [{"reason": "ExitCode", "message": "3"}], causes)
    came = Client(pod, "v5.channel.k8s.io", ["cat"]).talk(b"given", True)
    check("input arrives, and its end does", came[1] == b"given", came)
    came = Client(pod, "v5.channel.k8s.io", ["nothing-like-it"]).talk(b"", True)
    check("an unknown command is named", b"executable file not found" in came[websocket.STATUS], came)


def disruption():
    budgets = f"/apis/policy/v1/namespaces/{SPACE}/poddisruptionbudgets"
    spec = {"minAvailable": 3, "selector": {"matchLabels": {"app": "cart"}}}
    create(budgets, {"kind": "PodDisruptionBudget", "metadata": {"name": "cart"}, "spec": spec})
    budget = f"{budgets}/cart"
    eventually("the budget is counted", lambda: ADMIN.get(budget)[1].get("status", {}).get("currentHealthy") == 3)
    name = pods("cart")[0]["metadata"]["name"]
    eviction = {"apiVersion": "policy/v1", "kind": "Eviction", "metadata": {"name": name}}
    status, answer = ADMIN.post(f"{CORE}/pods/{name}/eviction", eviction)
    check("an eviction against it is refused", status == 429, answer)
    ADMIN.call("DELETE", budget)
    status, answer = ADMIN.post(f"{CORE}/pods/{name}/eviction", eviction)
    check("and without it granted", status == 201, answer)
    eventually("and the pod goes", lambda: ADMIN.get(f"{CORE}/pods/{name}")[0] == 404)


def rights():
    body = {"kind": "ConfigMap", "metadata": {"name": "by-somebody"}}
    wanted = {"viewer": (200, 403), "editor": (200, 201), "nobody": (403, 403), "broken-token": (401, 401)}
    found = {}
    for name in wanted:
        user = client(name)
        found[name] = user.get(f"{CORE}/pods")[0], user.post(f"{CORE}/configmaps", body)[0]
    check("viewer, editor, nobody and a wrong token may do what they should, no more", found == wanted, found)


create("/api/v1/namespaces", {"kind": "Namespace", "metadata": {"name": SPACE}})
try:
    eventually("it has a service account", lambda: ADMIN.get(f"{CORE}/serviceaccounts/default")[0] == 200)
    for part in (workloads, fates, logs, commands, disruption, rights):
        part()
finally:
    ADMIN.call("DELETE", f"/api/v1/namespaces/{SPACE}")
eventually("the namespace goes with all that is in it", lambda: ADMIN.get(f"/api/v1/namespaces/{SPACE}")[0] == 404)
