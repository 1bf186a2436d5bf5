"""A LangGraph agent that gets its tools over MCP, with `langchain-mcp-adapters`."""

import asyncio
import os

from langchain.agents import create_agent
from langchain_mcp_adapters.client import MultiServerMCPClient
from langchain_mcp_adapters.tools import load_mcp_tools
from langchain_openai import ChatOpenAI

SERVICE = {
    "transport": "streamable_http",
    "url": os.environ.get("QM_URL", "http://127.0.0.1:8080") + "/mcp",
    "headers": {"Authorization": f"Bearer {os.environ['QM_TOKEN']}"},
}


async def main():
    # One session for the whole conversation: what is loaded stays loaded.
    async with MultiServerMCPClient({"quartermaster": SERVICE}).session("quartermaster") as session:
        # The agent's tools are fixed when it is made, so the host loads what the task needs first.
        await session.call_tool("load_toolset", {"toolset": "k8s", "include_write_tools": True})
        tools = await load_mcp_tools(session)
        model = ChatOpenAI(model=os.environ.get("MODEL", "scripted"))
        agent = create_agent(model, tools)
        task = {"messages": [("user", "The deployment checkout is broken. Find out why, and mend it.")]}
        async for step in agent.astream(task, stream_mode="updates"):
            for update in step.values():
                message = update["messages"][-1]
                for call in getattr(message, "tool_calls", None) or []:
                    print(call["name"], call["args"], flush=True)
        print(message.content)


asyncio.run(main())
