"""An agent with `pydantic-ai` that gets its tools over MCP."""

import asyncio
import os

from pydantic_ai import Agent
from pydantic_ai.mcp import MCPToolset
from pydantic_ai.messages import ModelResponse, ToolCallPart
from pydantic_ai.models.openai import OpenAIChatModel

URL = os.environ.get("QM_URL", "http://127.0.0.1:8080") + "/mcp"


async def main():
    # The list is not cached: after load_toolset there are more tools. A call may wait for a person for a while.
    service = MCPToolset(
        URL, headers={"Authorization": f"Bearer {os.environ['QM_TOKEN']}"}, cache_tools=False, read_timeout=70
    )
    agent = Agent(
        OpenAIChatModel(os.environ.get("MODEL", "scripted")),
        instructions="A result with a run in state pending_approval waits for a person: call await_run.",
        toolsets=[service],
    )
    async with agent:
        result = await agent.run("The deployment checkout is broken. Find out why, and mend it.")
    for message in result.all_messages():
        for part in message.parts if isinstance(message, ModelResponse) else []:
            if isinstance(part, ToolCallPart):
                print(part.tool_name, part.args)
    print(result.output)


asyncio.run(main())
