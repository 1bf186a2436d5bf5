"""Files for programs that do not run here, held to what those programs would say of them.

    check_files.py SCHEMA-OF-COMPOSE [PROMTOOL]

compose.yaml by the schema of compose; what it mounts by the service and by promtool; units by systemd-analyze; the release
workflow by its own rules: every action pinned, no more rights than named, scripts that a shell can read.
"""

import json
import os
import pathlib
import re
import subprocess
import sys
import tempfile

import jsonschema
import yaml

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
COMPOSE = ROOT / "deploy/compose"
# systemd's own measure, from 0 (all closed) to 10. What executes commands of tenants needs more than the service.
EXPOSURE = {"quartermaster.service": 1.5, "quartermaster-runner.service": 2.5}
failed = 0


def check(what, holds, seen=""):
    global failed
    print(f"  {'ok      ' if holds else 'FAILED  '}{what}{'' if holds else f': {seen}'}", flush=True)
    failed += not holds


def run(*command, **more):
    done = subprocess.run(command, capture_output=True, text=True, check=False, **more)
    return done.returncode, done.stdout + done.stderr


def compose(schema):
    given = yaml.safe_load((COMPOSE / "compose.yaml").read_text())
    errors = [error.message for error in jsonschema.Draft7Validator(json.loads(pathlib.Path(schema).read_text())).iter_errors(given)]
    check("compose.yaml fits the schema of compose", not errors, errors)
    wrong = jsonschema.Draft7Validator(json.loads(pathlib.Path(schema).read_text()))
    check("and the schema would refuse an unknown key", not wrong.is_valid(given | {"servises": {}}))
    services = given["services"]
    ports = [port for service in services.values() for port in service.get("ports", [])]
    check("every port is on loopback", ports and all(port.startswith("127.0.0.1:") for port in ports), ports)
    binds = [volume["source"] for service in services.values() for volume in service.get("volumes", []) if isinstance(volume, dict)]
    missing = [source for source in binds if not (COMPOSE / source).exists()]
    check("everything it mounts is there", binds and not missing, missing)
    tagged = {service["image"].partition(":")[2] for name, service in services.items() if name != "quartermaster"}
    check("images of others have a version", all(re.search(r"\d+\.\d+", tag) for tag in tagged), tagged)
    tools = (ROOT / "deploy/lib/tools.sh").read_text()
    jaeger = re.search(r"^JAEGER_VERSION=(\S+)", tools, re.M)[1]
    check("Jaeger is the version that the ring `tracing` runs", services["jaeger"]["image"].endswith(f":{jaeger}"), jaeger)
    own = services["quartermaster"]
    check("the service runs without rights", own["read_only"] and own["cap_drop"] == ["ALL"] and own["security_opt"] == ["no-new-privileges:true"])
    for file in ("sources.yaml", "dashboards.yaml"):
        check(f"{file} is of version 1", yaml.safe_load((COMPOSE / "grafana" / file).read_text())["apiVersion"] == 1)


def by_the_service(binary):
    code, said = run(binary, "check", str(COMPOSE / "settings.toml"), str(COMPOSE / "tenants/demo.yaml"))
    check("the service accepts settings and tenant of compose", code == 0, said)
    with tempfile.TemporaryDirectory() as folder:
        copied = pathlib.Path(folder) / "deploy/compose"
        copied.mkdir(parents=True)
        (copied / "prepare").write_bytes((COMPOSE / "prepare").read_bytes())
        code, said = run("bash", str(copied / "prepare"), env=os.environ | {"QUARTERMASTER_BIN": binary})
        tokens = [len((copied / f"secrets/{name}.token").read_text().split(".")) for name in ("agent", "approver")] if code == 0 else said
        check("prepare writes keys and tokens", tokens == [3, 3], tokens)


def by_promtool(promtool):
    with tempfile.TemporaryDirectory() as folder:
        for source in (COMPOSE / "prometheus.yaml", ROOT / "deploy/monitoring/alerts.yaml"):
            (pathlib.Path(folder) / source.name).write_bytes(source.read_bytes())
        code, said = run(promtool, "check", "config", str(pathlib.Path(folder) / "prometheus.yaml"))
        check("promtool accepts the configuration of Prometheus with our rules", code == 0, said)


def units():
    for unit in sorted((ROOT / "deploy/systemd").glob("*.service")):
        with tempfile.TemporaryDirectory() as folder:
            # The binary is not installed here; what is judged is the rest.
            copy = pathlib.Path(folder) / unit.name
            copy.write_text(unit.read_text().replace("/usr/local/bin/quartermaster", "/bin/true"))
            code, said = run("systemd-analyze", "verify", "--man=no", str(copy))
            check(f"systemd-analyze verify {unit.name}", code == 0 and not said.strip(), said)
            code, said = run("systemd-analyze", "security", "--offline=true", "--no-pager", str(copy))
            exposure = float(re.search(r"exposure level for .*: ([\d.]+)", said)[1])
            check(f"{unit.name} is exposed by at most {EXPOSURE[unit.name]}: {exposure}", exposure <= EXPOSURE[unit.name], said)


def workflows():
    for file in sorted((ROOT / ".github/workflows").glob("*.yml")):
        given = yaml.safe_load(file.read_text())
        steps = [step for job in given["jobs"].values() for step in job["steps"]]
        actions = [step["uses"] for step in steps if "uses" in step]
        check(f"{file.name}: every action is pinned", actions and all(re.fullmatch(r"[\w.-]+/[\w./-]+@v\d+\.\d+\.\d+", each) for each in actions), actions)
        check(f"{file.name}: nothing but reading is allowed by default", given["permissions"] == {"contents": "read"})
        check(f"{file.name}: every job has a time limit", all("timeout-minutes" in job for job in given["jobs"].values()))
        for step in steps:
            if "run" in step:
                code, said = run("bash", "-n", "-c", step["run"])
                check(f"{file.name}: a shell reads `{step['name']}`", code == 0, said)
                # What others may write must not become part of a script.
                check(f"{file.name}: `{step['name']}` holds no expression", "${{" not in step["run"])


def main():
    compose(sys.argv[1])
    by_the_service(os.environ["QUARTERMASTER_BIN"])
    if len(sys.argv) > 2:
        by_promtool(sys.argv[2])
    units()
    workflows()
    sys.exit(f"{failed} failed" if failed else 0)


main()
