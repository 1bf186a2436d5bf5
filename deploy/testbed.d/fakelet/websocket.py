"""The channel protocols of Kubernetes over WebSocket: the first byte of a message says which stream it belongs to.

The API server translates the newest of them into SPDY by itself; older clients, and API servers told not to
translate, have their connection passed through to here.
"""

import base64
import hashlib
import struct

STDIN, STATUS, CLOSE = 0, 3, 255
CONTINUATION, TEXT, BINARY, END, PING, PONG = 0, 1, 2, 8, 9, 10
GUID = "258EAFA5-E914-47DA-95CA-C5AB0DC85B11"  # of RFC 6455


def accept(key):
    """The answer to `Sec-WebSocket-Key`."""
    return base64.b64encode(hashlib.sha1((key + GUID).encode()).digest()).decode()


class WebSocket:
    """One upgraded connection. `serve` reads messages until the other side leaves."""

    PROTOCOLS = ("v5.channel.k8s.io", "v4.channel.k8s.io")

    def __init__(self, wire):
        self.wire = wire

    def serve(self, begin, feed):
        """Calls `begin()` at once, and `feed(data)` for input, empty at its end (which only v5 can tell)."""
        # An empty message says that the streams are there; clients wait for it.
        self.send(BINARY, bytes([1]))
        begin()
        message = b""
        while True:
            final, kind, body = self.receive()
            if kind == END:
                raise EOFError
            if kind == PING:
                self.send(PONG, body)
            if kind in (CONTINUATION, TEXT, BINARY):
                message += body
                if final:
                    self.take(message, feed)
                    message = b""

    def take(self, message, feed):
        if message[:1] == bytes([STDIN]) and len(message) > 1:
            feed(message[1:])
        elif message == bytes([CLOSE, STDIN]):
            feed(b"")

    def receive(self):
        first, second = self.wire.receive(2)
        length = second & 0x7F
        if length == 126:
            length = struct.unpack(">H", self.wire.receive(2))[0]
        elif length == 127:
            length = struct.unpack(">Q", self.wire.receive(8))[0]
        mask = self.wire.receive(4) if second & 0x80 else bytes(4)
        masked = self.wire.receive(length)
        body = bytes(byte ^ mask[at % 4] for at, byte in enumerate(masked))
        return first & 0x80, first & 0x0F, body

    def send(self, kind, body):
        if len(body) < 126:
            size = bytes([len(body)])
        elif len(body) < 1 << 16:
            size = struct.pack(">BH", 126, len(body))
        else:
            size = struct.pack(">BQ", 127, len(body))
        self.wire.send(bytes([0x80 | kind]) + size + body)

    def write(self, number, body):
        self.send(BINARY, bytes([number]) + body)

    def finish(self, status):
        self.send(BINARY, bytes([STATUS]) + status)
        self.send(END, struct.pack(">H", 1000))
