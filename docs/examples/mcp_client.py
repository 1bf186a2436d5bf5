"""An MCP client without a model, with the package `mcp`: every step by hand."""

import asyncio
import os

from mcp import Client
from mcp.client.streamable_http import streamable_http_client
from mcp.shared._httpx_utils import create_mcp_http_client

URL = os.environ.get("QM_URL", "http://127.0.0.1:8080") + "/mcp"
CHECKOUT = {"kind": "Deployment", "name": "checkout"}


async def main():
    http = create_mcp_http_client(headers={"Authorization": f"Bearer {os.environ['QM_TOKEN']}"})
    async with Client(streamable_http_client(URL, http_client=http)) as client:
        tools = [tool.name for tool in (await client.list_tools()).tools]
        print("tools at first:", ", ".join(tools))

        async def call(name, arguments, meta=None):
            result = await client.call_tool(name, arguments, meta=meta)
            if result.is_error:
                raise SystemExit(f"{name}: {result.content[0].text}")
            return result.structured_content

        status = await call("k8s_rollout_status", CHECKOUT)
        print("checkout has failed:", status["failed"])

        # Later calls name the session that has the write tools. (In the older protocol era the transport names it.)
        loaded = await call("load_toolset", {"toolset": "k8s", "include_write_tools": True})
        meta = {"quartermaster/session": loaded["session"]}

        asked = await call("k8s_rollout", {"action": "undo", **CHECKOUT}, meta)
        run = asked["run"]["id"]
        print(f"waits for a person: quartermaster runs approve {run}", flush=True)

        outcome = asked
        while outcome["run"]["state"] in ("pending_approval", "approved", "executing"):
            outcome = await call("await_run", {"run_id": run, "wait_ms": 20000})
        print("the run:", outcome["run"]["state"])

        waited = await call("k8s_wait", {**CHECKOUT, "until": "rollout", "timeout_s": 30})
        print("checkout is well again." if waited["met"] else "checkout has not recovered.")


asyncio.run(main())
