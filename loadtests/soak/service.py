"""The replicas: real processes of the service, each on a host of its own, over one store."""

import os
import pathlib
import secrets
import signal
import subprocess

import network
from client import Issuer, encoded, send
from stores import await_that

TARGET_PORT = 9000
# Where commands find a replica, see `network.forward`.
LOOPBACK_PORT = 18080
# Short, so that what a dead replica leaves behind is taken over within the run.
LEASE = 6
TENANTS = ("shop", "other")
TENANT = """tenant: {tenant}
mode: write
default_toolsets: [memory]
servers:
  - use: counter
policy:
  approval: {{ expires: 10m, most_waiting: 1000 }}
limits: {{ calls_in_flight: 500, calls_per_minute: 1000000, result_bytes: 262144 }}
"""
CATALOG = """servers:
  - name: counter
    description: Counts what is done to it
    url: http://{here}:{port}/mcp
    trust_annotations: true
    deadline: 4s
    calls_in_flight: 64
"""
SETTINGS = """[listen]
address = "{address}:8080"
hosts = [{hosts}]
drain = "10s"
[store]
{store}
[identity]
resource = "http://{here}:8080/mcp"
issuers = [{{ issuer = "soak", algorithms = ["HS256"], key_file = "{folder}/issuer.key" }}]
[calls]
key_file = "{folder}/service.key"
[limits]
requests_per_caller = 4294967295
requests_per_tenant = 4294967295
[approvals]
lease = "{lease}s"
renew_every = "1s"
sweep_every = "500ms"
[tenants]
dir = "{folder}/tenants"
secrets = "{folder}/secrets"
[upstreams]
private = true
ports = [{port}]
catalog = "{folder}/catalog"
cache = "{folder}/cache-{number}"
[telemetry]
log = "info"
"""


class Service:
    """What all replicas share."""

    def __init__(self, binary, folder, store, faketime):
        self.binary, self.folder, self.store, self.faketime = binary, pathlib.Path(folder), store, faketime
        for name in ("tenants", "secrets", "catalog"):
            (self.folder / name).mkdir()
        key = secrets.token_bytes(32)
        (self.folder / "issuer.key").write_text(encoded(key))
        (self.folder / "service.key").write_bytes(secrets.token_bytes(32))
        for tenant in TENANTS:
            (self.folder / "tenants" / f"{tenant}.yaml").write_text(TENANT.format(tenant=tenant))
        (self.folder / "catalog" / "servers.yaml").write_text(CATALOG.format(here=network.HERE, port=TARGET_PORT))
        self.issuer = Issuer("soak", key, f"http://{network.HERE}:8080/mcp")

    def replicas(self, net, count):
        hosts = [net.host(f"replica{number}", 10 + number) for number in range(1, count + 1)]
        return [Replica(self, number, host, hosts) for number, host in enumerate(hosts, 1)]


class Replica:
    def __init__(self, service, number, host, hosts):
        self.service, self.number, self.host = service, number, host
        self.file = service.folder / f"replica{number}.toml"
        store = "\n".join(f'{key} = "{value}"' for key, value in service.store.settings().items())
        names = ", ".join(f'"{name}"' for name in [f"127.0.0.1:{LOOPBACK_PORT}", *(f"{each.front}:8080" for each in hosts)])
        self.file.write_text(
            SETTINGS.format(address=host.front, hosts=names, store=store, here=network.HERE, folder=service.folder, lease=LEASE, port=TARGET_PORT, number=number)
        )
        self.log = open(service.folder / f"replica{number}.log", "ab")
        self.process = None
        self.start()

    def start(self, shift=0):
        """Starts it, with its clock off by so many seconds."""
        environment = dict(os.environ)
        if shift:
            # The monotonic clock stays true, as it does on a machine whose date is wrong.
            environment |= {"LD_PRELOAD": self.service.faketime, "FAKETIME": f"{shift:+d}s", "DONT_FAKE_MONOTONIC": "1", "FAKETIME_DONT_FAKE_MONOTONIC": "1"}
        words = self.host.inside(self.service.binary, "serve", "--config", str(self.file))
        self.process = subprocess.Popen(words, stdout=self.log, stderr=self.log, env=environment)

    def ready(self):
        if self.process.poll() is not None:
            raise RuntimeError(f"replica {self.number} left with {self.process.returncode}; its log says why")
        return send(self.host.front, "", "GET", "/readyz").status == 200

    def await_ready(self, seconds=120):
        await_that(f"replica {self.number} is ready", self.ready, seconds)

    def signal(self, number):
        self.process.send_signal(number)

    def kill(self):
        self.signal(signal.SIGKILL)
        self.process.wait()

    def stop(self):
        """Asks it to leave, and returns its exit code."""
        self.signal(signal.SIGTERM)
        try:
            return self.process.wait(30)
        except subprocess.TimeoutExpired:
            self.kill()
            return None
