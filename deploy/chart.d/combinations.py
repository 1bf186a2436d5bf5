"""Values of the chart to try: every pair of choices together at least once, and values that must be refused.

All combinations would be tens of thousands. Faults of templates come from one choice or from two that meet, so a few dozen
combinations that hold every pair find what all of them would.
"""

import itertools
import pathlib
import tomllib

DEFAULTS = tomllib.loads((pathlib.Path(__file__).resolve().parent / "../../services/gateway/defaults.toml").read_text())

BASE = {
    "image": {"repository": "registry.example/quartermaster"},
    "resource": "https://tools.example.com/mcp",
    "serviceKey": {"secret": "quartermaster-key"},
    "settings": {
        "identity": {
            "issuers": [{"issuer": "https://login.example", "algorithms": ["RS256"], "jwks_url": "https://login.example/keys"}]
        }
    },
    "tenants": {"acme": "tenant: acme\n"},
    "redis": {"url": "redis://redis.example:6379"},
}

ON = {"enabled": True}
ANYWHERE = [{"namespaceSelector": {}}]

# Each choice is a list of alternatives; the first is the default.
CHOICES = {
    "redis": [
        {},
        {"redis": {"url": "", "urlSecret": {"name": "redis-address", "key": "url"}}},
        {"redis": {"topology": "sentinel", "url": "rediss+sentinel://s1,s2:26380/main", "sentinelPasswordSecret": {"name": "sentinels"}}},
        {"redis": {"topology": "cluster", "url": "redis+cluster://n1:6379,n2:6379"}},
        {"redis": {"topology": "bundled"}},
        {"redis": {"topology": "bundled", "bundled": {"storage": "1Gi"}}},
    ],
    "tenants": [
        {},
        {"tenants": {"acme": {"tenant": "acme", "mode": "read"}, "shop": "tenant: shop\n# kept\nmode: read\n"}},
        {"tenants": {}, "tenantsConfigMap": "our-tenants"},
        {"tenants": {}, "operator": {"enabled": True, "tenants": {"enabled": True, "namespacePrefix": "team-"}}},
    ],
    "secrets": [
        {},
        {"tenantSecrets": {"acme": "acme-secrets", "shop": "shop-secrets"}, "secretFiles": {"webhook": "webhook-secret"}},
    ],
    "key": [{}, {"serviceKey": {"secret": "k", "key": "new", "older": ["old", "older"]}}],
    "servers": [{}, {"servers": [{"name": "wiki", "description": "wiki", "url": "https://mcp.wiki.example/mcp"}]}],
    "settings": [
        {},
        {
            "settings": {
                "listen": {"workers": 4, "trusted_proxies": ["10.0.0.0/8"], "hosts": ["tools.internal"]},
                "limits": {"caller_share": 0.5, "store_bytes_per_tenant": 21474836480},
                "telemetry": {"sample_ratio": 1, "otlp_traces": {"export": False}},
                "upstreams": {"chart_hosts": ['charts.example.com', '*.example.org'], "private": True},
            }
        },
    ],
    "image": [{}, {"image": {"tag": "9", "digest": f"sha256:{'0' * 64}", "pullSecrets": ["pull"]}}],
    "scale": [{}, {"autoscaling": ON}, {"replicas": 1, "podDisruptionBudget": {"enabled": False}}],
    "service": [{}, {"service": {"type": "LoadBalancer", "port": 80, "annotations": {"a/b": "c"}}}],
    "account": [
        {},
        {"serviceAccount": {"automount": True, "clusterRole": "view", "annotations": {"a/b": "c"}}},
        {"serviceAccount": {"create": False, "name": "ours"}},
    ],
    "monitor": [{}, {"metrics": {"serviceMonitor": {"enabled": True, "labels": {"release": "prometheus"}}}}],
    "rules": [{}, {"metrics": {"prometheusRule": {"enabled": True, "runbookBase": "https://git.example/qm/"}}}],
    "dashboard": [{}, {"metrics": {"dashboard": ON}}],
    "policy": [
        {},
        {"networkPolicy": {"from": ANYWHERE, "metricsFrom": ANYWHERE, "egress": [{"to": ANYWHERE}]}},
        {"networkPolicy": {"enabled": False}},
    ],
    "ingress": [{}, {"ingress": {"enabled": True, "className": "nginx", "tlsSecret": "tls", "annotations": {"a/b": "c"}}}],
    "route": [{}, {"httpRoute": {"enabled": True, "parentRefs": [{"name": "public", "namespace": "gateways"}]}}],
    "operator": [
        {},
        {"operator": ON},
        {"operator": {"enabled": True, "watch": "agents", "replicas": 2}},
    ],
    "pod": [
        {},
        {
            "podLabels": {"team": "tools"},
            "podAnnotations": {"a/b": "c"},
            "nodeSelector": {"kubernetes.io/os": "linux"},
            "tolerations": [{"key": "dedicated", "operator": "Exists"}],
            "priorityClassName": "system-cluster-critical",
            "env": [{"name": "QM_TELEMETRY__LOG", "value": "debug"}],
            "fullnameOverride": "tools",
        },
    ],
}

