"""The chart without a cluster: lint, every combination rendered, what must be refused, and what must agree.

    render.py HELM BINARY OUT      writes each different object that was rendered to OUT, as JSON lines

BINARY is the service, which checks the settings and the tenants of each combination.
"""

import hashlib
import json
import pathlib
import re
import subprocess
import sys
import tempfile
import tomllib

import yaml

sys.path.insert(0, str(pathlib.Path(__file__).parent))

from combinations import BASE, REFUSED, combinations, merged  # noqa: E402

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
CHART = ROOT / "deploy/chart"
NAMESPACE = "agents"
failed = 0


def check(what, holds, seen=""):
    global failed
    print(f"  {'ok      ' if holds else 'FAILED  '}{what}{'' if holds else f': {seen}'}", flush=True)
    failed += not holds


class Helm:
    def __init__(self, binary, work):
        self.binary, self.work = binary, pathlib.Path(work)

    def run(self, *args, values):
        """Exit code, output and errors of one helm command with these values."""
        file = self.work / f"values-{hashlib.sha256(json.dumps(values).encode()).hexdigest()[:12]}.yaml"
        file.write_text(json.dumps(values))
        # A release called `qm`: its Services would give variables that begin like our settings.
        done = subprocess.run([self.binary, *args, "-f", str(file)], capture_output=True, text=True, check=False)
        errors = "\n".join(line for line in done.stderr.splitlines() if "found symbolic link" not in line)
        return done.returncode, done.stdout, errors

    def template(self, values, chart=CHART):
        code, text, errors = self.run("template", "qm", str(chart), "--namespace", NAMESPACE, values=values)
        if code != 0:
            raise SystemExit(f"cannot be rendered: {errors}\n{json.dumps(values, indent=1)}")
        return [each for each in yaml.safe_load_all(text) if each]


def of_kind(objects, kind, ending=""):
    return next((each for each in objects if each["kind"] == kind and each["metadata"]["name"].endswith(ending)), None)


def versions_agree():
    chart = yaml.safe_load((CHART / "Chart.yaml").read_text())
    version = tomllib.loads((ROOT / "Cargo.toml").read_text())["workspace"]["package"]["version"]
    check("chart and program have one version", (chart["version"], chart["appVersion"]) == (version, version), chart)


def settings_are_toml(objects, values):
    """The settings file as the service will read it."""
    settings = tomllib.loads(of_kind(objects, "ConfigMap", "-settings")["data"]["settings.toml"])
    for section, keys in values["settings"].items():
        for key, value in keys.items():
            if (section, key) == ("listen", "hosts"):
                value = settings["listen"]["hosts"][:4] + value
            if settings[section][key] != value:
                return f"{section}.{key} is {settings[section][key]!r} and not {value!r}"
            if isinstance(value, int) and not isinstance(settings[section][key], int):
                return f"{section}.{key} is no integer any more"
    defaults = tomllib.loads((ROOT / "services/gateway/defaults.toml").read_text())
    for section, keys in settings.items():
        for key in keys:
            if key not in defaults.get(section, {}):
                return f"the service has no setting {section}.{key}"
    return None


def mounted_texts(objects):
    maps = [of_kind(objects, "ConfigMap", ending) for ending in ("-settings", "-tenants", "-catalog")]
    return tuple(item for each in maps if each for item in sorted(each["data"].items()))


def accepted_by_the_service(binary, work, texts):
    """Settings and tenants as they would be mounted, judged by `quartermaster check`."""
    for number, maps in enumerate(sorted(texts)):
        folder = work / f"checked-{number}"
        (folder / "catalog").mkdir(parents=True)
        # Of the mounts, the catalog is the one that the check reads.
        files = {name: text.replace("/etc/quartermaster/catalog", f"{folder}/catalog") for name, text in maps}
        for name, text in files.items():
            (folder / ("catalog" if name == "servers.yaml" else ".") / name).write_text(text)
        files.pop("servers.yaml", None)
        done = subprocess.run([binary, "check", *(str(folder / name) for name in files)], capture_output=True, text=True, check=False)
        if done.returncode != 0:
            return done.stdout + done.stderr
    return None


def secrets_only_by_name(objects):
    return not any(each["kind"] == "Secret" for each in objects)


