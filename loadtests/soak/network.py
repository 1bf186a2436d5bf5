"""Hosts of their own on one machine: a network namespace each, joined by two bridges.

    front   agents and people reach the replicas here
    store   replicas reach the nodes of the store here, and the nodes each other

The whole run lives in a namespace without a way out (`enclosed`), so no address of it exists outside, and nothing that
is cut or moved here touches the machine's own network. The addresses are those that RFC 2544 sets aside for tests.
"""

import os
import socket
import subprocess
import threading

FRONT, STORE = "198.18.0", "198.18.1"
# Where the test itself stands on both networks.
HERE = f"{FRONT}.1"


def enclosed(words):
    """The command line that runs a command inside namespaces of its own; what it starts ends with it."""
    rights = [] if os.geteuid() == 0 else ["--map-root-user"]
    return ["unshare", *rights, "--mount", "--net", "--pid", "--fork", "--mount-proc", "--kill-child", *words]


def ip(*words):
    subprocess.run(["ip", *words], check=True, capture_output=True, text=True)


class Network:
    def __init__(self):
        os.makedirs("/run/netns", exist_ok=True)
        subprocess.run(["mount", "-t", "tmpfs", "soak", "/run/netns"], check=True)
        ip("link", "set", "lo", "up")
        for bridge, net in (("front", FRONT), ("store", STORE)):
            ip("link", "add", bridge, "type", "bridge")
            ip("addr", "add", f"{net}.1/24", "dev", bridge)
            ip("link", "set", bridge, "up")

    def host(self, name, number, fronted=True):
        """A host with an address that ends in this number on the networks it is on."""
        ip("netns", "add", name)
        ip("-n", name, "link", "set", "lo", "up")
        for bridge, net in (("front", FRONT), ("store", STORE)):
            if bridge == "front" and not fronted:
                continue
            outer = f"{name}-{bridge[0]}"
            ip("link", "add", outer, "type", "veth", "peer", "name", bridge, "netns", name)
            ip("link", "set", outer, "master", bridge, "up")
            ip("-n", name, "addr", "add", f"{net}.{number}/24", "dev", bridge)
            ip("-n", name, "link", "set", bridge, "up")
        return Host(name, f"{FRONT}.{number}", f"{STORE}.{number}")


class Host:
    def __init__(self, name, front, store):
        self.name, self.front, self.store = name, front, store

    def inside(self, *words):
        """The command line that runs a command on this host."""
        return ["ip", "netns", "exec", self.name, *words]

    def cut(self, bridge):
        ip("link", "set", f"{self.name}-{bridge[0]}", "down")

    def mend(self, bridge):
        ip("link", "set", f"{self.name}-{bridge[0]}", "up")


def forward(port, address):
    """Passes connections to this port of loopback on to port 8080 of a host: commands send tokens in clear to loopback only."""
    listener = socket.create_server(("127.0.0.1", port))

    def pump(source, sink):
        try:
            while data := source.recv(65536):
                sink.sendall(data)
        except OSError:
            pass
        finally:
            sink.close()

    def serve():
        while True:
            near, _ = listener.accept()
            far = socket.create_connection((address, 8080))
            for ends in ((near, far), (far, near)):
                threading.Thread(target=pump, args=ends, daemon=True).start()

    threading.Thread(target=serve, daemon=True).start()
