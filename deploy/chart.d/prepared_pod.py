"""What a kubelet would give the container of a pod, read from the API server: volumes, variables and arguments.

The nodes of the testbed run no containers. This takes a pod as the API server has it, after all admission, and prepares it
for `oci_container.Image.start`: each volume is a folder, written as a kubelet writes it. Known are volumes from ConfigMaps,
Secrets, emptyDir and the projection of a service account; anything else is an error, not left out.
"""

import base64
import os
import pathlib
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "testbed.d/fakelet"))

import environment  # noqa: E402


class PreparedPod:
    """One pod, prepared in a folder."""

    def __init__(self, pod, api, folder):
        self.pod, self.api, self.folder = pod, api, pathlib.Path(folder)
        self.namespace = pod["metadata"]["namespace"]
        self.container = pod["spec"]["containers"][0]
        self.user = pod["spec"]["securityContext"]["runAsUser"]
        self.group = pod["spec"]["securityContext"]["fsGroup"]

    def args(self):
        return self.container["args"]

    def env(self):
        # A kubelet adds these two of every cluster, whatever enableServiceLinks says.
        server = {"KUBERNETES_SERVICE_HOST": self.api.host, "KUBERNETES_SERVICE_PORT": str(self.api.port)}
        return server | environment.of(self.container, self.pod, self.api)

    def mounts(self):
        """Mounts for `Image.start`; writes the volumes anew."""
        volumes = {volume["name"]: volume for volume in self.pod["spec"]["volumes"]}
        found = []
        for mount in self.container["volumeMounts"]:
            source = self.folder / mount["name"]
            self.write(volumes[mount["name"]], source)
            found.append(("bind", source, mount["mountPath"], not mount.get("readOnly", False)))
        return found

    def write(self, volume, target):
        """Writes one volume as it is in the cluster now. On one that is mounted the change is seen at once, as with a kubelet."""
        if "emptyDir" in volume:
            target.mkdir(parents=True, exist_ok=True)
            self.own(target, 0o2777)
        elif "configMap" in volume:
            self.publish(target, self.config_map(volume["configMap"]), volume["configMap"].get("defaultMode", 0o644))
        elif "secret" in volume:
            source = volume["secret"] | {"name": volume["secret"]["secretName"]}
            self.publish(target, self.secret(source), source.get("defaultMode", 0o644))
        elif "projected" in volume:
            files = {}
            for source in volume["projected"]["sources"]:
                files |= self.projection(source)
            self.publish(target, files, volume["projected"].get("defaultMode", 0o644))
        else:
            raise SystemExit(f"a volume of a kind that is not known here: {volume}")

    def object(self, kind, name):
        status, found = self.api.get(f"/api/v1/namespaces/{self.namespace}/{kind}/{name}")
        if status != 200:
            raise SystemExit(f"{kind} {name}: {status} {found.get('message')}")
        return found

    def config_map(self, source):
        data = {key: text.encode() for key, text in self.object("configmaps", source["name"]).get("data", {}).items()}
        return chosen(data, source.get("items"))

    def secret(self, source):
        data = self.object("secrets", source["name"]).get("data", {})
        return chosen({key: base64.b64decode(value) for key, value in data.items()}, source.get("items"))

    def projection(self, source):
        if "serviceAccountToken" in source:
            asked = source["serviceAccountToken"]
            path = f"/api/v1/namespaces/{self.namespace}/serviceaccounts/{self.pod['spec']['serviceAccountName']}/token"
            spec = {"expirationSeconds": asked["expirationSeconds"]}
            status, answer = self.api.post(path, {"apiVersion": "authentication.k8s.io/v1", "kind": "TokenRequest", "spec": spec})
            if status != 201:
                raise SystemExit(f"no token for the service account: {answer}")
            return {asked["path"]: answer["status"]["token"].encode()}
        if "configMap" in source:
            return self.config_map(source["configMap"])
        if "downwardAPI" in source:
            return {item["path"]: environment.field(self.pod, item["fieldRef"]["fieldPath"]).encode() for item in source["downwardAPI"]["items"]}
        raise SystemExit(f"a projection of a kind that is not known here: {source}")

    def publish(self, target, files, mode):
        """Writes files into a folder of their own and turns one link, so that a reader sees all of them or none."""
        target.mkdir(parents=True, exist_ok=True)
        version = 1 + sum(path.name.startswith("..v") for path in target.iterdir())
        fresh = target / f"..v{version}"
        fresh.mkdir()
        for name, content in files.items():
            (fresh / name).write_bytes(content)
            # With fsGroup the group may read what the owner may.
            self.own(fresh / name, mode | (mode & 0o400) >> 3)
            if not (target / name).is_symlink():
                (target / name).symlink_to(f"..data/{name}")
        (target / "..next").symlink_to(fresh.name)
        (target / "..next").rename(target / "..data")
        for each in (target, fresh):
            each.chmod(0o755)

    def own(self, path, mode):
        if os.geteuid() == 0:
            os.chown(path, 0, self.group)
        path.chmod(mode)


def chosen(data, items):
    return data if items is None else {item["path"]: data[item["key"]] for item in items}
