"""Runs the commands of the pages as they stand, and compares what they print with what the page shows.

    pages.py BINARY

In a block `console`, a line that begins with `$ ` is a command and the lines up to the next one are its output. The blocks
of a page run in one shell, in an empty folder beside a `dev` of their own. Of the output, what differs each time may differ:
ids, times, digests, white space, and whatever the page shows as `…`. An id that the page repeats must be repeated.

Every block of every page is run here, or ELSEWHERE says why not; a block that is neither fails.
"""

import os
import pathlib
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
sys.path.insert(0, str(ROOT / "deploy/lib"))

from oci_container import free_port, request  # noqa: E402

# What a page takes for granted. Pages without an entry have no block that runs here.
ADMIN = "TOKEN=$(cat .quartermaster/admin.token)"
AGENT = "TOKEN=$(cat .quartermaster/agent.token)"
ASK = """
ask() { # PATH: asks for a change that a person has to approve, as an agent; sets RUN
    local agent="Authorization: Bearer $(cat .quartermaster/agent.token)" json='Content-Type: application/json' api=http://127.0.0.1:8080
    RUN=$(curl -s $api/mcp/x/memory:write -H "$agent" -H "$json" -d '{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{
        "name":"memory_remember","arguments":{"path":"'"$1"'","type":"runbook","content":"# Restart web\\nDrain first, then restart.","evidence":"done twice"}}}' |
        grep -o 'run_[0-9A-Za-z]*' | head -1)
}
"""
PAGES = {
    "README.md": "",
    "docs/tutorial.md": "",
    "docs/approvals.md": ASK,
    "docs/API.md": AGENT + ASK,
    "docs/audit.md": "",
    "docs/switches.md": "",
    "docs/usage.md": "",
    "docs/stdio.md": "",
    "docs/runners.md": "",
}
# What has to be so before a block, by a part of its first command.
BEFORE = {
    "sessions/$SESSION/tools?format": 'SESSION=$(curl -s http://127.0.0.1:8080/v1/sessions -H "Authorization: Bearer $TOKEN" -H "Content-Type: application/json" -d "{}" | jq -r .id)',
    "runs?state=pending_approval": "ask tenant/runbooks/restart-web; TOKEN=$(cat .quartermaster/approver.token)",
    "/v1/memory/documents/tenant/runbooks": ADMIN,
    "/v1/tenant/secrets/ci-token": "CI_TOKEN=example-of-a-token",
    "/v1/runs/$RUN/approve": "ask tenant/runbooks/drain-web",
}
# Blocks that are not run here, by a part of their first command, and who runs them or why nobody does.
ELSEWHERE = {
    "cargo run --release -- dev": "the ring smoke starts the binary; the rest of the page needs it running",
    "quartermaster dev": "started by this program",
    "deploy/test": "this is one of its rings",
    "cargo build --release": "the ring build",
    "/v1/tenant/servers": "tests/it/servers_api.rs: needs an external server",
    "/v1/runs/$RUN/resolve": "tests/it/runs_desk.rs: needs an outcome that nobody knows",
    "/v1/runs/$RUN/clear": "tests/it/runs_desk.rs: needs a rejection that blocks a session",
    "quartermaster stdio --url http": "the ring clients, as a bridge",
    "claude mcp add": "a program of somebody else",
    "quartermaster audit verify": "the ring archive, with files of its own",
    "quartermaster token --tenant acme": "tests/it/runner_process.rs: needs a service with this address",
    "quartermaster check": "tests/it/tenant_docs.rs, which compares the output",
    "quartermaster explain": "tests/it/tenant_docs.rs, which compares the output",
    "kubectl create namespace": "the ring chart",
    "kubectl apply --server-side -f deploy/operator/crds": "the ring operator applies them, and the ring chart installs",
    "helm install": "the ring chart",
    "deploy/image/build": "the ring image",
    "deploy/compose/prepare": "the ring files checks it; no container engine runs in the rings",
    "install -m 755": "the ring files checks the unit; no systemd runs in the rings",
    "eval \"$(": "the rings control_plane and upstreams",
    "UPDATE_TOKENS=1": "writes files of the checkout",
    "UPDATE_DOCS=1": "writes files of the checkout",
    "deploy/fuzz": "fuzzing is by hand; the ring unit replays its corpora",
    "cargo install": "mutation testing is by hand",
    "cargo test": "the ring unit",
    "cargo build --profile dist": "load tests are by hand",
    "cargo run --profile dist": "load tests are by hand",
    "export QM_URL": "the ring examples",
    "python3 docs/examples": "the ring examples",
    "quartermaster runs approve RUN": "the ring examples",
}
# deploy/site/walk.py runs these pages, with checks of their own.
WALKED = {"docs/quickstart.md", "docs/agents.md"}

