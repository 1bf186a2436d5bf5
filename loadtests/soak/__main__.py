"""Breaks the service for a while and checks that it kept its promises.

    python3 loadtests/soak --topology single,sentinel,cluster --seconds 40 --seed 7

Starts replicas of `$QUARTERMASTER_BIN` (or `--binary`) over a real Redis, lets agents ask, people decide and readers read,
and meanwhile kills, freezes, cuts, fills, slows, shifts and moves what they stand on. Then everything is mended, and the
checker holds each run, each effect and the audit log against the invariants I1 to I8. Exit code 1 means that one was
violated, 2 that the run could not be made. The seed is printed; the same seed gives the same faults.

Needs `ip` and `unshare` (and the rights to use them), redis-server, and for shifted clocks libfaketime.
"""

import argparse
import json
import os
import pathlib
import random
import secrets
import shutil
import subprocess
import sys
import tempfile
import time
import traceback

sys.path.insert(0, str(pathlib.Path(__file__).parent))

import network  # noqa: E402  the files beside this one
from checker import Checker  # noqa: E402
from faults import Faults  # noqa: E402
from people import People, Record  # noqa: E402
from service import TARGET_PORT, Service  # noqa: E402
from stores import TOPOLOGIES, await_that  # noqa: E402
from target import Target  # noqa: E402


def options():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--topology", default="single", help="single, sentinel, cluster, or several with commas")
    parser.add_argument("--seconds", type=int, default=40, help="how long things break, for each topology")
    parser.add_argument("--seed", type=int, help="which faults; a new one if it is not given")
    parser.add_argument("--replicas", type=int, default=3)
    parser.add_argument("--agents", type=int, default=12)
    parser.add_argument("--only", default="", help="only these kinds of faults, with commas")
    parser.add_argument("--binary", default=os.environ.get("QUARTERMASTER_BIN", "quartermaster"))
    parser.add_argument("--json", help="a file for the figures")
    return parser.parse_args()


def faketime():
    """The library that shifts a program's clock; empty if there is none."""
    folders = [pathlib.Path(os.environ.get("SOAK_FAKETIME") or "/usr/lib"), pathlib.Path("/usr/lib")]
    return next((str(file) for folder in folders for file in folder.rglob("faketime/libfaketime.so.1")), "")


def soak(topology, chosen, seed):
    """One topology in a world of its own; returns its figures."""
    net = network.Network()
    folder = os.environ["SOAK_FOLDER"]
    begun = time.monotonic()

    def say(text):
        print(f"  {time.monotonic() - begun:7.1f} s  {text}", flush=True)

    chance = random.Random(f"{seed} {topology}")
    store = TOPOLOGIES[topology](net, folder)
    target = Target(network.HERE, TARGET_PORT)
    service = Service(chosen.binary, folder, store, faketime())
    replicas = service.replicas(net, chosen.replicas)
    for replica in replicas:
        replica.await_ready()
    record = Record()
    people = People(replicas, service.issuer, record, random.Random(f"{seed} {topology} people"))
    people.begin(chosen.agents, 2, 2)
    try:
        await_that("the first run came to its end", lambda: record.told, 60)
    except RuntimeError:
        say(f"what was answered: {record.counts} {record.refused}")
        raise
    faults = Faults(replicas, store, target, chance, say)
    faults.run(chosen.seconds, [kind for kind in chosen.only.split(",") if kind])
    say("everything is mended")
    faults.mend()
    await_that("the store is whole", store.healthy, 60)
    people.end()
    say("checking")
    checker = Checker(people, record, target, service)
    violations = checker.run() + faults.wrong
    figures = {
        "topology": topology,
        "seed": seed,
        "seconds": chosen.seconds,
        "faults": faults.counts,
        "runs": len(record.runs),
        "states": checker.states,
        "effects": len(target.keys()),
        "decisions": sum(1 for verdict in record.verdicts if verdict[3] == 200),
        "lost races": sum(1 for verdict in record.verdicts if verdict[3] == 409),
        "requests": sum(record.counts.values()),
        "unanswered": sum(count for key, count in record.counts.items() if key[1] == 0),
        "told to come again": sum(count for key, count in record.counts.items() if key[1] in (429, 503)),
        "violations": violations,
    }
    return figures


def report(figures, file):
    for name, value in figures.items():
        if name not in ("topology", "seed", "seconds", "violations"):
            print(f"  {name}: {value}")
    for violation in figures["violations"][:40]:
        print(f"  VIOLATION {violation}")
    print(f"  {len(figures['violations'])} violations", flush=True)
    if file:
        with open(file, "a", encoding="utf-8") as lines:
            lines.write(json.dumps(figures) + "\n")


def inside(topology, chosen):
    """The run itself, in namespaces of its own."""
    try:
        figures = soak(topology, chosen, chosen.seed)
    except Exception:  # noqa: BLE001  whatever it was, there is nothing to judge
        traceback.print_exc()
        raise SystemExit(2) from None
    report(figures, chosen.json)
    # Threads may still wait for an answer; nobody wants it any more.
    os._exit(1 if figures["violations"] else 0)


def main():
    chosen = options()
    topologies = chosen.topology.split(",")
    unknown = [name for name in topologies if name not in TOPOLOGIES]
    if unknown:
        print(f"no topology {unknown[0]!r}; there are: {', '.join(TOPOLOGIES)}", file=sys.stderr)
        raise SystemExit(2)
    if "SOAK_FOLDER" in os.environ:
        inside(topologies[0], chosen)
    seed = secrets.randbelow(1 << 32) if chosen.seed is None else chosen.seed
    worst = 0
    for topology in topologies:
        print(f"soak: {topology}, seed {seed}, {chosen.seconds} s", flush=True)
        folder = tempfile.mkdtemp(prefix="quartermaster-soak.")
        words = [sys.executable, "-B", *sys.argv, "--topology", topology, "--seed", str(seed)]
        status = subprocess.run(network.enclosed(words), env={**os.environ, "SOAK_FOLDER": folder}, check=False).returncode
        if status == 0:
            shutil.rmtree(folder)
        else:
            print(f"  logs are kept in {folder}", flush=True)
        worst = max(worst, status)
    raise SystemExit(worst)


main()
