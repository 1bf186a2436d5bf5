"""How long a desktop client waits: from starting `quartermaster stdio` to its first answer.

    QUARTERMASTER_BIN=target/dist/quartermaster python3 loadtests/stdio.py [STARTS]

Compared in one run with the same binary that only prints its version, and with an interpreter that does nothing, because
a figure in milliseconds is a figure of one machine. The starts alternate, so that whatever else the machine does hits
all of them alike. With --strict the run fails above 150 ms.
"""

import json
import os
import pathlib
import statistics
import subprocess
import sys
import tempfile
import time

BINARY = os.environ.get("QUARTERMASTER_BIN", "quartermaster")
INITIALIZE = {
    "jsonrpc": "2.0",
    "id": 1,
    "method": "initialize",
    "params": {"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": {"name": "stdio.py", "version": "1"}},
}
LIST = {"jsonrpc": "2.0", "id": 2, "method": "tools/list"}
MOST_MS = 150


def line(message):
    return json.dumps(message).encode() + b"\n"


def ms(begun):
    return (time.perf_counter() - begun) * 1000


def runs(*command):
    begun = time.perf_counter()
    subprocess.run(command, check=True, stdout=subprocess.DEVNULL)
    return ms(begun)


def first_answers(data, project):
    """Milliseconds to the answer of `initialize`, to that of `tools/list` after it, and from the end of input to the end."""
    begun = time.perf_counter()
    command = [BINARY, "stdio", "--data", str(data), "--project", str(project)]
    server = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)
    server.stdin.write(line(INITIALIZE))
    server.stdin.flush()
    assert "result" in json.loads(server.stdout.readline())
    first = ms(begun)
    server.stdin.write(line(LIST))
    server.stdin.flush()
    assert "result" in json.loads(server.stdout.readline())
    second = ms(begun)
    begun = time.perf_counter()
    server.stdin.close()
    server.wait(10)
    return first, second, ms(begun)


def main():
    words = [word for word in sys.argv[1:] if word != "--strict"]
    starts = int(words[0]) if words else 20
    figures = {}
    with tempfile.TemporaryDirectory() as folder:
        folder = pathlib.Path(folder)
        (folder / "quartermaster.yaml").write_text("")
        new, _, _ = first_answers(folder / "data", folder)
        for _ in range(starts):
            first, second, end = first_answers(folder / "data", folder)
            figures.setdefault("stdio: start to the answer of initialize", []).append(first)
            figures.setdefault("stdio: start to the answer of tools/list", []).append(second)
            figures.setdefault("stdio: end of input to the end of the process", []).append(end)
            figures.setdefault("quartermaster --version", []).append(runs(BINARY, "--version"))
            figures.setdefault("python3 -c pass", []).append(runs("python3", "-c", "pass"))
    floor = statistics.median(figures["quartermaster --version"])
    print(f"{'':48} {'median':>9} {'slowest':>9} {'to --version':>13}")
    for name, values in figures.items():
        median = statistics.median(values)
        print(f"{name:48} {median:6.1f} ms {max(values):6.1f} ms {median / floor:12.1f}x")
    print(f"{'stdio: the very first start, which makes the keys':48} {new:5.1f} ms")
    late = statistics.median(figures["stdio: start to the answer of initialize"]) > MOST_MS
    sys.exit(1 if late and "--strict" in sys.argv else 0)


main()