BINARY = pathlib.Path(sys.argv[1]).resolve()
# What stands for itself throughout a page: ids, and digests of which the page shows the beginning.
ID = r"(?:run|ses|sw)_[0-9A-Za-z]+|[0-9a-f]{8,}…"
TIME = r"\d{4}-\d\d-\d\dT[\d:.]+Z"
failed = ran = 0


def report(what, holds, seen=""):
    global failed, ran
    ran += 1
    print(f"  {'ok      ' if holds else 'FAILED  '}{what}{'' if holds else f'{chr(10)}{seen}'}", flush=True)
    failed += not holds


def blocks(page):
    """Line number and text of each block with commands."""
    text = (ROOT / page).read_text()
    for found in re.finditer(r"^```(console|sh)\n(.*?)^```", text, re.M | re.S):
        lines = found[2] if found[1] == "console" else "".join(f"$ {step}\n" for step in steps(found[2]))
        yield text[: found.start()].count("\n") + 1, lines


def is_whole(command):
    """Whether bash would not wait for another line."""
    told = subprocess.run(["bash", "-n", "-c", command], capture_output=True, text=True, check=False)
    return told.returncode == 0 and not told.stderr and not command.rstrip("\n").endswith("\\")


def steps(block):
    """The commands of a block without prompts."""
    command = ""
    for line in block.splitlines():
        command += line
        if is_whole(command):
            yield command
            command = ""
        else:
            command += "\n"


def commands(block):
    """Pairs of a command and the output that the page shows for it."""
    command, output = None, []
    for line in block.splitlines():
        if line.startswith("$ ") and (command is None or is_whole(command)):
            if command is not None:
                yield command, "\n".join(output)
            command, output = line[2:], []
        elif is_whole(command):
            output.append(line)
        else:
            command += "\n" + line
    yield command, "\n".join(output)


def pattern(shown, ids):
    """What matches the output that a page shows; ids that were seen before must be the same, new ones become groups."""
    parts, groups = [], {}
    for token in re.findall(rf"{ID}|{TIME}|…|\s+|.", shown):
        if re.fullmatch(ID, token) and token in ids:
            parts.append(re.escape(ids[token]))
        elif re.fullmatch(ID, token) and token in groups:
            parts.append(f"(?P={groups[token]})")
        elif re.fullmatch(ID, token):
            groups[token] = f"id{len(groups)}"
            parts.append(f"(?P<{groups[token]}>{token[: token.find('_') + 1]}[0-9A-Za-z]+)")
        elif re.fullmatch(TIME, token):
            parts.append(TIME)
        elif token == "…":
            parts.append(".*?")
        else:
            parts.append(r"\s*" if token.isspace() else re.escape(token))
    return re.compile("".join(parts), re.S | re.I), groups


def differs(shown, seen, ids):
    """The part of the page that is not in the output; adds to ids what it finds. Headers of an answer come in any order."""
    head, blank, body = shown.partition("\n\n") if shown.startswith("HTTP/") else ("", "", shown)
    for part in [*head.splitlines(), body]:
        wanted, groups = pattern(part.strip(), ids)
        found = wanted.search(seen)
        if not found:
            return part
        ids.update({token: found[group] for token, group in groups.items()})
    return None


