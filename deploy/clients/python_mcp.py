"""The Python SDK `mcp`: `legacy` has a session whose list grows, `auto` carries the handle in `_meta`."""

import asyncio
import sys

from mcp import Client, MCPError
from mcp.client.stdio import StdioServerParameters, stdio_client
from mcp.client.streamable_http import streamable_http_client
from mcp.shared._httpx_utils import create_mcp_http_client
from mcp_types import ToolListChangedNotification

from checks import COMMAND, LOAD, MODERN, NOTE, TOKEN, URL, check, names, run


def transport():
    if COMMAND:
        return stdio_client(StdioServerParameters(command=COMMAND[0], args=COMMAND[1:]))
    http = create_mcp_http_client(headers={"Authorization": f"Bearer {TOKEN}"})
    return streamable_http_client(URL, http_client=http)


async def story(mode):
    told = asyncio.Event()

    async def hear(message):
        if isinstance(message, ToolListChangedNotification):
            told.set()

    async with Client(transport(), mode=mode, message_handler=hear) as client:
        modern = mode != "legacy"
        check("the era is the one asked for", (client.protocol_version == MODERN) == modern, client.protocol_version)

        before = names((await client.list_tools()).tools)
        check("the list has memory_read and load_toolset", {"memory_read", "load_toolset"} <= set(before), before)
        check("the list has no write tool", "memory_remember" not in before, before)

        await refusals(client)

        loaded = await client.call_tool("load_toolset", LOAD)
        check("load_toolset succeeds", not loaded.is_error, loaded)
        result = loaded.structured_content
        added = {tool["name"]: tool for tool in result["added"]}
        check("load_toolset returns the schema of memory_remember", added["memory_remember"]["inputSchema"]["type"] == "object", result)

        after = names((await client.list_tools(cache_mode="refresh")).tools)
        if modern:
            check("the list is unchanged", after == before, after)
            await listening(client)
        else:
            check("the list has grown by memory_remember", "memory_remember" in after and set(before) <= set(after), after)
            await heard(told)

        meta = {"quartermaster/session": result["session"]} if modern else None
        saved = await client.call_tool("memory_remember", NOTE, meta=meta)
        check("memory_remember saves in the session", not saved.is_error, saved)
        read = await client.call_tool("memory_read", {"path": NOTE["path"]}, meta=meta)
        check("memory_read gives it back", not read.is_error and read.structured_content["content"] == NOTE["content"], read)
        if modern:
            inner = {"session": result["session"], "tool": "memory_read", "arguments": {"path": NOTE["path"]}}
            through = await client.call_tool("call_tool", inner)
            check("call_tool gives it back too", NOTE["content"] in through.content[0].text, through)


async def refusals(client):
    early = await client.call_tool("memory_remember", NOTE)
    check("a tool that is not loaded is refused", early.is_error and "load_toolset" in early.content[0].text, early)
    wrong = await client.call_tool("memory_read", {"way": 1})
    check("bad arguments are an error result", wrong.is_error, wrong)
    try:
        check("an unknown tool raises", False, await client.call_tool("no_such_tool", {}))
    except MCPError as error:
        check("an unknown tool raises", error.error.code == -32602, error)


async def listening(client):
    async with client.listen(tools_list_changed=True) as subscription:
        check("a listen stream is acknowledged", bool(subscription.honored.tools_list_changed), subscription.honored)


async def heard(told):
    try:
        await asyncio.wait_for(told.wait(), 5)
    except TimeoutError:
        pass
    check("list_changed was received", told.is_set())


run(story(sys.argv[1]))
