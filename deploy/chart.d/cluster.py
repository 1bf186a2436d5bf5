"""The chart on a real control plane: every rendered object judged by the API server, and a release from its first to its
last day, with one replica that really runs.

    cluster.py HELM TESTBED OBJECTS [LAYOUT]

OBJECTS is what render.py wrote. LAYOUT is the image; without it no replica is started. No kubelet of the testbed runs
containers, so one replica is started by runc from the pod that the API server has (see prepared_pod.py).
"""

import base64
import contextlib
import json
import os
import pathlib
import secrets
import shutil
import subprocess
import sys
import tempfile
import time

import yaml

HERE = pathlib.Path(__file__).resolve().parent
for folder in ("../testbed.d/fakelet", "../lib"):
    sys.path.insert(0, str(HERE / folder))

from api import Api  # noqa: E402
from oci_container import Image, answers, free_port, request  # noqa: E402
from prepared_pod import PreparedPod  # noqa: E402

HELM, TESTBED, OBJECTS = sys.argv[1], pathlib.Path(sys.argv[2]), sys.argv[3]
LAYOUT = sys.argv[4] if len(sys.argv) > 4 else None
SPACE = f"chart-{os.getpid()}"
APPLY = "application/apply-patch+yaml"
# Kinds that the chart renders, and where the API server has them.
PATHS = {
    "Deployment": "/apis/apps/v1/namespaces/{}/deployments",
    "StatefulSet": "/apis/apps/v1/namespaces/{}/statefulsets",
    "ConfigMap": "/api/v1/namespaces/{}/configmaps",
    "Service": "/api/v1/namespaces/{}/services",
    "ServiceAccount": "/api/v1/namespaces/{}/serviceaccounts",
    "Pod": "/api/v1/namespaces/{}/pods",
    "Role": "/apis/rbac.authorization.k8s.io/v1/namespaces/{}/roles",
    "RoleBinding": "/apis/rbac.authorization.k8s.io/v1/namespaces/{}/rolebindings",
    "ClusterRole": "/apis/rbac.authorization.k8s.io/v1/clusterroles",
    "ClusterRoleBinding": "/apis/rbac.authorization.k8s.io/v1/clusterrolebindings",
    "PodDisruptionBudget": "/apis/policy/v1/namespaces/{}/poddisruptionbudgets",
    "HorizontalPodAutoscaler": "/apis/autoscaling/v2/namespaces/{}/horizontalpodautoscalers",
    "NetworkPolicy": "/apis/networking.k8s.io/v1/namespaces/{}/networkpolicies",
    "Ingress": "/apis/networking.k8s.io/v1/namespaces/{}/ingresses",
    "HTTPRoute": "/apis/gateway.networking.k8s.io/v1/namespaces/{}/httproutes",
    "ServiceMonitor": "/apis/monitoring.coreos.com/v1/namespaces/{}/servicemonitors",
    "PrometheusRule": "/apis/monitoring.coreos.com/v1/namespaces/{}/prometheusrules",
}
RELEASE = "qm"
NAME = "qm-quartermaster"
ISSUER = "https://login.example"
HOST = "tools.example.com"
failed = 0


def check(what, holds, seen=""):
    global failed
    print(f"  {'ok      ' if holds else 'FAILED  '}{what}{'' if holds else f': {seen}'}", flush=True)
    failed += not holds


def client(name):
    config = json.loads((TESTBED / "kubeconfig" / name).read_text())
    return Api(config["clusters"][0]["cluster"]["server"], TESTBED / "pki/ca.crt", config["users"][0]["user"]["token"])


ADMIN = client("admin")


def eventually(look, seconds=60):
    until = time.monotonic() + seconds
    while not (found := look()) and time.monotonic() < until:
        time.sleep(0.1)
    return found


def create(path, body):
    status, answer = ADMIN.post(path, body)
    if status not in (201, 409):
        raise SystemExit(f"{path}: {status} {answer.get('message')}")


