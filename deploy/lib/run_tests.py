"""Runs compiled test binaries two at a time and tells what failed.

    cargo test --no-run --message-format=json-render-diagnostics ... | python3 deploy/lib/run_tests.py

cargo runs one after the other: while the last slow test of one waits for a deadline, nothing else happens. Here each
binary runs as cargo would run it, in the folder of its package. One with many tests runs in pieces, so that it does not
keep one lane busy for long after the other has nothing left to do. Whatever fails is shown whole, at the end.

Many tests play with leases and deadlines of some hundred milliseconds, and share two cores with whatever else runs. So
a few tests that fail are run once more, alone and after all others. One that passes then is reported as FLAKY, with
what it printed the first time: the ring passes, and somebody has a test, or a race in the product, to look at. More
than MOST_RETRIED failures are no coincidence and are not tried again.
"""

import concurrent.futures
import json
import os
import pathlib
import re
import subprocess
import sys
import time

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
LANES = 2
# More tests at once than there are cores: most of them wait for a lease, a deadline or another process.
THREADS = os.environ.get("RUST_TEST_THREADS") or str((os.cpu_count() or 1) + 1)
# The most tests of a binary that run in one process.
PIECE = 200
MOST_RETRIED = 3
FAILED = re.compile(r"^test (\S+) \.\.\. FAILED$", re.M)
TOTALS = re.compile(r"^test result: .*?(\d+) passed; (\d+) failed; (\d+) ignored", re.M)


def binaries(lines):
    """Package folder and path of each test binary that cargo names, the largest first: it has the most to do."""
    found = {}
    for line in lines:
        message = json.loads(line)
        if message["reason"] == "compiler-artifact" and message["profile"]["test"] and message["executable"]:
            found[message["executable"]] = pathlib.Path(message["manifest_path"]).parent
    return sorted(found.items(), key=lambda each: -os.path.getsize(each[0]))


def run(binary, folder, *arguments):
    environment = {
        **os.environ,
        "CARGO_MANIFEST_DIR": str(folder),
        "INSTA_WORKSPACE_ROOT": str(ROOT),
        "RUST_TEST_THREADS": THREADS,
    }
    begun = time.monotonic()
    done = subprocess.run([binary, *arguments], cwd=folder, env=environment, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                          stderr=subprocess.STDOUT, text=True, errors="replace")
    return done.returncode, done.stdout, time.monotonic() - begun


def pieces(binary, folder):
    """The arguments of each process that runs a part of the binary's tests; every test is in one of them."""
    code, output, _ = run(binary, folder, "--list", "--format", "terse")
    tests = [line.removesuffix(": test") for line in output.splitlines() if line.endswith(": test")]
    # What cannot be listed fails when it is run.
    if code or len(tests) <= PIECE:
        return [()]
    # Dealt out like cards: tests of one file are much alike, and so is how long they take.
    count = -(-len(tests) // PIECE)
    return [("--exact", *tests[number::count]) for number in range(count)]


def main():
    found = binaries(sys.stdin)
    if not found:
        sys.exit("cargo named no test binary")
    passed, failures = 0, []
    with concurrent.futures.ThreadPoolExecutor(LANES) as lanes:
        running = {}
        for binary, folder in found:
            parts = pieces(binary, folder)
            for number, arguments in enumerate(parts, 1):
                name = f"{folder.relative_to(ROOT)} {pathlib.Path(binary).name.rpartition('-')[0]}"
                name += f" {number}/{len(parts)}" if len(parts) > 1 else ""
                wanted = len(arguments) - 1 if arguments else None
                running[lanes.submit(run, binary, folder, *arguments)] = (binary, folder, name, wanted)
        for future in concurrent.futures.as_completed(running):
            binary, folder, name, wanted = running[future]
            code, output, took = future.result()
            totals = TOTALS.search(output)
            passed += int(totals.group(1)) if totals else 0
            said = totals.group(0).removeprefix("test result: ") if totals else "no result"
            print(f"{took:7.1f}s  {name}: {said}", flush=True)
            # A binary that says nothing has not tested anything, whatever its exit code; nor has one that left tests out.
            ran = sum(map(int, totals.groups())) if totals else 0
            if code or not totals or (wanted is not None and ran != wanted):
                failures.append((binary, folder, name, code, output))
    names = [FAILED.findall(output) for *_, output in failures]
    # A binary that ended without naming a failed test crashed, which a second try would only hide.
    retry = all(names) and sum(map(len, names)) <= MOST_RETRIED
    remaining, flaky = [], 0
    for (binary, folder, name, code, output), tests in zip(failures, names):
        alone = [run(binary, folder, "--exact", test)[0] == 0 for test in tests] if retry else []
        passed += sum(alone)
        if alone and all(alone):
            flaky += len(tests)
            print(f"\n----- FLAKY, passed alone: {name}: {', '.join(tests)}\n{output}")
        else:
            remaining.append(name)
            print(f"\n----- {name}, exit code {code}\n{output}")
    print(f"\n{len(found)} binaries, {passed} tests passed, {len(remaining)} of their pieces failed, {flaky} flaky tests")
    sys.exit(bool(remaining))


if __name__ == "__main__":
    main()
