"""Those who use the service while it breaks: agents that ask, people that decide, and readers that only look.

Nobody here gives up on a fault: a request without an answer, or with one that says "again", is sent again to another
replica, under the same key. What everybody was told is written down, for the checker to hold against what happened.
"""

import threading
import time

from client import send

# What a replica answers while something under it is broken. Anything else above 499 is a fault of its own.
AGAIN = {"store_unavailable", "store_full", "decision_not_durable", "not_ready", "upstream_unavailable", "rate_limited", "busy", "upstream_busy", "draining"}
OVER = {"succeeded", "failed", "rejected", "expired", "cancelled", "reconciled_succeeded", "reconciled_failed"}


class Record:
    """What was asked, decided and told, by everybody."""

    def __init__(self):
        self.lock = threading.Lock()
        self.asked = {}  # key -> tool
        self.runs = {}  # key -> run id
        self.told = []  # (run, state that an agent was told)
        self.verdicts = []  # (run, person, verdict, status, answer)
        self.wrong = []  # answers that no fault explains
        self.counts = {}  # (what, status, code) -> how often
        self.refused = {}  # what -> the last answer that was neither a success nor a fault

    def note(self, what, answer):
        with self.lock:
            key = (what, answer.status, answer.code)
            self.counts[key] = self.counts.get(key, 0) + 1
            if 400 <= answer.status < 500:
                self.refused[what] = answer.body
            if answer.status >= 500 and answer.code not in AGAIN:
                self.wrong.append(f"{what}: {answer.status} {answer.body}")


class People:
    def __init__(self, replicas, issuer, record, random):
        self.replicas, self.issuer, self.record, self.random = replicas, issuer, record, random
        self.lock = threading.Lock()
        self.asking = threading.Event()
        self.asking.set()
        self.deciding = threading.Event()
        self.deciding.set()
        self.threads = []

    def choose(self, values):
        # One source of chance for all threads: which of them draws next is up to the machine, what is drawn is not.
        with self.lock:
            return self.random.choice(values)

    def send(self, what, token, method, path, body=None):
        replica = self.choose(self.replicas)
        answer = send(replica.host.front, token, method, path, body)
        self.record.note(what, answer)
        return answer

    def insist(self, what, token, method, path, body=None, seconds=60):
        """Sends it until somebody answers something else than "again"."""
        until = time.monotonic() + seconds
        while True:
            answer = self.send(what, token, method, path, body)
            if answer.status not in (0, 429, 503) and answer.code not in AGAIN or time.monotonic() > until:
                return answer
            time.sleep(0.1)

    def begin(self, agents, deciders, readers):
        for number in range(agents):
            self.start(self.agent, number)
        for number in range(deciders):
            self.start(self.decider, number)
        for number in range(readers):
            self.start(self.reader, number)

    def start(self, work, number):
        thread = threading.Thread(target=work, args=(number,), daemon=True)
        thread.start()
        self.threads.append(thread)

    def session(self, token):
        opened = self.insist("open", token, "POST", "/v1/sessions", {"mode": "write"})
        if opened.status != 201:
            return None
        path = f"/v1/sessions/{opened.body['id']}/calls"
        load = {"tool": "load_toolset", "arguments": {"toolset": "mcp_counter", "include_write_tools": True}}
        return path if self.insist("load", token, "POST", path, load).status == 200 else None

    def agent(self, number):
        token = self.issuer.token("shop", f"agent{number}", "tools:read tools:write")
        path, turn = None, 0
        while self.asking.is_set():
            path = path or self.session(token)
            if path is None:
                time.sleep(0.2)
                continue
            key, tool = f"agent{number}-{turn}", self.choose(["add", "add", "put"])
            turn += 1
            with self.record.lock:
                self.record.asked[key] = (tool, number, path)
            if not self.ask(token, path, tool, key):
                path = None

    def ask(self, token, path, tool, key):
        """Asks for one change and waits for its end, as far as it has one by then. Whether the session is still good."""
        body = {"tool": f"mcp_counter__{tool}", "arguments": {"key": key}, "idempotency_key": key}
        answer = self.insist("ask", token, "POST", path, body)
        if answer.status == 404:
            return False
        run = self.run_of(answer)
        if not run:
            return answer.status in (0, 429, 503) or answer.code in AGAIN
        with self.record.lock:
            self.record.runs[key] = run
        until = time.monotonic() + 60
        while self.asking.is_set() and time.monotonic() < until:
            answer = self.send("await", token, "POST", path, {"tool": "await_run", "arguments": {"run_id": run, "wait_ms": 3000}})
            state = self.state(answer)
            if state:
                with self.record.lock:
                    self.record.told.append((run, state))
            if state in OVER or state == "outcome_unknown":
                break
            time.sleep(0.05)
        return True

    @staticmethod
    def run_of(answer):
        """The id of the run that an answer is about. A run that failed is told in the details of an error, whole or by its id."""
        run = (answer.body.get("result") or {}).get("run") or ((answer.body.get("error") or {}).get("details") or {}).get("run")
        return run.get("id") if isinstance(run, dict) else run

    @staticmethod
    def state(answer):
        if answer.status == 0 or answer.status >= 500:
            return None
        run = (answer.body.get("result") or {}).get("run") or ((answer.body.get("error") or {}).get("details") or {}).get("run")
        return run.get("state") if isinstance(run, dict) else None

    def decider(self, number):
        name = f"person{number}"
        token = self.issuer.token("shop", name, "runs:decide")
        while self.deciding.is_set():
            waiting = self.send("inbox", token, "GET", "/v1/runs?state=pending_approval")
            runs = [run["id"] for run in waiting.body.get("runs", [])] if waiting.status == 200 else []
            # Everybody begins at the same end of the list, so that they meet at the same runs.
            for run in runs[:5]:
                verdict = self.choose(["approve", "approve", "approve", "reject"])
                answer = self.send(verdict, token, "POST", f"/v1/runs/{run}/{verdict}", {"reason": f"{name} looked at it"})
                with self.record.lock:
                    self.record.verdicts.append((run, name, verdict, answer.status, answer))
                if not self.deciding.is_set():
                    break
            if not runs:
                time.sleep(0.05)

    def reader(self, number):
        tenant = "other" if number % 2 else "shop"
        token = self.issuer.token(tenant, f"reader{number}", "tools:read")
        while self.asking.is_set():
            self.send("list", token, "POST", "/mcp", {"jsonrpc": "2.0", "id": 1, "method": "tools/list"})
            call = {"name": "memory_list", "arguments": {}}
            self.send("read", token, "POST", "/mcp", {"jsonrpc": "2.0", "id": 2, "method": "tools/call", "params": call})
            if tenant == "other":
                self.pry(token)

    def pry(self, token):
        """I6: another tenant's runs do not exist here."""
        with self.record.lock:
            runs = list(self.record.runs.values())
        if not runs:
            return
        answer = self.send("pry", token, "GET", f"/v1/runs/{self.choose(runs)}")
        if answer.status == 200:
            with self.record.lock:
                self.record.wrong.append(f"I6: another tenant was shown a run: {answer.body}")

    def end(self):
        self.asking.clear()
        self.deciding.clear()
        for thread in self.threads:
            thread.join(90)
