"""What breaks, and when: a schedule that one seed decides.

Each fault breaks something for a while and mends it again. The seed fixes the order, the choice and the length of every
fault; when exactly one hits a request in flight is up to the machine, so a replay is the same weather, not the same drop.
"""

import signal
import time

from stores import RedisError

SHORT, LONG = 0.1, 8.0


class Faults:
    def __init__(self, replicas, store, target, random, say):
        self.replicas, self.store, self.target, self.random, self.say = replicas, store, target, random, say
        self.wrong = []
        self.counts = {}
        self.kinds = {
            "kill": self.kill,
            "freeze": self.freeze,
            "restart": self.restart,
            "cut_store": lambda seconds: self.cut("store", seconds),
            "cut_front": lambda seconds: self.cut("front", seconds),
            "store_kill": self.store_kill,
            "store_freeze": self.store_freeze,
            "store_slow": self.store_slow,
            "store_full": self.store_full,
            "target_down": self.target_down,
            "target_mute": self.target_mute,
        }
        if any(replica.service.faketime for replica in replicas):
            self.kinds["clock"] = self.clock
        if "failover" in store.can:
            self.kinds["failover"] = self.failover
            self.kinds["store_cut"] = self.store_cut
        if "move_slot" in store.can:
            self.kinds["move_slot"] = self.move_slot

    def run(self, seconds, only=()):
        """Breaks things for so long. The first round has every kind once, in the seed's order."""
        kinds = [kind for kind in self.kinds if not only or kind in only]
        queue = self.random.sample(kinds, len(kinds))
        until = time.monotonic() + seconds
        while time.monotonic() < until:
            kind = queue.pop(0) if queue else self.random.choice(kinds)
            length = round(self.random.uniform(SHORT, LONG) ** 2 / LONG + SHORT, 2)
            self.say(f"{kind} for {length} s")
            self.counts[kind] = self.counts.get(kind, 0) + 1
            try:
                self.kinds[kind](length)
            except (OSError, RedisError, RuntimeError, StopIteration) as error:
                # A fault that meets the one before it, such as a failover without a replica, has nothing to break.
                self.say(f"{kind} found nothing to do: {error}")
            time.sleep(self.random.uniform(0.2, 1.5))

    def replica(self):
        return self.random.choice(self.replicas)

    def kill(self, seconds):
        replica = self.replica()
        replica.kill()
        time.sleep(seconds)
        replica.start()
        replica.await_ready()

    def freeze(self, seconds):
        replica = self.replica()
        replica.signal(signal.SIGSTOP)
        time.sleep(seconds)
        replica.signal(signal.SIGCONT)

    def restart(self, _seconds):
        replica = self.replica()
        status = replica.stop()
        if status != 0:
            self.wrong.append(f"replica {replica.number} left with {status} after SIGTERM")
        replica.start()
        replica.await_ready()

    def clock(self, seconds):
        replica = self.replica()
        replica.kill()
        replica.start(shift=self.random.choice([-90, 90, -600, 600]))
        replica.await_ready()
        time.sleep(seconds)
        replica.kill()
        replica.start()
        replica.await_ready()

    def cut(self, bridge, seconds):
        replica = self.replica()
        replica.host.cut(bridge)
        time.sleep(seconds)
        replica.host.mend(bridge)

    def primary(self):
        primaries = sorted(self.store.primaries(), key=lambda node: node.address)
        if not primaries:
            raise OSError("there is no primary at this moment")
        return self.random.choice(primaries)

    def store_kill(self, seconds):
        node = self.primary()
        node.kill()
        time.sleep(seconds)
        node.start()

    def store_freeze(self, seconds):
        node = self.primary()
        node.signal(signal.SIGSTOP)
        time.sleep(seconds)
        node.signal(signal.SIGCONT)

    def store_cut(self, seconds):
        node = self.primary()
        node.host.cut("store")
        time.sleep(seconds)
        node.host.mend("store")

    def store_slow(self, seconds):
        """Answers come, late: each command waits up to 150 ms."""
        node = self.primary()
        until = time.monotonic() + seconds
        while time.monotonic() < until:
            node.ask("CLIENT", "PAUSE", 150, "ALL")
            time.sleep(0.2)

    def store_full(self, seconds):
        node = self.primary()
        node.fill_disk()
        time.sleep(seconds)
        node.empty_disk()

    def failover(self, _seconds):
        self.store.failover(self.random)
        time.sleep(1)

    def move_slot(self, _seconds):
        self.store.move_slot(self.random, "{shop}")

    def target_down(self, seconds):
        self.target.refuse = True
        time.sleep(seconds)
        self.target.refuse = False

    def target_mute(self, seconds):
        """The effect happens, and nobody hears of it."""
        self.target.lose_answers = True
        time.sleep(seconds)
        self.target.lose_answers = False

    def mend(self):
        """Everything runs and is connected again."""
        self.target.refuse = self.target.lose_answers = False
        for node in self.store.nodes:
            node.empty_disk()
        for replica in self.replicas:
            replica.await_ready()
