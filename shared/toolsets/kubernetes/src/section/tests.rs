//! What a tenant's file may say about clusters, and exactly how each mistake is told.

use super::*;
use insta::assert_snapshot;
use tenancy::{KnownNames, Problem};

fn problems(text: &str) -> Vec<Problem> {
    tenancy::parse("acme.yaml", text, &KnownNames::only(&[section()])).expect_err("problems")
}

/// Every problem as it is printed.
fn printed(text: &str) -> String {
    problems(text).iter().map(Problem::to_string).collect::<Vec<_>>().join("\n")
}

fn codes(text: &str) -> Vec<&'static str> {
    problems(text).iter().map(|problem| problem.code).collect()
}

#[test]
fn the_schema_knows_the_keys_the_reader_knows() {
    let schema = tenancy::json_schema(&[section()]);
    let keys: Vec<&str> =
        schema["$defs"]["ClusterPart"]["properties"].as_object().unwrap().keys().map(String::as_str).collect();
    let mut expected = CLUSTER;
    expected.sort_unstable();
    assert_eq!(keys, expected);
}

fn file(cluster: &str) -> String {
    format!("tenant: acme\nclusters:\n- {cluster}\n")
}

#[test]
fn a_cluster_is_read_as_written() {
    let text = "tenant: acme\nclusters:\n\
         - name: prod\n  \
           kubeconfig: { secret: prod-kubeconfig }\n  \
           namespaces: [shop, 'shop-*']\n  \
           impersonate: { user: 'quartermaster:acme', groups: [readers] }\n  \
           protected: [billing]\n\
         - { name: here, in_cluster: true, default_namespace: apps, default: true }\n\
         - { name: play, sandbox: true }\n";
    let cluster = |name: &str, source| ClusterEntry {
        name: name.into(),
        source,
        namespaces: None,
        default_namespace: "default".into(),
        impersonate: None,
        protected: Vec::new(),
        default: false,
    };
    let prod = ClusterEntry {
        namespaces: Some(vec!["shop".into(), "shop-*".into()]),
        default_namespace: "shop".into(),
        impersonate: Some(ImpersonateConfig { user: "quartermaster:acme".into(), groups: vec!["readers".into()] }),
        protected: vec!["billing".into()],
        ..cluster("prod", ClusterSource::Secret("prod-kubeconfig".into()))
    };
    let here =
        ClusterEntry { default_namespace: "apps".into(), default: true, ..cluster("here", ClusterSource::InCluster) };
    let config = tenancy::parse("acme.yaml", text, &KnownNames::only(&[section()])).unwrap();
    let clusters = config.section::<Vec<ClusterEntry>>(KEY).unwrap().unwrap();
    assert_eq!(*clusters, [prod, here, cluster("play", ClusterSource::Sandbox)]);
}

#[test]
fn a_cluster_has_exactly_one_source() {
    assert_snapshot!(printed(&file("{ name: prod }")), @"
        acme.yaml:3:3: bad_source: the cluster has no source
            hint: give exactly one of `kubeconfig`, `in_cluster`, `sandbox`
    ");
    assert_eq!(codes(&file("{ name: prod, sandbox: true, in_cluster: true }")), ["bad_source"]);
    assert_eq!(codes(&file("{ name: prod, sandbox: false }")), ["bad_value"]);
    assert_eq!(codes(&file("{ name: prod, sandbox: 'true' }")), ["bad_value"]);
}

#[test]
fn a_kubeconfig_is_a_secret_and_its_name_is_no_path() {
    assert_snapshot!(printed(&file("{ name: prod, kubeconfig: /etc/kubeconfig }")), @"acme.yaml:3:29: wrong_type: `kubeconfig` must be a mapping, and a plain value stands here");
    assert_snapshot!(printed(&file("{ name: prod, kubeconfig: { path: x } }")), @"
        acme.yaml:3:29: missing_key: the key `secret` is missing
            hint: a kubeconfig is a secret: write `kubeconfig: { secret: NAME }`, or refer to a secret parameter
        acme.yaml:3:31: unknown_key: `kubeconfig` has no key `path`
            hint: a kubeconfig is a secret: write `kubeconfig: { secret: NAME }`, or refer to a secret parameter; known keys here: secret
    ");
    for bad in ["../other/prod", "a/b", ".hidden", "''", "'a b'"] {
        assert_eq!(codes(&file(&format!("{{ name: prod, kubeconfig: {{ secret: {bad} }} }}"))), ["bad_value"], "{bad}");
    }
}

#[test]
fn a_list_of_namespaces_limits_or_is_refused() {
    for bad in ["'*'", "Shop", "'-x'", "'a*b'", "'a.b'", "''"] {
        let text = format!("{{ name: prod, sandbox: true, default_namespace: shop, namespaces: [shop, {bad}] }}");
        assert_eq!(codes(&file(&text)), ["bad_value"], "{bad}");
    }
    assert_snapshot!(printed(&file("{ name: prod, sandbox: true, namespaces: ['team-*'] }")), @"
        acme.yaml:3:3: missing_key: no namespace is named whole, so a call without one has nowhere to go
            hint: add `default_namespace:`
    ");
    assert_snapshot!(printed(&file("{ name: prod, sandbox: true, namespaces: [shop], default_namespace: other }")), @"
        acme.yaml:3:71: bad_value: `other` is outside `namespaces`
            hint: choose one that is allowed
    ");
    assert_eq!(
        codes(&file("{ name: prod, sandbox: true, namespaces: [] }")),
        ["missing_key"],
        "an empty list allows nothing"
    );
}

#[test]
fn nobody_acts_as_the_masters_of_a_cluster() {
    for who in
        ["{ user: 'system:masters' }", "{ user: a, groups: ['system:masters'] }", "{ user: \"a\\nb\" }", "{ user: '' }"]
    {
        assert_eq!(
            codes(&file(&format!("{{ name: prod, sandbox: true, impersonate: {who} }}"))),
            ["bad_value"],
            "{who}"
        );
    }
    assert_eq!(codes(&file("{ name: prod, sandbox: true, impersonate: { groups: [a] } }")), ["missing_key"]);
}

#[test]
fn names_are_labels_and_there_once() {
    assert_eq!(codes(&file("{ name: Prod, sandbox: true }")), ["bad_value"]);
    assert_eq!(codes(&file("{ sandbox: true }")), ["missing_key"]);
    assert_eq!(
        codes("tenant: acme\nclusters: [{ name: a, sandbox: true }, { name: a, in_cluster: true }]"),
        ["repeated_value"]
    );
    let twice = "tenant: acme\nclusters: [{ name: a, sandbox: true, default: true }, { name: b, in_cluster: true, default: true }]";
    assert_eq!(codes(twice), ["repeated_value"]);
    let many: String = (0..33).map(|n| format!("- {{ name: c{n}, sandbox: true }}\n")).collect();
    assert_eq!(codes(&format!("tenant: acme\nclusters:\n{many}")), ["out_of_range"]);
}
