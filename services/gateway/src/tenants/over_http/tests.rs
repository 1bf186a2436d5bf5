use super::*;

fn config(text: &str) -> TenantConfig {
    let sections = [kubernetes::section::section(), jenkins::section::section(), helm::section::section()];
    tenancy::parse(LABEL, text, &tenancy::KnownNames::only(&sections)).unwrap_or_else(|problems| panic!("{problems:?}"))
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
