"""One request over HTTP, and a token to send with it."""

import base64
import hashlib
import hmac
import http.client
import json
import time

TIMEOUT = 12


def encoded(data):
    return base64.urlsafe_b64encode(data).rstrip(b"=").decode()


class Issuer:
    """Signs tokens as a development issuer does."""

    def __init__(self, name, key, audience):
        self.name, self.key, self.audience = name, key, audience

    def token(self, tenant, subject, scope):
        # Issued a while ago and good for hours: replicas with a clock that is minutes off accept it as well.
        now = int(time.time())
        claims = {"iss": self.name, "aud": self.audience, "sub": subject, "tenant": tenant, "scope": scope, "iat": now - 1800, "exp": now + 6 * 3600}
        head = encoded(json.dumps({"alg": "HS256", "typ": "JWT"}).encode()) + "." + encoded(json.dumps(claims).encode())
        return head + "." + encoded(hmac.new(self.key, head.encode(), hashlib.sha256).digest())


class Answer:
    """What came back; `status` 0 if nothing did, and then `body` says what happened instead."""

    def __init__(self, status, body):
        self.status, self.body = status, body

    @property
    def code(self):
        error = self.body.get("error") if isinstance(self.body, dict) else None
        return error.get("code", "") if isinstance(error, dict) else ""


def send(address, token, method, path, body=None):
    connection = http.client.HTTPConnection(address, 8080, timeout=TIMEOUT)
    headers = {"Authorization": f"Bearer {token}"}
    if body is not None:
        headers["Content-Type"] = "application/json"
    try:
        connection.request(method, path, None if body is None else json.dumps(body), headers)
        answer = connection.getresponse()
        data = answer.read()
        try:
            return Answer(answer.status, json.loads(data) if data else {})
        except ValueError:
            return Answer(answer.status, {"text": data.decode(errors="replace")})
    except (OSError, http.client.HTTPException) as error:
        return Answer(0, {"text": repr(error)})
    finally:
        connection.close()
