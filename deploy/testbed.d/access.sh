# Requests of the administrator, and the rights they give to the others. To be sourced with DIR and API_PORT set.

api() { # METHOD PATH [CURL-ARGUMENT...]
    # The token comes from a file descriptor: arguments can be read by everybody on the machine.
    curl --silent --show-error --fail-with-body --max-time 20 --cacert "$DIR/pki/ca.crt" \
        --header @<(printf 'Authorization: Bearer %s' "$(<"$DIR/pki/token/admin")") \
        --request "$1" "https://127.0.0.1:$API_PORT$2" "${@:3}"
}

apply() { # PATH: server-side apply of the YAML or JSON on stdin
    api PATCH "$1?fieldManager=testbed&force=true" \
        --header 'Content-Type: application/apply-patch+yaml' --data-binary @- >/dev/null
}

readonly RBAC=/apis/rbac.authorization.k8s.io/v1

grant() { # GROUP CLUSTER-ROLE
    apply "$RBAC/clusterrolebindings/testbed:$1" <<YAML
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRoleBinding
metadata: {name: "testbed:$1"}
roleRef: {apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: "$2"}
subjects: [{apiGroup: rbac.authorization.k8s.io, kind: Group, name: $1}]
YAML
}

give_rights() {
    grant viewers view
    grant editors edit
    apply "$RBAC/clusterroles/testbed:impersonate" <<'YAML'
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRole
metadata: {name: "testbed:impersonate"}
rules:
- {apiGroups: [""], resources: [users, groups, serviceaccounts], verbs: [impersonate]}
- {apiGroups: [authentication.k8s.io], resources: ["userextras/*", uids], verbs: [impersonate]}
YAML
    grant impersonators testbed:impersonate
}

# nodes_ready COUNT: whether that many nodes are Ready and have lost the taint they are born with.
nodes_ready() {
    local nodes
    nodes=$(api GET /api/v1/nodes) || return 1
    python3 -c '
import json, sys
ready = [
    node for node in json.load(sys.stdin)["items"]
    if not any(taint["key"] == "node.kubernetes.io/not-ready" for taint in node["spec"].get("taints", []))
    and any(c["type"] == "Ready" and c["status"] == "True" for c in node["status"].get("conditions", []))
]
sys.exit(len(ready) < int(sys.argv[1]))' "$1" <<<"$nodes"
}
