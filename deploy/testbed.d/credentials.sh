# Certificates, tokens and kubeconfigs of one testbed. To be sourced with DIR and API_PORT set.
#
# Everything is made anew for every testbed and is worth nothing outside of it.

# Who may come in, and by which groups. `viewer`, `editor` and `impersonator` get their rights by RBAC (see access.sh).
readonly USERS=(
    'admin system:masters'
    'viewer viewers'
    'editor editors'
    'impersonator impersonators'
    'nobody nobodies'
    'fakelet system:masters'
    'rollouts system:masters'
)

key() { # FILE
    openssl genpkey -algorithm EC -pkeyopt ec_paramgen_curve:P-256 -out "$1" 2>/dev/null
}

authority() { # NAME
    key "$1.key"
    openssl req -x509 -new -key "$1.key" -subj "/CN=$1" -days 365 -out "$1.crt" 2>/dev/null
}

certificate() { # NAME SUBJECT USAGE [EXTENSION]
    key "$1.key"
    openssl req -new -key "$1.key" -subj "$2" -out "$1.csr" 2>/dev/null
    openssl x509 -req -in "$1.csr" -CA ca.crt -CAkey ca.key -CAcreateserial -days 365 -out "$1.crt" \
        -extfile <(printf '%s\n' keyUsage=digitalSignature "extendedKeyUsage=$3" "${@:4}") 2>/dev/null
    rm "$1.csr"
}

make_credentials() {
    local names='subjectAltName=IP:127.0.0.1,IP:10.96.0.1,DNS:localhost,DNS:kubernetes,DNS:kubernetes.default.svc'
    local user group token
    (
        umask 077
        mkdir -p "$DIR/pki/token" && cd "$DIR/pki"
        authority ca
        authority other-ca
        certificate server /CN=kube-apiserver serverAuth "$names"
        certificate kubelet /O=system:nodes/CN=system:node serverAuth subjectAltName=IP:127.0.0.1
        certificate apiserver-client /CN=kube-apiserver clientAuth
        certificate front-proxy /CN=front-proxy clientAuth
        certificate admin /O=system:masters/CN=admin-by-certificate clientAuth
        certificate controller-manager /CN=system:kube-controller-manager clientAuth
        certificate scheduler /CN=system:kube-scheduler clientAuth
        openssl genrsa -out service-accounts.key 2048 2>/dev/null
        openssl rsa -in service-accounts.key -pubout -out service-accounts.pub 2>/dev/null
        for user in "${USERS[@]}"; do
            read -r user group <<<"$user"
            token=$(openssl rand -hex 24)
            echo "$token" >"token/$user"
            echo "$token,$user,$user,$group"
        done >tokens.csv
    )
}

# kubeconfig NAME SERVER CA-FILE USER-JSON: writes kubeconfig/NAME, with one context of the same name.
kubeconfig() {
    cat >"$DIR/kubeconfig/$1" <<JSON
{
  "apiVersion": "v1",
  "kind": "Config",
  "current-context": "$1",
  "clusters": [{"name": "$1", "cluster": {"server": "$2", "certificate-authority-data": "$(base64 -w0 <"$3")"}}],
  "users": [{"name": "$1", "user": $4}],
  "contexts": [{"name": "$1", "context": {"cluster": "$1", "user": "$1", "namespace": "default"}}]
}
JSON
}

by_token() { # USER
    printf '{"token": "%s"}' "$(<"$DIR/pki/token/$1")"
}

by_certificate() { # NAME
    printf '{"client-certificate-data": "%s", "client-key-data": "%s"}' \
        "$(base64 -w0 <"$DIR/pki/$1.crt")" "$(base64 -w0 <"$DIR/pki/$1.key")"
}

make_kubeconfigs() {
    local server=https://127.0.0.1:$API_PORT ca=$DIR/pki/ca.crt user
    (
        umask 077
        mkdir -p "$DIR/kubeconfig"
        for user in admin viewer editor impersonator nobody rollouts; do
            kubeconfig "$user" "$server" "$ca" "$(by_token "$user")"
        done
        kubeconfig admin-by-certificate "$server" "$ca" "$(by_certificate admin)"
        kubeconfig controller-manager "$server" "$ca" "$(by_certificate controller-manager)"
        kubeconfig scheduler "$server" "$ca" "$(by_certificate scheduler)"
        # Three that must fail, each in its own way.
        kubeconfig broken-token "$server" "$ca" '{"token": "not-a-token-of-this-cluster"}'
        kubeconfig broken-authority "$server" "$DIR/pki/other-ca.crt" "$(by_token admin)"
        kubeconfig broken-address https://127.0.0.1:1 "$ca" "$(by_token admin)"
    )
}
