"""Starts containers from an OCI image layout with umoci and runc, so without a container engine.

An `Image` is a layout that was unpacked once; `start` runs it with a read-only root, without capabilities and new
privileges, as the user that the image names (whoever is not root can only lend their own), in the network of the host.
What a pod adds to that, its mounts and its variables, is for the caller to give (see deploy/chart.d/prepared_pod.py).
"""

import http.client
import json
import os
import pathlib
import signal
import socket
import subprocess
import sys
import time

SKIP = 77  # as in deploy/lib/tools.sh


class Image:
    """An unpacked image."""

    def __init__(self, layout, tag, work):
        self.work = pathlib.Path(work)
        self.bundle = self.work / "image"
        rootless = [] if os.geteuid() == 0 else ["--rootless"]
        command = ["umoci", "unpack", *rootless, "--image", f"{layout}:{tag}", str(self.bundle)]
        subprocess.run(command, check=True, stdout=subprocess.DEVNULL)
        self.config = json.loads((self.bundle / "config.json").read_text())
        self.rootfs = self.bundle / "rootfs"
        # As umoci reads the image: the entry point, then the default arguments.
        self.entry_point = self.config["process"]["args"][0]

    def start(self, name, args, env=None, mounts=(), log=None, host=None):
        """Starts the entry point. `mounts` are (kind, source, target, writable) with kind `bind` or `tmpfs`; `host` is what
        the container takes for the name of its machine."""
        bundle = self.work / f"bundle-{name}"
        bundle.mkdir()
        config = json.loads(json.dumps(self.config))
        process = config["process"]
        process |= {"terminal": False, "args": [self.entry_point, *args], "noNewPrivileges": True, "capabilities": {}}
        process["env"] = process.get("env", []) + [f"{key}={value}" for key, value in (env or {}).items()]
        config["hostname"] = host or name
        config["root"] = {"path": str(self.rootfs), "readonly": True}
        kept = [mount for mount in config["mounts"] if mount["type"] in ("proc", "tmpfs", "devpts", "mqueue")]
        config["mounts"] = [mount for mount in kept if mount["destination"] != "/run"] + [mounted(*each) for each in mounts]
        linux = config["linux"]
        linux["namespaces"] = [{"type": kind} for kind in ("mount", "pid", "ipc", "uts")]
        for key in ("uidMappings", "gidMappings", "resources", "seccomp"):
            linux.pop(key, None)
        if os.geteuid() != 0:
            # An ordinary user has one number to give away, and runc wants it to be the container's 0.
            linux["namespaces"].append({"type": "user"})
            process["user"] = {"uid": 0, "gid": 0}
            for key, outside in (("uid", os.geteuid()), ("gid", os.getegid())):
                linux[f"{key}Mappings"] = [{"containerID": 0, "hostID": outside, "size": 1}]
            config["mounts"] = [mount for mount in config["mounts"] if mount["type"] not in ("devpts", "mqueue")]
        (bundle / "config.json").write_text(json.dumps(config))
        state = self.work / "runc"
        command = ["runc", "--root", str(state), "run", "--bundle", str(bundle), f"{name}-{os.getpid()}"]
        return Container(subprocess.Popen(command, stdout=log, stderr=subprocess.STDOUT if log else None), state, command[-1])

    def run(self, name, args, **more):
        """Runs the entry point to its end; gives exit code and output."""
        with open(self.work / f"{name}.log", "w+b") as log:
            code = self.start(name, args, log=log, **more).process.wait(60)
            log.seek(0)
            said = log.read().decode()
        if "runc run failed" in said and "not permitted" in said:
            print(f"\nSKIPPED: runc may start no container here: {said.strip()}")
            sys.exit(SKIP)
        return code, said


class Container:
    """A started container, known by the runc that holds it."""

    def __init__(self, process, state, name):
        self.process, self.state, self.name = process, state, name

    def pid(self):
        """The process id of the entry point, on the host."""
        answer = subprocess.run(["runc", "--root", str(self.state), "state", self.name], check=True, capture_output=True)
        return json.loads(answer.stdout)["pid"]

    def stop(self, seconds=60):
        """SIGTERM, which runc hands on; gives the exit code, or None if it did not leave in time."""
        self.process.send_signal(signal.SIGTERM)
        try:
            return self.process.wait(seconds)
        except subprocess.TimeoutExpired:
            return None

    def end(self):
        """On every way out."""
        if self.process.poll() is None:
            self.process.terminate()
            try:
                self.process.wait(10)
            except subprocess.TimeoutExpired:
                kill = ["runc", "--root", str(self.state), "kill", self.name, "KILL"]
                subprocess.run(kill, check=False, capture_output=True)
                self.process.wait(10)


def mounted(kind, source, target, writable):
    if kind == "tmpfs":
        # Owned by the image's user: runc gives it the mode of the folder below.
        owner = 65532 if os.geteuid() == 0 else 0
        options = ["nosuid", "nodev", f"uid={owner}", f"gid={owner}"]
        return {"type": "tmpfs", "source": "tmpfs", "destination": target, "options": options}
    options = ["rbind", "rw" if writable else "ro"]
    return {"type": "bind", "source": str(source), "destination": target, "options": options}


def free_port():
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


def request(port, method, path, body=None, headers=None):
    """Status and body; status 0 if nobody listens."""
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=20)
    try:
        connection.request(method, path, body, headers or {})
        answer = connection.getresponse()
        return answer.status, answer.read().decode()
    except (ConnectionError, OSError) as error:
        return 0, str(error)
    finally:
        connection.close()


def answers(port, path, container, seconds=30):
    """Waits until a GET is answered with 200; gives the last answer."""
    until = time.monotonic() + seconds
    while True:
        status, body = request(port, "GET", path)
        if status == 200 or time.monotonic() > until or container.process.poll() is not None:
            return status, body
        time.sleep(0.05)
