"""A FastMCP server for `loadtests --peers`: as many tools as a small toolset has, and one that only answers.

    fast.py PORT

`noop` does nothing, `read` gives fixed text of the size of a short list, `write` counts.
"""

import sys

from fastmcp import FastMCP
from mcp.types import ToolAnnotations

READS = ToolAnnotations(readOnlyHint=True)
server = FastMCP("peer")
written = 0


@server.tool(annotations=READS)
def noop() -> str:
    """Answers, and does nothing."""
    return "This is a simple text response for testing."


@server.tool(annotations=READS)
def read(name: str) -> str:
    """Reads a document."""
    return f"{name}: " + "line of text\n" * 40


@server.tool
def write(name: str, text: str) -> int:
    """Writes a document, and says how many were written."""
    global written
    written += 1
    return written


def more(number):
    """Tools that nobody calls: a list has about as many as ours."""

    @server.tool(name=f"spare_{number}", annotations=READS)
    def spare(kind: str, namespace: str = "", limit: int = 100) -> str:
        """Reads objects of a kind in a namespace, the newest first."""
        return f"{kind} {namespace} {limit}"


for number in range(12):
    more(number)

server.run(transport="http", host="127.0.0.1", port=int(sys.argv[1]), show_banner=False, log_level="error")
