"""A small shop as a FastMCP server: reads that say so, a change, one that destroys, and one that fails.

    shop.py PORT http    in both eras
    shop.py PORT sse     over the older transport, HTTP+SSE
"""

import sys

from fastmcp import FastMCP
from fastmcp.exceptions import ToolError
from mcp.types import ToolAnnotations
from starlette.responses import JSONResponse

READS = ToolAnnotations(readOnlyHint=True)
shop = FastMCP("shop")
stock = {"apple": 12, "pear": 3}


@shop.tool(annotations=READS)
def count(item: str) -> int:
    """How many of an item are there."""
    return stock.get(item, 0)


@shop.tool(annotations=READS)
def inventory() -> dict[str, int]:
    """Everything there is."""
    return stock


@shop.tool
def restock(item: str, more: int) -> int:
    """Add some of an item, and say how many there are now."""
    stock[item] = stock.get(item, 0) + more
    return stock[item]


@shop.tool(annotations=ToolAnnotations(readOnlyHint=False, destructiveHint=True))
def clear(item: str) -> str:
    """Throw away all of an item."""
    return f"{stock.pop(item, 0)} gone"


@shop.tool(annotations=READS)
def broken() -> str:
    """Always fails."""
    raise ToolError("the till is jammed")


@shop.custom_route("/health", methods=["GET"])
async def health(_request):
    """As the contract of a LanguageTool wants it."""
    return JSONResponse({"status": "ok"})


shop.run(transport=sys.argv[2], host="127.0.0.1", port=int(sys.argv[1]), show_banner=False, log_level="WARNING")
