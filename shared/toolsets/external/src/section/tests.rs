//! What a tenant's file may say about external servers, agents and workflows.

mod agents;
mod bounds;
mod servers;

use super::credentials::CREDENTIALS;
use super::web::AUTH;
use super::*;
use crate::resolve::TenantServers;
use domain::Tenant;
use tenancy::{AddressUse, KnownNames, Problem, TenantConfig};

/// An operator's catalog: one server with a secret and a region, one without anything to say.
const CATALOG: &str = r#"
servers:
  - name: wiki-search
    url: "https://wiki.example/mcp/{{ params.region }}"
    auth: { header: X-Api-Key, scheme: raw, secret: "{{ params.api_key }}" }
    headers: { X-Team: "team {{ params.team }}" }
    params:
      api_key: { description: "Key of the wiki", secret: true }
      region: { default: us-east-1 }
      team: { description: "Who asks" }
  - { name: clock, url: "https://clock.example/mcp" }
"#;

fn read(text: &str) -> Result<TenantConfig, Vec<Problem>> {
    let (catalog, problems) = ServerCatalog::marketplace(CATALOG);
    assert_eq!(problems, []);
    let addresses = |used: &AddressUse<'_>| match (used.tenant.map(Tenant::as_str), used.address.contains("10.0.0.1")) {
        (Some("acme"), false) => Ok(()),
        (Some("acme"), true) => Err("it is private".to_owned()),
        (_, _) => Err("the operator does not let this tenant".to_owned()),
    };
    let sections = sections(&catalog);
    let known = KnownNames {
        toolsets: &["helm", "k8s", "memory"],
        tools: &["helm_list", "helm_upgrade", "k8s_exec", "k8s_get", "memory_read"],
        addresses: &addresses,
        ..KnownNames::only(&sections)
    };
    tenancy::parse("acme.yaml", text, &known)
}

fn servers_of(config: &TenantConfig) -> TenantServers<'_> {
    TenantServers::of(config).unwrap()
}

/// Every problem as it is printed.
fn printed(text: &str) -> String {
    read(text).expect_err("problems").iter().map(Problem::to_string).collect::<Vec<_>>().join("\n")
}

fn codes(text: &str) -> Vec<&'static str> {
    read(text).expect_err("problems").iter().map(|problem| problem.code).collect()
}

#[test]
fn the_schema_knows_the_keys_the_reader_knows() {
    let schema = tenancy::json_schema(&sections(&ServerCatalog::none()));
    let keys = |part: &str| -> BTreeSet<String> {
        schema["$defs"][part]["properties"].as_object().unwrap().keys().cloned().collect()
    };
    let parts: [(&str, &[&str]); 10] = [
        ("ChosenPart", &USE),
        ("OwnPart", &OWN),
        ("OwnParamPart", &OWN_PARAM),
        ("HeaderAuthPart", &AUTH[..3]),
        ("TokenAuthPart", &AUTH[3..]),
        ("ClientCredentialsPart", &CREDENTIALS),
        ("AccessPart", &ACCESS),
        ("AllowedTool", &ALLOWED),
        ("AgentPart", &AGENT),
        ("WorkflowPart", &WORKFLOW),
    ];
    for (part, expected) in parts {
        assert_eq!(keys(part), expected.iter().map(|key| (*key).to_owned()).collect(), "{part}");
    }
}

#[test]
fn a_tenant_without_servers_does_not_have_the_section() {
    assert!(!read("tenant: acme\nservers: []\n").unwrap().sections.has(SERVERS));
    assert!(read("tenant: acme\nservers: [{ use: clock }]\n").unwrap().sections.has(SERVERS));
}
