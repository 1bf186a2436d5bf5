"""The image, as the ring `image` looks at it: built twice, validated by programs of others, unpacked and started.

skopeo reads the layout and copies it, which verifies every digest; umoci unpacks it; runc starts the entry point as the
image's user, with a read-only root, without capabilities. The parts list is validated by the schema of CycloneDX.
"""

import json
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile
import tomllib

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
sys.path.insert(0, str(ROOT / "deploy/lib"))

from oci_container import Image, answers, free_port  # noqa: E402

failed = 0


def check(what, holds, seen=""):
    global failed
    print(f"  {'ok      ' if holds else 'FAILED  '}{what}{'' if holds else f': {seen}'}", flush=True)
    failed += not holds


def output(*command):
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout


def build(out):
    return output(str(ROOT / "deploy/image/build"), str(out), "test").strip()


def layout_is_sound(layout, digest, work):
    seen = json.loads(output("skopeo", "inspect", f"oci:{layout}:test"))
    check("skopeo reads it and gives the same digest", seen["Digest"] == digest, seen)
    check("it has three layers", len(seen["Layers"]) == 3, seen["Layers"])
    config = json.loads(output("skopeo", "inspect", "--config", f"oci:{layout}:test"))
    own = config["config"]
    check("it runs as a user without rights", own["User"] == "65532:65532", own)
    check("all its times are the given one", {config["created"], *(h["created"] for h in config["history"])} == {"2026-01-02T03:04:05Z"}, config)
    subprocess.run(["skopeo", "copy", "--quiet", f"oci:{layout}:test", f"dir:{work}/copy"], check=True)
    check("skopeo copies it, so every digest is that of its content", (work / "copy/manifest.json").exists())
    return own


def dockerfile_agrees(config):
    text = (ROOT / "deploy/image/Dockerfile").read_text()
    tools = (ROOT / "deploy/lib/tools.sh").read_text()
    helm = re.search(r"^HELM_VERSION=(\S+)", tools, re.M)[1]
    check("Dockerfile: helm is the pinned one", f"ARG HELM_VERSION={helm}\n" in text, helm)
    channel = tomllib.loads((ROOT / "rust-toolchain.toml").read_text())["toolchain"]["channel"]
    check("Dockerfile: Rust is the pinned one", f"FROM rust:{channel.rsplit('.', 1)[0]}-" in text, channel)
    said = dict(re.findall(r"^(USER|WORKDIR|STOPSIGNAL|ENTRYPOINT|CMD|EXPOSE|ENV) (.*)$", text.split("\nFROM ")[-1], re.M))
    same = {
        "USER": config["User"],
        "WORKDIR": config["WorkingDir"],
        "STOPSIGNAL": config["StopSignal"],
        "ENTRYPOINT": json.dumps(config["Entrypoint"]),
        "CMD": json.dumps(config["Cmd"]),
        "EXPOSE": " ".join(sorted(config["ExposedPorts"])),
        "ENV": " ".join(config["Env"]),
    }
    check("Dockerfile: user, folder, variables, ports and entry point are those of the layout", said == same, (said, same))


def parts_are_listed(file):
    from cyclonedx.schema import SchemaVersion
    from cyclonedx.validation.json import JsonStrictValidator

    text = file.read_text()
    error = JsonStrictValidator(SchemaVersion.V1_6).validate_str(text)
    check("the list of parts is valid CycloneDX", error is None, error)
    document = json.loads(text)
    names = {part["name"] for part in document["components"]}
    check("it lists crates, helm and packages", {"actix-web", "redis", "helm", "libc6", "ca-certificates"} <= names, sorted(names))
    check("it leaves out what only tests use", not {"insta", "testkit", "proptest"} & names, sorted(names))
    refs = {part["bom-ref"] for part in document["components"]}
    used = {to for each in document["dependencies"] for to in each["dependsOn"]}
    check("every part that is depended on is listed", used <= refs, used - refs)