def rules_agree(objects):
    given = yaml.safe_load((ROOT / "deploy/monitoring/alerts.yaml").read_text())
    for group in given["groups"]:
        for rule in group["rules"]:
            rule["annotations"]["runbook_url"] = "https://git.example/qm/" + rule["annotations"]["runbook_url"]
    rule = of_kind(objects, "PrometheusRule")
    check("PrometheusRule is deploy/monitoring/alerts.yaml, with the address in front of its pages", rule["spec"] == given)
    monitor = of_kind(objects, "ServiceMonitor")
    jobs = set(re.findall(r'job="(\w+)"', json.dumps(given).replace('\\"', '"')))
    relabelled = {each["replacement"] for each in monitor["spec"]["endpoints"][0]["relabelings"] if each["targetLabel"] == "job"}
    check("ServiceMonitor gives the job the name that alerts ask for", jobs == relabelled, (jobs, relabelled))
    service = of_kind(objects, "Service", "-metrics")
    selected = monitor["spec"]["selector"]["matchLabels"].items() <= service["metadata"]["labels"].items()
    check("ServiceMonitor selects the Service of metrics", selected)


def packed_chart_is_whole(helm, values, objects):
    """A packed chart has the files that are links in the repository."""
    subprocess.run([helm.binary, "package", str(CHART), "--destination", str(helm.work)], check=True, capture_output=True)
    (packed,) = helm.work.glob("*.tgz")
    check("a packed chart renders the same", helm.template(values, packed) == objects)


def pod_is_bounded(objects):
    deployment = of_kind(objects, "Deployment")
    pod, drain = deployment["spec"]["template"]["spec"], 25
    container = pod["containers"][0]
    grace, wait = pod["terminationGracePeriodSeconds"], container["lifecycle"]["preStop"]["sleep"]["seconds"]
    check("the grace period fits the wait, requests, background work and the end", grace >= wait + 2 * drain + 15, grace)
    check("no variable of a Service is taken for a setting", pod["enableServiceLinks"] is False)
    check("its root file system is read-only", container["securityContext"]["readOnlyRootFilesystem"] is True)
    paths = {container[probe]["httpGet"]["path"] for probe in ("startupProbe", "readinessProbe", "livenessProbe")}
    check("probes ask for /livez and /readyz", paths == {"/livez", "/readyz"} and container["readinessProbe"]["httpGet"]["path"] == "/readyz")


def restarts_only_for_settings(helm):
    def template_of(values):
        return of_kind(helm.template(values), "Deployment")["spec"]["template"]

    before = template_of(BASE)
    check("another tenant starts no pod again", template_of(merged(BASE, {"tenants": {"b": "tenant: b"}})) == before)
    check("another setting does", template_of(merged(BASE, {"settings": {"calls": {"list_cache_bytes": 1}}})) != before)


def main():
    helm_binary, binary, out = sys.argv[1:]
    with tempfile.TemporaryDirectory() as work:
        helm = Helm(helm_binary, work)
        versions_agree()
        code, text, errors = helm.run("lint", "--strict", str(CHART), values=BASE)
        check("helm lint --strict", code == 0, text + errors)
        different, count, problems, texts = {}, 0, [], set()
        for pick, values in combinations():
            objects = helm.template(values)
            count += 1
            problem = settings_are_toml(objects, values)
            problems += [(pick, problem)] if problem else []
            problems += [] if secrets_only_by_name(objects) else [(pick, "a Secret is rendered")]
            texts.add(mounted_texts(objects))
            for each in objects:
                text = json.dumps(each, sort_keys=True)
                different[hashlib.sha256(text.encode()).hexdigest()] = text
        check(f"{count} combinations with every pair of choices are rendered, their settings as given, no Secret among them", not problems, problems)
        # What somebody pastes from the page is one more combination.
        (example,) = re.findall(r"^```yaml\n(.*?)^```", (ROOT / "docs/install.md").read_text(), re.M | re.S)
        texts.add(mounted_texts(helm.template(yaml.safe_load(example))))
        problem = accepted_by_the_service(binary, pathlib.Path(work), texts)
        check(f"the service accepts the {len(texts)} different settings with their tenants, those of docs/install.md included", problem is None, problem)
        pathlib.Path(out).write_text("\n".join(different.values()) + "\n")
        print(f"           {len(different)} different objects")
        monitored = {"metrics": {"serviceMonitor": {"enabled": True}, "prometheusRule": {"enabled": True, "runbookBase": "https://git.example/qm/"}}}
        objects = helm.template(merged(BASE, monitored))
        rules_agree(objects)
        packed_chart_is_whole(helm, merged(BASE, monitored), objects)
        pod_is_bounded(objects)
        restarts_only_for_settings(helm)
        for values, why in REFUSED:
            code, _, errors = helm.run("template", "qm", str(CHART), values=merged(BASE, values))
            check(f"refused, with the reason: {why}", code != 0 and why in errors, errors[-400:] or "it was rendered")
    sys.exit(f"{failed} failed" if failed else 0)


main()
