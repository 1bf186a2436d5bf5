"""What a container needs from ConfigMaps and Secrets, read as a kubelet does before it starts one."""

import base64
import re

REFERENCE = re.compile(r"\$(?:(\$)|\(([^)]*)\))")


class Missing(Exception):
    """A reference that leads nowhere; its text is what the kubelet writes into the waiting state."""


class NotMounted(Missing):
    """The same of a volume, which the kubelet tells by an event."""


def check_volumes(pod, api):
    """Raises `NotMounted` for the first volume whose ConfigMap or Secret is neither there nor optional."""
    source = Source(pod["metadata"]["namespace"], api)
    for volume in pod["spec"].get("volumes", []):
        for kind, field_name in (("configMap", "name"), ("secret", "secretName")):
            if kind in volume:
                ref = {"name": volume[kind][field_name], "optional": volume[kind].get("optional")}
                try:
                    source.whole(kind, ref)
                except Missing as missing:
                    raise NotMounted(f'MountVolume.SetUp failed for volume "{volume["name"]}" : {missing}') from missing


def of(container, pod, api):
    """The variables of `container`; raises `Missing` for the first reference that is neither there nor optional."""
    found = {"HOSTNAME": pod["metadata"]["name"]}
    source = Source(pod["metadata"]["namespace"], api)
    for each in container.get("envFrom", []):
        for kind in ("configMapRef", "secretRef"):
            if kind in each:
                values = source.whole(kind.removesuffix("Ref"), each[kind]) or {}
                found |= {each.get("prefix", "") + name: value for name, value in values.items()}
    for each in container.get("env", []):
        value = expanded(each.get("value", ""), found)
        for kind, ref in each.get("valueFrom", {}).items():
            if kind in ("configMapKeyRef", "secretKeyRef"):
                value = source.key(kind.removesuffix("KeyRef"), ref)
            elif kind == "fieldRef":
                value = field(pod, ref["fieldPath"])
        if value is not None:
            found[each["name"]] = value
    return found


def expanded(text, env):
    """The text with `$(NAME)` replaced by a variable that is there, and `$$` by a dollar sign."""
    return REFERENCE.sub(lambda found: "$" if found[1] else env.get(found[2], found[0]), text)


class Source:
    """The ConfigMaps and Secrets of one namespace, each read once."""

    def __init__(self, namespace, api):
        self.namespace, self.api, self.read = namespace, api, {}

    def whole(self, kind, ref):
        name = ref["name"]
        if (kind, name) not in self.read:
            status, found = self.api.get(f"/api/v1/namespaces/{self.namespace}/{kind.lower()}s/{name}")
            values = found.get("data") or {}
            if kind == "secret":
                values = {key: base64.b64decode(value).decode(errors="replace") for key, value in values.items()}
            self.read[kind, name] = values if status == 200 else None
        values = self.read[kind, name]
        if values is None and not ref.get("optional"):
            raise Missing(f'{kind.lower()} "{name}" not found')
        return values

    def key(self, kind, ref):
        values = self.whole(kind, ref)
        if values is not None and ref["key"] in values:
            return values[ref["key"]]
        if ref.get("optional"):
            return None
        written = {"configMap": "ConfigMap", "secret": "Secret"}[kind]
        raise Missing(f"couldn't find key {ref['key']} in {written} {self.namespace}/{ref['name']}")


def field(pod, path):
    for step in path.split("."):
        pod = pod.get(step, {}) if isinstance(pod, dict) else {}
    return pod if isinstance(pod, str) else ""
