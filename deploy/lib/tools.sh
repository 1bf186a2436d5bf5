# The parts the rings need: their versions, where they are kept, how they are fetched. To be sourced.
#
# Each part lives in a folder named after it and its version, is made in a temporary folder and moved
# into place whole: a broken download leaves nothing behind, and a new version never meets an old one.
# Not here: what the parts are used for (see rings.sh and the `run` scripts).

readonly SKIP=77

NODE_VERSION=24.21.0
CONFORMANCE_VERSION=0.2.0-alpha.12
TS_CLIENT_VERSION=2.4.0
TS_SDK_VERSION=1.32.2
INSPECTOR_VERSION=2.12.0
PYTHON_MCP_VERSION=2.3.0
FASTMCP_VERSION=4.1.2
CARGO_DENY_VERSION=0.20.2

CACHE=${XDG_CACHE_HOME:-$HOME/.cache}/quartermaster
TOOLS=$CACHE/tools
export CARGO_TARGET_DIR=${CARGO_TARGET_DIR:-$CACHE/target}
export CARGO_TERM_COLOR=${CARGO_TERM_COLOR:-never}
export NPM_CONFIG_UPDATE_NOTIFIER=false NPM_CONFIG_FUND=false NPM_CONFIG_AUDIT=false
export PIP_DISABLE_PIP_VERSION_CHECK=1

# skip WHY: ends the ring, loudly.
skip() {
    printf '\nSKIPPED: %s\n' "$1"
    exit "$SKIP"
}

# tool NAME-VERSION COMMAND...: runs COMMAND with the folder to fill as its last argument, once.
# Prints nothing but the folder; COMMAND talks on stderr.
tool() {
    local folder=$TOOLS/$1 fresh
    shift
    if [[ ! -d $folder ]]; then
        mkdir -p "$TOOLS"
        fresh=$(mktemp -d "$TOOLS/.fresh.XXXXXX")
        echo "fetching $(basename "$folder")" >&2
        if ! "$@" "$fresh" >&2; then
            rm -rf "$fresh"
            return 1
        fi
        # Somebody else may have been quicker; theirs is as good.
        mv -T "$fresh" "$folder" 2>/dev/null || rm -rf "$fresh"
    fi
    [[ -d $folder ]] && echo "$folder"
}

npm_into() { # PACKAGE... FOLDER
    local folder=${*: -1}
    npm install --prefix "$folder" --no-save --no-package-lock --loglevel=error "${@:1:$#-1}"
}

pip_into() { # REQUIREMENT... FOLDER
    # `--target` needs neither a virtual environment nor leave to touch the system's Python.
    python3 -m pip install --quiet --no-warn-conflicts --root-user-action ignore --target "${*: -1}" "${@:1:$#-1}"
}

cargo_into() { # CRATE VERSION FOLDER
    # A target folder of its own: the shared one would fill with another program's objects.
    CARGO_TARGET_DIR=$3/build cargo install --quiet --locked --root "$3" --version "=$2" "$1" && rm -rf "$3/build"
}

# use_node: puts a Node new enough for the MCP suites first on PATH.
use_node() {
    local node
    node=$(tool "node-$NODE_VERSION" npm_into "node@$NODE_VERSION") || skip "node $NODE_VERSION cannot be fetched from npm"
    export PATH=$node/node_modules/node/bin:$PATH
    [[ $(node --version) == "v$NODE_VERSION" ]] || skip "the npm package node@$NODE_VERSION brought no node that runs here"
}

# need_command COMMAND PACKAGE: takes a missing command from the distribution.
need_command() {
    command -v "$1" >/dev/null && return
    local root=()
    if ((EUID != 0)); then
        command -v sudo >/dev/null || skip "$1 is not installed, and only root could install $2"
        root=(sudo -n)
    fi
    command -v apt-get >/dev/null || skip "$1 is not installed, and there is no apt-get to install $2 with"
    # The run level keeps the package from starting a service of its own: the tests start theirs.
    { "${root[@]}" apt-get update -q && "${root[@]}" env RUNLEVEL=1 DEBIAN_FRONTEND=noninteractive apt-get install -qy --no-install-recommends "$2"; } >&2 ||
        skip "$2 cannot be installed with apt-get"
    command -v "$1" >/dev/null || skip "$2 brought no $1"
}

# need_binary: builds the release binary and names it in QUARTERMASTER_BIN, unless the caller named one.
need_binary() {
    [[ -n ${QUARTERMASTER_BIN:-} ]] && return
    cargo build --release --locked --bin quartermaster
    QUARTERMASTER_BIN=$CARGO_TARGET_DIR/release/quartermaster
    export QUARTERMASTER_BIN
}
