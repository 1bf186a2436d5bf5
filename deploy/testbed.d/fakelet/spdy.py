"""SPDY/3.1 as the API server speaks it to a kubelet: one stream each for errors, input, output and error output.

Only what that needs: the client opens the streams, nobody controls the flow, headers are read for their stream type.
"""

import struct
import zlib

SYN_STREAM, SYN_REPLY, RST_STREAM, PING, GOAWAY = 1, 2, 3, 6, 7
FIN = 1
VERSION = 0x8003  # the high bit marks a control frame

# The compression dictionary of the specification: words with their lengths, then a run of bare text.
WORDS = """options head post put delete trace accept accept-charset accept-encoding accept-language accept-ranges age
allow authorization cache-control connection content-base content-encoding content-language content-length
content-location content-md5 content-range content-type date etag expect expires from host if-match if-modified-since
if-none-match if-range if-unmodified-since last-modified location max-forwards pragma proxy-authenticate
proxy-authorization range referer retry-after server te trailer transfer-encoding upgrade user-agent vary via warning
www-authenticate method get status 200_OK version HTTP/1.1 url public set-cookie keep-alive origin"""
TEXT = (
    "100101201202205206300302303304305306307402405406407408409410411412413414415416417502504505"
    "203 Non-Authoritative Information204 No Content301 Moved Permanently400 Bad Request401 Unauthorized"
    "403 Forbidden404 Not Found500 Internal Server Error501 Not Implemented503 Service Unavailable"
    "Jan Feb Mar Apr May Jun Jul Aug Sept Oct Nov Dec 00:00:00 Mon, Tue, Wed, Thu, Fri, Sat, Sun, GMT"
    "chunked,text/html,image/png,image/jpg,image/gif,application/xml,application/xhtml+xml,text/plain,"
    "text/javascript,publicprivatemax-age=gzip,deflate,sdchcharset=utf-8charset=iso-8859-1,utf-,*,enq=0."
)


def prefixed(text):
    return struct.pack(">I", len(text)) + text.encode()


DICTIONARY = b"".join(prefixed(word.replace("_", " ")) for word in WORDS.split()) + TEXT.encode()


class Spdy:
    """One upgraded connection. `serve` reads frames until the other side leaves."""

    PROTOCOLS = ("v4.channel.k8s.io",)

    def __init__(self, wire, expected):
        self.wire, self.expected = wire, expected  # how many streams the client is going to open
        self.inflate = zlib.decompressobj(zdict=DICTIONARY)
        self.deflate = zlib.compressobj(zdict=DICTIONARY)
        self.streams = {}  # stream type -> id
        self.last = 0

    def serve(self, begin, feed):
        """Calls `begin()` once every stream is open, and `feed(data)` for input, empty at its end."""
        while True:
            first, second = struct.unpack(">II", self.wire.receive(8))
            flags, body = second >> 24, self.wire.receive(second & 0xFFFFFF)
            if first >> 16 == VERSION:
                opened = self.control(first & 0xFFFF, body)
                if opened and len(self.streams) == self.expected:
                    begin()
            elif first == self.streams.get("stdin"):
                if body:
                    feed(body)
                if flags & FIN:
                    feed(b"")

    def control(self, kind, body):
        """Answers a control frame; True if it opened a stream."""
        if kind == SYN_STREAM:
            self.last = struct.unpack(">I", body[:4])[0]
            self.streams[self.headers(body[10:]).get("streamtype")] = self.last
            nothing = self.deflate.compress(struct.pack(">I", 0)) + self.deflate.flush(zlib.Z_SYNC_FLUSH)
            self.frame(SYN_REPLY, struct.pack(">I", self.last) + nothing)
            return True
        if kind == PING:
            self.frame(PING, body)
        elif kind == GOAWAY:
            raise EOFError
        return False

    def headers(self, block):
        """All header blocks of a connection are one compressed stream, so each must be read."""
        data = self.inflate.decompress(block)
        fields, at = [], 4
        while at < len(data):
            length = struct.unpack(">I", data[at : at + 4])[0]
            fields.append(data[at + 4 : at + 4 + length].decode())
            at += 4 + length
        return dict(zip(fields[::2], fields[1::2]))

    def frame(self, kind, body):
        self.wire.send(struct.pack(">HHI", VERSION, kind, len(body)) + body)

    def data(self, stream, body, flags=0):
        self.wire.send(struct.pack(">II", self.streams[stream], flags << 24 | len(body)) + body)

    def write(self, number, body):
        stream = {1: "stdout", 2: "stderr"}[number]
        if stream in self.streams:
            self.data(stream, body)

    def finish(self, status):
        for stream in ("stdout", "stderr"):
            if stream in self.streams:
                self.data(stream, b"", FIN)
        self.data("error", status, FIN)
        self.frame(GOAWAY, struct.pack(">II", self.last, 0))
