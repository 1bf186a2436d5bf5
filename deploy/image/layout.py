"""Writes an OCI image layout, with nothing but the standard library.

    layout.py --root FOLDER... --epoch SECONDS --version V --tag TAG --revision COMMIT --out LAYOUT

Each FOLDER becomes a layer, in the order given. The same files give the same digests: entries are sorted, belong to root
(what lies under a folder that `WRITABLE` names belongs to the image's user) and carry one time, and compression has none.
What goes into the folders is gathered by `build`.
"""

import argparse
import gzip
import hashlib
import io
import json
import os
import pathlib
import shutil
import stat
import struct
import tarfile
import time

USER = 65532
# What the process may write to where no volume is mounted. With a read-only root these are mounts.
WRITABLE = ("var/cache/quartermaster", "var/lib/quartermaster", "home/nonroot")
MACHINES = {62: "amd64", 183: "arm64"}
BINARY = "usr/local/bin/quartermaster"


def main():
    given = arguments()
    out = pathlib.Path(given.out)
    shutil.rmtree(out, ignore_errors=True)
    blobs = Blobs(out / "blobs/sha256")
    layers = [layer(pathlib.Path(root), given.epoch, blobs) for root in given.root]
    created = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(given.epoch))
    platform = {"architecture": architecture(pathlib.Path(given.root[-1]) / BINARY), "os": "linux"}
    config = blobs.add_json("application/vnd.oci.image.config.v1+json", image_config(given, layers, created, platform))
    manifest = {
        "schemaVersion": 2,
        "mediaType": "application/vnd.oci.image.manifest.v1+json",
        "config": config,
        "layers": [descriptor for descriptor, _ in layers],
        "annotations": annotations(given, created),
    }
    descriptor = blobs.add_json(manifest["mediaType"], manifest)
    descriptor |= {"platform": platform, "annotations": {"org.opencontainers.image.ref.name": given.tag}}
    index = {"schemaVersion": 2, "mediaType": "application/vnd.oci.image.index.v1+json", "manifests": [descriptor]}
    (out / "oci-layout").write_text('{"imageLayoutVersion":"1.0.0"}')
    (out / "index.json").write_bytes(compact(index))
    print(descriptor["digest"])


def arguments():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--root", action="append", required=True)
    parser.add_argument("--epoch", type=int, required=True)
    parser.add_argument("--version", required=True)
    parser.add_argument("--revision", default="")
    parser.add_argument("--tag", default="latest")
    parser.add_argument("--out", required=True)
    return parser.parse_args()


def compact(value):
    return json.dumps(value, sort_keys=True, separators=(",", ":")).encode()


class Blobs:
    """The blobs of a layout, named by their digests."""

    def __init__(self, folder):
        self.folder = folder
        folder.mkdir(parents=True)

    def add(self, media_type, content):
        digest = hashlib.sha256(content).hexdigest()
        (self.folder / digest).write_bytes(content)
        return {"mediaType": media_type, "digest": f"sha256:{digest}", "size": len(content)}

    def add_json(self, media_type, value):
        return self.add(media_type, compact(value))


def layer(root, epoch, blobs):
    """The descriptor of a layer, and the digest of what is in it uncompressed."""
    plain = io.BytesIO()
    with tarfile.open(fileobj=plain, mode="w", format=tarfile.GNU_FORMAT) as archive:
        for path in sorted(root.rglob("*"), key=lambda path: path.relative_to(root).as_posix()):
            add(archive, path, path.relative_to(root).as_posix(), epoch)
    content = plain.getvalue()
    # Level and name are fixed, the time is left out. Another zlib may compress otherwise; the second digest stays.
    packed = gzip.compress(content, compresslevel=6, mtime=0)
    descriptor = blobs.add("application/vnd.oci.image.layer.v1.tar+gzip", packed)
    return descriptor, f"sha256:{hashlib.sha256(content).hexdigest()}"


def add(archive, path, name, epoch):
    facts = path.lstat()
    entry = tarfile.TarInfo(name)
    entry.mtime = epoch
    if any(name == folder or name.startswith(f"{folder}/") for folder in WRITABLE):
        entry.uid = entry.gid = USER
    if stat.S_ISLNK(facts.st_mode):
        entry.type, entry.linkname, entry.mode = tarfile.SYMTYPE, os.readlink(path), 0o777
        archive.addfile(entry)
    elif stat.S_ISDIR(facts.st_mode):
        entry.type, entry.mode = tarfile.DIRTYPE, 0o1777 if name == "tmp" else 0o755
        archive.addfile(entry)
    elif stat.S_ISREG(facts.st_mode):
        # Whoever builds may have another umask; no program of the image needs more than these two.
        entry.size, entry.mode = facts.st_size, 0o755 if facts.st_mode & 0o111 else 0o644
        with path.open("rb") as file:
            archive.addfile(entry, file)
    else:
        raise SystemExit(f"{path} is neither a file, a folder nor a link")


def architecture(binary):
    with binary.open("rb") as file:
        head = file.read(20)
    if head[:4] != b"\x7fELF":
        raise SystemExit(f"{binary} is no Linux program")
    machine = struct.unpack("<H", head[18:20])[0]
    if machine not in MACHINES:
        raise SystemExit(f"{binary} is for a machine that is not known here: {machine}")
    return MACHINES[machine]


def annotations(given, created):
    found = {
        "org.opencontainers.image.title": "quartermaster",
        "org.opencontainers.image.description": "A multi-tenant tool service for hosted AI agents",
        "org.opencontainers.image.licenses": "Apache-2.0",
        "org.opencontainers.image.version": given.version,
        "org.opencontainers.image.created": created,
    }
    if given.revision:
        found["org.opencontainers.image.revision"] = given.revision
    return found


def image_config(given, layers, created, platform):
    return platform | {
        "created": created,
        "config": {
            "User": f"{USER}:{USER}",
            "Entrypoint": [f"/{BINARY}"],
            "Cmd": ["--help"],
            "WorkingDir": "/var/lib/quartermaster",
            "Env": ["PATH=/usr/local/bin", "HOME=/home/nonroot", "SSL_CERT_FILE=/etc/ssl/certs/ca-certificates.crt"],
            "ExposedPorts": {"8080/tcp": {}, "9464/tcp": {}},
            "StopSignal": "SIGTERM",
            "Labels": annotations(given, created),
        },
        "rootfs": {"type": "layers", "diff_ids": [diff_id for _, diff_id in layers]},
        "history": [
            {"created": created, "created_by": f"deploy/image/build: {pathlib.Path(root).name}"} for root in given.root
        ],
    }


main()
