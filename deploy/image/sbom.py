"""What is in the image, as CycloneDX 1.6: the crates that the binary is linked from, helm, and the distribution's packages.

    sbom.py --target TRIPLE --helm VERSION --packages FOLDER --epoch SECONDS --version V > sbom.cdx.json

The crates come from `cargo metadata` and the lock file: those that `gateway` and `operator` reach by ordinary dependencies on that
target. Build scripts, macros' own tools and what only tests use are not in the binary and not in the list.
"""

import argparse
import json
import pathlib
import subprocess
import sys
import time
import tomllib
import urllib.parse
import uuid

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    for name in ("--target", "--helm", "--packages", "--version"):
        parser.add_argument(name, required=True)
    parser.add_argument("--epoch", type=int, required=True)
    given = parser.parse_args()
    crates, edges = linked_crates(given.target)
    parts = [*crates, helm(given.helm), *packages(pathlib.Path(given.packages))]
    parts.sort(key=lambda part: part["bom-ref"])
    service = {"type": "application", "bom-ref": "quartermaster", "name": "quartermaster", "version": given.version}
    service["licenses"] = [{"expression": "Apache-2.0"}]
    document = {
        "bomFormat": "CycloneDX",
        "specVersion": "1.6",
        "version": 1,
        "metadata": {
            "timestamp": time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(given.epoch)),
            "component": service,
        },
        "components": parts,
        "dependencies": [{"ref": ref, "dependsOn": sorted(to)} for ref, to in sorted(edges.items())],
    }
    # The number of the document follows from what is in it, so that the same parts give the same document.
    text = json.dumps(document, sort_keys=True)
    document["serialNumber"] = f"urn:uuid:{uuid.uuid5(uuid.NAMESPACE_URL, text)}"
    json.dump(document, sys.stdout, indent=1, sort_keys=True)
    print()


def linked_crates(target):
    command = ["cargo", "metadata", "--format-version", "1", "--locked", "--filter-platform", target]
    metadata = json.loads(subprocess.run(command, cwd=ROOT, check=True, capture_output=True).stdout)
    packages = {package["id"]: package for package in metadata["packages"]}
    nodes = {node["id"]: node for node in metadata["resolve"]["nodes"]}
    programs = [id for id, package in packages.items() if package["name"] in ("gateway", "operator") and package["source"] is None]
    checksums = {
        (package["name"], package["version"]): package.get("checksum")
        for package in tomllib.loads((ROOT / "Cargo.lock").read_text())["package"]
    }
    seen, open_ids, edges = {}, list(programs), {}
    while open_ids:
        current = open_ids.pop()
        if current in seen:
            continue
        seen[current] = component(packages[current], checksums)
        linked = [dep["pkg"] for dep in nodes[current]["deps"] if any(kind["kind"] is None for kind in dep["dep_kinds"])]
        # A macro runs in the compiler; what it needs is not linked either.
        linked = [id for id in linked if not is_macro(packages[id])]
        edges[ref(packages[current])] = {ref(packages[id]) for id in linked}
        open_ids += linked
    edges["quartermaster"] = {ref(packages[id]) for id in programs}
    return list(seen.values()), edges


def is_macro(package):
    return any("proc-macro" in target["kind"] for target in package["targets"])


def ref(package):
    return f"pkg:cargo/{package['name']}@{urllib.parse.quote(package['version'], safe='.-')}"


def component(package, checksums):
    found = {
        "type": "library",
        "bom-ref": ref(package),
        "name": package["name"],
        "version": package["version"],
        "purl": ref(package),
    }
    if package["license"]:
        # Some crates still write MIT/Apache-2.0.
        found["licenses"] = [{"expression": package["license"].replace("/", " OR ")}]
    checksum = checksums.get((package["name"], package["version"]))
    if checksum:
        found["hashes"] = [{"alg": "SHA-256", "content": checksum}]
    if package["source"] is None:
        # Ours: no registry knows it, so it has no address there.
        del found["purl"]
    return found


def helm(version):
    # The modules it is built from are listed in the binary itself: `go version -m /usr/local/bin/helm`.
    purl = f"pkg:golang/helm.sh/helm/v{version.split('.')[0]}@v{version}"
    name = {"name": "helm", "version": version, "licenses": [{"expression": "Apache-2.0"}]}
    return {"type": "application", "bom-ref": purl, "purl": purl, **name}


def packages(folder):
    for status in sorted((folder / "var/lib/dpkg/status.d").iterdir()):
        fields = dict(line.split(": ", 1) for line in status.read_text().splitlines() if ": " in line and line[0] != " ")
        version = urllib.parse.quote(fields["Version"], safe=".-~+")
        purl = f"pkg:deb/{distribution(folder)}/{fields['Package']}@{version}?arch={fields['Architecture']}"
        yield {
            "type": "library",
            "bom-ref": purl,
            "purl": purl,
            "name": fields["Package"],
            "version": fields["Version"],
        }


def distribution(folder):
    lines = (folder / "etc/os-release").read_text().splitlines()
    return next(line.split("=", 1)[1].strip('"') for line in lines if line.startswith("ID="))


main()
