"""The kubelet's own HTTPS interface, as far as the API server uses it for logs and exec.

Only the API server may come in: callers need a client certificate of the testbed's authority.
"""

import http.server
import json
import queue
import socket
import ssl
import threading
import urllib.parse

import programs
from log import Ask
from spdy import Spdy
from websocket import WebSocket, accept
from wire import Wire

INPUT_PIECES = 256  # how much input may wait for a program that does not read it


class Refused(Exception):
    def __init__(self, status, message):
        super().__init__(message)
        self.status = status


class Kubelet(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    find = None  # find(namespace, name) gives a pod or None; set by `listen`

    def log_message(self, *_):
        pass

    def do_GET(self):
        url = urllib.parse.urlparse(self.path)
        pairs = urllib.parse.parse_qsl(url.query)
        match url.path.strip("/").split("/"):
            case ["healthz"]:
                self.answer(200, "ok")
            case [("containerLogs" | "exec") as verb, namespace, name, *_, container]:
                serve = self.logs if verb == "containerLogs" else self.execute
                try:
                    serve(self.container(namespace, name, container), pairs)
                except Refused as refused:
                    self.answer(refused.status, str(refused))
            case _:
                self.answer(501, f"the testbed's nodes do not serve {url.path}")

    do_POST = do_GET

    def answer(self, status, text):
        body = text.encode()
        self.send_response(status)
        self.send_header("Content-Type", "text/plain")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def container(self, namespace, name, container):
        pod = self.find(namespace, name)
        if pod is None:
            raise Refused(404, f'pod "{name}" does not exist')
        found = pod.container(container)
        if found is None:
            raise Refused(400, f'container "{container}" not found in pod "{name}"')
        return found

    # --- logs

    def logs(self, container, pairs):
        query = dict(pairs)
        previous = query.get("previous") == "true"
        log = container.previous if previous else container.log
        where = f'container "{container.name}" in pod "{container.pod.name}"'
        if previous and log is None:
            raise Refused(400, f"previous terminated {where} not found")
        if log is None:
            reason = container.state.get("waiting", {}).get("reason", "ContainerCreating")
            raise Refused(400, f"{where} is waiting to start: {reason}")
        try:
            ask = Ask.of(query)
        except ValueError as wrong:
            raise Refused(422, str(wrong)) from wrong
        self.send_response(200)
        self.send_header("Content-Type", "text/plain")
        self.send_header("Transfer-Encoding", "chunked")
        self.end_headers()
        try:
            for piece in log.read(ask):
                self.wfile.write(b"%x\r\n%s\r\n" % (len(piece), piece))
                self.wfile.flush()
            self.wfile.write(b"0\r\n\r\n")
        except OSError:
            self.close_connection = True

    # --- exec

    def execute(self, container, pairs):
        if "running" not in container.state:
            raise Refused(500, f'container not found ("{container.name}")')
        flags = dict(pairs)
        argv = [value for key, value in pairs if key == "command"]
        streams = 1 + sum(flags.get(name) in ("1", "true") for name in ("input", "output", "error", "tty"))
        transport = self.upgrade(streams)
        waiting = queue.Queue(INPUT_PIECES)
        stopped = threading.Event()

        def run():
            io = programs.Stdio(transport.write, reader(waiting, stopped), container.env, container.pod.name, stopped)
            try:
                transport.finish(json.dumps(outcome(argv, io)).encode())
                self.connection.shutdown(socket.SHUT_RDWR)
            except OSError:
                pass  # the client left before its command did

        try:
            transport.serve(threading.Thread(target=run, daemon=True).start, waiting.put)
        except (EOFError, OSError):
            stopped.set()
        self.close_connection = True

    def upgrade(self, streams):
        """Answers 101 and gives the transport the client asked for."""
        kind = self.headers.get("Upgrade", "").lower()
        if kind == "websocket":
            asked = [word.strip() for word in self.headers.get("Sec-WebSocket-Protocol", "").split(",")]
            known, header = WebSocket.PROTOCOLS, "Sec-WebSocket-Protocol"
        elif kind == "spdy/3.1":
            asked = [
                word.strip()
                for line in self.headers.get_all("X-Stream-Protocol-Version", [])
                for word in line.split(",")
            ]
            known, header = Spdy.PROTOCOLS, "X-Stream-Protocol-Version"
        else:
            raise Refused(400, "you must ask for an upgrade to WebSocket or SPDY/3.1")
        chosen = next((protocol for protocol in asked if protocol in known), None)
        if chosen is None:
            raise Refused(403, f"none of the protocols {asked} is known; known are {list(known)}")
        self.send_response(101)
        self.send_header("Connection", "Upgrade")
        self.send_header("Upgrade", self.headers["Upgrade"])
        self.send_header(header, chosen)
        if kind == "websocket":
            self.send_header("Sec-WebSocket-Accept", accept(self.headers["Sec-WebSocket-Key"]))
        self.end_headers()
        self.wfile.flush()
        wire = Wire(self.connection)
        return WebSocket(wire) if kind == "websocket" else Spdy(wire, streams)


def reader(waiting, stopped):
    """Input for a program: blocks for the next piece, and stays at the end once that was seen."""
    ended = False

    def read():
        nonlocal ended
        while not ended and not stopped.is_set():
            try:
                data = waiting.get(timeout=0.2)
                ended = not data
                return data
            except queue.Empty:
                continue
        return b""

    return read


def outcome(argv, io):
    """Runs the command and says how it ended, in the words of a kubelet over containerd."""
    program = programs.find(argv)
    if program is None:
        problem = (
            "error executing command in container: failed to exec in container: failed to start exec: "
            "OCI runtime exec failed: exec failed: unable to start container process: "
            f'exec: "{argv[0] if argv else ""}": executable file not found in $PATH'
        )
        return {
            "metadata": {},
            "status": "Failure",
            "message": f"Internal error occurred: {problem}",
            "reason": "InternalError",
            "details": {"causes": [{"message": problem}]},
            "code": 500,
        }
    code = program(argv[1:], io)
    if code == 0:
        return {"metadata": {}, "status": "Success"}
    return {
        "metadata": {},
        "status": "Failure",
        "message": f"command terminated with non-zero exit code: exit status {code}",
        "reason": "NonZeroExitCode",
        "details": {"causes": [{"reason": "ExitCode", "message": str(code)}]},
    }


def listen(port, certificate, key, ca, find):
    """Opens the port and serves it from a thread; an occupied port fails here and now."""
    tls = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    tls.load_cert_chain(certificate, key)
    tls.load_verify_locations(ca)
    tls.verify_mode = ssl.CERT_REQUIRED
    handler = type("Handler", (Kubelet,), {"find": staticmethod(find)})
    server = http.server.ThreadingHTTPServer(("127.0.0.1", port), handler)
    # The handshake happens in the connection's own thread: a slow one must not keep the others waiting.
    server.socket = tls.wrap_socket(server.socket, server_side=True, do_handshake_on_connect=False)
    threading.Thread(target=server.serve_forever, daemon=True).start()
