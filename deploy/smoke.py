"""The release binary as a newcomer meets it: it starts at once, answers, stays small and leaves politely.

Starts `$QUARTERMASTER_BIN dev` three times in fresh folders. The first request of the README is run as it is written
there, with only address and data folder replaced, so that the README cannot drift from the program.
"""

import http.client
import json
import os
import pathlib
import re
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time

STARTS = 3
FIRST_ANSWER_MS = 1000
# A desktop client starts the server with every conversation, and its user looks on. The aim is 150 ms, which
# loadtests/stdio.py judges on a quiet machine; here only what would be a mistake on a busy one too.
STDIO_FIRST_ANSWER_MS = 600
STDIO_STARTS = 5
# A simulated cluster with weeks of history and a simulated Jenkins live in the process, and fifty tools with their schemas.
IDLE_MIB = 80
LEAVE_S = 10

ROOT = pathlib.Path(__file__).resolve().parent.parent
BINARY = os.environ["QUARTERMASTER_BIN"]
LIST = json.dumps({"jsonrpc": "2.0", "id": 1, "method": "tools/list", "params": {}})

failed = 0


def check(what, holds, seen):
    global failed
    print(f"  {'ok      ' if holds else 'FAILED  '}{what}: {seen}", flush=True)
    failed += not holds


def free_port():
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


def request(port, method, path, body=None, headers=None):
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=10)
    try:
        connection.request(method, path, body, headers or {})
        answer = connection.getresponse()
        return answer.status, answer.read()
    finally:
        connection.close()


def first_answer(server, port, data):
    """Waits for the first `tools/list` that is answered."""
    until = time.monotonic() + 20
    while time.monotonic() < until:
        if server.poll() is not None:
            raise RuntimeError(f"the server left with {server.returncode} before it answered")
        try:
            token = (data / "agent.token").read_text().strip()
            headers = {"Authorization": f"Bearer {token}", "Content-Type": "application/json"}
            status, body = request(port, "POST", "/mcp", LIST, headers)
            if status == 200:
                return json.loads(body)
        except (FileNotFoundError, ConnectionError):
            pass
        time.sleep(0.005)
    raise RuntimeError("no answer within 20 s")


def resident_mib(pid):
    status = pathlib.Path(f"/proc/{pid}/status").read_text()
    return int(re.search(r"^VmRSS:\s+(\d+) kB", status, re.M).group(1)) / 1024


def readme_request(port, data):
    """The first fenced block of the README with a `curl` in it, run by a shell as a reader would.

    Lines that build or start the program are left out: it is running already.
    """
    readme = ROOT / "README.md"
    blocks = re.findall(r"^```\w*\n(.*?)^```", readme.read_text(), re.M | re.S) if readme.exists() else []
    block = next((block for block in blocks if "curl " in block), None)
    if block is None:
        return None
    block = re.sub(r"^(cargo|git|cd) .*\n", "", block, flags=re.M)
    block = re.sub(r"(127\.0\.0\.1|localhost):8080", f"127.0.0.1:{port}", block)
    block = block.replace(".quartermaster", str(data))
    return subprocess.run(["bash", "-euc", block], capture_output=True, text=True, timeout=30)


def visit(number, work):
    """One start, from nothing to a clean exit. Gives the milliseconds to the first answer."""
    data, port = work / f"data-{number}", free_port()
    with open(work / f"server-{number}.log", "wb") as log:
        begun = time.monotonic()
        server = subprocess.Popen([BINARY, "dev", "--listen", f"127.0.0.1:{port}", "--data", str(data)], stdout=log, stderr=log)
    try:
        answer = first_answer(server, port, data)
        took = (time.monotonic() - begun) * 1000
        if number == 1:
            look_around(server, port, data, answer)
        server.send_signal(signal.SIGTERM)
        try:
            code = server.wait(LEAVE_S)
        except subprocess.TimeoutExpired:
            code = f"still there after {LEAVE_S} s"
        check(f"start {number}: first answer after {took:.0f} ms, exit code after SIGTERM", code == 0, code)
        return took
    finally:
        if server.poll() is None:
            server.kill()
            server.wait()


def on_standard_streams(number, work):
    """`stdio` with the tools of its own process, in a new folder. Gives the milliseconds to the answer of `initialize`."""
    client = {"name": "smoke", "version": "1"}
    params = {"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": client}
    ask = json.dumps({"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": params}).encode() + b"\n"
    with open(work / f"stdio-{number}.log", "wb") as log:
        begun = time.monotonic()
        pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "stderr": log}
        server = subprocess.Popen([BINARY, "stdio", "--data", str(work / f"stdio-{number}")], **pipes)
    try:
        server.stdin.write(ask)
        server.stdin.flush()
        answer = json.loads(server.stdout.readline())
        took = (time.monotonic() - begun) * 1000
        server.stdin.close()
        code = server.wait(LEAVE_S)
        good = code == 0 and answer["result"]["serverInfo"]["name"] == "quartermaster"
        check(f"stdio {number}: first answer after {took:.0f} ms, exit code at the end of its input", good, code)
        return took
    finally:
        if server.poll() is None:
            server.kill()
            server.wait()


def look_around(server, port, data, answer):
    names = [tool["name"] for tool in answer["result"]["tools"]]
    check("the first answer lists load_toolset", "load_toolset" in names, names)
    status, body = request(port, "GET", "/health")
    check("GET /health", (status, body.strip()) == (200, b'{"status":"ok"}'), (status, body))
    status, _ = request(port, "POST", "/mcp", LIST, {"Content-Type": "application/json"})
    check("no token, no answer", status == 401, status)
    for name in ("agent", "approver", "admin"):
        mode = (data / f"{name}.token").stat().st_mode & 0o777
        check(f"{name}.token is for its owner alone", mode == 0o600, oct(mode))

    ran = readme_request(port, data)
    if ran is None:
        check("the README shows a first request", False, "it has no fenced block with a curl in it")
    else:
        # Whatever it asks for, it has to come back as a result and not as an error.
        good = ran.returncode == 0 and '"result"' in ran.stdout and '"error"' not in ran.stdout
        check("the first request of the README is answered", good, ran.stdout[:120] or ran.stderr)

    time.sleep(2)  # idle is a state that lasts, so it is looked at after a while of silence
    resident = resident_mib(server.pid)
    check(f"idle memory below {IDLE_MIB} MiB", resident < IDLE_MIB, f"{resident:.1f} MiB")


def main():
    work = pathlib.Path(tempfile.mkdtemp(prefix="quartermaster-smoke."))
    try:
        best = min(visit(number, work) for number in range(1, STARTS + 1))
        check(f"start to first answer, best of {STARTS}, below {FIRST_ANSWER_MS} ms", best < FIRST_ANSWER_MS, f"{best:.0f} ms")
        best = min(on_standard_streams(number, work) for number in range(1, STDIO_STARTS + 1))
        check(f"stdio: start to first answer, best of {STDIO_STARTS}, below {STDIO_FIRST_ANSWER_MS} ms", best < STDIO_FIRST_ANSWER_MS, f"{best:.0f} ms")
    except (RuntimeError, OSError, KeyError, ValueError, subprocess.TimeoutExpired) as error:
        check("the visits end without an exception", False, repr(error))
    if failed:
        for log in sorted(work.glob("*.log")):
            print(f"\n--- last lines of {log}")
            print("\n".join(log.read_text(errors="replace").splitlines()[-40:]))
        print(f"\nlogs are kept in {work}")
        sys.exit(1)
    shutil.rmtree(work)


main()
