"""Redis as a single node, behind Sentinels, or as a cluster: real processes, each node on a host of its own.

A topology offers what a fault can be done to: its `nodes`, which of them are primaries now, `failover`, and for a cluster
`move_slot`. Every node keeps an append-only file on a small file system of its own, so that a disk can be full.
"""

import os
import pathlib
import signal
import socket
import subprocess
import time

PORT, SENTINEL_PORT = 6379, 26379
DISK_MIB = 256
SLOTS = 16384


class RedisError(Exception):
    pass


def ask(address, *words, port=PORT, timeout=2.0):
    """One command, one answer."""
    return ask_all(address, [words], port, timeout)[0]


def ask_all(address, commands, port=PORT, timeout=2.0):
    """Several commands on one connection, and their answers."""
    with socket.create_connection((address, port), timeout) as connection, connection.makefile("rb") as stream:
        answers = []
        for words in commands:
            parts = [str(word).encode() for word in words]
            connection.sendall(b"*%d\r\n" % len(parts) + b"".join(b"$%d\r\n%s\r\n" % (len(part), part) for part in parts))
            answers.append(reply(stream))
        return answers


def reply(stream):
    line = stream.readline()
    if not line.endswith(b"\r\n"):
        raise OSError("the connection ended in the middle of an answer")
    kind, rest = line[:1], line[1:-2]
    if kind == b"+":
        return rest.decode()
    if kind == b"-":
        raise RedisError(rest.decode())
    if kind == b":":
        return int(rest)
    if kind == b"$":
        return None if rest == b"-1" else stream.read(int(rest) + 2)[:-2].decode(errors="replace")
    return [reply(stream) for _ in range(int(rest))]


def await_that(what, holds, seconds=30):
    until = time.monotonic() + seconds
    while time.monotonic() < until:
        try:
            if holds():
                return
        except (OSError, RedisError):
            pass
        time.sleep(0.05)
    raise RuntimeError(f"{what} did not happen within {seconds} s")


def slot(key):
    """The slot of a key: CRC16 (XMODEM) of what stands between the first braces."""
    begin = key.find("{")
    end = key.find("}", begin + 1)
    if begin >= 0 and end > begin + 1:
        key = key[begin + 1 : end]
    crc = 0
    for byte in key.encode():
        crc ^= byte << 8
        for _ in range(8):
            crc = (crc << 1 ^ 0x1021 if crc & 0x8000 else crc << 1) & 0xFFFF
    return crc % SLOTS


class Node:
    """One redis-server."""

    def __init__(self, host, folder, *more):
        self.host, self.address, self.more = host, host.store, more
        self.folder = pathlib.Path(folder) / host.name
        self.folder.mkdir(parents=True)
        subprocess.run(["mount", "-t", "tmpfs", "-o", f"size={DISK_MIB}m", "soak", str(self.folder)], check=True)
        self.process = None
        self.start()

    def start(self):
        words = ["redis-server", "--port", PORT, "--bind", self.address, "--dir", self.folder, "--save", "", "--protected-mode", "no"]
        words += ["--appendonly", "yes", "--maxmemory-policy", "noeviction", "--logfile", self.folder.with_suffix(".log"), *self.more]
        self.process = subprocess.Popen(self.host.inside(*map(str, words)))
        await_that(f"{self.host.name} answers", lambda: self.ask("PING") == "PONG")

    def ask(self, *words, **more):
        return ask(self.address, *words, **more)

    def signal(self, number):
        # `ip netns exec` becomes the program it runs, so this is the process of Redis itself.
        self.process.send_signal(number)

    def kill(self):
        self.signal(signal.SIGKILL)
        self.process.wait()

    def fill_disk(self):
        """Takes all that is left of the disk."""
        with open(self.folder / "ballast", "wb") as file:
            try:
                while True:
                    file.write(b"\0" * 65536)
            except OSError:
                pass

    def empty_disk(self):
        (self.folder / "ballast").unlink(missing_ok=True)

    def is_primary(self):
        try:
            return self.ask("ROLE", timeout=0.5)[0] == "master"
        except (OSError, RedisError, IndexError):
            return False


class Single:
    """One node."""

    name = "single"
    can = frozenset()

    def __init__(self, network, folder):
        self.nodes = [Node(network.host("redis1", 101, fronted=False), folder)]

    def settings(self):
        return {"url": f"redis://{self.nodes[0].address}:{PORT}"}

    def primaries(self):
        return self.nodes

    def healthy(self):
        return all(node.ask("PING") == "PONG" for node in self.nodes)


