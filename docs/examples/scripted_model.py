"""A model that always knows what to do next, for examples and tests: `python3 scripted_model.py PORT`.

It speaks the OpenAI chat completions and the Anthropic messages API. It reads the conversation it is sent, as a model
would, and keeps nothing between two requests.
"""

import json
import re
import sys
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

CHECKOUT = {"kind": "Deployment", "name": "checkout"}
OPEN = ("pending_approval", "approved", "executing")


def next_step(calls, results, offered):
    """The next tool call as (name, arguments), or a text. `calls` and `results` are those so far, in their order."""
    last, text = (results[-1] if results else ""), "\n".join(results)
    if "k8s_rollout_status" not in calls:
        return "k8s_rollout_status", CHECKOUT
    if "k8s_rollout" not in offered and "load_toolset" not in calls:
        return "load_toolset", {"toolset": "k8s", "include_write_tools": True}
    if "k8s_rollout" not in calls:
        return through(offered, text, "k8s_rollout", {"action": "undo", **CHECKOUT})
    run = re.findall(r"run_[0-9A-Za-z]{22}", text)
    if run and any(state in last for state in OPEN):
        return "await_run", {"run_id": run[-1], "wait_ms": 20000}
    if "k8s_wait" not in calls and "succeeded" in text:
        return "k8s_wait", {**CHECKOUT, "until": "rollout", "timeout_s": 30}
    return "checkout is well again." if re.search(r'met\\?": ?true', text) else f"That did not work: {last}"


def through(offered, text, name, arguments):
    """A tool that was loaded but is not in the list is called through `call_tool`, with the session that was opened."""
    if name in offered or "call_tool" not in offered:
        return name, arguments
    session = re.findall(r"ses_[0-9A-Za-z]{22}", text)[-1]
    return "call_tool", {"session": session, "tool": name, "arguments": arguments}


def inner(name, arguments):
    """The tool that a call is really about."""
    arguments = json.loads(arguments) if isinstance(arguments, str) else arguments
    return arguments.get("tool", name) if name == "call_tool" else name


def openai(request):
    messages = request["messages"]
    asked = [call["function"] for message in messages for call in message.get("tool_calls") or []]
    calls = [inner(function["name"], function["arguments"]) for function in asked]
    results = [flat(message["content"]) for message in messages if message["role"] == "tool"]
    step = next_step(calls, results, {tool["function"]["name"] for tool in request.get("tools", [])})
    message, reason = {"role": "assistant", "content": step}, "stop"
    if not isinstance(step, str):
        call = {"id": f"call_{len(calls)}", "type": "function"}
        call["function"] = {"name": step[0], "arguments": json.dumps(step[1])}
        message, reason = {"role": "assistant", "content": None, "tool_calls": [call]}, "tool_calls"
    return {
        "id": "scripted", "object": "chat.completion", "created": 0, "model": request["model"],
        "choices": [{"index": 0, "message": message, "finish_reason": reason}],
        "usage": {"prompt_tokens": 1, "completion_tokens": 1, "total_tokens": 2},
    }  # fmt: skip


def anthropic(request):
    blocks = [b for m in request["messages"] if isinstance(m["content"], list) for b in m["content"]]
    calls = [inner(b["name"], b["input"]) for b in blocks if b["type"] == "tool_use"]
    results = [flat(b["content"]) for b in blocks if b["type"] == "tool_result"]
    step = next_step(calls, results, {tool["name"] for tool in request.get("tools", [])})
    content, reason = [{"type": "text", "text": step}], "end_turn"
    if not isinstance(step, str):
        content = [{"type": "tool_use", "id": f"toolu_{len(calls)}", "name": step[0], "input": step[1]}]
        reason = "tool_use"
    return {
        "id": "scripted", "type": "message", "role": "assistant", "model": request["model"], "content": content,
        "stop_reason": reason, "stop_sequence": None, "usage": {"input_tokens": 1, "output_tokens": 1},
    }  # fmt: skip


def flat(content):
    """The text of a result, whether it is a text or a list of blocks."""
    return content if isinstance(content, str) else "\n".join(block.get("text", "") for block in content or [])


class Model(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def do_POST(self):
        request = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        answer = anthropic(request) if self.path.endswith("/messages") else openai(request)
        body = json.dumps(answer).encode()
        self.send_response(200)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_):
        pass


if __name__ == "__main__":
    ThreadingHTTPServer(("127.0.0.1", int(sys.argv[1])), Model).serve_forever()