class Shell:
    """One shell for all blocks of a page, so that what a block sets is there for the next one."""

    def __init__(self, folder, environment):
        self.folder = folder
        self.process = subprocess.Popen(["bash"], stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, cwd=folder, env=environment, text=True)

    def run(self, command):
        """The exit code of a command and what it prints."""
        (self.folder / ".step").write_text(f"{command}\n")
        self.process.stdin.write(". ./.step </dev/null\nprintf '\\n<over %d>\\n' $?\n")
        self.process.stdin.flush()
        seen = ""
        for line in self.process.stdout:
            over = re.fullmatch(r"<over (\d+)>\n", line)
            if over:
                return int(over[1]), seen.rstrip("\n")
            seen += line
        return -1, seen + "\n(the shell has ended)"


def walk(page, shell, port):
    """The blocks of one page that run here."""
    ids = {}
    shell.run(PAGES[page].replace("127.0.0.1:8080", f"127.0.0.1:{port}"))
    for number, block in blocks(page):
        pairs = list(commands(block))
        if any(part in pairs[0][0] for part in ELSEWHERE):
            continue
        for part, before in BEFORE.items():
            if part in pairs[0][0]:
                shell.run(before.replace("127.0.0.1:8080", f"127.0.0.1:{port}"))
        for command, shown in pairs:
            command = command.replace("127.0.0.1:8080", f"127.0.0.1:{port}")
            for token, actual in ids.items():
                command = command.replace(token, actual)
            # A command that follows the audit log ends when somebody stops it.
            follows = " tail " in command
            code, seen = shell.run(f"timeout 2 {command}" if follows else command)
            missing = differs(shown.replace("127.0.0.1:8080", f"127.0.0.1:{port}"), seen, ids)
            # curl ends with 0 whatever the service answers, and jq finds nothing in an error.
            refused = '"error":{"code"' in seen or seen == "null"
            holds = code == (124 if follows else 0) and missing is None and not refused
            report(f"{page}:{number}: {command.splitlines()[0][:80]}", holds, f"exit {code}; the page has:\n{missing}\nand it printed:\n{seen[:4000]}")


def serve(page):
    """Starts `dev` in an empty folder and walks one page there."""
    work = pathlib.Path(tempfile.mkdtemp(prefix="quartermaster-page."))
    port = free_port()
    # A page says `target/release/quartermaster` where it was just built.
    (work / "target/release").mkdir(parents=True)
    (work / "target/release/quartermaster").symlink_to(BINARY)
    environment = os.environ | {"PATH": f"{work}/target/release:{os.environ['PATH']}", "HOME": str(work), "NO_COLOR": "1"}
    environment["QUARTERMASTER_URL"] = f"http://127.0.0.1:{port}"
    with open(work / "dev.log", "wb") as log:
        server = subprocess.Popen([str(BINARY), "dev", "--listen", f"127.0.0.1:{port}"], cwd=work, stdout=log, stderr=log)
    before = failed
    try:
        until = time.monotonic() + 30
        while time.monotonic() < until and not (request(port, "GET", "/health")[0] == 200 and "agent.token" in (work / "dev.log").read_text()):
            time.sleep(0.05)
        shell = Shell(work, environment)
        walk(page, shell, port)
        shell.process.kill()
    finally:
        server.send_signal(signal.SIGTERM)
        server.wait(30)
    if failed == before:
        shutil.rmtree(work)
    else:
        print(f"  logs are kept in {work}")


def main():
    pages = sorted(str(path.relative_to(ROOT)) for path in [ROOT / "README.md", ROOT / "loadtests/README.md", *(ROOT / "docs").rglob("*.md")])
    for page in pages:
        for number, block in blocks(page):
            command, _ = next(commands(block))
            known = page in PAGES or page in WALKED or any(part in command for part in ELSEWHERE)
            if not known:
                report(f"{page}:{number}: {command.splitlines()[0][:80]}", False, "is run nowhere: add its page to PAGES, or say in ELSEWHERE who runs it")
    for page in PAGES:
        print(page, flush=True)
        serve(page)
    if failed:
        sys.exit(f"{failed} of {ran} failed")
    print(f"{ran} commands of {len(PAGES)} pages print what the pages show")


main()