class Sentinel:
    """A primary with two replicas, and a Sentinel beside each."""

    name = "sentinel"
    can = frozenset({"failover"})
    master = "quartermaster"

    def __init__(self, network, folder):
        hosts = [network.host(f"redis{number}", 100 + number, fronted=False) for number in (1, 2, 3)]
        safe = ("--min-replicas-to-write", 1, "--min-replicas-max-lag", 10)
        self.nodes = [Node(hosts[0], folder, *safe)]
        self.nodes += [Node(host, folder, *safe, "--replicaof", hosts[0].store, PORT) for host in hosts[1:]]
        for host in hosts:
            file = pathlib.Path(folder) / f"{host.name}.sentinel.conf"
            file.write_text(
                f"port {SENTINEL_PORT}\nbind {host.store}\nprotected-mode no\ndir {folder}\nlogfile {file}.log\n"
                f"sentinel monitor {self.master} {hosts[0].store} {PORT} 2\n"
                f"sentinel down-after-milliseconds {self.master} 1500\n"
                f"sentinel failover-timeout {self.master} 5000\n"
            )
            subprocess.Popen(host.inside("redis-server", str(file), "--sentinel"))
        self.sentinels = [host.store for host in hosts]
        await_that("the Sentinels know each other", lambda: all(self.others(sentinel) == 2 for sentinel in self.sentinels))
        await_that("the replicas follow", self.healthy)

    def others(self, sentinel):
        return len(ask(sentinel, "SENTINEL", "sentinels", self.master, port=SENTINEL_PORT))

    def settings(self):
        sentinels = ",".join(f"{address}:{SENTINEL_PORT}" for address in self.sentinels)
        return {"url": f"redis+sentinel://{sentinels}/{self.master}"}

    def primaries(self):
        return [node for node in self.nodes if node.is_primary()]

    def failover(self, _random):
        for sentinel in self.sentinels:
            try:
                return ask(sentinel, "SENTINEL", "failover", self.master, port=SENTINEL_PORT)
            except (OSError, RedisError):
                continue
        return None

    def healthy(self):
        primaries = self.primaries()
        return len(primaries) == 1 and len(primaries[0].ask("ROLE")[2]) == 2


class Cluster:
    """Three primaries with a replica each."""

    name = "cluster"
    can = frozenset({"failover", "move_slot"})

    def __init__(self, network, folder):
        safe = ("--cluster-enabled", "yes", "--cluster-node-timeout", 2000, "--min-replicas-to-write", 0)
        hosts = [network.host(f"redis{number}", 100 + number, fronted=False) for number in range(1, 7)]
        self.nodes = [Node(host, folder, *safe) for host in hosts]
        words = ["redis-cli", "--cluster", "create", *(f"{host.store}:{PORT}" for host in hosts)]
        subprocess.run([*words, "--cluster-replicas", "1", "--cluster-yes"], check=True, capture_output=True)
        await_that("the cluster is whole", self.healthy)

    def settings(self):
        return {"url": "redis+cluster://" + ",".join(f"{node.address}:{PORT}" for node in self.nodes[:3])}

    def primaries(self):
        return [node for node in self.nodes if node.is_primary()]

    def failover(self, random):
        replicas = [node for node in self.nodes if not node.is_primary()]
        if replicas:
            random.choice(replicas).ask("CLUSTER", "FAILOVER")

    def move_slot(self, random, key):
        """Moves the slot of a key to another primary, key by key, as redis-cli does it.

        Only while nothing else is broken: a replica of Redis 7 that is promoted does not know that a slot is half moved, and
        what was moved is lost with that. Copies of an earlier time, which a node kept that was promoted before it heard that
        they had been moved away, are removed first.
        """
        await_that("the cluster is whole", self.healthy, 30)
        primaries = self.primaries()
        ids = {node: node.ask("CLUSTER", "MYID") for node in primaries}
        moved = slot(key)
        owner = next(node for node in primaries if self.owns(node, moved))
        to = random.choice([node for node in primaries if node is not owner])
        to.ask("CLUSTER", "SETSLOT", moved, "IMPORTING", ids[owner])
        while old := to.ask("CLUSTER", "GETKEYSINSLOT", moved, 100):
            ask_all(to.address, [words for name in old for words in (("ASKING",), ("DEL", name))])
        owner.ask("CLUSTER", "SETSLOT", moved, "MIGRATING", ids[to])
        while names := owner.ask("CLUSTER", "GETKEYSINSLOT", moved, 10):
            owner.ask("MIGRATE", to.address, PORT, "", 0, 5000, "REPLACE", "KEYS", *names, timeout=10)
        for node in [to, owner, *primaries]:
            node.ask("CLUSTER", "SETSLOT", moved, "NODE", ids[to])

    def owns(self, node, number):
        mine = next(line for line in node.ask("CLUSTER", "NODES").splitlines() if "myself" in line)
        ranges = [words.split("-") for words in mine.split()[8:] if not words.startswith("[")]
        return any(int(words[0]) <= number <= int(words[-1]) for words in ranges)

    def healthy(self):
        states = [node.ask("CLUSTER", "INFO") for node in self.nodes]
        followed = sum(len(node.ask("ROLE")[2]) for node in self.primaries())
        return all("cluster_state:ok" in state for state in states) and len(self.primaries()) == 3 and followed == 3


TOPOLOGIES = {kind.name: kind for kind in (Single, Sentinel, Cluster)}
