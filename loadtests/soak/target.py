"""What the agents act on: an MCP server that outlives every replica and counts what is done to it.

`add` changes something each time it is called and must never be called twice for one run. `put` says that it may be
repeated. `peek` only reads. Whether an answer still reaches its caller is for `lose_answers` and `refuse` to say; the effect
has happened then, as it would have anywhere else.
"""

import http.server
import json
import threading
import time

TEXT = {"type": "object", "properties": {"key": {"type": "string"}}, "required": ["key"], "additionalProperties": False}
TOOLS = [
    {"name": "add", "description": "Adds one to a counter", "inputSchema": TEXT},
    {"name": "put", "description": "Sets a value", "inputSchema": TEXT, "annotations": {"idempotentHint": True}},
    {"name": "peek", "description": "Reads a counter", "inputSchema": TEXT, "annotations": {"readOnlyHint": True}},
]


class Target:
    def __init__(self, address, port):
        self.lock = threading.Lock()
        self.calls = {}  # key -> how often it was added, or put
        self.values = set()  # keys that were put: putting again changes nothing
        self.refuse = self.lose_answers = False
        target = self

        class Handler(http.server.BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def log_message(self, *_):
                pass

            def do_GET(self):
                self.reply(405, b"")

            do_DELETE = do_GET

            def do_POST(self):
                body = json.loads(self.rfile.read(int(self.headers.get("Content-Length", 0))))
                if target.refuse:
                    self.close_connection = True
                    return
                answer = target.answer(body)
                if target.lose_answers and body.get("method") == "tools/call":
                    self.close_connection = True
                    return
                if "id" not in body:
                    self.reply(202, b"")
                    return
                self.reply(200, json.dumps({"jsonrpc": "2.0", "id": body["id"], **answer}).encode())

            def reply(self, status, body):
                self.send_response(status)
                self.send_header("Content-Type", "application/json")
                self.send_header("Content-Length", str(len(body)))
                self.end_headers()
                self.wfile.write(body)

        self.server = http.server.ThreadingHTTPServer((address, port), Handler)
        self.server.daemon_threads = True
        # Callers die in the middle of their calls here.
        self.server.handle_error = lambda *_: None
        threading.Thread(target=self.server.serve_forever, daemon=True).start()

    def answer(self, body):
        method, params = body.get("method"), body.get("params") or {}
        if method == "initialize":
            info = {"name": "counter", "version": "1"}
            return {"result": {"protocolVersion": params.get("protocolVersion", "2025-11-25"), "capabilities": {"tools": {}}, "serverInfo": info}}
        if method == "tools/list":
            return {"result": {"tools": TOOLS}}
        if method == "ping":
            return {"result": {}}
        if method == "tools/call":
            return {"result": {"content": [{"type": "text", "text": self.act(params["name"], params["arguments"]["key"])}]}}
        return {"error": {"code": -32601, "message": "no such method"}}

    def act(self, tool, key):
        with self.lock:
            if tool == "add":
                self.calls[key] = self.calls.get(key, 0) + 1
            elif tool == "put":
                self.values.add(key)
            count = self.calls.get(key, 0) + (key in self.values)
        # Long enough that a replica can die in the middle of it.
        if tool != "peek":
            time.sleep(0.05)
        return f"{key} is {count}"

    def effects(self, key):
        with self.lock:
            return self.calls.get(key, 0) + (key in self.values)

    def keys(self):
        with self.lock:
            return set(self.calls) | self.values
