# One server in a private folder, on a free port, stopped by its own process id. To be sourced.
#
# Gives WORK, a scratch folder that is kept with its logs when the script fails.

WORK=$(mktemp -d "${TMPDIR:-/tmp}/quartermaster-test.XXXXXX")
STARTED=()

# Runs on every way out of the script that sourced us.
tidy() {
    local status=$? pid log
    trap - EXIT
    for pid in "${STARTED[@]}"; do
        kill -KILL "$pid" 2>/dev/null || true
    done
    if ((status == 0)); then
        rm -rf "$WORK"
    else
        for log in "$WORK"/*.log; do
            [[ -e $log ]] || continue
            printf '\n--- last lines of %s\n' "$log"
            tail -n 40 "$log"
        done
        printf '\nlogs are kept in %s\n' "$WORK"
    fi
    exit "$status"
}
trap tidy EXIT

free_port() {
    python3 -c 'import socket; s = socket.socket(); s.bind(("127.0.0.1", 0)); print(s.getsockname()[1])'
}

# healthy PORT: whether GET /health answers 200.
healthy() {
    local line
    { exec 3<>"/dev/tcp/127.0.0.1/$1"; } 2>/dev/null || return 1
    printf 'GET /health HTTP/1.1\r\nHost: 127.0.0.1:%s\r\nConnection: close\r\n\r\n' "$1" >&3
    read -r -t 5 line <&3 || line=
    exec 3<&- 3>&-
    [[ $line == 'HTTP/1.1 200'* ]]
}

# await WHAT PID COMMAND...: repeats COMMAND until it succeeds, the process is gone or 20 s have passed.
await() {
    local what=$1 pid=$2 tries
    shift 2
    for ((tries = 0; tries < 400; tries++)); do
        "$@" && return
        kill -0 "$pid" 2>/dev/null || break
        sleep 0.05
    done
    echo "$what did not come up" >&2
    return 1
}

# start_server NAME [ARGUMENT...]: sets SERVER_PID, SERVER_PORT, SERVER_DATA.
start_server() {
    local name=$1 tries
    shift
    SERVER_DATA=$WORK/$name
    for tries in 1 2 3; do
        SERVER_PORT=$(free_port)
        "$QUARTERMASTER_BIN" dev --listen "127.0.0.1:$SERVER_PORT" --data "$SERVER_DATA" "$@" >"$WORK/$name.log" 2>&1 &
        SERVER_PID=$!
        STARTED+=("$SERVER_PID")
        await "server \`$name\`" "$SERVER_PID" healthy "$SERVER_PORT" && break
        # Between the question for a free port and its use, a ring beside this one may have taken it.
        ((tries < 3)) && grep -q 'Address already in use' "$WORK/$name.log" || return 1
    done
    # It answers a moment before the last of these is written.
    await "the tokens of \`$name\`" "$SERVER_PID" test -s "$SERVER_DATA/admin.token"
}

# stop PID: asks, waits up to 30 s, and fails unless the process left by itself with success.
stop() {
    local pid=$1 tries
    kill -TERM "$pid"
    for ((tries = 0; tries < 600; tries++)); do
        kill -0 "$pid" 2>/dev/null || break
        sleep 0.05
    done
    if kill -0 "$pid" 2>/dev/null; then
        echo "process $pid ignored SIGTERM for 30 s" >&2
        return 1
    fi
    wait "$pid"
}
