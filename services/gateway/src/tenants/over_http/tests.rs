use super::*;

fn config(text: &str) -> TenantConfig {
    let sections = [section::section(), jenkins::section::section(), helm::section::section()];
    let names = tenancy::KnownNames {
        toolsets: &["k8s", "memory"],
        tools: &["k8s_get"],
        ..tenancy::KnownNames::only(&sections)
    };
    tenancy::parse(LABEL, text, &names).unwrap_or_else(|problems| panic!("{problems:?}"))
}

fn taken(file: &str, text: &str) -> Vec<String> {
    let problems = not_granted(&config(file), &config(text), text);
    problems.iter().map(|p| format!("{}:{}:{} {}", p.file, p.line, p.column, p.code)).collect()
}

const BOUND: &str = "tenant: acme
clusters:
- { name: here, in_cluster: true, namespaces: [acme-*], default_namespace: acme-a, impersonate: { user: acme } }
limits: { calls_per_minute: 100 }
";

#[test]
fn the_services_own_account_is_the_operators_to_give() {
    let wider = [
        "tenant: acme\nclusters:\n- name: here\n  in_cluster: true\n",
        "tenant: acme\nclusters:\n- name: here\n  in_cluster: true\n  namespaces: [acme-*, other]\n  default_namespace: acme-a\n  impersonate: { user: acme }\n",
        "tenant: acme\nclusters:\n- name: here\n  in_cluster: true\n  namespaces: [acme-*]\n  default_namespace: acme-a\n  impersonate: { user: root }\n",
    ];
    for text in wider {
        assert_eq!(taken("tenant: acme\n", text)[0], "config:4:3 operator_only", "{text}");
        assert!(taken(BOUND, &format!("{text}limits: {{ calls_per_minute: 100 }}\n")).len() == 1, "{text}");
    }
    assert_eq!(taken(BOUND, BOUND), [] as [&str; 0]);
    assert_eq!(taken(BOUND, &BOUND.replace("impersonate", "default: true, impersonate")), [] as [&str; 0]);
    let own = "tenant: acme\nclusters:\n- { name: own, kubeconfig: { secret: k } }\n";
    assert_eq!(taken("tenant: acme\n", own), [] as [&str; 0]);
}

#[test]
fn limits_are_not_raised_over_those_of_the_file() {
    let more = "tenant: acme\nlimits:\n  calls_in_flight: 33\n  calls_per_minute: 601\n  result_bytes: 262145\n";
    let expected = ["config:3:3 operator_only", "config:4:3 operator_only", "config:5:3 operator_only"];
    assert_eq!(taken("tenant: acme\n", more), expected);
    assert_eq!(taken("tenant: acme\nlimits: { calls_in_flight: 33 }\n", more), expected[1..]);
    assert_eq!(taken("tenant: acme\n", "tenant: acme\nlimits: { calls_per_minute: 5 }\n"), [] as [&str; 0]);
}

#[test]
fn a_text_that_cannot_be_read_may_still_name_another_tenant() {
    let own = Tenant::parse("acme").unwrap();
    for text in ["tenant: other\n", "mode: x\ntenant: \"other\" # acme\n", "tenant: 'other'"] {
        assert!(seems_foreign(text, &own), "{text}");
    }
    for text in ["", "tenant: acme", "tenant: \"acme\" # other", "tenant:", "tenant: [", "x:\n  tenant: other"] {
        assert!(!seems_foreign(text, &own), "{text}");
    }
}

#[test]
fn every_secret_a_configuration_names_is_found_once() {
    let text = "tenant: acme
clusters: [{ name: a, kubeconfig: { secret: kube } }, { name: b, sandbox: true }]
toolsets:
  jenkins: { url: 'https://ci.example', user: robot, token: { secret: ci }, ca: { secret: ca } }
  helm: { repositories: [{ name: r, url: 'https://charts.example', credential: { secret: ci } }] }
";
    assert_eq!(config(text).secrets.into_iter().collect::<Vec<_>>(), ["ca", "ci", "kube"]);
}
