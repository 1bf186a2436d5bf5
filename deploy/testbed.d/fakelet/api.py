"""The API server as the fakelet sees it: one request, one watch."""

import http.client
import json
import ssl
import threading
import time
import urllib.parse

STRATEGIC = "application/strategic-merge-patch+json"
JSON = "application/json"


class Api:
    """A client with one connection per thread, so that nobody waits behind anybody else's request."""

    def __init__(self, server, ca, token):
        url = urllib.parse.urlparse(server)
        self.host, self.port, self.token = url.hostname, url.port, token
        self.tls = ssl.create_default_context(cafile=ca)
        self.own = threading.local()

    def connect(self, timeout):
        return http.client.HTTPSConnection(self.host, self.port, context=self.tls, timeout=timeout)

    def headers(self, content=JSON):
        return {"Authorization": f"Bearer {self.token}", "Content-Type": content, "Accept": JSON}

    def call(self, method, path, body=None, content=JSON):
        """Gives (status, object). A connection the server closed meanwhile is opened once more."""
        payload = None if body is None else json.dumps(body)
        for last in (False, True):
            connection = getattr(self.own, "connection", None) or self.connect(30)
            self.own.connection = connection
            try:
                connection.request(method, path, payload, self.headers(content))
                response = connection.getresponse()
                text = response.read()
                return response.status, json.loads(text) if text else {}
            except (OSError, http.client.HTTPException):
                connection.close()
                self.own.connection = None
                if last:
                    raise

    def get(self, path):
        return self.call("GET", path)

    def post(self, path, body):
        return self.call("POST", path, body)

    def patch(self, path, body):
        return self.call("PATCH", path, body, STRATEGIC)

    def hang_up(self):
        """For a thread that ends: its connection would otherwise stay open until it is collected."""
        connection = getattr(self.own, "connection", None)
        if connection:
            connection.close()
            self.own.connection = None

    def follow(self, path, on_list, on_event):
        """Lists and watches for ever. After any interruption it lists again, so nothing is missed for long."""
        while True:
            try:
                status, listed = self.get(path)
                if status != 200:
                    raise OSError(f"list {path}: {status} {listed.get('message', '')}")
                on_list(listed["items"])
                self.watch(path, listed["metadata"]["resourceVersion"], on_event)
            except (OSError, ValueError, http.client.HTTPException) as broken:
                print(f"watch {path}: {broken!r}", flush=True)
                time.sleep(0.5)

    def watch(self, path, version, on_event):
        connection = self.connect(330)
        try:
            connection.request(
                "GET", f"{path}?watch=1&resourceVersion={version}&timeoutSeconds=300", headers=self.headers()
            )
            for line in connection.getresponse():
                event = json.loads(line)
                if event["type"] == "ERROR":
                    return
                on_event(event["type"], event["object"])
        finally:
            connection.close()
