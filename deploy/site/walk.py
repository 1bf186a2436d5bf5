"""Runs what the pages for newcomers claim to run, against a service that this starts.

    walk.py BINARY

The blocks `sh` of docs/quickstart.md, in a shell, as they stand; and the program of docs/agents.md, with a script that
approves in place of a person. Only address and data folder are replaced.
"""

import json
import os
import pathlib
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import time

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
sys.path.insert(0, str(ROOT / "deploy/lib"))

from oci_container import free_port, request  # noqa: E402

BINARY = pathlib.Path(sys.argv[1]).resolve()
failed = 0


def check(what, holds, seen=""):
    global failed
    print(f"  {'ok      ' if holds else 'FAILED  '}{what}{'' if holds else f': {seen}'}", flush=True)
    failed += not holds


def blocks(page, language):
    return re.findall(rf"^```{language}\n(.*?)^```", (ROOT / page).read_text(), re.M | re.S)


def quickstart(shell):
    steps = blocks("docs/quickstart.md", "sh")
    wanted = ['"state":"pending_approval"', "checkout:2.7.1", "approved", '"met":true']
    check("the quickstart has the steps that are looked for", len(steps) == len(wanted), len(steps))
    for number, (step, part) in enumerate(zip(steps, wanted, strict=False), 2):
        done = shell(step)
        said = done.stdout.replace('\\"', '"').replace(": ", ":") + done.stderr
        check(f"quickstart, step {number}: {part}", done.returncode == 0 and part in said, said[-1500:])


def agent(port, data, environment):
    """The program of the page for authors of agents, approved while it waits."""
    (program,) = blocks("docs/agents.md", "python")
    over = threading.Event()

    def approve():
        token = (data / "approver.token").read_text().strip()
        headers = {"Authorization": f"Bearer {token}", "Content-Type": "application/json"}
        while not over.wait(0.1):
            _, listed = request(port, "GET", "/v1/runs?state=pending_approval", headers=headers)
            for run in json.loads(listed)["runs"]:
                request(port, "POST", f"/v1/runs/{run['id']}/approve", "{}", headers)

    approver = threading.Thread(target=approve)
    approver.start()
    given = environment | {"SERVICE": f"http://127.0.0.1:{port}", "TOKEN": (data / "agent.token").read_text().strip()}
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, env=given, timeout=120, check=False)
    over.set()
    approver.join()
    for part in ("tools: ['k8s_get'", "'checkout'", "'k8s': 'write'", "asked: 202 pending_approval", "outcome: succeeded"):
        check(f"the program for authors of agents: {part}", part in done.stdout, done.stdout + done.stderr)


def is_ready(port, log):
    """Whether it answers and has said where its tokens are: it writes them after it listens."""
    return request(port, "GET", "/health")[0] == 200 and "agent.token" in log.read_text()


def main():
    work = pathlib.Path(tempfile.mkdtemp(prefix="quartermaster-walk."))
    port, data = free_port(), work / ".quartermaster"
    environment = os.environ | {"PATH": f"{BINARY.parent}:{os.environ['PATH']}"}
    with open(work / "dev.log", "wb") as log:
        server = subprocess.Popen([str(BINARY), "dev", "--listen", f"127.0.0.1:{port}", "--data", str(data)], stdout=log, stderr=log)
    try:
        until = time.monotonic() + 30
        while not is_ready(port, work / "dev.log") and time.monotonic() < until:
            time.sleep(0.05)

        def shell(step):
            step = step.replace("127.0.0.1:8080", f"127.0.0.1:{port}")
            return subprocess.run(["bash", "-euc", step], cwd=work, env=environment, capture_output=True, text=True, timeout=90, check=False)

        quickstart(shell)
        agent(port, data, environment)
    finally:
        server.send_signal(signal.SIGTERM)
        server.wait(30)
    if failed:
        sys.exit(f"{failed} failed; logs are kept in {work}")
    shutil.rmtree(work)


main()
