# The rings of deploy/test, in the order in which they should fail. To be sourced after tools.sh.
#
# A ring is a function `ring_NAME`: it returns, or ends with an error, or calls `skip`.

RINGS=(fmt addresses names lint docs deny unit control_plane upstreams archive monitoring tracing build conformance clients examples openapi smoke)

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

ring_unit() {
    local built
    need_command redis-server redis-server
    # Compiled first: helm may be under way meanwhile.
    built=$(cargo test --workspace --lib --bins --tests --locked --no-run --message-format=json-render-diagnostics)
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

# The audit log off the box: a real S3-compatible service that checks signatures, and the auditors' own script.
ring_archive() {
    local tests=(cargo test --locked --workspace --test it) packages filter
    packages=$(moto_packages) || skip "moto $MOTO_VERSION cannot be fetched from PyPI"
    for filter in real_bucket the_script_of_the_auditors_page; do
        [[ $("${tests[@]}" "$filter" -- --list) == *': test'* ]]
        INSTA_UPDATE=no PYTHONPATH=$packages python3 deploy/s3-for-tests "${tests[@]}" "$filter" -- --nocapture | tee /dev/stderr | not_skipped
    done
}

# not_skipped: fails if what a test prints says that it did not run.
not_skipped() {
    ! grep -q 'SKIPPED:'
}

# What is watched: alert rules and dashboard, by a real Prometheus on the running service.
ring_monitoring() {
    local tests=(cargo test --locked --workspace --test it) prometheus filter=alerts::
    need_command redis-server redis-server
    prometheus=$(tool "prometheus-$(distribution)" deb_into prometheus) || skip "the package prometheus cannot be fetched from the distribution"
    "$prometheus/usr/bin/promtool" check rules deploy/monitoring/alerts.yaml
    "$prometheus/usr/bin/promtool" test rules deploy/monitoring/alerts_test.yaml
    export QUARTERMASTER_TEST_PROMETHEUS=$prometheus/usr/bin/prometheus
    # They wait for scrapes more than they compute.
    export RUST_TEST_THREADS=4
    # A filter that matches nothing would pass without a word.
    [[ $("${tests[@]}" "$filter" -- --list) == *': test'* ]]
    INSTA_UPDATE=no "${tests[@]}" "$filter"
}

# Traces as somebody looks them up: in a real Jaeger, from two replicas of the running service.
ring_tracing() {
    local tests=(cargo test --locked --workspace --test it) filter=trace_backend::
    need_command redis-server redis-server
    QUARTERMASTER_TEST_JAEGER=$(jaeger_binary) || exit
    export QUARTERMASTER_TEST_JAEGER
    [[ $("${tests[@]}" "$filter" -- --list) == *': test'* ]]
    INSTA_UPDATE=no "${tests[@]}" "$filter" -- --nocapture 2>&1 | tee /dev/stderr | not_skipped
}

# The tools that act on clusters, against a real API server and Argo's own controller. They are compiled first: a testbed
# has better things to do than to wait.
ring_control_plane() {
    # The whole workspace, as in the ring before: another choice of packages would build its own kube.
    local tests=(cargo test --locked --workspace --test it) exports filter
    INSTA_UPDATE=no "${tests[@]}" --no-run
    TESTBED_DIR=$(mktemp -d "${TMPDIR:-/tmp}/quartermaster-testbed.XXXXXX")
    export TESTBED_DIR
    trap leave_testbed EXIT
    export TESTBED_WITH=rollouts
    exports=$(deploy/testbed up) || exit
    eval "$exports"
    deploy/testbed check
    # A filter that matches nothing would pass without a word.
    use_helm
    # They wait for controllers more than they compute. Those that bring a simulated cluster of their own ran in `unit`.
    export RUST_TEST_THREADS=4
    for filter in k8s_ argo_ helm_ runbooks_cluster; do
        [[ $("${tests[@]}" "$filter" -- --list) == *': test'* ]]
        INSTA_UPDATE=no "${tests[@]}" "$filter" -- --skip k8s_write_
    done
    # What helm does to releases, tool by tool, on the same API server.
    "${tests[@]}" releases::
}

# The tools of external servers, against real servers of others. Everything that needs none of them ran in `unit`.
ring_upstreams() {
    local tests=(cargo test --locked --workspace --test it) exports filter=upstream_real
    INSTA_UPDATE=no "${tests[@]}" --no-run
    TESTBED_DIR=$(mktemp -d "${TMPDIR:-/tmp}/quartermaster-testbed.XXXXXX")
    export TESTBED_DIR
    trap leave_testbed EXIT
    exports=$(deploy/testbed upstreams) || exit
    eval "$exports"
    [[ $("${tests[@]}" "$filter" -- --list) == *': test'* ]]
    INSTA_UPDATE=no "${tests[@]}" "$filter"
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
