# Real MCP servers of others, for the tests of external tools. To be sourced after processes.sh.
#
# They have a folder of their own in the testbed's, so that a control plane can come and go beside them:
# `url/NAME` holds the address of each, `stdio/everything` how the same server is started on a pipe, one word a line.
#
#   everything   the reference server, legacy era
#   shop         FastMCP with a few tools of ours, both eras
#   kubernetes   kubernetes-mcp-server: asked what it speaks it answers, and names legacy revisions only
#   weather      the TypeScript SDK with two tools of ours, modern era alone
#   stall        shop over the older transport, HTTP+SSE
#   older        everything over the same

readonly UPSTREAMS=(everything shop kubernetes weather stall older)

# find_kubernetes_mcp: sets KUBERNETES_MCP, the program.
find_kubernetes_mcp() {
    KUBERNETES_MCP=$(tool "kubernetes-mcp-server-$KUBERNETES_MCP_VERSION" npm_into "kubernetes-mcp-server@$KUBERNETES_MCP_VERSION") ||
        skip "kubernetes-mcp-server $KUBERNETES_MCP_VERSION cannot be fetched from npm"
    # The package is a launcher; the program comes in one for this kind of machine.
    KUBERNETES_MCP=$(find "$KUBERNETES_MCP/node_modules" -path '*/bin/kubernetes-mcp-server-*' -type f -perm -u+x | head -n1)
    [[ -n $KUBERNETES_MCP ]] || skip "npm has no kubernetes-mcp-server for this machine"
}

# peers_exports: fetches the servers that the service is measured beside, and says where they are.
peers_exports() {
    PYTHON_PACKAGES=$(python_mcp_packages) || skip "fastmcp $FASTMCP_VERSION cannot be fetched from PyPI"
    find_kubernetes_mcp
    printf 'export QUARTERMASTER_KUBERNETES_MCP=%q QUARTERMASTER_FASTMCP=%q\n' "$KUBERNETES_MCP" "$PYTHON_PACKAGES"
}

# find_upstreams: sets EVERYTHING, PYTHON_PACKAGES, KUBERNETES_MCP and TS_SERVER.
find_upstreams() {
    need_command curl curl
    use_node
    EVERYTHING=$(tool "server-everything-$EVERYTHING_VERSION" npm_into "@modelcontextprotocol/server-everything@$EVERYTHING_VERSION") ||
        skip "the reference server $EVERYTHING_VERSION cannot be fetched from npm"
    PYTHON_PACKAGES=$(python_mcp_packages) || skip "fastmcp $FASTMCP_VERSION cannot be fetched from PyPI"
    find_kubernetes_mcp
    TS_SERVER=$(tool "server-js-$TS_CLIENT_VERSION-$TS_NODE_VERSION" npm_into \
        "@modelcontextprotocol/server@$TS_CLIENT_VERSION" "@modelcontextprotocol/node@$TS_NODE_VERSION") ||
        skip "the TypeScript server SDK cannot be fetched from npm"
}

# in_upstreams COMMAND...: with the folder of the servers in the place of the testbed's.
in_upstreams() {
    (
        KUBECONFIGS=$DIR/kubeconfig DIR=$DIR/upstreams
        "$@"
    )
}

start_upstreams() {
    local name running=0 entry=$EVERYTHING/node_modules/@modelcontextprotocol/server-everything/dist/index.js
    for name in "${UPSTREAMS[@]}"; do
        ! alive "$name" || running=$((running + 1))
    done
    if ((running == 0)); then
        rm -rf "${DIR:?}"
        mkdir -p "$DIR"/{log,pid,url,stdio,home}
        free_ports "${#UPSTREAMS[@]}" >"$DIR/ports"
        printf '%s\n' "$(command -v node)" "$entry" stdio >"$DIR/stdio/everything"
        make_kubeconfig_of_nobody
    fi
    local path everything shop kubernetes weather stall older
    read -r everything shop kubernetes weather stall older <"$DIR/ports"
    start everything env PORT="$everything" node --import "$HERE/testbed.d/upstreams/loopback.mjs" "$entry" streamableHttp
    start shop env PYTHONPATH="$PYTHON_PACKAGES" PYTHONDONTWRITEBYTECODE=1 HOME="$DIR/home" \
        python3 -u "$HERE/testbed.d/upstreams/shop.py" "$shop" http
    start stall env PYTHONPATH="$PYTHON_PACKAGES" PYTHONDONTWRITEBYTECODE=1 HOME="$DIR/home" \
        python3 -u "$HERE/testbed.d/upstreams/shop.py" "$stall" sse
    start older env PORT="$older" node --import "$HERE/testbed.d/upstreams/loopback.mjs" "$entry" sse
    start kubernetes "$KUBERNETES_MCP" --kubeconfig "$(kubeconfig_to_use)" --bind-address 127.0.0.1 --port "$kubernetes"
    start weather env QM_MODULES="$TS_SERVER" node "$HERE/testbed.d/upstreams/weather.mjs" "$weather"
    for name in "${UPSTREAMS[@]}"; do
        await "$name" "$name listens" curl -s -m 2 -o /dev/null "http://127.0.0.1:${!name}/mcp"
        case $name in
        stall | older) path=/sse ;;
        *) path=/mcp ;;
        esac
        echo "http://127.0.0.1:${!name}$path" >"$DIR/url/$name"
    done
}

# kubeconfig_to_use: the control plane of this testbed if there is one, else one that leads nowhere. The tools that read
# the configuration work with either.
kubeconfig_to_use() {
    if [[ -e $KUBECONFIGS/admin ]]; then echo "$KUBECONFIGS/admin"; else echo "$DIR/kubeconfig"; fi
}

make_kubeconfig_of_nobody() {
    cat >"$DIR/kubeconfig" <<'YAML'
apiVersion: v1
kind: Config
current-context: nowhere
contexts: [{ name: nowhere, context: { cluster: nowhere, user: nobody } }]
clusters: [{ name: nowhere, cluster: { server: "http://127.0.0.1:9" } }]
users: [{ name: nobody, user: {} }]
YAML
}

stop_upstreams() {
    local name
    for name in "${UPSTREAMS[@]}"; do
        stop "$name"
    done
}

upstreams_status() {
    local name
    for name in "${UPSTREAMS[@]}"; do
        ! alive "$name" || printf '%-24s %s\n' "$name" "$(<"$DIR/url/$name")"
    done
}

upstreams_exports() {
    local name
    for name in "${UPSTREAMS[@]}"; do
        alive "$name" || return 0
    done
    echo "export QUARTERMASTER_TEST_UPSTREAMS=$DIR"
}
