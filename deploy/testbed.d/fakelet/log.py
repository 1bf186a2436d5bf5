"""What a container wrote, with the moment of every line, and the kubelet's ways of asking for part of it."""

import dataclasses
import threading

import clock

KEPT = 10_000  # lines; a real kubelet rotates by size


@dataclasses.dataclass
class Ask:
    """One request for logs; the names are those of the query string."""

    tail: int | None = None
    since: int | None = None  # a moment
    limit: int | None = None  # bytes
    timestamps: bool = False
    follow: bool = False

    @classmethod
    def of(cls, query):
        """From a parsed query string; ValueError if a value is none of its kind."""
        since = None
        if "sinceTime" in query:
            since = clock.parse(query["sinceTime"])
        elif "sinceSeconds" in query:
            since = clock.now() - int(query["sinceSeconds"]) * 10**9
        return cls(
            tail=int(query["tailLines"]) if "tailLines" in query else None,
            since=since,
            limit=int(query["limitBytes"]) if "limitBytes" in query else None,
            timestamps=query.get("timestamps") == "true",
            follow=query.get("follow") == "true",
        )


class Log:
    """Lines in the order they were written. One writer thread or many; any number of readers."""

    def __init__(self):
        self.lines = []  # (moment, text), oldest first
        self.dropped = 0
        self.partial = b""
        self.closed = False
        self.changed = threading.Condition()

    def write(self, data):
        """Takes bytes as a program writes them; a line counts when it is complete."""
        with self.changed:
            *whole, self.partial = (self.partial + data).split(b"\n")
            for line in whole:
                self.append(line)
            self.changed.notify_all()

    def append(self, line):
        # Two lines never share a moment: whoever pages by time must not lose one.
        moment = max(clock.now(), self.lines[-1][0] + 1 if self.lines else 0)
        self.lines.append((moment, line))
        surplus = len(self.lines) - KEPT
        if surplus > 0:
            del self.lines[:surplus]
            self.dropped += surplus

    def close(self):
        with self.changed:
            if self.partial:
                self.append(self.partial)
                self.partial = b""
            self.closed = True
            self.changed.notify_all()

    def read(self, ask):
        """Yields pieces of the answer; with `follow` until the log is closed."""
        left = ask.limit
        with self.changed:
            chosen = [line for line in self.lines if ask.since is None or line[0] >= ask.since]
            position = self.dropped + len(self.lines)
        if ask.tail is not None:
            chosen = chosen[len(chosen) - min(ask.tail, len(chosen)) :]
        while True:
            text = b"".join(self.shown(line, ask) for line in chosen)
            if left is not None:
                text = text[:left]
                left -= len(text)
            if text:
                yield text
            if not ask.follow or left == 0:
                return
            with self.changed:
                # The time limit lets a reader whose client has gone find that out by a failing write.
                self.changed.wait_for(lambda: self.closed or self.dropped + len(self.lines) > position, 1)
                chosen = self.lines[max(0, position - self.dropped) :]
                position = self.dropped + len(self.lines)
                if self.closed and not chosen:
                    return

    @staticmethod
    def shown(line, ask):
        moment, text = line
        stamp = clock.nanos(moment).encode() + b" " if ask.timestamps else b""
        return stamp + text + b"\n"