def settings(work, port):
    folder = work / "settings"
    (folder / "tenants").mkdir(parents=True)
    subprocess.run(["openssl", "genpkey", "-algorithm", "ed25519", "-out", str(work / "issuer.key")], check=True)
    subprocess.run(["openssl", "pkey", "-in", str(work / "issuer.key"), "-pubout", "-out", str(folder / "issuer.pub")], check=True)
    (folder / "service.key").write_bytes(os.urandom(48))
    (folder / "tenants/acme.yaml").write_text("tenant: acme\n")
    (folder / "settings.toml").write_text(f"""
[listen]
address = "127.0.0.1:{port}"
[store]
url = "file:/var/lib/quartermaster/state.redb"
[identity]
resource = "http://127.0.0.1:{port}/mcp"
issuers = [{{ issuer = "https://login.example", algorithms = ["EdDSA"], key_file = "/etc/quartermaster/issuer.pub" }}]
[calls]
key_file = "/etc/quartermaster/service.key"
[tenants]
dir = "/etc/quartermaster/tenants"
[upstreams]
cache = "/var/cache/quartermaster"
""")
    for path in folder.rglob("*"):
        path.chmod(0o755 if path.is_dir() else 0o644)
    return folder


def it_starts(layout, work):
    image = Image(layout, "test", work)
    code, said = image.run("help", ["--help"])
    check("the entry point runs", code == 0 and "serve" in said, said)
    version = re.search(r"^HELM_VERSION=(\S+)", (ROOT / "deploy/lib/tools.sh").read_text(), re.M)[1]
    entry, image.entry_point = image.entry_point, "/usr/local/bin/helm"
    code, said = image.run("helm", ["version", "--short"], mounts=[("tmpfs", None, "/tmp", True)], env={"HOME": "/tmp"})
    check("helm runs in it and is the pinned one", code == 0 and version in said, said)
    image.entry_point = "/usr/local/bin/quartermaster-operator"
    code, said = image.run("operator", ["crds"])
    check("the operator runs in it and prints its definitions", code == 0 and "languagetools.langop.io" in said, said[-500:])
    image.entry_point = entry

    port = free_port()
    folder = settings(work, port)
    mounts = [("bind", folder, "/etc/quartermaster", False)]
    mounts += [("tmpfs", None, path, True) for path in ("/tmp", "/var/lib/quartermaster", "/var/cache/quartermaster")]
    with open(work / "serve.log", "wb") as log:
        serve = image.start("serve", ["serve", "--config", "/etc/quartermaster/settings.toml"], mounts=mounts, log=log)
    try:
        status, body = answers(port, "/livez", serve)
        check("serve answers /livez", (status, body) == (200, '{"status":"ok"}'), (status, body))
        status, body = answers(port, "/readyz", serve)
        check("and becomes ready", status == 200, (status, body))
        limits(serve.pid())
        check("SIGTERM ends it with success", serve.stop() == 0, serve.process.returncode)
    finally:
        serve.end()


def limits(pid):
    status = dict(line.split(":\t", 1) for line in pathlib.Path(f"/proc/{pid}/status").read_text().splitlines() if ":\t" in line)
    if os.geteuid() == 0:
        check("its user and group are 65532", status["Uid"].split() == ["65532"] * 4 == status["Gid"].split(), status["Uid"])
    check("it has no capability", int(status["CapEff"], 16) == 0 == int(status["CapBnd"], 16), status["CapEff"])
    check("it cannot gain privileges", status["NoNewPrivs"] == "1", status["NoNewPrivs"])
    options = [line.split()[3] for line in pathlib.Path(f"/proc/{pid}/mounts").read_text().splitlines() if line.split()[1] == "/"]
    check("its root is read-only", options and options[-1].split(",")[0] == "ro", options)


def main():
    os.environ["SOURCE_DATE_EPOCH"] = "1767323045"
    work = pathlib.Path(tempfile.mkdtemp(prefix="quartermaster-image."))
    work.chmod(0o755)
    try:
        digest = build(work / "one")
        check("the same inputs give the same digest", build(work / "two") == digest, digest)
        print(f"           {digest}, {sum(f.stat().st_size for f in (work / 'one').rglob('*')) >> 20} MiB compressed")
        config = layout_is_sound(work / "one", digest, work)
        dockerfile_agrees(config)
        parts_are_listed(work / "one.sbom.cdx.json")
        it_starts(work / "one", work)
    except subprocess.CalledProcessError as error:
        check("every command succeeds", False, f"{error}\n{error.stderr}")
    if failed:
        for log in sorted(work.glob("*.log")):
            print(f"\n--- last lines of {log}")
            print("\n".join(log.read_text(errors="replace").splitlines()[-30:]))
        sys.exit(f"{failed} failed; everything is kept in {work}")
    shutil.rmtree(work)


main()
