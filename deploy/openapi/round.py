"""One round with a client made from the description: open a session, take the tools, call, approve, learn the outcome."""

import os
from pathlib import Path

from quartermaster_client import AuthenticatedClient
from quartermaster_client.api.runs import approve_run
from quartermaster_client.api.sessions import call_tool, list_tools, open_session
from quartermaster_client.models import DecisionRequest, SessionRequest, TurnCall


def client(name):
    token = Path(os.environ["QM_DATA"], f"{name}.token").read_text().strip()
    return AuthenticatedClient(base_url=os.environ["QM_URL"], token=token, timeout=70)


def done(what, answer, *statuses):
    if answer.status_code not in statuses:
        raise SystemExit(f"  FAILED  {what}: {answer.status_code} {answer.content!r}")
    print(f"  ok      {what}: {int(answer.status_code)}")
    return answer.parsed


agent, approver = client("agent"), client("approver")
opening = SessionRequest.from_dict({"mode": "write"})
session = done("open a session", open_session.sync_detailed(client=agent, body=opening), 201).id
tools = done("take the tools", list_tools.sync_detailed(session, client=agent, format_="anthropic"), 200)
assert tools.tools, tools


def call(tool, arguments, status=200):
    body = TurnCall.from_dict({"tool": tool, "arguments": arguments})
    answer = call_tool.sync_detailed(session, client=agent, body=body)
    return done(tool, answer, status).to_dict()["result"]


call("load_toolset", {"toolset": "k8s", "include_write_tools": True})
run = call("k8s_rollout", {"action": "undo", "kind": "Deployment", "name": "checkout"}, 202)["run"]["id"]
reason = DecisionRequest.from_dict({"reason": "one round"})
approved = done("approve", approve_run.sync_detailed(run, client=approver, body=reason), 200)
assert approved.decisions[0].verdict == "approved", approved
outcome = call("await_run", {"run_id": run})
assert outcome["run"]["state"] == "succeeded", outcome
refused = approve_run.sync_detailed(run, client=agent, body=reason)
done("an agent cannot decide", refused, 403)
assert refused.parsed.error.code == "insufficient_scope", refused
