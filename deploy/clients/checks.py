"""What every Python client checks with: one line per check, and an exit code that tells."""

import asyncio
import json
import os
import sys

URL = os.environ.get("QM_URL")
TOKEN = os.environ.get("QM_TOKEN")
# A command and its arguments: then the server is a child of the client, and speaks on its standard streams.
COMMAND = json.loads(os.environ.get("QM_COMMAND", "null"))
MODERN = "2026-07-28"
NOTE = {
    "path": "session/notes/hello",
    "type": "note",
    "content": "hello from a foreign client",
    "evidence": "written by the client tests",
}
LOAD = {"toolset": "memory", "include_write_tools": True}

_failed = 0


def check(what, holds, seen=None):
    """Prints the verdict; what was seen is shown only when it is wrong."""
    global _failed
    if holds:
        print(f"  ok      {what}")
    else:
        _failed += 1
        print(f"  FAILED  {what}: {seen!r}")


def failed():
    return _failed


def names(tools):
    return [tool.name for tool in tools]


def run(session):
    """Runs one client's story and leaves with its verdict."""
    try:
        asyncio.run(asyncio.wait_for(session, 90))
    except BaseException as error:  # a task group wraps its causes: show them all
        import traceback

        traceback.print_exception(error)
        check("the story ends without an exception", False, error)
    sys.exit(1 if _failed else 0)
