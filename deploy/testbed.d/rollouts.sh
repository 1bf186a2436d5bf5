# Argo Rollouts in a testbed. To be sourced after processes.sh and access.sh.

readonly CRDS=/apis/apiextensions.k8s.io/v1/customresourcedefinitions
readonly NAMESPACE=argo-rollouts

# find_rollouts WHAT: sets ROLLOUTS_CRDS and ROLLOUTS_BIN as far as WHAT asks: nothing, `rollouts-crds`, `rollouts`.
find_rollouts() {
    local version=$ARGO_ROLLOUTS_VERSION
    case $1 in
    '') return ;;
    rollouts | rollouts-crds) ;;
    *)
        echo "TESTBED_WITH knows \`rollouts\`, \`rollouts-crds\`, \`jenkins\` and \`jenkins-alone\`, not \`$1\`" >&2
        return 2
        ;;
    esac
    [[ -d $TOOLS/argo-rollouts-crds-$version ]] || use_go
    ROLLOUTS_CRDS=$(tool "argo-rollouts-crds-$version" argo_rollouts_crds_into "$version") ||
        skip "Argo Rollouts $version cannot be fetched from the Go module proxy"
    [[ $1 == rollouts ]] || return 0
    [[ -d $TOOLS/argo-rollouts-$version ]] || use_go
    ROLLOUTS_BIN=$(tool "argo-rollouts-$version" argo_rollouts_into "$version")/bin/rollouts-controller ||
        skip "Argo Rollouts $version cannot be built"
}

# start_rollouts WHAT: installs what find_rollouts found.
start_rollouts() {
    local file name
    [[ -n $1 ]] || return 0
    for file in "$ROLLOUTS_CRDS"/*-crd.yaml; do
        name=$(sed -nE 's/^  name: (\S+\.argoproj\.io)$/\1/p' "$file")
        apply "$CRDS/$name" <"$file"
    done
    await kube-apiserver 'Argo Rollouts resources are served' api GET /apis/argoproj.io/v1alpha1/rollouts
    [[ $1 == rollouts ]] || return 0
    # Its notification settings are looked for in a namespace of its own.
    apply "/api/v1/namespaces/$NAMESPACE" <<<"{apiVersion: v1, kind: Namespace, metadata: {name: $NAMESPACE}}"
    start rollouts-controller "$ROLLOUTS_BIN" --kubeconfig "$DIR/kubeconfig/rollouts" --namespace "$NAMESPACE" \
        --leader-elect=false --metricsPort "$ROLLOUTS_METRICS_PORT" --healthzPort "$ROLLOUTS_HEALTH_PORT"
    await rollouts-controller 'rollouts-controller is healthy' \
        curl -sf -m 2 "http://127.0.0.1:$ROLLOUTS_HEALTH_PORT/healthz"
}
