"""An agent with `openai-agents` that gets its tools over MCP."""

import asyncio
import os

from agents import Agent, OpenAIChatCompletionsModel, Runner, set_tracing_disabled
from agents.mcp import MCPServerStreamableHttp
from openai import AsyncOpenAI

URL = os.environ.get("QM_URL", "http://127.0.0.1:8080") + "/mcp"


async def main():
    set_tracing_disabled(True)
    params = {"url": URL, "headers": {"Authorization": f"Bearer {os.environ['QM_TOKEN']}"}, "timeout": 30}
    # The list is not cached: after load_toolset there are more tools. A call may wait for a person for a while.
    async with MCPServerStreamableHttp(params, client_session_timeout_seconds=70, cache_tools_list=False) as service:
        agent = Agent(
            name="on-call",
            instructions="A result with a run in state pending_approval waits for a person: call await_run.",
            model=OpenAIChatCompletionsModel(os.environ.get("MODEL", "scripted"), AsyncOpenAI()),
            mcp_servers=[service],
        )
        task = "The deployment checkout is broken. Find out why, and mend it."
        result = await Runner.run(agent, task, max_turns=50)
        for item in result.new_items:
            if item.type == "tool_call_item":
                print(item.raw_item.name, item.raw_item.arguments)
        print(result.final_output)


asyncio.run(main())