def namespace():
    labels = {f"pod-security.kubernetes.io/{mode}": "restricted" for mode in ("enforce", "warn", "audit")}
    create("/api/v1/namespaces", {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": SPACE, "labels": labels}})
    eventually(lambda: ADMIN.get(f"/api/v1/namespaces/{SPACE}/serviceaccounts/default")[0] == 200)


def definitions(files):
    """The real definitions of the three kinds that others define."""
    for file in files:
        body = yaml.safe_load(pathlib.Path(file).read_text())
        create("/apis/apiextensions.k8s.io/v1/customresourcedefinitions", body)
    for kind in ("HTTPRoute", "ServiceMonitor", "PrometheusRule"):
        eventually(lambda kind=kind: is_served(kind))


def is_served(kind):
    try:
        return ADMIN.get(PATHS[kind].format(SPACE))[0] == 200
    except ValueError:  # of a group that is not there yet it says so in plain text
        return False


def every_object_is_accepted():
    objects = [json.loads(line) for line in pathlib.Path(OBJECTS).read_text().splitlines()]
    refused, kinds = [], set()
    for each in objects:
        kinds.add(each["kind"])
        each["metadata"]["namespace"] = SPACE
        path = f"{PATHS[each['kind']].format(SPACE)}/{each['metadata']['name']}"
        if each["kind"].startswith("ClusterRole"):
            del each["metadata"]["namespace"]
        refused += apply_dry(path, each)
    pods = [as_pod(each) for each in objects if each["kind"] in ("Deployment", "StatefulSet")]
    # A Deployment is only warned of; its pods are refused. So they are shown to the API server as pods.
    for pod in pods:
        refused += apply_dry(f"{PATHS['Pod'].format(SPACE)}/{pod['metadata']['name']}", pod)
    check(f"the API server accepts all {len(objects)} objects and {len(pods)} pods in a namespace that enforces `restricted`", not refused, "\n".join(refused))
    check("every kind was among them", kinds | {"Pod"} == set(PATHS), set(PATHS) - kinds)
    worse = as_pod(next(each for each in objects if each["kind"] == "Deployment"))
    worse["spec"]["containers"][0]["securityContext"]["allowPrivilegeEscalation"] = True
    check("and it would refuse a pod with more rights", bool(apply_dry(f"{PATHS['Pod'].format(SPACE)}/worse", worse)))


def as_pod(workload):
    template = workload["spec"]["template"]
    metadata = template["metadata"] | {"name": f"{workload['metadata']['name']}-pod", "namespace": SPACE}
    spec = {key: value for key, value in template["spec"].items() if key != "topologySpreadConstraints"}
    # Neither the class nor an account of another name is there; what is judged is the rest.
    spec.pop("priorityClassName", None)
    spec["serviceAccountName"] = "default"
    mounted = {mount["name"] for mount in spec["containers"][0].get("volumeMounts", [])}
    claimed = mounted - {volume["name"] for volume in spec.get("volumes", [])}
    spec["volumes"] = spec.get("volumes", []) + [{"name": name, "persistentVolumeClaim": {"claimName": name}} for name in claimed]
    return {"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": spec}


def apply_dry(path, body):
    query = "dryRun=All&fieldManager=chart&force=true&fieldValidation=Strict"
    status, answer = ADMIN.call("PATCH", f"{path}?{query}", body, APPLY)
    return [] if status in (200, 201) else [f"{path}: {status} {answer.get('message')}"]


def helm(*args):
    environment = os.environ | {"KUBECONFIG": str(TESTBED / "kubeconfig/admin"), "HELM_NAMESPACE": SPACE}
    done = subprocess.run([HELM, *args], capture_output=True, text=True, env=environment, check=False)
    return done.returncode, done.stdout, done.stderr


def deployment():
    return ADMIN.get(f"{PATHS['Deployment'].format(SPACE)}/{NAME}")[1]


def settings():
    return ADMIN.get(f"{PATHS['ConfigMap'].format(SPACE)}/{NAME}-settings")[1]["data"]["settings.toml"]


def left():
    """What is still there of the release."""
    label = f"labelSelector=app.kubernetes.io%2Finstance%3D{RELEASE}"
    found = []
    for kind, path in PATHS.items():
        found += [f"{kind} {each['metadata']['name']}" for each in ADMIN.get(f"{path.format(SPACE)}?{label}")[1].get("items", [])]
    return found


def values(folder, http, metrics, redis):
    """Values of a first installation, with the Secrets they name."""
    issuer_key = secrets.token_hex(32)
    (folder / "issuer.key").write_text(issuer_key)
    (folder / "issuer.key").chmod(0o644)
    for name, data in {
        "quartermaster-key": {"service.key": secrets.token_hex(32)},
        "login": {"issuer.key": issuer_key},
        "redis-address": {"url": redis},
        "acme-secrets": {"greeting": "hello"},
    }.items():
        encoded = {key: base64.b64encode(value.encode()).decode() for key, value in data.items()}
        create(f"/api/v1/namespaces/{SPACE}/secrets", {"apiVersion": "v1", "kind": "Secret", "metadata": {"name": name}, "data": encoded})
    issuer = {"issuer": ISSUER, "algorithms": ["HS256"], "key_file": "/etc/quartermaster/secrets/login/issuer.key"}
    return {
        "image": {"repository": "registry.example/quartermaster"},
        "resource": f"https://{HOST}/mcp",
        "serviceKey": {"secret": "quartermaster-key"},
        "secretFiles": {"login": "login"},
        "settings": {"identity": {"issuers": [issuer]}, "telemetry": {"log": "info"}},
        "tenants": {"acme": "tenant: acme\ndefault_toolsets: [k8s]\nclusters:\n  - { name: here, in_cluster: true }\n"},
        "tenantSecrets": {"acme": "acme-secrets"},
        "redis": {"url": "", "urlSecret": {"name": "redis-address"}},
        "serviceAccount": {"automount": True, "clusterRole": "view"},
        "ports": {"http": http, "metrics": metrics},
        "metrics": {"serviceMonitor": {"enabled": True}, "prometheusRule": {"enabled": True}, "dashboard": {"enabled": True}},
        "autoscaling": {"enabled": True},
        "httpRoute": {"enabled": True, "parentRefs": [{"name": "public"}]},
        "ingress": {"enabled": True},
    }


def lifecycle(work):
    http, metrics, redis_port = free_port(), free_port(), free_port()
    password = secrets.token_hex(16)
    file, chart = work / "values.yaml", str(HERE.parent / "chart")
    given = values(work, http, metrics, f"redis://:{password}@127.0.0.1:{redis_port}")
    file.write_text(json.dumps(given))
    wait = ("--wait", "--timeout", "90s")
    code, said, errors = helm("install", RELEASE, chart, "-f", str(file), *wait)
    check("helm install", code == 0, errors)
    check("its notes say what to do next", f"deployment/{NAME}" in said and "doctor" in said, said)
    first = deployment()
    check("the Deployment is available", first["status"].get("availableReplicas", 0) >= 1, first.get("status"))
    if LAYOUT:
        with redis_server(work, redis_port, password):
            first_call(work, given, http, metrics)

    given["settings"]["telemetry"]["log"] = "debug"
    file.write_text(json.dumps(given))
    code, _, errors = helm("upgrade", RELEASE, chart, "-f", str(file), *wait)
    second = deployment()
    check("helm upgrade", code == 0 and 'log = "debug"' in settings(), errors)
    check("starts pods with the new settings", first["spec"]["template"] != second["spec"]["template"])
    code, _, errors = helm("rollback", RELEASE, "1", *wait)
    check("helm rollback", code == 0 and 'log = "info"' in settings(), errors)
    check("brings back what was", deployment()["spec"]["template"] == first["spec"]["template"])
    code, _, errors = helm("uninstall", RELEASE, *wait)
    check("helm uninstall", code == 0, errors)
    check("leaves nothing", eventually(lambda: not left()), left())


@contextlib.contextmanager
def redis_server(work, port, password):
    folder = work / "redis"
    folder.mkdir()
    options = {"port": port, "bind": "127.0.0.1", "dir": folder, "appendonly": "yes", "maxmemory-policy": "noeviction", "save": "''", "requirepass": password}
    (folder / "redis.conf").write_text("".join(f"{key} {value}\n" for key, value in options.items()))
    with open(work / "redis.log", "wb") as log:
        server = subprocess.Popen(["redis-server", str(folder / "redis.conf")], stdout=log, stderr=log)
    try:
        yield
    finally:
        server.terminate()
        server.wait(10)


def first_call(work, given, http, metrics):
    """From the installed release to an answer of a tool, by a replica that runc runs in place of a kubelet."""
    listed = ADMIN.get(f"{PATHS['Pod'].format(SPACE)}?labelSelector=app.kubernetes.io%2Finstance%3D{RELEASE}")[1]["items"]
    pod = PreparedPod(listed[0], ADMIN, work / "volumes")
    image = Image(LAYOUT, "test", work)
    check("the pod's user is the image's", (pod.user, pod.group) == (image.config["process"]["user"]["uid"], image.config["process"]["user"]["gid"]))
    mounts, env = pod.mounts(), pod.env()
    with open(work / "replica.log", "wb") as log:
        replica = image.start("replica", pod.args(), env=env, mounts=mounts, log=log, host=pod.pod["metadata"]["name"])
    try:
        for probe in ("startupProbe", "readinessProbe", "livenessProbe"):
            path = pod.container[probe]["httpGet"]["path"]
            status, body = answers(http, path, replica)
            check(f"{probe}: {path}", status == 200, (status, body))
        token = token_of(image, work, given, "acme")
        tools = ask(http, token, "tools/list", {})
        names = [tool["name"] for tool in tools["result"]["tools"]]
        check("a first tools/list", "k8s_get" in names, names)
        inside = ask(http, token, "tools/list", {}, host=f"{NAME}.{SPACE}.svc:8080")
        check("it is also known by the name of its Service", "result" in inside, inside)
        other = ask(http, token, "tools/list", {}, host="other.example")
        check("and by no other", "bad_origin" in json.dumps(other), other)
        called = ask(http, token, "tools/call", {"name": "k8s_get", "arguments": {"kind": "pods", "namespace": SPACE}})
        check("a first tool call: k8s_get sees the pods of the release", NAME in json.dumps(called), called)
        refused = ask(http, token, "tools/call", {"name": "k8s_get", "arguments": {"kind": "secrets", "namespace": SPACE}})
        check("the cluster lets its account do no more than its role", "forbidden" in json.dumps(refused), refused)
        status, text = request(metrics, "GET", "/metrics")
        check("metrics can be read at the port of the other Service", status == 200 and "quartermaster_calls_total" in text, text[:200])
        with_settings = ["--config", pod.args()[-1]]
        code, said = image.run("doctor", ["doctor", *with_settings], env=env, mounts=mounts)
        check("doctor has nothing to complain of", code == 0, said)
        another_tenant(image, work, given, http, pod)
        code = replica.stop(pod.pod["spec"]["terminationGracePeriodSeconds"])
        check("SIGTERM ends it with success within its grace period", code == 0, code)
    finally:
        replica.end()


def another_tenant(image, work, given, http, pod):
    """A tenant that joins by `helm upgrade` is served by the replica that runs."""
    before = deployment()["spec"]["template"]
    more = given | {"tenants": given["tenants"] | {"shop": "tenant: shop\n"}}
    (work / "more.yaml").write_text(json.dumps(more))
    code, _, errors = helm("upgrade", RELEASE, str(HERE.parent / "chart"), "-f", str(work / "more.yaml"))
    check("a tenant is added by helm upgrade, and no pod is started again", code == 0 and deployment()["spec"]["template"] == before, errors)
    token = token_of(image, work, given, "shop")
    check("the replica does not know it yet", "error" in ask(http, token, "tools/list", {}))
    pod.mounts()
    served = eventually(lambda: "result" in ask(http, token, "tools/list", {}), 20)
    check("and serves it when the kubelet has written the file", served)
    code, _, errors = helm("upgrade", RELEASE, str(HERE.parent / "chart"), "-f", str(work / "values.yaml"))
    check("and back", code == 0, errors)


def token_of(image, work, given, tenant):
    made = ["token", "--key", "/tmp/key", "--issuer", ISSUER, "--audience", given["resource"]]
    who = ["--tenant", tenant, "--sub", "first-agent", "--scope", "tools:read"]
    mounts = [("bind", work / "issuer.key", "/tmp/key", False)]
    code, said = image.run(f"token-{tenant}", [*made, *who], mounts=mounts)
    if code != 0:
        raise SystemExit(f"no token: {said}")
    return said.strip()


def ask(port, token, method, params, host=HOST):
    # As a proxy in front of it would send it.
    headers = {"Host": host, "Authorization": f"Bearer {token}", "Content-Type": "application/json"}
    body = json.dumps({"jsonrpc": "2.0", "id": 1, "method": method, "params": params})
    return json.loads(request(port, "POST", "/mcp", body, headers)[1])


def main():
    work = pathlib.Path(tempfile.mkdtemp(prefix="quartermaster-chart."))
    work.chmod(0o755)
    namespace()
    definitions(os.environ["CHART_DEFINITIONS"].split())
    every_object_is_accepted()
    lifecycle(work)
    if failed:
        for log in sorted(work.glob("*.log")):
            print(f"\n--- last lines of {log}")
            print("\n".join(log.read_text(errors="replace").splitlines()[-30:]))
        sys.exit(f"{failed} failed; everything is kept in {work}")
    shutil.rmtree(work)


main()
