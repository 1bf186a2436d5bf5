# The rings of deploy/test, in the order in which they should fail. To be sourced after tools.sh.
#
# A ring is a function `ring_NAME`: it returns, or ends with an error, or calls `skip`.

# Rings that run beside another one, one after the other, if both are wanted: it leaves them the time. A ring with such
# company has a function `compile_NAME` if there is something to compile: cargo does one thing at a time.
declare -A BESIDE=(
    [unit]='docs'
    [control_plane]='upstreams archive monitoring tracing'
    [conformance]='clients site files examples openapi'
    [soak]='image chart'
)
# Those of them that only compute take what the others leave idle.
IDLY=' docs '

RINGS=(fmt addresses names lint docs deny unit control_plane operator upstreams archive monitoring tracing build conformance clients console examples openapi site files smoke soak image chart)

ring_fmt() {
    cargo fmt --all --check
}

# Parts come by the ordinary client and a name, which a mirror can serve as well. Lock files are cargo's own.
# A bracket in each keeps this list from finding itself.
ring_addresses() {
    local registries='crates[.]io|pypi[.]org|pythonhosted[.]org|npmjs[.](com|org)|(proxy|sum)[.]golang[.]org|repo1?[.]maven[.]|maven[.]apache[.]org|deb[.]debian[.]org|archive[.]ubuntu[.]com|rubygems[.]org|static[.]rust-lang[.]org'
    # git grep says 1 for nothing found, and more if it could not look.
    local status=0
    git grep -nIiE "$registries" -- . ':!*Cargo.lock' || status=$?
    if ((status == 0)); then
        echo 'the address of a package registry stands in the lines above'
        exit 1
    fi
    ((status == 1))
}

# What a type name stands for: at most two things, and `Args`, `Config` and `Error` in each module.
ring_names() {
    python3 -B deploy/lib/names.py --strict
}

ring_lint() {
    cargo clippy --workspace --all-targets --locked -- -D warnings
}

ring_docs() {
    # No doc comment holds code to run, so `unit` does not send rustdoc through every crate to look for some.
    git ls-files -z '*.rs' | xargs -0 awk '
        FNR == 1 { inside = 0 }
        /^ *\/\/[\/!] *```/ {
            if (!inside && !/```(text|json|yaml|toml|console)$/) { print FILENAME ":" FNR ": an example that no ring would run"; found = 1 }
            inside = !inside
        }
        END { exit found }'
    RUSTDOCFLAGS='-D warnings' cargo doc --workspace --no-deps --document-private-items --locked
}

# Doors, licences and sources are judged from the lock file alone. Advisories need a database from the
# network: where it cannot be had the ring says so and lets the rest stand.
ring_deny() {
    local root deny
    root=$(tool "cargo-deny-$CARGO_DENY_VERSION" cargo_into cargo-deny "$CARGO_DENY_VERSION") || skip "cargo-deny $CARGO_DENY_VERSION cannot be built"
    deny=("$root/bin/cargo-deny" --locked --config deploy/deny.toml)
    # A wrapper that nobody uses yet is a door that stays shut, not a mistake.
    "${deny[@]}" check --allow unused-wrapper --allow duplicate bans licenses sources
    if "${deny[@]}" fetch db; then
        "${deny[@]}" check --disable-fetch advisories
    else
        printf '\nNOT CHECKED: advisories. The RustSec database could not be fetched.\n'
    fi
}

compile_unit() {
    cargo test --workspace --lib --bins --tests --locked --no-run --message-format=json-render-diagnostics
}

ring_unit() {
    local built
    need_command redis-server redis-server
    need_command openssl openssl
    # Compiled first: helm may be under way meanwhile.
    built=$(compile_unit)
    use_helm
    # A snapshot that differs is a failure to look at, never a file to leave in the checkout.
    INSTA_UPDATE=no python3 -B deploy/lib/run_tests.py <<<"$built"
}

# use_helm: where the tests find helm. Without it those that start it say so and end, which CI does not take for a pass.
use_helm() {
    if ! QUARTERMASTER_TEST_HELM=$(deploy/testbed helm); then
        [[ -z ${CI:-} ]] || exit 77
        QUARTERMASTER_TEST_HELM=''
    fi
    export QUARTERMASTER_TEST_HELM
}

