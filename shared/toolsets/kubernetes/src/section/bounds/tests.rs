use crate::client::NamespacePattern;
use crate::section::{ClusterEntry, KEY, images, most_replicas, section};
use proptest::prelude::*;
use tenancy::{KnownNames, TenantConfig};

const FILE: &str = "
- name: prod
  kubeconfig: { secret: prod }
  namespaces: [shop, 'team-*']
  impersonate: { user: acme, groups: [agents] }
  protected: [shop-payments, 'team-x-*']
- { name: here, in_cluster: true, namespaces: [acme-a] }
- { name: open, kubeconfig: { secret: open } }
- { name: play, sandbox: true }
";

fn config(clusters: &str) -> TenantConfig {
    let text = format!("tenant: acme\nclusters:{clusters}");
    tenancy::parse("acme.yaml", &text, &KnownNames::only(&[section()]))
        .unwrap_or_else(|problems| panic!("{text}\n{problems:?}"))
}

fn beyond(file: &str, clusters: &str) -> Vec<String> {
    let text = format!("tenant: acme\nclusters:{clusters}");
    let problems = tenancy::exceeding("config", &text, &[section()], &config(file), &config(clusters));
    problems.iter().map(|problem| problem.message.clone()).collect()
}

#[test]
fn the_same_and_less_is_let_through() {
    let none = [] as [&str; 0];
    assert_eq!(beyond(FILE, FILE), none);
    assert_eq!(beyond(FILE, " []\n"), none, "a cluster may be left out");
    let less = "
- name: prod
  kubeconfig: { secret: prod }
  namespaces: ['team-a-*', team-b, shop]
  default_namespace: team-b
  impersonate: { user: acme, groups: [agents] }
  protected: ['shop-*', 'team-*']
  default: true
- { name: open, kubeconfig: { secret: open }, namespaces: [any], protected: [other] }
- { name: own, kubeconfig: { secret: own-key }, impersonate: { user: me } }
- { name: second-play, sandbox: true }
";
    assert_eq!(beyond(FILE, less), none);
}

#[test]
fn every_bound_of_a_cluster_holds() {
    let one = |cluster: &str| beyond(FILE, &format!("\n- {{ {cluster} }}\n")).join("\n");
    let who = "impersonate: { user: acme, groups: [agents] }";
    let protected = "protected: [shop-payments, 'team-x-*']";
    let prod = |rest: &str| one(&format!("name: prod, kubeconfig: {{ secret: prod }}, {rest}"));
    insta::assert_snapshot!(prod(&format!("{who}, {protected}")), @"`namespaces` of the cluster `prod`: the tenant's file gives shop, team-*, and this asks for all namespaces");
    insta::assert_snapshot!(prod(&format!("namespaces: [shop, 'te*'], {who}, {protected}")), @"`namespaces` of the cluster `prod`: the tenant's file gives shop, team-*, and this asks for shop, te*");
    insta::assert_snapshot!(prod(&format!("namespaces: [shop], {protected}")), @"`impersonate` of the cluster `prod`: the tenant's file gives acme in the groups agents, and this asks for the credential's own name");
    insta::assert_snapshot!(prod(&format!("namespaces: [shop], impersonate: {{ user: acme }}, {protected}")), @"`impersonate` of the cluster `prod`: the tenant's file gives acme in the groups agents, and this asks for acme in the groups none");
    insta::assert_snapshot!(prod(&format!("namespaces: [shop], {who}, protected: [shop-payments]")), @"`protected` of the cluster `prod`: the tenant's file gives shop-payments, team-x-*, and this asks for shop-payments");
    insta::assert_snapshot!(one("name: other, kubeconfig: { secret: prod }"), @"`kubeconfig` of the cluster `other`: the tenant's file gives it as prod, and this asks for it as other");
    insta::assert_snapshot!(one("name: open, kubeconfig: { secret: mine }"), @"`kubeconfig` of the cluster `open`: the tenant's file gives the kubeconfig `open`, and this asks for the kubeconfig `mine`");
    insta::assert_snapshot!(one("name: open, sandbox: true"), @"`sandbox` of the cluster `open`: the tenant's file gives the kubeconfig `open`, and this asks for a sandbox");
    insta::assert_snapshot!(one("name: there, in_cluster: true"), @"`in_cluster` of the cluster `there`: the tenant's file gives it as here, and this asks for it as there");
    insta::assert_snapshot!(one("name: here, in_cluster: true"), @"`namespaces` of the cluster `here`: the tenant's file gives acme-a, and this asks for all namespaces");
    insta::assert_snapshot!(beyond("\n- { name: play, sandbox: true }\n", "\n- { name: x, in_cluster: true }\n").join("\n"), @"`in_cluster` of the cluster `x`: the tenant's file gives no such cluster, and this asks for the service's own account");
    assert_eq!(one("name: open, kubeconfig: { secret: open }, impersonate: { user: root }").lines().count(), 1);
}