# What cannot be together: tenants that are resources bring their own secrets.
CLASHES = {frozenset([("tenants", 3), ("secrets", 1)])}

# A service without a console would refuse its settings.
if "console" in DEFAULTS:
    CHOICES["console"] = [{}, {"console": ON}, {"console": {"enabled": True, "address": "https://desk.example.com"}}]

# What must be refused, and a part of the message that says why.
REFUSED = [
    ({"image": {"repository": ""}}, "/image/repository"),
    ({"resource": "tools.example.com"}, "/resource"),
    ({"serviceKey": {"secret": ""}}, "/serviceKey/secret"),
    ({"imgae": {}}, "imgae"),
    ({"redis": {"topology": "ring"}}, "/redis/topology"),
    ({"redis": {"url": ""}}, "redis.url is empty"),
    ({"redis": {"url": "http://redis"}}, "/redis/url"),
    ({"redis": {"topology": "cluster"}}, "redis.url does not fit redis.topology cluster"),
    ({"redis": {"url": "redis+sentinel://s1/main"}}, "redis.url does not fit redis.topology single"),
    ({"settings": {"store": {"sentinel_password": "x"}}}, "redis.sentinelPasswordSecret"),
    ({"console": {"address": "desk.example.com"}}, "/console/address"),
    ({"tenants": {}}, "tenants is empty"),
    ({"tenants": {"Acme": "tenant: Acme"}}, "Acme"),
    ({"settings": {"identity": {"issuers": []}}}, "settings.identity.issuers is empty"),
    ({"settings": {"listen": {"address": "0.0.0.0:1"}}}, "settings.listen.address is set by the chart"),
    ({"settings": {"store": {"url": "redis://other"}}}, "settings.store.url is set by the chart"),
    ({"httpRoute": {"enabled": True}}, "/httpRoute/parentRefs"),
    ({"tenants": {}, "operator": {"tenants": {"enabled": True}}}, "operator.tenants.enabled needs operator.enabled"),
    ({"operator": {"enabled": True, "tenants": {"enabled": True}}}, "must be empty"),
    ({"settings": {"tenants": {"report": "/x"}}}, "settings.tenants.report is set by the chart"),
    ({"ports": {"http": 80}}, "/ports/http"),
    ({"service": {"type": "ExternalName"}}, "/service/type"),
    ({"shutdown": {"waitSeconds": 0}}, "/shutdown/waitSeconds"),
]


def merged(*parts):
    """The parts over one another, as helm lays values over values."""
    whole = {}
    for part in parts:
        for key, value in part.items():
            if isinstance(value, dict) and isinstance(whole.get(key), dict) and key != "tenants":
                whole[key] = merged(whole[key], value)
            else:
                whole[key] = value
    return whole


def combinations():
    """Picks of one alternative for each choice, such that every pair of alternatives is in one of them."""
    names = list(CHOICES)
    left = {
        ((one, a), (two, b))
        for one, two in itertools.combinations(names, 2)
        for a in range(len(CHOICES[one]))
        for b in range(len(CHOICES[two]))
        if frozenset([(one, a), (two, b)]) not in CLASHES
    }
    while left:
        # Begins with a pair that is still open, then takes what closes most others.
        pick = dict(min(left))
        for name in names:
            if name not in pick:
                possible = (at for at in range(len(CHOICES[name])) if not any(frozenset([(name, at), taken]) in CLASHES for taken in pick.items()))
                pick[name] = max(possible, key=lambda at: closed(left, pick | {name: at}, names))
        left -= set(pairs(pick, names))
        yield pick, merged(BASE, *(CHOICES[name][pick[name]] for name in names))


def pairs(pick, names):
    picked = [(name, pick[name]) for name in names if name in pick]
    return itertools.combinations(picked, 2)


def closed(left, pick, names):
    return sum(pair in left for pair in pairs(pick, names))
