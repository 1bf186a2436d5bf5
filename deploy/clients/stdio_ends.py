"""How `quartermaster stdio` ends, and what it does with rubbish: the process a client must not have to clean up."""

import json
import os
import pathlib
import signal
import subprocess
import sys
import time

import checks
from checks import check

BINARY = os.environ["QUARTERMASTER_BIN"]
WORK = pathlib.Path(sys.argv[1])
PING = b'{"jsonrpc":"2.0","id":1,"method":"ping"}\n'
ENDS_WITHIN_S = 1.0


def start(name):
    arguments = [BINARY, "stdio", "--data", str(WORK / name)]
    # Variables that begin with QM_ are settings of the server; ours are none.
    environment = {name: value for name, value in os.environ.items() if not name.startswith("QM_")}
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "stderr": subprocess.DEVNULL}
    return subprocess.Popen(arguments, env=environment, **pipes)


def ask(server, line):
    server.stdin.write(line)
    server.stdin.flush()
    return json.loads(server.stdout.readline())


def ended(server):
    begun = time.monotonic()
    server.wait(10)
    return time.monotonic() - begun


def main():
    server = start("ends")
    answer = ask(server, PING)
    check("it answers", answer.get("result") == {}, answer)
    for rubbish, code in ((b"rubbish\n", -32700), (b"[]\n", -32600), (b"\xff\xfe\n", -32700)):
        answer = ask(server, rubbish)
        check(f"{rubbish!r} is answered with an error", answer["error"]["code"] == code, answer)
    answer = ask(server, b"x" * 10_000_000 + b"\n")
    check("a line of 10 MB is answered with an error", answer["error"]["code"] == -32600, answer)
    answer = ask(server, PING)
    check("it goes on", answer.get("result") == {}, answer)
    server.stdin.close()
    took = ended(server)
    check(f"it ends with its input, after {took:.3f} s", server.returncode == 0 and took < ENDS_WITHIN_S, server.returncode)
    check("nothing else stands on standard output", server.stdout.read() == b"")

    server = start("ends")
    ask(server, PING)
    server.stdout.close()
    server.stdin.write(PING * 2)
    server.stdin.flush()
    took = ended(server)
    check(f"it ends when nobody reads, after {took:.3f} s", took < ENDS_WITHIN_S, took)

    server = start("ends")
    ask(server, PING)
    server.send_signal(signal.SIGTERM)
    took = ended(server)
    check(f"it ends on SIGTERM, after {took:.3f} s", server.returncode == 0 and took < ENDS_WITHIN_S, server.returncode)


main()
sys.exit(1 if checks.failed() else 0)