/// What these lines under `policy` ask for beyond those of the file.
fn beyond_policy(file: &str, asked: &str) -> Vec<String> {
    let sections = [images(), most_replicas()];
    let text = |policy: &str| format!("tenant: acme\npolicy: {{ {policy} }}\n");
    let config = |policy: &str| tenancy::parse("acme.yaml", &text(policy), &KnownNames::only(&sections)).unwrap();
    let problems = tenancy::exceeding("config", &text(asked), &sections, &config(file), &config(asked));
    problems.iter().map(|problem| problem.message.clone()).collect()
}

#[test]
fn a_text_lists_no_image_and_no_replica_beyond_the_file() {
    let none = [] as [&str; 0];
    let file = "images: ['ghcr.io/acme/*'], most_replicas: 5";
    assert_eq!(beyond_policy(file, file), none);
    assert_eq!(beyond_policy(file, "images: ['ghcr.io/acme/web/*'], most_replicas: 4"), none);
    assert_eq!(beyond_policy("", file), none, "where the file says nothing, every bound is less");
    let beyond = [
        "`policy.images`: the tenant's file gives ghcr.io/acme/*, and this asks for ghcr.io/acme/*, ghcr.io/other/*",
        "`policy.most_replicas`: the tenant's file gives 5, and this asks for 6",
    ];
    assert_eq!(beyond_policy(file, "images: ['ghcr.io/acme/*', 'ghcr.io/other/*'], most_replicas: 6"), beyond);
    assert_eq!(beyond_policy(file, "").len(), 2, "saying nothing would lift both");
}

fn cluster() -> impl Strategy<Value = String> {
    let name = prop::sample::select(vec!["a", "b", "c"]);
    let source =
        prop::sample::select(vec!["kubeconfig: { secret: one }", "kubeconfig: { secret: two }", "in_cluster: true"]);
    let patterns = || prop::sample::subsequence(vec!["x", "xy", "xyz", "x*", "xy*", "z"], 1..4);
    let who = prop::sample::select(vec!["", ", impersonate: { user: u }", ", impersonate: { user: v }"]);
    let listed =
        |patterns: Vec<&str>| patterns.iter().map(|pattern| format!("'{pattern}'")).collect::<Vec<_>>().join(", ");
    (name, source, prop::option::of(patterns()), who, prop::option::of(patterns())).prop_map(
        move |(name, source, namespaces, who, protected)| {
            let first = |list: &[&str]| list[0].trim_end_matches('*').to_owned();
            let namespaces =
                namespaces.map(|list| format!(", default_namespace: {}, namespaces: [{}]", first(&list), listed(list)));
            let protected = protected.map(|list| format!(", protected: [{}]", listed(list)));
            format!(
                "{{ name: {name}, {source}{who}{}{} }}",
                namespaces.unwrap_or_default(),
                protected.unwrap_or_default()
            )
        },
    )
}

/// Whether a request of this credential as this person may touch a namespace, and whether it may change it.
fn allows(clusters: &[ClusterEntry], of: &ClusterEntry, namespace: &str) -> (bool, bool) {
    let matches =
        |list: &[String]| list.iter().any(|pattern| NamespacePattern::parse(pattern).unwrap().matches(namespace));
    let alike =
        clusters.iter().filter(|c| (&c.name, &c.source, &c.impersonate) == (&of.name, &of.source, &of.impersonate));
    let allowed = alike.map(|c| (c.namespaces.as_deref().is_none_or(matches), !matches(&c.protected)));
    allowed.fold((false, false), |(read, write), (reads, unprotected)| (read || reads, write || (reads && unprotected)))
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(4_000))]

    #[test]
    fn clusters_that_are_let_through_never_reach_more_than_the_file(file in prop::collection::vec(cluster(), 1..3), asked in cluster()) {
        let distinct = |list: &[String]| list.iter().map(|text| &text[..10]).collect::<std::collections::BTreeSet<_>>().len() == list.len();
        prop_assume!(distinct(&file));
        let (file, asked) = (format!(" [{}]\n", file.join(", ")), format!(" [{asked}]\n"));
        if beyond(&file, &asked).is_empty() {
            let (given, wanted) = (config(&file), config(&asked));
            let list = |config: &TenantConfig| config.section::<Vec<ClusterEntry>>(KEY).unwrap().unwrap().clone();
            for cluster in list(&wanted) {
                // A credential that the file does not use is the tenant's own, and nothing of the operator's.
                if cluster.secret_use().is_some_and(|used| !given.grants(&used)) {
                    continue;
                }
                for namespace in ["x", "xy", "xyz", "xyzz", "y", "z"] {
                    let (has, may) = (allows(&list(&wanted), &cluster, namespace), allows(&list(&given), &cluster, namespace));
                    prop_assert!(has.0 <= may.0 && has.1 <= may.1, "{namespace}\n{file}\n{asked}");
                }
            }
        }
    }
}