# run_named [FILTER...] [-- ARGUMENT...]: runs the tests of the workspace whose names hold one of these, by the binaries
# that `unit` has built: another choice of packages would build its own kube. A filter that matches nothing would pass
# without a word, and so would a test that says that it is skipped.
run_named() {
    local filters=()
    while (($#)) && [[ $1 != -- ]]; do filters+=("$1") && shift; done
    INSTA_UPDATE=no cargo test --locked --workspace --test it -- "${filters[@]}" "${@:2}" 2>&1 |
        tee -a /dev/stderr | python3 -c '
import sys
ran, skipped = [], []
for line in sys.stdin:
    ran += [line] if line.startswith("test ") and not line.startswith("test result") else []
    skipped += [line] if "SKIPPED:" in line else []
unused = [name for name in sys.argv[1:] if not any(name in line for line in ran)]
if unused or skipped:
    sys.exit("\n".join([f"no test matches {name}" for name in unused] + skipped))' "${filters[@]}"
}

# The audit log off the box: a real S3-compatible service that checks signatures, and the auditors' own script.
ring_archive() {
    local packages
    packages=$(moto_packages) || skip "moto $MOTO_VERSION cannot be fetched from PyPI"
    export -f run_named
    PYTHONPATH=$packages python3 deploy/s3-for-tests bash -o pipefail -c 'run_named real_bucket the_script_of_the_auditors_page -- --nocapture'
}

# What is watched: alert rules and dashboard, by a real Prometheus on the running service.
ring_monitoring() {
    local prometheus
    need_command redis-server redis-server
    prometheus=$(tool "prometheus-$(distribution)" deb_into prometheus) || skip "the package prometheus cannot be fetched from the distribution"
    "$prometheus/usr/bin/promtool" check rules deploy/monitoring/alerts.yaml
    "$prometheus/usr/bin/promtool" test rules deploy/monitoring/alerts_test.yaml
    export QUARTERMASTER_TEST_PROMETHEUS=$prometheus/usr/bin/prometheus
    # They wait for scrapes more than they compute.
    export RUST_TEST_THREADS=4
    run_named alerts::
}

# Traces as somebody looks them up: in a real Jaeger, from two replicas of the running service.
ring_tracing() {
    need_command redis-server redis-server
    QUARTERMASTER_TEST_JAEGER=$(jaeger_binary) || exit
    export QUARTERMASTER_TEST_JAEGER
    run_named trace_backend:: -- --nocapture
}

compile_control_plane() {
    cargo test --locked --workspace --test it --no-run
}

# The tools that act on clusters, against a real API server and Argo's own controller. They are compiled first: a testbed
# has better things to do than to wait.
ring_control_plane() {
    local exports
    compile_control_plane
    TESTBED_DIR=$(mktemp -d "${TMPDIR:-/tmp}/quartermaster-testbed.XXXXXX")
    export TESTBED_DIR
    trap leave_testbed EXIT
    export TESTBED_WITH=rollouts
    exports=$(deploy/testbed up) || exit
    eval "$exports"
    deploy/testbed check
    use_helm
    # They wait for controllers more than they compute. Those that bring a simulated cluster of their own ran in `unit`.
    # `releases` is what helm does to releases, tool by tool, on the same API server.
    export RUST_TEST_THREADS=4
    run_named k8s_ argo_ helm_ runbooks_cluster releases:: -- --skip k8s_write_
}

compile_operator() {
    cargo test --locked --workspace --test it --no-run
}

# The operator on a real API server with its real controllers; the gateway and a FastMCP server as processes of tools, and
# two replicas of the gateway on a real Redis for tenants that are resources.
ring_operator() {
    local exports
    need_command redis-server redis-server
    compile_operator
    TESTBED_DIR=$(mktemp -d "${TMPDIR:-/tmp}/quartermaster-testbed.XXXXXX")
    export TESTBED_DIR
    trap leave_testbed EXIT
    exports=$(deploy/testbed up) || exit
    eval "$exports"
    exports=$(deploy/testbed upstreams) || exit
    eval "$exports"
    # They wait for controllers more than they compute.
    export RUST_TEST_THREADS=6
    run_named on_a_cluster:: -- --nocapture
}

# The tools of external servers, against real servers of others. Everything that needs none of them ran in `unit`.
ring_upstreams() {
    local exports
    compile_control_plane
    TESTBED_DIR=$(mktemp -d "${TMPDIR:-/tmp}/quartermaster-testbed.XXXXXX")
    export TESTBED_DIR
    trap leave_testbed EXIT
    exports=$(deploy/testbed upstreams) || exit
    eval "$exports"
    run_named upstream_real
}

# Runs on every way out of the ring.
leave_testbed() {
    local status=$?
    deploy/testbed down
    if ((status == 0 || status == SKIP)); then rm -rf "$TESTBED_DIR"; else echo "logs are kept in $TESTBED_DIR"; fi
    exit "$status"
}

ring_build() {
    need_binary
    ls -l "$QUARTERMASTER_BIN"
}

compile_conformance() {
    need_binary
}

# The documentation as a site: its reference is current, it builds without a warning, and no link leads nowhere.
ring_site() {
    local mdbook
    need_binary
    need_command curl curl
    need_command jq jq
    mdbook=$(mdbook_binary) || exit
    python3 -B deploy/site/build.py "$mdbook" "$QUARTERMASTER_BIN"
    python3 -B deploy/site/walk.py "$QUARTERMASTER_BIN"
    python3 -B deploy/site/pages.py "$QUARTERMASTER_BIN"
}

# Files for tools that do not run here: judged by the schemas and the checkers of those tools.
ring_files() {
    local packages schema prometheus
    need_binary
    packages=$(check_packages) || skip 'the Python packages of the checks cannot be fetched from PyPI'
    prometheus=$(tool "prometheus-$(distribution)" deb_into prometheus) || skip "the package prometheus cannot be fetched from the distribution"
    schema=$(go_files github.com/compose-spec/compose-go/v2 "$COMPOSE_VERSION" schema/compose-spec.json) || exit
    need_command systemd-analyze systemd
    PYTHONPATH=$packages python3 -B deploy/lib/check_files.py "$schema/compose-spec.json" "$prometheus/usr/bin/promtool"
}

# image_tools: programs of others that read, unpack and start an image without a container engine.
image_tools() {
    need_command skopeo skopeo
    need_command umoci umoci
    need_command runc runc
}

ring_image() {
    local packages
    need_binary
    need_command openssl openssl
    image_tools
    packages=$(check_packages) || skip 'the Python packages of the checks cannot be fetched from PyPI'
    image_base >/dev/null || exit
    helm_binary >/dev/null || exit
    PYTHONPATH=$packages python3 -B deploy/image/check.py
}

# The chart: rendered in combinations, judged by a real API server, installed, upgraded, rolled back and removed by the real
# helm. No kubelet of the testbed runs containers: runc starts one replica, from the pod that the API server has.
ring_chart() {
    local packages helm exports route monitor objects
    need_binary
    need_command redis-server redis-server
    image_tools
    packages=$(check_packages) || skip 'the Python packages of the checks cannot be fetched from PyPI'
    helm=$(helm_binary) || exit
    route=$(go_files sigs.k8s.io/gateway-api "$GATEWAY_API_VERSION" 'config/crd/standard/*_httproutes.yaml') || exit
    monitor=$(go_files github.com/prometheus-operator/prometheus-operator "$PROMETHEUS_OPERATOR_VERSION" \
        'example/prometheus-operator-crd/*_servicemonitors.yaml' 'example/prometheus-operator-crd/*_prometheusrules.yaml') || exit
    TESTBED_DIR=$(mktemp -d "${TMPDIR:-/tmp}/quartermaster-testbed.XXXXXX")
    export TESTBED_DIR PYTHONPATH=$packages
    objects=$TESTBED_DIR/objects.jsonl
    python3 -B deploy/chart.d/render.py "$helm" "$QUARTERMASTER_BIN" "$objects"
    trap leave_testbed EXIT
    exports=$(deploy/testbed up) || exit
    eval "$exports"
    chmod 755 "$TESTBED_DIR" # the image is unpacked below it, for a user of its own
    deploy/image/build "$TESTBED_DIR/image" test >/dev/null
    CHART_DEFINITIONS=$(echo "$route"/*.yaml "$monitor"/*.yaml) \
        python3 -B deploy/chart.d/cluster.py "$helm" "$TESTBED_DIR" "$objects" "$TESTBED_DIR/image"
}

ring_conformance() {
    need_binary
    use_node
    deploy/conformance/run
}

ring_clients() {
    need_binary
    use_node
    deploy/clients/run
}

# The console in a real browser, against a real OpenID provider.
ring_console() {
    need_binary
    deploy/console/run
}

# Agents with the libraries that people use, each from the first look to an approved change.
ring_examples() {
    need_binary
    deploy/examples/run
}

# The description of the API: fuzzed on the running service, and clients made from it.
ring_openapi() {
    need_binary
    need_command curl curl
    deploy/openapi/run
}

ring_smoke() {
    need_command curl curl
    need_binary
    python3 deploy/smoke.py
}

# What is under the service breaks for two minutes, and the invariants hold. One seed, so that a run is like the last one;
# other seeds, and a primary that dies behind Sentinels or in a cluster, are tried by hand (loadtests/README.md says why).
ring_soak() {
    local faketime
    need_command redis-server redis-server
    need_command ip iproute2
    need_binary
    unshare --mount --net true 2>/dev/null || skip 'this user may not make network namespaces'
    # Without it the clocks stay right, and the rest is broken all the same.
    if faketime=$(tool "libfaketime-$(distribution)" deb_into libfaketime); then export SOAK_FAKETIME=$faketime; else echo 'NOT TESTED: shifted clocks. The package libfaketime cannot be fetched.'; fi
    python3 -B loadtests/soak --topology single --seconds 45 --seed 7
    python3 -B loadtests/soak --topology sentinel,cluster --seconds 30 --seed 7
}
