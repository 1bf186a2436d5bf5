"""The REST turn API in forty lines: open a session, take this turn's tools, call."""

import json
import os
import urllib.error
import urllib.request

URL = os.environ.get("QM_URL", "http://127.0.0.1:8080")


class Session:
    """One session. `format` is the form of the tools: mcp, openai or anthropic."""

    def __init__(self, format):
        self.format = format
        self.id = _send("POST", "/v1/sessions", {"mode": "write"})["id"]

    def tools(self):
        """This turn's tools. Ask before each model call: after `load_toolset` there are more."""
        return _send("GET", f"/v1/sessions/{self.id}/tools?format={self.format}")["tools"]

    def call(self, name, arguments):
        """A tool's result as JSON text for the model. An error is a result, too: the model can act on it."""
        answer = _send("POST", f"/v1/sessions/{self.id}/calls", {"tool": name, "arguments": arguments})
        result = answer.get("result", answer.get("error"))
        run = result.get("run") if isinstance(result, dict) else None
        if run and run["state"] == "pending_approval" and name != "await_run":
            print(f"waits for a person: quartermaster runs approve {run['id']}", flush=True)
        return json.dumps(result)


def _send(method, path, body=None):
    data = None if body is None else json.dumps(body).encode()
    headers = {"Authorization": f"Bearer {os.environ['QM_TOKEN']}", "Content-Type": "application/json"}
    request = urllib.request.Request(URL + path, data, headers, method=method)
    try:
        with urllib.request.urlopen(request, timeout=70) as answer:
            return json.load(answer)
    except urllib.error.HTTPError as refused:
        # 4xx and 5xx have {"error": {"code", "message", "hint", …}}.
        return json.load(refused)
