"""The programs every simulated image contains. Nothing of the machine is run or read.

A program takes its arguments and a `Stdio` and gives an exit code. The same ones serve as a container's command
and in `exec`. A container whose command is none of these is taken for a server that runs until it is stopped.
"""

import itertools
import shlex
import threading

import clock


class Stdio:
    """What a program may touch: its streams, its environment and a clock that can be cut short."""

    def __init__(self, write, read=lambda: b"", env=None, hostname="localhost", stopped=None):
        self.write = write  # write(1 or 2, bytes)
        self.read = read  # gives b"" at the end
        self.env = env or {}
        self.hostname = hostname
        self.stopped = stopped or threading.Event()

    def out(self, text):
        self.write(1, f"{text}\n".encode())

    def err(self, text):
        self.write(2, f"{text}\n".encode())


def echo(args, io):
    io.out(" ".join(args))
    return 0


def cat(args, io):
    for name in args:
        if name != "-":
            io.err(f"cat: {name}: No such file or directory")
            return 1
    while data := io.read():
        io.write(1, data)
    return 0


def env(_args, io):
    for name, value in io.env.items():
        io.out(f"{name}={value}")
    return 0


def printenv(args, io):
    found = [io.env[name] for name in args if name in io.env]
    for value in found:
        io.out(value)
    return 0 if len(found) == len(args) else 1


def hostname(_args, io):
    io.out(io.hostname)
    return 0


def date(_args, io):
    io.out(clock.seconds(clock.now()))
    return 0


def sleep(args, io):
    try:
        length = None if args[0] == "infinity" else float(args[0])
    except (IndexError, ValueError):
        io.err("sleep: invalid time interval")
        return 1
    # 143 is what a shell reports for a program ended by SIGTERM.
    return 143 if io.stopped.wait(length) else 0


def printf(args, io):
    io.write(1, (args[0] if args else "").replace("\\n", "\n").encode())
    return 0


def ls(args, io):
    """There is no file system: the working folder is empty, and nothing else exists."""
    for name in args:
        if not name.startswith("-"):
            io.err(f"ls: {name}: No such file or directory")
            return 1
    return 0


def identity(_args, io):
    io.out("uid=1000(app) gid=1000(app) groups=1000(app)")
    return 0


def seq(args, io):
    for number in range(1, int(args[0]) + 1):
        if io.stopped.is_set():
            return 143
        io.out(number)
    return 0


def yes(args, io):
    """Writes until it is stopped, some hundred KiB a second: for callers that must not take all they are given."""
    line = (" ".join(args or ["y"]) + "\n").encode()
    block = line * (4096 // len(line) + 1)
    while not io.stopped.wait(0.01):
        io.write(1, block)
    return 143


def commands(script):
    """The argument lists of a script of plain commands joined by `;`; None for anything cleverer."""
    words = list(shlex.shlex(script, posix=True, punctuation_chars=";&|<>()"))
    found = [list(group) for end, group in itertools.groupby(words, lambda word: word == ";") if not end]
    for argv in found:
        plain = argv[:-2] if argv[-2:] == [">&", "2"] else argv
        if not plain or any(set(word) <= set(";&|<>()") for word in plain):
            return None
    return found


def shell(args, io):
    """`sh -c` with plain commands, `;`, `exit N` and `>&2`."""
    script = commands(args[1]) if len(args) > 1 and args[0] == "-c" else None
    if script is None:
        io.err("sh: syntax error")
        return 2
    code = 0
    for argv in script:
        inner = io
        if argv[-2:] == [">&", "2"]:
            argv = argv[:-2]
            inner = Stdio(lambda _, data: io.write(2, data), io.read, io.env, io.hostname, io.stopped)
        if argv[0] == "exit":
            return int(argv[1]) if len(argv) > 1 else code
        program = find(argv)
        if program is None:
            io.err(f"sh: {argv[0]}: not found")
            code = 127
        else:
            code = program(argv[1:], inner)
    return code


PROGRAMS = {
    "cat": cat,
    "date": date,
    "echo": echo,
    "env": env,
    "false": lambda _args, _io: 1,
    "hostname": hostname,
    "id": identity,
    "ls": ls,
    "printenv": printenv,
    "printf": printf,
    "seq": seq,
    "sh": shell,
    "sleep": sleep,
    "true": lambda _args, _io: 0,
    "yes": yes,
}


def find(argv):
    """The program that `argv` names, by bare name or in one of the usual folders."""
    if not argv:
        return None
    folder, _, name = argv[0].rpartition("/")
    return PROGRAMS.get(name) if folder in ("", "/bin", "/usr/bin") else None


def understood(argv):
    """The program a container's command names, unless it is a script with more in it than is simulated."""
    program = find(argv)
    if program is shell:
        script = commands(argv[2]) if len(argv) > 2 and argv[1] == "-c" else None
        if not script or any(inner[0] != "exit" and not find(inner) for inner in script):
            return None
    return program
