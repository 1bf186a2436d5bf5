"""The `fastmcp` client: raises on error results, keeps no cache, hears notices in the legacy era only."""

import asyncio
import sys

from fastmcp import Client
from fastmcp.client.messages import MessageHandler
from fastmcp.client.transports import StdioTransport
from fastmcp.exceptions import ToolError
from mcp import MCPError

from checks import COMMAND, LOAD, MODERN, NOTE, TOKEN, URL, check, names, run


class Ear(MessageHandler):
    def __init__(self):
        self.told = asyncio.Event()

    async def on_tool_list_changed(self, message):
        self.told.set()


async def story(mode):
    ear = Ear()
    modern = mode != "legacy"
    server = {"transport": URL, "auth": TOKEN}
    if COMMAND:
        server = {"transport": StdioTransport(COMMAND[0], COMMAND[1:], keep_alive=False)}
    async with Client(**server, mode=mode, message_handler=ear) as client:
        version = client.session.protocol_version
        check("the era is the one asked for", (version == MODERN) == modern, version)

        before = names(await client.list_tools())
        check("the list has memory_read and load_toolset", {"memory_read", "load_toolset"} <= set(before), before)
        check("the list has no write tool", "memory_remember" not in before, before)

        await raises("a tool that is not loaded is refused", ToolError, client.call_tool("memory_remember", NOTE))
        await raises("bad arguments raise", ToolError, client.call_tool("memory_read", {"way": 1}))
        await raises("an unknown tool raises", MCPError, client.call_tool("no_such_tool", {}))

        result = (await client.call_tool("load_toolset", LOAD)).structured_content
        check("load_toolset returns the schema of memory_remember", "memory_remember" in [tool["name"] for tool in result["added"]], result)

        after = names(await client.list_tools())
        if modern:
            check("the list is unchanged", after == before, after)
        else:
            check("the list has grown by memory_remember", "memory_remember" in after and set(before) <= set(after), after)
            try:
                await asyncio.wait_for(ear.told.wait(), 5)
            except TimeoutError:
                pass
            check("list_changed was received", ear.told.is_set())

        meta = {"quartermaster/session": result["session"]} if modern else None
        saved = await client.call_tool("memory_remember", NOTE, meta=meta)
        check("memory_remember saves in the session", saved.structured_content["path"] == NOTE["path"], saved)
        read = await client.call_tool("memory_read", {"path": NOTE["path"]}, meta=meta)
        check("memory_read gives it back", read.structured_content["content"] == NOTE["content"], read)


async def raises(what, kind, call):
    try:
        check(what, False, await call)
    except kind as error:
        check(what, True, error)


run(story(sys.argv[1]))
