"""Holds what happened against what is promised: the invariants I1 to I8 of docs/guarantees.md.

It asks as people do: the API for each run, the target for each effect, and `quartermaster audit verify` and the audit log
for what was recorded. `Record` has what agents and people were told meanwhile.
"""

import json
import subprocess
import time

import network
import service
from people import OVER

OPEN = {"approved", "executing"}
# I8: how long a run may take to come to an end once everything is well again.
SETTLE = service.LEASE + 30


class Checker:
    def __init__(self, people, record, target, shared):
        self.people, self.record, self.target, self.service = people, record, target, shared
        self.approver = shared.issuer.token("shop", "checker", "runs:decide")
        self.violations = []
        self.states = {}

    def fail(self, name, text):
        self.violations.append(f"{name}: {text}")

    def run(self):
        self.violations += self.record.wrong
        self.find_lost_runs()
        runs = self.settle()
        for key, run in self.record.runs.items():
            self.judge(key, run, runs.get(run))
        known = set(self.record.asked)
        for key in self.target.keys() - known:
            self.fail("I1", f"an effect that nobody asked for: {key}")
        self.decided_once(runs)
        self.told_the_truth(runs)
        self.audit_log(runs)
        return self.violations

    def find_lost_runs(self):
        """A run whose answer never reached its agent is found by asking again under the same key."""
        for key, (tool, number, path) in self.record.asked.items():
            if key in self.record.runs:
                continue
            token = self.service.issuer.token("shop", f"agent{number}", "tools:read tools:write")
            body = {"tool": f"mcp_counter__{tool}", "arguments": {"key": key}, "idempotency_key": key}
            answer = self.people.insist("ask again", token, "POST", path, body)
            run = self.people.run_of(answer)
            if run:
                self.record.runs[key] = run
            elif self.target.effects(key):
                self.fail("I1", f"{key} has an effect and no run: {answer.status} {answer.body}")

    def settle(self):
        """Every run as the service shows it once it has come to an end, or to its time."""
        until, runs = time.monotonic() + SETTLE, {}
        waiting = set(self.record.runs.values())
        while waiting:
            for run in sorted(waiting):
                answer = self.people.insist("check", self.approver, "GET", f"/v1/runs/{run}")
                if answer.status != 200:
                    self.fail("I5", f"{run} cannot be read any more: {answer.status} {answer.body}")
                    waiting.discard(run)
                elif answer.body["state"] not in OPEN:
                    runs[run] = answer.body
                    waiting.discard(run)
                elif time.monotonic() > until:
                    self.fail("I8", f"{run} is still {answer.body['state']} {SETTLE} s after everything was mended")
                    waiting.discard(run)
            if waiting:
                time.sleep(0.5)
        for run in runs.values():
            self.states[run["state"]] = self.states.get(run["state"], 0) + 1
        return runs

    def judge(self, key, run, shown):
        """I1, I2 and I5 for one run."""
        if shown is None:
            return
        effects, state = self.target.effects(key), shown["state"]
        approved = any(decision["verdict"] == "approved" for decision in shown["decisions"])
        if effects and not approved:
            self.fail("I1", f"{run} ({key}) changed something and was not approved: {shown}")
        if effects > 1:
            self.fail("I2", f"{run} ({key}) changed something {effects} times: {shown}")
        if state in ("succeeded", "reconciled_succeeded") and effects != 1:
            self.fail("I5", f"{run} ({key}) is {state} with {effects} effects: {shown}")
        if state in ("rejected", "expired", "cancelled", "pending_approval", "reconciled_failed") and effects:
            self.fail("I1", f"{run} ({key}) is {state} with {effects} effects: {shown}")
        if state == "failed" and effects and not shown["outcome"]["attempted"]:
            self.fail("I5", f"{run} ({key}) failed before it was sent, with {effects} effects: {shown}")

    def decided_once(self, runs):
        """I3: of all who decided, those who were told that it counts said the same, and the run says so too."""
        accepted = {}
        for run, person, verdict, status, answer in self.record.verdicts:
            if status == 200:
                accepted.setdefault(run, {}).setdefault(verdict, set()).add(person)
            if status == 409 and answer.code == "already_decided":
                winner = (answer.body["error"].get("details") or {}).get("by", "")
                decided = [decision["by"] for decision in runs.get(run, {}).get("decisions", [])]
                if decided and winner not in decided:
                    self.fail("I3", f"{person} was told that {winner} decided {run}, and {decided} did")
        for run, verdicts in accepted.items():
            if len(verdicts) > 1:
                self.fail("I3", f"{run} was both approved and rejected: {verdicts}")
            shown = runs.get(run)
            if shown and "approve" in verdicts and shown["state"] in ("rejected", "pending_approval"):
                self.fail("I3", f"{run} was approved by {verdicts['approve']} and is {shown['state']}")
            if shown and "reject" in verdicts and shown["state"] != "rejected":
                self.fail("I3", f"{run} was rejected by {verdicts['reject']} and is {shown['state']}")

    def told_the_truth(self, runs):
        """I5: an end that an agent was told is the end."""
        for run, state in self.record.told:
            shown = runs.get(run, {}).get("state")
            if state in OVER and shown and state != shown:
                self.fail("I5", f"an agent was told that {run} is {state}, and it is {shown}")

    def audit_log(self, runs):
        """I6 and I7: both logs verify, each move is in the log once, and the other tenant's log has none of them."""
        logs = {}
        network.forward(service.LOOPBACK_PORT, self.people.replicas[0].host.front)
        for tenant in service.TENANTS:
            token = self.service.folder / f"{tenant}.auditor"
            token.write_text(self.service.issuer.token(tenant, "auditor", "audit:read"))
            address = ["--url", f"http://127.0.0.1:{service.LOOPBACK_PORT}", "--token-file", str(token)]
            verify = self.command("audit", "verify", *address)
            if verify.returncode != 0:
                self.fail("I7", f"the audit log of {tenant} does not verify: {verify.stdout} {verify.stderr}")
            export = self.command("audit", "export", *address)
            if export.returncode != 0:
                self.fail("I7", f"the audit log of {tenant} cannot be exported: {export.stderr}")
            logs[tenant] = export.stdout
        for run in runs:
            if run in logs["other"]:
                self.fail("I6", f"the other tenant's audit log names {run}")
        moves = {}
        for line in logs["shop"].splitlines():
            entry = json.loads(line)
            entry = entry.get("entry", entry)
            if isinstance(entry, dict) and entry.get("phase") == "transition" and entry.get("run"):
                moves.setdefault(entry["run"]["id"], []).append(entry["run"])
        for run, shown in runs.items():
            self.moved_by_edges(run, shown, moves.get(run, []))

    def moved_by_edges(self, run, shown, moves):
        at, epoch, seen = None, 0, set()
        for move in moves:
            if move.get("from") != at:
                self.fail("I7", f"a move of {run} is missing before {move}")
                return
            step = (at, move["to"], move.get("epoch", 0))
            if (move["to"] != at or move.get("epoch", 0) != epoch) and step in seen:
                self.fail("I7", f"a move of {run} is recorded twice: {move}")
            seen.add(step)
            at, epoch = move["to"], move.get("epoch", 0)
        if at != shown["state"]:
            self.fail("I7", f"{run} is {shown['state']}, and its audit log ends at {at}")

    def command(self, *words):
        return subprocess.run([self.service.binary, *words], capture_output=True, text=True, timeout=300)
