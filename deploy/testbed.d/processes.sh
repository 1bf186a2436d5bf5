# Programs that outlive the script that starts them, known by pid file. To be sourced with DIR set.
#
# A pid file holds the process id and the moment the kernel started it, so that a number that was given to
# somebody else meanwhile is never signalled.

begun_at() { # PID: in ticks since boot; nothing if it does not run
    # The name in the second field may hold anything, spaces and brackets included: cut after its end.
    # A zombie (Z) has ended and only waits for its parent to notice.
    sed -E 's/^.*\) //' "/proc/$1/stat" 2>/dev/null | awk '$1 != "Z" { print $20 }'
}

# alive NAME: whether the program of that name runs, started by us.
alive() {
    local pid begun
    read -r pid begun 2>/dev/null <"$DIR/pid/$1" && [[ -n $begun && $(begun_at "$pid") == "$begun" ]]
}

# start NAME COMMAND...: unless it runs already.
start() {
    local name=$1 pid
    shift
    alive "$name" && return
    # 3 may be a pipe whose reader waits for its end, 9 is the lock of this folder: neither may live as long
    # as the program does.
    setsid "$@" >"$DIR/log/$name.log" 2>&1 </dev/null 3>&- 9>&- &
    pid=$!
    echo "$pid $(begun_at "$pid")" >"$DIR/pid/$name"
}

# stop NAME: asks, waits up to 15 s, then insists.
stop() {
    local pid tries
    if alive "$1"; then
        read -r pid _ <"$DIR/pid/$1"
        kill -TERM "$pid" 2>/dev/null || true
        for ((tries = 0; tries < 150; tries++)); do
            alive "$1" || break
            sleep 0.1
        done
        if alive "$1"; then
            kill -KILL "$pid" 2>/dev/null || true
        fi
        echo "stopped $1" >&2
    fi
    rm -f "$DIR/pid/$1"
}

# await NAME WHAT COMMAND...: repeats COMMAND until it succeeds, NAME has ended or 90 s have passed.
await() {
    local name=$1 what=$2 end=$((SECONDS + 90))
    shift 2
    until "$@" >/dev/null 2>&1; do
        if ! alive "$name" || ((SECONDS >= end)); then
            alive "$name" && echo "waited 90 s for $what" >&2 || echo "$name ended while waiting for $what" >&2
            printf -- '--- last lines of %s\n' "$DIR/log/$name.log" >&2
            tail -n 25 "$DIR/log/$name.log" >&2
            return 1
        fi
        sleep 0.1
    done
    echo "$what" >&2
}

# free_ports N: N different ports nobody listens on, held together until all are known.
free_ports() {
    python3 - "$1" <<'PYTHON'
import socket, sys
held = [socket.create_server(("127.0.0.1", 0)) for _ in range(int(sys.argv[1]))]
print(*(each.getsockname()[1] for each in held))
PYTHON
}
