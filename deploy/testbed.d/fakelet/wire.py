"""A TLS connection that one thread reads while others write.

Python lets go of its own lock during TLS calls, and one TLS object must not be entered twice. So the socket does not
block, every call happens under a lock, and whoever has to wait does so outside of it.
"""

import select
import ssl
import threading


class Wire:
    def __init__(self, connection):
        connection.setblocking(False)
        self.connection = connection
        self.entered = threading.Lock()
        self.sending = threading.Lock()
        self.buffer = b""

    def send(self, data):
        """Sends all of it; OSError when the other side has gone."""
        rest = memoryview(data)
        with self.sending:
            while rest:
                try:
                    with self.entered:
                        sent = self.connection.send(rest)
                    rest = rest[sent:]
                except ssl.SSLWantWriteError:
                    select.select([], [self.connection], [], 1)
                except ssl.SSLWantReadError:
                    select.select([self.connection], [], [], 1)

    def receive(self, size):
        """Exactly `size` bytes; EOFError when the other side has gone."""
        while len(self.buffer) < size:
            try:
                with self.entered:
                    data = self.connection.recv(65536)
            except ssl.SSLWantReadError:
                select.select([self.connection], [], [], 1)
                continue
            except OSError as gone:
                raise EOFError from gone
            if not data:
                raise EOFError
            self.buffer += data
        data, self.buffer = self.buffer[:size], self.buffer[size:]
        return data
